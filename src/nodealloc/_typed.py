"""Arguments held against their annotations: what cannot be meant is refused before anything is done.

Only what a look can tell in constant time: of a collection the first few
members are looked at, of an object that only has to have some methods whether
it has them. Ranges are the validators' own business.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, ParamSpec, TypeVar, cast, get_origin

import attrs

from nodealloc._arguments import wrong
from nodealloc._frozen import Frozen, FrozenList
from nodealloc._kinds import Kind, kind_of_argument

__all__ = [
    "trusting",
    "typed",
    "typed_but",
    "typed_fields",
    "typed_fields_on_error",
    "typed_methods",
    "typed_on_error",
]

P = ParamSpec("P")
T = TypeVar("T")

_GENERIC: Final[Mapping[str, object]] = {
    "Callable": Callable,
    "Collection": Collection,
    "Iterable": Iterable,
    "Iterator": Iterator,
    "Mapping": Mapping,
    "Sequence": Sequence,
}
"""What modules import for type checkers alone; no name of these means anything else here."""


class _Kinds(NamedTuple):
    """Of the parameters of a function: those given by place, in order, and all by name."""

    places: tuple[tuple[str, Kind | None], ...]
    names: Mapping[str, Kind | None]


def typed(function: Callable[P, T], /) -> Callable[P, T]:
    """Have a function, or an `__init__`, refuse arguments that its annotations do not allow.

    Raises:
        ConfigurationError: From the function that this makes: which argument,
            what came, and what would be right.
    """
    return typed_but()(function)


def typed_but(*own: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """The same, but for arguments that the function refuses itself, in words that say more."""

    def decorate(function: Callable[P, T], /) -> Callable[P, T]:
        kinds: list[_Kinds] = []
        on_error = typed_on_error(function)

        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> T:
            if not kinds:
                kinds.append(_kinds_of(function, own))
            _look(function, kinds[0], args, kwargs)
            return function(*args, **kwargs) if not own else on_error(*args, **kwargs)

        return called

    return decorate


def typed_on_error(function: Callable[P, T], /) -> Callable[P, T]:
    """The same for what is called by the million: it looks once something broke; what does no harm passes."""
    by_place = {1: _of_one, 2: _of_two, 3: _of_three}.get(_places(function))
    if by_place is not None:
        return by_place(function)

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except _BROKEN:
            _look(function, _kinds_of(function), args, kwargs)
            raise

    return called


_BROKEN: Final = (TypeError, AttributeError, LookupError, ArithmeticError)
_PACKS: Final = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


# What takes a few arguments by place, and nothing else, need not have them packed and unpacked.


def _places(function: Callable[P, object]) -> int:
    """How many arguments a function takes, where all are needed and given by place; else 0."""
    if not isinstance(function, types.FunctionType) or hasattr(function, "__wrapped__"):
        return 0
    code = function.__code__
    others = code.co_kwonlyargcount or code.co_flags & _PACKS or function.__defaults__
    return 0 if others or code.co_posonlyargcount != code.co_argcount else code.co_argcount


def _of_one(function: Callable[P, T], /) -> Callable[P, T]:
    bare = cast("Callable[[object], T]", function)

    def called(first: object, /) -> T:
        try:
            return bare(first)
        except _BROKEN:
            _look(function, _kinds_of(function), (first,), {})
            raise

    return cast("Callable[P, T]", functools.wraps(function)(called))


def _of_two(function: Callable[P, T], /) -> Callable[P, T]:
    bare = cast("Callable[[object, object], T]", function)

    def called(first: object, second: object, /) -> T:
        try:
            return bare(first, second)
        except _BROKEN:
            _look(function, _kinds_of(function), (first, second), {})
            raise

    return cast("Callable[P, T]", functools.wraps(function)(called))


def _of_three(function: Callable[P, T], /) -> Callable[P, T]:
    bare = cast("Callable[[object, object, object], T]", function)

    def called(first: object, second: object, third: object, /) -> T:
        try:
            return bare(first, second, third)
        except _BROKEN:
            _look(function, _kinds_of(function), (first, second, third), {})
            raise

    return cast("Callable[P, T]", functools.wraps(function)(called))


def typed_methods(made: type[T], /) -> type[T]:
    """The same for every public method of a class that takes an argument; stands above attrs' own."""
    for name, method in list(vars(made).items()):
        if isinstance(method, types.FunctionType) and not name.startswith("_") and _takes_some(method):
            setattr(made, name, typed_on_error(method))
    return made


def _takes_some(method: types.FunctionType) -> bool:
    """Whether it takes more than its instance, and does its work while it is called."""
    code = method.__code__
    later = inspect.isgeneratorfunction(method) or inspect.iscoroutinefunction(method)
    is_bare = not later and not hasattr(method, "__wrapped__")
    return is_bare and code.co_argcount + code.co_kwonlyargcount > 1


def typed_fields(made: type[T], /) -> type[T]:
    """Have a class of attrs refuse fields that their annotations do not allow; stands above attrs' own.

    A field that is made a tuple or a path takes whatever one can be made of. Values are
    made by the thousand, so what a field has by itself is not looked at, and the look is
    code that is written once for the class.
    """
    made.__init__ = _looked_at(made, _init_of(made))  # type: ignore[method-assign]
    return made


