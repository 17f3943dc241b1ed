"""Plays stories of pods: events in, what is told out, as text that reads as a story.

A line `> …` is an event, `at N` a moment in seconds; lines behind them that begin with
`= …` are what is told because of it. All else is for people, and stays as it is.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping

import attrs

from nodealloc.checkpoint import JsonCheckpoint, rows_of
from nodealloc.dsw_asw import InlineExecutor, World
from nodealloc.podfacts import (
    ContainerRunning,
    ContainerState,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    Exited,
    ExitUnknown,
    LifeState,
    PodIdentity,
    PodStatus,
    ResourceHealth,
    ResourceHealthState,
    ResourceStatus,
)
from nodealloc.podspec import Container, Pod, Probe, ReadinessGate, RestartPolicy
from nodealloc.podstatus import (
    STATUS_ROWS,
    Health,
    Observed,
    Part,
    StartFailure,
    StatusManager,
    ToldEnding,
    told_from_checkpoint,
    with_runtime,
)
from nodealloc.runtime import (
    ContainerRecord,
    ContainerReport,
    Exit,
    PodKnown,
    PodReport,
    RunState,
    SandboxRecord,
    SandboxReport,
)
from nodealloc.testing.dsw_asw import MemoryJournal, VirtualClock
from nodealloc.testing.podstatus import FakeSink


@attrs.define
class Runs:
    """What a runtime holds of one pod."""

    who: PodIdentity
    sandboxes: list[SandboxReport] = attrs.field(factory=list[SandboxReport])
    containers: list[ContainerReport] = attrs.field(factory=list[ContainerReport])
    known: PodKnown = attrs.field(init=False)
    fault: str = ""

    def __attrs_post_init__(self) -> None:
        self.known = PodKnown(uid=self.who.uid)

    def start(self, name: str, now_s: float) -> None:
        """A new instance runs."""
        attempt = len({*self._ids(name)})
        record = ContainerRecord(
            id=f"{self.who.uid}-{name}-{attempt}",
            pod=self.who,
            name=name,
            sandbox_id="s",
            attempt=attempt,
            state=RunState.RUNNING,
            image=f"{name}:1",
            image_id=f"sha256:{name}",
        )
        self.containers.append(ContainerReport(record=record, started_unix_s=now_s))

    def end(self, name: str, exit_: Exit, now_s: float, reason: str = "", message: str = "") -> None:
        """The newest instance ends."""
        at, one = self._newest(name)
        succeeded = isinstance(exit_, Exited) and exit_.code == 0
        self.containers[at] = attrs.evolve(
            one,
            record=attrs.evolve(one.record, state=RunState.EXITED),
            exit=exit_,
            reason=reason or ("Completed" if succeeded else "Error"),
            message=message,
            finished_unix_s=now_s,
        )

    def lose(self, name: str) -> None:
        """The record of the newest instance is gone."""
        at, _ = self._newest(name)
        del self.containers[at]

    def look(self) -> PodKnown:
        """What a watch knows after it has looked."""
        if self.fault:
            self.known = attrs.evolve(self.known, fault=self.fault)
            return self.known
        report = PodReport.of(self.who.uid, self.sandboxes, self.containers)
        marks = {one.record.id: one.record.state for one in report.containers}
        boxes = {one.record.id: one.record.state for one in report.sandboxes}
        self.known = self.known.inspected(report, {**marks, **boxes})
        return self.known

    def _ids(self, name: str) -> Iterator[str]:
        yield from (one.record.id for one in self.containers if one.record.name == name)
        yield from (id_ for id_, end in self.known.ends.items() if end.name == name)

    def _newest(self, name: str) -> tuple[int, ContainerReport]:
        mine = [(at, one) for at, one in enumerate(self.containers) if one.record.name == name]
        return mine[-1]


class Teller:
    """A manager with its journal, in virtual time; the worlds that others would write."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.sink = FakeSink()
        self.journal: MemoryJournal[JsonCheckpoint] = MemoryJournal()
        self.pods: World[str, Observed] = World("pods")
        self.runs: World[str, PodKnown] = World("runtime pods")
        self.health: World[str, Mapping[str, Health]] = World("verdicts")
        self.models: dict[str, Runs] = {}
        self.manager = self._manager()

    def restart(self) -> None:
        """The agent is killed and starts again; what the journal has is all that it knows."""
        self.manager = self._manager()
        self.manager.heard()

    def settle(self) -> None:
        """Tell what there is to tell."""
        self.manager.run_until_quiet()

    def alter(self, uid: str, **changes: object) -> None:
        """Know something else of a pod."""
        change: Callable[..., Observed] = attrs.evolve
        self.pods.put(uid, change(self._observed(uid), **changes))

    def look(self, uid: str) -> None:
        """Let the runtime be looked at."""
        self.runs.put(uid, self.models[uid].look())

    def _observed(self, uid: str) -> Observed:
        found = self.pods.get(uid)
        assert found is not None, f"there is no pod {uid}"
        return found

    def _manager(self) -> StatusManager[Observed]:
        rows = rows_of(STATUS_ROWS, self.journal.rows, told_from_checkpoint)
        return StatusManager(
            self.sink,
            self.pods,
            parts=[
                Part.of(self.runs, with_runtime),
                Part.of(self.health, lambda observed, health: attrs.evolve(observed, health=health)),
            ],
            journal=self.journal,
            remembered=rows,
            executor=InlineExecutor(),
            clock=self.clock,
            unix_s=self.clock.monotonic_s,
        )


