"""May a pod come in: handlers, their chain, rules both ways, and who makes room."""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from hypothesis import given

from nodealloc.admission import (
    KUBELET,
    AppArmor,
    Handler,
    MakingRoom,
    Rules,
    SysctlAllowList,
    chain_of,
    host_ports,
    node_affinity,
    node_fit,
    node_name,
    operating_system,
    pressure,
    safe_sysctls,
    shutdown,
    taints,
    victims,
)
from nodealloc.admission._fit import shortages
from nodealloc.cpuset import CpuAllocator
from nodealloc.errors import ConfigurationError, PermanentError, RetryableError
from nodealloc.machine import machine_from_text
from nodealloc.podfacts import LifeState, NodeView, PodOnNode, Pressure, Taint, TaintEffect
from nodealloc.podspec import (
    AppArmorProfile,
    Container,
    Pod,
    ProfileType,
    Quantity,
    SecurityContext,
    effective_requests,
    resources,
)
from nodealloc.testing.admission import check_admission_handler
from nodealloc.testing.strategies.podspec import pods
from nodealloc.topology import Placed, Policy, Snapshot
from nodealloc.verdicts import Admitted, NotYet, Refused, Verdict

NODE = NodeView(
    name="n1",
    labels={"zone": "a", "generation": "5"},
    allocatable=resources(
        {"cpu": 4, "memory": "8Gi", "pods": 5, "ephemeral-storage": "10Gi", "example.com/gpu": 2}
    ),
)
CRITICAL = 2_000_000_000


def pod(name: str = "web", *, init: list[dict[str, Any]] | None = None, **spec: Any) -> Pod:
    """A pod; `cpu`, `memory` and such are what its only container requests."""
    asked = {key: str(spec.pop(key)) for key in ("cpu", "memory") if key in spec}
    more = spec.pop("extended", {})
    box = {
        "name": "c",
        "resources": {"requests": {**asked, **more}, "limits": more},
        **spec.pop("container", {}),
    }
    metadata = {"name": name, "uid": name, **spec.pop("metadata", {})}
    manifest = {"metadata": metadata, "spec": {"containers": [box], "initContainers": init or [], **spec}}
    return Pod.from_manifest(manifest)


def on(view: NodeView, *pods: Pod, state: LifeState = LifeState.SYNCING) -> NodeView:
    """The node with these pods."""
    for one in pods:
        view = view.with_pod(PodOnNode.of(one, state=state))
    return view


def reason(verdict: Verdict) -> str:
    """The reason of a refusal, or the kind of another verdict."""
    return verdict.reason if isinstance(verdict, Refused) else type(verdict).__name__


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (pod(cpu="4"), "Admitted"),
        (pod(cpu="4001m"), "OutOfcpu"),
        (pod(cpu=1000, memory="10Ti"), "OutOfcpu"),
        (pod(memory="9Gi"), "OutOfmemory"),
        (pod(extended={"example.com/gpu": 3}), "OutOfexample.com/gpu"),
        (pod(container={"resources": {"requests": {"ephemeral-storage": "11Gi"}}}), "OutOfephemeral-storage"),
        (pod(cpu="3", overhead={"cpu": "1500m"}), "OutOfcpu"),
        (pod(cpu="1", init=[{"name": "i", "resources": {"requests": {"cpu": 5}}}]), "OutOfcpu"),
        (
            pod(
                cpu="3",
                init=[{"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": 2}}}],
            ),
            "OutOfcpu",
        ),
    ],
)
def test_a_pod_needs_what_it_requests_at_its_peak(asked: Pod, expected: str) -> None:
    """Requests, overhead, init containers and sidecars count; what is too much is named with its figures."""
    verdict = chain_of()(asked, NODE)
    assert reason(verdict) == expected
    if isinstance(verdict, Refused):
        assert int(verdict.figures["requested"]) > int(verdict.figures["capacity"])


@given(pods())
def test_fit_asks_for_what_a_pod_requests_at_its_peak(asked: Pod) -> None:
    """It adds up in integers, and comes to the same as `effective_requests`."""
    for one in (asked, attrs.evolve(asked, containers=(), overhead={"cpu": 1})):
        requests = {name: amount.nanos for name, amount in effective_requests(one).items() if amount}
        assert dict(one.requested_nanos) == requests


