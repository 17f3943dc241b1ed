"""How packages say where they do otherwise than the kubelet, and that they keep to it."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from pathlib import Path

import attrs
import pytest

import nodealloc
from nodealloc._rules import Departure, as_recorded, departures, recorded
from nodealloc.testing.conformance import files_of, kind_of, read_rows

ROOT = Path(__file__).parent.parent.parent


@attrs.frozen(kw_only=True)
class Rules:
    """Invented rules."""

    resets_run: bool = attrs.field(default=True, metadata=recorded(False, "probe_worker 190"))
    rounding_s: float = attrs.field(
        default=0.0, metadata=recorded(1.0, "termination_order 0", "termination_order 2")
    )


def test_the_default_is_ours_and_kubelet_is_as_recorded() -> None:
    """Two values of one class; a caller takes either, or changes one field of it."""
    kubelet = as_recorded(Rules)
    assert (Rules().resets_run, Rules().rounding_s) == (True, 0.0)
    assert (kubelet.resets_run, kubelet.rounding_s) == (False, 1.0)
    assert attrs.evolve(kubelet, resets_run=True) == Rules(rounding_s=1.0)


def test_differences_can_be_listed() -> None:
    """Field, both values and the rows, in the order of declaration."""
    assert departures(Rules) == (
        Departure(name="resets_run", ours=True, kubelet=False, rows=("probe_worker 190",)),
        Departure(
            name="rounding_s", ours=0.0, kubelet=1.0, rows=("termination_order 0", "termination_order 2")
        ),
    )


@pytest.mark.parametrize(
    ("field", "words"),
    [
        (attrs.field(default=True), "metadata=recorded"),
        (attrs.field(metadata=recorded(False, "pleg 1")), "needs a plain default"),
        (attrs.field(factory=list, metadata=recorded(False, "pleg 1")), "needs a plain default"),
        (attrs.field(default=True, metadata=recorded(True, "pleg 1")), "does not differ"),
        (attrs.field(default=True, metadata=recorded(False)), "names no row"),
        (attrs.field(default=True, metadata=recorded(False, "somewhere")), "write KIND ID"),
    ],
)
def test_a_field_that_is_no_difference_is_refused(field: object, words: str) -> None:
    """Without a source, a default or a difference it would be an option that nobody needs."""
    made = attrs.make_class("Made", {"flag": field}, frozen=True, kw_only=True)
    with pytest.raises(ValueError, match=words):
        as_recorded(made)


def faults(package: str, rules: type, folder: Path, page: str, rows: dict[str, set[str]]) -> list[str]:
    """What is wrong with a package's rules: a field without reader, without a word, without its rows."""
    read = {
        node.attr
        for file in folder.glob("**/*.py")
        if file.name != "_rules.py"
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
    }
    found = [f"{package}: nobody reads {one.name}" for one in departures(rules) if one.name not in read]
    found += [f"{package}: no word on {one.name}" for one in departures(rules) if f"`{one.name}`" not in page]
    return found + [
        f"{package}: {one.name} names {row}, which was not recorded"
        for one in departures(rules)
        for row in one.rows
        if row.split()[1].partition("[")[0] not in rows.get(row.split()[0], set())
    ]


@pytest.fixture(scope="module")
def recorded_rows() -> dict[str, set[str]]:
    """Kind to the ids of its rows."""
    found: dict[str, set[str]] = {}
    for path in files_of(ROOT / "tests" / "vectors"):
        if path.name != "machines.jsonl.gz":
            found.setdefault(kind_of(path), set()).update(str(row.get("id")) for row in read_rows(path))
    return found


@pytest.mark.tree
def test_rules_of_packages_are_read_told_and_recorded(recorded_rows: dict[str, set[str]]) -> None:
    """Each field has a reader in its package, a line on the page of differences, and rows that exist."""
    for module in pkgutil.iter_modules(nodealloc.__path__, "nodealloc."):
        package = importlib.import_module(module.name) if module.ispkg else None
        rules: object = getattr(package, "Rules", None)
        if not isinstance(rules, type) or package is None or package.__file__ is None:
            continue
        name = module.name.partition(".")[2]
        page = (ROOT / "docs" / "explanation" / "differences" / f"{name}.md").read_text(encoding="utf-8")
        assert package.KUBELET == as_recorded(rules)
        assert faults(name, rules, Path(package.__file__).parent, page, recorded_rows) == []


def test_a_rule_that_nobody_keeps_would_be_found(tmp_path: Path, recorded_rows: dict[str, set[str]]) -> None:
    """The check above can fail: no reader, no line on the page, no such row."""
    (tmp_path / "_decisions.py").write_text("def f(rules):\n    return rules.resets_run\n")
    assert faults("p", Rules, tmp_path, "`resets_run`: why", recorded_rows) == [
        "p: nobody reads rounding_s",
        "p: no word on rounding_s",
    ]
    (tmp_path / "_more.py").write_text("x = rules.rounding_s")
    absent = {**recorded_rows, "probe_worker": set[str]()}
    assert faults("p", Rules, tmp_path, "`resets_run`, `rounding_s`", absent) == [
        "p: resets_run names probe_worker 190, which was not recorded"
    ]