class Story:
    """Plays one story."""

    def __init__(self) -> None:
        self.teller = Teller()
        self.told = 0

    def play(self, text: str) -> str:
        """The same story, with what was told in it."""
        lines: list[str] = []
        for line in text.splitlines():
            if line.startswith(("= ", "    ")):
                continue
            lines.append(line)
            if line.startswith("at "):
                moment_s = float(line.removeprefix("at "))
                self.teller.clock.advance(moment_s - self.teller.clock.monotonic_s())
            elif line.startswith("> "):
                self.event(line.removeprefix("> "))
            else:
                continue
            self.teller.settle()
            lines += self.news()
        return "\n".join(lines) + "\n"

    def news(self) -> list[str]:
        """What was told since it was asked last, pod by pod: between pods there is no order."""
        calls, self.told = self.teller.sink.calls[self.told :], len(self.teller.sink.calls)
        calls.sort(key=lambda call: call[0])
        return [line for uid, status in calls for line in shown(uid, status)]

    def event(self, line: str) -> None:
        """Let it happen."""
        verb, *words = shlex.split(line)
        call: Callable[..., None] = getattr(self, f"do_{verb.replace('-', '_')}")
        call(*words)

    def do_pod(self, uid: str, name: str, policy: str, *containers: str) -> None:
        """`pod UID NAME POLICY KIND:NAME[+PROBE…]…`: it is known."""
        made: dict[str, list[Container]] = {"init": [], "sidecar": [], "main": []}
        gates: list[ReadinessGate] = []
        ordered: list[Container] = []
        for one in containers:
            kind, _, rest = one.partition(":")
            if kind == "gate":
                gates.append(ReadinessGate(condition_type=rest))
                continue
            label, *probes = rest.split("+")
            container = Container(
                name=label,
                image=f"{label}:1",
                restartable=kind == "sidecar",
                readiness_probe=Probe() if "readiness" in probes else None,
                startup_probe=Probe() if "startup" in probes else None,
            )
            made[kind].append(container)
            if kind != "main":
                ordered.append(container)
        pod = Pod(
            uid=uid,
            name=name,
            restart_policy=RestartPolicy(policy),
            init_containers=tuple(ordered),
            containers=tuple(made["main"]),
            readiness_gates=tuple(gates),
        )
        self.teller.models[uid] = Runs(PodIdentity.of(pod))
        self.teller.pods.put(uid, Observed(pod=pod))
        self.teller.look(uid)

    def do_sandbox(self, uid: str, *ips: str) -> None:
        """`sandbox UID [IP…]`: a new one is ready."""
        model = self.teller.models[uid]
        for at, one in enumerate(model.sandboxes):
            model.sandboxes[at] = attrs.evolve(one, record=attrs.evolve(one.record, is_ready=False))
        record = SandboxRecord(id=f"{uid}-box-{len(model.sandboxes)}", pod=model.who)
        record = attrs.evolve(record, attempt=len(model.sandboxes))
        model.sandboxes.append(SandboxReport(record=record, ips=ips))
        self.teller.look(uid)

    def do_sandbox_ends(self, uid: str) -> None:
        """`sandbox-ends UID`: it is there no more."""
        self.teller.models[uid].sandboxes.clear()
        self.teller.look(uid)

    def do_runs(self, uid: str, name: str) -> None:
        """`runs UID NAME`: a new instance."""
        self.teller.models[uid].start(name, self.teller.clock.monotonic_s())
        observed = self.teller.pods.get(uid)
        assert observed is not None
        failures = {key: one for key, one in observed.start_failures.items() if key != name}
        self.teller.alter(uid, start_failures=failures)
        self.teller.look(uid)

    def do_exits(self, uid: str, name: str, code: str, reason: str = "", message: str = "") -> None:
        """`exits UID NAME CODE|unknown [REASON [MESSAGE]]`."""
        ended: Exit = ExitUnknown() if code == "unknown" else Exited(code=int(code))
        self.teller.models[uid].end(name, ended, self.teller.clock.monotonic_s(), reason, message)
        self.teller.look(uid)

    def do_lost(self, uid: str, name: str) -> None:
        """`lost UID NAME`: the runtime has forgotten its newest instance."""
        self.teller.models[uid].lose(name)
        self.teller.look(uid)

    def do_cleared(self, uid: str) -> None:
        """`cleared UID`: records of what has ended are removed, but for the newest of each."""
        model = self.teller.models[uid]
        newest = {one.record.name: one.record.id for one in model.containers}
        model.containers = [
            one for one in model.containers if one.exit is None or newest[one.record.name] == one.record.id
        ]
        self.teller.look(uid)

    def do_runtime_away(self, uid: str) -> None:
        """`runtime-away UID`: asking about it fails."""
        self.teller.models[uid].fault = "the runtime does not answer"
        self.teller.look(uid)

    def do_runtime_back(self, uid: str) -> None:
        """`runtime-back UID`: asking about it works again."""
        self.teller.models[uid].fault = ""
        self.teller.look(uid)

    def do_probe(self, uid: str, kind: str, name: str, verdict: str) -> None:
        """`probe UID startup|readiness NAME passed|failed`: of its newest instance."""
        model = self.teller.models[uid]
        id_ = [one.record.id for one in model.containers if one.record.name == name][-1]
        known = dict(self.teller.health.get(uid) or {})
        before = known.get(id_, Health())
        known[id_] = (
            attrs.evolve(before, startup=verdict == "passed")
            if kind == "startup"
            else attrs.evolve(before, readiness=verdict == "passed")
        )
        self.teller.health.put(uid, known)

    def do_waits(self, uid: str, name: str, reason: str, message: str = "") -> None:
        """`waits UID NAME REASON [MESSAGE]`: it cannot be started now."""
        observed = self.teller.pods.get(uid)
        assert observed is not None
        failure = StartFailure(reason=reason, message=message)
        self.teller.alter(uid, start_failures={**observed.start_failures, name: failure})

    def do_device(self, uid: str, name: str, resource: str, id_: str, health: str) -> None:
        """`device UID NAME RESOURCE ID HEALTH`: of a container."""
        one = ResourceStatus(
            name=resource, resources=(ResourceHealth(id=id_, health=ResourceHealthState(health)),)
        )
        self.teller.alter(uid, devices={name: (one,)})

    def do_ends(self, uid: str, reason: str = "", message: str = "", disruption: str = "") -> None:
        """`ends UID [REASON MESSAGE [DISRUPTION]]`: it was decided that it ends."""
        ending = ToldEnding(reason=reason, message=message, disruption=disruption) if reason else None
        self.teller.alter(uid, life=LifeState.TERMINATING, ending=ending)

    def do_refused(self, uid: str, reason: str, message: str) -> None:
        """`refused UID REASON MESSAGE`: it does not come in."""
        ending = ToldEnding(reason=reason, message=message)
        self.teller.alter(uid, life=LifeState.FINISHED, ending=ending, refused=True)

    def do_deleted(self, uid: str) -> None:
        """`deleted UID`: its deletion was asked for."""
        observed = self.teller.pods.get(uid)
        assert observed is not None
        pod = attrs.evolve(observed.pod, deletion_timestamp="2026-01-01T00:00:00Z")
        self.teller.alter(uid, pod=pod, life=LifeState.TERMINATING)

    def do_over(self, uid: str) -> None:
        """`over UID`: nothing of it runs, or will."""
        self.teller.alter(uid, life=LifeState.TERMINATED)

    def do_gone(self, uid: str) -> None:
        """`gone UID`: nothing of it is left."""
        self.teller.pods.drop(uid)

    def do_agent_restarts(self) -> None:
        """`agent-restarts`: killed, and started again."""
        self.teller.restart()

    def do_sink_fails(self) -> None:
        """`sink-fails`: nobody takes anything."""
        self.teller.sink.error = OSError("away")

    def do_sink_works(self) -> None:
        """`sink-works`: again."""
        self.teller.sink.error = None


