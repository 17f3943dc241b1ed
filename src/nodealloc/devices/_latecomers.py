"""Plugins that registered and did not answer: who may be tried again, and when. Calls nobody."""

from __future__ import annotations

import threading

import attrs

from nodealloc.devices._streams import Introduction

__all__ = ["Latecomers"]

_FIRST_S = 1.0
_LONGEST_S = 60.0


@attrs.define(kw_only=True)
class _Waiting:
    """One of them.

    Attributes:
        introduction: How it registered.
        due_s: When it may be tried again.
        wait_s: How long it waits after the next failure.
        until_s: When it is forgotten.
        is_tried: Whether somebody is at it.
    """

    introduction: Introduction
    due_s: float
    wait_s: float
    until_s: float
    is_tried: bool = False


class Latecomers:
    """The newest of each resource. Thread-safe.

    Args:
        most: How many are kept; the oldest is forgotten for a new one.
        keep_s: How long each is kept.
    """

    def __init__(self, *, most: int, keep_s: float) -> None:
        self._most = most
        self._keep_s = keep_s
        self._lock = threading.Lock()
        self._waiting: dict[str, _Waiting] = {}

    def add(self, introduction: Introduction, /, *, now_s: float) -> None:
        """It did not answer now."""
        with self._lock:
            self._waiting.pop(introduction.resource, None)
            while len(self._waiting) >= self._most:
                del self._waiting[next(iter(self._waiting))]
            self._waiting[introduction.resource] = _Waiting(
                introduction=introduction, due_s=now_s, wait_s=_FIRST_S, until_s=now_s + self._keep_s
            )

    def forget(self, resource: str, /) -> None:
        """Somebody serves the resource."""
        with self._lock:
            self._waiting.pop(resource, None)

    def due(self, *, now_s: float) -> tuple[Introduction, ...]:
        """Those whose time has come; each stays until it is begun, failed or forgotten."""
        with self._lock:
            for resource in [name for name, one in self._waiting.items() if one.until_s <= now_s]:
                del self._waiting[resource]
            return tuple(
                one.introduction for one in self._waiting.values() if one.due_s <= now_s and not one.is_tried
            )

    def begun(self, introduction: Introduction, /) -> bool:
        """Whether it may be tried: it is still the newest, and nobody else is at it."""
        with self._lock:
            found = self._waiting.get(introduction.resource)
            if found is None or found.introduction is not introduction or found.is_tried:
                return False
            found.is_tried = True
            return True

    def failed(self, introduction: Introduction, /, *, now_s: float) -> None:
        """It did not answer again; the next wait is twice as long."""
        with self._lock:
            found = self._waiting.get(introduction.resource)
            if found is not None and found.introduction is introduction:
                found.is_tried = False
                found.due_s = now_s + found.wait_s
                found.wait_s = min(2 * found.wait_s, _LONGEST_S)
