"""Probing on the engine: when containers are asked, what is remembered, and whose lateness is whose."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from typing import Any

import attrs
import pytest

from nodealloc.checkpoint import JsonCheckpoint, MemoryStore, row_formats, rows_of
from nodealloc.dsw_asw import Group, InlineExecutor, World
from nodealloc.errors import DecodeError
from nodealloc.podfacts import Exited, LifeState, PodEvent, PodIdentity
from nodealloc.podspec import (
    Container,
    ContainerPort,
    ExecAction,
    GrpcAction,
    HttpGetAction,
    Pod,
    Probe,
    TcpSocketAction,
    ValueFrom,
    Variable,
)
from nodealloc.podspec._variables import FieldRef
from nodealloc.probes import (
    KUBELET,
    PROBE_ROWS,
    ContainerVerdicts,
    NoAnswer,
    NoProbe,
    Passed,
    PodVerdicts,
    ProbeKind,
    ProbeOptions,
    Probers,
    Probing,
    Question,
    Reply,
    ReplyKind,
    Rules,
    Schedule,
    Unwell,
    verdicts_from_checkpoint,
)
from nodealloc.probes._asks import Ask, ProbedPod, asks_of
from nodealloc.probes._codec import verdicts_to_checkpoint
from nodealloc.runtime import ContainerRecord, ContainerReport, PodKnown, PodReport, RunState
from nodealloc.testing.dsw_asw import ManualExecutor, VirtualClock, run_to_rest
from nodealloc.testing.probes import FakeProber

EXEC = ExecAction(command=("ask",))
START_UNIX_S = 1_000_000.0
LONG_S = 20.0


def probe(**fields: object) -> Probe:
    """A probe that runs a command."""
    return Probe(exec=EXEC, **fields)  # type: ignore[arg-type]


def container(name: str = "app", **probes: Probe) -> Container:
    """A container with probes, by the names of its fields."""
    return Container(name=name, **probes)  # type: ignore[arg-type]


def pod(uid: str, *containers: Container, **fields: object) -> Pod:
    """A pod."""
    return Pod(uid=uid, name=uid, containers=containers, **fields)  # type: ignore[arg-type]


def known(
    one: Pod, *ids: str, state: RunState = RunState.RUNNING, started_unix_s: float | None = None
) -> PodKnown:
    """What a runtime says: the newest instance of the containers, in the order of the pod."""
    names = [each.name for each in (*one.init_containers, *one.containers)]
    made = tuple(
        ContainerReport(
            record=ContainerRecord(id=id_, pod=PodIdentity.of(one), name=name, sandbox_id="box", state=state),
            exit=Exited(code=0) if state is RunState.EXITED else None,
            started_unix_s=started_unix_s,
        )
        for name, id_ in zip(names, ids, strict=False)
    )
    return PodKnown(uid=one.uid, report=PodReport(uid=one.uid, containers=made, ips=("10.0.0.7",)))


class Node:
    """An agent that probes, in virtual time; it can be killed."""

    def __init__(self, *, options: ProbeOptions = ProbeOptions(), rules: Rules = Rules()) -> None:  # noqa: B008
        self.clock, self.executor, self.prober = VirtualClock(1000.0), ManualExecutor(), FakeProber()
        self.reports: World[str, PodKnown] = World("reports")
        self.store = MemoryStore(row_formats(PROBE_ROWS))
        self.events: list[PodEvent] = []
        self.options, self.rules = options, rules
        self.unix_s = START_UNIX_S
        self.probing = self.begin()

    def begin(self, remembered: Mapping[str, PodVerdicts] | None = None) -> Probing[PodKnown]:
        """An agent that has just started."""
        return Probing(
            Probers(http=self.prober, tcp=self.prober, exec=self.prober, grpc=self.prober),
            reports=self.reports,
            journal=self.store,
            remembered=remembered,
            options=self.options,
            rules=self.rules,
            on_event=self.events.append,
            executor=self.executor,
            clock=self.clock,
            unix_s=lambda: self.unix_s,
        )

    def restart(self) -> None:
        """Kill the agent, and start another one with what is in the store."""
        kept = {key: JsonCheckpoint.unmarshal(one.marshal()) for key, one in self.store.read().values.items()}
        self.executor = ManualExecutor()
        self.probing = self.begin(rows_of(PROBE_ROWS, kept, verdicts_from_checkpoint))

    def rest(self) -> None:
        """Let everything happen that happens now."""
        run_to_rest(self.probing, self.executor, self.clock)

    def after(self, seconds: float, *, step_s: float = 0.1) -> None:
        """Let time pass."""
        for _ in range(round(seconds / step_s)):
            self.clock.advance(step_s)
            self.rest()

    def ask_once(self) -> None:
        """A second goes by, one question is asked."""
        self.clock.advance(1.0)
        self.probing.run_until_quiet()
        self.executor.run()
        self.probing.run_until_quiet()

    def run(self, one: Pod, *ids: str) -> None:
        """A pod comes, and its containers run."""
        self.probing.put(one)
        self.rest()
        self.reports.put(one.uid, known(one, *ids))
        self.rest()

    def of(self, uid: str, container_id: str) -> ContainerVerdicts | None:
        """What stands."""
        verdicts = self.probing.verdicts.get(uid)
        return None if verdicts is None else verdicts.of(container_id)


LIVE = pod("web", container(liveness_probe=probe(period_seconds=1, failure_threshold=2)))
READY = pod("web", container(readiness_probe=probe(period_seconds=1, failure_threshold=2)))


def test_a_container_is_asked_each_period_and_its_verdict_is_told() -> None:
    """From its start on; the verdict changes once, however often it is asked."""
    node = Node()
    node.run(READY, "c1")
    assert node.of("web", "c1") == ContainerVerdicts(readiness=Passed())
    generation = node.probing.verdicts.generation
    node.after(5.0)
    assert len(node.prober.asked) == 6
    assert node.probing.verdicts.generation == generation
    assert node.prober.asked[0] == Question(action=EXEC, container_id="c1", timeout_s=1.0)


def test_a_command_has_the_variables_of_its_container() -> None:
    """As they stand in the pod: one whose value is elsewhere is empty, one that is not there stays."""
    command = ("test", "$(FILE)", "$(NODE).", "$(NOBODY)", "$$(FILE)", "$(NESTED)")
    where = ValueFrom(field_ref=FieldRef(field_path="spec.nodeName"))
    app = Container(
        name="app",
        readiness_probe=Probe(exec=ExecAction(command=command)),
        variables=(
            Variable(name="FILE", value="/ok"),
            Variable(name="NODE", value_from=where),
            Variable(name="NESTED", value="$(FILE)"),
        ),
    )
    node = Node()
    node.run(pod("web", app), "c1")
    action = node.prober.asked[0].action
    assert isinstance(action, ExecAction)
    assert action.command == ("test", "/ok", ".", "$(NOBODY)", "$(FILE)", "$(FILE)")


def test_of_a_pod_that_nobody_asks_nothing_is_looked_at() -> None:
    """No record, no pass and no row; one that is given a probe later is asked, as it is by then."""
    node = Node()
    bare = pod("web", container())
    node.run(bare, "c1")
    assert "web" not in node.probing.verdicts
    assert not node.store.data()
    node.reports.put("web", known(bare, "c2"))
    assert not node.probing.has_work
    node.probing.put(READY)
    node.after(1.0)
    assert node.of("web", "c2") == ContainerVerdicts(readiness=Passed())
    node.reports.put("web", known(READY, "c3"))
    assert node.probing.has_work
    node.rest()
    assert node.of("web", "c3") == ContainerVerdicts(readiness=Passed())
    node.probing.remove("web")
    node.rest()
    node.reports.put("web", known(READY, "c4"))
    assert not node.probing.has_work


def test_periods_are_durations() -> None:
    """Eight times a second, with a delay of a quarter and a time-out of a twentieth."""
    node = Node()
    fast = Schedule(period_s=0.125, timeout_s=0.05, initial_delay_s=0.25)
    node.probing.put(READY, schedules={("app", ProbeKind.READINESS): fast})
    node.rest()
    node.reports.put("web", known(READY, "c1"))
    node.after(0.25, step_s=0.0625)
    assert node.prober.asked == []
    node.after(1.0, step_s=0.0625)
    assert len(node.prober.asked) == 8
    assert node.prober.asked[0].timeout_s == 0.05


def test_startup_comes_first() -> None:
    """Nothing else is asked before it has passed; then it is asked no more."""
    node = Node()
    three = container(
        startup_probe=Probe(tcp_socket=TcpSocketAction(port=1), period_seconds=1),
        liveness_probe=Probe(grpc=GrpcAction(port=2), period_seconds=1),
        readiness_probe=Probe(http_get=HttpGetAction(port=3), period_seconds=1),
    )
    node.prober.says("", ReplyKind.FAILURE)
    node.run(pod("web", three), "c1")
    node.after(1.0)
    assert {one.port for one in node.prober.asked} == {1}
    assert node.of("web", "c1") == ContainerVerdicts(
        startup=NoAnswer(), liveness=NoAnswer(), readiness=NoAnswer()
    )
    node.prober.says("", ReplyKind.SUCCESS)
    node.after(3.0)
    assert node.of("web", "c1") == ContainerVerdicts(startup=Passed(), liveness=Passed(), readiness=Passed())
    assert [one.port for one in node.prober.asked].count(1) == 3


def test_a_failed_container_is_left_to_be_killed_and_the_next_one_begins_anew() -> None:
    """After the verdict it is not asked; another instance has no answer yet, and a run of its own."""
    node = Node()
    node.prober.says("", ReplyKind.FAILURE, "500")
    node.run(LIVE, "c1")
    node.after(5.0)
    assert node.of("web", "c1") == ContainerVerdicts(liveness=Unwell(message="500"))
    assert len(node.prober.asked) == 2
    assert [one.message for one in node.events] == ["Liveness probe failed: 500"] * 2
    node.reports.put("web", known(LIVE, "c2"))
    node.rest()
    assert node.of("web", "c1") is None
    assert node.of("web", "c2") == ContainerVerdicts(liveness=NoAnswer())
    node.after(5.0)
    assert node.of("web", "c2") == ContainerVerdicts(liveness=Unwell(message="500"))
    assert len(node.prober.asked) == 4


def test_the_kubelets_verdicts_before_answers_are_told_too() -> None:
    """With `tells_answers_alone` off a container is alive before anybody asked it."""
    node = Node(rules=KUBELET)
    slow = pod("web", container(liveness_probe=probe(initial_delay_seconds=100)))
    node.run(slow, "c1")
    assert node.of("web", "c1") == ContainerVerdicts(liveness=Passed())


def asked_at_s(node: Node, quarters: int) -> list[float]:
    """When it is asked from the first second on, each quarter of a second looked at before that one."""
    seen: list[float] = []
    for quarter in range(4, quarters):
        if len(node.prober.asked) > len(seen):
            seen.append(quarter / 4)
        node.after(0.25, step_s=0.25)
    return seen


@pytest.mark.parametrize(
    ("rules", "asked", "first_s"),
    [
        (KUBELET, container(liveness_probe=probe(period_seconds=4)), [4.0, 8.0]),
        (KUBELET, container(startup_probe=probe(period_seconds=4)), [4.0]),
        (KUBELET, container(readiness_probe=probe(period_seconds=4)), [1.0, 5.0]),
        (Rules(), container(liveness_probe=probe(period_seconds=4)), [1.0, 5.0]),
    ],
)
def test_a_kubelet_asks_at_whole_periods_from_when_it_took_the_pod_up(
    rules: Rules, asked: Container, first_s: list[float]
) -> None:
    """Its container starts a second later; readiness is asked for as soon as that is told."""
    node = Node(rules=rules)
    web = pod("web", asked)
    node.probing.put(web)
    node.rest()
    node.clock.advance(1.0)
    node.reports.put("web", known(web, "c1"))
    node.rest()
    assert asked_at_s(node, 36) == first_s


@pytest.mark.parametrize(
    ("rules", "asked", "first_s"),
    [
        (KUBELET, container(liveness_probe=probe(period_seconds=4, initial_delay_seconds=4)), [4.0, 8.0]),
        (KUBELET, container(readiness_probe=probe(period_seconds=4, initial_delay_seconds=4)), [4.0, 8.0]),
        (Rules(), container(liveness_probe=probe(period_seconds=4, initial_delay_seconds=4)), [5.0]),
    ],
)
def test_a_kubelet_counts_a_delay_from_the_second_in_which_a_container_started(
    rules: Rules, asked: Container, first_s: list[float]
) -> None:
    """It hears of the start up to a second later: a delay of a period had come to two."""
    node = Node(rules=rules)
    web = pod("web", asked)
    node.probing.put(web)
    node.rest()
    node.clock.advance(1.0)
    node.unix_s += 1.0
    node.reports.put("web", known(web, "c1", started_unix_s=START_UNIX_S + 0.75))
    node.rest()
    assert asked_at_s(node, 35) == first_s


def test_a_kubelet_counts_the_delay_of_a_later_instance_so_too() -> None:
    """From its own start."""
    node = Node(rules=KUBELET)
    web = pod("web", container(liveness_probe=probe(period_seconds=4, initial_delay_seconds=4)))
    node.run(web, "c1")
    node.clock.advance(17.0)
    node.unix_s += 17.0
    node.reports.put("web", known(web, "c2", started_unix_s=START_UNIX_S + 16.75))
    node.rest()
    before = len(node.prober.asked)
    node.after(2.75, step_s=0.25)
    assert len(node.prober.asked) == before
    node.after(0.5, step_s=0.25)
    assert len(node.prober.asked) == before + 1


def test_a_container_that_has_not_begun_is_nobody_to_ask() -> None:
    """It was made and does not run yet: the instance before it is still the newest."""
    want = ProbedPod(pod=LIVE, life=LifeState.SYNCING)
    made = known(LIVE, "c2", state=RunState.CREATED)
    assert asks_of(want, made, None, node_ip="") == ()
    before = known(LIVE, "c1", state=RunState.EXITED)
    assert made.report is not None
    assert before.report is not None
    both = attrs.evolve(made.report, containers=(*made.report.containers, *before.report.containers))
    (ask,) = asks_of(want, PodKnown(uid="web", report=both), None, node_ip="")
    assert (ask.container_id, ask.has_ended) == ("c1", True)


def test_a_pod_of_two_families_is_asked_in_its_nodes_own() -> None:
    """Where the runtime tells the other one first, too."""
    asked = container(liveness_probe=Probe(http_get=HttpGetAction(port=3)))
    want = ProbedPod(pod=pod("web", asked), life=LifeState.SYNCING)
    seen = known(LIVE, "c1")
    assert seen.report is not None
    both = PodKnown(uid="web", report=attrs.evolve(seen.report, ips=("10.0.0.7", "fd00::7")))
    for node_ip, ip in (("fd00::1", "fd00::7"), ("192.0.2.1", "10.0.0.7")):
        (ask,) = asks_of(want, both, None, node_ip=node_ip)
        assert ask.question is not None
        assert ask.question.address == ip


def test_the_probes_own_grace_is_in_the_verdict() -> None:
    """Who kills the container finds it there; readiness kills nobody and has none."""
    node = Node()
    node.prober.says("", ReplyKind.FAILURE, "no")
    own = {"failure_threshold": 1, "termination_grace_period_seconds": 3}
    node.run(pod("web", container(liveness_probe=probe(**own), readiness_probe=probe(**own))), "c1")
    node.after(1.0)
    assert node.of("web", "c1") == ContainerVerdicts(
        liveness=Unwell(message="no", grace_s=3.0), readiness=Unwell(message="no")
    )


def test_a_pod_that_ends_is_not_killed_for_its_health() -> None:
    """Liveness stops, and what was asked before counts no more; readiness goes on until it has ended."""
    node = Node()
    both = pod(
        "web",
        container(
            liveness_probe=probe(period_seconds=1, failure_threshold=1),
            readiness_probe=probe(period_seconds=1, failure_threshold=1),
        ),
    )
    node.run(both, "c1")
    node.after(1.0)
    node.prober.says("", ReplyKind.FAILURE, "going")
    node.clock.advance(1.0)
    node.probing.reconcile()
    node.probing.put(both, LifeState.TERMINATING)
    node.probing.reconcile()
    node.after(3.0)
    assert node.of("web", "c1") == ContainerVerdicts(liveness=Passed(), readiness=Unwell(message="going"))
    asked = len(node.prober.asked)
    node.probing.put(both, LifeState.TERMINATED)
    node.after(3.0)
    assert len(node.prober.asked) == asked


@pytest.mark.parametrize("rules", [Rules(), KUBELET])
def test_what_has_not_started_as_its_pod_ends_does_not_start(rules: Rules) -> None:
    """Nobody asks it any more, and nothing is made up for it: a kubelet ends who asks before it looks."""
    node = Node(rules=rules)
    web = pod("web", container(startup_probe=probe(period_seconds=1, failure_threshold=9)))
    node.prober.says("", ReplyKind.FAILURE, "not yet")
    node.run(web, "c1")
    node.after(3.0)
    asked = len(node.prober.asked)
    node.probing.put(web, LifeState.TERMINATING)
    node.after(3.0)
    assert asked == len(node.prober.asked) > 0
    verdicts = node.probing.verdicts.get("web")
    assert (verdicts.started if verdicts else {}).get("c1") is not True


def test_who_does_not_run_is_not_asked() -> None:
    """Not before its start, not after its end; asking dies with the container."""
    node = Node()
    node.probing.put(READY)
    node.after(2.0)
    node.reports.put("web", known(READY, "c1", state=RunState.CREATED))
    node.after(2.0)
    assert node.prober.asked == []
    node.reports.put("web", known(READY, "c1"))
    node.after(2.0)
    asked = len(node.prober.asked)
    node.reports.put("web", known(READY, "c1", state=RunState.EXITED))
    node.after(2.0)
    assert (asked > 0, len(node.prober.asked)) == (True, asked)
    assert node.of("web", "c1") is None


def test_a_runtime_that_does_not_know_moves_no_verdict() -> None:
    """An unknown state, and a report that is missing, leave what stands; nobody is asked meanwhile."""
    node = Node()
    node.run(READY, "c1")
    asked = len(node.prober.asked)
    node.prober.says("", ReplyKind.FAILURE)
    node.reports.put("web", known(READY, "c1", state=RunState.UNKNOWN))
    node.after(3.0)
    node.reports.put("web", PodKnown(uid="web"))
    node.after(3.0)
    node.reports.drop("web")
    node.after(3.0)
    assert node.of("web", "c1") == ContainerVerdicts(readiness=Passed())
    assert len(node.prober.asked) == asked


def test_where_a_container_is_asked() -> None:
    """At the pod's address, the host that the probe names, or the node's; ports by name."""
    node = Node(options=ProbeOptions(node_ip="192.0.2.1"))
    ports = (ContainerPort(container_port=8080, name="web"),)
    named = Container(name="app", ports=ports, readiness_probe=Probe(http_get=HttpGetAction(port="web")))
    other = Container(name="b", liveness_probe=Probe(tcp_socket=TcpSocketAction(port=9, host="db.test")))
    node.run(pod("web", named, other), "c1", "c2")
    node.after(1.0)
    assert [(one.address, one.port) for one in node.prober.asked] == [("10.0.0.7", 8080), ("db.test", 9)]
    on_host = pod("host", named, host_network=True)
    node.probing.put(on_host)
    without = known(on_host, "h1")
    assert without.report is not None
    node.reports.put("host", attrs.evolve(without, report=attrs.evolve(without.report, ips=())))
    node.after(1.0)
    assert node.prober.asked[-1].address == "192.0.2.1"


@pytest.mark.parametrize(
    ("one", "word"),
    [
        (
            Container(name="app", liveness_probe=Probe(tcp_socket=TcpSocketAction(port="odd"))),
            "no port of the name odd",
        ),
        (
            Container(name="app", liveness_probe=Probe(tcp_socket=TcpSocketAction(port=65536))),
            "invalid port number: 65536; give one from 1 to 65535",
        ),
        (
            Container(name="app", liveness_probe=Probe(tcp_socket=TcpSocketAction(port=0))),
            "invalid port number: 0",
        ),
        (
            Container(
                name="app",
                ports=(ContainerPort(container_port=-1, name="odd"),),
                liveness_probe=Probe(tcp_socket=TcpSocketAction(port="odd")),
            ),
            "invalid port number: -1",
        ),
        (
            Container(name="app", liveness_probe=Probe(tcp_socket=TcpSocketAction(port=1), period_seconds=0)),
            "Schedule.period_s: expected seconds above 0",
        ),
        (Container(name="app", liveness_probe=Probe()), "nothing about how to ask"),
        (Container(name="app", liveness_probe=Probe(http_get=HttpGetAction(port=1))), "no prober"),
    ],
)
def test_what_cannot_be_asked_is_told_and_fails_nobody(one: Container, word: str) -> None:
    """A name without a port, a period of 0, a way that nobody knows: an event each period, no verdict."""
    node = Node()
    node.probing = Probing(
        Probers(tcp=node.prober),
        reports=node.reports,
        on_event=node.events.append,
        executor=node.executor,
        clock=node.clock,
    )
    node.run(pod("web", one), "c1")
    node.after(60.0, step_s=1.0)
    assert node.of("web", "c1") == ContainerVerdicts(liveness=NoAnswer())
    assert node.prober.asked == []
    assert {one.reason for one in node.events} == {"Unhealthy"}
    assert all(word in one.message for one in node.events)
    assert 5 <= len(node.events) <= 8


def test_a_pod_that_cannot_be_looked_at_keeps_nobody_else_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is wrong with it: who changed together with it is looked at with the next pass."""
    node = Node()

    def looks(want: ProbedPod, *more: Any, **named: Any) -> tuple[Ask, ...]:
        if want.pod is not None and want.pod.uid == "bad":
            raise RuntimeError("told to")
        return asks_of(want, *more, **named)

    monkeypatch.setattr("nodealloc.probes._asker.asks_of", looks)
    for uid in ("bad", "good"):
        one = pod(uid, container(liveness_probe=probe()))
        node.reports.put(uid, known(one, f"c-{uid}"))
        node.probing.put(one)
    for _ in range(3):  # it changed in more ways than one
        with contextlib.suppress(RuntimeError):
            node.rest()
    assert [one.container_id for one in node.prober.asked] == ["c-good"]


