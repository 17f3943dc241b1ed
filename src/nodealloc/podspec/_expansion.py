"""`$(NAME)` in texts of a pod."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

__all__ = ["expand", "unresolved"]

_PIECE: Final = re.compile(r"\$\$|\$\(([^)]*)\)", re.DOTALL)


def expand(text: str, variables: Mapping[str, str], /) -> str:
    """Replace `$(NAME)` by the variable of that name.

    A name that is not known stays as it stands, `$$` is one `$`, and any other
    `$` is itself. What was put in is not looked at again.

    Source: the Kubernetes API, `Container.command`.
    """
    if "$" not in text:
        return text
    return _PIECE.sub(lambda found: _replaced(found, variables), text)


def unresolved(text: str, variables: Mapping[str, str], /) -> tuple[str, ...]:
    """Names, sorted, of variables that say nothing or are not there."""
    names = {found[1] for found in _PIECE.finditer(text) if found[0] != "$$"}
    return tuple(sorted(name for name in names if not variables.get(name)))


def _replaced(found: re.Match[str], variables: Mapping[str, str]) -> str:
    if found[0] == "$$":
        return "$"
    return variables.get(found[1], found[0])
