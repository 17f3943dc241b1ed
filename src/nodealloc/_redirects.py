"""How far requests follow where HTTP servers send them, for probes and hooks alike."""

from __future__ import annotations

from typing import Final

__all__ = ["FOLLOWED", "MOST_REQUESTS"]

FOLLOWED: Final = frozenset({301, 302, 303, 307, 308})
"""Statuses whose `Location` is asked next; that of others is not looked at."""
MOST_REQUESTS: Final = 10
"""The first one included. Source: as kubelets do it."""
