"""The populator: from pods to desired volumes, each pod by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from nodealloc.dsw_asw import Done, Failed, Outcome, Step, World
from nodealloc.errors import NodeallocError
from nodealloc.podspec import Pod, Volume
from nodealloc.volumes._abilities import Abilities
from nodealloc.volumes._errors import InvalidVolumeError, PodVolumesError
from nodealloc.volumes._model import ActualVolume, DesiredVolume, Use, VolumeId, VolumeMode, VolumeSpec
from nodealloc.volumes._paths import check_names
from nodealloc.volumes._ports import ClaimResolver

__all__ = ["CLAIM", "PodWish", "Populated", "Populator"]

CLAIM = "persistentVolumeClaim"
"""Kind of a pod's volume that a `ClaimResolver` turns into a volume."""

_ME = "populator"


@attrs.frozen(kw_only=True)
class PodWish:
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
    """What came of a wish.

    Attributes:
        wish: The wish that was looked at.
        volumes: The pod's name of each volume to the volume's id.
        errors: The pod's name of each volume that could not be resolved, and why.
    """

    wish: PodWish
    volumes: Mapping[str, VolumeId] = attrs.field(factory=dict[str, VolumeId])
    errors: Mapping[str, Exception] = attrs.field(factory=dict[str, Exception])


@attrs.frozen(kw_only=True)
class Resolution:
    """What looking at a pod's volumes gave.

    Attributes:
        volumes: The pod's name of each volume to the volume and how the pod uses it.
        errors: The pod's name of each volume that failed, and why.
    """

    volumes: Mapping[str, tuple[VolumeSpec, Use]]
    errors: Mapping[str, Exception]


class _UnresolvedError(PodVolumesError):
    """Carries what could be resolved beside what could not."""

    def __init__(self, pod: str, resolution: Resolution) -> None:
        super().__init__(pod, resolution.errors)
        self.resolution = resolution


@attrs.frozen(kw_only=True)
class _Task:
    uid: str
    wish: PodWish | None


class Populator:
    """Rules for the engine: a pod's wish is desired, what was populated of it is actual.

    One pod is one key, so a slow claim of one pod delays no other, and a pod's
    errors and back-off are its own and die with it.
    """

    def __init__(
        self,
        plugins: Mapping[str, Abilities],
        claims: ClaimResolver | None,
        *,
        wishes: World[str, PodWish],
        populated: World[str, Populated],
        desired: World[VolumeId, DesiredVolume],
        actual: World[VolumeId, ActualVolume],
        on_settled: Callable[[str], None],
    ) -> None:
        self._plugins = plugins
        self._by_kind = {kind: plugin for plugin in plugins.values() for kind in plugin.plugin.kinds}
        self._claims = claims
        self._wishes = wishes
        self._populated = populated
        self._desired = desired
        self._actual = actual
        self._on_settled = on_settled

    def plan(self, key: str, desired: PodWish | None, actual: Populated | None, /) -> Sequence[Step[_Task]]:
        """Resolve a new or changed wish, or one with errors; forget one that is gone."""
        if desired is None:
            return [Step(scope=(key,), verb="forget", detail=_Task(uid=key, wish=None))]
        if actual is not None and actual.wish == desired and not actual.errors:
            return []
        task = _Task(uid=key, wish=desired)
        return [Step(scope=(key,), verb="resolve", detail=task, phase=1, subject=desired.generation)]

    def perform(self, step: Step[_Task], /) -> Resolution | None:
        """Look at each volume that the pod's containers use."""
        wish = step.detail.wish
        if wish is None:
            return None
        volumes: dict[str, tuple[VolumeSpec, Use]] = {}
        errors: dict[str, Exception] = {}
        for name in _used(wish.pod):
            try:
                volumes[name] = self._resolve(wish, name)
            except NodeallocError as error:
                errors[name] = error
            except Exception as error:  # noqa: BLE001 - a claim resolver's fault is that volume's alone
                errors[name] = InvalidVolumeError(name, f"resolving it raised {error!r}")
        resolution = Resolution(volumes=volumes, errors=errors)
        if errors:
            raise _UnresolvedError(wish.pod.full_name, resolution)
        return resolution

    def settle(self, step: Step[_Task], outcome: Outcome[Resolution | None], /) -> None:
        """Put what was resolved into the desired world, also when other volumes failed."""
        uid, wish = step.detail.uid, step.detail.wish
        now = self._wishes.get(uid)
        if wish is not None and (now is None or now.generation != wish.generation):
            # The pod that asked is gone, so what it asked for must not be mounted for its successor.
            return
        if isinstance(outcome, Done):
            if wish is None or outcome.result is None:
                self._forget(uid)
            else:
                self._apply(uid, wish, outcome.result)
        elif isinstance(outcome, Failed) and isinstance(outcome.error, _UnresolvedError) and wish is not None:
            self._apply(uid, wish, outcome.error.resolution)
        self._on_settled(uid)

    def _apply(self, uid: str, wish: PodWish, resolution: Resolution) -> None:
        before = self._populated.get(uid)
        ids = {name: spec.id for name, (spec, _) in resolution.volumes.items()}
        for spec, use in resolution.volumes.values():
            self._desired.alter(spec.id, _with_use(spec, use), by=_ME)
        if before is not None:
            # A volume that fails now stays as it was: its pod may be running.
            kept = {name: key for name, key in before.volumes.items() if name in resolution.errors}
            ids = {**kept, **ids}
            for key in set(before.volumes.values()) - set(ids.values()):
                self._desired.alter(key, _without_use(uid), by=_ME)
        self._populated.put(uid, Populated(wish=wish, volumes=ids, errors=resolution.errors), by=_ME)

    def _forget(self, uid: str) -> None:
        before = self._populated.get(uid)
        if before is not None:
            for key in before.volumes.values():
                self._desired.alter(key, _without_use(uid), by=_ME)
        self._populated.drop(uid, by=_ME)

    def _resolve(self, wish: PodWish, name: str) -> tuple[VolumeSpec, Use]:
        pod = wish.pod
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
            generation=wish.generation,
            volume=name,
            read_only=spec.read_only or volume.spec.get("readOnly") is True,
            revision=revision,
        )
        return spec, use

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
    return list(dict.fromkeys(use.name for one in pod.all_containers for use in one.volumes))


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
    blocks = {use.block for one in pod.all_containers for use in one.volumes if use.name == name}
    if len(blocks) > 1:
        raise InvalidVolumeError(name, "used as a device and as a mount; use it one way")
    return blocks == {True}


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
