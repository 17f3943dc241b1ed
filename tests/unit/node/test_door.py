"""The door of a node: whoever it admits has passed the whole chain, and a resize passes it as well."""

from __future__ import annotations

import json
from collections.abc import Sequence

import attrs
import pytest

from nodealloc.admission import KUBELET, MakingRoom, chain_of
from nodealloc.checkpoint import CpuManagerState, JsonCheckpoint, MemoryStore
from nodealloc.cpuset import CpuAllocator, NonePolicy, StaticPolicy
from nodealloc.devices import DeviceAllocator
from nodealloc.errors import ConfigurationError
from nodealloc.idset import CPUSet, NodeSet
from nodealloc.machine import machine_from_text
from nodealloc.memblocks import MemoryAllocator
from nodealloc.node import FORMATS, NodeAllocator
from nodealloc.podfacts import LifeState, NodeView, PodOnNode, PodsOnNode, Pressure, Taint, TaintEffect
from nodealloc.podspec import Json, Pod, resources
from nodealloc.testing.topology import workload
from nodealloc.topology import Allocator, Confinement, Owner, Placed, Policy, Snapshot
from nodealloc.verdicts import Admitted, NotYet, Refused, Verdict

MACHINE = machine_from_text("2 sockets x 16 cores, memory=8Gi")
VIEW = NodeView(
    name="n1",
    labels={"zone": "a"},
    allocatable=resources({"cpu": 31, "memory": "15Gi", "pods": 10}),
)
GIB = 1 << 30
DB = Owner("db", "app")


def empty(*more: Allocator) -> Snapshot:
    """A node of two NUMA nodes that aligns, and lets what it pins grow."""
    return Snapshot.of(
        MACHINE,
        policy=Policy.parse("single-numa-node"),
        allocators=[
            CpuAllocator(policy=StaticPolicy.of(MACHINE, reserved=1, resizable=True)),
            MemoryAllocator.of(MACHINE),
            *more,
        ],
    )


def started(
    store: MemoryStore | None = None, view: NodeView | None = VIEW, *more: Allocator, **options: object
) -> NodeAllocator:
    """A node that is ready."""
    node = NodeAllocator(empty(*more), store or MemoryStore(FORMATS), view=view, **options)  # type: ignore[arg-type]
    node.start()
    return node


def again(store: MemoryStore) -> MemoryStore:
    """The same bytes, as the next process finds them."""
    return MemoryStore(FORMATS, data=store.data())


def pod(name: str, cpu: str = "1", memory: str = "1Gi", *, limited: bool = False, **spec: Json) -> Pod:
    """A pod of one container; with limits it holds CPUs of its own."""
    asked: dict[str, Json] = {"cpu": cpu, "memory": memory}
    amounts: dict[str, Json] = {"requests": asked, **({"limits": asked} if limited else {})}
    container: dict[str, Json] = {"name": "app", "resources": amounts}
    port = spec.pop("port", None)
    if port is not None:
        container["ports"] = [{"containerPort": 80, "hostPort": port}]
    metadata: dict[str, Json] = {"name": name, "uid": name}
    return Pod.from_manifest({"metadata": metadata, "spec": {"containers": [container], **spec}})


def never(asked: Pod, view: NodeView, /) -> Verdict:
    """A handler that nobody may ask."""
    raise AssertionError(f"{asked.full_name} was judged on {view.name}")