def test_all_that_is_short_is_told_in_one_order() -> None:
    """Pods, CPU, memory, storage, then the others by name, however the manifest puts them."""
    more: dict[str, Quantity | str | float] = {
        "example.com/z": 1,
        "example.com/a": 1,
        "ephemeral-storage": "11Gi",
        "memory": "9Gi",
        "cpu": 5,
    }
    full = on(NODE, *(pod(f"p{n}") for n in range(5)))
    short = shortages(Pod(uid="u", containers=(Container(name="c", requests=more),)), full, Rules())
    assert [one.resource for one in short] == [
        "pods", "cpu", "memory", "ephemeral-storage", "example.com/a", "example.com/z"
    ]  # fmt: skip


def test_the_first_port_that_clashes_is_named_in_the_pods_own_order() -> None:
    """Of several ports that are taken the figure names the one that the manifest has first."""
    ports = [{"containerPort": number, "hostPort": number} for number in (91, 17, 8080, 443, 25)]
    asked = pod("new", container={"ports": ports})
    verdict = chain_of()(asked, on(NODE, pod("old", container={"ports": ports[::-1]})))
    assert isinstance(verdict, Refused)
    assert verdict.figures["port"] == 91


def test_a_node_is_full_of_pods() -> None:
    """A pod that asks for nothing takes one of the node's places."""
    full = on(NODE, *(pod(f"p{n}") for n in range(5)))
    assert reason(chain_of()(pod(), full)) == "OutOfpods"


def test_what_an_ending_pod_holds_is_not_yet_free() -> None:
    """CPU and host port of a pod that ends make the next one wait for it, by name, until it has gone."""
    port = {"ports": [{"containerPort": 80, "hostPort": 80}]}
    old, new = pod("old", cpu=3, container=port), pod("new", cpu=3)
    for asked in (new, pod("new", container=port)):
        assert isinstance(chain_of()(asked, on(NODE, old)), Refused)
        waits = chain_of()(asked, on(NODE, old, state=LifeState.TERMINATING))
        assert isinstance(waits, NotYet)
        assert waits.blocker == "default/old"
        assert chain_of()(asked, NODE) == Admitted()
    too_large = chain_of()(pod("new", cpu=5), on(NODE, old, state=LifeState.TERMINATING))
    assert reason(too_large) == "OutOfcpu"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"nodeName": "n2"}, "NodeName"),
        ({"nodeName": "n1"}, "Admitted"),
        ({"nodeSelector": {"zone": "b"}}, "NodeAffinity"),
        ({"nodeSelector": {"zone": "a", "kubernetes.io/os": "linux"}}, "Admitted"),
        ({"os": {"name": "windows"}}, "PodOSNotSupported"),
        ({"os": {"name": "linux"}}, "Admitted"),
    ],
)
def test_a_pod_is_for_this_node_or_not(spec: dict[str, Any], expected: str) -> None:
    """Name, selector and operating system."""
    assert reason(chain_of()(pod(**spec), NODE)) == expected


def affine(*expressions: dict[str, Any], key: str = "matchExpressions") -> Pod:
    """A pod with one required term."""
    required = {"nodeSelectorTerms": [{key: list(expressions)}]}
    return pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}})


@pytest.mark.parametrize(
    ("operator", "key", "values", "fits"),
    [
        ("In", "zone", ["a", "b"], True), ("In", "zone", ["b"], False), ("In", "gone", ["a"], False),
        ("NotIn", "zone", ["b"], True), ("NotIn", "zone", ["a"], False), ("NotIn", "gone", ["a"], True),
        ("Exists", "zone", [], True), ("Exists", "gone", [], False),
        ("DoesNotExist", "gone", [], True), ("DoesNotExist", "zone", [], False),
        ("Gt", "generation", ["4"], True), ("Gt", "generation", ["5"], False), ("Gt", "zone", ["1"], False),
        ("Gt", "gone", ["1"], False),
        ("Lt", "generation", ["6"], True), ("Gt", "generation", ["-1"], True),
    ],
)  # fmt: skip
def test_operators_of_affinity(operator: str, key: str, values: list[str], fits: bool) -> None:
    """Each operator both ways; numbers compare as numbers, negative ones too."""
    asked = affine({"key": key, "operator": operator, "values": values})
    assert isinstance(node_affinity(asked, NODE, rules=Rules()), Admitted) is fits


