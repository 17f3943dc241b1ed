"""Constructors of attrs classes that look at what they are given: code that is written once for a class."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Collection, Mapping
from typing import Final, Generic, NamedTuple, ParamSpec, Self, TypeVar, cast, get_origin

import attrs

from nodealloc._annotations import BROKEN, kinds_of, look
from nodealloc._arguments import wrong
from nodealloc._frozen import Frozen, FrozenList
from nodealloc._kinds import Kind

__all__ = ["filling", "init_of", "looking_init"]

P = ParamSpec("P")
T = TypeVar("T")

_OFTEN: Final = 4
"""At this call for a class its look is written: what is made once or twice costs less without."""
_NAMED: Final = 8
"""Fields up to which handing on all of them is quicker than packing those that are given."""


_OPEN: Final[dict[str, object]] = {
    "__init__": object.__init__,
    "__setattr__": object.__setattr__,
    "__delattr__": object.__delattr__,
}
"""What a class needs beside its own for fields to be set; a value of it can become one of its own."""


def looking_init(made: type[object], init: Callable[P, None]) -> Callable[P, None]:
    """In the place of the `__init__` that attrs made: one that looks, written once it is called often."""
    kept: list[_Looks[P]] = []
    calls = itertools.count(1)

    @functools.wraps(init)
    def called(*args: P.args, **kwargs: P.kwargs) -> None:
        if len(args) + len(kwargs) == 1:
            return init(*args, **kwargs)  # nothing is given that could be looked at, as in most defaults
        if not kept:
            kept.append(_Looks(made, init))
        if next(calls) < _OFTEN:
            return kept[0].unwritten(*args, **kwargs)
        written = functools.wraps(init)(kept[0].written())
        if made.__init__ is called:
            made.__init__ = written  # type: ignore[method-assign, assignment]
        return written(*args, **kwargs)

    return called


def init_of(made: type[T]) -> Callable[P, None]:
    """The `__init__` that attrs made; what is made a tuple or a path may be whatever one is made of."""
    annotations = cast("dict[str, object]", made.__init__.__annotations__)
    for field in _fields(made):
        if takes := _is_made_of(field):
            annotations[field.alias or field.name] = takes
    return cast("Callable[P, None]", made.__init__)


def filling(made: type[object], without: Collection[str] = ()) -> object:
    """Makes values of a class by setting its fields, but for some: one line a field."""
    fields = {field.alias or field.name: field for field in _fields(made) if field.name not in without}
    scope: dict[str, object] = {"_made": made}
    scope |= {f"_d{number}": _default(field) for number, field in enumerate(fields.values())}
    lines = [f"def make({_parameters(fields, made_anew=False)}):"]
    # Filled while it is of a class that lets fields be set: half of the time of attrs' own setters.
    own = {} if made.__dictoffset__ else {"__slots__": ()}
    scope["_open"] = type(f"_Open{made.__name__}", (made,), _OPEN | own)
    lines += ["  one = _open()"]
    lines += [f"  one.{field.name} = {name}" for name, field in fields.items()]
    lines += ["  one.__class__ = _made"]
    exec("\n".join([*lines, "  return one"]), scope)  # noqa: S102 - of names of fields alone
    return scope["make"]


class _Looks(Generic[P]):
    """Looks at each field of what was made, but at none that it has by itself."""

    def __init__(self, made: type[object], init: Callable[P, None], /) -> None:
        self._init = init
        self._fields = {field.alias or field.name: field for field in _fields(made) if field.init}
        self._defaults = {name: _default(field) for name, field in self._fields.items()}
        self._kinds = kinds_of(init)
        self._looks = [
            _Look.of(f"{made.__qualname__}: {name}", field, kind)
            for name, field in self._fields.items()
            if (kind := self._kinds.names.get(name)) is not None
            and (_converter(field) is None or _is_made_of(field))
        ]
        self._made_of = [name for name, field in self._fields.items() if _is_made_of(field)]
        self._is_named = len(self._fields) <= _NAMED or not all(one.kw_only for one in self._fields.values())

    def unwritten(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Make a value and look at it."""
        made, *places = cast("tuple[object, ...]", args)
        given = dict(zip(self._fields, places, strict=False)) | kwargs
        for name in self._made_of:
            if type(given.get(name, ())) is not tuple:
                self._look_at(**{name: given[name]})
        try:
            self._init(*args, **kwargs)
        except BROKEN as error:
            at = error.__traceback__
            if not self._is_named or (at is not None and at.tb_next is not None):
                self._look_at(**given)
            raise
        for one in self._looks:
            one.at(made)

    def written(self) -> Callable[P, None]:
        """The same as code, several times as fast."""
        fields, defaults = self._fields, self._defaults
        scope: dict[str, object] = {
            "_init": self._init,
            "_look": self._look_at,
            "_wrong": wrong,
            "_broken": BROKEN,
            "_type": type,
        }
        scope |= {f"_d{number}": one for number, one in enumerate(defaults.values())}
        before, after = list[str](), list[str]()
        takes, hands_on = "*args, **given", "*args, **given"
        if self._is_named:
            takes = _parameters(fields)
            hands_on = ", ".join([f"{name}={name}" for name in fields])
        for name in self._made_of:
            value = name if self._is_named else f"given.get({name!r}, ())"
            before.append(f"  if _type({value}) is not tuple: _look({name}={value})")
        for number, one in enumerate(self._looks):
            after += one.written(number, scope, is_given=self._is_named)
        lines = [f"def __init__(_made, {takes}):", *before, f"  try: _init(_made, {hands_on})"]
        lines += ["  except _broken:", f"    _look({hands_on})", "    raise", *after]
        exec("\n".join(lines), scope)  # noqa: S102 - of names of fields alone
        return cast("Callable[P, None]", scope["__init__"])

    def _look_at(self, *args: object, **given: object) -> None:
        own = {name: one for name, one in given.items() if one is not self._defaults.get(name, attrs.NOTHING)}
        look(self._init, self._kinds, args, own)


