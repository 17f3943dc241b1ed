"""What the annotations of a function allow, and a look at arguments.

Only what a look can tell in constant time: of a collection the first few
members are looked at, of an object that only has to have some methods whether
it has them. Ranges are the validators' own business.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from types import FunctionType, ModuleType
from typing import Final, NamedTuple, ParamSpec, cast

from nodealloc._arguments import wrong
from nodealloc._kinds import Kind, kind_of_argument

__all__ = ["BROKEN", "GENERIC", "Kinds", "evaluated", "kinds_of", "look"]

P = ParamSpec("P")

BROKEN: Final = (TypeError, AttributeError, LookupError, ArithmeticError)
"""What arguments that nobody can mean raise where they are used."""

GENERIC: Final[Mapping[str, object]] = {
    "Callable": Callable,
    "Collection": Collection,
    "Iterable": Iterable,
    "Iterator": Iterator,
    "Mapping": Mapping,
    "Sequence": Sequence,
}
"""What modules import for type checkers alone; no name of these means anything else here."""

_BUILT_IN: Final[Mapping[str, object]] = {one.__name__: one for one in (str, int, bool, float, object)}


class Kinds(NamedTuple):
    """Of the parameters of a function: those given by place, in order, all by name, and how many more.

    The last one of `places` stands for every further one where `rest` is True, as in `*parts`.
    """

    places: tuple[tuple[str, Kind | None], ...]
    names: Mapping[str, Kind | None]
    rest: bool = False


def look(
    function: Callable[P, object], kinds: Kinds, args: tuple[object, ...], kwargs: Mapping[str, object]
) -> None:
    """Raise `ConfigurationError` for the first argument that is not of its kind."""
    places = itertools.chain(kinds.places, itertools.repeat(kinds.places[-1])) if kinds.rest else kinds.places
    for (name, kind), value in zip(places, args, strict=False):
        if kind is not None and type(value) not in kind.exact and not kind.fits(value):
            raise wrong(_place(function, name), value, kind.words)
    for name, value in kwargs.items():
        kind = kinds.names.get(name)
        if kind is not None and type(value) not in kind.exact and not kind.fits(value):
            raise wrong(_place(function, name), value, kind.words)


def _place(function: Callable[P, object], name: str) -> str:
    return f"{function.__qualname__.removesuffix('.__init__')}: {name}"


def kinds_of(function: Callable[P, object], own: Collection[str] = ()) -> Kinds:
    """What the parameters of a function take; of those in `own` anything."""
    scope: dict[str, object] = {**GENERIC, **vars(import_module(function.__module__))}
    places: list[tuple[str, Kind | None]] = []
    names: dict[str, Kind | None] = {}
    rest = False
    for name, how, told in _parameters(function):
        annotation = object if name in own else evaluated(told, scope)
        kind = kind_of_argument(annotation, name)
        if how is not inspect.Parameter.VAR_POSITIONAL:
            names[name] = kind
        if how is not inspect.Parameter.KEYWORD_ONLY:
            places.append((name, kind))
        rest = rest or how is inspect.Parameter.VAR_POSITIONAL
    return Kinds(tuple(places), names, rest)


def _parameters(function: Callable[P, object]) -> Iterator[tuple[str, object, object]]:
    """Name, kind and annotation of each but `**more`: as `inspect.signature`, which takes far longer."""
    plain = inspect.unwrap(function)
    if not isinstance(plain, FunctionType):
        for one in inspect.signature(function).parameters.values():
            if one.kind is not one.VAR_KEYWORD:
                yield one.name, one.kind, one.annotation
        return
    code, told = plain.__code__, plain.__annotations__
    by_place, named = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    for at, name in enumerate(code.co_varnames[:by_place]):
        is_nameless = at < code.co_posonlyargcount
        how = inspect.Parameter.POSITIONAL_ONLY if is_nameless else inspect.Parameter.POSITIONAL_OR_KEYWORD
        yield name, how, told.get(name, inspect.Parameter.empty)
    if code.co_flags & inspect.CO_VARARGS:
        name = code.co_varnames[named]
        yield name, inspect.Parameter.VAR_POSITIONAL, told.get(name, inspect.Parameter.empty)
    for name in code.co_varnames[by_place:named]:
        yield name, inspect.Parameter.KEYWORD_ONLY, told.get(name, inspect.Parameter.empty)


def evaluated(annotation: object, scope: dict[str, object]) -> object:
    """What an annotation says; anything where it names what is only there for type checkers."""
    if not isinstance(annotation, str):
        return object if annotation is inspect.Parameter.empty else annotation
    # Most are one word.
    found = scope.get(annotation, _BUILT_IN.get(annotation, inspect.Parameter.empty))
    if found is not inspect.Parameter.empty:
        return found
    while True:
        try:
            return cast("object", eval(annotation, scope))  # noqa: S307 - the source's own text
        except NameError as error:
            # Modules of one package name each other's classes for type checkers only, and a field may come
            # from a class of another one; the package has them, or one of its modules.
            homes = _homes(import_module(str(scope["__package__"])))
            home = next((one for one in homes if error.name and hasattr(one, error.name)), None)
            if home is None or error.name is None:
                return object
            scope[error.name] = getattr(home, error.name)


def _homes(package: ModuleType) -> tuple[ModuleType, ...]:
    """A package and its own modules."""
    # Taken in one step: another thread may import meanwhile.
    inside = sorted(name for name in tuple(vars(package)) if name.startswith("_"))
    return package, *(one for name in inside if isinstance(one := getattr(package, name), ModuleType))
