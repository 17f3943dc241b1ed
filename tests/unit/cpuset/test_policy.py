"""Who gets CPUs, which ones, and what a refusal says."""

from __future__ import annotations

import pytest

from nodealloc.checkpoint import CpuManagerState, JsonCheckpoint
from nodealloc.cpuset import (
    CpuAllocator,
    CpuLayout,
    CPUSet,
    KubeletPicker,
    NonePolicy,
    NotEnoughCpusError,
    PickMode,
    StaticOptions,
    StaticPolicy,
    exclusive_cpus_setting,
    take_cpus,
)
from nodealloc.cpuset._codec import from_kubelet, from_record, from_rows, to_record, to_row
from nodealloc.cpuset._recorded import RecordedCpus
from nodealloc.cpuset._state import Assignment, CpuState
from nodealloc.errors import DecodeError
from nodealloc.machine import Machine, machine_from_text
from nodealloc.podspec import Quantity
from nodealloc.testing.cpuset import check_picker
from nodealloc.topology import Claim, ClaimKind, Owner, Shortfall, TopologyHint

ANYWHERE = TopologyHint(None, preferred=True)
DUAL = "2 sockets x 4 cores x 2 threads"


def claim(cpus: str, member: str = "main", *, workload: str = "job", **more: str) -> Claim:
    """A claim on CPUs; `more` are settings."""
    return Claim(owner=Owner(workload, member), amounts={"cpu": Quantity.parse(cpus)}, settings=more)


def granted(node: CpuAllocator, *claims: Claim) -> CpuAllocator:
    """The node with all of these granted."""
    for one in claims:
        answer = node.allocate(one, ANYWHERE)
        assert not isinstance(answer, Shortfall), answer
        node = answer
    return node


def refused(node: CpuAllocator, one: Claim) -> Shortfall:
    """Why the node does not grant this."""
    answer = node.allocate(one, ANYWHERE)
    assert isinstance(answer, Shortfall)
    return answer


@pytest.fixture
def machine() -> Machine:
    """Two sockets with four cores of two threads: CPU n and n + 8 are siblings."""
    return machine_from_text(DUAL)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("full-pcpus-only", "distribute-cpus-across-cores"),
        ("distribute-cpus-across-numa", "distribute-cpus-across-cores"),
        ("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores"),
        ("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa"),
    ],
)
def test_options_that_contradict_each_other_are_refused(one: str, other: str) -> None:
    """The pairs that a kubelet does not start with are refused by name."""
    with pytest.raises(ValueError, match=f"{one}.*{other}"):
        StaticOptions.from_kubelet({one: "true", other: "true"})


def test_unknown_options_and_values_are_all_named() -> None:
    """One error lists every fault of a configuration."""
    with pytest.raises(DecodeError) as caught:
        StaticOptions.from_kubelet({"full-pcpus": "true", "align-by-socket": "yes"})
    assert [fault.path for fault in caught.value.faults] == ["$.full-pcpus", "$.align-by-socket"]


def test_options_read_back_as_they_were_written() -> None:
    """What is on is written, by its kubelet name."""
    options = {"align-by-socket": "true", "full-pcpus-only": "true"}
    assert StaticOptions.from_kubelet(options).to_kubelet() == options


def test_reserved_cpus_outside_the_machine_are_refused(machine: Machine) -> None:
    """The error names the CPUs that are not there."""
    with pytest.raises(ValueError, match="reserved CPUs 16-17"):
        StaticPolicy.of(machine, reserved=CPUSet.parse("0,16-17"))


def test_more_reserved_than_there_are_is_refused(machine: Machine) -> None:
    """A number of reserved CPUs has to fit, and to be one."""
    for count in (17, -1):
        with pytest.raises(ValueError, match="16 available"):
            StaticPolicy.of(machine, reserved=count)


def test_a_number_of_reserved_cpus_takes_low_cores(machine: Machine) -> None:
    """Two reserved CPUs are the first core."""
    assert StaticPolicy.of(machine, reserved=2).reserved == CPUSet.of(0, 8)


