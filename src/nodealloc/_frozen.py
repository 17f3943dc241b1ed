"""Mappings that nobody can change, at the cost of a dict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn, TypeVar, cast

if TYPE_CHECKING:
    import attrs

__all__ = [
    "Frozen",
    "FrozenList",
    "PlainJson",
    "extended",
    "freeze",
    "freeze_deeply",
    "frozen",
    "reduced",
    "thawed",
]

K = TypeVar("K")
V = TypeVar("V")
M = TypeVar("M")
T = TypeVar("T")


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


class PlainJson(Frozen[str, object]):
    """A mapping that is JSON all the way down, and that nobody changes: rows share it without a copy."""

    __slots__ = ()


class FrozenList(list[V]):
    """A list that says no to whoever would change it, for the lists inside a JSON value."""

    __slots__ = ()

    def _refuse(self, *_: object, **_named: object) -> NoReturn:
        raise TypeError("this list is part of an immutable value and does not change; build a list of it")

    if not TYPE_CHECKING:  # as with `Frozen`
        __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
        append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __reduce__(self) -> tuple[type[FrozenList[V]], tuple[list[V]]]:
        return FrozenList, (list(self),)

    def __copy__(self) -> FrozenList[V]:
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


def freeze_deeply(instance: object, attribute: attrs.Attribute[M], value: M) -> None:
    """A validator of attrs: the field holds a copy of a JSON mapping that is frozen all the way down."""
    if value.__class__ is not Frozen and isinstance(value, dict):
        object.__setattr__(instance, attribute.name, _deeply(cast("dict[str, object]", value)))


def _deeply(value: object) -> object:
    if isinstance(value, dict):
        entries = cast("dict[str, object]", value)
        return Frozen({key: _deeply(item) for key, item in entries.items()})
    if isinstance(value, list):
        return FrozenList([_deeply(item) for item in cast("list[object]", value)])
    return value


def thawed(value: T) -> T:
    """A JSON value in plain dicts and lists, which are the caller's own."""
    if isinstance(value, dict):
        entries = cast("dict[str, object]", value)
        return cast("T", {key: thawed(item) for key, item in entries.items()})
    if isinstance(value, list | tuple):  # readers keep lists as tuples
        return cast("T", [thawed(item) for item in cast("Sequence[object]", value)])
    return value


def extended(entries: Mapping[K, V], key: K, value: V, /) -> Mapping[K, V]:
    """The entries with one more, or with another value in its place."""
    made = Frozen(entries)
    # A key is nearly always a new one, and this is the quicker of the two.
    if _put_new(made, key, value) is not value:
        _put(made, key, value)
    return made


def reduced(entries: Mapping[K, V], key: K, /) -> Mapping[K, V]:
    """The entries without that of a key, which has to be there."""
    made = Frozen(entries)
    _take(made, key)
    return made


# Looked up once: by `dict[K, V]` each call would make an alias first.
_put_new = cast("Callable[[object, object, object], object]", dict[object, object].setdefault)
_put = cast("Callable[[object, object, object], None]", dict[object, object].__setitem__)
_take = cast("Callable[[object, object], object]", dict[object, object].pop)
