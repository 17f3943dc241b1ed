"""The examples for type checkers do what they say, too."""

from __future__ import annotations

import ast
import doctest
import re
import runpy
from pathlib import Path

import pytest

HERE = Path(__file__).parent
EXAMPLES = sorted(path for path in HERE.glob("*.py") if not path.name.startswith("test_"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs(path: Path) -> None:
    """Each is a script with assertions."""
    assert re.search(r"^ *assert\b", path.read_text(), re.MULTILINE), "it asserts nothing"
    runpy.run_path(str(path))


@pytest.mark.tree
def test_every_package_has_one() -> None:
    """A new package is found here; those that only values or errors come from are used by all."""
    packages = {path.parent.name for path in (HERE.parents[1] / "src" / "nodealloc").glob("*/__init__.py")}
    words = "".join(path.read_text() for path in EXAMPLES)
    public = {name for name in packages if not name.startswith("_")}
    assert {name for name in public if f"from nodealloc.{name}" not in words} == set()


@pytest.mark.tree
def test_the_first_example_of_the_readme_is_one_of_them() -> None:
    """Every statement of it stands in `readme.py`, which the type checkers read."""
    readme = (HERE.parents[1] / "README.md").read_text()
    shown = doctest.DocTestParser().get_examples(readme)
    there = {ast.dump(node) for node in ast.walk(ast.parse((HERE / "readme.py").read_text()))}
    imported = _imported((HERE / "readme.py").read_text())
    assert shown, "README has no example"
    for example in shown:
        for statement in ast.parse(example.source).body:
            if isinstance(statement, ast.ImportFrom):
                assert _imported(example.source) <= imported
            else:
                node = statement.value if isinstance(statement, ast.Expr) else statement
                assert ast.dump(node) in there, f"README shows what readme.py has not: {example.source}"


def _imported(source: str) -> set[tuple[str | None, str]]:
    """Module and name of every import."""
    return {
        (node.module, name.name)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
