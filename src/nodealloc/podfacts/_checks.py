"""Validators of attrs: addresses of pods and nodes."""

from __future__ import annotations

from nodealloc._addresses import ip_version
from nodealloc._arguments import field_of, wrong

__all__ = ["address", "addresses"]

_EXPECTED = "an IP address such as 10.0.0.1"


def address(instance: object, attribute: object, value: str | None) -> None:
    """An IP address, or None."""
    if value is not None:
        _check(value, field_of(instance, attribute))


def addresses(instance: object, attribute: object, value: tuple[str, ...]) -> None:
    """IP addresses, each once."""
    where = field_of(instance, attribute)
    for one in value:
        _check(one, where)
    if len(set(value)) != len(value):
        raise wrong(where, value, "each address once")


def _check(value: str, where: str) -> None:
    try:
        ip_version(value)
    except (TypeError, ValueError):  # of what no text is, too
        raise wrong(where, value, _EXPECTED) from None
