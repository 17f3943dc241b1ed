"""Constructors of attrs classes that look at what they are given: code that is written once for a class."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from typing import Final, ParamSpec, TypeVar, cast, get_origin

import attrs

from nodealloc._annotations import BROKEN, kinds_of, look
from nodealloc._arguments import wrong
from nodealloc._frozen import Frozen, FrozenList
from nodealloc._kinds import Kind

__all__ = ["filling", "init_of", "looking_init"]

P = ParamSpec("P")
T = TypeVar("T")

_NAMED: Final = 8
"""Fields up to which handing on all of them is quicker than packing those that are given."""


_OPEN: Final[dict[str, object]] = {
    "__init__": object.__init__,
    "__setattr__": object.__setattr__,
    "__delattr__": object.__delattr__,
}
"""What a class needs beside its own for fields to be set; a value of it can become one of its own."""


def looking_init(made: type[object], init: Callable[P, None]) -> Callable[P, None]:
    """In the place of the `__init__` that attrs made: one that looks, written when it is first called."""
    written: list[Callable[P, None]] = []

    @functools.wraps(init)
    def called(*args: P.args, **kwargs: P.kwargs) -> None:
        if not written:
            if len(args) == 1 and not kwargs:
                return init(*args, **kwargs)  # nothing is given that could be looked at, as in most defaults
            # Not before the first value: most classes are imported and never made.
            written.append(functools.wraps(init)(_written(made, init)))
            if made.__init__ is called:
                made.__init__ = written[0]  # type: ignore[method-assign, assignment]
        return written[0](*args, **kwargs)

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


def _written(made: type[object], init: Callable[P, None]) -> Callable[P, None]:
    """An `__init__` that looks at each field of what was made, but at none that it has by itself."""
    fields = {field.alias or field.name: field for field in _fields(made) if field.init}
    defaults = {name: _default(field) for name, field in fields.items()}

    def looked(*args: object, **given: object) -> None:
        own = {name: one for name, one in given.items() if one is not defaults.get(name, attrs.NOTHING)}
        look(init, kinds_of(init), args, own)

    scope: dict[str, object] = {
        "_init": init,
        "_look": looked,
        "_wrong": wrong,
        "_broken": BROKEN,
        "_type": type,
    }
    scope |= {f"_d{number}": one for number, one in enumerate(defaults.values())}
    kinds = kinds_of(init).names
    before, after = list[str](), list[str]()
    takes, hands_on = "*args, **given", "*args, **given"
    is_named = len(fields) <= _NAMED or not all(field.kw_only for field in fields.values())
    if is_named:
        takes = _parameters(fields)
        hands_on = ", ".join([f"{name}={name}" for name in fields])
    for number, (name, field) in enumerate(fields.items()):
        after += _looking(made, field, kinds.get(name), number, scope, is_given=is_named)
        if _is_made_of(field):
            value = name if is_named else f"given.get({name!r}, ())"
            before.append(f"  if _type({value}) is not tuple: _look({name}={value})")
    lines = [f"def __init__(_made, {takes}):", *before, f"  try: _init(_made, {hands_on})"]
    lines += ["  except _broken:", f"    _look({hands_on})", "    raise", *after]
    exec("\n".join(lines), scope)  # noqa: S102 - of names of fields alone
    return cast("Callable[P, None]", scope["__init__"])


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


def _looking(
    made: type[object],
    field: attrs.Attribute[object],
    kind: Kind | None,
    number: int,
    scope: dict[str, object],
    *,
    is_given: bool,
) -> list[str]:
    """Lines that look at one field, first for what is likely: the right class, or the default."""
    if kind is None or (_converter(field) is not None and not _is_made_of(field)):
        return []
    scope |= {f"_o{number}": field.default, f"_e{number}": kind.exact, f"_k{number}": kind}
    scope[f"_p{number}"] = f"{made.__qualname__}: {field.alias or field.name}"
    of_itself = f"value is _o{number}"
    factory = cast("Callable[[], object] | None", getattr(field.default, "factory", None))
    if factory is not None and not getattr(field.default, "takes_self", False):
        # Made anew each time: known by being empty, and of such a class.
        scope[f"_o{number}"] = frozenset({type(factory()), Frozen, FrozenList})
        of_itself = f"not value and _type(value) in _o{number}"
    looks = [f"not ({of_itself})", f"_type(value) not in _e{number}"][:: -1 if is_given else 1]
    return [
        f"  value = _made.{field.name}",
        f"  if {looks[0]} and {looks[1]} and not _k{number}.fits(value):",
        f"    raise _wrong(_p{number}, value, _k{number}.words)",
    ]


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
