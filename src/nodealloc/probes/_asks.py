"""Decisions: which probes of a pod there are to ask, and which verdicts stand. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from nodealloc import _attrs as attrs
from nodealloc._addresses import told_addresses
from nodealloc._frozen import Frozen, freeze
from nodealloc.errors import ConfigurationError
from nodealloc.podfacts import LifeState, PodIdentity
from nodealloc.podspec import Container, ExecAction, GrpcAction, Pod, Probe
from nodealloc.podspec._expansion import expand
from nodealloc.probes._kinds import ContainerKind, ProbeKind, kinds_of
from nodealloc.probes._ports import ContainerSeen, Question, ReportedPod, ReportSeen
from nodealloc.probes._schedule import Schedule
from nodealloc.probes._tally import Asking, Tally
from nodealloc.probes._verdicts import (
    NO_ANSWER,
    ContainerVerdicts,
    NoProbe,
    Passed,
    PodVerdicts,
    ProbeVerdict,
    Unwell,
)

__all__ = ["Ask", "Heards", "ProbedPod", "asks_of", "stands", "tally_of"]

Heards: TypeAlias = Mapping[tuple[str, ProbeKind], ProbeVerdict]
"""What answers came to, by the runtime's id of the container and the kind of probe."""

_THERE = frozenset({"running", "unknown"})
"""States in which a verdict stands: a runtime that does not know has not seen an end."""
_LAST_PORT = 65535
_MADE = "created"
"""Of an instance that has not begun there is nothing to say: neither that it ended, nor that it is unwell."""


@attrs.frozen(kw_only=True)
class ProbedPod:
    """A pod that is probed.

    Attributes:
        pod: The pod.
        life: How far it has come; None until somebody says so after a start: nobody is
            asked, and what stood before stands.
        schedules: In place of what the pod says, by container and kind.
    """

    pod: Pod | None = None
    life: LifeState | None = None
    schedules: Mapping[tuple[str, ProbeKind], Schedule] = attrs.field(
        factory=Frozen[tuple[str, ProbeKind], Schedule], validator=freeze
    )

    @property
    def has_probes(self) -> bool:
        """Whether there is anything to ask of it."""
        if self.pod is None:
            return False
        containers = [one for _, one in kinds_of(self.pod)]
        return any(kind.of(one) is not None for one in containers for kind in ProbeKind)


@attrs.frozen(kw_only=True)
class Ask:
    """One probe of the newest instance of one container.

    Attributes:
        pod: Whose container it is.
        name: As the pod names the container.
        asking: What is to be found out.
        life: How far the pod has come.
        container_id: The runtime's id of the instance.
        is_running: Whether it runs.
        has_ended: Whether it has run, and will not again.
        has_started: Whether it has passed its startup.
        started_unix_s: When it began, in Unix seconds; None where nobody knows.
        question: What is asked; None where nobody can be asked.
        fault: Why not, in words.
        verdict: What stands.
    """

    pod: PodIdentity
    name: str
    asking: Asking
    life: LifeState
    container_id: str
    is_running: bool
    has_ended: bool
    has_started: bool
    started_unix_s: float | None
    question: Question | None
    fault: str = ""
    verdict: ProbeVerdict = NO_ANSWER

    def asks_otherwise(self, other: Ask, /) -> bool:
        """Whether the other asks something else, or somebody else; a time-out of its own is no matter."""
        before, after = self.question, other.question
        if before is None or after is None:
            return False
        return (before.action, before.address, before.port) != (after.action, after.address, after.port)


def asks_of(
    want: ProbedPod, known: ReportedPod | None, verdicts: PodVerdicts | None, /, *, node_ip: str
) -> tuple[Ask, ...]:
    """All probes of the containers that have an instance; whether one is due now, `look` says."""
    report = None if known is None else known.report
    if want.pod is None or want.life is None or report is None:
        return ()
    own_ips = told_addresses(report.ips, (node_ip,) if node_ip else ())
    ip = own_ips[0] if own_ips else (node_ip if want.pod.host_network else "")
    return tuple(
        ask
        for part, container, seen in _instances(want.pod, report)
        for ask in _asks(want, _Asked(part, container, seen, ip), verdicts)
    )


@attrs.frozen
class _Asked:
    """The newest instance of a container, and where it is asked."""

    part: ContainerKind
    container: Container
    seen: ContainerSeen
    ip: str


def _asks(want: ProbedPod, one: _Asked, verdicts: PodVerdicts | None) -> Iterator[Ask]:
    pod, life, container, record = want.pod, want.life, one.container, one.seen.record
    if pod is None or life is None:
        return
    state = record.state.value
    mine = _known(container, None if verdicts is None else verdicts.of(record.id))
    for kind in ProbeKind:
        probe = kind.of(container)
        if probe is None:
            continue
        schedule, fault = _schedule(probe, want.schedules.get((container.name, kind)))
        grace_s = probe.termination_grace_period_seconds
        asking = Asking(
            kind=kind,
            schedule=schedule,
            container=one.part,
            restart_policy=pod.restart_policy,
            grace_s=None if grace_s is None or not kind.kills else float(grace_s),
        )
        question: Question | None = None
        if not fault:
            question, fault = _question(probe, container, record.id, one.ip, schedule.timeout_s)
        yield Ask(
            pod=PodIdentity.of(pod),
            name=container.name,
            asking=asking,
            life=life,
            container_id=record.id,
            is_running=state == "running",
            has_ended=state == "exited",
            has_started=mine.has_started,
            started_unix_s=one.seen.started_unix_s,
            question=question,
            fault=fault,
            verdict=mine[kind],
        )


