"""Changed copies of read-only mappings, cheap however many entries there are.

A value of which every change is another value would copy all its entries at
each change. Small mappings are copied whole, which costs next to nothing;
large ones share their entries and keep the latest changes beside them, until
these are as many as is worth copying all.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isqrt
from typing import TYPE_CHECKING, TypeVar

from nodealloc._frozen import Frozen, extended, reduced

if TYPE_CHECKING:
    from collections.abc import ItemsView, Iterator, ValuesView

__all__ = ["with_entry", "without_entry"]

K = TypeVar("K")
V = TypeVar("V")

_SMALL = 256
"""Entries up to which a plain dict is copied; it is faster to read."""


def with_entry(entries: Mapping[K, V], key: K, value: V, /) -> Mapping[K, V]:
    """The entries with one more, at the end, or with another value in its old place.

    Nobody may change `entries` afterwards: the answer may share them.
    """
    if len(entries) < _SMALL:
        return extended(entries, key, value)
    base, changed, gone = _parts(entries)
    length = len(entries) + (key not in entries)
    return _settled(_Layered(base, {**changed, key: value}, gone, length))


def without_entry(entries: Mapping[K, V], key: K, /) -> Mapping[K, V]:
    """The entries without that of a key, which has to be there; sharing as in `with_entry`."""
    if len(entries) <= _SMALL:
        return reduced(entries, key)
    base, changed, gone = _parts(entries)
    changed = dict(changed)
    changed.pop(key, None)
    return _settled(_Layered(base, changed, gone | {key} if key in base else gone, len(entries) - 1))


class _Layered(Mapping[K, V]):
    """Shared entries, and what has been changed since; pickled as one mapping.

    `changed` holds other values of keys of `base`, and new keys; a key that is
    in `gone` as well was taken out and came again, so that it stands at the end.
    """

    __slots__ = ("_length", "base", "changed", "gone")

    def __init__(
        self, base: Mapping[K, V], changed: Mapping[K, V], gone: frozenset[K], length: int, /
    ) -> None:
        self.base = base
        self.changed = changed
        self.gone = gone
        self._length = length

    def together(self) -> dict[K, V]:
        """All entries in their order."""
        entries = dict(self.base)
        for key in self.gone:
            del entries[key]
        entries.update(self.changed)
        return entries

    def __getitem__(self, key: K, /) -> V:
        if key in self.changed:
            return self.changed[key]
        if key in self.gone:
            raise KeyError(key)
        return self.base[key]

    def __len__(self) -> int:
        return self._length

    # Whoever wants every entry has them faster from a dict than one by one.

    def __iter__(self) -> Iterator[K]:
        return iter(self.together())

    def items(self) -> ItemsView[K, V]:
        """As a dict has them."""
        return self.together().items()

    def values(self) -> ValuesView[V]:
        """As a dict has them."""
        return self.together().values()

    def __repr__(self) -> str:
        return repr(self.together())

    def __reduce__(self) -> tuple[type[Frozen[K, V]], tuple[dict[K, V]]]:
        return Frozen, (self.together(),)


def _parts(entries: Mapping[K, V]) -> tuple[Mapping[K, V], Mapping[K, V], frozenset[K]]:
    if isinstance(entries, _Layered):
        return entries.base, entries.changed, entries.gone
    return entries, {}, frozenset()


def _settled(layered: _Layered[K, V]) -> Mapping[K, V]:
    """All entries in one dict where the changes are many; between the two the cost is that of a root."""
    changes = len(layered.changed) + len(layered.gone)
    return Frozen(layered.together()) if changes > 2 * isqrt(len(layered.base)) else layered
