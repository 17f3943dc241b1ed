"""What one reading of a pod remembers beside its faults."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Final, cast

from nodealloc._reading import Json, Reader, as_shown, under
from nodealloc.podspec._model import Container, Volume

__all__ = ["PodReader", "some"]

_LEVELS: Final = 32
"""Depth of what a volume says about itself; the API's kinds have three."""
_VALUES: Final = 10_000
"""Values in what is taken as it comes; a pod as large as an API server takes has fewer."""
_BITS: Final = 128
"""Of a number in what is taken as it comes; Python refuses to write the longest."""
_SHOWN: Final = 80
"""Characters of a name that is listed; a right one has fewer."""
_LISTED: Final = 10
"""Names that a fault lists."""


class PodReader(Reader):
    """One pod's reading.

    Attributes:
        containers: Those that were read, with their paths.
        volumes: The same of volumes.
    """

    _room = _VALUES

    def start(self) -> PodReader:
        """With nothing read yet."""
        self.containers: list[tuple[Container, str]] = []
        self.volumes: list[tuple[Volume, str]] = []
        return self

    def copied(self, fields: Mapping[str, object], path: str, level: int = 1) -> dict[str, Json]:
        """A private copy, so that later changes to the manifest do not reach the pod."""
        return {key: self.copied_value(value, under(path, key), level) for key, value in fields.items()}

    def copied_value(self, item: object, path: str, level: int) -> Json:
        """The same of any value; bounded, since references of YAML make endless ones out of few bytes."""
        if self._room == 0:
            return None
        self._room -= 1
        if level == _LEVELS or self._room == 0:
            self._room = 0
            self.fault(path, f"nested {_LEVELS} levels deep or in itself, or more than {_VALUES} values")
            return None
        if isinstance(item, Mapping):
            fields = cast("Mapping[object, object]", item)
            named = {key if isinstance(key, str) else as_shown(key): value for key, value in fields.items()}
            return self.copied(named, path, level + 1)
        if isinstance(item, Sequence) and not isinstance(item, str | bytes):
            values = cast("Sequence[object]", item)
            return tuple(
                self.copied_value(value, f"{path}[{n}]", level + 1) for n, value in enumerate(values)
            )
        if isinstance(item, int) and item.bit_length() > _BITS:
            self.expected(f"a number of at most {_BITS} bits", item, path)
        if isinstance(item, float) and not math.isfinite(item):
            self.expected("a number that JSON can write", item, path)
            return None
        return item if item is None or isinstance(item, bool | int | float | str) else str(item)


def some(names: Collection[str], between: str) -> str:
    """The first names in their order, and how many more there are."""
    shown = [name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…" for name in sorted(names)[:_LISTED]]
    more = [f"{len(names) - _LISTED} more"] if len(names) > _LISTED else []
    return between.join([*shown, *more])
