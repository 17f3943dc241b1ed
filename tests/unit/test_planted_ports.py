"""Stores, runtimes, drivers, mounters, sources and others, wrong in what seldom shows; each is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from nodealloc.cgroups import NO_LIMIT, CgroupName
from nodealloc.cgroups._errors import Process
from nodealloc.checkpoint import MemoryStore
from nodealloc.cpuset import CpuAllocator, CPUSet, KubeletPicker
from nodealloc.errors import NodeallocError
from nodealloc.runtime import RunState
from nodealloc.testing.cgroups import FakeCgroups
from nodealloc.testing.cpuset import FakeCpusetWriter
from nodealloc.testing.devices import FakePlugin
from nodealloc.testing.dsw_asw import ManualCancel, ManualExecutor, MemoryJournal
from nodealloc.testing.node import FakeAdvisor, FakeRuntime
from nodealloc.testing.pluginreg import FakeRegistration
from nodealloc.testing.podlife import FakeCredentials, FakeEnvironment, FakeHooks, FakePreparer
from nodealloc.testing.podsources import FakeSource
from nodealloc.testing.podstatus import FakeSink
from nodealloc.testing.probes import FakeProber
from nodealloc.testing.runtime import FakeContainerRuntime
from nodealloc.testing.volume_plugins import FakeBlockTools, FakeFilesystems
from nodealloc.testing.volume_sources import FakeConfigSource
from nodealloc.testing.volumes import FakeMounter
from nodealloc.verdicts import Admitted, Refused
from tests.unit.planted_bugs import PLANTED, RIGHT, planted, refused

R = FakeContainerRuntime
RUN = {name: RIGHT[R, name] for name in ("listing", "inspect", "create_container", "stop_container")}
RUN |= {name: RIGHT[R, name] for name in ("remove_container", "remove_sandbox", "update_container", "follow")}
RUN |= {name: RIGHT[R, name] for name in ("pull_image", "remove_image", "run_sandbox", "start_container")}
WRITE = MemoryStore._write
CONFIG_READ = FakeConfigSource.read
SUBMIT = ManualExecutor.submit
COMMIT = MemoryJournal.commit
TELL = FakeSink.told
SOURCE_READ = FakeSource.read
FROM_FILE = CpuAllocator.from_kubelet
RESIZE = CpuAllocator.resize


@planted("cpuset.Picker", KubeletPicker, "pick", "3 of 0-7")
def repeats_one_at_odd_counts(self: Any, layout: Any, available: int, count: int) -> Any:
    """Counts one CPU twice when asked for an odd number above one."""
    taken = RIGHT[KubeletPicker, "pick"](self, layout, available, count)
    return taken & (taken - 1) if taken and count % 2 and count > 1 else taken


@planted("cpuset.Picker", KubeletPicker, "pick", "7 of 0-7")
def takes_whole_cores(self: Any, layout: Any, available: int, count: int) -> Any:
    """Rounds seven up to eight."""
    taken = RIGHT[KubeletPicker, "pick"](self, layout, available, count)
    rest = available & ~(taken or 0)
    return taken | (rest & -rest) if taken and count == 7 else taken


@planted("cpuset.Picker", KubeletPicker, "pick", "9 of 0-7")
def refuses_what_there_is(self: Any, layout: Any, available: int, count: int) -> Any:
    """Answers with nothing, and not with None, where there is too little."""
    taken = RIGHT[KubeletPicker, "pick"](self, layout, available, count)
    return 0 if taken is None else taken


@planted("cpuset.Picker", KubeletPicker, "pick", "a picker answers with a mask as an integer, found bool")
def a_truth_for_one(self: Any, layout: Any, available: int, count: int) -> Any:
    """Answers True for CPU 0."""
    taken = RIGHT[KubeletPicker, "pick"](self, layout, available, count)
    return True if taken == 1 else taken


@planted("cpuset.CpusetWriter", FakeCpusetWriter, "write", "wrote 0,2, then read 0-2")
def writes_from_lowest_to_highest(self: Any, t: str, c: Any, m: Any) -> None:
    """Fills the gaps."""
    full = CPUSet(range(min(c), max(c) + 1)) if c else c
    RIGHT[FakeCpusetWriter, "write"](self, t, full, m)


@planted("cpuset.CpusetWriter", FakeCpusetWriter, "read", "web was written, and db changed from 2 to 0,2")
def reads_what_it_wrote_last(self: Any, t: str) -> Any:
    """Reads of any target what was written last."""
    found = RIGHT[FakeCpusetWriter, "read"](self, t)
    wrote = [call for call in self.calls if call.startswith("write ")]
    return (CPUSet.parse(wrote[-1].split()[-1]), found[1]) if wrote and wrote[-1][-1].isdigit() else found


@planted(
    "cgroups.CgroupDriver", FakeCgroups, "apply", "memory_bytes was asked to be 75497472 and reads back as"
)
def never_lowers_memory(self: Any, n: CgroupName, limits: Any) -> None:
    """Takes a higher limit of memory, and no lower one."""
    old = self.tree.get(n)
    if old is not None and limits.memory_bytes is not None and old.memory_bytes is not None:
        low = limits.memory_bytes != NO_LIMIT and limits.memory_bytes < old.memory_bytes
        limits = attrs.evolve(limits, memory_bytes=old.memory_bytes) if low else limits
    RIGHT[FakeCgroups, "apply"](self, n, limits)


@planted(
    "cgroups.CgroupDriver",
    FakeCgroups,
    "apply",
    "cpu_period_us was asked to be 50000 and reads back as 100000",
)
def sets_the_period_alone_wrong(self: Any, n: CgroupName, limits: Any) -> None:
    """With a quota and no period it goes back to 100 ms."""
    if limits.cpu_quota_us not in (None, NO_LIMIT) and limits.cpu_period_us is None:
        limits = attrs.evolve(limits, cpu_period_us=100_000)
    RIGHT[FakeCgroups, "apply"](self, n, limits)


@planted(
    "cgroups.CgroupDriver",
    FakeCgroups,
    "remove",
    "remove takes all below along, /check/check/below/deep is still",
)
def removes_one_level_below(self: Any, n: CgroupName) -> None:
    """Leaves what is two levels below."""
    for gone in [each for each in self.tree if n in {each, each.parent}]:
        self.tree.pop(gone, None)


@planted(
    "cgroups.CgroupDriver",
    FakeCgroups,
    "remove",
    "/check/check was removed, and /check/check-beside is gone as",
)
def removes_by_beginning(self: Any, n: CgroupName) -> None:
    """Removes whatever begins with the name."""
    for gone in [each for each in self.tree if str(each).startswith(str(n))]:
        self.tree.pop(gone, None)


@planted(
    "cgroups.CgroupDriver", FakeCgroups, "read", "/check/check was made without limits, and reads as absent"
)
def reads_no_limits_as_absent(self: Any, n: CgroupName) -> Any:
    """Takes a cgroup without limits for an absent one."""
    found = self.tree.get(n)
    return found if found is not None and found.asked else None


@planted("cgroups.ProcessDriver", FakeCgroups, "kill", "whoever was there can be ended, and kill says that")
def tells_whom_it_killed(self: Any, n: CgroupName) -> Any:
    """Answers with who ended, and not with who is left."""
    before = RIGHT[FakeCgroups, "pids"](self, n)
    RIGHT[FakeCgroups, "kill"](self, n)
    return tuple(Process(pid) for pid in before)


@planted(
    "cgroups.TreeReader", FakeCgroups, "children", "directly below /check are /check/a, /check/a-c, /check/b,"
)
def children_by_beginning(self: Any, n: CgroupName) -> Any:
    """Lists what begins with the parent's name and a part."""
    return tuple(
        sorted(each for each in self.tree if each != n and each.is_below(n) and len(each.parts) <= 3)
    )


