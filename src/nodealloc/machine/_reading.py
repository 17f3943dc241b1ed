"""Values of a machine's description."""

from __future__ import annotations

from nodealloc._reading import Reader, short
from nodealloc.errors import DecodeError
from nodealloc.idset import MAX_ID, CPUSet, bits, parse_list

__all__ = ["MachineReader"]

_MOST = 1 << 63
"""Sizes and counts beyond this are slips: no machine has 8 EiB."""
_ROOM = 1 << 18
"""Ids that all lists of a description name together: a few for each CPU that there can be."""


class MachineReader(Reader):
    """Reads groups of CPUs and sizes besides."""

    _room = _ROOM

    def size(self, value: object, path: str) -> int:
        """A count or a number of bytes."""
        return self.whole(value, path, most=_MOST)

    def number(self, value: object, path: str) -> int:
        """An id of a CPU or node."""
        return self.whole(value, path, most=MAX_ID)

    def optional(self, value: object, path: str) -> int | None:
        """A group id or null."""
        return None if value is None else self.size(value, path)

    def key(self, text: str, path: str, *, at_most: int = MAX_ID) -> int | None:
        """A number that stands as an object's key; None after a fault."""
        if text.isascii() and text.isdecimal() and len(text) <= len(str(at_most)) and int(text) <= at_most:
            return int(text)
        self.fault(path, f"expected a key that is a whole number from 0 to {at_most}, found {short(text)}")
        return None

    def ids(self, value: object, path: str) -> tuple[int, ...]:
        """Ids as an array, or as a string in the Linux list format; ascending."""
        if isinstance(value, str):
            return tuple(bits(self._mask(value, path)))
        found = [
            self.number(item, f"{path}[{place}]")
            for place, item in enumerate(self.maybe_sequence(value, path))
        ]
        return tuple(sorted(set(found)))

    def cpus(self, value: object, path: str) -> CPUSet:
        """The same as a CPU set."""
        if isinstance(value, str):
            return CPUSet.from_mask(self._mask(value, path))
        return CPUSet(self.ids(value, path))

    def _mask(self, text: str, path: str) -> int:
        """The ids of a list; nothing after a fault, which it is to name more than a machine can use."""
        try:
            mask = parse_list(text)
        except DecodeError as error:
            self.fault(path, str(error.faults[0]))
            return 0
        count = mask.bit_count()
        if count > self._room:
            self.fault(path, f"with these {count} ids all lists together name more than {_ROOM}")
            return 0
        self._room -= count
        return mask
