"""The populator: from pods to desired volumes, each pod by itself."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from nodealloc import _attrs as attrs
from nodealloc.dsw_asw import Cancel, Clock, Done, Failed, Outcome, Plan, Step, View, World
from nodealloc.errors import NodeallocError
from nodealloc.podspec import Pod, Volume, VolumeUse
from nodealloc.volumes._abilities import Abilities
from nodealloc.volumes._errors import InvalidVolumeError, PodVolumesError
from nodealloc.volumes._model import ActualVolume, Use, VolumeId, VolumeMode, VolumeSpec
from nodealloc.volumes._paths import check_names
from nodealloc.volumes._ports import ClaimResolver

__all__ = ["CLAIM", "DesiredPod", "Populated", "Populator", "Resolution"]

CLAIM = "persistentVolumeClaim"
"""Kind of a pod's volume that a `ClaimResolver` turns into a volume."""
_SOONEST_S: Final = 1.0
"""After which a volume is looked at again at the earliest: what is due now may not be there yet."""


@attrs.frozen(kw_only=True)
class DesiredPod:
    """A pod that is to have its volumes.

    Attributes:
        pod: As its source has it.
        generation: Another one each time the pod arrives anew.
        refresh: Another one whenever its volumes are to be looked at again.
    """

    pod: Pod
    generation: int
    refresh: int = 0


@attrs.frozen(kw_only=True)
class Populated:
    """What came of a pod that is to have its volumes.

    Attributes:
        desired: The pod as it was looked at.
        resolved: The pod's name of each volume to the volume and how the pod uses it.
        errors: The pod's name of each volume that could not be resolved, and why.
        again_at_s: When to look again, since content changes untold; None for never.
    """

    desired: DesiredPod
    resolved: Mapping[str, tuple[VolumeSpec, Use]] = attrs.field(factory=dict[str, tuple[VolumeSpec, Use]])
    errors: Mapping[str, Exception] = attrs.field(factory=dict[str, Exception])
    again_at_s: float | None = None

    @property
    def volumes(self) -> Mapping[str, VolumeId]:
        """The pod's name of each volume to the volume's id."""
        return {name: spec.id for name, (spec, _) in self.resolved.items()}


@attrs.frozen(kw_only=True)
class Resolution:
    """What looking at a pod's volumes gave.

    Attributes:
        volumes: The pod's name of each volume to the volume and how the pod uses it.
        errors: The pod's name of each volume that failed, and why.
        again_at_s: When to look again; None for never.
    """

    volumes: Mapping[str, tuple[VolumeSpec, Use]]
    errors: Mapping[str, Exception]
    again_at_s: float | None


