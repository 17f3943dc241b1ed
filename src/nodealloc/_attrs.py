"""attrs, whose classes have `__repr__`, `__eq__` and `__hash__` written when somebody first asks for one.

Most classes are imported and never shown, and few are compared, but attrs compiles
the three as it makes a class, and keeps their text: that was a quarter of an import.
Files that declare classes say `from nodealloc import _attrs as attrs`; type checkers
see attrs itself.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator, Mapping
from reprlib import recursive_repr
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, TypeAlias, cast

import attrs
from attrs import (
    NOTHING,
    Attribute,
    AttrsInstance,
    Factory,
    asdict,
    define,
    evolve,
    field,
    fields,
    fields_dict,
    frozen,
    has,
    validators,
)

__all__ = [
    "NOTHING",
    "Attribute",
    "AttrsInstance",
    "Factory",
    "asdict",
    "define",
    "evolve",
    "field",
    "fields",
    "fields_dict",
    "frozen",
    "has",
    "validators",
]

_Decorator: TypeAlias = Callable[[type[object]], type[object]]
_Write: TypeAlias = Callable[[type[object]], types.FunctionType]

_OWN_EQUALITY: Final = frozenset({"eq", "hash", "unsafe_hash", "cache_hash"})
"""Options of a class whose equality is left to attrs."""
_OWN_STATE: Final = frozenset({"getstate_setstate", "cache_hash"})
"""The same of what is pickled."""


class _Later:
    """A method of one class, written when a value or somebody who looks first asks for it."""

    __slots__ = ("_made", "_write")

    def __init__(self, write: _Write, /) -> None:
        self._write = write
        self._made: type[object] | None = None

    def belong(self, made: type[object], /) -> None:
        """To a class that is finished: attrs makes another one out of what it is given."""
        self._made = made

    def __get__(self, instance: object, owner: type[object] | None = None, /) -> object:
        if self._made is None:
            return self  # attrs asks whether a class has one itself
        method = self._write(self._made)
        name = method.__name__
        method.__qualname__ = f"{self._made.__qualname__}.{name}"
        method.__module__ = self._made.__module__
        if vars(self._made).get(name) is self:
            setattr(self._made, name, method)
        return cast("object", method.__get__(instance, owner))


def _repr(made: type[object]) -> types.FunctionType:
    scope: dict[str, object] = {"NOTHING": NOTHING}
    shown: list[str] = []
    for one in _fields(made):
        value = f"self.{one.name}" if one.init else f"getattr(self, {one.name!r}, NOTHING)"
        if one.repr is True:
            shown.append(f"{one.name}={{{value}!r}}")
        elif one.repr is not False:
            scope[f"_{one.name}"] = one.repr
            shown.append(f"{one.name}={{_{one.name}({value})}}")
    # A class that stands in a function is called by its own name alone.
    name = "{self.__class__.__qualname__.rpartition('>.')[2]}"
    plain = _written("__repr__(self)", f'f"{name}({", ".join(shown)})"', scope)
    return cast("types.FunctionType", recursive_repr("...")(cast("Callable[[object], str]", plain)))


def _eq(made: type[object]) -> types.FunctionType:
    scope: dict[str, object] = {}
    ours, theirs = (
        [_compared(one, of, scope) for one in _fields(made) if one.eq] for of in ("self", "other")
    )
    equal = " and ".join(f"{mine} == {other}" for mine, other in zip(ours, theirs, strict=True)) or "True"
    answer = f"({equal}) if other.__class__ is self.__class__ else NotImplemented"
    return _written("__eq__(self, other)", answer, scope)


def _hash(made: type[object]) -> types.FunctionType:
    scope: dict[str, object] = {}
    hashed = [one for one in _fields(made) if one.hash or (one.hash is None and one.eq)]
    name = hash((made.__module__, made.__qualname__))
    values = ", ".join([f"{name}", *(_compared(one, "self", scope) for one in hashed)])
    return _written("__hash__(self)", f"hash(({values},))", scope)


def _compared(field: Attribute[object], of: str, scope: dict[str, object]) -> str:
    """What stands for a field where values are compared."""
    key = cast("object", getattr(field, "eq_key", None))
    if key is None:
        return f"{of}.{field.name}"
    scope[f"_{field.name}"] = key
    return f"_{field.name}({of}.{field.name})"


def _written(head: str, answer: str, scope: dict[str, object]) -> types.FunctionType:
    exec(f"def {head}:\n  return {answer}", scope)  # noqa: S102 - of names of fields alone
    return cast("types.FunctionType", scope[head.partition("(")[0]])


def _fields(made: type[object]) -> tuple[Attribute[object], ...]:
    return cast("tuple[Attribute[object], ...]", fields(cast("type[AttrsInstance]", made)))


class _Fields(tuple["Attribute[object]", ...]):
    """Fields of one class, by place and by name.

    attrs makes a class for those of each class, with a property for each: three times what they take.
    """

    __slots__ = ()

    def __getattr__(self, name: str, /) -> Attribute[object]:
        for one in self:
            if one.name == name:
                return one
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class _Declared(Protocol):
    __attrs_attrs__: ClassVar[tuple[Attribute[object], ...]]


def _state(self: object) -> dict[str, object]:
    """What is pickled of a value in slots; one function for all, where attrs makes two for each class."""
    return {one.name: getattr(self, one.name) for one in cast("_Declared", self).__attrs_attrs__}


def _set_state(self: object, state: Mapping[str, object]) -> None:
    put = object.__setattr__
    for one in cast("_Declared", self).__attrs_attrs__:
        if one.name in state:
            put(self, one.name, state[one.name])


_STATE: Final[Mapping[str, object]] = {"__getstate__": _state, "__setstate__": _set_state}


class _How(Protocol):
    """`define` or `frozen` of attrs."""

    def __call__(self, given: type[object], /, **options: object) -> type[object]: ...


def _declared(
    how: _How, given: type[object] | None = None, /, **options: object
) -> type[object] | _Decorator:
    """What `define` and `frozen` of attrs do, but for what is written later."""
    if given is None:
        return cast("_Decorator", functools.partial(_declared, how, **options))
    later = {name: _Later(write) for name, write in _left_out(how, given, options)}
    # attrs leaves alone what a class has itself.
    for name, method in later.items():
        setattr(given, name, method)
    if (
        options.get("slots", True)
        and not options.keys() & _OWN_STATE
        and not vars(given).keys() & _STATE.keys()
    ):
        for name, shared in _STATE.items():
            setattr(given, name, shared)
    made = how(given, **options)
    for method in later.values():
        method.belong(made)
    made.__attrs_attrs__ = _Fields(_fields(made))  # type: ignore[attr-defined]
    return made


def _left_out(
    how: object, given: type[object], options: Mapping[str, object]
) -> Iterator[tuple[str, _Write]]:
    """Methods that attrs would write."""
    own = vars(given)
    if options.get("repr") is not False and "__repr__" not in own:
        yield "__repr__", _repr
    # Values alone: attrs has other rules for what changes, and for errors.
    if how is not attrs.frozen or options.keys() & _OWN_EQUALITY or issubclass(given, BaseException):
        return
    if "__eq__" not in own and "__ne__" not in own:
        yield "__eq__", _eq
        if "__hash__" not in own:
            yield "__hash__", _hash


if not TYPE_CHECKING:
    define = functools.partial(_declared, define)
    frozen = functools.partial(_declared, frozen)