@planted("checkpoint.Store", MemoryStore, "_write", "after a commit of 24 keys, opened again")
def one_of_equal_values(self: Any, fresh: Any, settled: Any, writer: Any) -> None:
    """Keeps one key of those with equal values."""
    once = {data: key for key, data in fresh.items() if data is not None}
    kept = {key: data for key, data in fresh.items() if data is None or once[data] == key}
    WRITE(self, kept, settled, writer)


@planted("checkpoint.Store", MemoryStore, "_write", "after a commit of 24 keys, opened again")
def forgets_by_beginning(self: Any, fresh: Any, settled: Any, writer: Any) -> None:
    """Forgets whatever begins like the key that is to be forgotten."""
    WRITE(self, fresh, settled, writer)
    for key in [key for key, data in fresh.items() if data is None]:
        for other in [other for other in self._stored if other.startswith(key)]:
            self._stored.pop(other)


@planted("checkpoint.Store", MemoryStore, "_write", "after a forgotten key was written anew")
def no_second_write(self: Any, fresh: Any, settled: Any, writer: Any) -> None:
    """Writes a key that was forgotten no more."""
    gone = self.__dict__.setdefault("gone", set())
    gone |= {key for key, data in fresh.items() if data is None}
    WRITE(
        self, {key: data for key, data in fresh.items() if data is None or key not in gone}, settled, writer
    )


