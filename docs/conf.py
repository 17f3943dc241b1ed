"""Sphinx settings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "nodealloc"
author = "nodealloc developers"
copyright = "2026, nodealloc developers"  # noqa: A001  # the name that Sphinx reads
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "nodealloc"
exclude_patterns = ["_build", "explanation/differences/*"]
default_role = "code"
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "show-inheritance": True}
napoleon_use_ivar = True
# Examples in docstrings name things by backticks, not by links; what a public
# name is made of inside its package has no page of its own.
nitpick_ignore_regex = [
    ("py:.*", r"(?!nodealloc\.).*"),
    ("py:.*", r"nodealloc\..*\._.*|nodealloc\._.*"),
]
_SOURCE = re.compile(r"^Source: ")


def _source_line(_app: object, _what: str, _name: str, _object: object, _options: object, lines: list[str]) -> None:
    """Set the line that says where a rule comes from in italics."""
    for number, line in enumerate(lines):
        if _SOURCE.match(line):
            lines[number] = _SOURCE.sub("*Source:* ", line)


def setup(app: Sphinx) -> None:
    """Hook into autodoc."""
    app.connect("autodoc-process-docstring", _source_line)
