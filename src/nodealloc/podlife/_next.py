"""A value: what is next for a pod."""

from __future__ import annotations

from nodealloc import _attrs as attrs
from nodealloc.dsw_asw import Step
from nodealloc.podlife._details import Detail
from nodealloc.podlife._look import Decided
from nodealloc.podlife._record import PodRecord

__all__ = ["Next"]


@attrs.frozen(kw_only=True)
class Next:
    """What is next for a pod.

    Attributes:
        record: What is to be remembered first.
        steps: What to do.
        again_at_s: When to look again though nothing changes.
        is_over: Nothing of it is running, or will run: it has to end.
        decided: What a kubelet does of it before it decides anything else; None where that was not asked.
    """

    record: PodRecord
    steps: tuple[Step[Detail], ...] = ()
    again_at_s: float | None = None
    is_over: bool = False
    decided: Decided | None = None