def test_align_by_socket_needs_a_fitting_machine_and_policy(machine: Machine) -> None:
    """Sockets inside one NUMA node, and policy single-numa-node, contradict it."""
    options = StaticOptions(align_by_socket=True)
    flat = machine_from_text("1 numa x 2 sockets x 2 cores")
    with pytest.raises(ValueError, match="2 sockets on 1 NUMA nodes"):
        StaticPolicy.of(flat, options=options)
    with pytest.raises(ValueError, match="single-numa-node"):
        StaticPolicy.of(machine, options=options, topology_policy="single-numa-node")


def test_none_policy_grants_nothing(machine: Machine) -> None:
    """Everybody shares all CPUs; there are no hints."""
    node = CpuAllocator(policy=NonePolicy.of(machine))
    assert node.allocate(claim("2"), ANYWHERE) is node
    assert node.hints([claim("2")]) == {}
    assert node.availability([claim("2")]) == ()
    assert node.resize(claim("3")) is node
    assert node.cpus_of(Owner("job", "main")) == machine.online


@pytest.mark.parametrize("amount", ["1500m", "0", "100m"])
def test_fractions_share(machine: Machine, amount: str) -> None:
    """A claim without a whole number of CPUs gets none for itself."""
    node = CpuAllocator.of(machine)
    assert node.allocate(claim(amount), ANYWHERE) is node


def test_a_claim_that_may_not_hold_shares(machine: Machine) -> None:
    """Without `exclusive` a whole number of CPUs is shared as well."""
    node = CpuAllocator.of(machine)
    burstable = Claim(owner=Owner("pod", "c"), amounts={"cpu": Quantity.of(2)}, exclusive=False)
    assert node.allocate(burstable, ANYWHERE) is node


def test_what_is_held_is_granted_again_as_it_is(machine: Machine) -> None:
    """A restart that admits what runs changes nothing, even with no core left."""
    policy = StaticPolicy.of(machine, options=StaticOptions(full_pcpus_only=True))
    node = granted(CpuAllocator(policy=policy), claim("16"))
    assert node.allocate(claim("16"), ANYWHERE) is node


def test_hints_of_what_is_held_are_where_it_is(machine: Machine) -> None:
    """A held claim hints at its nodes; one of another size fits nowhere."""
    node = granted(CpuAllocator.of(machine), claim("2"))
    assert node.hints([claim("2")]) == {"cpu": [TopologyHint(1, True), TopologyHint(3, False)]}
    assert node.hints([claim("3")]) == {"cpu": ()}


def test_affinity_is_served_first(machine: Machine) -> None:
    """CPUs of the affinity's nodes are taken before any other."""
    node = CpuAllocator.of(machine)
    answer = node.allocate(claim("10"), TopologyHint(0b10, preferred=False))
    assert isinstance(answer, CpuAllocator)
    assert answer.exclusive_of(Owner("job", "main")) >= machine.node[1].cpus


def test_a_core_in_parts_is_refused_with_full_pcpus_only(machine: Machine) -> None:
    """An odd number of threads is an SMTAlignmentError that says what would fit."""
    policy = StaticPolicy.of(machine, options=StaticOptions(full_pcpus_only=True))
    refusal = refused(CpuAllocator(policy=policy), claim("3"))
    assert (refusal.reason, refusal.wanted, refusal.free) == ("SMTAlignmentError", 3, 16)
    assert "multiple of 2" in refusal.detail


def test_whole_cores_may_be_lent(machine: Machine) -> None:
    """On a full node a main member may take over all that its init member held; the kubelet refuses it."""
    options = StaticOptions(full_pcpus_only=True)
    policy = StaticPolicy.of(machine, options=options, only_whole_cores=True)
    init = Claim(owner=Owner("pod", "init"), amounts={"cpu": Quantity.of(16)}, kind=ClaimKind.INIT)
    main = Claim(owner=Owner("pod", "main"), amounts={"cpu": Quantity.of(16)}, reuse=("init",))
    assert granted(CpuAllocator(policy=policy), init, main).shared == CPUSet()
    as_kubelet = granted(CpuAllocator.of(machine, options=options), init)
    refusal = refused(as_kubelet, main)
    assert (refusal.reason, refusal.free) == ("SMTAlignmentError", 0)


def test_half_reserved_cores_are_no_whole_cores(machine: Machine) -> None:
    """The sibling of a reserved CPU counts for nobody with full_pcpus_only."""
    policy = StaticPolicy.of(
        machine, options=StaticOptions(full_pcpus_only=True), reserved=CPUSet.of(0), only_whole_cores=True
    )
    node = granted(CpuAllocator(policy=policy), claim("14"))
    assert node.shared == CPUSet.of(0, 8)
    assert refused(node, claim("2", workload="other")).reason == "SMTAlignmentError"


