"""Fields of attrs classes, read many at a time."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar, cast

import attrs

if TYPE_CHECKING:
    from attrs import AttrsInstance

__all__ = ["fields_but"]

T = TypeVar("T", bound="AttrsInstance")


def fields_but(made: type[T], /, *names: str) -> Callable[[T], tuple[object, ...]]:
    """Reads all fields of a class but some, in order: to compare values without making others of them.

    Args:
        made: An attrs class, of which at least two fields are left.
        names: Of fields that do not count.
    """
    left = [field.name for field in attrs.fields(made) if field.name not in names]
    return cast("Callable[[T], tuple[object, ...]]", attrgetter(*left))
