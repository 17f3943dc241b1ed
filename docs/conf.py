"""Sphinx settings."""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import re
from functools import cache
from pathlib import Path
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
html_static_path = ["_static"]
html_css_files = ["wide.css"]
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
    ("py:.*", r"nodealloc\.(.*\.)?([A-Z]|Row|State|Event)(_co|_contra)?"),
]


_COLON = "\ue000"
"""Stands for a colon while Napoleon looks."""


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


def _members(kind: type[enum.Enum]) -> Iterator[str]:
    """All members of an enumeration with their values, those without words of their own too."""
    listed = [f"``{member.name}``" + _value(member) for member in kind]
    yield from ("", f"Members: {', '.join(listed)}.", "")


def _value(member: enum.Enum) -> str:
    told = isinstance(member.value, str | int) and str(member.value).lower() != member.name.lower()
    return f" (``{member.value or repr(member.value)}``)" if told else ""


def _rewrite(
    _app: object, what: str, _name: str, documented: object, _options: object, lines: list[str]
) -> None:
    lines[:] = list(_as_rst(lines))
    if what == "class" and isinstance(documented, type) and issubclass(documented, enum.Enum):
        lines += _members(documented)
    if what == "attribute" and lines:
        # Napoleon would take what stands before a colon for a type.
        lines[0] = lines[0].replace(": ", f"{_COLON} ")


def _put_back(
    _app: object, _what: str, _name: str, _object: object, _options: object, lines: list[str]
) -> None:
    lines[:] = [line.replace(_COLON, ":") for line in lines]


@cache
def _constants(module: str) -> dict[str, str]:
    """Constants and type aliases that a module assigns, each with the text below it."""
    path = inspect.getsourcefile(importlib.import_module(module))
    body = ast.parse(Path(str(path)).read_text(encoding="utf-8")).body
    found: dict[str, str] = {}
    for statement, after in zip(body, [*body[1:], ast.Pass()], strict=True):
        targets = statement.targets if isinstance(statement, ast.Assign) else ()
        targets = (statement.target,) if isinstance(statement, ast.AnnAssign) else targets
        value = after.value if isinstance(after, ast.Expr) else None
        text = value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""
        found |= {target.id: inspect.cleandoc(text) for target in targets if isinstance(target, ast.Name)}
    return found


@cache
def _origins(module: str) -> dict[str, str]:
    """Name to the module that a package's `__init__` has it from."""
    path = inspect.getsourcefile(importlib.import_module(module))
    tree = ast.parse(Path(str(path)).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return {one.asname or one.name: str(node.module) for node in imports for one in node.names}


def _constant(module: str, name: str) -> str | None:
    """What stands below a constant where it is assigned; None where that is nowhere of ours."""
    seen: set[str] = set()
    while module.startswith("nodealloc") and module not in seen:
        seen.add(module)
        if name in _constants(module):
            return _constants(module)[name]
        module = _origins(module).get(name, "")
    return None


def _add_constants(_app: object, _page: str, source: list[str]) -> None:
    """Behind each package the constants that it re-exports, which autodoc passes over."""

    def entries(block: re.Match[str]) -> str:
        package = block[2]
        lines = [block[1]]
        module = importlib.import_module(package)
        for name in module.__all__:
            shown = name not in _origins(package) or inspect.isclass(getattr(module, name))
            text = None if shown else _constant(package, name)
            if text is not None:
                body = "\n".join(f"   {line}".rstrip() for line in text.splitlines())
                lines.append(f".. py:data:: {name}\n   :module: {package}\n\n{body}\n")
        return "\n".join(lines)

    source[0] = re.sub(
        r"^(\.\. automodule:: ([\w.]+)\n(?:   :.*\n)*)", entries, source[0], flags=re.MULTILINE
    )


def setup(app: Sphinx) -> None:
    """Hook into autodoc, ahead of what reads the sections of a docstring."""
    app.connect("source-read", _add_constants)
    app.connect("autodoc-process-docstring", _rewrite, priority=100)
    app.connect("autodoc-process-docstring", _put_back, priority=900)
