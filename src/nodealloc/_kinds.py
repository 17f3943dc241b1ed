"""What fits an annotation, and how that is called in a sentence."""

from __future__ import annotations

import collections.abc
import enum
import inspect
import itertools
import math
import re
import types
import typing
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, Protocol, cast

from nodealloc import _attrs as attrs

__all__ = ["Kind", "kind_of", "kind_of_argument"]

_LOOKED_AT: Final = 16
"""Members of a collection; whoever mistakes one kind for another does so from the first."""
_MOST: Final = 1 << 1023
"""Whole numbers up to here are numbers that a `float` can hold."""
_MAKERS: Final = ("from_manifest", "parse", "of")
"""Class methods that make a value of what people have at hand."""
_CLOCK: Final = re.compile(
    "(^|_)(answered|asked|at|before|began|by|checked|created|deletion|due|ended|failed|finished|given|heard|listed|"
    "looked|moment|monotonic|noticed|now|said|seen|since|started|transition|tried|unix|until|used|when)_s$"
)
"""Ends of names that stand for readings of a clock; other names in `_s` say how long something lasts."""
_COUNTED: Final = frozenset({"attempt", "attempts", "generation", "restart_count"})
"""Names of what begins at 0 and only grows."""
_CALLABLE: Final[object] = collections.abc.Callable
_ANY_SEQUENCE: Final = {tuple, list, Sequence}
_ANY_SET: Final = {set, frozenset, AbstractSet}


class Kind(Protocol):
    """Values of one kind."""

    @property
    def words(self) -> str:
        """What is expected, as `a text`."""
        ...

    @property
    def exact(self) -> frozenset[type[object]]:
        """Classes of which every instance fits; asked first, since that costs next to nothing."""
        ...

    def fits(self, value: object, /) -> bool:
        """Whether a value is one."""
        ...


@attrs.frozen
class _Instance:
    """Of some classes, but of none of others."""

    words: str
    kinds: tuple[type[object], ...]
    exact: frozenset[type[object]]
    never: tuple[type[object], ...] = ()

    def fits(self, value: object, /) -> bool:
        return isinstance(value, self.kinds) and not isinstance(value, self.never)


@attrs.frozen
class _Number:
    """Whole or not, but one."""

    words: str = "a number"
    exact: frozenset[type[object]] = frozenset()

    def fits(self, value: object, /) -> bool:
        if isinstance(value, float):
            return not math.isnan(value)
        return isinstance(value, int) and not isinstance(value, bool) and -_MOST < value < _MOST


@attrs.frozen
class _Lasting:
    """Seconds that pass, or a count; or one of what else may be given."""

    kind: Kind
    unit: str = " of seconds"
    exact: frozenset[type[object]] = frozenset()

    @property
    def words(self) -> str:
        return re.sub(r"\b(a (whole )?number)\b", rf"\1{self.unit}, 0 or more", self.kind.words)

    def fits(self, value: object, /) -> bool:
        return self.kind.fits(value) and not (isinstance(value, (int, float)) and value < 0)


@attrs.frozen
class _PathOf:
    """A path as text or as an object; "" would be the directory in which the process happens to be."""

    words: str = "a path as text or a Path, and not an empty one"
    exact: frozenset[type[object]] = frozenset()

    def fits(self, value: object, /) -> bool:
        if isinstance(value, str):
            return value != "" and "\0" not in value
        return hasattr(value, "__fspath__")


@attrs.frozen
class _Callable:
    words: str = "something to call"
    exact: frozenset[type[object]] = frozenset({types.FunctionType, types.MethodType})

    def fits(self, value: object, /) -> bool:
        return callable(value)


@attrs.frozen
class _OneOf:
    """Of several values, or of several kinds."""

    words: str
    exact: frozenset[type[object]] = frozenset()
    values: tuple[object, ...] = ()
    kinds: tuple[Kind, ...] = ()

    def fits(self, value: object, /) -> bool:
        return value in self.values or any(kind.fits(value) for kind in self.kinds)


@attrs.frozen
class _Several:
    """A collection, as far as it can be looked at without using it up."""

    words: str
    kinds: tuple[type[object], ...]
    member: Kind | None
    exact: frozenset[type[object]] = frozenset()

    def fits(self, value: object, /) -> bool:
        if type(value) is not tuple and (
            not isinstance(value, self.kinds) or isinstance(value, (str, bytes, Mapping))
        ):
            return False
        if self.member is None or not value or not isinstance(value, Collection):
            return True
        exact = self.member.exact
        for one in itertools.islice(cast("Collection[object]", value), _LOOKED_AT):
            if type(one) not in exact and not self.member.fits(one):
                return False
        return True


@attrs.frozen
class _MappingOf:
    words: str
    key: Kind | None
    value: Kind | None
    exact: frozenset[type[object]] = frozenset()

    def fits(self, value: object, /) -> bool:
        if type(value) is not dict and not isinstance(value, Mapping):
            return False
        entries = cast("Mapping[object, object]", value)
        if not entries:
            return True
        key, value = self.key, self.value
        for one in itertools.islice(entries, _LOOKED_AT):
            if key is not None and type(one) not in key.exact and not key.fits(one):
                return False
            if value is not None:
                other = entries[one]
                if type(other) not in value.exact and not value.fits(other):
                    return False
        return True


@attrs.frozen
class _Row:
    """A tuple with a kind for each place."""

    words: str
    members: tuple[Kind | None, ...]
    exact: frozenset[type[object]] = frozenset()

    def fits(self, value: object, /) -> bool:
        if not isinstance(value, tuple):
            return False
        row = cast("tuple[object, ...]", value)
        if len(row) != len(self.members):
            return False
        for kind, one in zip(self.members, row, strict=True):
            if kind is not None and type(one) not in kind.exact and not kind.fits(one):
                return False
        return True