def test_a_question_that_could_not_be_asked_is_tried_three_times() -> None:
    """At once; then its period goes on. Nobody has failed."""
    node = Node()
    node.prober.fails("", OSError("the runtime is away"))
    node.run(LIVE, "c1")
    assert len(node.prober.asked) == 3
    node.after(1.0)
    assert len(node.prober.asked) == 6
    assert [one.message for one in node.events] == ["Liveness probe errored: the runtime is away"] * 2
    assert node.of("web", "c1") == ContainerVerdicts(liveness=NoAnswer())


def test_one_question_at_most_is_under_way() -> None:
    """A prober that hangs is not asked again, and holds up no other container."""
    node = Node()
    node.run(LIVE, "c1")
    other = pod("other", container(readiness_probe=probe(period_seconds=1)))
    node.clock.advance(1.0)
    node.probing.reconcile()
    assert len(node.executor) == 1
    node.probing.put(other)
    node.probing.reconcile()
    node.reports.put("other", known(other, "c2"))
    for _ in range(50):
        node.clock.advance(1.0)
        node.probing.reconcile()
        node.executor.run(1)
    assert {one.container_id for one in node.prober.asked[1:]} == {"c2"}
    assert len(node.prober.asked) > 40
    assert node.of("web", "c1") == ContainerVerdicts(liveness=Passed())


