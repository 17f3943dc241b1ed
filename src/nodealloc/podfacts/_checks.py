"""Validators of attrs: addresses of pods and nodes."""

from __future__ import annotations

import attrs

from nodealloc._addresses import ip_version
from nodealloc.errors import ConfigurationError

__all__ = ["address", "addresses"]


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