@pytest.mark.parametrize(
    ("label", "than", "right", "kubelet"),
    [
        (f"{2**63 - 1}", "5", True, True),
        (f"{2**63}", "5", True, False),
        (f"{10**30}", f"{10**29}", True, False),
        ("5", f"{2**63}", False, False),
        (f"{6:0>40}", "5", True, True),
        ("6", "9" * 5000, False, False),
    ],
)
def test_a_kubelet_compares_numbers_of_64_bits(label: str, than: str, *, right: bool, kubelet: bool) -> None:
    """However many zeros they begin with; here a label that is a number is one."""
    view = attrs.evolve(NODE, labels={"size": label})
    asked = affine({"key": "size", "operator": "Gt", "values": [than]})
    for rules, fits in ((Rules(), right), (KUBELET, kubelet)):
        assert isinstance(node_affinity(asked, view, rules=rules), Admitted) is fits


def test_the_nodes_name_is_a_field_to_match() -> None:
    """`metadata.name` is matched by fields, and an empty term matches nothing."""
    named = {"key": "metadata.name", "operator": "In"}
    for name, fits in (("n1", True), ("n2", False)):
        asked = affine({**named, "values": [name]}, key="matchFields")
        assert isinstance(node_affinity(asked, NODE, rules=Rules()), Admitted) is fits
    assert isinstance(node_affinity(affine(), NODE, rules=Rules()), Refused)


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "value": "w"}, False),
        ({"key": "l", "operator": "Exists"}, False),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, True),
        ({"key": "k", "operator": "Exists", "effect": "NoSchedule"}, False),
    ],
)
def test_a_taint_that_ends_pods_has_to_be_tolerated(toleration: dict[str, Any], fits: bool) -> None:
    """NoExecute counts, by key, value and effect; not for static pods, nor what keeps schedulers off."""
    tainted = attrs.evolve(NODE, taints=(Taint(key="k", value="v", effect=TaintEffect.NO_EXECUTE),))
    assert isinstance(taints(pod(tolerations=[toleration]), tainted), Admitted) is fits
    static = pod(metadata={"annotations": {"kubernetes.io/config.source": "file"}})
    assert taints(static, tainted) == Admitted()
    kept_off = attrs.evolve(NODE, taints=(Taint(key="k", effect=TaintEffect.NO_SCHEDULE),))
    assert taints(pod(), kept_off) == Admitted()


@pytest.mark.parametrize(
    ("mine", "theirs", "clash"),
    [
        ({}, {}, True),
        ({"hostIP": "10.0.0.1"}, {}, True),
        ({"hostIP": "0.0.0.0"}, {"hostIP": "10.0.0.1"}, True),  # noqa: S104
        ({"hostIP": "10.0.0.1"}, {"hostIP": "10.0.0.2"}, False),
        ({"protocol": "UDP"}, {}, False),
        ({"hostPort": 81}, {}, False),
    ],
)
def test_a_host_port_is_taken_once(mine: dict[str, Any], theirs: dict[str, Any], clash: bool) -> None:
    """The same number clashes by address and transport; a pod's own host ports stand in the view."""

    def with_port(name: str, more: dict[str, Any]) -> Pod:
        return pod(name, container={"ports": [{"containerPort": 1, "hostPort": 80, **more}]})

    verdict = host_ports(with_port("new", mine), on(NODE, with_port("old", theirs)), rules=Rules())
    assert isinstance(verdict, Refused) is clash
    if isinstance(verdict, Refused):
        assert (verdict.figures["port"], verdict.figures["holder"]) == (80, "default/old")


@pytest.mark.parametrize(
    ("short", "asked", "fits"),
    [
        ({Pressure.MEMORY}, pod(), False),
        ({Pressure.MEMORY}, pod(cpu=1), True),
        ({Pressure.MEMORY}, pod(priority=CRITICAL), True),
        ({Pressure.DISK}, pod(cpu=1), False),
        ({Pressure.MEMORY, Pressure.PID}, pod(cpu=1), False),
        (
            {Pressure.MEMORY},
            pod(tolerations=[{"key": "node.kubernetes.io/memory-pressure", "operator": "Exists"}]),
            True,
        ),
        (set(), pod(), True),
    ],
)
def test_a_node_that_runs_short_takes_few(short: set[Pressure], asked: Pod, fits: bool) -> None:
    """Critical pods always; short of memory alone, those that ask for something or tolerate it."""
    assert isinstance(pressure(asked, attrs.evolve(NODE, pressure=frozenset(short))), Admitted) is fits


