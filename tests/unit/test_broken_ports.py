"""A check that takes a broken implementation is worth nothing: each refuses some."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import Any, cast

import attrs
import pytest

from nodealloc.cgroups import CgroupName, Limits
from nodealloc.checkpoint import Checkpoint, JsonCheckpoint, MemoryStore
from nodealloc.cpuset import CpuAllocator, CPUSet, KubeletPicker
from nodealloc.cpuset._state import Assignment
from nodealloc.devices import DeviceAllocator, DeviceLedger, PluginUnavailableError
from nodealloc.dsw_asw import Cancel, Plan, View
from nodealloc.idset import NodeSet
from nodealloc.memblocks import MemoryAllocator
from nodealloc.podfacts import PodIdentity
from nodealloc.podsources import Reading
from nodealloc.podspec import Container, Json, Pod
from nodealloc.probes import Exchange, Question, Reply, ReplyKind, TcpProber
from nodealloc.runtime import (
    CommandResult,
    ContainerConfig,
    Listing,
    PodReport,
    PullCredentials,
    SandboxConfig,
)
from nodealloc.testing.abilities import FakeCpuAllocator
from nodealloc.testing.cgroups import FakeCgroups
from nodealloc.testing.cpuset import FakeCpusetWriter, check_cpuset_writer
from nodealloc.testing.devices import FakePlugin
from nodealloc.testing.dirwatch import FakeWatcher
from nodealloc.testing.dsw_asw import ManualCancel, ManualExecutor, MemoryJournal, VirtualClock
from nodealloc.testing.node import FakeAdvisor, FakeRuntime
from nodealloc.testing.pluginreg import FakeAsyncRegistration, FakeRegistration, RecordingHandler
from nodealloc.testing.podfacts import FakePods
from nodealloc.testing.podlife import (
    FakeCredentials,
    FakeEnvironment,
    FakeHooks,
    FakePreparer,
    PlainConfiguration,
    check_configures,
)
from nodealloc.testing.podsources import FakeSource
from nodealloc.testing.podstatus import FakeSink
from nodealloc.testing.probes import FakeProber
from nodealloc.testing.runtime import FakeContainerRuntime
from nodealloc.testing.topology import FakeAllocator
from nodealloc.testing.volume_plugins import FakeBlockTools, FakeFilesystems
from nodealloc.testing.volume_sources import (
    FakeAttachments,
    FakeConfigSource,
    FakeLeftovers,
    FakeMountWatch,
    FakeTokens,
)
from nodealloc.testing.volumes import FakeClaims, FakeHost, FakeMounter
from nodealloc.topology import (
    Claim,
    Closest,
    Confinement,
    Holding,
    MaskOutsideError,
    Owner,
    ResourceUse,
    Restored,
    Shortfall,
    TopologyHint,
)
from nodealloc.verdicts import NotYet
from nodealloc.volumes.plugins import ServiceToken
from tests.unit.test_ports import KEPT, Counting

Broken = Callable[..., object]


@attrs.frozen
class Fault:
    """One method of what the kit keeps a Protocol with, done wrong.

    Attributes:
        port: The Protocol, as in `KEPT`.
        owner: Whose method.
        method: Its name.
        broken: What it is replaced by.
        says: What the check has to say, as a pattern.
    """

    port: str
    owner: type
    method: str
    broken: Broken
    says: str


def nothing(*_: object, **_options: object) -> None:
    """Does nothing."""


def always(value: object) -> Broken:
    """Answers with this, whatever it is asked."""
    return lambda *_, **_options: value


def promised(*_: object) -> Future[None]:
    """All is well, whoever is meant."""
    future = Future[None]()
    future.set_result(None)
    return future


EXCHANGE = TcpProber.exchange


def unmarked(self: TcpProber, question: Question, /) -> Exchange:
    """Does not say that it was the time that ran out."""
    made = EXCHANGE(self, question)
    assert made is not None
    reply = yield from made
    return attrs.evolve(reply, timed_out=False)


def without_a_word(_self: FakeProber, question: Question, /) -> Reply:
    """Fails, and does not say why."""
    return Reply(ReplyKind.SUCCESS if question.container_id == "well" else ReplyKind.FAILURE)


def once(owner: type, method: str) -> Broken:
    """As it should the first time, never again."""
    right, calls = getattr(owner, method), list[None]()

    def second(*args: object, **options: object) -> object:
        calls.append(None)
        assert len(calls) == 1, "told to fail the second time"
        return right(*args, **options)

    return second


def another_attempt(_: object, pod: Pod, attempt: int, _provided: object, /) -> SandboxConfig:
    """Configures the attempt behind the one that was asked for."""
    return SandboxConfig(pod=PodIdentity.of(pod), attempt=attempt + 1, hostname=pod.name)


NOT_YET = NotYet(blocker="somebody", message="never")
ANYWHERE = (PullCredentials(username="me", password="secret word"),)  # noqa: S106 - invented


def only_itself(self: FakeCgroups, name: CgroupName, /) -> None:
    """Leaves what is below."""
    self.tree.pop(name, None)


def overwriting(self: FakeCgroups, name: CgroupName, limits: Limits, /) -> None:
    """Forgets the limits that were not named."""
    apply(self, name, Limits())
    self.tree[name] = limits


def unshared(self: DeviceLedger, change: Callable[[DeviceAllocator], DeviceAllocator], /) -> object:
    """Reads and writes in two steps."""
    before = self.current()
    self._allocator = after = change(before)
    return before, after


def unchecked(
    self: FakeContainerRuntime, box: str, config: ContainerConfig, sandbox: SandboxConfig, /
) -> object:
    """Makes what is there already."""
    taken = {one.record.attempt for one in self._containers.values()}
    return make(self, box, attrs.evolve(config, attempt=max(taken, default=-1) + 1), sandbox)


def half(self: MemoryStore, changes: dict[str, Checkpoint | None], /) -> None:
    """One key at a time."""
    for key, value in changes.items():
        commit(self, {key: value})


def too_many(self: KubeletPicker, layout: object, available: int, count: int, /) -> int | None:
    """Takes one more where there is one."""
    del self, layout, count
    return available or None


def restless(self: Counting, view: View[str, int, int, str], /) -> Plan[int, str]:
    """Another plan each time."""
    return Plan(steps=plan(self, view).steps * (next(turns) % 2))


def first_row(self: MemoryJournal[int], changes: Mapping[str, int | None], /) -> None:
    """Half of what it was given."""
    write(self, dict([*changes.items()][:1]))


def deaf(self: ManualExecutor, call: Callable[..., object], /, *args: object, **options: object) -> object:
    """Takes arguments by name away."""
    del options
    return submit(self, call, *args)


def anywhere(self: FakeAllocator, _claims: object, /) -> object:
    """Hints at a node that is not there."""
    return {self.name: [TopologyHint(1 << 40, preferred=True)]}


def one_cpu_twice(self: FakeCpuAllocator) -> Sequence[Holding]:
    """Says that everybody holds what the last one holds, where both hold as many."""
    told = holdings(self)
    return [attrs.evolve(one, cpus=told[-1].cpus) if one.amount == told[-1].amount else one for one in told]


def all_but_one(self: FakeCpuAllocator) -> Sequence[Holding]:
    """Leaves the last one out."""
    return holdings(self)[:-1]


def beside_the_machine(self: FakeCpuAllocator) -> Sequence[ResourceUse]:
    """Speaks of a node that is not there."""
    return [attrs.evolve(one, node=7) for one in capacity(self)[:1]]


def of_the_empty(self: FakeCpuAllocator) -> Sequence[ResourceUse]:
    """Says that all is left, always."""
    return [attrs.evolve(one, available=one.allocatable) for one in capacity(self)]


def what_others_hold(self: FakeCpuAllocator, claim: Claim, where: Confinement, /) -> object:
    """Never looks who holds it."""
    held = {**self.units.held, claim.owner: where.exclusive.mask} if where.exclusive else self.units.held
    rest = claim.amounts["cpu"].milli_value % 1000 if "cpu" in claim.amounts else 0
    shares = {**self.shared_milli_cpu, claim.owner: rest} if rest else self.shared_milli_cpu
    return attrs.evolve(self, units=attrs.evolve(self.units, held=held), shared_milli_cpu=shares)


RESIZE = CpuAllocator.resize
RESIZE_MEMORY = MemoryAllocator.resize
NO_CPU = Shortfall(resource="cpu", wanted=4, free=0)


def elsewhere_anew(self: CpuAllocator, claim: Claim, _workload: object = None, /) -> object:
    """Lets go of what is held, and grants as many of the highest CPUs."""
    if self.cpus_of(claim.owner).mask.bit_count() == claim.amounts["cpu"].value:
        return self
    state = self.state.with_assignment(claim.owner, Assignment(cpus=CPUSet.of(3, 5, 6, 7)))
    return attrs.evolve(self, state=state)


def up_alone(self: CpuAllocator, claim: Claim, _workload: object = None, /) -> object:
    """Grows, and never gives back."""
    held = len(self.cpus_of(claim.owner))
    return self if claim.amounts["cpu"].value < held else RESIZE(self, claim)


def as_much_as_there_is(self: CpuAllocator, claim: Claim, _workload: object = None, /) -> object:
    """Gives what there is to whoever asks for more."""
    answer = RESIZE(self, claim)
    return self if isinstance(answer, Shortfall) else answer


def alone(self: MemoryAllocator, claim: Claim, _workload: object = None, /) -> object:
    """Gives back what a member does not need any more, whoever lent it."""
    return RESIZE_MEMORY(self, attrs.evolve(claim, reuse=()))


def elsewhere(self: FakeCpuAllocator, claim: Claim, _where: Confinement, /) -> object:
    """Grants what is free on the other node."""
    return self.allocate(claim, TopologyHint(0b10, preferred=False))


def without_the_fraction(self: FakeCpuAllocator, claim: Claim, where: Confinement, /) -> object:
    """Takes the CPUs, and forgets what was promised besides."""
    return adopted(self, attrs.evolve(claim, amounts={}), where)


def to_what_nobody_granted(self: FakeCpuAllocator, _owner: Owner, /) -> Confinement:
    """All CPUs, for whoever asks."""
    cpus = CPUSet.of(*range(4))
    del self
    return Confinement(cpus=cpus, exclusive=cpus)


def to_more_than_granted(self: FakeCpuAllocator, owner: Owner, /) -> Confinement:
    """One CPU more of the free ones, for those who hold some."""
    told, free = confinement(self, owner), confinement(self, Owner("nobody", "app")).cpus or CPUSet()
    more = told.exclusive | CPUSet(list(free)[:1]) if told.exclusive else told.exclusive
    return Confinement(cpus=(told.cpus or CPUSet()) | more, exclusive=more)


def to_everything(self: FakeCpuAllocator, owner: Owner, /) -> Confinement:
    """Everybody runs everywhere."""
    return attrs.evolve(confinement(self, owner), cpus=CPUSet.of(*range(8)))


def without_a_member(self: FakeCpuAllocator, grants: Mapping[str, Json], /) -> Restored:
    """Leaves the second member of each workload out."""
    rows = {key: cast("Mapping[str, Json]", row) for key, row in grants.items()}
    return restored(self, {key: dict(list(row.items())[:1]) for key, row in rows.items()})


def without_a_member_told(self: FakeCpuAllocator, workload: str, /) -> Json:
    """Never tells of a second member."""
    rows = remembered(self, workload)
    return dict(list(rows.items())[:1]) if isinstance(rows, Mapping) else rows


def without_a_fraction_told(self: FakeCpuAllocator, workload: str, /) -> Json:
    """Never tells of a fraction."""
    rows = remembered(self, workload)
    if not isinstance(rows, Mapping):
        return rows
    return {member: {**cast("Mapping[str, Json]", row), "sharedMilliCpu": 0} for member, row in rows.items()}


def evicting(self: FakeCpuAllocator, grants: Mapping[str, Json], /) -> Restored:
    """Gives somebody up who fits."""
    return attrs.evolve(restored(self, grants), evicted={next(iter(grants)): "no reason"})


holdings, capacity = FakeCpuAllocator.holdings, FakeCpuAllocator.capacity
adopted, confinement = FakeCpuAllocator.adopted, FakeCpuAllocator.confinement
remembered, restored = FakeCpuAllocator.remembered, FakeCpuAllocator.restored
apply, commit, plan, submit = FakeCgroups.apply, MemoryStore.commit, Counting.plan, ManualExecutor.submit
write = MemoryJournal[int].commit
make = FakeContainerRuntime.create_container
turns = iter(range(1 << 30))
backwards = iter(range(1 << 30, 0, -1))

SUCCESS = CommandResult(code=0)
SUCCESS = CommandResult(code=0)
FAULTS = [
    Fault("admission.Resizes", CpuAllocator, "resize", lambda self, *_: self, "holds what it held"),
    Fault(
        "admission.Resizes",
        CpuAllocator,
        "resize",
        always(Shortfall(resource="cpu", wanted=4, free=0)),
        "could be resized",
    ),
    Fault("admission.Resizes", CpuAllocator, "resize", elsewhere_anew, "took .* away"),
    Fault("admission.Resizes", CpuAllocator, "resize", up_alone, "holds .* where it held"),
    Fault("admission.Resizes", CpuAllocator, "resize", as_much_as_there_is, "more than there is"),
    Fault("admission.Resizes", MemoryAllocator, "resize", alone, "at its peak"),
    Fault("cgroups.CgroupDriver", FakeCgroups, "remove", only_itself, "all below"),
    Fault("cgroups.CgroupDriver", FakeCgroups, "remove", once(FakeCgroups, "remove"), "second time"),
    Fault("cgroups.CgroupDriver", FakeCgroups, "apply", overwriting, "reads back as None|parent"),
    Fault("cgroups.ProcessDriver", FakeCgroups, "attach", nothing, "attached process is listed"),
    Fault("cgroups.ProcessDriver", FakeCgroups, "pids", always(frozenset()), "attached process is listed"),
    Fault("cgroups.TreeReader", FakeCgroups, "children", always(()), "listed in that order; found none"),
    Fault("checkpoint.Checkpoint", JsonCheckpoint, "verify", nothing, "damage went unnoticed"),
    Fault("checkpoint.Store", MemoryStore, "commit", half, "a refused commit changed something"),
    Fault("checkpoint.Store", MemoryStore, "close", nothing, "a closed store takes commits"),
    Fault("cpuset.CpusetWriter", FakeCpusetWriter, "write", nothing, "then read"),
    Fault("cpuset.Picker", KubeletPicker, "pick", too_many, "took"),
    Fault(
        "runtime.CommandRunner",
        FakeContainerRuntime,
        "run_command",
        always(CommandResult(code=0)),
        "false: exp",
    ),
    Fault("probes.Exchanges", TcpProber, "exchange", unmarked, "does not say so"),
    Fault("probes.Exchanges", TcpProber, "probe", always(Reply(ReplyKind.SUCCESS)), "is said to be"),
    Fault("probes.Exec", FakeContainerRuntime, "run_command", always(CommandResult(code=0)), "left with 1"),
    Fault("probes.Prober", FakeProber, "probe", always(Reply(ReplyKind.SUCCESS)), "is said to be"),
    Fault("probes.Prober", FakeProber, "probe", always(Reply(ReplyKind.FAILURE, "no")), "is said to be"),
    Fault("probes.Prober", FakeProber, "probe", always(value=True), "is no Reply"),
    Fault("probes.Prober", FakeProber, "probe", without_a_word, "says nothing"),
    Fault("runtime.Containers", FakeContainerRuntime, "start_container", nothing, "does not run"),
    Fault("runtime.Containers", FakeContainerRuntime, "stop_container", nothing, "has not ended"),
    Fault("runtime.Containers", FakeContainerRuntime, "remove_container", nothing, "was removed"),
    Fault("runtime.Containers", FakeContainerRuntime, "update_container", nothing, "not there was started"),
    Fault("runtime.Containers", FakeContainerRuntime, "create_container", unchecked, "made twice"),
    Fault("runtime.Looks", FakeContainerRuntime, "_tell", nothing, "something changed, and nobody"),
    Fault("runtime.Looks", FakeContainerRuntime, "follow", nothing, "is up, and nobody"),
    Fault("runtime.Images", FakeContainerRuntime, "remove_image", nothing, "was removed and is listed"),
    Fault("runtime.Images", FakeContainerRuntime, "images", always(()), "is not listed by that id"),
    Fault("runtime.Looks", FakeContainerRuntime, "inspect", always(PodReport(uid="u")), "unknown pod"),
    Fault("runtime.Looks", FakeContainerRuntime, "listing", always(Listing()), "is there and not listed"),
    Fault("runtime.Sandboxes", FakeContainerRuntime, "stop_sandbox", nothing, "counts as ready"),
    Fault(
        "runtime.Sandboxes",
        FakeContainerRuntime,
        "remove_sandbox",
        nothing,
        "was removed, and of .* there is",
    ),
    Fault("runtime.Sandboxes", FakeContainerRuntime, "run_sandbox", always("s"), "no listing has it"),
    Fault("devices.AllocatorKeeper", DeviceLedger, "alter", unshared, "not exclusive"),
    Fault("devices.PluginConnection", FakePlugin, "lists", always(iter([(), ()])), "and lists"),
    Fault("devices.PluginConnection", FakePlugin, "pre_start", once(FakePlugin, "pre_start"), "second time"),
    Fault("dsw_asw.Cancel", ManualCancel, "on_cancel", always(nothing), "were told"),
    Fault("dsw_asw.Cancel", ManualCancel, "is_set", always(True), "before anybody asked"),
    Fault("dsw_asw.Clock", VirtualClock, "monotonic_s", lambda _: next(backwards), "went back"),
    Fault("dsw_asw.Domain", Counting, "plan", restless, "differs between two calls"),
    Fault("dsw_asw.Executor", ManualExecutor, "submit", deaf, "another result"),
    Fault("dsw_asw.Journal", MemoryJournal, "commit", first_row, "is not there"),
    Fault("node.Advisor", FakeAdvisor, "ask", always(value=True), "for ever"),
    Fault("node.KubeletFile", CpuAllocator, "from_kubelet", always({}), "hold something, the file says"),
    Fault("node.KubeletFile", CpuAllocator, "to_kubelet", nothing, "there is a file"),
    Fault("node.Runtime", FakeRuntime, "stop", nothing, "still listed"),
    Fault("node.TellsRegranted", DeviceAllocator, "regranted", always(()), "nobody is told"),
    Fault(
        "pluginreg.PluginHandler",
        RecordingHandler,
        "deregister",
        once(RecordingHandler, "deregister"),
        "second time",
    ),
    Fault("pluginreg.AsyncRegistration", FakeAsyncRegistration, "notify_later", promised, "was answered for"),
    Fault("pluginreg.Registration", FakeRegistration, "notify", nothing, "was answered for"),
    Fault("dirwatch.Watcher", FakeWatcher, "wait", always(value=True), "always a reason"),
    Fault("topology.Accounts", FakeCpuAllocator, "holdings", one_cpu_twice, "accounted to .* and to"),
    Fault("topology.Accounts", FakeCpuAllocator, "holdings", all_but_one, "1 less are left|3 less are left"),
    Fault("topology.Accounts", FakeCpuAllocator, "holdings", always(()), "less are left"),
    Fault(
        "podsources.Source", FakeSource, "read", always(Reading(is_synced=False)), "never knows all its pods"
    ),
    Fault("podstatus.Sink", FakeSink, "told", nothing, "is not there when the call returns"),
    Fault("podstatus.Sink", FakeSink, "gone", nothing, "that is gone is there"),
    Fault("topology.Accounts", FakeCpuAllocator, "capacity", beside_the_machine, "has no NUMA node 7"),
    Fault("topology.Accounts", FakeCpuAllocator, "capacity", of_the_empty, "are held, 0 less are left"),
    Fault("topology.Adopts", FakeCpuAllocator, "adopted", what_others_hold, "which are not there"),
    Fault("topology.Adopts", FakeCpuAllocator, "adopted", elsewhere, "of its own, and holds"),
    Fault("topology.Adopts", FakeCpuAllocator, "adopted", lambda self, *_: self, "of its own, and holds"),
    Fault("topology.Adopts", FakeCpuAllocator, "adopted", without_the_fraction, "ran on CPUs"),
    Fault("topology.Allocator", FakeAllocator, "hints", anywhere, "hint for NUMA nodes 40"),
    Fault("topology.Allocator", FakeAllocator, "release", lambda self, *_: self, "did not restore"),
    Fault("topology.Comparison", Closest, "rank", lambda *_: (next(turns),), "differently the second time"),
    Fault("topology.Confines", FakeCpuAllocator, "confinement", to_what_nobody_granted, "of its own, before"),
    Fault("topology.Confines", FakeCpuAllocator, "confinement", to_more_than_granted, "was granted CPUs"),
    Fault("topology.Confines", FakeCpuAllocator, "confinement", always(Confinement()), "nothing of anybody"),
    Fault("topology.Confines", FakeCpuAllocator, "confinement", to_everything, "may run on CPUs .* of"),
    Fault("topology.Remembers", FakeCpuAllocator, "remembered", nothing, "hold something, .* are remembered"),
    Fault("topology.Remembers", FakeCpuAllocator, "restored", without_a_member, "in other words"),
    Fault("topology.Remembers", FakeCpuAllocator, "remembered", without_a_member_told, "lost what it held"),
    Fault("topology.Remembers", FakeCpuAllocator, "remembered", without_a_fraction_told, "is granted anew"),
    Fault("topology.Remembers", FakeCpuAllocator, "restored", evicting, "nothing has to go"),
    Fault("topology.Reports", FakeAllocator, "availability", always(()), "nothing is reported"),
    Fault("volumes.AttachVerifier", FakeAttachments, "attached", nothing, "its device path"),
    Fault("volumes.ClaimResolver", FakeClaims, "resolve", lambda self, *_: self.volumes["a"], "not bound"),
    Fault("volumes.Leftovers", FakeLeftovers, "clean", nothing, "takes .* away"),
    Fault("volumes.MountTable", FakeMounter, "wait", always(value=False), "did not tell"),
    Fault("volumes.MountTable", FakeMounter, "wait", always(value=True), "for ever"),
    Fault("volumes.MountWatch", FakeMountWatch, "lost", always(()), "nobody was told"),
    Fault("volumes.Mounter", FakeMounter, "unmount", once(FakeMounter, "unmount"), "second time"),
    Fault("volumes.Plugin", FakeHost, "path", always(""), "no absolute path"),
    Fault("volumes.Plugin", FakeHost, "unmount", once(FakeHost, "unmount"), "second time"),
    Fault("podfacts.PodSource", FakePods, "uids", always(()), "not listed"),
    Fault("podlife.Configures", PlainConfiguration, "sandbox", another_attempt, "is configured as"),
    Fault("podlife.CredentialSource", FakeCredentials, "credentials", always(ANYWHERE), "are handed to"),
    Fault("podlife.CredentialSource", FakeCredentials, "credentials", always(()), "nobody is tried"),
    Fault("podlife.EnvironmentSource", FakeEnvironment, "config_map", always({}), "is not there is found"),
    Fault("podlife.HookRunner", FakeHooks, "run_hook", always(""), "said to have succeeded"),
    Fault("podlife.Preparer", FakePreparer, "take_back", always(NOT_YET), "cannot be taken back"),
    Fault("podlife.Preparer", FakePreparer, "make_ready", always(NOT_YET), "nothing is made ready"),
    Fault("volumes.plugins.BlockTools", FakeBlockTools, "refresh", always(1 << 20), "growth was not noticed"),
    Fault("volumes.plugins.ConfigSource", FakeConfigSource, "read", nothing, "is there"),
    Fault("volumes.plugins.Filesystems", FakeFilesystems, "probe", nothing, "counts as empty"),
    Fault("volumes.plugins.TokenSource", FakeTokens, "token", always(ServiceToken(text="t")), "its own"),
    Fault("volumes.plugins.WatchableConfigSource", FakeConfigSource, "watch", always(nothing), "nobody was"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.port}.{fault.method}")
def test_what_is_broken_is_refused(fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each promise that is broken here ends the check, in words that say which one."""
    monkeypatch.setattr(fault.owner, fault.method, fault.broken)
    with pytest.raises((AssertionError, MaskOutsideError), match=fault.says):
        KEPT[fault.port](tmp_path)


