"""What a plugin offers: whether it may serve that resource, in that version of the protocol."""

from __future__ import annotations

from collections.abc import Sequence

from nodealloc.devices._errors import RegistrationRefusedError
from nodealloc.podspec import is_extended_resource

__all__ = ["VERSION", "check_offer"]

VERSION = "v1beta1"
_SHOWN = 100
"""Characters of a plugin's own words that are repeated to it; it may say a megabyte."""


def check_offer(resource: str, versions: Sequence[str], /) -> None:
    """Whether a plugin may serve a resource; raises `RegistrationRefusedError` with the reason.

    Args:
        resource: What it wants to serve.
        versions: Of the protocol that it speaks.
    """
    if VERSION not in versions:
        said = ", ".join(versions)[:_SHOWN] or "none"
        raise RegistrationRefusedError(f"version {VERSION} is needed, the plugin speaks {said}")
    if not is_extended_resource(resource):
        raise RegistrationRefusedError(
            f"{resource[:_SHOWN]!r} is no extended resource; name it like example.com/gpu"
        )