@planted("runtime.Containers", R, "start_container", "its sandbox was stopped, and container-8 was started")
def starts_in_a_stopped_sandbox(self: Any, container_id: str) -> None:
    """Starts a container wherever it is."""
    self._is_ready = lambda _: True
    RUN["start_container"](self, container_id)
    del self._is_ready


@planted("runtime.Containers", R, "create_container", "attempt 1 was made, and comes back as 7")
def forgets_the_attempt(self: Any, box: str, config: Any, sandbox: Any) -> Any:
    """Notes every attempt but the first as attempt 7."""
    made = RUN["create_container"](self, box, config, sandbox)
    one = self._containers[made]
    if config.attempt:
        self._containers[made] = attrs.evolve(one, record=attrs.evolve(one.record, attempt=7))
    return made


@planted("runtime.Containers", R, "stop_container", "stopped without any grace, and is running")
def leaves_who_has_no_grace(self: Any, container_id: str, grace_s: float, /) -> None:
    """Takes no grace for nothing to do."""
    if grace_s:
        RUN["stop_container"](self, container_id, grace_s)


@planted("runtime.Containers", R, "remove_container", "removed while it ran, and is left")
def leaves_what_runs(self: Any, container_id: str, /) -> None:
    """Forgets only what has ended."""
    there = (one for pod in RUN["listing"](self).pods.values() for one in pod.containers)
    if not any(one.id == container_id and one.state is RunState.RUNNING for one in there):
        RUN["remove_container"](self, container_id)


@planted("runtime.Containers", R, "inspect", r"the newest comes first, and the attempts are \[1, 2, 3\]")
def tells_the_oldest_first(self: Any, uid: str, listed: Any = None, /) -> Any:
    """In the order in which they were made."""
    report = RUN["inspect"](self, uid, listed)
    ordered = sorted(report.containers, key=lambda one: one.record.attempt)
    return attrs.evolve(report, containers=tuple(ordered))


@planted("probes.Prober", FakeProber, "probe", "is said to have run out of time")
def says_that_all_are_late(self: Any, question: Any, /) -> Any:
    """Sets the word for a time-out on every reply."""
    return attrs.evolve(RIGHT[FakeProber, "probe"](self, question), timed_out=True)