def _instances(pod: Pod, report: ReportSeen) -> Iterator[tuple[ContainerKind, Container, ContainerSeen]]:
    """The containers of the pod that have an instance, and the newest of each that has begun."""
    newest: dict[str, ContainerSeen] = {}
    for one in report.containers:
        if one.record.state.value != _MADE:
            newest.setdefault(one.record.name, one)
    for part, container in kinds_of(pod):
        if (seen := newest.get(container.name)) is not None:
            yield part, container, seen


def _schedule(probe: Probe, given: Schedule | None) -> tuple[Schedule, str]:
    """When it is asked, and why nobody can be: only a pod that was made in Python has a period of 0."""
    try:
        return given or Schedule.of(probe), ""
    except ConfigurationError as error:
        return Schedule(), str(error)


def _question(
    probe: Probe, container: Container, container_id: str, ip: str, timeout_s: float
) -> tuple[Question | None, str]:
    """What is asked, or why nobody can be."""
    if not probe.actions:
        return None, "the probe says nothing about how to ask"
    action = probe.actions[0]
    if isinstance(action, ExecAction):
        action = _expanded(action, container)
        return Question(action=action, container_id=container_id, timeout_s=timeout_s), ""
    port: int | str = action.port
    if isinstance(port, str):
        found = next((one.container_port for one in container.ports if one.name == port), 0)
        if not found:
            return (
                None,
                f"container {container.name} has no port of the name {port}; name it, or give its number",
            )
        port = found
    if not 0 < port <= _LAST_PORT:
        return None, f"invalid port number: {port}; give one from 1 to {_LAST_PORT}"
    address = ip if isinstance(action, GrpcAction) else action.host or ip
    if not address:
        return None, "the pod has no address"
    made = Question(action=action, container_id=container_id, address=address, port=port, timeout_s=timeout_s)
    return made, ""


def _expanded(action: ExecAction, container: Container) -> ExecAction:
    """Its command with variables of the container put in, as they stand in the pod.

    One whose value is somewhere else counts as empty, as with a kubelet.

    Source: kubelet ``prober/prober.go``.
    """
    if not any("$" in word for word in action.command):
        return action
    variables = {one.name: one.value for one in container.variables}
    return attrs.evolve(action, command=tuple(expand(word, variables) for word in action.command))


def _known(container: Container, verdicts: ContainerVerdicts | None) -> ContainerVerdicts:
    """What is known of an instance, with `NoAnswer` for the probes that it has and `NoProbe` for others."""
    given = {kind: kind.of(container) is not None for kind in ProbeKind}
    made = verdicts or ContainerVerdicts()
    for kind, has_probe in given.items():
        if not has_probe:
            made = made.with_verdict(kind, NoProbe())
        elif isinstance(made[kind], NoProbe):
            made = made.with_verdict(kind, NO_ANSWER)
    return made


def stands(
    uid: str, want: ProbedPod, known: ReportedPod | None, have: PodVerdicts | None, heard: Heards, /
) -> PodVerdicts:
    """The verdicts on a pod, from those before and what answers came to.

    What nobody has asked about since stands. Of a container that ended nothing does:
    the next instance begins with no answer.
    """
    before = have or PodVerdicts(uid=uid)
    report = None if known is None else known.report
    if want.pod is None or report is None:
        return before
    after: dict[str, ContainerVerdicts] = {}
    for _, container, seen in _instances(want.pod, report):
        container_id = seen.record.id
        verdicts = _known(container, before.of(container_id))
        if seen.record.state.value not in _THERE or verdicts == ContainerVerdicts():
            continue
        for kind in ProbeKind:
            new = heard.get((container_id, kind))
            if new is not None and not isinstance(verdicts[kind], NoProbe):
                verdicts = verdicts.with_verdict(kind, new)
        after[container_id] = verdicts
    return before if after == before.by_container else PodVerdicts(uid=uid, by_container=after)


def tally_of(ask: Ask, /) -> Tally:
    """Where counting goes on after a start of the agent: nothing is counted, what stood stands."""
    kind, verdict = ask.asking.kind, ask.verdict
    if isinstance(verdict, NoProbe) or verdict == NO_ANSWER:
        return Tally()
    settled = (isinstance(verdict, Unwell) and kind.kills) or (
        isinstance(verdict, Passed) and kind is ProbeKind.STARTUP
    )
    return Tally(container_id=ask.container_id, verdict=verdict, is_settled=settled)
