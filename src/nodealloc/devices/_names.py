"""What a plugin offers: which names of resources it may serve, and in which version of the protocol."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nodealloc.devices._errors import RegistrationRefusedError

__all__ = ["VERSION", "check_offer", "is_extended_resource"]

VERSION = "v1beta1"
_SHOWN = 100
"""Characters of a plugin's own words that are repeated to it; it may say a megabyte."""

_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_MAX_DOMAIN = 253 - len("requests.")
_MAX_NAME = 63


def is_extended_resource(resource: str, /) -> bool:
    """Whether this is `domain/name` outside of kubernetes.io, as `example.com/gpu` is.

    The word `requests.` is kept for quotas: a name that starts with it, or that
    would be too long behind it, is none.

    Source: Kubernetes ``pkg/apis/core/v1/helper``, "extended resource name".
    """
    domain, slash, name = resource.partition("/")
    return bool(
        slash
        and len(domain) <= _MAX_DOMAIN
        and len(name) <= _MAX_NAME
        and _DOMAIN.fullmatch(domain)
        and _NAME.fullmatch(name)
        and not domain.endswith("kubernetes.io")
        and not resource.startswith("requests.")
    )


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
