"""Laws of a whole node: nothing is granted twice, a restart changes nothing, releasing all restores it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import attrs
import hypothesis.strategies as st
from hypothesis import given
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from nodealloc.checkpoint import MemoryStore
from nodealloc.cpuset import CpuAllocator, StaticPolicy
from nodealloc.devices import DeviceAllocator
from nodealloc.memblocks import MemoryAllocator
from nodealloc.node import FORMATS, NodeAllocator, confinement_of, holdings
from nodealloc.podspec import Pod
from nodealloc.testing.memblocks import check_books
from nodealloc.testing.strategies.node import (
    GPU,
    Admit,
    Edit,
    EmptyNode,
    NodeStep,
    Release,
    Restart,
    edited_pods,
    empty_nodes,
    node_histories,
)
from nodealloc.testing.strategies.podspec import pods
from nodealloc.topology import Admitted, ClaimKind, NotYet, Owner, Placed, Workload, peak, workload_of
from nodealloc.verdicts import Refused


class Life:
    """A node that goes through steps, with its store and what it was asked."""

    def __init__(self, empty: EmptyNode) -> None:
        self.empty = empty
        self.store = MemoryStore(FORMATS)
        self.pods: dict[str, Pod] = {}
        self.partly: set[str] = set()
        self.node = self.begin()

    def begin(self) -> NodeAllocator:
        """The next process, over what the store holds."""
        node = NodeAllocator(self.empty.snapshot, self.store)
        report = node.start()
        assert report.is_clean, f"on the same machine everything stands: {report}"
        return node

    def take(self, step: NodeStep) -> None:
        """Do one step."""
        if isinstance(step, Admit):
            self.admit(step.pod)
        elif isinstance(step, Edit):
            self.edit(step.pod)
        elif isinstance(step, Release):
            self.release(step)
        else:
            self.restart(step)

    def admit(self, pod: Pod) -> Placed | Refused | NotYet:
        """Ask; what is held already is answered as before, whatever else is going on."""
        before, known = self.node.snapshot, pod.uid in self.node.records
        verdict = self.node.admit(pod)
        if known:
            assert isinstance(verdict, Admitted)
            assert verdict.repeated
        if isinstance(verdict, Admitted):
            self.pods[pod.uid] = pod
        if known or not isinstance(verdict, Admitted):
            assert self.node.snapshot is before, "who is refused, or held already, changes nothing"
        return verdict

    def edit(self, pod: Pod) -> None:
        """What was admitted under its uid is to be another; one that is not in is not edited."""
        before = self.node.snapshot
        if pod.uid not in self.node.records:
            return
        verdict = self.node.resize(pod, is_edit=True)
        if isinstance(verdict, Admitted):
            self.pods[pod.uid] = pod
        else:
            assert self.node.snapshot is before, "an edit that is refused changes nothing"

    def release(self, step: Release) -> None:
        """A pod, or one container of it; an unknown one changes nothing."""
        pod = self.pods.get(step.key)
        if step.member is not None:
            self.partly.add(step.key)
        members = [one.name for one in pod.all_containers] if pod else ["nobody"]
        self.node.release(step.key, None if step.member is None else members[step.member % len(members)])

    def restart(self, step: Restart) -> None:
        """End without a word; the next process holds the same, with or without the plugin."""
        before, records = self.node.snapshot, self.node.records
        data = dict(self.store.data())
        self.store = MemoryStore(FORMATS, data=data)
        self.node = self.begin()
        after = self.node.snapshot
        assert after.allocators[0] == before.allocators[0]
        check_same_memory(before.allocators[1], after.allocators[1])
        assert devices(self.node).grants == before_devices(before.allocators[2]).grants
        assert after.admitted == before.admitted
        assert self.node.records == records
        assert dict(self.store.data()) == data, "a restart writes nothing"
        for key in records:
            self.admit(self.pods[key])
        if step.plugin_returns:
            self.plug()

    def plug(self) -> None:
        """The plugin registers and lists what it listed."""
        self.node.allocator(DeviceAllocator).alter(lambda one: one.with_inventory(self.empty.inventory))

    def check(self) -> None:
        """No CPU, byte or device is granted twice."""
        cpu, memory = self.node.snapshot.allocators[:2]
        assert isinstance(cpu, CpuAllocator)
        assert isinstance(memory, MemoryAllocator)
        check_books(memory)
        assert set(self.node.records) == set(self.node.snapshot.admitted)
        held = {key: record.workload for key, record in self.node.records.items()}
        cpus = {owner: one.cpus.mask for owner, one in cpu.state.items()}
        gpus = devices_by_owner(devices(self.node))
        for owned in (cpus, gpus):
            assert {owner.workload for owner in owned} <= set(held)
            check_apart({owner: owned[owner] for owner in owned if self.is_wanted(owner)}, held)
            check_workloads_apart(owned)
        for key in held.keys() - self.partly:
            check_peak(workload_of(self.pods[key]), memory)
        assert isinstance(cpu.policy, StaticPolicy)
        for owner, mask in cpus.items():
            assert not mask & cpu.policy.reserved.mask, f"{owner} holds reserved CPUs"
            assert not mask & cpu.shared.mask, f"{owner} holds CPUs of the shared pool"

    def is_wanted(self, owner: Owner) -> bool:
        """Whether a member is in its pod; one that an edit took out keeps what it has."""
        return owner.member in {one.name for one in self.pods[owner.workload].all_containers}

    def end(self) -> None:
        """When all are released, the node and its store are as at the start."""
        self.plug()
        for key in self.node.records:
            self.node.release(key)
        assert self.node.snapshot.allocators == self.empty.snapshot.allocators
        assert not self.node.snapshot.admitted
        assert not self.store.data()


def check_same_memory(before: object, after: object) -> None:
    """The same blocks, and as much left in every group of nodes.

    On which node of a group the rest is, depends on the order of releases as it
    does in the kubelet, and on nothing with the option `strict`.
    """
    assert isinstance(before, MemoryAllocator)
    assert isinstance(after, MemoryAllocator)
    if before.options.strict:
        assert after == before
    old, new = before.state, after.state
    assert (new.grants, new.assignments, new.groups) == (old.grants, old.assignments, old.groups)
    for group in set(old.groups):
        inside = [place for place, node in enumerate(old.layout.nodes) if group >> node & 1]
        for was, now in zip(old.free, new.free, strict=True):
            assert sum(was[place] for place in inside) == sum(now[place] for place in inside)


def check_peak(workload: Workload, memory: MemoryAllocator) -> None:
    """What members that hold memory need together at their peak is held for them."""
    members = memory.state.grants.get(workload.key, {})
    claims = [one for one in workload.claims if one.owner.member in members]
    held = sum(
        block.size_bytes for blocks in members.values() for block in blocks if block.resource == "memory"
    )
    needed = peak(claims, lambda one: one.amounts["memory"].nanos // 10**9 if "memory" in one.amounts else 0)
    assert held >= needed, f"{workload.key} holds {held} bytes of the {needed} that it needs at its peak"


def before_devices(allocator: object) -> DeviceAllocator:
    """The device allocator that stands there."""
    assert isinstance(allocator, DeviceAllocator)
    return allocator


def devices(node: NodeAllocator) -> DeviceAllocator:
    """The device allocator of a node."""
    return before_devices(node.snapshot.allocators[2])


def devices_by_owner(allocator: DeviceAllocator) -> dict[Owner, int]:
    """Each owner's devices, a bit for every id."""
    return {
        Owner(key, member): sum(1 << int(one.removeprefix("gpu-")) for one in grant.ids)
        for key, held in allocator.grants.items()
        for (member, _), grant in held.items()
    }


