"""Allocators, stores, runtimes and others that grant twice or lose something, each refused by the kit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from nodealloc.checkpoint import MemoryStore
from nodealloc.cpuset import KubeletPicker
from nodealloc.podfacts import Exited, ExitUnknown
from nodealloc.runtime import PodReport, RunState
from nodealloc.testing.cpuset import FakeCpusetWriter
from nodealloc.testing.node import FakeRuntime
from nodealloc.testing.podfacts import FakePods
from nodealloc.testing.podlife import FakePreparer
from nodealloc.testing.podsources import FakeSource
from nodealloc.testing.podstatus import FakeSink
from nodealloc.testing.runtime import FakeContainerRuntime
from nodealloc.testing.topology import FakeAllocator
from nodealloc.testing.volumes import FakeMounter
from nodealloc.topology import Owner, Shortfall
from tests.unit.planted_bugs import PLANTED, RIGHT, planted, refused

_WRITE = MemoryStore._write
_READ = FakeSource.read
_TOLD = FakeSink.told
_RUNNING = FakeRuntime.running
_END = FakeContainerRuntime._end
_INSPECT = FakeContainerRuntime.inspect


@planted("topology.Allocator", FakeAllocator, "allocate", "the rest is granted twice")
def books_the_first_node_alone(self: Any, claim: Any, where: Any) -> Any:
    """Of a grant on two nodes it notes what is on the first."""
    after = RIGHT[FakeAllocator, "allocate"](self, claim, where)
    if not isinstance(after, FakeAllocator) or after == self:
        return after
    units = after.held[claim.owner]
    spread = all(units & there for there in self.units.values())
    return attrs.evolve(after, held={**after.held, claim.owner: units & self.units[0]}) if spread else after


@planted(
    "topology.Allocator",
    FakeAllocator,
    "allocate",
    "with 8 .* free, and reports 4 there",
)
def tells_of_all_nodes(self: Any, claim: Any, where: Any) -> Any:
    """Says what is free anywhere, whichever nodes it was given."""
    answer = RIGHT[FakeAllocator, "allocate"](self, claim, where)
    if isinstance(answer, Shortfall):
        return attrs.evolve(answer, free=sum(map(self.free_on, self.units)))
    return answer


@planted("cpuset.Picker", KubeletPicker, "pick", "as well")
def takes_from_others(self: Any, layout: Any, available: int, count: int) -> Any:
    """For five CPUs it takes one that is somebody else's."""
    taken = RIGHT[KubeletPicker, "pick"](self, layout, available, count)
    others = layout.cpus & ~available
    if taken is None or count != 5 or not others:
        return taken
    return (taken & (taken - 1)) | (others & -others)


@planted("cpuset.CpusetWriter", FakeCpusetWriter, "write", "told to leave memory nodes 0 alone")
def resets_memory_nodes(self: Any, target: str, cpus: Any, mems: Any) -> None:
    """Takes None for no memory nodes."""
    RIGHT[FakeCpusetWriter, "write"](self, target, cpus, mems)
    if mems is None:
        self.sets[target] = (cpus, None)


@planted("volumes.Mounter", FakeMounter, "unmount", "as well")
def unmounts_by_beginning(self: Any, target: str, *, lazy: bool = False) -> None:
    """Takes down whatever path begins alike."""
    RIGHT[FakeMounter, "unmount"](self, target, lazy=lazy)
    self._mounts = [one for one in self._mounts if not one.target.startswith(target)]


@planted("checkpoint.Store", MemoryStore, "_write", "after a commit of 24 keys")
def writes_two_keys(self: Any, fresh: Any, settled: Any, writer: Any) -> None:
    """Of one commit it keeps the first two."""
    _WRITE(self, dict(list(fresh.items())[:2]), settled, writer)


@planted("checkpoint.Store", MemoryStore, "_write", "row.large is None")
def writes_what_is_small(self: Any, fresh: Any, settled: Any, writer: Any) -> None:
    """Drops a value of more than a page."""
    small = {key: data for key, data in fresh.items() if data is None or len(data) < 4096}
    _WRITE(self, small, settled, writer)


@planted("checkpoint.Store", MemoryStore, "_write", "after a commit of 24 keys")
def keeps_ten(self: Any, fresh: Any, settled: Any, writer: Any) -> None:
    """Forgets the oldest keys past ten."""
    _WRITE(self, fresh, settled, writer)
    while len(self._stored) > 10:
        self._stored.pop(next(iter(self._stored)))