class Populator:
    """Rules for the engine: a pod is desired, what was populated of it is actual.

    One pod is one key, so a slow claim of one pod delays no other, and a pod's
    errors and back-off are its own and die with it.
    """

    def __init__(
        self,
        plugins: Mapping[str, Abilities],
        claims: ClaimResolver | None,
        actual: World[VolumeId, ActualVolume],
        clock: Clock,
    ) -> None:
        self._plugins = plugins
        self._by_kind = {kind: plugin for plugin in plugins.values() for kind in plugin.plugin.kinds}
        self._claims = claims
        self._actual = actual
        self._clock = clock

    def plan(self, view: View[str, DesiredPod, Populated, DesiredPod], /) -> Plan[Populated, DesiredPod]:
        """Resolve a new or changed pod, or one with errors; forget one that is gone."""
        desired, have = view.want, view.have
        if desired is None:
            return Plan(have=None)
        if have is not None and have.desired == desired and not have.errors:
            due_s = have.again_at_s
            if due_s is None or view.now_s < due_s:
                return Plan(again_at_s=due_s)
        # Who asks for another look knows of a change: an earlier failure does not hold it off.
        subject = (desired.generation, desired.refresh)
        step = Step(scope=(view.key,), verb="resolve", detail=desired, phase=1, subject=subject)
        return Plan(steps=[step])

    def perform(self, step: Step[DesiredPod], _cancel: Cancel, /) -> Resolution | Failed[Resolution]:
        """Look at each volume that the pod's containers use."""
        desired = step.detail
        volumes: dict[str, tuple[VolumeSpec, Use]] = {}
        errors: dict[str, Exception] = {}
        fresh_s: list[float] = []
        for name in _used(desired.pod):
            try:
                volumes[name] = self._resolve(desired, name)
                fresh_s += self._fresh_s(volumes[name][0])
            except NodeallocError as error:
                errors[name] = error
            except Exception as error:  # noqa: BLE001 - a claim resolver's fault is that volume's alone
                errors[name] = InvalidVolumeError(name, f"resolving it raised {error!r}")
        again_at_s = self._clock.monotonic_s() + max(min(fresh_s), _SOONEST_S) if fresh_s else None
        resolution = Resolution(volumes=volumes, errors=errors, again_at_s=again_at_s)
        return (
            Failed(PodVolumesError(desired.pod.full_name, errors), known=resolution) if errors else resolution
        )

    def settled(
        self, have: Populated | None, step: Step[DesiredPod], outcome: Outcome[Resolution], /
    ) -> Populated | None:
        """What was resolved, also when other volumes failed."""
        match outcome:
            case Done(result=Resolution() as found) | Failed(known=Resolution() as found):
                resolved = dict(found.volumes)
                if have is not None and have.desired.generation == step.detail.generation:
                    # One that fails now stays as it was, and one that an edit took out stays until the pod
                    # has ended: containers that were made before it may run on it.
                    resolved = {**have.resolved, **resolved}
                return Populated(
                    desired=step.detail, resolved=resolved, errors=found.errors, again_at_s=found.again_at_s
                )
            case _:
                return have

    def _resolve(self, desired: DesiredPod, name: str) -> tuple[VolumeSpec, Use]:
        pod = desired.pod
        volume = _named(pod, name)
        spec = self._spec(pod, volume)
        check_names(pod.uid, spec.name)
        if _is_block(pod, name) is not (spec.mode is VolumeMode.BLOCK):
            remedy = "use volumeDevices" if spec.mode is VolumeMode.BLOCK else "use volumeMounts"
            raise InvalidVolumeError(name, f"its mode is {spec.mode.value}; {remedy}")
        before = self._actual.get(spec.id)
        had = None if before is None else before.spec.size_bytes
        if had is not None and spec.size_bytes is not None and spec.size_bytes < had:
            raise InvalidVolumeError(
                name, f"{spec.size_bytes} bytes wanted where {had} are given; volumes only grow"
            )
        plugin = self._plugins.get(spec.plugin)
        revise = None if plugin is None else plugin.revise
        revision = "" if revise is None else revise.revision(spec)
        use = Use(
            pod_uid=pod.uid,
            generation=desired.generation,
            volume=name,
            read_only=spec.read_only or volume.spec.get("readOnly") is True,
            revision=revision,
            fs_group=None if pod.security_context is None else pod.security_context.fs_group,
        )
        return spec, use

    def _fresh_s(self, spec: VolumeSpec) -> list[float]:
        """After how long this volume has to be looked at anew; empty for never."""
        plugin = self._plugins.get(spec.plugin)
        fresh_s = None if plugin is None or plugin.age is None else plugin.age.fresh_s(spec)
        return [fresh_s] if fresh_s is not None and math.isfinite(fresh_s) else []

    def _spec(self, pod: Pod, volume: Volume) -> VolumeSpec:
        if volume.kind == CLAIM and self._claims is not None:
            return self._claims.resolve(pod, volume)
        plugin = self._by_kind.get(volume.kind)
        if plugin is None:
            known = ", ".join(sorted([*self._by_kind, *([CLAIM] if self._claims else [])])) or "none"
            raise InvalidVolumeError(volume.name, f"no plugin serves {volume.kind!r}; served are: {known}")
        return plugin.plugin.spec(pod, volume)


def _used(pod: Pod) -> list[str]:
    """Volumes that containers use; one that nobody uses is not mounted. Source: kubelet ``volumemanager``."""
    return list(dict.fromkeys(use.name for use in _uses(pod)))


def _uses(pod: Pod) -> Iterator[VolumeUse]:
    containers = (*pod.all_containers, *pod.ephemeral_containers)
    return (use for one in containers for use in one.volumes)


def _named(pod: Pod, name: str) -> Volume:
    volumes = [volume for volume in pod.volumes if volume.name == name]
    if not volumes:
        defined = ", ".join(volume.name for volume in pod.volumes) or "none"
        raise InvalidVolumeError(
            name, f"a container uses it, and the pod does not define it; defined are: {defined}"
        )
    if len(volumes) > 1:
        raise InvalidVolumeError(name, f"{len(volumes)} volumes have this name; give each its own")
    return volumes[0]


def _is_block(pod: Pod, name: str) -> bool:
    """Whether its containers use it as a device."""
    blocks = {use.block for use in _uses(pod) if use.name == name}
    if len(blocks) > 1:
        raise InvalidVolumeError(name, "used as a device and as a mount; use it one way")
    return blocks == {True}
