"""From what was resolved of each pod to the desired world of volumes, which pods share."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from typing_extensions import override

from nodealloc.dsw_asw import Passing, Summary, World
from nodealloc.volumes._model import DesiredVolume, Use, VolumeId, VolumeSpec
from nodealloc.volumes._populator import DesiredPod, Populated

__all__ = ["DesiredWorldWriter"]

_ME = "populator"
_log = logging.getLogger("nodealloc.volumes")


class DesiredWorldWriter(Passing):
    """One more part of the volume manager's passes: derives what volumes are wanted; all in memory.

    Args:
        pods: Pods that are to have volumes.
        populated: What was resolved of each.
        desired: The volumes' desired world; written here alone.
        on_known: Is told of a pod whose volumes the desired world knows.
        wake: Called when there is something to derive.
    """

    def __init__(
        self,
        pods: World[str, DesiredPod],
        populated: World[str, Populated],
        desired: World[VolumeId, DesiredVolume],
        on_known: Callable[[str], None],
        wake: Callable[[], None],
    ) -> None:
        self._desired_pods = pods
        self._populated = populated
        self._desired = desired
        self._on_known = on_known
        self._told: dict[str, Populated] = {}
        self._due: dict[str, None] = {}
        self._failed: dict[str, None] = {}
        # The group that the manager is a member of makes its pass, and so may whoever waits for mounts.
        self._lock = threading.Lock()
        self._watches = (pods.watch(wake), populated.watch(wake))

    @property
    @override
    def has_work(self) -> bool:
        """Whether a desired pod, or what was resolved of it, is another."""
        return bool(self._due) or any(map(len, self._watches))

    @override
    def begin_pass(self) -> None:
        """Add and take away uses; what could not be told in the last pass is tried in this one."""
        with self._lock:
            self._due.update(self._failed)
            self._failed.clear()
            for watch in self._watches:
                self._due.update(dict.fromkeys(watch.take()))
            while self._due:
                uid = next(iter(self._due))  # leaves only when it is done with: Ctrl-C forgets nobody
                try:
                    self._derive(uid)
                except Exception:  # noqa: BLE001 - one pod's fault must not stop the others
                    _log.exception("what pod %s wants of its volumes could not be told", uid)
                    self._failed[uid] = None
                del self._due[uid]

    @override
    def end_pass(self, _error: Exception | None, /) -> Summary:
        """Nothing is started here."""
        return self.glance()

    @override
    def abandon_pass(self) -> None:
        """What was told stays told."""

    def close(self) -> None:
        """Derive no more."""
        for watch in self._watches:
            watch.close()

    def _derive(self, uid: str) -> None:
        """What a pod that is gone had asked for is not mounted for its successor."""
        desired, after, before = self._desired_pods.get(uid), self._populated.get(uid), self._told.get(uid)
        if desired is None:
            after = None
        elif after is None or after.desired.generation != desired.generation:
            return
        if after is before:
            return
        was, now = _by_id(before), _by_id(after)
        for spec, use in now.values():
            self._desired.alter(spec.id, _with_use(spec, use), by=_ME)
        for key in [key for key in was if key not in now]:
            self._desired.alter(key, _without_use(uid), by=_ME)
        self._on_known(uid)
        if after is None:
            del self._told[uid]
        else:
            self._told[uid] = after


def _by_id(populated: Populated | None) -> Mapping[VolumeId, tuple[VolumeSpec, Use]]:
    return {} if populated is None else {one[0].id: one for one in populated.resolved.values()}


def _with_use(spec: VolumeSpec, use: Use) -> Callable[[DesiredVolume | None], DesiredVolume]:
    def change(before: DesiredVolume | None) -> DesiredVolume:
        uses: Mapping[str, Use] = {} if before is None else before.uses
        return DesiredVolume(spec=spec, uses={**uses, use.pod_uid: use})

    return change


def _without_use(uid: str) -> Callable[[DesiredVolume | None], DesiredVolume | None]:
    def change(before: DesiredVolume | None) -> DesiredVolume | None:
        if before is None or uid not in before.uses:
            return before
        uses = {other: use for other, use in before.uses.items() if other != uid}
        return DesiredVolume(spec=before.spec, uses=uses) if uses else None

    return change