def test_nobody_comes_to_a_machine_that_goes_down() -> None:
    """Not even a critical pod."""
    assert reason(shutdown(pod(priority=CRITICAL), attrs.evolve(NODE, shutting_down=True))) == "NodeShutdown"
    assert shutdown(pod(), NODE) == Admitted()


def settings(*names: str, **spec: Any) -> Pod:
    """A pod with these kernel settings."""
    return pod(securityContext={"sysctls": [{"name": name, "value": "1"} for name in names]}, **spec)


def test_kernel_settings_are_allowed_by_name_and_pattern() -> None:
    """What is not on the list, or would be the node's own, is refused; dots and slashes are one."""
    allowed = SysctlAllowList.of([*safe_sysctls("5.10"), "net.core.*", "kernel.shmmax"])
    for good in ("net.core.somaxconn", "net/ipv4/tcp_syncookies", "kernel.shmmax"):
        assert allowed(settings(good), NODE) == Admitted()
    for bad in (
        settings("vm.swappiness"),
        settings("net.core.x", hostNetwork=True),
        settings("kernel.shmmax", hostIPC=True),
    ):
        assert reason(allowed(bad, NODE)) == "SysctlForbidden"
    assert "net.ipv4.tcp_rmem" not in safe_sysctls("4.14.9")
    node_wide = (
        "kernel.shm_next_id",
        "kernel.shm_*",
        "kernel.shmmaxes",
        "kernel.msg_next_id",
        "kernel.msgm*",
    )
    for pattern in ("vm.*", "net.**", "", "*", *node_wide):
        with pytest.raises(ConfigurationError):
            SysctlAllowList.of([pattern])
    assert SysctlAllowList.of(["kernel.shm*"])(settings("kernel.shm_next_id"), NODE) == Admitted()
    with pytest.raises(ConfigurationError, match="MAJOR"):
        safe_sysctls("new")


def test_profiles_need_apparmor_and_a_name() -> None:
    """Off on the host it refuses who is confined; a profile needs a name; who runs is not asked again."""
    confined = pod(securityContext={"appArmorProfile": {"type": "RuntimeDefault"}})
    assert reason(AppArmor(enabled=False)(confined, NODE)) == "AppArmor"
    assert AppArmor(enabled=True)(confined, NODE) == Admitted()
    assert AppArmor(enabled=False)(pod(), NODE) == Admitted()
    running = attrs.evolve(confined, status={"phase": "Running"})
    assert AppArmor(enabled=False)(running, NODE) == Admitted()
    profile = SecurityContext(app_armor_profile=AppArmorProfile(type=ProfileType.RUNTIME_DEFAULT))
    debug = attrs.evolve(pod(), ephemeral_containers=(Container(name="debug", security_context=profile),))
    for rules in (Rules(), KUBELET):
        assert reason(AppArmor(enabled=False, rules=rules)(debug, NODE)) == "AppArmor"
    blank = {"appArmorProfile": {"type": "Localhost", "localhostProfile": " "}}
    assert "invalid empty" in str(AppArmor(enabled=True)(pod(container={"securityContext": blank}), NODE))


MACHINE = machine_from_text("1 socket x 4 cores")


def test_resources_are_given_out_last_and_their_answer_is_the_chains() -> None:
    """`Placed` has the snapshot to commit; a pod that does not fit the node never reaches it."""
    node = Snapshot.of(
        MACHINE,
        policy=Policy.parse("single-numa-node"),
        allocators=[CpuAllocator.of(MACHINE, reserved=1)],
    )
    chain = chain_of(snapshot=node)
    guaranteed = {"resources": {"limits": {"cpu": 2, "memory": "1Gi"}}}
    placed = chain(pod(container=guaranteed), NODE)
    assert isinstance(placed, Placed)
    assert placed.snapshot.admitted
    assert reason(chain(pod(cpu=5), NODE)) == "OutOfcpu"


def test_a_handler_that_fails_refuses_or_waits() -> None:
    """An error does not let a pod in, and does not end the agent."""

    def failing(error: Exception) -> Handler:
        def handler(_pod: Pod, _view: NodeView) -> Verdict:
            raise error

        return handler

    assert reason(chain_of(failing(PermanentError("gone")))(pod(), NODE)) == "UnexpectedAdmissionError"
    waits = chain_of(failing(RetryableError("busy", after_s=7.0)))(pod(), NODE)
    assert isinstance(waits, NotYet)
    assert waits.after_s == 7.0


