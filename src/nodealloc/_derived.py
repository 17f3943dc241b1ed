"""Values with fields that are worked out from the others when a value is made.

A field is read faster than anything that looks first whether it has been worked
out, and what admission asks of a machine it asks in each admission.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

from nodealloc import _attrs as attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Derives"]

T = TypeVar("T")


class Derives:
    """Of a class of attrs: its pickles hold what its `__init__` takes; the rest is worked out again."""

    __slots__ = ()

    def __reduce__(self) -> tuple[object, ...]:
        fields = attrs.fields(cast("type[attrs.AttrsInstance]", type(self)))
        given = {field.alias or field.name: getattr(self, field.name) for field in fields if field.init}
        return _anew, (type(self), given)


def _anew(made: type[T], given: Mapping[str, object]) -> T:
    return made(**given)
