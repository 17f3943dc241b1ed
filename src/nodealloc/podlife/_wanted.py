"""What is wanted of a pod, and how that changes with what is said of it: values to values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from nodealloc import _attrs as attrs
from nodealloc._fields import fields_but
from nodealloc._frozen import Frozen, extended, freeze
from nodealloc.podlife._record import Ending, EndingKind
from nodealloc.podlife._rules import Rules
from nodealloc.podlife._taken_up import UNKNOWN_S, as_listed, as_the_runtime_knows
from nodealloc.podspec import Pod, is_static
from nodealloc.runtime import PodListing

__all__ = ["PodWanted", "orphaned", "poked", "removed", "said", "unsaid"]

_lasting: Final = fields_but(Pod, "status", "carried")
"""Without what may change, or change in part, while running it stays the same."""


@attrs.frozen(kw_only=True)
class PodWanted:
    """What was said of a pod: by sources, by whoever wants it to end.

    Attributes:
        pod: Its newest form.
        is_said: Whether a source has it, as far as is known since the start.
        is_removed: Whether no source has it any more.
        endings: Why it has to end, the first cause first.
        pokes: How often somebody asked to start now what waits; by container name, "" for all.
        is_orphan: Whether only the runtime knows it.
        said_unix_s: When it was first said, in Unix seconds.
        again: The pod that was put under this uid after its removal; it starts when this one has finished.
    """

    pod: Pod
    said_unix_s: float = 0.0
    is_said: bool = True
    is_removed: bool = False
    endings: tuple[Ending, ...] = ()
    pokes: Mapping[str, int] = attrs.field(factory=Frozen[str, int], validator=freeze)
    is_orphan: bool = False
    again: Pod | None = None

    @property
    def is_known(self) -> bool:
        """Whether somebody has spoken of it since the start."""
        return self.is_said or self.is_removed or self.is_orphan

    def ended(self, ending: Ending, /) -> PodWanted:
        """With one more reason to end; a later one counts where it leaves less time."""
        graces = [one.grace_s for one in self.endings if one.grace_s is not None]
        is_shorter = ending.grace_s is not None and ending.grace_s < min(graces, default=math.inf)
        if self.endings and not is_shorter:
            return self
        return attrs.evolve(self, endings=(*self.endings, ending))


def said(want: PodWanted | None, pod: Pod, rules: Rules, unix_s: float, /) -> PodWanted:
    """A source has the pod, perhaps in another form."""
    if want is None:
        return PodWanted(pod=pod, said_unix_s=unix_s)
    if want.is_removed and not rules.stays_ended:
        return attrs.evolve(want, again=pod, is_said=True, said_unix_s=unix_s)
    kept = want.pod if _means_the_same(want.pod, pod) else pod
    return attrs.evolve(want, pod=kept, is_said=True, is_removed=False, is_orphan=False)


def removed(want: PodWanted, grace_s: float | None, rules: Rules, /) -> PodWanted:
    """No source has it any more; None as grace for as long as it says."""
    knows = rules.knows_removed or is_static(want.pod) or want.pod.deletion_timestamp
    given_s = UNKNOWN_S if grace_s is None and not knows else grace_s
    if given_s is not None:
        want = want.ended(Ending(kind=EndingKind.REMOVED, grace_s=given_s))
    return attrs.evolve(want, is_removed=True, again=None)


def unsaid(want: PodWanted, /, *, rules: Rules, listing: PodListing | None) -> PodWanted:
    """Every source was heard, and none has spoken of it; with what the runtime has of it."""
    if want.is_said or want.is_orphan:
        return want
    if rules.remembers_pods:
        return attrs.evolve(want, is_removed=True)
    ends = want.ended(Ending(kind=EndingKind.REMOVED, grace_s=UNKNOWN_S))
    return attrs.evolve(ends, is_removed=True, pod=as_the_runtime_knows(want.pod, listing))


def poked(want: PodWanted, container: str, /) -> PodWanted:
    """Somebody asks to start now what waits; "" for every container."""
    number = want.pokes.get(container, 0) + 1
    return attrs.evolve(want, pokes=extended(want.pokes, container, number))


def orphaned(listing: PodListing, unix_s: float, /) -> PodWanted | None:
    """Of a pod that only the runtime knows; None where nothing of it says whose it is."""
    pod = as_listed(listing)
    return None if pod is None else PodWanted(pod=pod, said_unix_s=unix_s, is_orphan=True)


def _means_the_same(before: Pod, now: Pod) -> bool:
    """Whether nothing of a pod changed that running it depends on."""
    return before is now or _meaning(before) == _meaning(now)


def _meaning(pod: Pod) -> tuple[object, ...]:
    carried = {key: value for key, value in pod.carried.items() if not key.startswith("metadata.")}
    return (*_lasting(pod), carried)