def check_apart(owned: Mapping[Owner, int], held: Mapping[str, Workload]) -> None:
    """Two workloads share nothing; in one, only what an init container lent to those behind it."""
    kinds = {claim.owner: claim.kind for one in held.values() for claim in one.claims}
    lent = {claim.owner: claim.reuse for one in held.values() for claim in one.claims}
    for one, other in itertools.combinations(owned, 2):
        if not owned[one] & owned[other]:
            continue
        assert one.workload == other.workload, f"{one} and {other} share {owned[one] & owned[other]:b}"
        assert ClaimKind.INIT in (kinds[one], kinds[other]), f"{one} and {other} run together and share"
        assert one.member in lent[other] or other.member in lent[one], f"{one} never lent to {other}"


def check_workloads_apart(owned: Mapping[Owner, int]) -> None:
    """Two workloads share nothing, whether their members are still wanted or not."""
    for one, other in itertools.combinations(owned, 2):
        assert one.workload == other.workload or not owned[one] & owned[other], f"{one} and {other} share"


@given(empty_nodes(), node_histories())
def test_any_history_leaves_a_node_that_can_be_emptied(empty: EmptyNode, steps: list[NodeStep]) -> None:
    """After every step nothing is granted twice; after the last release nothing is left."""
    life = Life(empty)
    for step in steps:
        life.take(step)
        life.check()
    life.end()


@given(empty_nodes(), st.tuples(*(pods(name=name, extended=(GPU,)) for name in "abc")))
def test_a_dry_run_and_the_node_agree(empty: EmptyNode, asked: tuple[Pod, ...]) -> None:
    """What a scheduler computes on the node's snapshot is what the node then answers."""
    from nodealloc.admission import chain_of

    life = Life(empty)
    for pod in asked:
        foretold = chain_of(snapshot=life.node.snapshot)(pod, life.node.view)
        answered = life.admit(pod)
        assert type(answered) is type(foretold)
        if isinstance(answered, Placed) and isinstance(foretold, Placed):
            assert answered.affinity == foretold.affinity
            assert life.node.snapshot.allocators == foretold.snapshot.allocators


