"""The examples for type checkers do what they say, too."""

from __future__ import annotations

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