FULL = on(NODE, pod("low", cpu=2, priority=1), pod("high", cpu=2, priority=9))


@pytest.mark.parametrize("answer", [None, False, True, "no", Admitted, (Refused(reason="A", message="b"),)])
def test_a_handler_that_answers_no_verdict_is_named(answer: Any) -> None:
    """It came out of the chain as its answer, which `if` takes for a refusal or for none."""

    def licence(_pod: Pod, _view: NodeView, /) -> Any:
        return answer

    with pytest.raises(ConfigurationError, match="handler licence: expected a verdict: Admitted"):
        chain_of(licence)(Pod(uid="u", containers=(Container(name="app"),)), NODE)


def test_a_chain_refuses_what_is_no_pod_and_no_view() -> None:
    """It looks once for all handlers, and answers with no verdict about what cannot be one."""
    wrong: Any = "web"
    with pytest.raises(ConfigurationError, match="pod"):
        chain_of()(wrong, NODE)
    with pytest.raises(ConfigurationError, match="view"):
        chain_of()(pod(), wrong)


def test_a_handler_around_one_that_ships_is_asked() -> None:
    """Whoever decorates one of ours is not passed over."""
    asked: list[str] = []

    @functools.wraps(taints)
    def noted(one: Pod, view: NodeView) -> Verdict:
        asked.append(one.name)
        return taints(one, view)

    plain = chain_of()
    chain = attrs.evolve(plain, after_fit=(*plain.after_fit[:-1], noted))
    assert isinstance(chain(pod(), NODE), Admitted)
    assert asked == ["web"]


def test_a_critical_pod_waits_for_its_victims() -> None:
    """The plan names who has to end; while they end it waits for them, and when they have gone it is in."""
    critical = pod("system", cpu=1, priority=CRITICAL)
    plan = chain_of()(critical, FULL)
    assert isinstance(plan, MakingRoom)
    assert plan.victims == ("low",)
    ending = FULL.with_pod(PodOnNode.of(FULL.pods["low"].pod, state=LifeState.TERMINATING))
    waits = chain_of()(critical, ending)
    assert isinstance(waits, NotYet)
    assert not isinstance(waits, MakingRoom)
    assert chain_of()(critical, FULL.without("low")) == Admitted()


def test_room_is_made_for_nobody_who_would_not_come_in() -> None:
    """A critical pod that is for another node ends nobody; an ordinary one never does."""
    elsewhere = pod("system", cpu=1, priority=CRITICAL, nodeName="n2")
    assert reason(chain_of()(elsewhere, FULL)) == "NodeName"
    assert reason(chain_of()(pod("new", cpu=1, priority=CRITICAL - 1), FULL)) == "OutOfcpu"


@pytest.mark.parametrize("rules", [Rules(), KUBELET])
def test_room_is_made_for_nobody_whose_kernel_settings_are_forbidden(rules: Rules) -> None:
    """They are looked at before it is asked what is short."""
    chain = chain_of(SysctlAllowList.of([]), rules=rules)
    critical = settings("net.core.somaxconn", cpu=1, priority=CRITICAL)
    assert reason(chain(critical, FULL)) == "SysctlForbidden"
    assert reason(chain(settings("net.core.somaxconn", cpu=9), FULL)) == "SysctlForbidden"


def test_nobody_of_the_same_rank_or_above_makes_room() -> None:
    """Critical pods of the same priority stay; with nobody below, the refusal names what is short."""
    same = on(NODE, pod("old", cpu=4, priority=CRITICAL))
    assert reason(chain_of()(pod("new", cpu=1, priority=CRITICAL), same)) == "OutOfcpu"
    assert isinstance(chain_of()(pod("new", cpu=1, priority=CRITICAL + 1), same), MakingRoom)