@pytest.mark.parametrize("kind", [ReplyKind.SUCCESS, ReplyKind.FAILURE])
def test_an_answer_of_the_instance_before_is_not_told_of_the_next_one(kind: ReplyKind) -> None:
    """A question is on its way while its container is made anew: whatever comes of it, it is c1's."""
    node = Node()
    node.prober.says("c1", kind)
    one = pod("web", container(liveness_probe=probe(period_seconds=60, failure_threshold=1)))
    node.probing.put(one)
    node.rest()
    node.reports.put("web", known(one, "c1"))
    node.probing.run_until_quiet()
    assert len(node.executor) == 1
    node.reports.put("web", known(one, "c2"))
    node.probing.run_until_quiet()
    node.executor.run(1)
    node.probing.run_until_quiet()
    assert [each.container_id for each in node.prober.asked] == ["c1"]
    assert node.of("web", "c2") == ContainerVerdicts(liveness=NoAnswer())
    node.after(1.0)
    assert node.of("web", "c2") == ContainerVerdicts(liveness=Passed())


def test_a_pod_that_comes_back_is_not_asked_beside_a_question_that_hangs() -> None:
    """Taken away and put back while a question hangs: nobody knows how it is, and one hangs."""
    node = Node()
    node.run(LIVE, "c1")
    node.clock.advance(1.0)
    node.probing.reconcile()
    node.probing.remove("web")
    node.probing.reconcile()
    node.probing.put(LIVE)
    for _ in range(20):
        node.clock.advance(1.0)
        node.probing.reconcile()
    assert len(node.executor) == 1
    assert node.of("web", "c1") == ContainerVerdicts(liveness=NoAnswer())
    node.rest()
    node.after(2.0)
    assert node.of("web", "c1") == ContainerVerdicts(liveness=Passed())