def test_the_kubelet_hands_out_the_other_half(machine: Machine) -> None:
    """By default an affinity may break a core whose sibling is reserved, as recorded."""
    policy = StaticPolicy.of(machine, options=StaticOptions(full_pcpus_only=True), reserved=CPUSet.of(0))
    answer = CpuAllocator(policy=policy).allocate(claim("8"), TopologyHint(0b01, preferred=True))
    assert isinstance(answer, CpuAllocator)
    assert 8 in answer.exclusive_of(Owner("job", "main"))


def test_hybrid_cores_stay_whole() -> None:
    """With cores of one and of two threads, full_pcpus_only grants what whole cores add up to."""
    machine = machine_from_text("1 socket x (2 cores x 2 threads + 2 atom cores)")
    policy = StaticPolicy.of(machine, options=StaticOptions(full_pcpus_only=True))
    node = granted(CpuAllocator(policy=policy), claim("3"))
    held = node.exclusive_of(Owner("job", "main"))
    assert policy.layout.whole_cores(held.mask) == held.mask


def test_an_offline_sibling_makes_a_core_of_one() -> None:
    """A core whose sibling is offline is whole with the CPU that it has."""
    machine = machine_from_text("1 socket x 2 cores x 2 threads, offline=3")
    layout = CpuLayout.of(machine)
    assert (layout.cores, layout.uniform) == ((0b101, 0b010), False)
    policy = StaticPolicy.of(machine, options=StaticOptions(full_pcpus_only=True))
    node = granted(CpuAllocator(policy=policy), claim("1"))
    assert node.exclusive_of(Owner("job", "main")) == CPUSet.of(1)


def test_the_endless_case_ends() -> None:
    """Left-over threads that make up no group keep a distributed pick from nothing."""
    machine = machine_from_text("2 numa x 2 cores x 2 threads")
    layout = CpuLayout.of(machine)
    picker = KubeletPicker(mode=PickMode.DISTRIBUTED, group_size=2)
    available = CPUSet.parse("0-2,4-5,7")
    assert len(take_cpus(layout, available, 6, picker=picker)) == 6


def test_init_members_lend_to_those_behind_them(machine: Machine) -> None:
    """What an init member held is granted again, and is free only when both have let go."""
    node = CpuAllocator.of(machine)
    init = Claim(owner=Owner("pod", "init"), amounts={"cpu": Quantity.of(4)}, kind=ClaimKind.INIT)
    main = Claim(owner=Owner("pod", "main"), amounts={"cpu": Quantity.of(4)}, reuse=("init",))
    node = granted(node, init, main)
    assert node.exclusive_of(init.owner) == node.exclusive_of(main.owner)
    assert node.release("pod", "init").shared == node.shared
    assert node.release("pod", "main").shared == node.shared
    assert node.release("pod").shared == machine.online


def test_a_pod_holds_no_more_than_it_requests_once_its_init_members_have_ended(machine: Machine) -> None:
    """CPUs of a large init member that nobody took over go back when it is released."""
    node = CpuAllocator.of(machine)
    init = Claim(owner=Owner("pod", "init"), amounts={"cpu": Quantity.of(8)}, kind=ClaimKind.INIT)
    main = Claim(owner=Owner("pod", "main"), amounts={"cpu": Quantity.of(2)}, reuse=("init",))
    node = granted(node, init, main).release("pod", "init")
    assert node.state.held.bit_count() == 2


def test_strict_reservation_keeps_the_pool_off_reserved_cpus(machine: Machine) -> None:
    """With the option reserved CPUs are in nobody's set; without it in the pool."""
    strict = StaticPolicy.of(
        machine, options=StaticOptions(strict_cpu_reservation=True), reserved=CPUSet.of(0, 8)
    )
    assert CpuAllocator(policy=strict).shared == machine.online - CPUSet.of(0, 8)
    assert CpuAllocator.of(machine, reserved=CPUSet.of(0, 8)).shared == machine.online


