"""From a volume's record and what came of a task to its next record; pure."""

from __future__ import annotations

from typing import TypeAlias, Union

import attrs

from nodealloc._typed import typed_on_error
from nodealloc.dsw_asw import Cancelled, Done, Outcome
from nodealloc.volumes._model import ActualVolume, PodMount, Use, VolumeSpec
from nodealloc.volumes._plan import Task
from nodealloc.volumes._ports import Grown, Staged
from nodealloc.volumes._states import (
    MOUNT_LIFE,
    VOLUME_LIFE,
    MountEvent,
    MountState,
    VolumeEvent,
    VolumeState,
)
from nodealloc.volumes._verbs import MOUNT_EVENTS, VOLUME_EVENTS, Verb

__all__ = ["Result", "doubted", "found", "lost", "settled"]

Result: TypeAlias = Union[Staged, Grown, None]
"""What performing a task returns."""


@typed_on_error
def settled(before: ActualVolume | None, task: Task, outcome: Outcome[Result], /) -> ActualVolume | None:
    """The volume's record after a task; None when nothing is left of the volume.

    A task that did not end well counts as unknown, also when its plugin says
    that it failed: what it left behind is found and taken down this way.
    """
    if isinstance(outcome, Cancelled) and outcome.began_s is None:
        return before
    record = ActualVolume(spec=task.spec) if before is None else before
    is_done = isinstance(outcome, Done)
    if task.use is not None:
        record = _mounted(record, task, task.use, is_done=is_done)
    elif task.verb is not Verb.EXPAND:
        done, unknown = VOLUME_EVENTS[task.verb]
        event = done if is_done else unknown
        record = attrs.evolve(record, state=VOLUME_LIFE.after(record.state, event))
    if task.verb not in (Verb.UNMOUNT, Verb.UNSTAGE, Verb.DETACH) and is_done:
        record = attrs.evolve(record, spec=task.spec)
    if isinstance(outcome, Done):
        record = _with_result(record, outcome.result)
    return None if _is_nothing(record) else record


def found(before: ActualVolume | None, spec: VolumeSpec, pod_uid: str, /) -> ActualVolume:
    """The record of a volume that was found at start: everything about it is unknown, and held."""
    record = ActualVolume(spec=spec, held=True) if before is None else before
    if spec.needs_stage:
        record = attrs.evolve(record, state=VOLUME_LIFE.after(record.state, VolumeEvent.FOUND))
    elif spec.needs_attach:
        record = attrs.evolve(record, state=VOLUME_LIFE.after(record.state, VolumeEvent.FOUND_UNSTAGED))
    if not pod_uid:
        return record
    mount = PodMount(state=MOUNT_LIFE.after(MountState.ABSENT, MountEvent.FOUND), held=True)
    return attrs.evolve(record, mounts={**record.mounts, pod_uid: mount})


def doubted(before: ActualVolume | None, pod_uid: str, /) -> ActualVolume | None:
    """The record when somebody else may have touched a pod's mount, or the stage behind it."""
    if before is None or pod_uid not in before.mounts:
        return before
    return lost(lost(before, pod_uid), "")


def lost(before: ActualVolume | None, pod_uid: str, /) -> ActualVolume | None:
    """The record when a pod's mount is gone, as far as anybody knows; with "", the stage's."""
    if before is None:
        return None
    if not pod_uid:
        return attrs.evolve(before, state=VOLUME_LIFE.after(before.state, VolumeEvent.LOST))
    mount = before.mounts.get(pod_uid)
    if mount is None:
        return before
    mount = attrs.evolve(mount, state=MOUNT_LIFE.after(mount.state, MountEvent.LOST))
    return attrs.evolve(before, mounts={**before.mounts, pod_uid: mount})


def _mounted(record: ActualVolume, task: Task, use: Use, *, is_done: bool) -> ActualVolume:
    mounts = dict(record.mounts)
    mount = mounts.pop(use.pod_uid, None) or PodMount(state=MountState.ABSENT)
    done, unknown = MOUNT_EVENTS[task.verb]
    state = MOUNT_LIFE.after(mount.state, done if is_done else unknown)
    if task.verb is Verb.MOUNT:
        mount = PodMount(
            state=state,
            generation=use.generation,
            read_only=use.read_only,
            revision=use.revision if is_done else mount.revision,
        )
    else:
        mount = attrs.evolve(mount, state=state)
    if state is not MountState.ABSENT:
        mounts[use.pod_uid] = mount
    return attrs.evolve(record, mounts=mounts)


def _with_result(record: ActualVolume, result: Result) -> ActualVolume:
    if isinstance(result, Staged):
        return attrs.evolve(
            record,
            device_path=result.device_path or record.device_path,
            size_bytes=record.size_bytes if result.size_bytes is None else result.size_bytes,
            growth_due=None,
        )
    if isinstance(result, Grown):
        return attrs.evolve(record, size_bytes=result.size_bytes, growth_due=result.due_bytes)
    return record


def _is_nothing(record: ActualVolume) -> bool:
    if record.mounts or record.held:
        return False
    if record.state is VolumeState.DETACHED:
        return True
    return record.state is VolumeState.ATTACHED and not record.spec.needs_attach