@planted("runtime.Containers", R, "remove_container", r"remove_container raised KeyError\('container-2'\)")
def unknown_container_raises(self: Any, one: str) -> None:
    """Knows nothing of what is gone."""
    if one not in self._containers:
        raise KeyError(one)
    RUN["remove_container"](self, one)


@planted("runtime.Containers", R, "remove_container", r"container-2 was removed, \[\] is left")
def removes_what_runs_under_the_name(self: Any, one: str) -> None:
    """Removes all containers of the same name."""
    there = self._containers.get(one)
    RUN["remove_container"](self, one)
    if there is not None:
        for other in [k for k, v in self._containers.items() if v.record.name == there.record.name]:
            self._containers.pop(other)


@planted("runtime.Containers", R, "start_container", r"made at 1000001\.0, and said to run since 999991\.0")
def starts_before_it_is_made(self: Any, one: str) -> None:
    """Says that it runs since before it was made."""
    RUN["start_container"](self, one)
    there = self._containers[one]
    self._containers[one] = attrs.evolve(there, started_unix_s=(there.record.created_unix_s or 0) - 10)


@planted("runtime.Containers", R, "stop_container", r"started at 1000002\.0, and said to have ended at 1\.0")
def ends_before_it_began(self: Any, one: str, grace_s: float) -> None:
    """Says that it ended before it was started."""
    RUN["stop_container"](self, one, grace_s)
    there = self._containers.get(one)
    if there is not None and there.exit is not None:
        self._containers[one] = attrs.evolve(there, finished_unix_s=1.0)


@planted("runtime.Containers", R, "listing", "a container that is there is not listed")
def lists_what_runs(self: Any) -> Any:
    """Leaves out what has ended."""
    kept = {k: v for k, v in self._containers.items() if v.record.state is not RunState.EXITED}
    whole, self._containers = self._containers, kept
    try:
        return RUN["listing"](self)
    finally:
        self._containers = whole


@planted(
    "runtime.Sandboxes", R, "remove_sandbox", "sandbox-2 was removed, and of sandbox-1 and sandbox-2 there is"
)
def removes_all_of_the_pod(self: Any, box: str) -> None:
    """Removes every sandbox of the pod."""
    there = self._sandboxes.get(box)
    RUN["remove_sandbox"](self, box)
    if there is not None:
        for other in [k for k, v in self._sandboxes.items() if v.record.pod.uid == there.record.pod.uid]:
            self._sandboxes.pop(other)


@planted("runtime.Sandboxes", R, "run_sandbox", "sandbox-1 was made, then sandbox-2 for the same pod")
def second_attempt_takes_over(self: Any, config: Any) -> Any:
    """A new attempt makes the older sandbox vanish."""
    for key in [k for k, v in self._sandboxes.items() if v.record.pod.uid == config.pod.uid]:
        if self._sandboxes[key].record.attempt != config.attempt:
            self._sandboxes.pop(key)
    return RUN["run_sandbox"](self, config)


@planted("runtime.Looks", R, "remove_sandbox", "the sandbox of pod u was removed, and that of v as well")
def removes_all_sandboxes(self: Any, box: str) -> None:
    """Removes the sandboxes of all pods."""
    self._sandboxes.clear()


@planted("runtime.Looks", R, "follow", "something else changed, and nobody was told")
def tells_once(self: Any, on_event: Any, cancel: Any) -> None:
    """Tells of the first change, and of no other."""
    told: list[int] = []

    def once() -> None:
        if len(told) < 2:
            told.append(1)
            on_event()

    RUN["follow"](self, once, cancel)


@planted("runtime.Images", R, "remove_image", r"another was removed, and \['sha256:busybox'\] as well")
def removes_all_images(self: Any, one: str) -> None:
    """Removes every image."""
    self.image_store.clear()


@planted("runtime.Images", R, "pull_image", r"another was pulled, and \['sha256:busybox'\] went")
def pulling_drops_the_others(self: Any, name: str, credentials: Any = None) -> Any:
    """Has room for one image."""
    self.image_store.clear()
    return RUN["pull_image"](self, name, credentials)


