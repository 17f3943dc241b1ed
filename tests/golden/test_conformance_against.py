"""Recorded decisions against somebody else's code, as the page describes it."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import nodealloc
from nodealloc.errors import ConfigurationError
from nodealloc.testing.conformance import Row, answer_named, from_fields, replay

PAGE = Path(__file__).parent.parent.parent / "docs" / "reference" / "conformance.md"

MINE = """
from nodealloc.idset import CPUSet, lowest

def lowest_ids(row, machines):
    assert row["machine"] in machines
    free = CPUSet.parse(row["available"]).mask
    if free.bit_count() < row["num_cpus"]:
        return {"result": "", "error": True}
    return {"result": str(CPUSet.from_mask(lowest(free, row["num_cpus"]))), "error": False}

def raises(row, machines):
    raise KeyError("distances")

number = 3
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, in a folder with a module of somebody else's."""
    (folder / "mine.py").write_text(MINE)
    command = [sys.executable, "-m", "nodealloc.testing.conformance", *arguments]
    found = {**os.environ, "PYTHONPATH": str(Path(nodealloc.__file__).parent.parent)}
    return subprocess.run(command, cwd=folder, env=found, capture_output=True, text=True, check=False)


@pytest.fixture
def few(vectors: Path, tmp_path: Path) -> Path:
    """The first rows of one kind, beside the machines."""
    with gzip.open(vectors / "take_cpus.jsonl.gz", "rt") as rows:
        (tmp_path / "take_cpus.jsonl").write_text("".join(next(rows) for _ in range(200)))
    (tmp_path / "machines.jsonl.gz").write_bytes((vectors / "machines.jsonl.gz").read_bytes())
    return tmp_path / "take_cpus.jsonl"


def test_a_function_of_ones_own_is_asked(few: Path, tmp_path: Path) -> None:
    """It passes where it agrees; a difference shows the fields that it named, and no others."""
    done = run(tmp_path, "--against", "mine:lowest_ids", "--show", "1", str(few))
    found = re.search(r"take_cpus: (\d+) passed, (\d+) failed", done.stdout)
    assert found, done.stdout + done.stderr
    passed, failed = map(int, found.groups())
    assert passed + failed == 200
    assert passed > 0
    assert failed > 0
    assert done.returncode == 1
    expected = json.loads(re.findall(r"expected: (.*)", done.stdout)[0])
    got = json.loads(re.findall(r"got: (.*)", done.stdout)[0])
    assert expected.keys() == got.keys() == {"result", "error"}
    assert expected != got


def test_a_function_that_raises_fails_its_row(few: Path, tmp_path: Path) -> None:
    """The error is what it answered."""
    done = run(tmp_path, "--against", "mine:raises", "--show", "1", str(few))
    assert "take_cpus: 0 passed, 200 failed" in done.stdout
    assert "KeyError: 'distances'" in done.stdout


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("mine", "expected MODULE:FUNCTION"),
        ("mine:absent", "mine has no function absent"),
        ("mine:number", "mine has no function number"),
        ("nobody_has_this:one", "importing nobody_has_this raised ModuleNotFoundError"),
    ],
)
def test_a_function_that_is_not_there_is_said(name: str, says: str, few: Path, tmp_path: Path) -> None:
    """Before anything is replayed, with another status than a difference."""
    done = run(tmp_path, "--against", name, str(few))
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_an_answer_may_be_fields_or_a_pair() -> None:
    """Anything else has failed."""
    rows: list[Row] = [{"in": "1Ki", "value": 1024}]
    assert replay("quantity", rows, from_fields(lambda *_: {"value": 1024})).passed == 1
    assert replay("quantity", rows, from_fields(lambda row, _: (row["value"], 1024))).passed == 1
    assert replay("quantity", rows, from_fields(lambda *_: 1024)).differences[0].got == "1024"
    with pytest.raises(ConfigurationError, match="MODULE:FUNCTION"):
        answer_named("quantity")


def documented() -> dict[str, tuple[set[str], set[str]]]:
    """Kind to the fields that the page says are in every row, and in some."""
    table = PAGE.read_text().partition("## What stands in a row")[2].partition("\n## ")[0]
    found: dict[str, tuple[set[str], set[str]]] = {}
    for line in table.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 3 and cells[0].startswith("`"):
            asked = re.sub(r"\([^)]*\)", "", f"{cells[1]}, {cells[2]}")
            asked = re.sub(r": each with.*", "", asked)
            some = set(re.findall(r"\[`(\w+)`\]", asked))
            found[cells[0].strip("`")] = (set(re.findall(r"`(\w+)`", asked)) - some, some)
    return found


@pytest.mark.parametrize("kind", documented())
def test_the_page_names_every_field(kind: str, vectors: Path) -> None:
    """Those of all rows, and those of some."""
    with gzip.open(vectors / f"{kind}.jsonl.gz", "rt") as lines:
        fields = [set(json.loads(line)) for line in lines]
    always, sometimes = documented()[kind]
    assert always == set.intersection(*fields)
    assert always | sometimes == set.union(*fields)