@pytest.mark.parametrize("pods", [300])
def test_questions_under_way_are_bounded(pods: int) -> None:
    """300 pods with two probes a second stay under the bound, and all get their turn."""
    node = Node(options=ProbeOptions(workers=20, first_per_s=100_000.0))
    two = container(liveness_probe=probe(period_seconds=1), readiness_probe=probe(period_seconds=1))
    for number in range(pods):
        one = pod(f"p{number}", two)
        node.probing.put(one)
        node.reports.put(one.uid, known(one, f"c{number}"))
    most = 0
    for _ in range(40):
        node.clock.advance(0.1)
        node.probing.reconcile()
        most = max(most, len(node.executor))
        node.executor.run_all()
        node.probing.reconcile()
        most = max(most, len(node.executor))
    node.rest()
    assert most == 20
    asked = {one.container_id for one in node.prober.asked}
    assert len(asked) == pods


def test_no_herd_follows_a_start() -> None:
    """First questions are spread by a rate, and every period after them keeps that distance."""
    node = Node(options=ProbeOptions(first_per_s=100.0))
    for number in range(100):
        one = pod(f"p{number}", container(readiness_probe=probe(period_seconds=10)))
        node.probing.put(one)
        node.reports.put(one.uid, known(one, f"c{number}"))
    at: list[int] = []
    for _ in range(240):
        before = len(node.prober.asked)
        node.after(0.1)
        at.append(len(node.prober.asked) - before)
    assert max(at) <= 12
    assert [sum(at[start : start + 20]) for start in (0, 100, 200)] == [100, 100, 100]