def test_availability_says_what_is_free_where(machine: Machine) -> None:
    """Free and allocatable CPUs of each NUMA node, for what the claims want at their peak."""
    node = granted(CpuAllocator.of(machine, reserved=CPUSet.of(0)), claim("2"))
    (view,) = node.availability([claim("3", workload="next")])
    assert (view.wanted, view.free, view.allocatable) == (3, {0: 5, 1: 8}, {0: 7, 1: 8})


def per_container(machine: Machine) -> CpuAllocator:
    """A node where settings may ask for exclusive CPUs."""
    return CpuAllocator(policy=StaticPolicy.of(machine, reserved=CPUSet.of(0), per_container=True))


def test_one_container_of_a_burstable_pod_gets_its_own(machine: Machine) -> None:
    """The setting of one container is no other's: siblings share."""
    settings = {exclusive_cpus_setting("db"): "all"}
    db, web = (
        Claim(owner=Owner("pod", name), amounts={"cpu": Quantity.of(2)}, exclusive=False, settings=settings)
        for name in ("db", "web")
    )
    node = granted(per_container(machine), db, web)
    assert len(node.exclusive_of(db.owner)) == 2
    assert node.cpus_of(web.owner) == node.shared
    off = CpuAllocator.of(machine)
    assert off.allocate(db, ANYWHERE) is off


def test_exclusive_and_shared_cpus_in_one_claim(machine: Machine) -> None:
    """Two for itself and 1.5 of the pool: disjoint sets, both accounted for."""
    node = granted(per_container(machine), claim("3500m", **{exclusive_cpus_setting("main"): "2"}))
    owner = Owner("job", "main")
    assert len(node.exclusive_of(owner)) == 2
    assert node.exclusive_of(owner).isdisjoint(node.shared)
    assert node.cpus_of(owner) == node.exclusive_of(owner) | node.shared
    assert node.state.shared_milli_cpu == 1500
    refusal = refused(node, claim("12", workload="greedy"))
    assert (refusal.wanted, refusal.free) == (2, 1)


@pytest.mark.parametrize("setting", ["two", "-1", "4", "²", "all", "9" * 5000])
def test_a_setting_that_does_not_fit_is_named(machine: Machine, setting: str) -> None:
    """Junk, more than is requested, and all of a fraction are refused with the setting's name."""
    refusal = refused(per_container(machine), claim("3500m", **{exclusive_cpus_setting("main"): setting}))
    assert "exclusive-cpus.nodealloc/main" in refusal.detail


def test_zero_exclusive_opts_out(machine: Machine) -> None:
    """A claim that could hold CPUs may choose to share."""
    node = per_container(machine)
    assert node.allocate(claim("2", **{exclusive_cpus_setting("main"): "0"}), ANYWHERE) is node


def test_resize_has_to_be_switched_on(machine: Machine) -> None:
    """By default a running container keeps what it has, and the refusal says how to change that."""
    node = granted(CpuAllocator.of(machine), claim("2"))
    answer = node.resize(claim("4"))
    assert isinstance(answer, Shortfall)
    assert (answer.reason, "resizable" in answer.detail) == ("Infeasible", True)


def test_what_asks_for_no_other_cpus_needs_no_resize(machine: Machine) -> None:
    """A container that is to have other memory, say, may on a node that does not resize CPUs."""
    node = granted(CpuAllocator.of(machine), claim("2"))
    other = Claim(owner=Owner("job", "main"), amounts={"cpu": Quantity.of(2), "memory": Quantity.of(1)})
    assert node.resize(other) == node


def test_resize_stays_near_and_comes_back(machine: Machine) -> None:
    """Up adds CPUs of the same node first; back down is the first set again."""
    owner = Owner("job", "main")
    node = granted(CpuAllocator(policy=StaticPolicy.of(machine, resizable=True)), claim("2"))
    first = node.exclusive_of(owner)
    up = node.resize(claim("6"))
    assert isinstance(up, CpuAllocator)
    assert first < up.exclusive_of(owner) <= machine.node[0].cpus
    back = up.resize(claim("2"))
    assert isinstance(back, CpuAllocator)
    assert back == node
    smaller = up.resize(claim("1"))
    assert isinstance(smaller, CpuAllocator)
    assert smaller.exclusive_of(owner) < first


