"""Reads recorded files, replays them, and counts what differs."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import cast

import attrs

from nodealloc.errors import DecodeError, Fault
from nodealloc.podspec import Json
from nodealloc.testing.conformance._kinds import KINDS, Answer, Row, answer_for

__all__ = ["Difference", "Outcome", "kind_of", "read_machines", "read_rows", "replay", "replay_file"]

_SUFFIXES = (".jsonl", ".jsonl.gz")


@attrs.frozen(kw_only=True)
class Difference:
    """One row that was answered otherwise.

    Attributes:
        line: Number of the row in its file, from 1.
        row: The input, as recorded.
        expected: What was recorded.
        got: What was answered, or the error that was raised, as text.
    """

    line: int
    row: Row
    expected: Json
    got: Json


@attrs.frozen(kw_only=True)
class Outcome:
    """What a file came to.

    Attributes:
        kind: Kind of its rows.
        passed: Rows answered as recorded.
        differences: All the others, in file order.
    """

    kind: str
    passed: int
    differences: tuple[Difference, ...]


def kind_of(path: Path, /) -> str:
    """The kind that a file's name says; raises `DecodeError` for an unknown one."""
    for suffix in _SUFFIXES:
        if path.name.endswith(suffix):
            kind = path.name.removesuffix(suffix)
            if kind in KINDS:
                return kind
    known = ", ".join(sorted(KINDS))
    raise DecodeError(
        str(path),
        [Fault("file name", f"no kind of recorded rows; expected KIND.jsonl[.gz] with KIND one of {known}")],
    )


def read_rows(path: Path, /) -> Iterator[Row]:
    """Rows of a file, plain or gzip; raises `DecodeError` at the first line that is none."""
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                yield _row(path, number, line)
    except (OSError, EOFError, zlib.error) as error:
        raise DecodeError(str(path), [Fault("file", f"cannot be read: {error}")]) from error


def _row(path: Path, number: int, line: bytes) -> Row:
    try:
        row: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DecodeError(str(path), [Fault(f"line {number}", f"no JSON: {error}")]) from error
    if not isinstance(row, dict):
        raise DecodeError(str(path), [Fault(f"line {number}", "expected a JSON object")])
    return cast("Row", row)


def read_machines(path: Path, /) -> dict[str, Row]:
    """Recorded machines by name."""
    return {str(row["name"]): row for row in read_rows(path)}


def replay(
    kind: str, rows: Iterable[Row], answer: Answer, machines: Mapping[str, Row] | None = None, /
) -> Outcome:
    """Compare what `answer` says of each row with what was recorded.

    An error that `answer` raises counts as a difference and does not end the
    replay.
    """
    passed = 0
    differences: list[Difference] = []
    for line, row in enumerate(rows, 1):
        expected, got = _ask(answer, row, machines or {})
        if expected == got:
            passed += 1
        else:
            differences.append(Difference(line=line, row=row, expected=expected, got=got))
    return Outcome(kind=kind, passed=passed, differences=tuple(differences))


def _ask(answer: Answer, row: Row, machines: Mapping[str, Row]) -> tuple[Json, Json]:
    try:
        return answer(row, machines)
    except Exception as error:  # noqa: BLE001  # whatever a port under test raises is its answer
        return "an answer", f"{type(error).__name__}: {error}"


def replay_file(path: Path, machines: Path | None = None, /) -> Outcome:
    """Replay a file against this library.

    Args:
        path: `KIND.jsonl` or `KIND.jsonl.gz`.
        machines: Recorded machines; by default looked for beside the file.
    """
    kind = kind_of(path)
    beside = machines or next(filter(Path.is_file, (path.with_name(f"machines{s}") for s in _SUFFIXES)), None)
    known = read_machines(beside) if beside else {}
    answer: Callable[[Row, Mapping[str, Row]], tuple[Json, Json]] = answer_for(kind)
    return replay(kind, read_rows(path), answer, known)
