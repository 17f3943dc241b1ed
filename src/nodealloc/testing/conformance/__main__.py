"""`python -m nodealloc.testing.conformance PATH...`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from nodealloc.errors import NodeallocError
from nodealloc.testing.conformance import Outcome, replay_file


def main() -> int:
    """Replay the files that are named; 0 when every row passed, else 1."""
    parser = argparse.ArgumentParser(
        prog="python -m nodealloc.testing.conformance",
        description="Replay recorded decisions. The kind of a file is its name before .jsonl.",
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="KIND.jsonl or KIND.jsonl.gz")
    parser.add_argument("--machines", type=Path, help="recorded machines; default: beside each file")
    parser.add_argument(
        "--show", type=int, default=0, metavar="K", help="show the first K differences of a file"
    )
    arguments = parser.parse_args()
    passed = failed = unread = 0
    for path in arguments.paths:
        if path.name.startswith("machines."):
            print(f"{path}: machines, looked up by the other kinds; nothing to replay", file=sys.stderr)
            continue
        try:
            outcome = replay_file(path, arguments.machines)
        except NodeallocError as error:
            print(error, file=sys.stderr)
            unread += 1
            continue
        passed += outcome.passed
        failed += len(outcome.differences)
        _print(outcome, arguments.show)
    if unread:
        print(f"{unread} of {len(arguments.paths)} files were not replayed", file=sys.stderr)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or unread else 0


def _print(outcome: Outcome, show: int) -> None:
    print(f"{outcome.kind}: {outcome.passed} passed, {len(outcome.differences)} failed")
    for difference in outcome.differences[:show]:
        print(f"  row {difference.line}")
        print(f"    input:    {json.dumps(difference.row, sort_keys=True)}")
        print(f"    expected: {json.dumps(difference.expected, sort_keys=True)}")
        print(f"    got:      {json.dumps(difference.got, sort_keys=True)}")


if __name__ == "__main__":
    raise SystemExit(main())
