"""Reads recorded files, replays them, and counts what differs."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import cast

from nodealloc import _attrs as attrs
from nodealloc.errors import DecodeError, Fault
from nodealloc.podspec import Json
from nodealloc.testing.conformance._kinds import KINDS, Row, RowAnswer, answer_for, known_kind

__all__ = [
    "Difference",
    "RowOutcome",
    "files_of",
    "is_machines",
    "kind_of",
    "read_machines",
    "read_rows",
    "replay",
    "replay_file",
]

_SUFFIXES = (".jsonl", ".jsonl.gz")
_MACHINES = "machines"


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
class RowOutcome:
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
    """The kind that a file's name says: up to the first dot, without a number at its end.

    Raises:
        DecodeError: The name says no kind that was recorded, or the path is a directory.
    """
    if path.is_dir():
        raise DecodeError(
            str(path), [Fault("file name", "is a directory; name its files, or give it to the command")]
        )
    kind = re.sub(r"_?\d+$", "", path.name.partition(".")[0])
    if kind in KINDS and path.name.endswith(_SUFFIXES):
        return kind
    known = ", ".join(sorted(KINDS))
    raise DecodeError(
        str(path),
        [Fault("file name", f"no kind of recorded rows; expected KIND.jsonl[.gz] with KIND one of {known}")],
    )


def files_of(path: Path, /) -> tuple[Path, ...]:
    """The files of rows that a path stands for: itself, or those of a directory in the order of names.

    Raises:
        DecodeError: Nothing is there, a directory without any, or one that cannot be listed.
    """
    if not path.exists():
        raise DecodeError(str(path), [Fault("file name", "nothing is there; name recorded rows")])
    if not path.is_dir():
        return (path,)
    try:
        found = tuple(sorted(one for one in path.iterdir() if one.name.endswith(_SUFFIXES)))
    except OSError as error:
        raise DecodeError(str(path), [Fault("directory", f"cannot be listed: {error}")]) from error
    if not found:
        raise DecodeError(
            str(path), [Fault("directory", "holds no recorded rows; expected files named KIND.jsonl[.gz]")]
        )
    return found


def is_machines(path: Path, /) -> bool:
    """Whether a file holds machines, which rows of other kinds look up."""
    return path.name.partition(".")[0] == _MACHINES and path.name.endswith(_SUFFIXES)


def read_rows(path: Path, /) -> Iterator[Row]:
    """Rows of a file, plain or gzip; raises `DecodeError` at the first line that is none, and without any."""
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                yield _row(path, number, line)
    except (OSError, EOFError, zlib.error) as error:
        raise DecodeError(str(path), [Fault("file", f"cannot be read: {error}")]) from error
    if not number:
        raise DecodeError(str(path), [Fault("file", "holds no rows; fetch it once more")])


def _row(path: Path, number: int, line: bytes) -> Row:
    try:
        row: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DecodeError(str(path), [Fault(f"line {number}", f"no JSON: {error}")]) from error
    if not isinstance(row, dict):
        raise DecodeError(str(path), [Fault(f"line {number}", "expected a JSON object")])
    return cast("Row", row)


def read_machines(path: Path, /) -> dict[str, Row]:
    """Recorded machines by name; raises `DecodeError` as `read_rows` does, and for one without a name."""
    machines: dict[str, Row] = {}
    for number, row in enumerate(read_rows(path), 1):
        if "name" not in row:
            raise DecodeError(str(path), [Fault(f"line {number}", "a machine without a name")])
        machines[str(row["name"])] = row
    return machines


class _Machines(dict[str, Row]):
    """Machines by name, for an answer that looks one up."""

    def __missing__(self, name: str) -> Row:
        raise LookupError(f"no machine {name!r} was read; name the file that has it (--machines)")


def replay(
    kind: str, rows: Iterable[Row], answer: RowAnswer, machines: Mapping[str, Row] | None = None, /
) -> RowOutcome:
    """Compare what `answer` says of each row with what was recorded.

    An error that `answer` raises counts as a difference and does not end the
    replay.

    Args:
        kind: What the rows are; also one that this library does not answer itself.
        rows: Recorded rows.
        answer: From a row and the machines to (expected, got).
        machines: Recorded machines by name, for rows that speak of one.

    Raises:
        UnknownKindError: No rows of that kind were recorded; the kinds are listed.
    """
    known_kind(kind)
    passed = 0
    differences: list[Difference] = []
    known = _Machines(machines or {})
    for line, row in enumerate(rows, 1):
        expected, got = _ask(answer, row, known)
        if expected == got:
            passed += 1
        else:
            differences.append(Difference(line=line, row=row, expected=expected, got=got))
    return RowOutcome(kind=kind, passed=passed, differences=tuple(differences))


def _ask(answer: RowAnswer, row: Row, machines: Mapping[str, Row]) -> tuple[Json, Json]:
    try:
        return answer(row, machines)
    except Exception as error:  # noqa: BLE001  # whatever a port under test raises is its answer
        return "an answer", f"{type(error).__name__}: {error}"


def replay_file(
    path: Path, machines: Path | None = None, /, *, answer: RowAnswer | None = None
) -> RowOutcome:
    """Replay a file against this library, or against somebody else's answers.

    Args:
        path: `KIND.jsonl` or `KIND.jsonl.gz`.
        machines: Recorded machines; by default looked for beside the file.
        answer: What answers in place of the library; it need not know the kind.

    Raises:
        DecodeError: The name says no kind, or the file cannot be read.
        NoRoomError: Nothing in this library answers rows of that kind yet.
    """
    kind = kind_of(path)
    answering = answer_for(kind) if answer is None else answer
    beside = machines or next(
        filter(Path.is_file, (path.with_name(f"{_MACHINES}{s}") for s in _SUFFIXES)), None
    )
    known = read_machines(beside) if beside else {}
    return replay(kind, read_rows(path), answering, known)