class _Look(NamedTuple):
    """How one field is looked at.

    Attributes:
        name: Of the attribute.
        place: What it is called in a sentence.
        kind: What fits.
        default: What it has by itself.
        empty: Classes of what it has by itself where that is made anew each time: known by being empty.
    """

    name: str
    place: str
    kind: Kind
    default: object
    empty: frozenset[type[object]]

    @classmethod
    def of(cls, place: str, field: attrs.Attribute[object], kind: Kind, /) -> Self:
        """Of a field."""
        factory = cast("Callable[[], object] | None", getattr(field.default, "factory", None))
        empty = frozenset[type[object]]()
        if factory is not None and not getattr(field.default, "takes_self", False):
            empty = frozenset({type(factory()), Frozen, FrozenList})
        return cls(field.name, place, kind, field.default, empty)

    def at(self, made: object, /) -> None:
        """Raise for a field that does not fit."""
        value: object = getattr(made, self.name)
        is_own = not value and type(value) in self.empty if self.empty else value is self.default
        if not is_own and type(value) not in self.kind.exact and not self.kind.fits(value):
            raise wrong(self.place, value, self.kind.words)

    def written(self, number: int, scope: dict[str, object], *, is_given: bool) -> list[str]:
        """The same as lines, which look first for what is likely: the right class, or the default."""
        scope |= {f"_o{number}": self.empty or self.default, f"_e{number}": self.kind.exact}
        scope |= {f"_k{number}": self.kind}
        of_itself = f"not value and _type(value) in _o{number}" if self.empty else f"value is _o{number}"
        looks = [f"not ({of_itself})", f"_type(value) not in _e{number}"][:: -1 if is_given else 1]
        return [
            f"  value = _made.{self.name}",
            f"  if {looks[0]} and {looks[1]} and not _k{number}.fits(value):",
            f"    raise _wrong({self.place!r}, value, _k{number}.words)",
        ]


def _default(field: attrs.Attribute[object]) -> object:
    """What attrs' own `__init__` has for a field that is not given."""
    return attrs.NOTHING if hasattr(field.default, "factory") else field.default


def _parameters(fields: Mapping[str, attrs.Attribute[object]], *, made_anew: bool = True) -> str:
    """The parameters that attrs' own `__init__` has; or with what is made anew each time to be given."""
    places, names = list[str](), list[str]()
    for number, (name, field) in enumerate(fields.items()):
        needed = (field.default if made_anew else _default(field)) is attrs.NOTHING
        (names if field.kw_only else places).append(name if needed else f"{name}=_d{number}")
    return ", ".join([*places, *(["*", *names] if names else [])])


def _fields(made: type[object]) -> tuple[attrs.Attribute[object], ...]:
    return cast("tuple[attrs.Attribute[object], ...]", attrs.fields(cast("type[attrs.AttrsInstance]", made)))


def _is_made_of(field: attrs.Attribute[object]) -> str:
    """What a field takes that is made a tuple or a path; "" for any other."""
    made_by = _converter(field)
    converter = get_origin(made_by) or made_by
    if converter is tuple:
        return f"Iterable[{_member(field.type)}]"
    # Pure packages load no pathlib.
    return "str | Path" if getattr(converter, "__name__", "") == "Path" else ""


def _converter(field: attrs.Attribute[object]) -> object:
    return cast("object", getattr(field, "converter", None))


def _member(annotation: object) -> str:
    """Of `tuple[Pod, ...]` the `Pod`."""
    return str(annotation).removeprefix("tuple[").removesuffix(", ...]")
