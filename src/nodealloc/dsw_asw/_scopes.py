"""Which scopes are closed: one operation at a time, nested; and who waits for one to open."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from nodealloc.dsw_asw._steps import StepScope

__all__ = ["Blocked", "Scopes", "touch"]

K = TypeVar("K", bound=Hashable)


class Scopes:
    """Scopes in use; not thread-safe, its owner holds a lock.

    Source: kubelet ``util/nestedpendingoperations``, for any depth.
    """

    def __init__(self) -> None:
        self._held: set[StepScope] = set()
        self._below: dict[StepScope, int] = {}

    def __len__(self) -> int:
        return len(self._held)

    def is_free(self, scope: StepScope, /) -> bool:
        """Whether neither it, nor one around it, nor one inside it is in use."""
        if self._below.get(scope):
            return False
        return not any(scope[:depth] in self._held for depth in range(1, len(scope) + 1))

    def take(self, scope: StepScope, /) -> bool:
        """Close a scope; False when it is not free, and nothing changed then."""
        if not self.is_free(scope):
            return False
        self._held.add(scope)
        for depth in range(1, len(scope)):
            outer = scope[:depth]
            self._below[outer] = self._below.get(outer, 0) + 1
        return True

    def release(self, scope: StepScope, /) -> None:
        """Open a scope again; one that is open already stays so."""
        if scope not in self._held:
            return
        self._held.remove(scope)
        for depth in range(1, len(scope)):
            outer = scope[:depth]
            self._below[outer] -= 1
            if not self._below[outer]:
                del self._below[outer]


class Blocked(Generic[K]):
    """Keys with a step whose scope was closed, until one opens that it touches; not thread-safe."""

    def __init__(self) -> None:
        self._keys: dict[StepScope, dict[K, None]] = {}
        # By each scope around them, so that the end of an outer one finds those inside.
        self._inside: dict[StepScope, dict[StepScope, None]] = {}

    def __len__(self) -> int:
        return len(self._keys) + len(self._inside)

    def add(self, scope: StepScope, key: K, /) -> None:
        """A step of a key cannot start."""
        self._keys.setdefault(scope, {})[key] = None
        for depth in range(1, len(scope)):
            self._inside.setdefault(scope[:depth], {})[scope] = None

    def take(self, opened: StepScope, /) -> dict[K, None]:
        """Keys that may go on now that a scope is open."""
        if not self._keys:
            return {}
        outer = [opened[:depth] for depth in range(1, len(opened) + 1) if opened[:depth] in self._keys]
        found: dict[K, None] = {}
        for scope in (*outer, *self._inside.get(opened, ())):
            found.update(self._keys.pop(scope))
            for depth in range(1, len(scope)):
                inside = self._inside[scope[:depth]]
                del inside[scope]
                if not inside:
                    del self._inside[scope[:depth]]
        return found


def touch(one: StepScope, other: StepScope, /) -> bool:
    """Whether one scope begins with the other."""
    depth = min(len(one), len(other))
    return one[:depth] == other[:depth]