@pytest.mark.parametrize("policy", [StaticPolicy.of(MACHINE, reserved=0), NonePolicy.of(MACHINE)])
def test_a_thousand_cpus_do_not_come_in_on_thirty_two(policy: StaticPolicy | NonePolicy) -> None:
    """Where nobody says what there is, the allocators' CPUs and memory are what pods are judged by."""
    snapshot = Snapshot.of(MACHINE, allocators=[CpuAllocator(policy=policy), MemoryAllocator.of(MACHINE)])
    node = NodeAllocator(snapshot, MemoryStore(FORMATS))
    node.start()
    verdict = node.admit(pod("large", "1000"))
    assert isinstance(verdict, Refused)
    assert verdict.figures["capacity"] == 32000
    assert isinstance(node.admit(pod("a", "30")), Placed)
    second = node.admit(pod("b", "3"))
    assert isinstance(second, Refused)
    assert second.figures["used"] == 30000
    fourteen, two = pod("c", "1", "14Gi"), pod("d", "1", "2Gi")
    assert isinstance(node.admit(fourteen), Placed)
    assert str(node.admit(two)).startswith("OutOfmemory")


def test_what_nobody_counts_is_not_refused() -> None:
    """A node of which nothing is said takes storage, huge pages and any number of pods."""
    node = NodeAllocator(Snapshot.of(MACHINE), MemoryStore(FORMATS))
    node.start()
    asked: Json = {"cpu": 500, "memory": "1Ti", "ephemeral-storage": "1Ti", "hugepages-2Mi": "2Mi"}
    amounts: Json = {"limits": asked}
    box: Json = {"name": "app", "resources": amounts}
    for number in range(120):
        meta: Json = {"name": f"p{number}", "uid": f"p{number}"}
        assert isinstance(
            node.admit(Pod.from_manifest({"metadata": meta, "spec": {"containers": [box]}})), Placed
        )
    assert len(node.view.pods) == 120


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (pod("p", nodeSelector={"zone": "b"}), "NodeAffinity"),
        (pod("p", nodeName="n2"), "NodeName"),
        (pod("p", port=80), "NodePorts"),
        (pod("p", os={"name": "windows"}), "PodOSNotSupported"),
    ],
)
def test_the_node_asks_the_whole_chain(asked: Pod, reason: str) -> None:
    """Selector, name, host ports, operating system; nothing of a refused pod is kept."""
    node = started()
    assert isinstance(node.admit(pod("first", port=80)), Placed)
    before = node.snapshot, node.view, node.records
    verdict = node.admit(asked)
    assert isinstance(verdict, Refused)
    assert verdict.reason == reason
    assert (node.snapshot, node.view, node.records) == before


def test_the_view_follows_the_machine() -> None:
    """Taints, pressure and shutdown count from the moment at which they are told."""
    node = started()
    taint = Taint(key="full", effect=TaintEffect.NO_EXECUTE)
    node.alter_view(lambda view: attrs.evolve(view, taints=(taint,)))
    assert not isinstance(node.admit(pod("a")), Admitted)
    node.alter_view(lambda view: attrs.evolve(view, taints=(), pressure=frozenset({Pressure.DISK})))
    assert str(node.admit(pod("a"))).startswith("Evicted")
    node.alter_view(lambda view: attrs.evolve(view, pressure=frozenset()))
    assert isinstance(node.admit(pod("a")), Placed)
    with pytest.raises(ConfigurationError, match="they come by `admit`"):
        node.alter_view(lambda view: view.without("a"))
    assert list(node.view.pods) == ["a"]


def test_a_view_that_changes_while_a_pod_is_judged_is_judged_anew() -> None:
    """No verdict rests on a view that was replaced before it was remembered."""
    nodes: list[NodeAllocator] = []

    def slow(asked: Pod, view: NodeView, /) -> Verdict:
        if not view.shutting_down:
            nodes[0].alter_view(lambda one: attrs.evolve(one, shutting_down=True))
        return Admitted()

    nodes.append(started(chain=chain_of(slow)))
    assert str(nodes[0].admit(pod("a"))).startswith("NodeShutdown")
    assert not nodes[0].records


def test_handlers_of_ones_own_are_asked() -> None:
    """A node with one licence lets one pod in."""

    def licence(asked: Pod, view: NodeView, /) -> Verdict:
        if not view.pods:
            return Admitted()
        return Refused(reason="NoLicence", message=f"{asked.full_name} needs the one that is taken")

    node = started(chain=chain_of(licence))
    assert isinstance(node.admit(pod("a")), Placed)
    assert str(node.admit(pod("b"))).startswith("NoLicence")
    node.release("a")
    assert isinstance(node.admit(pod("b")), Placed)


