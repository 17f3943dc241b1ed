"""Decisions: whether a container is asked now, and what an answer changes. Pure."""

from __future__ import annotations

import enum

from nodealloc import _attrs as attrs
from nodealloc._typed import typed_fields, typed_on_error
from nodealloc.podfacts import EventKind, LifeState, PodEvent, PodIdentity
from nodealloc.podspec import RestartPolicy
from nodealloc.probes._kinds import ContainerKind, ProbeKind, asks
from nodealloc.probes._replies import Reply, ReplyKind
from nodealloc.probes._rules import RIGHT, Rules
from nodealloc.probes._schedule import Schedule
from nodealloc.probes._verdicts import NO_ANSWER, Passed, ProbeVerdict, Unwell

__all__ = [
    "TRIES",
    "Asking",
    "Heard",
    "Instance",
    "Looked",
    "Next",
    "Tally",
    "changes_nothing",
    "event_of",
    "hear",
    "look",
]

TRIES = 3
"""How often what could not be asked is tried before the next period. Source: kubelet ``prober.go``."""


@typed_fields
@attrs.frozen(kw_only=True)
class Asking:
    """One probe of one container.

    Attributes:
        kind: What it is to find out.
        schedule: When it is asked, and how many answers count.
        container: Which part of the pod is asked.
        restart_policy: Of the pod.
        grace_s: Seconds of grace for a container that is killed for failing; None for the pod's own.
    """

    kind: ProbeKind
    schedule: Schedule = Schedule()
    container: ContainerKind = ContainerKind.MAIN
    restart_policy: RestartPolicy = RestartPolicy.ALWAYS
    grace_s: float | None = None


@typed_fields
@attrs.frozen(kw_only=True)
class Instance:
    """One instance of the container, as it is seen now.

    Attributes:
        id: The runtime's id.
        is_running: Whether it runs.
        has_ended: Whether it has run, and will not again.
        started_s: When it started, on the clock of whoever asks; None where nobody knows.
        has_started: Whether it has passed its startup; None where that is not known.
    """

    id: str
    is_running: bool = True
    has_ended: bool = False
    started_s: float | None = None
    has_started: bool | None = None


@attrs.frozen(kw_only=True)
class Tally:
    """What is known of one probe of one container, between two answers.

    Attributes:
        container_id: The instance that it speaks of; "" before there is one.
        was_success: Which way the last answer that counted went; None before the first.
        run: How many went that way in a row.
        verdict: What stands.
        is_settled: It has started, or is to be killed: this instance is not asked again.
    """

    container_id: str = ""
    was_success: bool | None = None
    run: int = 0
    verdict: ProbeVerdict = NO_ANSWER
    is_settled: bool = False


class Next(enum.Enum):
    """What to do at this time."""

    ASK = "ask"
    WAIT = "wait"
    END = "end"
    """Nobody will be asked any more."""


@attrs.frozen(kw_only=True)
class Looked:
    """What one look at the container says.

    Attributes:
        tally: What is known now.
        next: Whether to ask.
        told: Verdicts that came up on the way, in order.
    """

    tally: Tally
    next: Next
    told: tuple[ProbeVerdict, ...] = ()


@attrs.frozen(kw_only=True)
class Heard:
    """What one answer changes.

    Attributes:
        tally: What is known now.
        told: The verdict, where the answer made it another one; None where it stands.
    """

    tally: Tally
    told: ProbeVerdict | None = None


@typed_on_error
def look(
    tally: Tally,
    asking: Asking,
    seen: Instance | None,
    /,
    *,
    life: LifeState,
    now_s: float,
    rules: Rules = RIGHT,
) -> Looked:
    """Whether to ask at this time.

    Args:
        tally: What is known.
        asking: The probe.
        seen: The newest instance of the container; None while there is none.
        life: How far the pod has come.
        now_s: Now, on the clock of `seen`.
        rules: The kubelet's, or the right ones.

    Source: kubelet ``worker.go``; where `rules` says so, ours.
    """
    if life.__class__ is not LifeState:
        raise TypeError(life)
    if life is LifeState.TERMINATED or life is LifeState.FINISHED:
        return Looked(tally=tally, next=Next.END)
    if seen is None or life is LifeState.WAITING:
        return Looked(tally=tally, next=Next.WAIT)
    told: tuple[ProbeVerdict, ...] = ()
    if seen.id != tally.container_id:
        tally = _anew(tally, asking, seen.id, rules)
        told = () if rules.tells_answers_alone else (tally.verdict,)
    if tally.is_settled:
        return Looked(tally=tally, next=Next.WAIT, told=told)
    made_up: ProbeVerdict | None = None
    after = Next.WAIT
    if not seen.is_running:
        made_up = Unwell(grace_s=asking.grace_s)
        after = Next.END if _is_over(asking, seen, rules) else Next.WAIT
    elif not asks(asking.kind, life, asking.container):
        made_up, after = Passed(), Next.END
    elif _may_ask(asking, seen, now_s):
        after = Next.ASK
    if made_up is not None and not rules.tells_answers_alone and type(made_up) is not type(tally.verdict):
        tally = attrs.evolve(tally, verdict=made_up)
        told = (*told, made_up)
    return Looked(tally=tally, next=after, told=told)


