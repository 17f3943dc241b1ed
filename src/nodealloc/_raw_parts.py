"""Parts of a document as it came: what is of another kind than is asked for counts as empty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

__all__ = ["Fields", "fields_of", "items_of", "text_of"]

Fields: TypeAlias = Mapping[str, object]


def fields_of(value: object) -> Fields:
    """A mapping."""
    return cast("Fields", value) if isinstance(value, Mapping) else {}


def items_of(value: object) -> Sequence[object]:
    """A list."""
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()


def text_of(value: object) -> str:
    """A text."""
    return value if isinstance(value, str) else ""