def test_what_an_ending_pod_holds_is_not_yet_free() -> None:
    """Its host port, its share of the CPUs, and CPUs of its own that no other NUMA node has."""
    node = started()
    assert isinstance(node.admit(pod("a", "14", limited=True, port=80)), Placed)
    assert isinstance(node.admit(pod("b", "10", limited=True)), Placed)
    assert isinstance(node.admit(pod("wide", "7", limited=True)), Refused)
    assert isinstance(node.admit(pod("c", "1", port=80)), Refused)
    assert isinstance(node.admit(pod("large", "8")), Refused)
    node.mark_ending("a")
    node.mark_ending("nobody")
    assert node.view.pods["a"].state is LifeState.TERMINATING
    for asked in (pod("wide", "7", limited=True), pod("c", "1", port=80), pod("large", "8")):
        verdict = node.admit(asked)
        assert isinstance(verdict, NotYet)
        assert verdict.blocker == "default/a"
    node.release("a")
    assert isinstance(node.admit(pod("wide", "7", limited=True)), Placed)
    assert isinstance(node.admit(pod("c", "1", port=80)), Placed)


def test_a_pod_that_ends_and_was_never_admitted_here_counts_until_it_is_released() -> None:
    """An earlier process started it and nothing of it is remembered: others wait, and nothing is written."""
    store = MemoryStore(FORMATS)
    node = started(store)
    old, before, rows = pod("old", "30", limited=True, port=80), node.snapshot, store.data()
    node.mark_ending(old)
    node.mark_ending(old)
    assert node.view.pods["old"].state is LifeState.TERMINATING
    assert str(node.view.pods.requested["cpu"]) == "30"
    assert (node.snapshot, node.records, store.data()) == (before, {}, rows)
    for asked in (pod("new", "2"), pod("web", port=80)):
        verdict = node.admit(asked)
        assert isinstance(verdict, NotYet)
        assert verdict.blocker == "default/old"
    assert isinstance(node.admit(pod("large", "32")), Refused)
    node.release("old", "app")
    assert "old" in node.view.pods
    node.release("old")
    assert not node.view.pods
    assert isinstance(node.admit(pod("new", "2")), Placed)
    assert isinstance(node.admit(pod("web", port=80)), Placed)


def test_a_pod_of_the_view_that_was_neither_admitted_nor_ends_stays_in_it() -> None:
    """Whoever made the view knows of it: releasing what holds nothing changes nothing."""
    other = PodOnNode.of(pod("other"))
    node = started(view=attrs.evolve(VIEW, pods=PodsOnNode([other])))
    node.release("other")
    assert "other" in node.view.pods
    node.mark_ending("other")
    node.release("other")
    assert not node.view.pods


def test_a_store_that_cannot_be_written_hinders_nobody_to_say_that_a_pod_ends() -> None:
    """Nothing of it is remembered, so that nothing is written."""
    store = MemoryStore(FORMATS)
    node = started(store)
    store.close()
    node.mark_ending(pod("old"))
    assert "old" in node.view.pods
    node.release("old")
    assert not node.view.pods


def test_a_pod_that_ends_is_not_in_its_own_way() -> None:
    """Asked for after all, it is judged beside others, and ends on; what is not in has no other resources."""
    node = started()
    old = pod("old", "14", limited=True, port=80)
    node.mark_ending(old)
    with pytest.raises(ConfigurationError, match="does not have it"):
        node.resize(pod("old", "2", limited=True, port=80))
    assert isinstance(node.admit(old), Placed)
    assert node.view.pods["old"].state is LifeState.TERMINATING
    assert str(node.view.pods.requested["cpu"]) == "14"
    node.release("old")
    assert not node.view.pods
    node.mark_ending(old)
    node.adopt(old, {"app": Confinement(cpus=CPUSet.parse("1-14"), mems=NodeSet.of(0))})
    assert node.view.pods["old"].state is LifeState.TERMINATING