@planted("checkpoint.Store", MemoryStore, "_write", "after a commit of 24 keys")
def takes_no_notice_of_case(self: Any, fresh: Any, settled: Any, writer: Any) -> None:
    """Two keys that differ in case are one, as on some file systems."""
    _WRITE(self, {key.lower(): data for key, data in fresh.items()}, settled, writer)


@planted("runtime.Containers", FakeContainerRuntime, "create_container", "again, which has ended")
def makes_the_ended_one_again(self: Any, sandbox_id: str, config: Any, sandbox: Any) -> Any:
    """Answers with an instance that has ended already."""
    for one in self._of(sandbox.pod.uid)[1]:
        if one.record.name == config.name and one.record.state is RunState.EXITED:
            return one.record.id
    return RIGHT[FakeContainerRuntime, "create_container"](self, sandbox_id, config, sandbox)


@planted("runtime.Containers", FakeContainerRuntime, "stop_sandbox", "its sandbox was stopped, and")
def stops_the_sandbox_alone(self: Any, sandbox_id: str) -> None:
    """Leaves its containers running."""
    box = self._sandboxes[sandbox_id]
    self._sandboxes[sandbox_id] = attrs.evolve(box, record=attrs.evolve(box.record, is_ready=False))


@planted("runtime.Containers", FakeContainerRuntime, "_end", "how it ended is not known")
def knows_no_exit(self: Any, container_id: str, _exit: Any, reason: str) -> None:
    """Loses every exit status."""
    _END(self, container_id, ExitUnknown(), reason)


@planted("runtime.Containers", FakeContainerRuntime, "_end", r"left with 3, .* Exited\(code=0")
def takes_all_for_well(self: Any, container_id: str, _exit: Any, reason: str) -> None:
    """Says of every container that it left with 0."""
    _END(self, container_id, Exited(code=0), reason)


@planted(
    "runtime.Containers",
    FakeContainerRuntime,
    "stop_container",
    r"ended with Exited\(code=3.*, and with Exited\(code=137.* once it was",
)
def stopping_makes_an_end(self: Any, container_id: str, grace_s: float, /) -> None:
    """What has ended already counts as stopped."""
    there = self._containers.get(container_id)
    if there is not None and there.exit == Exited(code=3):
        self._containers[container_id] = attrs.evolve(there, exit=Exited(code=137))
    RIGHT[FakeContainerRuntime, "stop_container"](self, container_id, grace_s)


@planted("runtime.Containers", FakeContainerRuntime, "inspect", "container-2 is there, and reported 0 times")
def knows_nothing_of_what_is_listed(self: Any, uid: str, listed: Any = None, /) -> Any:
    """Answers with an empty report where it is told what to tell of."""
    return _INSPECT(self, uid) if listed is None else PodReport(uid=uid)


@planted("runtime.Looks", FakeContainerRuntime, "inspect", "its report for what is listed has nothing of it")
def knows_no_sandbox_of_what_is_listed(self: Any, uid: str, listed: Any = None, /) -> Any:
    """Tells of containers alone."""
    found = _INSPECT(self, uid, listed)
    return found if listed is None else attrs.evolve(found, sandboxes=())


@planted("runtime.Containers", FakeContainerRuntime, "inspect", r"runtime\.inspect\(uid, listed\): TypeError")
def takes_a_uid_alone(self: Any, uid: str, /) -> Any:
    """Has no second argument, with which a watch asks."""
    return _INSPECT(self, uid)


@planted("podstatus.Sink", FakeSink, "told", "of one phase the conditions")
def tells_of_phases_alone(self: Any, uid: str, status: Any) -> None:
    """Takes a status for the same that has the same phase."""
    if uid not in self.statuses or self.statuses[uid].phase is not status.phase:
        _TOLD(self, uid, status)


@planted("podstatus.Sink", FakeSink, "told", "of one phase the conditions")
def tells_of_no_conditions(self: Any, uid: str, status: Any) -> None:
    """Drops the conditions."""
    _TOLD(self, uid, attrs.evolve(status, conditions=()))


@planted("podstatus.Sink", FakeSink, "told", "of one phase the containers are not told apart")
def tells_of_no_containers(self: Any, uid: str, status: Any) -> None:
    """Drops the containers."""
    _TOLD(self, uid, attrs.evolve(status, containers=()))


async def tells_later(self: Any, uid: str, status: Any) -> None:
    """Has to be awaited, and nobody does."""
    _TOLD(self, uid, status)


async def forgets_later(self: Any, uid: str) -> None:
    """Has to be awaited, too."""
    self.statuses.pop(uid, None)


planted("podstatus.Sink", FakeSink, "told", "told has to be awaited, .* on a loop of your own")(tells_later)
planted("podstatus.Sink", FakeSink, "gone", "gone has to be awaited, .* on a loop of your own")(forgets_later)


