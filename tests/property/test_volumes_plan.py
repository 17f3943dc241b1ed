"""Laws of the planner and of settling, from any record to any other; no engine, no machine."""

from __future__ import annotations

from random import Random

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodealloc.dsw_asw import Done, Failed, Outcome
from nodealloc.testing.strategies.volumes import actual_volumes, desired_volumes, volume_specs
from nodealloc.volumes import MOUNT_LIFE, VOLUME_LIFE, Grown, Staged, Use, VolumeSpec, plan, settled
from nodealloc.volumes._model import ActualVolume, DesiredVolume
from nodealloc.volumes._plan import Task
from nodealloc.volumes._settle import Result, lost
from nodealloc.volumes._settle import found as found_at_start
from nodealloc.volumes._states import MountEvent, MountState, VolumeEvent, VolumeState
from nodealloc.volumes._verbs import Verb

KEY = "example.com/disk/disk"


@st.composite
def records(draw: st.DrawFn) -> tuple[DesiredVolume | None, ActualVolume | None]:
    """Any two records of one volume."""
    spec = draw(volume_specs())
    desired = draw(st.none() | desired_volumes(spec))
    return desired, draw(st.none() | actual_volumes(spec))


def well(task: Task) -> Outcome[Result]:
    """What a machine that obeys returns."""
    if task.verb is Verb.EXPAND:
        return Done(Grown(size_bytes=task.spec.size_bytes or 0))
    if task.verb in (Verb.ATTACH, Verb.STAGE):
        return Done(Staged(device_path="/dev/disk"))
    return Done(None)


@given(records())
def test_what_is_wanted_or_held_is_never_unmounted(
    found: tuple[DesiredVolume | None, ActualVolume | None],
) -> None:
    """Except for a pod of an earlier generation; and nothing is unstaged or detached under a mount."""
    desired, actual = found
    for step in plan(KEY, desired, actual):
        task = step.detail
        if task.verb is Verb.UNMOUNT:
            assert actual is not None
            assert task.use is not None
            mount = actual.mounts[task.use.pod_uid]
            use = None if desired is None else desired.uses.get(task.use.pod_uid)
            if use is None:
                assert not mount.held
            else:
                assert mount.generation not in (0, use.generation)
        if task.verb in (Verb.UNSTAGE, Verb.DETACH):
            assert desired is None
            assert actual is not None
            assert not actual.mounts
            assert not actual.held


@given(records())
def test_phases_rise_and_names_are_unique(found: tuple[DesiredVolume | None, ActualVolume | None]) -> None:
    """Unmount before mount before taking down; no step twice."""
    steps = plan(KEY, *found)
    assert [step.phase for step in steps] == sorted(step.phase for step in steps)
    assert len({(step.scope, step.verb) for step in steps}) == len(steps)


@given(records(), st.randoms(use_true_random=False))
def test_a_machine_that_obeys_gets_everything(
    found: tuple[DesiredVolume | None, ActualVolume | None], random: Random
) -> None:
    """Steps done in any order end in an empty plan, with every wish fulfilled and nothing beside."""
    desired, actual = found
    if actual is not None:
        mounts = {uid: attrs.evolve(mount, held=False) for uid, mount in actual.mounts.items()}
        actual = attrs.evolve(actual, mounts=mounts, held=False)
    for _ in range(40):
        steps = plan(KEY, desired, actual)
        if not steps:
            break
        task = random.choice(list(steps)).detail
        actual = settled(actual, task, well(task))
    assert plan(KEY, desired, actual) == []
    if desired is None:
        assert actual is None
        return
    assert actual is not None
    assert set(actual.mounts) == set(desired.uses)
    assert all(mount.state is MountState.MOUNTED for mount in actual.mounts.values())


@given(records())
def test_what_failed_is_never_forgotten(found: tuple[DesiredVolume | None, ActualVolume | None]) -> None:
    """After a failed task the record still holds what may be there."""
    desired, actual = found
    for step in plan(KEY, desired, actual):
        after = settled(actual, step.detail, Failed(OSError("lost")))
        if step.detail.verb is Verb.EXPAND:
            assert after == actual
            continue
        assert after is not None or (step.detail.verb is Verb.DETACH and actual is not None)
        if step.detail.use is not None and after is not None:
            assert after.mounts[step.detail.use.pod_uid].state is MountState.MAYBE_MOUNTED


@given(records())
def test_what_is_seen_is_told_as_what_it_is(found: tuple[DesiredVolume | None, ActualVolume | None]) -> None:
    """A stage or a mount that somebody took off is lost; nothing that nobody did is said to have failed."""
    _, actual = found
    for uid in () if actual is None else actual.mounts:
        after = lost(lost(actual, uid), "")
        assert actual is not None
        assert after is not None
        assert after.state is VOLUME_LIFE.after(actual.state, VolumeEvent.LOST)
        mount = after.mounts[uid].state
        assert mount is MOUNT_LIFE.after(actual.mounts[uid].state, MountEvent.LOST)
        assert mount is not MountState.MOUNTED
        assert after.state is not VolumeState.STAGED


@pytest.mark.parametrize("attach", [False, True])
@pytest.mark.parametrize("stage", [False, True])
@pytest.mark.parametrize("state", VolumeState)
def test_the_table_leads_up_and_down_from_everywhere(
    state: VolumeState, *, attach: bool, stage: bool
) -> None:
    """Whatever is known of a volume, a few verbs end where pods can have it, and where nothing is left."""
    spec = VolumeSpec(plugin="p", name="v", needs_attach=attach, needs_stage=stage)
    wanted = DesiredVolume(spec=spec, uses={"u": Use(pod_uid="u", generation=1)})
    for desired in (wanted, None):
        actual: ActualVolume | None = ActualVolume(spec=spec, state=state)
        verbs: list[Verb] = []
        while steps := plan(KEY, desired, actual):
            (step,) = steps
            verbs.append(step.detail.verb)
            actual = settled(actual, step.detail, well(step.detail))
            assert len(verbs) <= 4, verbs
        assert (actual is None) is (desired is None)


def test_a_volume_found_at_start_is_no_failed_attach() -> None:
    """Of one that is attached and never staged, the worst case is that it is attached."""
    spec = VolumeSpec(plugin="p", name="v", needs_attach=True)
    record = found_at_start(None, spec, "")
    assert record.state is VolumeState.MAYBE_ATTACHED
    rows = {(row.state, row.event) for row in VOLUME_LIFE.rows if row.to is VolumeState.MAYBE_ATTACHED}
    assert (VolumeState.DETACHED, VolumeEvent.FOUND_UNSTAGED) in rows
