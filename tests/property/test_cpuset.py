"""Laws of CPU allocation on machines that nobody drew by hand."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodealloc.cpuset import (
    CpuAllocator,
    CpuLayout,
    CPUSet,
    KubeletPicker,
    PickMode,
    StaticOptions,
    StaticPolicy,
)
from nodealloc.cpuset._codec import from_kubelet, from_record, to_kubelet, to_record
from nodealloc.cpuset._hints import HintTable
from nodealloc.cpuset._pickers import SortStrategy
from nodealloc.cpuset._recorded import RecordedCpus
from nodealloc.cpuset._state import Assignment, CpuState
from nodealloc.machine import Machine
from nodealloc.podspec import Quantity
from nodealloc.testing.strategies.cpuset import cpu_machines, cpu_workloads, static_options, subsets
from nodealloc.testing.topology import check_allocator
from nodealloc.topology import Claim, NumaTopology, Owner, Shortfall, TopologyHint, Workload

ANYWHERE = TopologyHint(None, preferred=True)

pickers = st.builds(
    KubeletPicker,
    mode=st.sampled_from(PickMode),
    strategy=st.sampled_from(SortStrategy),
    group_size=st.sampled_from([1, 1, 2, 4]),
    align_caches=st.booleans(),
)


def options_for(machine: Machine, options: StaticOptions) -> StaticOptions:
    """The options, without `align_by_socket` where the machine does not take it."""
    layout = CpuLayout.of(machine)
    if options.align_by_socket and len(layout.sockets) > len(layout.nodes):
        return StaticOptions()
    return options


def policy_of(
    machine: Machine, options: StaticOptions, reserved: CPUSet, *, only_whole_cores: bool = False
) -> StaticPolicy:
    """A policy with these options as far as the machine takes them."""
    return StaticPolicy.of(
        machine,
        options=options_for(machine, options),
        reserved=reserved,
        only_whole_cores=only_whole_cores,
    )


def admitted(
    node: CpuAllocator, workload: Workload, affinity: TopologyHint = ANYWHERE
) -> CpuAllocator | None:
    """The node with all claims granted, or None."""
    for claim in workload.claims:
        answer = node.allocate(claim, ANYWHERE)
        if isinstance(answer, Shortfall):
            return None
        node = answer
    return node


@given(data=st.data(), machine=cpu_machines(), picker=pickers)
def test_a_picker_ends_and_takes_exactly_what_it_may(
    data: st.DataObject, machine: Machine, picker: KubeletPicker
) -> None:
    """Every topology, free set, count and setting comes to an end, with a subset of the right size."""
    layout = CpuLayout.of(machine)
    available = data.draw(subsets(machine.online))
    count = data.draw(st.integers(0, len(machine.online) + 1))
    taken = picker.pick(layout, available.mask, count)
    assert (taken is None) == (count > len(available))
    if taken is not None:
        assert taken & ~available.mask == 0
        assert taken.bit_count() == count


@given(machine=cpu_machines(), data=st.data())
def test_packing_breaks_at_most_one_core(machine: Machine, data: st.DataObject) -> None:
    """Of a free machine with even cores, packed CPUs leave no more than one core in pieces."""
    layout = CpuLayout.of(machine)
    count = data.draw(st.integers(0, len(machine.online)))
    taken = KubeletPicker().pick(layout, layout.cpus, count)
    assert taken is not None
    if layout.uniform:
        broken = [core for core in layout.cores if 0 < (core & taken).bit_count() < core.bit_count()]
        assert len(broken) <= 1


@given(machine=cpu_machines(), data=st.data(), align=st.booleans())
def test_hints_are_those_of_a_plain_enumeration(machine: Machine, data: st.DataObject, align: bool) -> None:
    """The table gives what trying every set of nodes one by one gives, listed or counted."""
    layout = CpuLayout.of(machine)
    available = data.draw(subsets(machine.online))
    reusable = data.draw(subsets(machine.online)) - available
    request = data.draw(st.integers(1, len(machine.online) + 1))
    table = HintTable(layout, align_by_socket=align)
    found = list(table.hints(available.mask, request, reusable=reusable.mask))
    assert found == enumerated(layout, available.mask, reusable.mask, request, align)


def enumerated(
    layout: CpuLayout, available: int, reusable: int, request: int, align: bool
) -> list[TopologyHint]:
    """Hints at length, mask by mask."""
    narrowest, found = len(layout.nodes), list[tuple[int, int]]()
    for size in range(1, len(layout.nodes) + 1):
        for chosen in combinations(layout.node_ids, size):
            mask = sum(1 << node for node in chosen)
            cpus = layout.on_nodes(mask)
            if cpus.bit_count() >= request:
                narrowest = min(narrowest, size)
            if reusable & ~cpus == 0 and ((available | reusable) & cpus).bit_count() >= request:
                found.append((mask, size))
    per_socket = len(layout.nodes) // len(layout.sockets)

    def is_good(mask: int, size: int) -> bool:
        sockets = sum(bool(layout.on_nodes(mask) & socket) for socket in layout.sockets)
        return size == narrowest or (align and per_socket > 0 and sockets == -(-narrowest // per_socket))

    return [TopologyHint(mask, is_good(mask, size)) for mask, size in found]


@given(machine=cpu_machines(), options=static_options(), data=st.data())
def test_exclusive_sets_and_the_pool_share_the_machine(
    machine: Machine, options: StaticOptions, data: st.DataObject
) -> None:
    """After any admissions and releases nobody shares a CPU with another workload, and none is lost."""
    reserved = data.draw(subsets(machine.online))
    node = empty = CpuAllocator(policy=policy_of(machine, options, reserved))
    for number in range(data.draw(st.integers(1, 6))):
        if data.draw(st.booleans()) or not node.state.assignments:
            node = admitted(node, data.draw(cpu_workloads(f"job-{number}"))) or node
        else:
            key = data.draw(st.sampled_from(sorted(node.state.assignments)))
            member = data.draw(st.sampled_from([None, *node.state.assignments[key]]))
            node = node.release(key, member)
        check_partition(node, reserved)
    for key in tuple(node.state.assignments):
        node = node.release(key)
    assert node == empty


@given(data=st.data())
def test_what_is_carried_along_is_what_adding_up_gives(data: st.DataObject) -> None:
    """Also of a remembered state in which workloads overlap, whatever was asked before."""
    keys, cpus = st.sampled_from("abc"), st.sets(st.integers(0, 5), min_size=1).map(CPUSet)
    held = st.builds(Assignment, cpus=cpus, shared_milli_cpu=st.integers(0, 3))
    members = st.dictionaries(keys, held, min_size=1)
    state = CpuState(assignments=data.draw(st.dictionaries(keys, members)))
    for _ in range(data.draw(st.integers(1, 6))):
        if data.draw(st.booleans()):
            state = state.with_assignment(Owner(data.draw(keys), data.draw(keys)), data.draw(held))
        else:
            state = state.without(data.draw(keys), data.draw(st.none() | keys))
        anew = CpuState(assignments=state.assignments)
        assert (state.held, state.shared_milli_cpu) == (anew.held, anew.shared_milli_cpu)


def check_partition(node: CpuAllocator, reserved: CPUSet) -> None:
    """Workloads, the shared pool and strictly reserved CPUs are disjoint and cover the machine."""
    policy = node.policy
    assert isinstance(policy, StaticPolicy)
    seen = 0
    for members in node.state.assignments.values():
        own = 0
        for assignment in members.values():
            own |= assignment.cpus.mask
        assert own & (seen | reserved.mask) == 0
        seen |= own
    assert node.shared.mask & seen == 0
    strict = reserved.mask if policy.options.strict_cpu_reservation else 0
    assert node.shared.mask & strict == 0
    assert node.shared.mask | seen | strict == policy.layout.cpus


@given(machine=cpu_machines(), workload=cpu_workloads())
def test_sidecars_share_with_nobody_behind_them(machine: Machine, workload: Workload) -> None:
    """A sidecar's CPUs, and those of main members, are nobody else's; only ended members lend."""
    node = admitted(CpuAllocator.of(machine), workload)
    if node is None:
        return
    held = {claim.owner.member: node.exclusive_of(claim.owner) for claim in workload.claims}
    for place, claim in enumerate(workload.claims):
        for later in workload.claims[place + 1 :]:
            if claim.owner.member not in later.reuse:
                assert held[claim.owner.member].isdisjoint(held[later.owner.member])


@given(machine=cpu_machines(), workload=cpu_workloads())
def test_a_cpu_is_free_when_no_holder_remains(machine: Machine, workload: Workload) -> None:
    """Releasing an ended init member frees what nobody took over, and never what somebody did."""
    node = admitted(CpuAllocator.of(machine), workload)
    if node is None:
        return
    for claim in workload.claims:
        ended = claim.owner.member
        others = CPUSet()
        for other in workload.claims:
            if other.owner.member != ended:
                others |= node.exclusive_of(other.owner)
        left = node.release(workload.key, ended)
        assert left.shared == node.shared | (node.exclusive_of(claim.owner) - others)


@given(machine=cpu_machines(), options=static_options(), data=st.data())
def test_each_option_keeps_its_promise(machine: Machine, options: StaticOptions, data: st.DataObject) -> None:
    """What each option says holds for what is granted, alone and beside every legal other."""
    reserved = data.draw(subsets(machine.online))
    policy = policy_of(machine, options, reserved, only_whole_cores=True)
    layout, options = policy.layout, policy.options
    node = CpuAllocator(policy=policy)
    node = admitted(node, data.draw(cpu_workloads("before"))) or node
    nodes = data.draw(st.sets(st.sampled_from(layout.node_ids), min_size=1))
    mask = sum(1 << number for number in nodes)
    count = data.draw(st.integers(1, len(machine.online)))
    claim = Claim(owner=Owner("job", "main"), amounts={"cpu": Quantity.of(count)})
    free = policy.allocatable & ~node.state.held
    answer = node.allocate(claim, TopologyHint(mask, preferred=True))
    if isinstance(answer, Shortfall):
        assert answer.wanted == count
        assert answer.free < count or options.full_pcpus_only
        return
    taken = answer.exclusive_of(claim.owner).mask
    local = layout.sockets_on(mask) if options.align_by_socket else layout.on_nodes(mask)
    if options.full_pcpus_only:
        assert layout.whole_cores(taken) == taken
        free = layout.whole_cores(free)
    else:
        assert (taken & local).bit_count() == min(count, (free & local).bit_count())
    if options.distribute_cpus_across_numa and layout.uniform and not options.full_pcpus_only:
        shares = sorted((taken & part).bit_count() for part in layout.nodes)
        assert shares[-1] < count or any((free & part).bit_count() >= count for part in layout.nodes)
    if options.strict_cpu_reservation:
        assert not answer.shared.mask & reserved.mask


@given(machine=cpu_machines(), data=st.data())
def test_an_even_split_is_even(machine: Machine, data: st.DataObject) -> None:
    """On a free machine of equal nodes as few nodes as possible give, and none a CPU more than another."""
    layout = CpuLayout.of(machine)
    size = layout.nodes[0].bit_count()
    if any(node.bit_count() != size for node in layout.nodes):
        return
    count = data.draw(st.integers(1, len(machine.online)))
    taken = KubeletPicker(mode=PickMode.DISTRIBUTED).pick(layout, layout.cpus, count)
    assert taken is not None
    shares = [share for node in layout.nodes if (share := (node & taken).bit_count())]
    fewest = -(-count // size)
    if fewest < 4:
        assert len(shares) == fewest
        assert max(shares) - min(shares) <= 1
    else:
        # From four nodes on the recorded choice may name other nodes for the rest.
        assert len(shares) < 2 * fewest


@given(machine=cpu_machines(), data=st.data())
def test_what_fits_into_one_cache_stays_in_it(machine: Machine, data: st.DataObject) -> None:
    """With caches aligned, whole cores that fit into a free cache are not spread over two."""
    layout = CpuLayout.of(machine)
    if not layout.uniform:
        return
    largest = max(cache.bit_count() for cache in layout.caches)
    threads = layout.threads_per_core
    count = data.draw(st.integers(1, largest // threads)) * threads
    if count >= layout.smallest_part:
        return
    taken = KubeletPicker(align_caches=True).pick(layout, layout.cpus, count)
    assert taken is not None
    touched = sum(bool(cache & taken) for cache in layout.caches)
    assert touched == 1 or count >= layout.cache_share


few_nodes = cpu_machines().filter(lambda machine: len(machine.numa_nodes) <= 5)


@given(machine=few_nodes, options=static_options(), workload=cpu_workloads())
def test_is_an_allocator(machine: Machine, options: StaticOptions, workload: Workload) -> None:
    """The promises of `Allocator` hold with every legal set of options."""
    policy = policy_of(machine, options, CPUSet.of(min(machine.online)))
    numa = NumaTopology(nodes=tuple(machine.nodes))
    check_allocator(
        CpuAllocator(policy=policy),
        workload,
        numa,
        every_hint_grants=not options.full_pcpus_only,
        exact_hints=not options.align_by_socket,
        steps=10,
    )


@given(machine=cpu_machines(), data=st.data())
def test_resize_up_keeps_and_down_is_a_subset(machine: Machine, data: st.DataObject) -> None:
    """Growing keeps every CPU, shrinking adds none, and going back ends where it began."""
    sizes = st.integers(1, len(machine.online))
    owner = Owner("job", "main")
    node = CpuAllocator(policy=StaticPolicy.of(machine, resizable=True))
    node = admitted(node, data.draw(cpu_workloads("beside"))) or node

    def claim(count: int) -> Claim:
        return Claim(owner=owner, amounts={"cpu": Quantity.of(count)})

    first = data.draw(sizes)
    started = node.allocate(claim(first), ANYWHERE)
    if isinstance(started, Shortfall):
        return
    node, baseline = started, started.exclusive_of(owner)
    for size in (*data.draw(st.lists(sizes, max_size=4)), first):
        before = node.exclusive_of(owner)
        answer = node.resize(claim(size))
        if isinstance(answer, Shortfall):
            assert size > len(before)
            continue
        node = answer
        now = node.exclusive_of(owner)
        assert len(now) == size
        assert now >= before if size >= len(before) else now <= before
        if size >= first and len(before) >= first and before >= baseline:
            assert now >= baseline
        check_partition(node, CPUSet())


@given(machine=cpu_machines(), later=cpu_machines(), data=st.data())
def test_a_restored_state_fits_whatever_became_of_the_machine(
    machine: Machine, later: Machine, data: st.DataObject
) -> None:
    """Any state on any machine gives a plan: everybody is in it once, and its result is sound."""
    node = CpuAllocator.of(machine)
    for number in range(3):
        node = admitted(node, data.draw(cpu_workloads(f"job-{number}"))) or node
    reserved = data.draw(subsets(later.online))
    policy = policy_of(later, data.draw(static_options()), reserved)
    plan = CpuAllocator(policy=policy).plan_restore(
        RecordedCpus(policy_name="static", shared=node.shared, state=node.state)
    )
    named = [*plan.keep, *(one.owner for one in plan.move), *(one.owner for one in plan.evict)]
    assert sorted(named) == sorted(owner for owner, _ in node.state.items())
    check_partition(plan.allocator, reserved)
    for owner in plan.keep:
        assert plan.allocator.exclusive_of(owner) == node.exclusive_of(owner)
    for move in plan.move:
        assert plan.allocator.exclusive_of(move.owner) == move.after
        assert len(move.after) == len(move.before)
    again = CpuAllocator(policy=policy).plan_restore(
        RecordedCpus(policy_name="static", state=plan.allocator.state)
    )
    assert again.is_clean


@given(machine=cpu_machines(), workload=cpu_workloads())
def test_records_read_back_as_they_were_written(machine: Machine, workload: Workload) -> None:
    """Both records, the kubelet's and ours, hold all that a start needs."""
    node = CpuAllocator.of(machine)
    node = admitted(node, workload) or node
    for recorded in (from_kubelet(to_kubelet(node)), from_record(to_record(node))):
        assert recorded.state == node.state
        assert recorded.shared == node.shared
        assert CpuAllocator(policy=node.policy).plan_restore(recorded).is_clean


