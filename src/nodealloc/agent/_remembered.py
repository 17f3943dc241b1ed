"""What each package left in the one store, read at the start."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final, Self

from nodealloc import _attrs as attrs
from nodealloc._typed import typed
from nodealloc.cgroups import QosTree
from nodealloc.checkpoint import Formats, Store, require_formats, row_formats, row_key, rows_of
from nodealloc.dsw_asw import Moment
from nodealloc.node import FORMATS
from nodealloc.podfacts import LifeState
from nodealloc.podlife import POD_ROWS, PodLives, PodRecord, Rules, record_from_checkpoint
from nodealloc.podlife.preparers import CgroupPreparer
from nodealloc.podsources import (
    SOURCE_ROWS,
    Editions,
    editions_from_checkpoint,
    editions_to_checkpoint,
)
from nodealloc.podspec import Pod, is_static
from nodealloc.podstatus import STATUS_ROWS, Told, told_from_checkpoint
from nodealloc.probes import PROBE_ROWS, PodVerdicts, verdicts_from_checkpoint
from nodealloc.runtime import RUNTIME_ROWS, PodKnown, RuntimeWatch, pod_from_checkpoint

__all__ = ["AGENT_FORMATS", "Remembered", "remembering_editions"]

AGENT_FORMATS: Final[Formats] = {
    **FORMATS,
    **row_formats(RUNTIME_ROWS, POD_ROWS, STATUS_ROWS, PROBE_ROWS, SOURCE_ROWS),
}
"""Formats of all rows that an agent keeps; what a store is opened with."""


@attrs.frozen(kw_only=True)
class Remembered:
    """What was remembered when the process began.

    The node reads its own rows: `NodeAllocator.start`.

    Attributes:
        known: What the runtime was known to have, by pod uid.
        lives: How far pods had come, by pod uid.
        told: What others had been told, by pod uid.
        verdicts: What probes had said, by pod uid.
        editions: Which static pod is which edition, by source.
    """

    known: Mapping[str, PodKnown]
    lives: Mapping[str, PodRecord]
    told: Mapping[str, Told]
    verdicts: Mapping[str, PodVerdicts]
    editions: Mapping[str, Editions]

    @property
    def pods(self) -> Mapping[str, Pod]:
        """The pods that were here, by uid, in their newest form; what `PodSources(known=...)` takes."""
        return {uid: one.pod for uid, one in self.lives.items()}

    @classmethod
    @typed
    def read(cls, store: Store, /, *, now: Moment | None = None) -> Self:
        """Read a store.

        Args:
            store: Opened with `AGENT_FORMATS`.
            now: This moment, from which stored times of an earlier boot count; None to ask the machine.

        Raises:
            DecodeError: A row is not of its shape; which one, and what is wrong with it.
            StoreFailedError: The store cannot be read.
        """
        require_formats(store, AGENT_FORMATS, "Remembered, store (nodealloc.agent.AGENT_FORMATS has them)")
        moment, rows = Moment.now() if now is None else now, store.read().values
        return cls(
            known=rows_of(RUNTIME_ROWS, rows, pod_from_checkpoint),
            lives=rows_of(POD_ROWS, rows, lambda row: record_from_checkpoint(row, moment)),
            told=rows_of(STATUS_ROWS, rows, told_from_checkpoint),
            verdicts=rows_of(PROBE_ROWS, rows, verdicts_from_checkpoint),
            editions=rows_of(SOURCE_ROWS, rows, editions_from_checkpoint),
        )

    def asking_again(self, part: str, /) -> Mapping[str, PodRecord]:
        """The lives of pods for whom a part, such as their admission, is to be made ready once more.

        What `PodLives(remembered=...)` takes where that part answers otherwise than before.
        """
        return {
            uid: one.but(edition_ready={name: no for name, no in one.edition_ready.items() if name != part})
            for uid, one in self.lives.items()
        }

    def cgroups(self, tree: QosTree, watch: RuntimeWatch, /, *, follows: bool = True) -> CgroupPreparer:
        """Who limits pods, and knows those that had cgroups.

        Args:
            tree: Keeps the cgroups.
            watch: Sees what runs: cgroups of which nobody has told yet stay until it is known.
            follows: Whether an edit of a pod changes its cgroup; a kubelet leaves it as it was made.
        """

        def running() -> Collection[str] | None:
            return None if watch.heard().listing == 0 else tuple(watch.seen.snapshot())

        pods = [one.pod for one in self.lives.values() if CgroupPreparer.NAME in one.made]
        return CgroupPreparer(tree, pods, running, follows=follows)

    def told_of(self, lives: PodLives, rules: Rules, /) -> Mapping[str, Told]:
        """What others had been told of pods, by uid; what a `StatusManager` takes.

        Args:
            lives: The pods, made of what was remembered.
            rules: `keeps_refusals`: a kubelet forgets a pod that it refused, and asks again;
                `remembers_pods`: also how a static pod ended that is still to run.
        """
        told = self.told
        if not rules.keeps_refusals:
            told = {uid: one for uid, one in told.items() if uid in lives.pods}
        if not rules.remembers_pods:
            told = {uid: one for uid, one in told.items() if not _runs_again(one, lives.pods.get(uid))}
        return told


def _runs_again(told: Told, record: PodRecord | None) -> bool:
    """Whether a static pod was told to have ended, and is looked at anew."""
    if record is None or record.life is not LifeState.SYNCING or not is_static(record.pod):
        return False
    return told.status.is_terminal


@typed
def remembering_editions(store: Store, /) -> Callable[[str, Editions], None]:
    """What `PodSources(remember=...)` takes: writes a source's editions into a store."""

    def remember(source: str, editions: Editions, /) -> None:
        store.commit({row_key(SOURCE_ROWS, source): editions_to_checkpoint(editions)})

    return remember
