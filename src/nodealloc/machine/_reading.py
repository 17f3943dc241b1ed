"""Values of a machine's description."""

from __future__ import annotations

from nodealloc._reading import Reader
from nodealloc.errors import DecodeError
from nodealloc.idset import MAX_ID, CPUSet, bits, parse_list

__all__ = ["MachineReader"]

_MOST = 1 << 63
"""Sizes and counts beyond this are slips: no machine has 8 EiB."""


class MachineReader(Reader):
    """Reads groups of CPUs and sizes besides."""

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
        self.fault(path, f"expected a key that is a whole number from 0 to {at_most}, found {text!r}")
        return None

    def ids(self, value: object, path: str) -> tuple[int, ...]:
        """Ids as an array, or as a string in the Linux list format; ascending."""
        if isinstance(value, str):
            try:
                return tuple(bits(parse_list(value)))
            except DecodeError as error:
                self.fault(path, str(error.faults[0]))
                return ()
        found = [
            self.number(item, f"{path}[{place}]")
            for place, item in enumerate(self.maybe_sequence(value, path))
        ]
        return tuple(sorted(set(found)))

    def cpus(self, value: object, path: str) -> CPUSet:
        """The same as a CPU set."""
        return CPUSet(self.ids(value, path))
