"""Hypothesis strategies for volumes: any desired and any actual record of one volume."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from nodealloc.volumes import Use, VolumeSpec
from nodealloc.volumes._model import ActualVolume, DesiredVolume, PodMount
from nodealloc.volumes._states import MountState, VolumeState

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

__all__ = ["actual_volumes", "desired_volumes", "volume_specs"]

_UIDS = ("pod-a", "pod-b", "pod-c")


def volume_specs(*, plugin: str = "example.com/disk", name: str = "disk") -> SearchStrategy[VolumeSpec]:
    """A shared volume that needs any mixture of attaching and staging."""
    return st.builds(
        VolumeSpec,
        plugin=st.just(plugin),
        name=st.just(name),
        size_bytes=st.none() | st.integers(0, 4),
        needs_attach=st.booleans(),
        needs_stage=st.booleans(),
        can_expand=st.booleans(),
        read_only=st.booleans(),
    )


@st.composite
def desired_volumes(draw: DrawFn, spec: VolumeSpec) -> DesiredVolume:
    """Some pods that want it, of any generation."""
    uids = draw(st.sets(st.sampled_from(_UIDS), min_size=1))
    return DesiredVolume(
        spec=spec,
        uses={
            uid: Use(
                pod_uid=uid,
                generation=draw(st.integers(1, 3)),
                read_only=draw(st.booleans()),
                revision=draw(st.sampled_from(["", "1", "2"])),
            )
            for uid in sorted(uids)
        },
    )


@st.composite
def actual_volumes(draw: DrawFn, spec: VolumeSpec) -> ActualVolume:
    """Any state that a volume of this kind can be in, mounts and what is held included."""
    states = [VolumeState.DETACHED]
    if spec.needs_attach:
        states += [VolumeState.MAYBE_ATTACHED, VolumeState.ATTACHED]
    if spec.needs_stage:
        states += [VolumeState.MAYBE_STAGED, VolumeState.STAGED]
    held = draw(st.booleans())
    uids = draw(st.sets(st.sampled_from(_UIDS)))
    return ActualVolume(
        spec=spec,
        state=draw(st.sampled_from(states)),
        size_bytes=draw(st.none() | st.integers(0, 4)),
        held=held,
        mounts={
            uid: PodMount(
                state=draw(st.sampled_from([MountState.MAYBE_MOUNTED, MountState.MOUNTED])),
                generation=draw(st.integers(0, 3)),
                read_only=draw(st.booleans()),
                revision=draw(st.sampled_from(["", "1"])),
                held=held and draw(st.booleans()),
            )
            for uid in sorted(uids)
        },
    )
