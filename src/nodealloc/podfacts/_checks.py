"""Validators: what no fact about a pod can be."""

from __future__ import annotations

import math

import attrs

from nodealloc._addresses import ip_version
from nodealloc.errors import ConfigurationError

__all__ = ["address", "addresses", "count", "moment", "word"]


def word(_: object, field: attrs.Attribute[str], value: object) -> None:
    """Text that is not empty; None passes where the field may be absent."""
    if value is not None and (not isinstance(value, str) or not value):
        raise ConfigurationError(
            f"{field.name} is {value!r}; give text, or leave it out where it may be absent"
        )


def count(_: object, field: attrs.Attribute[int], value: object) -> None:
    """A whole number, 0 or more."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ConfigurationError(f"{field.name} is {value!r}; give a whole number, 0 or more")


def moment(_: object, field: attrs.Attribute[float | None], value: object) -> None:
    """Finite seconds, or None for not known."""
    if value is None:
        return
    if not isinstance(value, int | float) or isinstance(value, bool) or not -math.inf < value < math.inf:
        raise ConfigurationError(
            f"{field.name} is {value!r}; give finite Unix seconds, or None where nobody knows"
        )


def address(_: object, field: attrs.Attribute[str | None], value: str | None) -> None:
    """An IP address, or None."""
    if value is None:
        return
    try:
        ip_version(value)
    except (TypeError, ValueError):  # of what no text is, too
        raise ConfigurationError(f"{field.name} is {value!r}, which is no IP address") from None


def addresses(_: object, field: attrs.Attribute[tuple[str, ...]], value: tuple[str, ...]) -> None:
    """IP addresses, each once."""
    for one in value:
        try:
            ip_version(one)
        except (TypeError, ValueError):
            raise ConfigurationError(f"{field.name} has {one!r}, which is no IP address") from None
    if len(set(value)) != len(value):
        raise ConfigurationError(f"{field.name} has {', '.join(value)}; name each address once")