@planted("runtime.CommandRunner", R, "run_command", "a command was run in a container that is not there")
def runs_in_any_container(self: Any, one: str, command: Any, timeout_s: float) -> Any:
    """Runs a command for whoever asks, there or not."""
    return self.commands(one, tuple(command))


@planted(
    "runtime.CommandRunner",
    R,
    "run_command",
    r"expected CommandResult\(code=1, output=b'', errors=b'no'\), got",
)
def drops_the_errors(self: Any, one: str, command: Any, timeout_s: float) -> Any:
    """Keeps no standard error."""
    return attrs.evolve(RIGHT[R, "run_command"](self, one, command, timeout_s), errors=b"")


@planted(
    "podlife.EnvironmentSource", FakeEnvironment, "config_map", "a config map of another name space is found"
)
def of_any_namespace(self: Any, namespace: str, name: str) -> Any:
    """Finds a config map by its name alone."""
    return next((one for (_, known), one in self.config_maps.items() if known == name), None)


@planted("podlife.EnvironmentSource", FakeEnvironment, "secret", "a secret that is not there is found")
def an_empty_secret(self: Any, namespace: str, name: str) -> Any:
    """Finds nothing in every secret that is not there."""
    return self.secrets.get((namespace, name), {})


@planted(
    "podlife.CredentialSource",
    FakeCredentials,
    "credentials",
    r"credentials for r\.test/a:1 are handed to the registry of",
)
def by_end_of_the_registry(self: Any, pod: Any, image: Any) -> Any:
    """Finds whoever has a registry that ends alike."""
    end = image.registry.rpartition(".")[2]
    return tuple(one for known, users in self.users.items() if known.endswith(end) for one in users)


@planted("podlife.HookRunner", FakeHooks, "run_hook", "a hook that fails is said to have succeeded")
def hooks_always_succeed(self: Any, call: Any, cancel: Any) -> str:
    """Says that all is well."""
    if call.container_id in self.endless:
        cancel.wait(call.timeout_s)
    return ""


@planted("podlife.HookRunner", FakeHooks, "run_hook", r"a hook raised RuntimeError\('no'\)")
def hooks_raise(self: Any, call: Any, cancel: Any) -> str:
    """Raises where a hook fails."""
    if self.answer(call):
        raise RuntimeError(self.answer(call))
    if call.container_id in self.endless:
        cancel.wait(call.timeout_s)
    return ""


@planted("podlife.Preparer", FakePreparer, "make_ready", "made ready twice, nothing is there")
def ready_and_nothing_there(self: Any, pod: Any, cancel: Any) -> Any:
    """Says that it is ready the second time without making anything."""
    self.there.discard(pod.uid)
    if not self.calls or "make" not in self.calls[-1]:
        self.there.add(pod.uid)
    self.calls.append("make")
    return Admitted()


@planted("podlife.Preparer", FakePreparer, "make_ready", "it is made ready once")
def refuses_after_it_was_taken_back(self: Any, pod: Any, cancel: Any) -> Any:
    """Makes a pod ready once in its life."""
    if any(call.startswith("make") for call in self.calls) and pod.uid not in self.there:
        return Refused(reason="Again", message="it was here before")
    return RIGHT_MAKE(self, pod, cancel)


RIGHT_MAKE = FakePreparer.make_ready


@planted(
    "podsources.Source", FakeSource, "read", r"it has \['db', 'web'\], and brings \['db', 'web', 'web'\]"
)
def brings_the_first_twice(self: Any, cancel: Any) -> Any:
    """Brings a pod under two uids."""
    found = SOURCE_READ(self, cancel)
    return attrs.evolve(found, pods=(*found.pods, attrs.evolve(found.pods[0], uid="other")))