def test_no_herd_follows_an_agent_that_slept() -> None:
    """Asleep for a minute, it asks everybody again at the rate of first questions."""
    node = Node(options=ProbeOptions(first_per_s=100.0))
    for number in range(100):
        one = pod(f"p{number}", container(readiness_probe=probe(period_seconds=10)))
        node.probing.put(one)
        node.reports.put(one.uid, known(one, f"c{number}"))
    node.after(2.0)
    node.clock.advance(60.0)
    before = len(node.prober.asked)
    node.rest()
    assert len(node.prober.asked) - before == 1
    node.after(2.0)
    assert len(node.prober.asked) - before == 100


def test_an_executor_that_lags_kills_nothing() -> None:
    """Ten seconds between handing over and taking up: time-outs count from the asking."""
    node = Node()
    node.run(LIVE, "c1")
    for _ in range(10):
        node.clock.advance(1.0)
        node.probing.reconcile()
        node.clock.advance(9.0)
        node.executor.run_all()
        node.probing.reconcile()
    assert node.of("web", "c1") == ContainerVerdicts(liveness=Passed())
    assert node.events == []


def test_a_time_out_that_the_agent_slept_through_is_unknown() -> None:
    """The time of a question ran out while the agent stood still: an event, and no failure."""
    node = Node()
    node.run(LIVE, "c1")

    class Starved(FakeProber):
        def probe(self, question: Question, /) -> Reply:
            node.clock.advance(10.0)
            return Reply(ReplyKind.FAILURE, "no answer within 1 s", timed_out=True)

    node.prober = Starved()
    node.restart()
    node.probing.put(LIVE)
    for _ in range(10):
        node.ask_once()
    assert node.of("web", "c1") == ContainerVerdicts(liveness=Passed())
    assert {one.message for one in node.events} == {
        "Liveness probe says nothing: the agent itself was late: 10.0 s went by for a time-out of 1 s"
    }


def test_how_late_is_late_can_be_told() -> None:
    """With half a minute of patience, a time-out that ran for ten seconds is a failure."""
    node = Node(options=ProbeOptions(late_s=30.0))

    class Starved(FakeProber):
        def probe(self, question: Question, /) -> Reply:
            node.clock.advance(10.0)
            return Reply(ReplyKind.FAILURE, "no answer within 1 s", timed_out=True)

    node.prober = Starved()
    node.restart()
    node.probing.put(LIVE)
    node.reports.put("web", known(LIVE, "c1"))
    for _ in range(5):
        node.ask_once()
    assert node.of("web", "c1") == ContainerVerdicts(liveness=Unwell(message="no answer within 1 s"))