@attrs.frozen
class _With:
    """Whatever has the members of a protocol; found out once for each class."""

    words: str
    needed: tuple[str, ...]
    exact: frozenset[type[object]] = frozenset()
    known: dict[type[object], bool] = attrs.field(factory=dict[type[object], bool])

    def fits(self, value: object, /) -> bool:
        if type(value) in self.known:
            return True
        if isinstance(value, type) or not all(hasattr(value, name) for name in self.needed):
            return False
        self.known[type(value)] = True
        return True


def _instance(words: str, kind: type[object], *never: type[object]) -> _Instance:
    return _Instance(words, (kind,), frozenset({kind}), never)


_NOTHING: Final = _instance("None", types.NoneType)
_PLAIN: Final[Mapping[object, Kind]] = {
    None: _NOTHING,
    types.NoneType: _NOTHING,
    str: _instance("a text", str),
    bytes: _Instance("bytes", (bytes, bytearray, memoryview), frozenset({bytes})),
    bool: _instance("True or False", bool),
    int: _instance("a whole number", int, bool),
    float: _Number(),
}


def kind_of_argument(annotation: object, name: str, /) -> Kind | None:
    """The same, where the name of an argument or a field may say its unit: `timeout_s` is never negative."""
    kind = kind_of(annotation)
    lasts = name.endswith("_s") and not _CLOCK.search(name)
    is_number = any(one is float or one is int for one in (annotation, *typing.get_args(annotation)))
    if kind is None or not is_number or not (lasts or name in _COUNTED):
        return kind
    return _Lasting(kind, unit=" of seconds" if lasts else "")


def kind_of(annotation: object, /) -> Kind | None:
    """What fits an annotation; None where everything does, or a look cannot tell."""
    origin, members = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is None:
        plain = _PLAIN.get(annotation)
        return plain or (_class(annotation) if isinstance(annotation, type) else None)
    if origin is _CALLABLE:
        return _Callable()
    if origin in {typing.Union, types.UnionType}:
        if str in members and any(hasattr(typing.get_origin(one) or one, "__fspath__") for one in members):
            rest = {*members} - {str, types.NoneType}
            path = _PathOf()
            if len(rest) == 1:
                or_none = _OneOf(f"{path.words}, or None", kinds=(path, _NOTHING))
                return or_none if types.NoneType in members else path
        kinds = [kind_of(member) for member in members]
        known = tuple(kind for kind in kinds if kind is not None)
        if len(known) < len(kinds):
            return None
        exact = frozenset[type[object]]().union(*(kind.exact for kind in known))
        return _OneOf(" or ".join(kind.words for kind in known), exact, kinds=known)
    if origin is typing.Literal:
        return _OneOf(f"one of {', '.join(map(repr, members))}", values=members)
    return _generic(origin, members) if isinstance(origin, type) else None


def _generic(origin: type[object], members: tuple[object, ...]) -> Kind | None:
    if origin is tuple and members and members[-1] is not Ellipsis:
        return _Row(f"a tuple of {len(members)}", tuple(kind_of(member) for member in members))
    if origin in {dict, Mapping}:
        key, value = (*(kind_of(member) for member in members), None, None)[:2]
        of = f" of {_bare(key)} to {_bare(value)}" if key is not None and value is not None else ""
        return _MappingOf(f"a mapping{of}", key, value)
    member = kind_of(members[0]) if members else None
    of = f" of {_bare(member)}" if member is not None else ""
    if origin in _ANY_SEQUENCE:
        # Whoever only reads it is as well served by a list.
        return _Several(f"a tuple{of}" if origin is tuple else f"a list or tuple{of}", (Sequence,), member)
    if origin in _ANY_SET:
        return _Several(f"a set{of}", (AbstractSet,), member)
    if origin in {Iterable, Collection}:
        return _Several(f"several{of}", (origin,), member)
    return _class(origin)


_known: Final[dict[type[object], Kind | None]] = {}


def _class(kind: type[object]) -> Kind | None:
    """Found out once: many arguments are of one class."""
    if kind not in _known:
        _known[kind] = _of_class(kind)
    return _known[kind]


def _of_class(kind: type[object]) -> Kind | None:
    if kind in {object, type}:
        return None
    if issubclass(kind, enum.Enum):
        known = ", ".join(f"{member} ({member.value!r})" for member in kind)
        return _instance(f"one of {known}", kind)
    name = f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"
    if getattr(kind, "_is_protocol", False):
        needed = _members(kind)
        return _With(f"{name}, which has {', '.join(needed)}", needed)
    maker = next((one for one in _MAKERS if inspect.ismethod(getattr(kind, one, None))), "")
    return _instance(f"{name}; {kind.__name__}.{maker} makes one" if maker else name, kind)


def _members(protocol: type[object]) -> tuple[str, ...]:
    names = {
        name
        for base in protocol.__mro__
        if getattr(base, "_is_protocol", False)
        for name in (*vars(base), *cast("Mapping[str, object]", vars(base).get("__annotations__", {})))
        if not name.startswith("_") or name == "__call__"
    }
    return tuple(sorted(names))


def _bare(kind: Kind | None) -> str:
    """Its name without an article; `a mapping of text to whole number`."""
    words = kind.words if kind is not None else "anything"
    return words.removeprefix("a ").removeprefix("an ").partition("; ")[0]