def test_every_check_refuses_something() -> None:
    """A new Protocol comes with something broken."""
    assert {fault.port for fault in FAULTS} == set(KEPT)


def test_memory_nodes_that_are_to_be_left_alone() -> None:
    """None for memory nodes means as they are."""

    class Forgetful(FakeCpusetWriter):
        def write(self, target: str, cpus: CPUSet, mems: NodeSet | None, /) -> None:
            super().write(target, cpus, mems)
            if mems is None:
                self.sets[target] = (self.sets[target][0], NodeSet())

    choices = [CPUSet.of(0), CPUSet.of(1)]
    with pytest.raises(AssertionError, match="leave memory nodes 0 alone"):
        check_cpuset_writer(
            Forgetful({"web": choices[0]}), "web", choices, absent="nobody", mems=NodeSet.of(0)
        )


def test_a_connection_that_cannot_be_closed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A list that never ends is said after a while, not waited for."""
    monkeypatch.setattr("nodealloc.testing.devices._LONG_S", 0.05)
    monkeypatch.setattr(FakePlugin, "close", nothing)
    before = threading.active_count()
    with pytest.raises(AssertionError, match="ends lists"):
        KEPT["devices.PluginConnection"](tmp_path)
    assert threading.active_count() <= before + 1


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            PluginUnavailableError("/s", "Allocate", "DEADLINE_EXCEEDED"),
            "asked to stop before it began, and came",
        ),
        (None, "asked to stop before it began, and goes on"),
    ],
    ids=["another error", "none"],
)
def test_a_connection_that_hears_of_no_cancellation(
    answer: Exception | None, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A pod that nobody wants any more would go when its plugin answers, or never."""
    over = threading.Event()

    def deaf(_self: FakePlugin, _ids: tuple[str, ...], _cancel: Cancel, _call: str) -> None:
        if answer is not None:
            raise answer
        over.wait(20.0)

    monkeypatch.setattr("nodealloc.testing.devices._SOON_S", 0.05)
    monkeypatch.setattr(FakePlugin, "_hang", deaf)
    try:
        with pytest.raises(AssertionError, match=words):
            KEPT["devices.PluginConnection"](tmp_path)
    finally:
        over.set()


