"""Replay of recorded decisions: does a policy or a port still decide the same?

`python -m nodealloc.testing.conformance PATH...` reads files of recorded rows
and compares each with what this library answers; of a directory it reads all files.
The kind of a file is its name up to the first dot, without a number at its end.
Where a package has rules, its `KUBELET` rules answer: recorded is what a kubelet
decided. A kind that no package answers yet is skipped by name. To check a policy
or a port of your own, hand `replay` your function in place of the library's, or name it on the
command line with `--against MODULE:FUNCTION`:

    >>> rows = [{"in": "1Ki", "error": False, "value": 1024}]
    >>> def mine(row, machines):
    ...     return {"value": row["value"]}, {"value": 1024}
    >>> replay("quantity", rows, mine).passed
    1
"""

from nodealloc.testing.conformance._against import answer_named, from_fields
from nodealloc.testing.conformance._kinds import (
    KINDS,
    NoRoomError,
    Row,
    RowAnswer,
    UnknownKindError,
    answer_for,
)
from nodealloc.testing.conformance._runner import (
    Difference,
    RowOutcome,
    files_of,
    is_machines,
    kind_of,
    read_machines,
    read_rows,
    replay,
    replay_file,
)

__all__ = [
    "KINDS",
    "Difference",
    "NoRoomError",
    "Row",
    "RowAnswer",
    "RowOutcome",
    "UnknownKindError",
    "answer_for",
    "answer_named",
    "files_of",
    "from_fields",
    "is_machines",
    "kind_of",
    "read_machines",
    "read_rows",
    "replay",
    "replay_file",
]