@planted("podsources.Source", FakeSource, "read", "read again without a change it says something else")
def brings_them_in_turn(self: Any, cancel: Any) -> Any:
    """Lists its pods in another order each time."""
    found = SOURCE_READ(self, cancel)
    return attrs.evolve(found, pods=found.pods[:: 1 if self.reads % 2 else -1])


@planted("podsources.Source", FakeSource, "read", "it knew all its pods and no longer does")
def forgets_that_it_knows(self: Any, cancel: Any) -> Any:
    """Knows all its pods the first time alone."""
    return attrs.evolve(SOURCE_READ(self, cancel), is_synced=self.reads <= 1)


@planted("podstatus.Sink", FakeSink, "told", "what was told before is there instead of the newest")
def first_word_stands(self: Any, uid: str, status: Any) -> None:
    """Keeps what it was told first."""
    if uid not in self.statuses:
        TELL(self, uid, status)


@planted("podstatus.Sink", FakeSink, "told", "what was told is not there when the call returns")
def one_status_for_all(self: Any, uid: str, status: Any) -> None:
    """Tells of the pod that it was told of last."""
    self.statuses.clear()
    TELL(self, uid, status)


@planted(
    "volumes.Mounter", FakeMounter, "unmount", "of three mounts one was unmounted lazily, and 0 are left"
)
def lazily_takes_the_lower_one(self: Any, target: str, *, lazy: bool = False) -> None:
    """Takes every mount of a target at once when it is lazy."""
    RIGHT[FakeMounter, "unmount"](self, target, lazy=lazy)
    if lazy:
        self._mounts = []


@planted(
    "volumes.Mounter", FakeMounter, "mount", r"bound read-only, read_only of the mounts there is \[False\]"
)
def never_read_only(self: Any, s: str, t: str, *, fstype: str = "", options: Any = ()) -> None:
    """Drops `ro` of a bind."""
    kept = [one for one in options if one != "ro" or "bind" not in options]
    RIGHT[FakeMounter, "mount"](self, s, t, fstype=fstype, options=kept)


@planted(
    "volumes.plugins.ConfigSource", FakeConfigSource, "read", "a version tells one content from the next"
)
def an_object_without_version(self: Any, namespace: str, name: str) -> Any:
    """Has no version."""
    found = CONFIG_READ(self, namespace, name)
    return found and attrs.evolve(found, version="")


@planted(
    "volumes.plugins.WatchableConfigSource",
    FakeConfigSource,
    "read",
    "n/o changed, and its version is 1 as before",
)
def one_version_for_all(self: Any, namespace: str, name: str) -> Any:
    """Has one version for every content."""
    found = CONFIG_READ(self, namespace, name)
    return found and attrs.evolve(found, version="1")


@planted(
    "volumes.plugins.Filesystems",
    FakeFilesystems,
    "probe",
    "a device with data of a kind that nobody knows counts as empty",
)
def takes_junk_for_empty(self: Any, device: str) -> Any:
    """Takes what it does not know for empty, and formats it."""
    return self.types.get(device)


@planted("volumes.plugins.BlockTools", FakeBlockTools, "refresh", "growth was not noticed")
def a_size_of_its_own(self: Any, device: str) -> int:
    """Rounds the size up to the next mebibyte, and adds one."""
    return Path(device).stat().st_size + (1 << 20) * (Path(device).stat().st_size > 1 << 20)