def test_a_pod_that_was_admitted_ends_as_it_was_admitted() -> None:
    """Whatever form of it is told to end: what it holds is what counts."""
    node = started()
    assert isinstance(node.admit(pod("a", "14", limited=True)), Placed)
    node.mark_ending(pod("a", "1"))
    assert node.view.pods["a"].state is LifeState.TERMINATING
    assert str(node.view.pods.requested["cpu"]) == "14"


def test_a_refusal_for_good_is_none_that_an_ending_pod_delays() -> None:
    """What does not fit when they have ended does not fit."""
    node = started()
    assert isinstance(node.admit(pod("a", "2", limited=True)), Placed)
    node.mark_ending("a")
    assert isinstance(node.admit(pod("wide", "17", limited=True)), Refused)


def test_room_is_made_for_a_critical_pod() -> None:
    """It names who has to end, waits until they have, and is in then."""
    node = started()
    assert isinstance(node.admit(pod("a", "20")), Placed)
    critical = pod("critical", "20", priority=2_000_000_000)
    verdict = node.admit(critical)
    assert isinstance(verdict, MakingRoom)
    assert verdict.victims == ("a",)
    node.mark_ending("a")
    waiting = node.admit(critical)
    assert isinstance(waiting, NotYet)
    assert not isinstance(waiting, MakingRoom)
    node.release("a")
    assert isinstance(node.admit(critical), Placed)


def test_after_a_restart_nobody_is_asked_about_those_who_run() -> None:
    """They are in, with their ports and amounts, before anybody has told of them again."""
    store = MemoryStore(FORMATS)
    first = started(store)
    asked = [pod("a", "2", limited=True, port=80), pod("b", "3"), pod("static", "1")]
    for one in asked:
        assert isinstance(first.admit(one), Placed)
    first.admit(workload("job", {"cpu": 1, "memory": "1Gi"}))
    later = started(again(store), VIEW, chain=chain_of(never))
    assert later.view == first.view
    for one in asked:
        verdict = later.admit(one)
        assert isinstance(verdict, Placed)
        assert verdict.repeated
    assert str(later.admit(pod("c", port=80))).startswith("NodePorts")


def test_a_pod_that_cannot_be_read_again_is_counted_by_its_claims_and_learned_anew() -> None:
    """The start says so; nothing is evicted for it."""
    store = MemoryStore(FORMATS)
    asked = pod("a", "2", port=80)
    assert isinstance(started(store).admit(asked), Placed)
    data = {key: value.replace(b'"containers"', b'"kontainers"') for key, value in store.data().items()}
    later = NodeAllocator(empty(), MemoryStore(FORMATS, data=_summed(data)), view=VIEW)
    report = later.start()
    assert report.is_clean
    assert any("the pod in record a cannot be read" in line for line in report.notes)
    assert later.view.pods["a"].requests == asked.containers[0].requests
    assert isinstance(later.admit(pod("c", port=80)), Placed)
    assert isinstance(later.admit(asked), Placed)
    assert later.view.pods["a"].pod == asked


def _summed(data: dict[str, bytes]) -> dict[str, bytes]:
    """The same rows with checksums of what they say now."""
    return {
        key: JsonCheckpoint(kind=one["kind"], version=one["version"], value=one["value"]).marshal()
        for key, one in ((key, json.loads(raw)) for key, raw in data.items())
    }


def test_what_a_kubelet_had_granted_is_counted_by_what_it_holds() -> None:
    """Its files have no pods: their CPUs are taken all the same."""
    state = CpuManagerState(policy_name="static", default_cpuset="0-3,8-31", entries={"g1": {"c": "4-7"}})
    node = started(MemoryStore(FORMATS, data={"cpu_manager_state": state.marshal()}))
    assert str(node.view.pods.requested["cpu"]) == "4"
    assert isinstance(node.admit(pod("large", "28")), Refused)
    assert isinstance(node.admit(pod("smaller", "27")), Placed)