def test_an_answer_is_an_answer_however_late() -> None:
    """What a server said counts, also where the agent read it late; and a time-out in time counts."""
    for took_s, timed_out in ((10.0, False), (1.1, True)):
        node = Node()
        node.run(LIVE, "c1")

        class Slow(FakeProber):
            def probe(self, question: Question, /) -> Reply:
                node.clock.advance(took_s)  # noqa: B023 - called before the next turn
                return Reply(ReplyKind.FAILURE, "no", timed_out=timed_out)  # noqa: B023

        node.prober = Slow()
        node.restart()
        node.probing.put(LIVE)
        for _ in range(5):
            node.ask_once()
        assert node.of("web", "c1") == ContainerVerdicts(liveness=Unwell(message="no"))


def test_kills_are_capped_within_a_window() -> None:
    """All fail at once, two are told; the others stand, and get their turn when the window has passed."""
    node = Node(options=ProbeOptions(kills=2, kills_window_s=30.0))
    pods = [attrs.evolve(LIVE, uid=f"p{number}", name=f"p{number}") for number in range(5)]
    for number, one in enumerate(pods):
        node.run(one, f"c{number}")
    node.after(1.0)
    node.prober.says("", ReplyKind.FAILURE, "no")
    node.after(10.0)

    def told() -> int:
        found = [node.of(one.uid, f"c{at}") for at, one in enumerate(pods)]
        return sum(one is not None and one.kill is not None for one in found)

    assert told() == 2
    assert node.probing.withheld > 0
    assert any("not killed: 2 were within 30 s" in one.message for one in node.events)
    node.after(30.0)
    assert told() == 4
    node.prober.says("", ReplyKind.SUCCESS)
    node.after(60.0, step_s=1.0)
    assert told() == 4


def test_a_cap_holds_back_no_readiness() -> None:
    """Nobody is killed for not being ready."""
    node = Node(options=ProbeOptions(kills=0))
    node.run(READY, "c1")
    node.prober.says("", ReplyKind.FAILURE, "no")
    node.after(5.0)
    assert node.of("web", "c1") == ContainerVerdicts(readiness=Unwell(message="no"))


@pytest.mark.parametrize("kind", [ReplyKind.SUCCESS, ReplyKind.FAILURE])
def test_a_restart_moves_no_verdict(kind: ReplyKind) -> None:
    """What stood stands: before the pod is heard of, before its container is seen, before it is asked."""
    node = Node()
    node.prober.says("", kind, "as it is")
    node.run(READY, "c1")
    node.after(3.0)
    before = node.probing.verdicts.get("web")
    assert before is not None
    assert before.ready == {"c1": kind is ReplyKind.SUCCESS}
    reports = node.reports
    node.reports = World("reports of another life")
    node.prober.hangs("c1")
    node.restart()
    seen = [node.probing.verdicts.get("web")]
    node.probing.reconcile()
    seen.append(node.probing.verdicts.get("web"))
    node.probing.put(READY)
    node.probing.run_until_quiet()
    seen.append(node.probing.verdicts.get("web"))
    node.reports.put("web", PodKnown(uid="web"))
    node.probing.run_until_quiet()
    seen.append(node.probing.verdicts.get("web"))
    node.reports.put("web", reports.snapshot()["web"].value)
    node.probing.run_until_quiet()
    seen.append(node.probing.verdicts.get("web"))
    assert seen == [before] * 5
    assert len(node.executor) == 1


@pytest.mark.parametrize("rules", [Rules(), KUBELET])
def test_whether_a_restart_asks_for_startup_again(rules: Rules) -> None:
    """It does not; with a kubelet what has a startup probe has to pass it again, and is not ready before."""
    each = probe(period_seconds=2)
    both = pod("both", container(startup_probe=each, readiness_probe=each))
    node = Node(rules=rules)
    node.run(both, "c1")
    node.run(READY, "c2")
    node.after(5.0)
    well = ContainerVerdicts(startup=Passed(), readiness=Passed())
    assert (node.of("both", "c1"), node.of("web", "c2")) == (well, ContainerVerdicts(readiness=Passed()))
    node.restart()
    assert node.of("both", "c1") == (well if rules == Rules() else None)
    assert node.of("web", "c2") == ContainerVerdicts(readiness=Passed())
    node.probing.put(both)
    node.after(5.0)
    assert node.of("both", "c1") == well


def test_after_a_restart_a_started_container_goes_on_and_a_failed_one_is_still_to_be_killed() -> None:
    """Startup is not asked again, nor is who failed; a delay that was over is over."""
    node = Node()
    both = pod(
        "a", container(startup_probe=probe(), liveness_probe=probe(period_seconds=1, failure_threshold=1))
    )
    node.run(both, "c1")
    node.run(LIVE, "c2")
    node.after(2.0)
    node.prober.says("c2", ReplyKind.FAILURE, "dead")
    node.after(3.0)
    node.restart()
    asked = len(node.prober.asked)
    node.probing.put(both)
    node.probing.put(LIVE)
    node.after(2.0)
    assert {one.container_id for one in node.prober.asked[asked:]} == {"c1"}
    assert node.of("a", "c1") == ContainerVerdicts(startup=Passed(), liveness=Passed())
    assert node.of("web", "c2") == ContainerVerdicts(liveness=Unwell(message="dead"))


def test_who_went_while_nobody_looked_is_forgotten() -> None:
    """`keep_only` drops the others; their rows go from the store."""
    node = Node()
    node.run(READY, "c1")
    node.restart()
    node.rest()
    assert list(node.store.read().values) == ["probes.web"]
    node.probing.keep_only({"other"})
    node.rest()
    assert node.probing.verdicts.get("web") is None
    assert dict(node.store.read().values) == {}