def test_resize_that_does_not_fit_changes_nothing(machine: Machine) -> None:
    """Too many CPUs, none, and an unknown owner are refused."""
    node = granted(CpuAllocator(policy=StaticPolicy.of(machine, resizable=True)), claim("2"))
    for wrong in (claim("17"), claim("0"), claim("2", "other")):
        assert isinstance(node.resize(wrong), Shortfall)
    assert node.resize(claim("2")) is node


def test_resize_by_whole_cores(machine: Machine) -> None:
    """With full_pcpus_only a size that breaks a core is refused."""
    policy = StaticPolicy.of(machine, options=StaticOptions(full_pcpus_only=True), resizable=True)
    answer = granted(CpuAllocator(policy=policy), claim("2")).resize(claim("3"))
    assert isinstance(answer, Shortfall)
    assert answer.reason == "SMTAlignmentError"


def test_a_moved_assignment_keeps_the_rest_of_its_cpus(machine: Machine) -> None:
    """Of 2-4, CPU 3 went offline: 2 and 4 stay, one CPU near by takes its place."""
    later = machine_from_text(DUAL + ", offline=3")
    state = CpuState(assignments={"job": {"main": Assignment(cpus=CPUSet.parse("2-4"))}})
    plan = CpuAllocator.of(later).plan_restore(RecordedCpus(policy_name="static", state=state))
    (move,) = plan.move
    assert move.after >= CPUSet.of(2, 4)
    assert "CPUs 3 are not online" in move.reason
    assert "move job/main from 2-4" in str(plan)


def test_a_moved_cpu_goes_to_the_node_of_the_others(machine: Machine) -> None:
    """Of 1 and 5 on two sockets, 1 went offline: its successor stands beside 5, though node 0 has room."""
    later = machine_from_text(DUAL + ", offline=1")
    state = CpuState(assignments={"job": {"main": Assignment(cpus=CPUSet.of(1, 5))}})
    plan = CpuAllocator.of(later).plan_restore(RecordedCpus(policy_name="static", state=state))
    (move,) = plan.move
    assert move.after == CPUSet.of(5, 13)


def test_more_reserved_moves_or_evicts(machine: Machine) -> None:
    """Who sits on newly reserved CPUs moves; who finds no room is evicted, with numbers."""
    node = granted(CpuAllocator.of(machine), claim("8"), claim("8", workload="two"))
    recorded = RecordedCpus(policy_name="static", shared=node.shared, state=node.state)
    plan = CpuAllocator.of(machine, reserved=CPUSet.of(0)).plan_restore(recorded)
    (gone,) = plan.evict
    assert gone.owner == Owner("job", "main")
    assert "1 exclusive CPUs wanted, 0 free" in gone.reason
    assert plan.keep == (Owner("two", "main"),)


def test_cpus_of_the_evicted_go_to_those_behind_them(machine: Machine) -> None:
    """Where not all find room, those that do may use what the others left."""
    node = granted(CpuAllocator.of(machine), claim("14"), claim("2", workload="two"))
    recorded = RecordedCpus(policy_name="static", shared=node.shared, state=node.state)
    plan = CpuAllocator.of(machine, reserved=CPUSet.parse("0,7-8,15")).plan_restore(recorded)
    assert [one.owner.workload for one in plan.evict] == ["job"]
    assert [one.owner.workload for one in plan.move] == ["two"]


def test_members_that_shared_cpus_share_them_after_a_move(machine: Machine) -> None:
    """An init member's CPUs and those lent to its main member move together."""
    lent = Assignment(cpus=CPUSet.of(0, 8))
    state = CpuState(assignments={"pod": {"init": lent, "main": lent}})
    plan = CpuAllocator.of(machine, reserved=2).plan_restore(RecordedCpus(policy_name="static", state=state))
    assert {one.after for one in plan.move} == {CPUSet.of(1, 9)}


def test_policy_none_takes_exclusive_cpus_back(machine: Machine) -> None:
    """After a change to `none` everybody moves into the shared pool, and the plan says so."""
    node = granted(CpuAllocator.of(machine), claim("2"))
    recorded = RecordedCpus(policy_name="static", shared=node.shared, state=node.state)
    plan = CpuAllocator(policy=NonePolicy.of(machine)).plan_restore(recorded)
    assert [one.after for one in plan.move] == [machine.online]
    assert plan.notes[0] == "policy was static, is none"
    assert not plan.allocator.state.assignments


