"""Who is asked, and what an answer changes."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from nodealloc.errors import ConfigurationError
from nodealloc.podfacts import LifeState, PodIdentity
from nodealloc.podspec import Container, ExecAction, Pod, Probe, RestartPolicy, TcpSocketAction
from nodealloc.probes import (
    KUBELET,
    Asking,
    ContainerKind,
    ContainerVerdicts,
    ExecProber,
    Instance,
    NoAnswer,
    NoProbe,
    Passed,
    PodVerdicts,
    ProbeKind,
    Question,
    Reply,
    ReplyKind,
    Rules,
    Schedule,
    Tally,
    Unwell,
    asks,
    hear,
    look,
)
from nodealloc.probes._kinds import ASKED, drawn, kinds_of
from nodealloc.probes._tally import Next, event_of
from nodealloc.runtime import AnswerLostError, CommandTimedOutError, RuntimeUnavailableError
from nodealloc.testing.runtime import FakeContainerRuntime

YES, NO = Reply(ReplyKind.SUCCESS), Reply(ReplyKind.FAILURE, "no")
C1 = Instance(id="c1", started_s=0.0, has_started=True)
KINDS = {
    ProbeKind.STARTUP: Asking(kind=ProbeKind.STARTUP, schedule=Schedule(failure_threshold=3)),
    ProbeKind.LIVENESS: Asking(kind=ProbeKind.LIVENESS, schedule=Schedule(failure_threshold=3)),
    ProbeKind.READINESS: Asking(
        kind=ProbeKind.READINESS, schedule=Schedule(success_threshold=2, failure_threshold=3)
    ),
}


def ask(tally: Tally, asking: Asking, *replies: Reply, rules: Rules = Rules()) -> Tally:  # noqa: B008
    """The tally after these answers."""
    for reply in replies:
        tally = hear(tally, asking, reply, rules=rules).tally
    return tally


@pytest.mark.parametrize("life", LifeState)
@pytest.mark.parametrize("container", ContainerKind)
@pytest.mark.parametrize("kind", ProbeKind)
def test_each_cell_of_the_table_is_what_happens(
    life: LifeState, container: ContainerKind, kind: ProbeKind
) -> None:
    """Probe × life × kind of container: asked while it is kept in sync, readiness until it has ended."""
    lasts = container in {ContainerKind.MAIN, ContainerKind.SIDECAR}
    wanted = lasts and (
        life is LifeState.SYNCING or (life is LifeState.TERMINATING and kind is ProbeKind.READINESS)
    )
    seen = attrs.evolve(C1, has_started=kind is not ProbeKind.STARTUP)
    asking = attrs.evolve(KINDS[kind], container=container)
    looked = look(Tally(container_id="c1"), asking, seen, life=life, now_s=1.0)
    assert (asks(kind, life, container), looked.next is Next.ASK) == (wanted, wanted)
    assert looked.tally.verdict == NoAnswer()


def test_the_table_is_whole_and_drawn() -> None:
    """Every cell is there, and the page shows what the code reads."""
    assert set(ASKED) == {(life, kind) for life in LifeState for kind in ContainerKind}
    page = (Path(__file__).parents[3] / "docs" / "reference" / "probes.md").read_text(encoding="utf-8")
    assert drawn() in page


def test_containers_are_sorted_by_the_part_that_they_play() -> None:
    """Init containers that keep running are sidecars; ephemeral ones are told apart."""
    pod = Pod(
        uid="u",
        init_containers=(Container(name="init"), Container(name="side", restartable=True)),
        containers=(Container(name="app"),),
        ephemeral_containers=(Container(name="debug"),),
    )
    assert [(kind.value, one.name) for kind, one in kinds_of(pod)] == [
        ("init", "init"),
        ("sidecar", "side"),
        ("main", "app"),
        ("ephemeral", "debug"),
    ]


def test_a_kind_finds_its_probe() -> None:
    """Each kind has its field of a container."""
    probe = Probe(exec=ExecAction(command=("true",)))
    assert ProbeKind.READINESS.of(Container(name="a", readiness_probe=probe)) is probe
    assert ProbeKind.LIVENESS.of(Container(name="a", readiness_probe=probe)) is None
    assert ProbeKind.STARTUP.of(Container(name="a", startup_probe=probe)) is probe


def test_a_probe_waits_for_its_delay_and_for_startup() -> None:
    """Liveness and readiness wait until startup has passed, all of them for their delay; 100 ms count."""
    late = attrs.evolve(KINDS[ProbeKind.LIVENESS], schedule=Schedule(initial_delay_s=0.1))
    for now_s, started, expected in ((0.05, True, Next.WAIT), (0.1, True, Next.ASK), (9.0, None, Next.WAIT)):
        seen = attrs.evolve(C1, has_started=started)
        assert look(Tally(), late, seen, life=LifeState.SYNCING, now_s=now_s).next is expected
    startup = KINDS[ProbeKind.STARTUP]
    asked = [
        look(Tally(), startup, attrs.evolve(C1, has_started=one), life=LifeState.SYNCING, now_s=1.0).next
        for one in (None, False, True)
    ]
    assert asked == [Next.ASK, Next.ASK, Next.WAIT]
    nobody_knows = attrs.evolve(C1, started_s=None)
    assert look(Tally(), late, nobody_knows, life=LifeState.SYNCING, now_s=0.0).next is Next.ASK


def test_a_probe_is_asked_at_the_very_moment_at_which_its_delay_is_over() -> None:
    """Also where a float's last bit makes the time that has passed since the start less than the delay."""
    late = attrs.evolve(KINDS[ProbeKind.LIVENESS], schedule=Schedule(initial_delay_s=7.0))
    seen = attrs.evolve(C1, has_started=True, started_s=15.62)
    due_s = 15.62 + 7.0
    assert due_s - 15.62 < 7.0
    assert look(Tally(), late, seen, life=LifeState.SYNCING, now_s=due_s).next is Next.ASK