def _anew(tally: Tally, asking: Asking, container_id: str, rules: Rules) -> Tally:
    """Of an instance that nobody has asked yet."""
    verdict: ProbeVerdict = NO_ANSWER
    if not rules.tells_answers_alone:
        made_up: dict[ProbeKind, ProbeVerdict] = {
            ProbeKind.LIVENESS: Passed(),
            ProbeKind.READINESS: Unwell(grace_s=asking.grace_s),
        }
        verdict = made_up.get(asking.kind, NO_ANSWER)
    if rules.resets_run:
        return Tally(container_id=container_id, verdict=verdict)
    return attrs.evolve(tally, container_id=container_id, verdict=verdict, is_settled=False)


def _is_over(asking: Asking, seen: Instance, rules: Rules) -> bool:
    """Whether this instance was the last one."""
    if not seen.has_ended or asking.restart_policy is not RestartPolicy.NEVER:
        return False
    return not (rules.follows_sidecars and asking.container is ContainerKind.SIDECAR)


def _may_ask(asking: Asking, seen: Instance, now_s: float) -> bool:
    # An unknown start is long ago: the runtime would know of a recent one.
    # As the moment is computed at which it is asked first: a difference may be less by a last bit.
    if seen.started_s is not None and now_s < seen.started_s + asking.schedule.initial_delay_s:
        return False
    return (seen.has_started is not True) if asking.kind is ProbeKind.STARTUP else bool(seen.has_started)


@typed_on_error
def hear(tally: Tally, asking: Asking, reply: Reply, /, *, rules: Rules = RIGHT) -> Heard:
    """What an answer changes.

    A run of equal answers counts from its threshold on. After startup has passed,
    or something that kills has failed, the instance is not asked again.

    Args:
        tally: What was known; of the instance that answered.
        asking: The probe.
        reply: What came of asking, after all tries.
        rules: The kubelet's, or the right ones.

    Source: kubelet ``worker.go``; where `rules` says so, ours.
    """
    if not _counts(reply, rules):
        return Heard(tally=tally)
    succeeded = reply.kind.is_success
    run = tally.run + 1 if tally.was_success is succeeded else 1
    schedule = asking.schedule
    counts = run >= (schedule.success_threshold if succeeded else schedule.failure_threshold)
    told: ProbeVerdict | None = None
    if counts and not isinstance(tally.verdict, Passed if succeeded else Unwell):
        told = Passed() if succeeded else Unwell(message=reply.message, grace_s=asking.grace_s)
    settles = counts and asking.kind.kills and (asking.kind is ProbeKind.STARTUP or not succeeded)
    counted = Tally(
        container_id=tally.container_id,
        was_success=None if settles else succeeded,
        run=0 if settles else run,
        verdict=tally.verdict if told is None else told,
        is_settled=settles or tally.is_settled,
    )
    return Heard(tally=counted, told=told)


def changes_nothing(tally: Tally, asking: Asking, reply: Reply, /) -> bool:
    """Whether an answer is one more success of a container that is known to be well.

    Neither what is told nor what later answers come to depends on how many there were.
    """
    return (
        reply.kind is ReplyKind.SUCCESS
        and tally.was_success is True
        and type(tally.verdict) is Passed
        and asking.kind is not ProbeKind.STARTUP
    )


def _counts(reply: Reply, rules: Rules) -> bool:
    """Whether an answer says anything about the container."""
    kind = reply.kind
    if kind is ReplyKind.UNKNOWN:
        return not rules.spares_unknown
    return rules.fails_what_cannot_run if kind is ReplyKind.REFUSED else kind is not ReplyKind.ERROR


def event_of(
    reply: Reply, kind: ProbeKind, pod: PodIdentity, container: str, /, *, rules: Rules = RIGHT
) -> PodEvent | None:
    """What is told about an answer; None for a plain success.

    Source: kubelet ``prober.go``.
    """
    if reply.kind is ReplyKind.SUCCESS:
        return None
    spared = reply.kind is ReplyKind.UNKNOWN and rules.spares_unknown
    match reply.kind:
        case ReplyKind.WARNING:
            reason, word = "ProbeWarning", "warning"
        case ReplyKind.ERROR | ReplyKind.REFUSED if not _counts(reply, rules):
            reason, word = "Unhealthy", "errored"
        case _:
            reason, word = ("ProbeWarning", "says nothing") if spared else ("Unhealthy", "failed")
    message = f"{kind.value.capitalize()} probe {word}: {reply.message}"
    return PodEvent(pod=pod, kind=EventKind.WARNING, reason=reason, message=message, container=container)