@planted("runtime.Images", FakeContainerRuntime, "pull_image", "another was pulled, and .* is listed as busy")
def pulls_what_is_there(self: Any, _name: str, *more: Any) -> Any:
    """Answers with an image that somebody else uses; letting go of it took that away."""
    return RIGHT[FakeContainerRuntime, "pull_image"](self, "busybox", *more)


@planted("podsources.Source", FakeSource, "read", r"it has \['db', 'web'\], and brings \['web'\]")
def brings_all_but_one(self: Any, cancel: Any) -> Any:
    """Loses the last pod."""
    found = _READ(self, cancel)
    return attrs.evolve(found, pods=found.pods[:-1])


@planted("podsources.Source", FakeSource, "read", r"read answered \[Pod\(.* answer with a Reading")
def brings_a_list(self: Any, cancel: Any) -> Any:
    """Answers with its pods alone."""
    return list(_READ(self, cancel).pods)


@planted(
    "podsources.Source", FakeSource, "read", "'../web' would lead a path elsewhere; .*nothing of a source"
)
def brings_a_path_for_a_uid(self: Any, cancel: Any) -> Any:
    """Makes uids of paths."""
    found = _READ(self, cancel)
    return attrs.evolve(found, pods=tuple(attrs.evolve(pod, uid=f"../{pod.name}") for pod in found.pods))


@planted("podsources.Source", FakeSource, "read", "web has no containers; .*nothing of a source")
def brings_pods_without_containers(self: Any, cancel: Any) -> Any:
    """Loses what is to run."""
    found = _READ(self, cancel)
    return attrs.evolve(found, pods=tuple(attrs.evolve(pod, containers=()) for pod in found.pods))


@planted("podsources.Source", FakeSource, "read", "leaving speaks of db, .* full names are default/db")
def keeps_by_short_names(self: Any, cancel: Any) -> Any:
    """Says by another name than the full one which pods may be about to go."""
    found = _READ(self, cancel)
    return attrs.evolve(found, leaving=frozenset({pod.name for pod in found.pods}))


@planted("podsources.Source", FakeSource, "read", "places speaks of db, .* full names are default/db")
def places_by_short_names(self: Any, cancel: Any) -> Any:
    """Says by another name than the full one where pods stand."""
    found = _READ(self, cancel)
    return attrs.evolve(found, places={pod.name: "queue" for pod in found.pods})


@planted("podfacts.PodSource", FakePods, "uids", r"it knows \['u', 'v'\], and lists \['u'\]")
def lists_all_pods_but_one(self: Any) -> Any:
    """Loses the last pod, whose volumes nobody would make or take away."""
    return tuple(RIGHT[FakePods, "uids"](self))[:-1]


@planted("podlife.Preparer", FakePreparer, "take_back", "it was taken back once, and is there")
def says_that_it_went(self: Any, pod: Any, cancel: Any) -> None:
    """Leaves its part behind."""


@planted("node.Runtime", FakeRuntime, "running", "listed are check-runtime/app as 2: who is not listed")
def lists_one_container(self: Any) -> Any:
    """Of all that run it lists the first."""
    return _RUNNING(self)[:1]


@planted("node.Runtime", FakeRuntime, "running", "check-runtime-2/app as 4 run, and listed are")
def lists_one_of_each_workload(self: Any) -> Any:
    """Has one workload, and no more, for each member's name."""
    return list({one.owner.member: one for one in _RUNNING(self)}.values())


@planted(
    "node.Runtime", FakeRuntime, "running", "and listed are check-runtime/app as 2, check-runtime/app as 3"
)
def lists_all_as_of_one(self: Any) -> Any:
    """Says of each container that it is the first owner's."""
    return [attrs.evolve(one, owner=Owner("check-runtime", "app")) for one in _RUNNING(self)]


@planted("node.Runtime", FakeRuntime, "running", "run, and listed are none")
def forgets_the_rest_once_one_ends(self: Any) -> Any:
    """Lists nothing more once one of several has ended."""
    found = _RUNNING(self)
    self.most = max(len(found), getattr(self, "most", 0))
    return found if len(found) in {0, self.most} or self.most == 1 else []


@pytest.mark.parametrize("name", [name for name, bug in PLANTED.items() if bug.broken.__module__ == __name__])
def test_what_grants_twice_or_loses_something_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check passes without the bug, and with it says which promise is broken."""
    (tmp_path / "again").mkdir()
    refused(PLANTED[name], tmp_path, monkeypatch)