def test_no_victim_can_be_spared_and_the_order_is_total() -> None:
    """Brute force on random nodes: it fits without them, not with one of them back, whatever their order."""
    chance = random.Random(7)
    planned = 0
    for _ in range(150):
        there = [
            pod(
                f"p{n}",
                cpu=f"{chance.choice([0, 500, 1000, 2000])}m",
                memory=chance.choice(["0", "1Gi", "4Gi"]),
                priority=chance.choice([0, 0, 5, CRITICAL]),
            )
            for n in range(5)
        ]
        new = pod("new", cpu=chance.choice([1, 3]), memory="2Gi", priority=CRITICAL)
        view = on(attrs.evolve(NODE, allocatable=resources({"cpu": 4, "memory": "8Gi", "pods": 9})), *there)
        if not shortages(new, view, Rules()):
            continue
        found = victims(new, view, rules=Rules())
        below = [one for one in there if (one.priority or 0) < CRITICAL]
        sets = [
            set(chosen)
            for size in range(len(below) + 1)
            for chosen in itertools.combinations([one.uid for one in below], size)
            if not shortages(new, gone(view, chosen), Rules())
        ]
        if isinstance(found, Refused):
            assert sets == []
            continue
        planned += 1
        chosen = {one.pod.uid for one in found}
        assert chosen in sets
        assert not [smaller for smaller in sets if smaller < chosen]
        highest = max(one.pod.priority or 0 for one in found)
        assert highest == min(max(view.pods[uid].pod.priority or 0 for uid in one) for one in sets)
        backwards = on(attrs.evolve(view, pods=type(view.pods)()), *reversed(there))
        assert victims(new, backwards, rules=Rules()) == found
    assert planned > 20


def gone(view: NodeView, uids: tuple[str, ...]) -> NodeView:
    """The node without these pods."""
    for uid in uids:
        view = view.without(uid)
    return view


SIDECAR = {"name": "s", "restartPolicy": "Always", "ports": [{"containerPort": 1, "hostPort": 80}]}
PORT = {"ports": [{"containerPort": 1, "hostPort": 80}]}
BARE = attrs.evolve(NODE, labels={})
SELECTS_OS = pod(nodeSelector={"kubernetes.io/os": "linux"})
FIVE_CPUS = {"resources": {"limits": {"cpu": 5, "memory": "1Gi"}}}
_TWO_CORES = machine_from_text("1 numa x 2 cores")
SMALL = Snapshot.of(_TWO_CORES, allocators=[CpuAllocator.of(_TWO_CORES)])
STATIC = {"annotations": {"kubernetes.io/config.source": "file"}}
ANNOTATED = {
    "annotations": {
        "container.apparmor.security.beta.kubernetes.io/a": "unconfined",
        "container.apparmor.security.beta.kubernetes.io/c": "runtime/default",
    }
}


@pytest.mark.parametrize(
    ("field", "ask", "ours", "kubelet"),
    [
        (
            "os_by_field",
            lambda rules: operating_system(
                pod(metadata={"labels": {"kubernetes.io/os": "windows"}}), NODE, rules=rules
            ),
            "Admitted",
            "PodOSSelectorNodeLabelDoesNotMatch",
        ),
        (
            "knows_own_os",
            lambda rules: node_affinity(SELECTS_OS, BARE, rules=rules),
            "Admitted",
            "NodeAffinity",
        ),
        (
            "compares_any_number",
            lambda rules: node_affinity(
                affine({"key": "generation", "operator": "Gt", "values": ["-1"]}), NODE, rules=rules
            ),
            "Admitted",
            "NodeAffinity",
        ),
        (
            "counts_sidecar_ports",
            lambda rules: host_ports(pod(container=PORT), on(NODE, pod("old", init=[SIDECAR])), rules=rules),
            "NodePorts",
            "Admitted",
        ),
        (
            "needs_every_resource",
            lambda rules: node_fit(pod(extended={"example.com/fpga": 1}), NODE, rules=rules),
            "OutOfexample.com/fpga",
            "Admitted",
        ),
        (
            "waits_for_victims",
            lambda rules: chain_of(rules=rules)(pod("system", cpu=1, priority=CRITICAL), FULL),
            "MakingRoom",
            "RoomMade",
        ),
        (
            "names_what_is_short",
            lambda rules: chain_of(rules=rules)(pod("system", cpu=5, priority=CRITICAL), FULL),
            "OutOfcpu",
            "UnexpectedAdmissionError",
        ),
        ("waits_for_node", lambda rules: chain_of(rules=rules)(pod(), None), "NotYet", "InvalidNodeInfo"),
        (
            "allocates_last",
            lambda rules: chain_of(rules=rules, snapshot=SMALL)(pod(container=FIVE_CPUS), NODE),
            "OutOfcpu",
            "UnexpectedAdmissionError",
        ),
        (
            "asks_every_annotation",
            lambda rules: AppArmor(enabled=False, rules=rules)(pod(metadata=ANNOTATED), NODE),
            "AppArmor",
            "Admitted",
        ),
    ],
)
def test_a_rule_both_ways(field: str, ask: Callable[[Rules], Verdict], ours: str, kubelet: str) -> None:
    """With ours, with the kubelet's, and with that one field of each in the other."""
    flipped = {field: getattr(KUBELET, field)}
    back = {field: getattr(Rules(), field)}
    assert reason(ask(Rules())) == ours
    assert reason(ask(KUBELET)) == kubelet
    assert reason(ask(attrs.evolve(Rules(), **flipped))) == kubelet
    assert reason(ask(attrs.evolve(KUBELET, **back))) == ours