def test_what_is_adopted_is_in_the_view() -> None:
    """A pod that runs and is not remembered takes its port."""
    node = started()
    node.adopt(pod("a", port=80), {"app": Confinement()})
    assert isinstance(node.admit(pod("b", port=80)), Refused)


def test_devices_are_counted_by_whoever_gives_them_out() -> None:
    """A view that names none does not stand in the way of a plugin that may still come."""
    devices = DeviceAllocator(nodes=(0, 1))
    node = started(None, VIEW, devices)
    box: Json = {"name": "app", "resources": {"limits": {"cpu": 1, "memory": "1Gi", "example.com/gpu": 1}}}
    asked = Pod.from_manifest({"metadata": {"name": "g", "uid": "g"}, "spec": {"containers": [box]}})
    verdict = node.admit(asked)
    assert isinstance(verdict, NotYet)
    assert verdict.blocker == "example.com/gpu"
    without = started()
    assert str(without.admit(asked)).startswith("g/app: OutOfexample.com/gpu")


@pytest.mark.parametrize(
    ("chain", "remedy"),
    [(chain_of(snapshot=empty()), "leave out `snapshot`"), (chain_of(rules=KUBELET), "waits_for_victims")],
)
def test_a_chain_that_a_node_cannot_have(chain: object, remedy: str) -> None:
    """One with a snapshot that grows old, one that lets in who has no room yet."""
    with pytest.raises(ConfigurationError, match=remedy):
        started(chain=chain)


def test_a_pod_grows_and_shrinks_in_place() -> None:
    """CPUs and memory become more and fewer where they are; what is remembered says so."""
    store = MemoryStore(FORMATS)
    node = started(store)
    assert isinstance(node.admit(pod("db", "2", limited=True)), Placed)
    had = node.before_start(DB, "one")
    assert isinstance(node.resize(pod("db", "4", "3Gi", limited=True)), Placed)
    has = node.before_start(DB, "one")
    assert had.exclusive < has.exclusive
    assert len(has.exclusive) == 4
    (block,) = node.snapshot[MemoryAllocator].state.blocks(DB)
    assert block.size_bytes == 3 * GIB
    assert str(node.view.pods.requested["cpu"]) == "4"
    later = started(again(store))
    assert later.view == node.view
    assert later.before_start(DB, "one") == has
    assert isinstance(later.resize(pod("db", "2", limited=True)), Placed)
    assert later.before_start(DB, "one").exclusive == had.exclusive
    assert isinstance(later.admit(pod("other", "14", limited=True)), Placed)


def in_the_way(node: NodeAllocator, cpus: Sequence[str]) -> None:
    """Others beside `db`."""
    for number, cpu in enumerate(cpus):
        assert isinstance(node.admit(pod(f"other-{number}", cpu, limited=True)), Placed)


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (pod("db", "32", limited=True), "OutOfcpu"),
        (pod("db", "1", "16Gi", limited=True), "OutOfmemory"),
        (pod("db", "15", limited=True), "TopologyAffinityError"),
        (pod("db", "2"), "Infeasible"),
        (pod("db", "32", limited=True, priority=2_000_000_000), "OutOfcpu"),
    ],
)
def test_a_refused_resize_changes_nothing(wanted: Pod, reason: str) -> None:
    """Neither what is held nor what is seen or remembered; nobody has to end for it either."""
    store = MemoryStore(FORMATS)
    node = started(store)
    assert isinstance(node.admit(pod("db", "2", limited=True)), Placed)
    in_the_way(node, ["8", "2"])
    before = node.snapshot, node.view, node.records, store.data()
    verdict = node.resize(wanted)
    assert isinstance(verdict, Refused)
    assert verdict.reason == reason
    assert (node.snapshot, node.view, node.records, store.data()) == before