def test_every_fault_of_a_stored_state_is_named() -> None:
    """Junk, empty sets and wrong types are listed with their paths."""
    stored = CpuManagerState(policy_name="static", default_cpuset="x", entries={"pod": {"a": "", "b": "3-1"}})
    with pytest.raises(DecodeError) as caught:
        from_kubelet(stored)
    assert len(caught.value.faults) == 3
    with pytest.raises(DecodeError) as caught:
        from_record(JsonCheckpoint(kind="cpuset", version=1, value={"assignments": [], "generation": -1}))
    assert {fault.path for fault in caught.value.faults} == {
        "$.assignments",
        "$.policy",
        "$.shared",
        "$.generation",
    }
    with pytest.raises(DecodeError, match="expected kind 'cpuset' version 1"):
        from_record(JsonCheckpoint(kind="other", version=1, value={}))


def test_rows_of_workloads_read_back(machine: Machine) -> None:
    """A store with a row a workload gives the same state; junk in it is named."""
    owner = Owner("job", "main")
    node = granted(CpuAllocator(policy=StaticPolicy.of(machine, resizable=True)), claim("2"))
    answer = node.resize(claim("4"))
    assert isinstance(answer, CpuAllocator)
    rows = {key: to_row(answer.state, key) for key in ("job", "nobody")}
    assert rows["nobody"] == {}
    state = from_rows({"job": rows["job"]})
    assert (state, state.of(owner)) == (answer.state, answer.state.of(owner))
    assert from_record(to_record(answer)).state == state
    with pytest.raises(DecodeError, match="expected a mapping"):
        from_rows({"job": ["main"]})


def test_cpus_of_a_whole_pod_are_read() -> None:
    """Newer kubelets give CPUs to pods; they stay held by the pod's member without a name."""
    from nodealloc.checkpoint._cpu_state import CpuLayout as FileLayout

    stored = CpuManagerState(
        policy_name="static", default_cpuset="0", pod_entries={"pod": "2-3"}, layout=FileLayout.V3
    )
    assert from_kubelet(stored).state.held == 0b1100


def test_taking_cpus_checks_its_arguments(machine: Machine) -> None:
    """Strange CPUs, negative counts and too many are three clear errors."""
    layout = CpuLayout.of(machine)
    with pytest.raises(ValueError, match="CPUs 99 are not online"):
        take_cpus(layout, CPUSet.of(99), 1)
    with pytest.raises(ValueError, match="-1 CPUs wanted"):
        take_cpus(layout, machine.online, -1)
    with pytest.raises(NotEnoughCpusError, match="3 CPUs wanted, 2 available") as caught:
        take_cpus(layout, CPUSet.of(1, 2), 3)
    assert (caught.value.wanted, caught.value.free) == (3, 2)
    with pytest.raises(ValueError, match="no online CPU"):
        CpuLayout.of(Machine(cpus=()))


class HighestFirst:
    """A picker of one's own: the highest CPUs."""

    def pick(self, _layout: CpuLayout, available: int, count: int, /) -> int | None:
        """Take them from the top."""
        cpus = sorted(CPUSet.from_mask(available), reverse=True)
        return CPUSet(cpus[:count]).mask if len(cpus) >= count else None


class OffByOne:
    """A picker that takes one CPU too many."""

    def pick(self, _layout: CpuLayout, available: int, _count: int, /) -> int | None:
        """Take everything."""
        return available


def test_a_picker_of_ones_own(machine: Machine) -> None:
    """Any object with `pick` serves; one that breaks its promise grants nothing."""
    check_picker(HighestFirst(), CpuLayout.of(machine))
    node = granted(CpuAllocator(policy=StaticPolicy.of(machine, picker=HighestFirst())), claim("2"))
    assert node.exclusive_of(Owner("job", "main")) == CPUSet.of(14, 15)
    wrong = CpuAllocator(policy=StaticPolicy.of(machine, reserved=CPUSet.of(0), picker=OffByOne()))
    with pytest.raises(ValueError, match="OffByOne answered"):
        wrong.allocate(claim("2"), ANYWHERE)


def test_no_assignment_is_empty() -> None:
    """An assignment of no CPUs cannot be made."""
    with pytest.raises(ValueError, match="cpus"):
        Assignment(cpus=CPUSet())