class WholeNode(RuleBasedStateMachine):
    """The same laws, with the next step chosen in sight of what happened."""

    life: Life

    @initialize(empty=empty_nodes())
    def begin(self, empty: EmptyNode) -> None:
        """A node that holds nothing."""
        self.life = Life(empty)
        self.count = 0

    @rule(data=st.data())
    def a_pod_comes(self, data: st.DataObject) -> None:
        """One that was never there."""
        name = f"pod-{self.count}"
        self.count += 1
        self.life.admit(data.draw(pods(name=name, extended=(GPU,), most_containers=2)))

    @precondition(lambda self: self.life.pods)
    @rule(data=st.data())
    def a_pod_comes_again(self, data: st.DataObject) -> None:
        """Held, or refused and released since."""
        self.life.admit(self.life.pods[data.draw(st.sampled_from(sorted(self.life.pods)))])

    @precondition(lambda self: self.life.pods)
    @rule(data=st.data())
    def a_pod_is_edited(self, data: st.DataObject) -> None:
        """Where it is: other amounts, containers more or less."""
        pod = self.life.pods[data.draw(st.sampled_from(sorted(self.life.pods)))]
        self.life.edit(data.draw(edited_pods(pod)))

    @precondition(lambda self: self.life.pods)
    @rule(data=st.data(), member=st.none() | st.integers(0, 3))
    def a_pod_ends(self, data: st.DataObject, member: int | None) -> None:
        """All of it, or one container."""
        self.life.release(Release(data.draw(st.sampled_from(sorted(self.life.pods))), member))

    @precondition(lambda self: self.life.node.records)
    @rule(data=st.data(), number=st.integers(1, 3))
    def a_container_starts_and_an_old_one_ends(self, data: st.DataObject, number: int) -> None:
        """Bound to its grant; the late end of another container unbinds nobody."""
        record = self.life.node.records[data.draw(st.sampled_from(sorted(self.life.node.records)))]
        owner = Owner(record.workload.key, data.draw(st.sampled_from(sorted(record.affinity))))
        confined = self.life.node.before_start(owner, f"new-{number}")
        cpu = self.life.node.snapshot.allocators[0]
        assert isinstance(cpu, CpuAllocator)
        assert confined.exclusive == cpu.exclusive_of(owner)
        assert not self.life.node.after_stop(owner, "old")
        assert self.life.node.records[owner.workload].bound[owner.member] == f"new-{number}"

    @rule(returns=st.booleans())
    def the_agent_restarts(self, returns: bool) -> None:
        """With or without its device plugin."""
        self.life.restart(Restart(returns))

    @rule()
    def the_plugin_returns(self) -> None:
        """It lists the devices that it listed."""
        self.life.plug()

    @invariant()
    def nothing_is_granted_twice(self) -> None:
        """After every step."""
        if hasattr(self, "life"):
            self.life.check()

    def teardown(self) -> None:
        """Everything can be given back."""
        if hasattr(self, "life"):
            self.life.end()


TestWholeNode = WholeNode.TestCase


@given(empty_nodes(), pods(name="late", extended=(GPU,)))
def test_without_its_plugin_a_device_is_not_yet_to_be_had(empty: EmptyNode, pod: Pod) -> None:
    """After a restart who asks for devices has to wait, and nothing is held for the meantime."""
    life = Life(empty)
    life.restart(Restart(plugin_returns=False))
    gpus = life.node.allocator(DeviceAllocator)
    gpus.alter(lambda one: DeviceAllocator(nodes=one.nodes, awaited=frozenset({GPU})))
    verdict = life.admit(pod)
    asks = any(GPU in one.requests and one.requests[GPU].value for one in pod.all_containers)
    assert asks or not isinstance(verdict, NotYet)
    assert not (asks and isinstance(verdict, Admitted))


@given(empty_nodes(), st.tuples(*(pods(name=name, extended=(GPU,)) for name in "abcd")))
def test_what_runs_is_adopted_as_it_was_granted(empty: EmptyNode, asked: tuple[Pod, ...]) -> None:
    """Told where each container runs, a node without records holds the same CPUs and devices again."""
    able = tuple(one for one in empty.snapshot.allocators if not isinstance(one, MemoryAllocator))
    bare = attrs.evolve(empty, snapshot=attrs.evolve(empty.snapshot, allocators=able))
    first, again = Rebuilt(bare), Rebuilt(bare)
    for pod in asked:
        first.node.admit(pod)
    for key, record in first.node.records.items():
        places = {name: confinement_of(first.node.snapshot, Owner(key, name)) for name in record.affinity}
        again.node.adopt(record.workload, places)
    assert holdings(again.node.snapshot) == holdings(first.node.snapshot)
    for key in first.node.records:
        again.node.release(key)
    assert holdings(again.node.snapshot) == ()


class Rebuilt:
    """A node whose plugin is there."""

    def __init__(self, empty: EmptyNode) -> None:
        self.node = NodeAllocator(empty.snapshot, MemoryStore(FORMATS))
        self.node.start()
        self.node.allocator(DeviceAllocator).alter(lambda one: one.with_inventory(empty.inventory))
