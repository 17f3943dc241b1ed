"""Which scopes are closed: one operation at a time, nested; and who waits for one to open."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
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
        if not self._held:
            return True
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
    """Keys with a step whose scope was closed, in their order; not thread-safe.

    Of those that wait for one scope the first alone is called when it may have opened: a
    scope that a thousand keys share costs one plan for each of them, not one for each pair.
    It keeps its place until its step starts; where it has no use for the scope any more, the
    next one is called (`after`).
    """

    def __init__(self) -> None:
        self._keys: dict[StepScope, dict[K, None]] = {}
        # By each scope around them, so that the end of an outer one finds those inside.
        self._inside: dict[StepScope, dict[StepScope, None]] = {}
        self._called: dict[StepScope, K] = {}

    def __len__(self) -> int:
        return len(self._keys) + len(self._inside) + len(self._called)

    def add(self, scope: StepScope, key: K, /) -> None:
        """A step of a key cannot start."""
        self._keys.setdefault(scope, {})[key] = None
        for depth in range(1, len(scope)):
            self._inside.setdefault(scope[:depth], {})[scope] = None

    def started(self, scope: StepScope, key: K, /) -> None:
        """A key has what it waited for, if it did."""
        keys = self._keys.get(scope)
        if keys is None or key not in keys:
            return
        del keys[key]
        if keys:
            return
        del self._keys[scope]
        for depth in range(1, len(scope)):
            inside = self._inside[scope[:depth]]
            del inside[scope]
            if not inside:
                del self._inside[scope[:depth]]

    def opened(self, scope: StepScope, /) -> list[K]:
        """Keys that are to be planned now that a scope is open."""
        if not self._keys:
            return []
        outer = [scope[:depth] for depth in range(1, len(scope) + 1) if scope[:depth] in self._keys]
        return [self._call(one) for one in (*outer, *self._inside.get(scope, ()))]

    def after(self, planned: Collection[K], is_free: Callable[[StepScope], bool], /) -> list[K]:
        """Keys that are to be planned next, since those that were called had no use for their scope."""
        if not self._called:
            return []
        done = [(scope, key) for scope, key in self._called.items() if key in planned]
        called: list[K] = []
        for scope, key in done:
            del self._called[scope]
            if is_free(scope):
                self.started(scope, key)
                if scope in self._keys:
                    called.append(self._call(scope))
        return called

    def _call(self, scope: StepScope) -> K:
        key = self._called[scope] = next(iter(self._keys[scope]))
        return key


def touch(one: StepScope, other: StepScope, /) -> bool:
    """Whether one scope begins with the other."""
    depth = min(len(one), len(other))
    return one[:depth] == other[:depth]
