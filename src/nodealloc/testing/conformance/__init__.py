"""Replay of recorded decisions: does a policy or a port still decide the same?

`python -m nodealloc.testing.conformance PATH...` reads files of recorded rows
and compares each with what this library answers. The kind of a file is its
name before `.jsonl`. To check a policy or a port of your own, hand `replay`
your function in place of the library's:

    >>> rows = [{"in": "1Ki", "error": False, "value": 1024}]
    >>> def mine(row, machines):
    ...     return {"value": row["value"]}, {"value": 1024}
    >>> replay("quantity", rows, mine).passed
    1
"""

from nodealloc.testing.conformance._kinds import KINDS, Answer, Row, answer_for
from nodealloc.testing.conformance._runner import (
    Difference,
    Outcome,
    kind_of,
    read_machines,
    read_rows,
    replay,
    replay_file,
)

__all__ = [
    "KINDS",
    "Answer",
    "Difference",
    "Outcome",
    "Row",
    "answer_for",
    "kind_of",
    "read_machines",
    "read_rows",
    "replay",
    "replay_file",
]
