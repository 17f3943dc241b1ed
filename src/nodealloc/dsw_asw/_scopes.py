"""Which scopes are closed: one operation at a time, nested."""

from __future__ import annotations

from nodealloc.dsw_asw._steps import StepScope

__all__ = ["Scopes", "touch"]


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


def touch(one: StepScope, other: StepScope, /) -> bool:
    """Whether one scope begins with the other."""
    depth = min(len(one), len(other))
    return one[:depth] == other[:depth]
