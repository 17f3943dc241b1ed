"""The planner: from one volume's desired and actual record to its next steps; pure."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence

import attrs

from nodealloc.dsw_asw import Step
from nodealloc.volumes._model import ActualVolume, DesiredVolume, PodMount, Use, VolumeId, VolumeSpec
from nodealloc.volumes._states import MountState, VolumeState

__all__ = ["Deed", "Verb", "is_right", "plan"]


class Verb(enum.Enum):
    """What can be done to a volume."""

    UNMOUNT = "unmount"
    ATTACH = "attach"
    STAGE = "stage"
    MOUNT = "mount"
    EXPAND = "expand"
    UNSTAGE = "unstage"
    DETACH = "detach"


_PHASE = {Verb.UNMOUNT: 0, Verb.UNSTAGE: 2, Verb.DETACH: 2}
"""What frees comes first, because another pod may wait for it; taking down comes last, because
a volume that somebody just asked for again needs none of it. Source: kubelet
``volumemanager/reconciler``."""


@attrs.frozen(kw_only=True)
class Deed:
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


def plan(
    key: VolumeId,
    desired: DesiredVolume | None,
    actual: ActualVolume | None,
    /,
    *,
    deadline_s: float | None = None,
) -> Sequence[Step[Deed]]:
    """Next steps for a volume.

    Unmount for pods that are known not to want it; then attach, stage, mount
    and grow for those who do; and when nobody is left, unstage and detach.

    Args:
        key: The volume.
        desired: Who wants it, or None.
        actual: What is there of it, or None.
        deadline_s: After which an operation counts as uncertain.
    """

    def step(verb: Verb, spec: VolumeSpec, use: Use | None = None) -> Step[Deed]:
        device = "" if actual is None else actual.device_path
        return Step(
            scope=(key,) if use is None else (key, use.pod_uid),
            verb=verb.value,
            detail=Deed(verb=verb, spec=spec, use=use, device_path=device),
            phase=_PHASE.get(verb, 1),
            deadline_s=deadline_s,
            subject=None if use is None else use.generation,
        )

    steps: list[Step[Deed]] = []
    if actual is not None:
        steps += [step(Verb.UNMOUNT, actual.spec, use) for use in _unwanted(desired, actual)]
    if desired is not None:
        steps += [step(verb, desired.spec, use) for verb, use in _bring_up(desired, actual)]
    elif actual is not None and not actual.mounts and not actual.held:
        staged = actual.state in (VolumeState.STAGED, VolumeState.MAYBE_STAGED)
        verb = Verb.UNSTAGE if staged else Verb.DETACH
        steps.append(step(verb, actual.spec))
    return steps


def _unwanted(desired: DesiredVolume | None, actual: ActualVolume) -> Iterator[Use]:
    for uid, mount in actual.mounts.items():
        use = None if desired is None else desired.uses.get(uid)
        if (use is None and not mount.held) or (use is not None and _is_anothers(mount, use)):
            yield Use(pod_uid=uid, generation=mount.generation, read_only=mount.read_only)


def _bring_up(desired: DesiredVolume, actual: ActualVolume | None) -> Iterator[tuple[Verb, Use | None]]:
    state = VolumeState.DETACHED if actual is None else actual.state
    spec = desired.spec
    if spec.needs_attach and state in (VolumeState.DETACHED, VolumeState.MAYBE_ATTACHED):
        yield Verb.ATTACH, None
        return
    if spec.needs_stage and state is not VolumeState.STAGED:
        yield Verb.STAGE, None
        return
    mounts: Mapping[str, PodMount] = {} if actual is None else actual.mounts
    lacking = [use for uid, use in desired.uses.items() if not is_right(mounts.get(uid), use)]
    for use in lacking:
        mount = mounts.get(use.pod_uid)
        if mount is None or not _is_anothers(mount, use):
            yield Verb.MOUNT, use
    if not lacking and actual is not None and _has_to_grow(spec, actual):
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
