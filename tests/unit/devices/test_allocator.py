"""Choosing devices: what is free, what may be used again, what has to wait."""

from __future__ import annotations

import attrs
import pytest

from nodealloc.devices import (
    Device,
    DeviceAllocator,
    DeviceList,
    Grant,
    Inventory,
    Phase,
    PluginOptions,
    pick,
)
from nodealloc.devices._state import remembered, restored
from nodealloc.podspec import Container, Pod, Quantity
from nodealloc.testing.topology import check_allocator
from nodealloc.topology import (
    Claim,
    ClaimKind,
    NotYet,
    NumaTopology,
    Owner,
    Shortfall,
    TopologyHint,
    Workload,
    workload_of,
)

GPU = "example.com/gpu"
ANY = TopologyHint(None, False)


def listed(*devices: Device, preferred_allocation: bool = False) -> Inventory:
    """A resource whose plugin serves these."""
    blank = Inventory(resource=GPU).registered(1, now_s=0.0)
    options = PluginOptions(preferred_allocation=preferred_allocation)
    return blank.listed(1, DeviceList.of(devices, nodes=(0, 1)), options, now_s=0.0)


def eight(*, preferred_allocation: bool = False) -> DeviceAllocator:
    """Four devices on each of two nodes."""
    devices = (Device(f"dev-{n}", numa_nodes=1 << (n // 4)) for n in range(8))
    return DeviceAllocator(nodes=(0, 1)).with_inventory(
        listed(*devices, preferred_allocation=preferred_allocation)
    )


def claim(member: str, count: int, *, kind: ClaimKind = ClaimKind.MAIN, reuse: tuple[str, ...] = ()) -> Claim:
    """A claim of the workload `pod`."""
    return Claim(owner=Owner("pod", member), amounts={GPU: Quantity.of(count)}, kind=kind, reuse=reuse)


def granted(allocator: DeviceAllocator, asked: Claim, affinity: TopologyHint = ANY) -> DeviceAllocator:
    """The allocator after a claim that has to fit."""
    after = allocator.allocate(asked, affinity)
    assert isinstance(after, DeviceAllocator), after
    return after


def ids(allocator: DeviceAllocator, member: str) -> set[str]:
    """What a member of `pod` holds."""
    return set(allocator.grants["pod"][member, GPU].ids)


def test_devices_come_from_the_affinity() -> None:
    """Devices inside the affinity are taken before any other."""
    assert ids(granted(eight(), claim("c", 2), TopologyHint(2, True)), "c") == {"dev-4", "dev-5"}


def test_the_rest_comes_from_elsewhere() -> None:
    """When the affinity holds too few, all of it is taken and the rest comes from other nodes."""
    held = ids(granted(eight(), claim("c", 5), TopologyHint(2, False)), "c")
    assert held == {"dev-4", "dev-5", "dev-6", "dev-7", "dev-0"}


def test_a_pod_that_is_held_keeps_what_it_has() -> None:
    """Allocating again is answered with the same value, whatever the affinity."""
    once = granted(eight(), claim("c", 2))
    assert granted(once, claim("c", 2), TopologyHint(2, True)) is once


def test_another_number_for_a_held_claim_is_refused() -> None:
    """A container that holds two devices cannot be let in with three."""
    answer = granted(eight(), claim("c", 2)).allocate(claim("c", 3), ANY)
    assert isinstance(answer, Shortfall)
    assert (answer.wanted, answer.free) == (3, 2)


def test_too_few_devices_name_the_numbers() -> None:
    """The shortfall says how many were wanted and how many are free."""
    answer = granted(eight(), claim("a", 6)).allocate(claim("b", 3), ANY)
    assert isinstance(answer, Shortfall)
    assert (answer.resource, answer.wanted, answer.free) == (GPU, 3, 2)


def test_unhealthy_devices_are_not_given() -> None:
    """Only healthy devices count as free."""
    inventory = listed(Device("a", "Unhealthy"), Device("b"))
    allocator = DeviceAllocator().with_inventory(inventory)
    assert ids(granted(allocator, claim("c", 1)), "c") == {"b"}


def test_main_containers_use_what_init_containers_had() -> None:
    """The footprint of a pod is its effective request: init devices are used again."""
    first = granted(eight(), claim("init", 4, kind=ClaimKind.INIT))
    second = granted(first, claim("main", 4, reuse=("init",)))
    assert ids(second, "main") == ids(second, "init")


def test_two_main_containers_share_nothing() -> None:
    """What one main container took from the init container is not there for the next."""
    first = granted(eight(), claim("init", 3, kind=ClaimKind.INIT))
    second = granted(first, claim("a", 2, reuse=("init",)))
    third = granted(second, claim("b", 2, reuse=("init",)))
    assert not ids(third, "a") & ids(third, "b")
    assert len(ids(third, "a") | ids(third, "b") | ids(third, "init")) == 4


def test_a_sidecar_lends_nothing() -> None:
    """A sidecar keeps running, so its devices are disjoint from every later container's."""
    pod = Pod(
        uid="pod",
        init_containers=(
            Container(name="init", requests={GPU: Quantity.of(2)}),
            Container(name="side", requests={GPU: Quantity.of(1)}, restartable=True),
            Container(name="late", requests={GPU: Quantity.of(2)}),
        ),
        containers=(Container(name="main", requests={GPU: Quantity.of(2)}),),
    )
    allocator = eight()
    for one in workload_of(pod).claims:
        allocator = granted(allocator, one)
    assert not ids(allocator, "side") & ids(allocator, "late")
    assert not ids(allocator, "side") & ids(allocator, "main")
    assert ids(allocator, "main") <= ids(allocator, "late") | ids(allocator, "init")


def test_a_device_is_free_when_its_last_holder_is_gone() -> None:
    """Releasing the init container frees nothing that the main container uses."""
    both = granted(granted(eight(), claim("init", 4, kind=ClaimKind.INIT)), claim("main", 2, reuse=("init",)))
    after = both.release("pod", "init")
    taken = granted(after, Claim(owner=Owner("other", "c"), amounts={GPU: Quantity.of(6)}))
    assert not taken.grants["other"]["c", GPU].ids & ids(after, "main")
    assert isinstance(
        taken.allocate(Claim(owner=Owner("x", "c"), amounts={GPU: Quantity.of(1)}), ANY), Shortfall
    )


@pytest.mark.parametrize("is_restored", [True, False])
def test_a_device_that_two_workloads_hold_is_free_when_both_are_gone(is_restored: bool) -> None:
    """A file may say so of them; the one that stays would share its device with whoever comes."""
    grants = {one: {("c", GPU): Grant(places={0: ("dev-0",)})} for one in ("a", "b")}
    allocator = DeviceAllocator(nodes=(0, 1), grants=grants)
    if is_restored:
        allocator = restored(DeviceAllocator(nodes=(0, 1)), remembered(allocator))
    allocator = allocator.with_devices(GPU, [Device("dev-0"), Device("dev-1")]).release("a")
    wanted = claim("main", 1)
    assert ids(granted(allocator, wanted), "main") == {"dev-1"}
    assert ids(granted(allocator.release("b"), wanted), "main") == {"dev-0"}


def test_releasing_all_restores_the_beginning() -> None:
    """An allocator without its only workload equals the one before it."""
    assert granted(eight(), claim("c", 3)).release("pod") == eight()


def test_unhealthy_devices_are_not_used_again() -> None:
    """An init container's device that became unhealthy is not handed to the main container."""
    first = granted(eight(), claim("init", 1, kind=ClaimKind.INIT))
    sick = (Device(f"dev-{n}", "Unhealthy" if n == 0 else "Healthy", 1 << (n // 4)) for n in range(8))
    after = granted(first.with_inventory(listed(*sick)), claim("main", 1, reuse=("init",)))
    assert ids(after, "main") == {"dev-1"}


def test_an_unknown_resource_is_not_yet() -> None:
    """A plugin that has not registered is a reason to wait, not to refuse."""
    answer = DeviceAllocator().hints([claim("c", 1)])
    assert isinstance(answer, NotYet)
    assert GPU in answer.message


def test_other_resources_are_left_out() -> None:
    """CPUs, memory and whatever is not awaited belong to others."""
    asked = Claim(
        owner=Owner("pod", "c"),
        amounts={"cpu": Quantity.of(2), "hugepages-2Mi": Quantity.of(4), GPU: Quantity.of(1)},
    )
    allocator = DeviceAllocator(awaited=frozenset())
    assert allocator.hints([asked]) == {}
    assert allocator.allocate(asked, ANY) == allocator


@pytest.mark.parametrize("phase", [Phase.AWAITED, Phase.CONNECTING, Phase.LOST])
def test_a_plugin_that_is_away_means_not_yet(phase: Phase) -> None:
    """New requests wait for the plugin; what is granted stands."""
    held = granted(eight(), claim("c", 2))
    away = held.with_inventory(attrs.evolve(held.inventories[GPU], phase=phase))
    assert isinstance(away.allocate(claim("d", 1), ANY), NotYet)
    assert isinstance(away.hints([claim("d", 1)]), NotYet)
    assert away.allocate(claim("c", 2), ANY) is away
    assert not isinstance(away.hints([claim("c", 2)]), NotYet)


def test_a_plugin_that_is_gone_means_no() -> None:
    """After the grace period a request is refused, and says why."""
    lost = eight().inventories[GPU].ended(1, "crashed", now_s=10.0)
    gone = lost.aged(now_s=311.0, grace_s=300.0)
    answer = eight().with_inventory(gone).allocate(claim("c", 1), ANY)
    assert isinstance(answer, Shortfall)
    assert "gone" in answer.detail
    assert gone.capacity == (0, 0)


def test_devices_may_be_said_without_a_plugin() -> None:
    """Whoever asks what a node would answer says what is there; of what is not there nobody waits."""
    said = DeviceAllocator(nodes=(0, 1)).with_devices(GPU, [Device("a", numa_nodes=2), Device("b")])
    assert said == DeviceAllocator(nodes=(0, 1)).with_inventory(
        attrs.evolve(listed(Device("a", numa_nodes=2), Device("b")), generation=0)
    )
    assert granted(said, claim("c", 1), TopologyHint(2, True)).devices_of(Owner("pod", "c")) == {GPU: {"a"}}
    none = said.with_devices(GPU, [])
    answer = none.allocate(claim("c", 1), ANY)
    assert isinstance(answer, Shortfall)
    assert answer.detail == "c: 1 example.com/gpu wanted, 0 free: there is none here; ask another node"
    (row,) = none.availability([claim("c", 1)])
    assert sum(row.allocatable.values()) == 0 < len(row.allocatable)


def test_releasing_is_advised_only_where_it_could_help() -> None:
    """Of eight, nine are never had."""
    full = granted(eight(), claim("a", 8))
    for wanted, advice in ((8, "ask for fewer or release some"), (9, "0 of them unhealthy; ask for fewer")):
        answer = full.allocate(claim("b", wanted), ANY)
        assert isinstance(answer, Shortfall)
        assert answer.detail.endswith(advice)


def test_an_empty_first_list_means_not_yet() -> None:
    """Some plugins begin with an empty list; nobody is refused because of it."""
    empty = (
        Inventory(resource=GPU).registered(1, now_s=0.0).listed(1, DeviceList(), PluginOptions(), now_s=0.0)
    )
    answer = DeviceAllocator(retry_s=7.0).with_inventory(empty).allocate(claim("c", 1), ANY)
    assert isinstance(answer, NotYet)
    assert answer.after_s == 7.0


def test_empty_lists_for_a_grace_period_mean_no() -> None:
    """A plugin that lists none for so long has none; further lists of none begin no other period."""
    empty = Inventory(resource=GPU).registered(1, now_s=0.0)
    for now_s in (0.0, 200.0):
        empty = empty.listed(1, DeviceList(), PluginOptions(), now_s=now_s)
    early, late = (empty.aged(now_s=now_s, grace_s=300.0) for now_s in (299.0, 300.0))
    answer = DeviceAllocator().with_inventory(early).allocate(claim("c", 1), ANY)
    assert isinstance(answer, NotYet)
    answer = DeviceAllocator().with_inventory(late).allocate(claim("c", 1), ANY)
    assert isinstance(answer, Shortfall)
    assert answer.detail.endswith("there is none here; ask another node")
    again = late.registered(2, now_s=400.0).listed(2, DeviceList(), PluginOptions(), now_s=400.0)
    assert not again.aged(now_s=699.0, grace_s=300.0).settled


def test_an_empty_later_list_means_no() -> None:
    """A plugin that has listed devices and has none now is short of them."""
    empty = listed(Device("a")).listed(1, DeviceList(), PluginOptions(), now_s=0.0)
    assert isinstance(DeviceAllocator().with_inventory(empty).allocate(claim("c", 1), ANY), Shortfall)


def test_a_question_is_noted_where_there_is_a_choice() -> None:
    """The allocator notes what it would ask the plugin, and decides all the same."""
    after = granted(eight(preferred_allocation=True), claim("c", 2), TopologyHint(2, True))
    (question,) = after.unanswered
    assert question.available == ("dev-4", "dev-5", "dev-6", "dev-7")
    assert (question.must_include, question.size) == ((), 2)


def test_an_answer_decides() -> None:
    """With the answer at hand the preferred devices are taken, inside the affinity alone."""
    base = eight(preferred_allocation=True)
    (question,) = granted(base, claim("c", 2), TopologyHint(2, True)).unanswered
    answered = base.with_answers({question: ("dev-7", "dev-0", "dev-6", "no-such-device")})
    after = granted(answered, claim("c", 2), TopologyHint(2, True))
    assert ids(after, "c") == {"dev-6", "dev-7"}
    assert after.unanswered == ()


def test_no_choice_no_question() -> None:
    """When all that is left is taken anyway, nobody is asked."""
    assert granted(eight(preferred_allocation=True), claim("c", 8)).unanswered == ()
    assert granted(eight(preferred_allocation=True), claim("c", 4), TopologyHint(1, True)).unanswered == ()


def test_answers_die_with_the_devices_they_speak_of() -> None:
    """A new list of devices makes old preferences worthless."""
    base = eight(preferred_allocation=True)
    (question,) = granted(base, claim("c", 2)).unanswered
    answered = base.with_answers({question: ("dev-7",)})
    fewer = (Device(f"dev-{n}", numa_nodes=1) for n in range(4))
    assert answered.with_inventory(listed(*fewer, preferred_allocation=True)).answers == {}


def test_places_are_remembered_with_the_grant() -> None:
    """A grant knows its nodes, so that hints need no plugin."""
    after = granted(eight(), claim("c", 5))
    assert after.grants["pod"]["c", GPU].places == {0: ("dev-0", "dev-1", "dev-2", "dev-3"), 1: ("dev-4",)}


def test_a_device_at_two_nodes_stands_at_both() -> None:
    """A device that spans nodes is remembered under each, and counts once."""
    grant = Grant.of([("a", (0, 1)), ("b", ())])
    assert grant.places == {-1: ("b",), 0: ("a",), 1: ("a",)}
    assert grant.ids == {"a", "b"}
    assert grant.nodes == {"a": (0, 1), "b": ()}


class Compared(str):
    """A text that counts how often such texts are compared."""

    __slots__ = ()
    times = 0

    def __eq__(self, other: object) -> bool:
        Compared.times += 1
        return str.__eq__(self, str(other))

    __hash__ = str.__hash__


def test_a_pod_of_many_devices_is_told_apart_once_each() -> None:
    """Hints for what it holds, and its release, look at each device a few times, however many there are."""
    many = [Device(Compared(f"dev-{n:03}"), numa_nodes=1 << (n % 2)) for n in range(300)]
    allocator = DeviceAllocator(nodes=(0, 1)).with_inventory(listed(*many))
    after = granted(allocator, claim("c", 300))
    Compared.times = 0
    assert after.hints([claim("c", 300)]) == {GPU: [TopologyHint(3, True)]}
    assert after.release("pod").capacity() == allocator.capacity()
    assert Compared.times < 300 * 10


def test_held_devices_hint_at_their_narrowest_place_as_preferred() -> None:
    """A running pod is never refused because a narrower place exists by now."""
    spread = granted(eight(), claim("c", 5)).release("pod")
    wide = attrs.evolve(
        spread, grants={"pod": {("c", GPU): Grant.of([("dev-0", (0,)), ("dev-4", (1,))])}}, held={GPU: 17}
    )
    assert wide.hints([claim("c", 2)]) == {GPU: [TopologyHint(3, True)]}


def test_devices_that_vanish_stay_granted() -> None:
    """A list without a device that is in use takes it from nobody, and nobody else gets its id later."""
    held = granted(eight(), claim("c", 2))
    without = held.with_inventory(listed(*(Device(f"dev-{n}", numa_nodes=1) for n in range(2, 4))))
    assert ids(without, "c") == {"dev-0", "dev-1"}
    back = without.with_inventory(eight().inventories[GPU])
    other = granted(back, Claim(owner=Owner("o", "c"), amounts={GPU: Quantity.of(6)}))
    assert not other.grants["o"]["c", GPU].ids & ids(back, "c")


def test_nothing_is_asked_nothing_is_done() -> None:
    """A claim without devices is answered with the very same value."""
    allocator = eight()
    assert allocator.allocate(claim("c", 0), ANY) is allocator


def test_availability_counts_by_node() -> None:
    """A refusal can say what is free where."""
    (row,) = granted(eight(), claim("c", 3)).availability([claim("d", 7)])
    assert (row.wanted, dict(row.free), dict(row.allocatable)) == (7, {0: 1, 1: 4}, {0: 4, 1: 4})


def test_placeless_devices_count_under_no_node() -> None:
    """Devices without a place stand under -1, and hint at nothing."""
    allocator = DeviceAllocator().with_inventory(listed(Device("a"), Device("b")))
    (row,) = allocator.availability([claim("d", 7)])
    assert dict(row.free) == {-1: 2}
    assert allocator.hints([claim("d", 1)]) == {GPU: None}


def test_hints_for_a_whole_pod_are_for_its_peak() -> None:
    """Several claims are hinted for what they hold together."""
    hints = eight().hints([claim("a", 3), claim("b", 3)])
    assert hints == {GPU: [TopologyHint(3, True)]}


def test_a_device_list_knows_its_devices() -> None:
    """A device reads back as it was listed; an unknown one is None."""
    devices = DeviceList.of([Device("b", numa_nodes=3), Device("a", "Unhealthy")], nodes=(0, 1))
    assert devices.device("b") == Device("b", numa_nodes=3)
    assert devices.device("a") == Device("a", "Unhealthy")
    assert devices.device("c") is None
    assert devices.nodes_of("c") == ()
    assert devices.ids_of(devices.everything) == ("a", "b")


def test_pick_prefers_reusable_inside_the_affinity() -> None:
    """Of more reusable devices than wanted, those inside the affinity come first."""
    devices = DeviceList.of((Device(f"d{n}", numa_nodes=1 << n) for n in range(3)), nodes=(0, 1, 2))
    chosen = pick(devices, 1, available=0, reusable=7, affinity=4, prefer=lambda _among, _settled: None)
    assert chosen == 4


def test_the_allocator_keeps_the_promises_of_allocators() -> None:
    """The check for allocators holds, with init containers, sidecars and preferences."""
    asked = Workload(
        key="pod",
        claims=(
            claim("init", 3, kind=ClaimKind.INIT),
            claim("side", 1, kind=ClaimKind.SIDECAR, reuse=("init",)),
            claim("main", 2, reuse=("init",)),
        ),
    )
    for allocator in (eight(), eight(preferred_allocation=True)):
        check_allocator(allocator, asked, NumaTopology(nodes=(0, 1)))


def test_a_running_pod_is_held_without_its_init_container() -> None:
    """After the init container ended and gave back what it had, the whole pod is still held."""
    init, main = claim("init", 4, kind=ClaimKind.INIT), claim("main", 2, reuse=("init",))
    running = granted(granted(eight(), init), main, TopologyHint(1, True)).release("pod", "init")
    assert running.hints([init, main]) == {GPU: [TopologyHint(1, True), TopologyHint(3, False)]}


def test_a_pod_that_is_held_in_part_is_hinted_with_what_it_has() -> None:
    """Its own devices count as available to the rest of it."""
    part = granted(eight(), claim("a", 4), TopologyHint(1, True))
    taken = granted(part, Claim(owner=Owner("other", "c"), amounts={GPU: Quantity.of(3)}))
    assert taken.hints([claim("a", 4), claim("b", 1)]) == {GPU: [TopologyHint(3, True)]}