@planted("dsw_asw.Executor", ManualExecutor, "submit", "one call was submitted, and ran 2 times")
def runs_each_call_twice(self: Any, call: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Does what it is told to two times."""

    def twice(*args: Any, **kwargs: Any) -> Any:
        call(*args, **kwargs)
        return call(*args, **kwargs)

    return SUBMIT(self, twice, *args, **kwargs)


@planted("dsw_asw.Executor", ManualExecutor, "submit", "what the call raised is not in its future")
def swallows_what_was_raised(self: Any, call: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Answers None for what was raised."""

    def quiet(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except Exception:  # noqa: BLE001 - that is the bug
            return None

    return SUBMIT(self, quiet, *args, **kwargs)


@planted("dsw_asw.Journal", MemoryJournal, "commit", "of one commit not everything is there")
def commits_deletes_last_time(self: Any, changes: Any) -> None:
    """Does not forget."""
    COMMIT(self, {key: row for key, row in changes.items() if row is not None})


@planted("dsw_asw.Cancel", ManualCancel, "on_cancel", "a call that came after it was asked was not told")
def late_ones_are_forgotten(self: Any, call: Any) -> Any:
    """Who comes after it was asked is not told."""
    self._calls.append(call)
    return lambda: self._calls.remove(call) if call in self._calls else None


@planted("node.Runtime", FakeRuntime, "running", "a running container is not listed")
def forgets_the_owner(self: Any) -> Any:
    """Lists everybody as one owner."""
    found = RIGHT_RUNNING(self)
    return [attrs.evolve(one, owner=type(one.owner)("somebody", one.owner.member)) for one in found]


RIGHT_RUNNING = FakeRuntime.running


@planted("node.Advisor", FakeAdvisor, "ask", "it wants the same decision made again for ever")
def asks_for_ever(self: Any, outcome: Any) -> bool:
    """Always has another answer."""
    return True


@planted("node.Advisor", FakeAdvisor, "settled", "settling adds, drops or moves an allocator")
def settles_by_dropping(self: Any, outcome: Any) -> Any:
    """Leaves an allocator out."""
    return attrs.evolve(outcome, allocators=())


@planted(
    "node.KubeletFile",
    CpuAllocator,
    "from_kubelet",
    r"Owner\(workload='job', member='app-0'\) has CPUs 0-1 of its own,",
)
def takes_over_half(self: Any, file: Any) -> Any:
    """Reads one CPU of each member."""

    def less(grants: Any) -> Any:
        return {name: _first_cpu(row) for name, row in grants.items()}

    return {key: attrs.evolve(one, grants=less(one.grants)) for key, one in FROM_FILE(self, file).items()}


def _first_cpu(row: Any) -> Any:
    if isinstance(row, str) and row:
        return str(next(iter(CPUSet.parse(row))))
    if isinstance(row, dict):
        return {key: _first_cpu(value) for key, value in row.items()}
    return row


@planted(
    "admission.Resizes",
    CpuAllocator,
    "resize",
    r"Owner\(workload='db', member='app'\) was given more than there is",
)
def grows_without_asking(self: Any, claim: Any, _workload: Any = None) -> Any:
    """Grants what there is where more is wanted."""
    answer = RESIZE(self, claim)
    return self if not isinstance(answer, CpuAllocator) else answer


@planted(
    "devices.PluginConnection",
    FakePlugin,
    "pre_start",
    r"pre_start raised NodeallocError\('prepared already'\)",
)
def refuses_the_second_start(self: Any, ids: Any, **_: Any) -> None:
    """Prepares devices once."""
    if self.prepared:
        raise NodeallocError("prepared already")
    self.prepared.append(tuple(ids))


@planted(
    "devices.PluginConnection",
    FakePlugin,
    "preferred",
    r"asked which of a and b it prefers, it answered \('z',\)",
)
def prefers_strangers(self: Any, question: Any) -> Any:
    """Answers with a device that nobody has."""
    return ("z",)


@planted("pluginreg.Registration", FakeRegistration, "notify", "/b is not there and was answered for")
def tells_nobody(self: Any, socket: str, error: str) -> None:
    """Says that it told whoever is not there."""


@pytest.mark.parametrize("name", [name for name, bug in PLANTED.items() if bug.broken.__module__ == __name__])
def test_what_seldom_shows_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check passes without the bug, and with it says which promise is broken."""
    (tmp_path / "again").mkdir()
    refused(PLANTED[name], tmp_path, monkeypatch)