def test_a_connection_that_looks_at_its_cancellation_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Most pods are deleted while a call is under way."""
    over = threading.Event()

    def hasty(_self: FakePlugin, _ids: tuple[str, ...], cancel: Cancel, _call: str) -> None:
        if cancel.is_set():
            raise CancelledError
        over.wait(20.0)

    monkeypatch.setattr("nodealloc.testing.devices._SOON_S", 0.05)
    monkeypatch.setattr(FakePlugin, "_hang", hasty)
    try:
        with pytest.raises(AssertionError, match="asked to stop while it waited, and goes on"):
            KEPT["devices.PluginConnection"](tmp_path)
    finally:
        over.set()


def test_a_connection_that_ends_only_one_of_its_calls(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A pod may be deleted before any of its containers starts, and long after."""
    over, hang = threading.Event(), FakePlugin._hang

    def half(self: FakePlugin, ids: tuple[str, ...], cancel: Cancel, call: str) -> None:
        if call == "Allocate":
            hang(self, ids, cancel, call)
        over.wait(20.0)

    monkeypatch.setattr("nodealloc.testing.devices._SOON_S", 0.05)
    monkeypatch.setattr(FakePlugin, "_hang", half)
    try:
        with pytest.raises(AssertionError, match=r"pre_start\(\) was asked to stop before it began"):
            KEPT["devices.PluginConnection"](tmp_path)
    finally:
        over.set()


def test_a_configuration_that_is_another_one_where_it_may_be_stopped() -> None:
    """Whoever gives a `Cancel` wants the same container."""

    class Another(PlainConfiguration):
        is_stopped = False

        def container(self, *asked: Any) -> ContainerConfig:
            made = super().container(*asked)
            return attrs.evolve(made, image="another") if self.is_stopped else made

        def unless_stopped(self, _cancel: Cancel, /) -> Another:
            other = Another()
            other.is_stopped = True
            return other

    with pytest.raises(AssertionError, match="is another one where it may be asked to stop"):
        check_configures(Another(), Pod(uid="u", name="web", containers=(Container(name="app"),)))
