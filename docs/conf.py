"""Sphinx settings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sphinx.application import Sphinx

project = "nodealloc"
author = "nodealloc developers"
copyright = "2026, nodealloc developers"  # noqa: A001  # the name that Sphinx reads
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "nodealloc"
exclude_patterns = ["_build"]
default_role = "code"
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "show-inheritance": True}
napoleon_use_ivar = True
suppress_warnings = [
    "ref.python",  # CPUSet is public in two places, and both are meant
    "myst.header",  # pages of one package each begin at the level at which they are read together
]
# Examples in docstrings name things by backticks, not by links; what a public
# name is made of inside its package, and a type variable, has no page of its own.
nitpick_ignore_regex = [
    ("py:.*", r"(?!nodealloc\.).*"),
    ("py:.*", r"nodealloc\..*\._.*|nodealloc\._.*"),
    ("py:.*", r"nodealloc\.(.*\.)?([A-Z]|State|Event)(_co|_contra)?"),
]


def _as_rst(lines: Sequence[str]) -> Iterator[str]:
    """Docstrings are written to be read as they stand: fences and tables become literal blocks."""
    fenced = table = False
    for line in lines:
        text = line.strip()
        if text.startswith("```"):
            fenced = not fenced
            yield from ("", "::", "") if fenced else ("",)
            continue
        is_row = text.startswith("|") and text.endswith("|") and not fenced
        if is_row != table:
            yield from ("", "::", "") if is_row else ("",)
            table = is_row
        yield f"    {line}" if fenced or table else re.sub(r"^Source: ", "*Source:* ", line)


def _rewrite(
    _app: object, _what: str, _name: str, _object: object, _options: object, lines: list[str]
) -> None:
    lines[:] = list(_as_rst(lines))


def setup(app: Sphinx) -> None:
    """Hook into autodoc, ahead of what reads the sections of a docstring."""
    app.connect("autodoc-process-docstring", _rewrite, priority=100)
