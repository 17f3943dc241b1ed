"""What a journal keeps of pods: taken over at the start, and written when it changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nodealloc._frozen import PlainJson
from nodealloc.checkpoint import JsonCheckpoint, row_key
from nodealloc.dsw_asw import Moment
from nodealloc.podfacts import LifeState
from nodealloc.podlife._codec import POD_ROWS, manifest_of, record_to_checkpoint
from nodealloc.podlife._record import EndingKind, PodRecord
from nodealloc.podlife._restarts import Restarts
from nodealloc.podlife._rules import Rules
from nodealloc.podlife._taken_up import as_a_kubelet_finds
from nodealloc.podlife._wanted import PodWanted
from nodealloc.podlife._worlds import Worlds
from nodealloc.podspec import Pod, is_static

__all__ = ["RememberedPods"]


class RememberedPods:
    """Puts what was remembered into the worlds, and says what is written of each record.

    Args:
        worlds: What is kept of pods.
        rules: How much of it a new process goes by.
        now: This moment, as it outlives a boot.
    """

    def __init__(self, worlds: Worlds, rules: Rules, now: Callable[[], Moment]) -> None:
        self._worlds, self._rules, self._now = worlds, rules, now
        self._manifests: dict[str, tuple[Pod, PlainJson]] = {}

    def take_over(self, remembered: Mapping[str, PodRecord], /) -> None:
        """Who had its name keeps it: those that came first are first in their lines."""
        order = sorted(
            remembered.items(), key=lambda one: (one[1].life is LifeState.WAITING, one[1].noticed_s)
        )
        for uid, was in order:
            is_refused = was.ending is not None and was.ending.kind is EndingKind.REFUSED
            if is_refused and is_static(was.pod) and not self._rules.keeps_refusals:
                continue
            record = was if self._rules.keeps_delays else was.but(restarts=Restarts())
            if not self._rules.remembers_pods:
                if was.life is LifeState.FINISHED and is_static(was.pod):
                    continue
                record = as_a_kubelet_finds(record, self._now())
            self._worlds.pods.put(uid, record, by="remembered")
            want = PodWanted(
                pod=record.pod, said_unix_s=record.noticed_unix_s, is_said=False, pokes=record.pokes
            )
            self._worlds.wanted.put(uid, want, by="remembered")
            if is_static(record.pod):
                self._worlds.line_up(uid, record.pod.full_name)

    def asking_again(self, part: str, /) -> list[str]:
        """Uids of pods that go on, and for which a part is to be made ready again, in their order."""
        pods = self._worlds.pods.snapshot().items()
        going = [(uid, one.value) for uid, one in pods if one.value.life is LifeState.SYNCING]
        return [uid for uid, one in going if part not in one.edition_ready]

    def rows(self, uid: str, record: PodRecord | None, /) -> Mapping[str, JsonCheckpoint | None]:
        """What is to be written of a pod; nothing where that stands there already."""
        key = row_key(POD_ROWS, uid)
        if record is None:
            self._manifests.pop(uid, None)
            return {key: None}
        if record.is_stored_as(self._worlds.pods.get(uid)):
            return {}
        form = self._manifests.get(uid)
        if form is None or form[0] is not record.pod:
            form = self._manifests[uid] = (record.pod, manifest_of(record.pod))
        return {key: record_to_checkpoint(record, self._now(), manifest=form[1])}
