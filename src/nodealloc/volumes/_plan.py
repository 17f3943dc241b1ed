"""The planner: from one volume's desired and actual record to its next steps; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from nodealloc import _attrs as attrs
from nodealloc._typed import typed_on_error
from nodealloc.dsw_asw import Step
from nodealloc.volumes._model import ActualVolume, DesiredVolume, PodMount, Use, VolumeId, VolumeSpec
from nodealloc.volumes._states import MountState, VolumeState
from nodealloc.volumes._verbs import Verb, towards

__all__ = ["Task", "is_right", "plan"]


_PHASE = {Verb.UNMOUNT: 0, Verb.UNSTAGE: 2, Verb.DETACH: 2}
"""What frees comes first, because another pod may wait for it; taking down comes last, because
a volume that somebody just asked for again needs none of it. Source: kubelet
``volumemanager/reconciler``."""


@attrs.frozen(kw_only=True)
class Task:
    """A step's detail: what to do, to which volume, for whom.

    Attributes:
        verb: What.
        spec: To which volume.
        use: For which pod; None where it concerns no single pod.
        device_path: Of the attached device, or "".
    """

    verb: Verb
    spec: VolumeSpec
    use: Use | None = None
    device_path: str = ""


_NOT_ATTACHED = frozenset({VolumeState.DETACHED, VolumeState.MAYBE_ATTACHED})
_ATTACHED = frozenset(VolumeState) - _NOT_ATTACHED
_STAGED = frozenset({VolumeState.STAGED})
_GONE = frozenset({VolumeState.DETACHED})


@typed_on_error
def plan(
    key: VolumeId,
    desired: DesiredVolume | None,
    actual: ActualVolume | None,
    /,
    *,
    deadline_s: float | None = None,
) -> Sequence[Step[Task]]:
    """Next steps for a volume.

    Unmount for pods that are known not to want it; then attach, stage, mount
    and grow for those who do; and when nobody is left, unstage and detach. Which
    of them comes next is read from `VOLUME_LIFE`.

    Args:
        key: The volume.
        desired: Who wants it, or None.
        actual: What is there of it, or None.
        deadline_s: After which an operation counts as uncertain.
    """
    device = "" if actual is None else actual.device_path
    tasks: list[Task] = []
    if actual is not None:
        tasks += [
            Task(verb=Verb.UNMOUNT, spec=actual.spec, use=use, device_path=device)
            for use in _unwanted(desired, actual)
        ]
    if desired is not None:
        tasks += [
            Task(verb=verb, spec=desired.spec, use=use, device_path=device)
            for verb, use in _bring_up(desired, actual)
        ]
    elif actual is not None and not actual.mounts and not actual.held:
        verb = towards(actual.state, _GONE, (Verb.UNSTAGE, Verb.DETACH)) or Verb.DETACH
        tasks.append(Task(verb=verb, spec=actual.spec, device_path=device))
    return [_step(key, task, deadline_s) for task in tasks]


def _step(key: VolumeId, task: Task, deadline_s: float | None) -> Step[Task]:
    use = task.use
    return Step(
        scope=(key,) if use is None else (key, use.pod_uid),
        verb=task.verb.value,
        detail=task,
        phase=_PHASE.get(task.verb, 1),
        deadline_s=deadline_s,
        # Another content may be what the one before it lacked.
        subject=None if use is None else (use.generation, use.revision),
    )


def _unwanted(desired: DesiredVolume | None, actual: ActualVolume) -> Iterator[Use]:
    for uid, mount in actual.mounts.items():
        use = None if desired is None else desired.uses.get(uid)
        if (use is None and not mount.held) or (use is not None and _is_anothers(mount, use)):
            yield Use(pod_uid=uid, generation=mount.generation, read_only=mount.read_only)


def _bring_up(desired: DesiredVolume, actual: ActualVolume | None) -> Iterator[tuple[Verb, Use | None]]:
    state = VolumeState.DETACHED if actual is None else actual.state
    spec = desired.spec
    first = towards(state, _ATTACHED, (Verb.ATTACH,)) if spec.needs_attach else None
    if first is None and spec.needs_stage:
        first = towards(state, _STAGED, (Verb.STAGE, Verb.DETACH))
    if first is not None:
        yield first, None
        return
    mounts: Mapping[str, PodMount] = {} if actual is None else actual.mounts
    lacking = [use for uid, use in desired.uses.items() if not is_right(mounts.get(uid), use)]
    for use in lacking:
        mount = mounts.get(use.pod_uid)
        if mount is None or not _is_anothers(mount, use):
            yield Verb.MOUNT, use
    # One that cannot be mounted keeps none of the others from what they wait for.
    is_there = not lacking or any(one.is_mounted for one in mounts.values())
    if is_there and actual is not None and _has_to_grow(spec, actual):
        yield Verb.EXPAND, None


def is_right(mount: PodMount | None, use: Use) -> bool:
    """Whether a pod has what it wants."""
    return (
        mount is not None
        and mount.state is MountState.MOUNTED
        and mount.revision == use.revision
        and mount.read_only == use.read_only
        and not _is_anothers(mount, use)
    )


def _is_anothers(mount: PodMount, use: Use) -> bool:
    """Whether it was mounted for an earlier pod of the same uid."""
    return mount.generation not in (0, use.generation)


def _has_to_grow(spec: VolumeSpec, actual: ActualVolume) -> bool:
    if not spec.can_expand or spec.size_bytes is None or actual.size_bytes is None:
        return False
    return spec.size_bytes > max(actual.size_bytes, actual.growth_due or 0)