def test_a_run_counts_from_its_threshold_on() -> None:
    """Two failures of three change nothing; a success between them starts the run anew."""
    liveness = KINDS[ProbeKind.LIVENESS]
    alive = ask(Tally(container_id="c1"), liveness, YES, NO, NO)
    assert alive.verdict == Passed()
    assert ask(alive, liveness, YES, NO, NO).verdict == Passed()
    dead = hear(alive, liveness, NO)
    assert dead.told == Unwell(message="no")
    assert dead.tally.is_settled
    assert look(dead.tally, liveness, C1, life=LifeState.SYNCING, now_s=9.0).next is Next.WAIT


def test_startup_is_asked_until_it_has_passed() -> None:
    """Once passed it is settled for this instance; the next one is asked again."""
    startup = KINDS[ProbeKind.STARTUP]
    passed = ask(Tally(container_id="c1"), startup, NO, YES)
    assert (passed.verdict, passed.is_settled) == (Passed(), True)
    looked = look(passed, startup, Instance(id="c2", started_s=0.0), life=LifeState.SYNCING, now_s=1.0)
    assert (looked.next, looked.tally) == (Next.ASK, Tally(container_id="c2"))


def test_readiness_goes_both_ways() -> None:
    """It is never settled: it falls and comes back, each with its own threshold."""
    readiness = KINDS[ProbeKind.READINESS]
    tally = ask(Tally(container_id="c1"), readiness, YES)
    assert tally.verdict == NoAnswer()
    tally = ask(tally, readiness, YES)
    assert tally.verdict == Passed()
    tally = ask(tally, readiness, NO, NO, NO)
    assert tally.verdict == Unwell(message="no")
    assert ask(tally, readiness, YES, YES).verdict == Passed()


def test_the_verdict_carries_the_probes_own_grace() -> None:
    """A container that is killed for failing gets what its probe says, not the pod's grace."""
    asking = attrs.evolve(KINDS[ProbeKind.LIVENESS], grace_s=1.0, schedule=Schedule(failure_threshold=1))
    assert ask(Tally(container_id="c1"), asking, NO).verdict == Unwell(message="no", grace_s=1.0)


@pytest.mark.parametrize("kind", [ReplyKind.ERROR, ReplyKind.UNKNOWN])
def test_what_says_nothing_counts_for_nothing(kind: ReplyKind) -> None:
    """Neither a question that could not be asked nor an unknown answer moves run or verdict."""
    before = ask(Tally(container_id="c1"), KINDS[ProbeKind.LIVENESS], YES, NO, NO)
    heard = hear(before, KINDS[ProbeKind.LIVENESS], Reply(kind, "late"))
    assert (heard.tally, heard.told) == (before, None)