def _looked_at(made: type[object], init: Callable[P, None]) -> Callable[P, None]:
    written: list[Callable[P, None]] = []

    @functools.wraps(init)
    def called(*args: P.args, **kwargs: P.kwargs) -> None:
        if not written:
            # Not before the first value: most classes are imported and never made.
            written.append(functools.wraps(init)(_written(made, init)))
            if made.__init__ is called:
                made.__init__ = written[0]  # type: ignore[method-assign, assignment]
        written[0](*args, **kwargs)

    return called


def trusting(made: Callable[P, T], /) -> Callable[P, T]:
    """Makes values of a class without the look at their fields: for what is worked out from such values."""
    kind = cast("type[T]", made)
    init = inspect.unwrap(kind.__init__)

    def make(*args: P.args, **kwargs: P.kwargs) -> T:
        one = kind.__new__(kind)
        init(one, *args, **kwargs)
        return one

    return make


def typed_fields_on_error(made: type[T], /) -> type[T]:
    """The same as `typed_on_error` does it."""
    made.__init__ = typed_on_error(_init_of(made))  # type: ignore[method-assign]
    return made


def _init_of(made: type[T]) -> Callable[P, None]:
    annotations = cast("dict[str, object]", made.__init__.__annotations__)
    for field in _fields(made):
        if takes := _is_made_of(field):
            annotations[field.alias or field.name] = takes
    return cast("Callable[P, None]", made.__init__)


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


_NAMED: Final = 8
"""Fields up to which handing on all of them is quicker than packing those that are given."""


def _written(made: type[object], init: Callable[P, None]) -> Callable[P, None]:
    """An `__init__` that looks at each field of what was made, but at none that it has by itself."""
    fields = {field.alias or field.name: field for field in _fields(made) if field.init}
    defaults = {name: _default(field) for name, field in fields.items()}

    def look(*args: object, **given: object) -> None:
        own = {name: one for name, one in given.items() if one is not defaults.get(name, attrs.NOTHING)}
        _look(init, _kinds_of(init), args, own)

    scope: dict[str, object] = {
        "_init": init,
        "_look": look,
        "_wrong": wrong,
        "_broken": _BROKEN,
        "_type": type,
    }
    scope |= {f"_d{number}": one for number, one in enumerate(defaults.values())}
    kinds = _kinds_of(init).names
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


def _parameters(fields: Mapping[str, attrs.Attribute[object]]) -> str:
    """The parameters that attrs' own `__init__` has."""
    places, names = list[str](), list[str]()
    for number, (name, field) in enumerate(fields.items()):
        needed = field.default is attrs.NOTHING
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


def _member(annotation: object) -> str:
    """Of `tuple[Pod, ...]` the `Pod`."""
    return str(annotation).removeprefix("tuple[").removesuffix(", ...]")


def _look(
    function: Callable[P, object], kinds: _Kinds, args: tuple[object, ...], kwargs: Mapping[str, object]
) -> None:
    for (name, kind), value in zip(kinds.places, args, strict=False):
        if kind is not None and type(value) not in kind.exact and not kind.fits(value):
            raise wrong(_place(function, name), value, kind.words)
    for name, value in kwargs.items():
        kind = kinds.names.get(name)
        if kind is not None and type(value) not in kind.exact and not kind.fits(value):
            raise wrong(_place(function, name), value, kind.words)


def _place(function: Callable[P, object], name: str) -> str:
    return f"{function.__qualname__.removesuffix('.__init__')}: {name}"


def _kinds_of(function: Callable[P, object], own: Collection[str] = ()) -> _Kinds:
    scope: dict[str, object] = {**_GENERIC, **vars(sys.modules[function.__module__])}
    places: list[tuple[str, Kind | None]] = []
    names: dict[str, Kind | None] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
            continue
        annotation = object if name in own else _evaluated(parameter.annotation, scope)
        names[name] = kind = kind_of_argument(annotation, name)
        if parameter.kind is not parameter.KEYWORD_ONLY:
            places.append((name, kind))
    return _Kinds(tuple(places), names)


def _evaluated(annotation: object, scope: dict[str, object]) -> object:
    """What an annotation says; anything where it names what is only there for type checkers."""
    if not isinstance(annotation, str):
        return object if annotation is inspect.Parameter.empty else annotation
    while True:
        try:
            return cast("object", eval(annotation, scope))  # noqa: S307 - the source's own text
        except NameError as error:
            # Modules of one package name each other's classes for type checkers only, and a field may come
            # from a class of another one; the package has them, or one of its modules.
            homes = _homes(str(scope["__package__"]), len(sys.modules))
            home = next((one for one in homes if error.name and hasattr(sys.modules[one], error.name)), None)
            if home is None or error.name is None:
                return object
            scope[error.name] = getattr(sys.modules[home], error.name)


@functools.lru_cache(maxsize=128)
def _homes(package: str, _loaded: int) -> tuple[str, ...]:
    """A package and its own modules, as long as no more modules are loaded."""
    loaded = tuple(sys.modules)  # taken in one step: another thread may import meanwhile
    return package, *sorted(name for name in loaded if name.startswith(f"{package}._"))
