"""Names of resources: which of them are extended ones, and which a container may ask for."""

from __future__ import annotations

import re
from typing import Final

from nodealloc._typed import typed_on_error

__all__ = ["is_extended_resource", "is_label_value", "is_prefixed", "is_qualified"]

_DOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_QUOTA: Final = "requests."
"""How a quota names a resource; it has to fit before the name."""
_MAX_DOMAIN: Final = 253
_MAX_NAME: Final = 63


def is_prefixed(resource: str, /) -> bool:
    """Whether this is `domain/name`, as `example.com/gpu` and `kubernetes.io/batch-cpu` are.

    Source: Kubernetes ``pkg/util/validation``, "qualified name".
    """
    domain, slash, name = resource.partition("/")
    return bool(
        slash
        and len(domain) <= _MAX_DOMAIN
        and len(name) <= _MAX_NAME
        and _DOMAIN.fullmatch(domain)
        and _NAME.fullmatch(name)
    )


def is_qualified(key: str, /) -> bool:
    """Whether this is `name` or `domain/name`, as keys of labels and annotations are.

    Source: Kubernetes ``pkg/util/validation``, "qualified name".
    """
    return is_prefixed(key) or bool(len(key) <= _MAX_NAME and _NAME.fullmatch(key))


def is_label_value(text: str, /) -> bool:
    """Whether this can be the value of a label; "" can.

    Source: Kubernetes ``pkg/util/validation``, "label value".
    """
    return not text or bool(len(text) <= _MAX_NAME and _NAME.fullmatch(text))


@typed_on_error
def is_extended_resource(resource: str, /) -> bool:
    """Whether this is `domain/name` outside of kubernetes.io, as `example.com/gpu` is.

    The word `requests.` is kept for quotas: a name that starts with it, or that
    would be too long behind it, is none.

    Source: Kubernetes ``pkg/apis/core/v1/helper``, "extended resource name".
    """
    return (
        is_prefixed(_QUOTA + resource)
        and "kubernetes.io/" not in resource
        and not resource.startswith(_QUOTA)
    )