@given(sets=st.lists(st.sets(st.integers(0, 40), min_size=1, max_size=6), min_size=1, max_size=6))
def test_overlapping_states_never_put_a_cpu_into_two_workloads(sets: list[set[int]]) -> None:
    """A tampered state with overlaps and absent CPUs comes out disjoint."""
    from nodealloc.machine import machine_from_text

    state = CpuState(
        assignments={f"job-{n}": {"main": Assignment(cpus=CPUSet(cpus))} for n, cpus in enumerate(sets)}
    )
    policy = StaticPolicy.of(machine_from_text("2 sockets x 8 cores x 2 threads"), reserved=CPUSet.of(0))
    plan = CpuAllocator(policy=policy).plan_restore(RecordedCpus(policy_name="static", state=state))
    check_partition(plan.allocator, CPUSet.of(0))


@pytest.mark.slow
@given(data=st.data())
def test_many_nodes_come_to_an_end(data: st.DataObject) -> None:
    """With 24 NUMA nodes the search for an even split stays short."""
    from nodealloc.machine import machine_from_text

    machine = machine_from_text("4 sockets x 6 numa x 2 cores x 2 threads")
    layout = CpuLayout.of(machine)
    available = data.draw(subsets(machine.online))
    count = data.draw(st.integers(1, len(machine.online)))
    taken = KubeletPicker(mode=PickMode.DISTRIBUTED, group_size=2).pick(layout, available.mask, count)
    assert (taken is None) == (count > len(available))