def test_a_resize_waits_for_whom_it_has_to_wait() -> None:
    """For the start, for the store, and for a pod that is ending."""
    store = MemoryStore(FORMATS)
    assert isinstance(started(store).admit(pod("db", "2", limited=True)), Placed)
    node = NodeAllocator(empty(), again(store), view=VIEW)
    assert isinstance(node.resize(pod("db", "3", limited=True)), NotYet)
    node.start()
    assert isinstance(node.admit(pod("a", "20")), Placed)
    node.mark_ending("a")
    verdict = node.resize(pod("db", "15", limited=True))
    assert isinstance(verdict, NotYet)
    assert verdict.blocker == "default/a"
    with pytest.raises(ConfigurationError, match="does not have it"):
        node.resize(pod("nobody"))


def parts(uid: str, **cpus: int) -> Pod:
    """A pod of containers with so many CPUs each for itself."""
    containers: list[Json] = []
    for name, count in cpus.items():
        asked: Json = {"cpu": count, "memory": "64Mi"}
        containers.append({"name": name, "resources": {"requests": asked, "limits": asked}})
    return Pod.from_manifest({"metadata": {"name": uid, "uid": uid}, "spec": {"containers": containers}})


def exclusive(node: NodeAllocator, name: str) -> CPUSet | None:
    """CPUs that a container has for itself."""
    return node.snapshot[CpuAllocator].exclusive_of(Owner("db", name))


def test_what_an_edit_made_of_a_pod_outlives_the_agent() -> None:
    """Who stayed has more, who came has its own, and who went holds what it has: it may still run."""
    store = MemoryStore(FORMATS)
    node = started(store)
    assert isinstance(node.admit(parts("db", app=2, old=3)), Placed)
    edited = parts("db", app=4, new=2)
    assert node.is_edited(edited)
    assert isinstance(node.resize(edited, is_edit=True), Placed)
    assert not node.is_edited(edited)
    held = {name: exclusive(node, name) for name in ("app", "old", "new")}
    assert {name: len(cpus or ()) for name, cpus in held.items()} == {"app": 4, "old": 3, "new": 2}
    later = started(again(store))
    assert {name: exclusive(later, name) for name in held} == held
    assert (later.view, dict(later.snapshot.admitted)) == (node.view, dict(node.snapshot.admitted))
    back = parts("db", app=4, new=2, old=3)
    assert isinstance(later.admit(back), Placed)
    assert {name: exclusive(later, name) for name in held} == held
    later.release("db")
    assert not later.snapshot[CpuAllocator].holdings()


def lending(*init: str, main: Sequence[str] = ("app",)) -> Pod:
    """A pod of which each container has four CPUs and 4 GiB for itself; `~` before the name of a sidecar."""

    def asking(name: str) -> Json:
        amounts: Json = {"cpu": 4, "memory": "4Gi"}
        lasts: dict[str, Json] = {"restartPolicy": "Always"} if name.startswith("~") else {}
        return {"name": name.lstrip("~"), "resources": {"requests": amounts, "limits": amounts}, **lasts}

    spec: Json = {"initContainers": [*map(asking, init)], "containers": [*map(asking, main)]}
    return Pod.from_manifest({"metadata": {"name": "db", "uid": "db"}, "spec": spec})