def test_the_kubelet_takes_an_unknown_answer_for_a_failure() -> None:
    """With `spares_unknown` off, nobody knowing is enough to kill."""
    liveness = attrs.evolve(KINDS[ProbeKind.LIVENESS], schedule=Schedule(failure_threshold=1))
    unknown = Reply(ReplyKind.UNKNOWN, "what?")
    assert ask(Tally(container_id="c1"), liveness, unknown, rules=KUBELET).verdict == Unwell(message="what?")
    assert ask(Tally(container_id="c1"), liveness, unknown).verdict == NoAnswer()


def test_the_kubelet_counts_on_for_a_new_instance() -> None:
    """With `resets_run` off, two failures of the one before and one of its own kill an instance."""
    liveness, c2 = KINDS[ProbeKind.LIVENESS], Instance(id="c2", started_s=0.0, has_started=True)
    for rules, runs in ((Rules(), 1), (KUBELET, 0)):
        tally = ask(Tally(container_id="c1"), liveness, NO, NO, rules=rules)
        tally = look(tally, liveness, c2, life=LifeState.SYNCING, now_s=1.0, rules=rules).tally
        tally = ask(tally, liveness, NO, rules=rules)
        assert tally.run == runs
        assert isinstance(tally.verdict, Unwell) is (rules is KUBELET)


def test_the_kubelet_makes_verdicts_up() -> None:
    """With `tells_answers_alone` off there are verdicts before any answer, after an end and at a deletion."""
    told = []
    for rules in (Rules(), KUBELET):
        liveness, readiness = KINDS[ProbeKind.LIVENESS], KINDS[ProbeKind.READINESS]
        first = [
            look(Tally(), asking, C1, life=LifeState.SYNCING, now_s=1.0, rules=rules).told
            for asking in (liveness, readiness)
        ]
        ended = attrs.evolve(C1, is_running=False, has_ended=True)
        ready = Tally(container_id="c1", verdict=Passed())
        gone = look(ready, readiness, ended, life=LifeState.SYNCING, now_s=1.0, rules=rules).tally.verdict
        startup = KINDS[ProbeKind.STARTUP]
        deleted = look(Tally(), startup, C1, life=LifeState.TERMINATING, now_s=1.0, rules=rules).tally.verdict
        told.append([*first, gone, deleted])
    assert told == [[(), (), Passed(), NoAnswer()], [(Passed(),), (Unwell(),), Unwell(), Passed()]]


@pytest.mark.parametrize("rules", [Rules(), KUBELET])
def test_sidecars_are_asked_again_when_they_run_again(rules: Rules) -> None:
    """With restart policy Never an end is the last one, but for sidecars; the kubelet forgets those too."""
    never = attrs.evolve(KINDS[ProbeKind.READINESS], restart_policy=RestartPolicy.NEVER)
    ended = attrs.evolve(C1, is_running=False, has_ended=True)
    after = [
        look(
            Tally(), attrs.evolve(never, container=one), ended, life=LifeState.SYNCING, now_s=1.0, rules=rules
        ).next
        for one in (ContainerKind.MAIN, ContainerKind.SIDECAR)
    ]
    assert after == [Next.END, Next.WAIT if rules.follows_sidecars else Next.END]


def test_events_say_what_an_answer_was() -> None:
    """A plain success is no event; the others are warnings, in the kubelet's words."""
    pod = PodIdentity(uid="u", namespace="ns", name="web")
    told = [event_of(Reply(kind, "why"), ProbeKind.LIVENESS, pod, "app") for kind in ReplyKind]
    assert [one and (one.reason, one.message) for one in told] == [
        None,
        ("ProbeWarning", "Liveness probe warning: why"),
        ("Unhealthy", "Liveness probe failed: why"),
        ("ProbeWarning", "Liveness probe says nothing: why"),
        ("Unhealthy", "Liveness probe errored: why"),
        ("Unhealthy", "Liveness probe failed: why"),
    ]
    refused = Reply(ReplyKind.REFUSED, "no such file")
    event = event_of(refused, ProbeKind.READINESS, pod, "app", rules=KUBELET)
    assert event is not None
    assert event.message == "Readiness probe errored: no such file"


