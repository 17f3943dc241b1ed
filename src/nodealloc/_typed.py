"""Functions, methods and classes that refuse arguments which cannot be meant, before anything is done."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar, cast

from nodealloc._annotations import BROKEN, Kinds, kinds_of, look
from nodealloc._constructors import filling, init_of, looking_init

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
        kinds: list[Kinds] = []
        on_error = typed_on_error(function)

        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> T:
            if not kinds:
                kinds.append(kinds_of(function, own))
            look(function, kinds[0], args, kwargs)
            return function(*args, **kwargs) if not own else on_error(*args, **kwargs)

        return called

    return decorate


def typed_on_error(function: Callable[P, T], /) -> Callable[P, T]:
    """The same for what is called by the million: it looks once something broke; what does no harm passes."""
    if count := _places(function):
        return _by_place(function, count)

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except BROKEN:
            look(function, kinds_of(function), args, kwargs)
            raise

    return called


_PACKS: Final = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def _places(function: Callable[P, object]) -> int:
    """How many arguments a function takes, where all are given by place; else 0."""
    if not isinstance(function, types.FunctionType) or hasattr(function, "__wrapped__"):
        return 0
    code = function.__code__
    others = code.co_kwonlyargcount or code.co_flags & _PACKS
    return 0 if others or code.co_posonlyargcount != code.co_argcount else code.co_argcount


def _by_place(function: Callable[P, T], count: int) -> Callable[P, T]:
    """The same for arguments that are all given by place, written out: packing them would cost most of it."""
    defaults = cast("types.FunctionType", function).__defaults__ or ()
    made = _taking(count, len(defaults))(function, defaults)
    # What a call lacks, Python tells by these.
    plain = cast("types.FunctionType", made)
    plain.__code__ = plain.__code__.replace(
        co_varnames=cast("types.FunctionType", function).__code__.co_varnames[:count]
    )
    return functools.wraps(function)(cast("Callable[P, T]", made))


@functools.cache
def _taking(count: int, defaults: int) -> Callable[[object, tuple[object, ...]], object]:
    """From a function of so many arguments, what looks at them and defaults to what is called instead."""
    names = [f"a{place}" for place in range(count)]
    given, first = ", ".join(names), count - defaults
    takes = ", ".join([*names[:first], *[f"{name}=_d[{at}]" for at, name in enumerate(names[first:])]])
    lines = ["def of(_call, _d):", f"  def called({takes}, /):", f"    try: return _call({given})"]
    lines += ["    except _broken:", f"      _look(_call, _kinds_of(_call), ({given},), {{}})", "      raise"]
    scope: dict[str, object] = {"_broken": BROKEN, "_look": look, "_kinds_of": kinds_of}
    exec("\n".join([*lines, "  return called"]), scope)  # noqa: S102 - of numbers alone
    return cast("Callable[[object, tuple[object, ...]], object]", scope["of"])


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
    made.__init__ = looking_init(made, init_of(made))  # type: ignore[method-assign]
    return made


def typed_fields_on_error(made: type[T], /) -> type[T]:
    """The same as `typed_on_error` does it."""
    made.__init__ = typed_on_error(init_of(made))  # type: ignore[method-assign]
    return made


def trusting(made: Callable[P, T], /, *later: str) -> Callable[P, T]:
    """Makes values of a class of attrs out of values that were looked at: sets their fields and does no more.

    Nothing is converted, validated or worked out, and of the defaults only those are
    known that are no factories. Fields named as `later` may be left out: they are not
    set then, and the `__getattr__` of the class works them out.
    """
    return cast("Callable[P, T]", filling(cast("type[object]", made), later))