@pytest.mark.parametrize(
    ("before", "after", "apart"),
    [
        ([lending("first")], lending("~first"), ("first", "app")),
        ([lending("first")], lending(main=("first", "app")), ("first", "app")),
        ([lending("first", "~second")], lending("~second", "first"), ("first", "second")),
        ([lending("first"), lending()], lending(main=("first", "app")), ("first", "app")),
    ],
)
def test_who_runs_beside_whom_it_lent_to_is_granted_its_own(
    before: list[Pod], after: Pod, apart: tuple[str, str]
) -> None:
    """An init container that becomes a sidecar, say: it shared its CPUs with a container that runs on."""
    store = MemoryStore(FORMATS)
    node = started(store)
    for pod_before in before:
        assert isinstance(node.admit(pod_before), Placed)
        assert isinstance(node.resize(pod_before, is_edit=True), Placed)
    one, other = (exclusive(node, name) for name in apart)
    assert one is not None
    assert one == other
    assert isinstance(node.admit(after), Placed)
    kept = exclusive(node, apart[1])
    assert kept == other, "who runs on keeps its CPUs"
    for asked in (node, started(again(store))):
        mine = exclusive(asked, apart[0])
        assert mine is not None
        assert len(mine) == 4
        assert not mine & other
        sizes = [
            block.size_bytes
            for name in apart
            for block in asked.snapshot[MemoryAllocator].state.blocks(Owner("db", name))
        ]
        assert sum(sizes) == 8 * GIB
        held = asked.snapshot
        assert isinstance(asked.admit(after), Placed)
        assert asked.snapshot is held, "asked once more it is in"
    node.release("db")
    assert not node.snapshot[CpuAllocator].holdings()


def test_another_port_of_the_node_is_an_edit() -> None:
    """Which has to be judged, because others may have that port; the same port is none."""
    node = started(MemoryStore(FORMATS))

    def with_port(number: int) -> Pod:
        ports: list[Json] = [{"containerPort": 80, "hostPort": number}]
        spec: Json = {"containers": [{"name": "app", "ports": ports}]}
        return Pod.from_manifest({"metadata": {"name": "web", "uid": "web"}, "spec": spec})

    assert isinstance(node.admit(with_port(8080)), Placed)
    assert not node.is_edited(with_port(8080))
    assert node.is_edited(with_port(8081))


def test_a_restart_with_less_keeps_who_was_in_or_judges_anew_whoever_is_asked_about() -> None:
    """A kubelet that starts anew admits each pod as it hears of it, beside those before it."""
    store = MemoryStore(FORMATS)
    node = started(store)
    pods = {name: pod(name, cpu, limited=True) for name, cpu in (("a", "4"), ("b", "3"), ("c", "2"))}
    for one in pods.values():
        assert isinstance(node.admit(one), Placed)
    less = attrs.evolve(VIEW, allocatable=resources({"cpu": 6, "memory": "15Gi", "pods": 10}))
    same = started(again(store), less)
    assert all(isinstance(same.admit(one), Placed) for one in pods.values())
    anew = started(again(store), less, admits_anew=True)
    assert anew.view.pods.keys() == set()
    assert anew.snapshot.admitted.keys() == pods.keys()  # what they hold nobody else is given
    verdicts = {name: anew.admit(one) for name, one in pods.items()}
    (refused,) = [one for one in verdicts.values() if isinstance(one, Refused)]
    assert verdicts["b"] is refused
    assert refused.reason == "OutOfcpu"
    assert anew.view.pods.keys() == {"a", "c"}
    assert anew.snapshot.admitted == node.snapshot.admitted  # nothing was granted anew
    assert isinstance(anew.admit(pods["a"]), Placed)
    anew.release("b")
    assert anew.snapshot.admitted.keys() == {"a", "c"}


def test_who_comes_before_a_pod_that_is_to_be_admitted_anew_takes_its_place() -> None:
    """It holds its own CPUs until it is released, but what it asks for does not count yet."""
    store = MemoryStore(FORMATS)
    assert isinstance(started(store).admit(pod("old", "4")), Placed)
    less = attrs.evolve(VIEW, allocatable=resources({"cpu": 6, "memory": "15Gi", "pods": 10}))
    node = started(again(store), less, admits_anew=True)
    assert isinstance(node.admit(pod("new", "4")), Placed)
    assert isinstance(node.admit(pod("old", "4")), Refused)
    assert node.view.pods.keys() == {"new"}
