"""Mappings that nobody can change, at the cost of a dict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn, TypeVar, cast

if TYPE_CHECKING:
    import attrs

__all__ = ["Frozen", "extended", "freeze", "frozen", "reduced"]

K = TypeVar("K")
V = TypeVar("V")
M = TypeVar("M")


class Frozen(dict[K, V]):
    """A dict that says no to whoever would change it.

    A dict and no other mapping, since values are read far more often than
    built, are equal to the dicts that they came from, and travel in pickles.
    """

    __slots__ = ()

    def _refuse(self, *_: object, **_named: object) -> NoReturn:
        raise TypeError("this mapping is part of an immutable value and does not change; build a dict of it")

    if not TYPE_CHECKING:  # for type checkers these are a dict's own; what they see is a Mapping anyway
        __setitem__ = __delitem__ = __ior__ = _refuse
        clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[Frozen[K, V]], tuple[dict[K, V]]]:
        return Frozen, (dict(self),)

    def __copy__(self) -> Frozen[K, V]:
        return self


def frozen(entries: Mapping[K, V], /) -> Mapping[K, V]:
    """The entries, such that nobody can change them; themselves where that is so already."""
    if entries.__class__ is Frozen or not isinstance(entries, dict):
        return entries  # what is no dict is either one of ours, or its owner's to answer for
    return Frozen(entries)


def freeze(instance: object, attribute: attrs.Attribute[M], value: M) -> None:
    """A validator of attrs: the field holds a frozen copy of what came."""
    if value.__class__ is not Frozen and isinstance(value, dict):
        object.__setattr__(instance, attribute.name, Frozen(cast("dict[object, object]", value)))


def extended(entries: Mapping[K, V], key: K, value: V, /) -> Mapping[K, V]:
    """The entries with one more, or with another value in its place."""
    made = Frozen(entries)
    dict[K, V].__setitem__(made, key, value)
    return made


def reduced(entries: Mapping[K, V], key: K, /) -> Mapping[K, V]:
    """The entries without that of a key, which has to be there."""
    made = Frozen(entries)
    dict[K, V].__delitem__(made, key)
    return made
