"""How far requests follow where HTTP servers send them, for probes and hooks alike."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

__all__ = ["FOLLOWED", "MOST_REQUESTS", "is_whole_url"]

FOLLOWED: Final = frozenset({301, 302, 303, 307, 308})
"""Statuses whose `Location` is asked next; that of others is not looked at."""
MOST_REQUESTS: Final = 10
"""The first one included. Source: as kubelets do it."""


def is_whole_url(location: str, /) -> bool:
    """Whether a `Location` says by which scheme: from there on no `Host` of the pod's own is told.

    Raises:
        ValueError: It is no URL.

    Source: Go ``net/http``, which kubelets ask by.
    """
    return bool(urlsplit(location).scheme)
