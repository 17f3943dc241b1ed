"""Values only: how far a pod has come on its node, and what others need to know of that."""

from __future__ import annotations

import enum
from typing import Final

from nodealloc import _attrs as attrs
from nodealloc._typed import typed_fields
from nodealloc.podspec import Pod

__all__ = ["LifeState", "PodLife", "PodSighting"]


class LifeState(enum.Enum):
    """How far a pod has come on its node; it only ever goes down this list.

    Whether a source still wants a pod is another question: one that no source wants
    goes the same way, and so does an *orphan*, which only the runtime knows.

    Source: kubelet ``pod_workers.go``; `WAITING` and `FINISHED` are told apart
    from their neighbours by the answers that it gives about a pod.
    """

    WAITING = "waiting"
    """Another pod of its name has not finished: nothing of it may start yet."""
    SYNCING = "syncing"
    """It is to run: its parts are made ready, started and kept running."""
    TERMINATING = "terminating"
    """It has to end; containers of it may still run."""
    TERMINATED = "terminated"
    """None of its containers runs, or ever will; what was made for it is being taken away."""
    FINISHED = "finished"
    """Nothing of it is left on the node but what is told of it."""

    @property
    def is_ending(self) -> bool:
        """Whether it has to end, or has ended."""
        return self in _ENDING

    @property
    def is_over(self) -> bool:
        """Whether none of its containers runs, or ever will."""
        return self in _OVER

    @property
    def may_run(self) -> bool:
        """Whether a container of it may be running."""
        return self in _RUNS


# Tuples: where a member stands in one is seen sooner than its hash is made.
_ENDING: Final = (LifeState.TERMINATING, LifeState.TERMINATED, LifeState.FINISHED)
_OVER: Final = (LifeState.TERMINATED, LifeState.FINISHED)
_RUNS: Final = (LifeState.SYNCING, LifeState.TERMINATING)


class PodLife(enum.Enum):
    """What whoever holds something for a pod needs to know of its life."""

    WANTED = "wanted"
    ENDED = "ended"
    """Its containers have stopped for good: nobody uses what is held for it any more."""
    UNKNOWN = "unknown"
    """Nobody can tell; what is held for it stays as it is."""


@typed_fields
@attrs.frozen
class PodSighting:
    """A pod, and what is known of its life."""

    pod: Pod
    life: PodLife
