"""Attributes of immutable values that are worked out when first asked for.

`functools.cached_property` does the same, but until Python 3.12 it takes a lock
that costs more than most of what is worked out here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["lazy"]

T = TypeVar("T")
R = TypeVar("R")


class lazy(Generic[T, R]):  # noqa: N801 - a decorator, named as decorators are
    """A property that is worked out once for each instance and kept in its `__dict__`.

    The work has to be a pure function of an immutable instance: two threads
    that ask at once may both do it. Its class needs a `__dict__`, and a
    `__getstate__` that leaves out what can be worked out again.
    """

    def __init__(self, work: Callable[[T], R], /) -> None:
        self._work = work
        self.__doc__ = work.__doc__

    def __set_name__(self, _owner: type[T], name: str, /) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type[T], /) -> lazy[T, R]: ...
    @overload
    def __get__(self, instance: T, owner: type[T], /) -> R: ...
    def __get__(self, instance: T | None, owner: type[T], /) -> lazy[T, R] | R:
        """The value; from the second time on Python finds it in the instance without asking here."""
        if instance is None:
            return self
        found = instance.__dict__[self._name] = self._work(instance)
        return found