def test_a_wall_clock_that_jumps_moves_no_delay() -> None:
    """A year ahead or back: a container that starts while we look waits for its delay by our own clock."""
    for jump_s in (-31_536_000.0, 31_536_000.0):
        node = Node()
        delayed = pod("web", container(liveness_probe=probe(initial_delay_seconds=5, period_seconds=1)))
        node.probing.put(delayed)
        node.reports.put("web", known(delayed))
        node.rest()
        node.unix_s += jump_s
        node.reports.put("web", known(delayed, "c1", started_unix_s=START_UNIX_S))
        node.after(4.0)
        assert node.prober.asked == []
        node.after(2.0)
        assert len(node.prober.asked) > 0


def test_a_container_that_ran_before_the_agent_has_the_rest_of_its_delay() -> None:
    """Its start by the wall clock is all that is known; a start in the future is now."""
    for started, waits_s in ((-3.0, 2.0), (+100.0, 5.0), (-50.0, 0.0)):
        node = Node()
        delayed = pod("web", container(liveness_probe=probe(initial_delay_seconds=5, period_seconds=1)))
        node.reports.put("web", known(delayed, "c1", started_unix_s=START_UNIX_S + started))
        node.probing.put(delayed)
        node.rest()
        if waits_s:
            node.after(waits_s - 0.5)
            assert node.prober.asked == []
        node.after(1.0)
        assert len(node.prober.asked) > 0


def test_verdicts_travel_as_rows() -> None:
    """Every verdict comes back as it was; a row of another kind or shape is refused with its path."""
    made = PodVerdicts(
        uid="u",
        by_container={
            "a": ContainerVerdicts(startup=Passed(), liveness=NoAnswer(), readiness=NoProbe()),
            "b": ContainerVerdicts(liveness=Unwell(message="no", grace_s=1.5), readiness=Unwell(message="m")),
        },
    )
    row = JsonCheckpoint.unmarshal(verdicts_to_checkpoint(made).marshal())
    assert verdicts_from_checkpoint(row) == made
    bad = JsonCheckpoint(
        kind="probe verdicts", version=1, value={"uid": "u", "containers": {"a": {"liveness": "odd"}}}
    )
    with pytest.raises(DecodeError, match=r"@ \$\.containers\['a'\]\['liveness'\]"):
        verdicts_from_checkpoint(bad)
    with pytest.raises(DecodeError, match="version 2"):
        verdicts_from_checkpoint(attrs.evolve(row, version=2))
    no_text = JsonCheckpoint(kind="probe verdicts", version=1, value={"uid": 1, "containers": {}})
    with pytest.raises(DecodeError, match=r"@ \$\.uid"):
        verdicts_from_checkpoint(no_text)


@pytest.mark.parametrize(
    "fields",
    [
        {"sockets": 0},
        {"workers": 0},
        {"kills": -1},
        {"first_per_s": 0.0},
        {"late_s": 0.0},
        {"kills_window_s": 0.0},
    ],
)
def test_bounds_that_bound_nothing_are_refused(fields: dict[str, float]) -> None:
    """A bound is at least 1, seconds are above 0."""
    with pytest.raises(ValueError, match=next(iter(fields))):
        ProbeOptions(**fields)  # type: ignore[arg-type]


def test_a_listener_that_raises_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """Its fault is logged; verdicts go on."""
    node = Node()
    node.events = _Raising()
    node.restart()
    node.prober.says("", ReplyKind.FAILURE, "no")
    node.run(LIVE, "c1")
    node.after(3.0)
    assert node.of("web", "c1") == ContainerVerdicts(liveness=Unwell(message="no"))
    assert "listens to events raised" in caplog.text


class _Raising(list[PodEvent]):
    def append(self, _event: PodEvent, /) -> None:
        raise RuntimeError("told to")


@pytest.mark.parametrize("error", [RuntimeError("no room"), OSError("no room"), ValueError("no room")])
def test_an_executor_that_gives_no_worker_fails_nobody(error: Exception) -> None:
    """Threads that cannot be started, or calls that were given up, are errors of the asking."""

    class Refusing(ManualExecutor):
        refusals = 0

        def submit(self, *args: object, **options: object) -> object:  # type: ignore[override]
            self.refusals += 1
            if self.refusals > 9:
                return super().submit(*args, **options)  # type: ignore[arg-type]
            raise error

    node = Node()
    node.executor = Refusing()
    node.probing = node.begin()
    node.run(LIVE, "c1")
    node.after(2.0)
    assert node.of("web", "c1") == ContainerVerdicts(liveness=NoAnswer())
    assert {one.message for one in node.events if "no room" in one.message}
    node.after(3.0)
    assert node.of("web", "c1") == ContainerVerdicts(liveness=Passed())


def test_it_takes_part_in_a_group() -> None:
    """Driven with others: one pass asks, hears, remembers and tells whoever looks."""
    node = Node()
    node.reports.put("web", known(READY, "c1"))
    group = Group(node.probing)
    node.probing.put(READY)
    run_to_rest(group, node.executor, node.clock)
    assert node.of("web", "c1") == ContainerVerdicts(readiness=Passed())
    assert group.stop() == ()


def test_stopping_waits_for_workers_and_says_who_hangs() -> None:
    """A question that does not come back is told of; nothing is asked afterwards."""
    reports: World[str, PodKnown] = World("reports")
    prober = FakeProber()
    gate = prober.hangs("c1")
    probing = Probing(Probers(exec=prober), reports=reports)
    probing.start()
    probing.put(READY)
    reports.put("web", known(READY, "c1"))
    for _ in range(2000):
        if prober.asked:
            break
        threading.Event().wait(0.01)
    left = probing.stop(0.05)
    gate.set()
    assert [(one.verb, one.scope) for one in left] == [("probe", ("web", "app", ProbeKind.READINESS))]


def test_an_inline_executor_is_enough() -> None:
    """Questions that never block may run on the thread that makes passes."""
    clock, reports, prober = VirtualClock(), World[str, PodKnown]("reports"), FakeProber()
    probing = Probing(Probers(exec=prober), reports=reports, executor=InlineExecutor(), clock=clock)
    probing.put(READY)
    reports.put("web", known(READY, "c1"))
    for _ in range(30):
        clock.advance(0.1)
        probing.run_until_quiet()
    verdicts = probing.verdicts.get("web")
    assert verdicts is not None
    assert (verdicts.ready, len(prober.asked)) == ({"c1": True}, 3)


