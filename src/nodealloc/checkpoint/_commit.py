"""Values only: what a transaction does to a directory, and how that is written down before it is done."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from nodealloc import _attrs as attrs
from nodealloc.checkpoint._base_store import judge
from nodealloc.checkpoint._json import Json, Shape
from nodealloc.checkpoint._record import JsonCheckpoint
from nodealloc.errors import DecodeError

__all__ = ["Change", "LaterRecordError", "RedoRecord", "Rename", "digest"]

_VERSION: Final = 1


class LaterRecordError(Exception):
    """A later release began this commit; caught by the store.

    Attributes:
        version: Of the record.
    """

    version: int

    def __init__(self, version: int) -> None:
        self.version = version
        super().__init__(f"the record of a commit is of version {version}, and {_VERSION} is known here")


@attrs.frozen(kw_only=True)
class Change:
    """What a transaction does to the directory.

    Attributes:
        puts: Name to new content.
        removes: Names that go; absent ones are no error.
        moves: (old name, new name) pairs.
    """

    puts: Mapping[str, bytes] = attrs.field(factory=dict[str, bytes])
    removes: tuple[str, ...] = ()
    moves: tuple[tuple[str, str], ...] = ()

    def steps(self) -> int:
        """How many names change."""
        return len(self.puts) + len(self.removes) + len(self.moves)


@attrs.frozen
class Rename:
    """One file that gets another name.

    Attributes:
        source: Its name now.
        target: Its name then.
        digest: Of its content; empty for a file that is only moved aside.
    """

    source: str
    target: str
    digest: str = ""


@attrs.frozen(kw_only=True)
class RedoRecord:
    """Renames and removals that may be repeated from the start at any time."""

    renames: tuple[Rename, ...]
    removes: tuple[str, ...]

    def pack(self) -> bytes:
        """As it is written before it is carried out."""
        renames = [[step.source, step.target, step.digest] for step in self.renames]
        value: Json = {"rename": renames, "remove": list(self.removes)}
        return JsonCheckpoint(kind="commit", version=_VERSION, value=value).marshal()

    @classmethod
    def unpack(cls, data: bytes) -> RedoRecord | str:
        """As it was written, or why it cannot be believed.

        Raises:
            LaterRecordError: It is whole, and of a version that is not known here.
        """
        record = judge(JsonCheckpoint.unmarshal, data)
        if isinstance(record, str):
            return record
        if isinstance(record, JsonCheckpoint) and record.version > _VERSION:
            raise LaterRecordError(record.version)
        shape = Shape("record of a commit")
        value = record.value if isinstance(record, JsonCheckpoint) else None
        renames: list[Rename] = []
        try:
            found = shape.fields(value, "$", ("rename", "remove"))
            for step in shape.sequence(found.get("rename", ()), "$.rename"):
                words = [shape.text(word, "$.rename") for word in shape.sequence(step, "$.rename")]
                if len(words) == 3:
                    renames.append(Rename(*words))
                else:
                    shape.fault("$.rename", "three names are due")
            removes = [
                shape.text(name, "$.remove") for name in shape.sequence(found.get("remove", ()), "$.remove")
            ]
            shape.check()
        except DecodeError as error:
            return str(error)
        return cls(renames=tuple(renames), removes=tuple(removes))


def digest(data: bytes) -> str:
    """By which a content is known again."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()