def shown(uid: str, status: PodStatus | None) -> Iterator[str]:
    """What was told of a pod, all of it, in a few lines."""
    if status is None:
        yield f"= {uid} is gone"
        return
    why = f" ({status.reason}: {status.message})" if status.reason else ""
    ips = f", {' '.join(status.pod_ips)}" if status.pod_ips else ""
    yield f"= {uid} is {status.phase.value if status.phase else 'untold'}{why}{ips}"
    for one in status.conditions:
        reason = f" ({one.reason}{': ' if one.message else ''}{one.message})" if one.reason else ""
        yield f"    {one.type} is {one.status.value} since {_moment(one.last_transition_unix_s)}{reason}"
    for kind, statuses in (("init ", status.init_containers), ("", status.containers)):
        for container in statuses:
            yield f"    {kind}{container.name} {', '.join(_parts(container))}"


def _parts(one: ContainerStatus) -> Iterator[str]:
    yield _state(one.state)
    if one.started:
        yield "started"
    if one.ready:
        yield "ready"
    if one.restart_count:
        yield f"{one.restart_count} restarts"
    if one.last_state is not None:
        yield f"before that {_state(one.last_state)}"
    for resource in one.allocated:
        yield f"{resource.name} {' '.join(f'{each.id} {each.health.value}' for each in resource.resources)}"


def _state(state: ContainerState | None) -> str:
    match state:
        case ContainerWaiting():
            return f"waits{' for ' if state.reason else ''}{state.reason}{_said(state.message)}"
        case ContainerRunning():
            return f"runs since {_moment(state.started_unix_s)}"
        case ContainerTerminated():
            how = state.exit.code if isinstance(state.exit, Exited) else "nobody knows how"
            return f"ended {how} {state.reason}{_said(state.message)} at {_moment(state.finished_unix_s)}"
        case None:
            return "untold"


def _said(message: str) -> str:
    return f" {message!r}" if message else ""


def _moment(unix_s: float | None) -> str:
    return "an unknown time" if unix_s is None else f"{unix_s:g}"