def test_who_makes_room_goes_by_rank_or_as_recorded() -> None:
    """The least important pod goes; the kubelet ends a burstable one of higher priority before it."""
    guaranteed = {"resources": {"limits": {"cpu": 2, "memory": "1Gi"}}}
    there = on(NODE, pod("low", priority=1, container=guaranteed), pod("high", cpu=2, priority=9))
    for rules, expected in (
        (Rules(), ["low"]),
        (KUBELET, ["high"]),
        (attrs.evolve(Rules(), victims_by_rank=False), ["high"]),
        (attrs.evolve(KUBELET, victims_by_rank=True), ["low"]),
    ):
        found = victims(pod("new", cpu=1, priority=CRITICAL), there, rules=rules)
        assert not isinstance(found, Refused)
        assert [one.pod.uid for one in found] == expected


def test_handlers_that_ship_pass_their_check() -> None:
    """Each is a pure function of pod and view."""
    check_admission_handler(chain_of())
    check_admission_handler(chain_of(rules=KUBELET))
    for handler in (shutdown, pressure, node_name, taints, AppArmor(enabled=False), SysctlAllowList.of([])):
        check_admission_handler(handler)


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (lambda _pod, _view: None, "no verdict"),
        (lambda _pod, _view: True, "no verdict"),
        (lambda _pod, _view: Refused(reason="not so", message="not so"), "one word"),
        (lambda _pod, _view: Refused(reason="No", message="No"), "a sentence"),
    ],
)
def test_a_broken_handler_does_not_pass(broken: Any, says: str) -> None:
    """The check says what is wrong."""
    with pytest.raises(AssertionError, match=says):
        check_admission_handler(broken)


def test_a_handler_that_counts_its_calls_does_not_pass() -> None:
    """Its answer depends on what was asked before."""
    calls: list[Pod] = []

    def counting(asked: Pod, _view: NodeView) -> Verdict:
        calls.append(asked)
        return Admitted() if len(calls) % 2 else NotYet(blocker="me", message="every second time")

    with pytest.raises(AssertionError, match="asked again"):
        check_admission_handler(counting)


def test_a_pod_with_the_mark_of_a_source_of_the_node_passes_taints_mirror_or_not() -> None:
    """A mirror may carry the source of the pod that it stands for."""
    source = "kubernetes.io/config.source"
    tainted = NodeView(name="n", taints=(Taint(key="k", effect=TaintEffect.NO_EXECUTE),))
    for more in ({}, {"kubernetes.io/config.mirror": "hash"}):
        of_file = Pod(uid="u", name="p", annotations={source: "file", **more})
        of_api = Pod(uid="u", name="p", annotations={source: "api", **more})
        assert isinstance(taints(of_file, tainted), Admitted)
        assert isinstance(taints(of_api, tainted), Refused)


def test_a_handler_that_ships_is_left_out_by_its_name() -> None:
    """Also one that goes by the rules of the chain, which stands there wrapped; it stayed before."""
    whole = chain_of()
    less = whole.without(operating_system, taints)
    assert len(less.before) + len(less.after_fit) + len(less.after) == (
        len(whole.before) + len(whole.after_fit) + len(whole.after) - 2
    )
    tainted = attrs.evolve(NODE, taints=(Taint(key="a", effect=TaintEffect.NO_EXECUTE),))
    windows = Pod(uid="u", name="w", node_selector={"kubernetes.io/os": "windows"})
    assert isinstance(whole(windows, tainted), Refused)
    others = less.without(node_affinity)
    assert isinstance(others(windows, tainted), Admitted)
