"""The engines behind `VolumeManager`: one resolves what pods ask for, one mounts it."""

from __future__ import annotations

from typing import TypeAlias

from nodealloc import _attrs as attrs
from nodealloc.dsw_asw import BackOff, Clock, Executor, Observer, Reconciler, World
from nodealloc.volumes._domain import VolumeDomain
from nodealloc.volumes._model import ActualVolume, DesiredVolume, VolumeId
from nodealloc.volumes._plan import Task
from nodealloc.volumes._populator import DesiredPod, Populated, Populator, Resolution
from nodealloc.volumes._settle import Result

__all__ = ["EngineParts", "MountingEngine", "PopulatingEngine", "mounting_engine", "populating_engine"]

PopulatingEngine: TypeAlias = Reconciler[str, DesiredPod, Populated, DesiredPod, Resolution]
MountingEngine: TypeAlias = Reconciler[VolumeId, DesiredVolume, ActualVolume, Task, Result]


@attrs.frozen(kw_only=True, eq=False)
class EngineParts:
    """What both engines run on."""

    executor: Executor
    clock: Clock
    back_off: BackOff | None
    observer: Observer | None


def populating_engine(
    populator: Populator,
    pods: World[str, DesiredPod],
    populated: World[str, Populated],
    shared: EngineParts,
) -> PopulatingEngine:
    """Resolves the volumes of each pod, without a resync: whoever knows of a change says so."""
    return Reconciler(
        populator,
        desired=pods,
        actual=populated,
        executor=shared.executor,
        clock=shared.clock,
        back_off=shared.back_off,
        resync_s=None,
        observer=shared.observer,
    )


def mounting_engine(
    domain: VolumeDomain,
    desired: World[VolumeId, DesiredVolume],
    actual: World[VolumeId, ActualVolume],
    shared: EngineParts,
    *,
    resync_s: float | None,
) -> MountingEngine:
    """Attaches, stages and mounts volumes, and takes them off."""
    return Reconciler(
        domain,
        desired=desired,
        actual=actual,
        executor=shared.executor,
        clock=shared.clock,
        back_off=shared.back_off,
        resync_s=resync_s,
        observer=shared.observer,
    )
