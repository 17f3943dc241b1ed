"""Names of resources: which of them a device plugin may serve."""

from __future__ import annotations

import re

__all__ = ["is_extended_resource"]

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