def test_a_command_that_is_not_there_is_a_failure() -> None:
    """With `fails_what_cannot_run` off, as a kubelet does, it says nothing for ever."""
    once = attrs.evolve(KINDS[ProbeKind.LIVENESS], schedule=Schedule(failure_threshold=1))
    refused = Reply(ReplyKind.REFUSED, "no such file")
    assert ask(Tally(container_id="c1"), once, refused).verdict == Unwell(message="no such file")
    assert ask(Tally(container_id="c1"), once, refused, rules=KUBELET).verdict == NoAnswer()


def test_verdicts_tell_no_probe_from_no_answer() -> None:
    """Only what has no probe counts as started and ready without an answer."""
    assert ContainerVerdicts().is_ready
    assert not ContainerVerdicts(readiness=NoAnswer()).is_ready
    assert not ContainerVerdicts(startup=NoAnswer(), readiness=Passed()).is_ready
    assert ContainerVerdicts(startup=Passed(), readiness=Passed()).is_ready
    assert ContainerVerdicts(liveness=NoAnswer()).kill is None
    assert ContainerVerdicts(startup=Unwell(message="slow"), liveness=Unwell()).kill == Unwell(message="slow")


def test_a_pods_verdicts_by_what_they_are_about() -> None:
    """Who has no answer yet, or no such probe, is absent; absent is no value."""
    verdicts = PodVerdicts(
        uid="u",
        by_container={
            "a": ContainerVerdicts(startup=Passed(), liveness=Unwell(), readiness=NoAnswer()),
            "b": ContainerVerdicts(readiness=Passed()),
        },
    )
    assert (verdicts.started, verdicts.alive, verdicts.ready) == ({"a": True}, {"a": False}, {"b": True})
    assert verdicts.of("c") is None
    a = verdicts.by_container["a"]
    assert a[ProbeKind.LIVENESS] == Unwell()
    assert a.with_verdict(ProbeKind.READINESS, Passed())[ProbeKind.READINESS] == Passed()
    assert verdicts.by_container["b"][ProbeKind.STARTUP] == NoProbe()


@pytest.mark.parametrize(
    "fields",
    [
        {"period_s": 0.0},
        {"timeout_s": float("inf")},
        {"initial_delay_s": -1.0},
        {"success_threshold": 0},
        {"failure_threshold": 0},
    ],
)
def test_a_schedule_that_cannot_be_kept_is_refused(fields: dict[str, float]) -> None:
    """Periods and time-outs are above 0, thresholds at least 1."""
    with pytest.raises(ValueError, match=next(iter(fields))):
        Schedule(**fields)  # type: ignore[arg-type]


def test_a_schedule_is_that_of_the_pods_probe() -> None:
    """Whole seconds of a manifest become durations."""
    probe = Probe(exec=ExecAction(), period_seconds=5, timeout_seconds=2, initial_delay_seconds=3)
    assert Schedule.of(probe) == Schedule(period_s=5.0, timeout_s=2.0, initial_delay_s=3.0)


def test_an_exec_prober_tells_what_failed_from_what_nobody_knows() -> None:
    """A command that ran out of its time has failed; one whose runtime is away says nothing."""
    runtime = FakeContainerRuntime()
    question = Question(action=ExecAction(command=("a",)), container_id="c", timeout_s=2.0)
    runtime.fail("run_command", CommandTimedOutError("c", 2.0))
    reply = ExecProber(runtime).probe(question)
    assert reply == Reply(ReplyKind.FAILURE, "the command has not ended after 2 s")
    runtime.fail("run_command", CommandTimedOutError("c", 2.0, survivors=3))
    reply = ExecProber(runtime).probe(question)
    words = "the command has not ended after 2 s; 3 of its processes live on in the container"
    assert reply == Reply(ReplyKind.FAILURE, words)
    for error in (AnswerLostError("run_command", "gone"), RuntimeUnavailableError("run_command", "away")):
        runtime.fail("run_command", error)
        with pytest.raises(type(error)):
            ExecProber(runtime).probe(question)
    with pytest.raises(ConfigurationError, match="TcpSocketAction"):
        ExecProber(runtime).probe(Question(action=TcpSocketAction(port=1)))