def test_a_pod_without_a_name_is_refused() -> None:
    """Its events could not say whose they are."""
    with pytest.raises(ValueError, match="name"):
        Node().probing.put(Pod(uid="u", containers=(container(),)))


def test_a_pod_without_an_address_is_told_of() -> None:
    """Nobody can be asked before it has one; that fails nobody."""
    node = Node()
    asked = pod("web", Container(name="app", liveness_probe=Probe(tcp_socket=TcpSocketAction(port=1))))
    node.probing.put(asked)
    seen = known(asked, "c1")
    assert seen.report is not None
    node.reports.put("web", attrs.evolve(seen, report=attrs.evolve(seen.report, ips=())))
    node.after(1.0)
    assert [one.message for one in node.events] == ["Liveness probe errored: the pod has no address"]
    node.reports.put("web", seen)
    node.after(10.0)
    assert node.of("web", "c1") == ContainerVerdicts(liveness=Passed())


def test_another_schedule_counts_at_once() -> None:
    """From every ten seconds to every second, and back; what was counted stays."""
    node = Node()
    slow = pod("web", container(readiness_probe=probe(period_seconds=10)))
    node.run(slow, "c1")
    node.after(2.0)
    assert len(node.prober.asked) == 1
    node.probing.put(slow, schedules={("app", ProbeKind.READINESS): Schedule(period_s=1.0)})
    node.after(5.0)
    assert 5 <= len(node.prober.asked) <= 7
    node.probing.put(slow)
    before = len(node.prober.asked)
    node.after(8.0)
    assert len(node.prober.asked) - before <= 2


def test_answers_to_another_question_do_not_count_for_a_probe_that_was_mended() -> None:
    """Two that failed at the wrong port, and one at the right one, are not three; what stood stands."""
    node = Node()

    def web(port: int, failures: int = 3) -> Pod:
        asks = Probe(http_get=HttpGetAction(port=port), period_seconds=1, failure_threshold=failures)
        return pod("web", container(liveness_probe=asks))

    node.run(web(1), "c1")
    node.prober.says("c1", ReplyKind.FAILURE, "wrong port")
    node.after(1.0)
    assert len(node.prober.asked) == 2
    node.probing.put(web(8080))
    node.after(2.0)
    assert [one.port for one in node.prober.asked] == [1, 1, 8080, 8080]
    assert node.of("web", "c1") == ContainerVerdicts(liveness=Passed())
    node.probing.put(web(8080, failures=4))
    node.after(1.0)
    assert node.of("web", "c1") == ContainerVerdicts(liveness=Passed())
    node.after(1.0)
    assert node.of("web", "c1") == ContainerVerdicts(liveness=Unwell(message="wrong port"))


def test_a_call_that_the_executor_gives_up_fails_nobody() -> None:
    """Cancelled before a worker took it up: told, tried again, and the bound is free."""

    class Dropping(ManualExecutor):
        def submit(self, *args: object, **more: object) -> object:  # type: ignore[override]
            future = super().submit(*args, **more)  # type: ignore[arg-type, var-annotated]
            future.cancel()
            return future

    node = Node(options=ProbeOptions(workers=1))
    node.executor = Dropping()
    node.probing = node.begin()
    node.run(LIVE, "c1")
    node.after(2.0)
    assert node.of("web", "c1") == ContainerVerdicts(liveness=NoAnswer())
    assert {one.message for one in node.events} == {
        "Liveness probe errored: the question was given up before it was asked"
    }


def test_what_waits_for_room_is_dropped_with_its_pod() -> None:
    """One worker, two pods: the second one goes before its turn, and is never asked."""
    node = Node(options=ProbeOptions(workers=1, first_per_s=1e6))
    for name in ("a", "b"):
        one = attrs.evolve(READY, uid=name, name=name)
        node.probing.put(one)
        node.reports.put(name, known(one, f"c-{name}"))
    for _ in range(5):
        node.clock.advance(0.01)
        node.probing.reconcile()
    assert len(node.executor) == 1
    node.probing.remove("b")
    node.rest()
    assert [one.container_id for one in node.prober.asked] == ["c-a"]


def test_nothing_is_asked_after_the_end() -> None:
    """Who waited for room does not get it, and an answer that comes is heard by nobody."""
    node = Node(options=ProbeOptions(workers=1, first_per_s=1e6))
    for name in ("a", "b"):
        one = attrs.evolve(READY, uid=name, name=name)
        node.probing.put(one)
        node.reports.put(name, known(one, f"c-{name}"))
    for _ in range(5):
        node.clock.advance(0.01)
        node.probing.reconcile()
    assert len(node.probing.stop(0.0)) == 1
    node.executor.run_all()
    assert node.probing.stop(1.0) == ()
    node.probing.reconcile()
    assert len(node.prober.asked) == 1


def test_a_verdict_that_cannot_be_remembered_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full: what stood stands; when there is room it is written, then told."""
    node = Node()
    node.run(READY, "c1")

    def full(_changes: object, /) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(node.store, "commit", full)
    node.prober.says("", ReplyKind.FAILURE, "no")
    for _ in range(30):
        node.clock.advance(0.1)
        node.probing.reconcile()
        node.executor.run_all()
    assert node.of("web", "c1") == ContainerVerdicts(readiness=Passed())
    monkeypatch.undo()
    node.after(10.0)
    assert node.of("web", "c1") == ContainerVerdicts(readiness=Unwell(message="no"))


def test_a_prober_that_answers_something_else_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """True is no reply: nobody has failed, others are asked on, and the event says what to do."""
    node = Node()
    monkeypatch.setattr(node.prober, "probe", lambda _question: True)
    node.run(LIVE, "c1")
    node.after(2.0)
    assert node.of("web", "c1") == ContainerVerdicts(liveness=NoAnswer())
    assert {one.message for one in node.events} == {
        "Liveness probe errored: the prober answered True; it has to answer a Reply"
    }
