"""From what was resolved of each pod to the desired world of volumes, which pods share."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from nodealloc.dsw_asw import Cancel, Done, Near, Outcome, Plan, Step, View, World
from nodealloc.volumes._model import DesiredVolume, Use, VolumeId, VolumeSpec
from nodealloc.volumes._populator import PodWish, Populated

__all__ = ["Wanting"]

_ME = "populator"


@attrs.frozen(kw_only=True)
class _Change:
    """What is to be wanted for a pod instead of what is wanted now."""

    uid: str
    before: Populated | None
    after: Populated | None


class Wanting:
    """Rules for the engine: what was resolved of a pod is desired, what the volumes know of it is actual.

    Args:
        wishes: Pods that are to have volumes.
        desired: The volumes' desired world; this domain alone writes it.
        on_settled: Is told of a pod whose wishes the desired world knows.
    """

    def __init__(
        self,
        wishes: World[str, PodWish],
        desired: World[VolumeId, DesiredVolume],
        on_settled: Callable[[str], None],
    ) -> None:
        self.wishes: Near[str, str, PodWish] = Near(wishes, lambda uid: [uid])
        self._desired = desired
        self._on_settled = on_settled

    def plan(self, view: View[str, Populated, Populated, _Change], /) -> Plan[Populated, _Change]:
        """Tell the volumes; what a pod that is gone had asked for is not mounted for its successor."""
        wish, resolved = view.of(self.wishes).get(view.key), view.want
        if wish is None:
            resolved = None
        elif resolved is None or resolved.wish.generation != wish.generation:
            return Plan()
        if resolved == view.have:
            return Plan()
        change = _Change(uid=view.key, before=view.have, after=resolved)
        return Plan(steps=[Step(scope=(view.key,), verb="want", detail=change)])

    def perform(self, step: Step[_Change], _cancel: Cancel, /) -> None:
        """Add and take away uses; a call or two for each volume, in memory."""
        uid, before, after = step.detail.uid, _by_id(step.detail.before), _by_id(step.detail.after)
        for spec, use in after.values():
            self._desired.alter(spec.id, _with_use(spec, use), by=_ME)
        for key in before.keys() - after.keys():
            self._desired.alter(key, _without_use(uid), by=_ME)
        self._on_settled(uid)

    def settled(
        self, have: Populated | None, step: Step[_Change], outcome: Outcome[None], /
    ) -> Populated | None:
        """What the volumes were told."""
        return step.detail.after if isinstance(outcome, Done) else have


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
