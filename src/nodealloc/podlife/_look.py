"""Values only: why a container did not start, and what a kubelet saw of a pod as it looked at it last."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nodealloc import _attrs as attrs
from nodealloc._frozen import Frozen
from nodealloc.runtime import RunState

__all__ = ["Decided", "Look", "StartFailure", "later"]

_AGAIN_S: Final = 12.5
"""After a look that did not bring a pod where it is to be, and until the next listing.

A kubelet draws 10 to 15 s by lot; this is the middle.
"""


def later(now_s: float, /) -> float:
    """When a kubelet tries again what it could not do now."""
    return now_s + _AGAIN_S


@attrs.frozen(kw_only=True)
class StartFailure:
    """Why a container is not running yet, or not again.

    Attributes:
        reason: One word for programs: `ErrImagePull`, `CrashLoopBackOff`.
        message: For people.
        until_s: When the next try may be, on the engine's clock; None where it is not time that it waits for.
    """

    reason: str
    message: str = ""
    until_s: float | None = None


@attrs.frozen(kw_only=True)
class Decided:
    """What a look led to; a kubelet decides nothing else of the pod until that is done.

    Attributes:
        stops: Ids of containers that are stopped, one after the other.
        starts: Names of those that are started, after that.
    """

    stops: frozenset[str] = frozenset()
    starts: frozenset[str] = frozenset()


@attrs.frozen(kw_only=True)
class Look:
    """What a kubelet saw of a pod as it looked at it last: it tells that until it looks again.

    Attributes:
        number: Counts looks, from 1.
        marks: Ids and states of what the runtime had.
        edition: Of the pod.
        failures: Container name to why it did not start.
        attempts: Container name to the newest attempt that was begun.
        shown: Container name to whether the started instance that was shown last, by this look or one
            before, had ended with 0.
        acts: Whether what the look led to is still being done.
        listed_s: When the listing came that this series of looks follows; later looks come whole
            periods after it.
        rests_s: When what the look led to was done.
        again_s: When it looks again though nothing changes; None for not at all.
        decided: What it led to, all of it; None while nothing was decided of containers.
        tried: Names of containers whose start it has tried, each with the number of that attempt.
        started: Names of those that it has started: it starts none twice.
        unstopped: Ids of containers that it could not stop: a kubelet does nothing more then.
    """

    number: int
    marks: Mapping[str, RunState]
    edition: int
    failures: Mapping[str, StartFailure]
    attempts: Mapping[str, int]
    shown: Mapping[str, bool] = attrs.field(factory=Frozen[str, bool])
    acts: bool = False
    listed_s: float = 0.0
    rests_s: float = 0.0
    again_s: float | None = None
    decided: Decided | None = None
    tried: Mapping[str, int] = attrs.field(factory=Frozen[str, int])
    started: frozenset[str] = frozenset()
    unstopped: frozenset[str] = frozenset()
