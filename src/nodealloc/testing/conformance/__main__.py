"""`python -m nodealloc.testing.conformance PATH...`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from nodealloc.errors import ConfigurationError, DecodeError, NodeallocError
from nodealloc.testing.conformance import (
    NoRoomError,
    RowAnswer,
    RowOutcome,
    answer_named,
    files_of,
    is_machines,
    replay_file,
)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m nodealloc.testing.conformance",
        description="Replay recorded decisions. The kind of a file is its name up to the first dot, "
        "without a number at its end.",
    )
    parser.add_argument(
        "paths",
        nargs="+",
        type=Path,
        metavar="PATH",
        help="KIND.jsonl[.gz], or a directory of such files",
    )
    parser.add_argument(
        "--machines", type=Path, metavar="FILE", help="recorded machines; default: beside each file"
    )
    parser.add_argument(
        "--show", type=int, default=0, metavar="K", help="show the first K differences of a file"
    )
    parser.add_argument(
        "--against",
        metavar="MODULE:FUNCTION",
        help="check this function of yours in place of the library: from (row, machines) to a mapping of "
        "the row's fields as it would have them",
    )
    return parser


def main() -> int:
    """Replay the files that are named; 0 when every row passed, 2 for a wrong `--against`, else 1."""
    arguments = _parser().parse_args()
    try:
        answer = answer_named(arguments.against) if arguments.against else None
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return 2
    passed = failed = unread = 0
    for named in arguments.paths:
        try:
            files = files_of(named)
        except DecodeError as error:
            print(error, file=sys.stderr)
            unread += 1
            continue
        for path in files:
            outcome = _replayed(path, arguments.machines, arguments.show, answer)
            passed += outcome.passed if outcome else 0
            failed += len(outcome.differences) if outcome else 0
            unread += outcome is None
    if unread:
        print(f"{unread} paths were not replayed", file=sys.stderr)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or unread else 0


def _replayed(path: Path, machines: Path | None, show: int, answer: RowAnswer | None) -> RowOutcome | None:
    """What a file came to, told; nothing passed and nothing failed of one that is skipped; None for junk."""
    name = path.name.partition(".")[0]
    if is_machines(path):
        print(f"{path}: machines, looked up by the other kinds; nothing to replay", file=sys.stderr)
        return RowOutcome(kind=name, passed=0, differences=())
    try:
        outcome = replay_file(path, machines, answer=answer)
    except NoRoomError as error:
        print(f"{name}: skipped, no package answers rows of the kind {error.kind} yet")
        return RowOutcome(kind=error.kind, passed=0, differences=())
    except NodeallocError as error:
        print(error, file=sys.stderr)
        return None
    print(f"{name}: {outcome.passed} passed, {len(outcome.differences)} failed")
    for difference in outcome.differences[:show]:
        print(f"  row {difference.line}")
        print(f"    input:    {json.dumps(difference.row, sort_keys=True)}")
        print(f"    expected: {json.dumps(difference.expected, sort_keys=True)}")
        print(f"    got:      {json.dumps(difference.got, sort_keys=True)}")
    return outcome


if __name__ == "__main__":
    raise SystemExit(main())
