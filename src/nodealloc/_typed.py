"""Arguments held against their annotations: what cannot be meant is refused before anything is done.

Only what a look can tell in constant time: of a collection the first few
members are looked at, of an object that only has to have some methods whether
it has them. Ranges are the validators' own business.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, ParamSpec, TypeVar, cast, get_origin

import attrs

from nodealloc._arguments import wrong
from nodealloc._kinds import Kind, kind_of

__all__ = ["typed", "typed_fields", "typed_fields_on_error", "typed_on_error"]

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
    kinds: list[_Kinds] = []

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        if not kinds:
            kinds.append(_kinds_of(function))
        _look(function, kinds[0], args, kwargs)
        return function(*args, **kwargs)

    return called


def typed_on_error(function: Callable[P, T], /) -> Callable[P, T]:
    """The same for what is called by the million: it looks once something broke; what does no harm passes."""

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except (TypeError, AttributeError, LookupError, ArithmeticError):
            _look(function, _kinds_of(function), args, kwargs)
            raise

    return called


def typed_fields(made: type[T], /) -> type[T]:
    """Have a class of attrs refuse fields that their annotations do not allow; stands above attrs' own.

    A field that is made a tuple or a path takes whatever one can be made of.
    """
    return _with_init(made, typed)


def typed_fields_on_error(made: type[T], /) -> type[T]:
    """The same as `typed_on_error` does it."""
    return _with_init(made, typed_on_error)


def _with_init(made: type[T], wrapped: Callable[[Callable[P, None]], Callable[P, None]]) -> type[T]:
    annotations = cast("dict[str, object]", made.__init__.__annotations__)
    for field in attrs.fields(cast("type[attrs.AttrsInstance]", made)):
        converter = get_origin(field.converter) or field.converter
        if converter is tuple:
            annotations[field.alias or field.name] = f"Iterable[{_member(field.type)}]"
        elif getattr(converter, "__name__", "") == "Path":  # pure packages load no pathlib
            annotations[field.alias or field.name] = "str | Path"
    init = cast("Callable[P, None]", made.__init__)
    made.__init__ = wrapped(init)  # type: ignore[assignment,method-assign]
    return made


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


def _kinds_of(function: Callable[P, object]) -> _Kinds:
    scope: dict[str, object] = {**_GENERIC, **vars(sys.modules[function.__module__])}
    places: list[tuple[str, Kind | None]] = []
    names: dict[str, Kind | None] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
            continue
        names[name] = kind = kind_of(_evaluated(parameter.annotation, scope))
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
            # Modules of one package name each other's classes for type checkers only; the package has them.
            package = sys.modules[str(scope["__package__"])]
            if error.name is None or not hasattr(package, error.name):
                return object
            scope[error.name] = getattr(package, error.name)
