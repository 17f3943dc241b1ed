"""A plan while it is being made: what is decided so far for each container."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nodealloc.podlife._newest import Latest, look
from nodealloc.podlife._plan import ContainerPart, ContainerStep, PodPlan, Stop, StopReason, Why

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from nodealloc.podlife._definitions import Definitions
    from nodealloc.podlife._plan import PodSeen
    from nodealloc.podlife._rules import Rules
    from nodealloc.podlife._sandbox import SandboxNeed
    from nodealloc.podspec import Container, Pod
    from nodealloc.runtime import ContainerReport

__all__ = ["Draft"]

# A member of an enum costs a call at each use before Python 3.12, and these are used for every container.
_PART_EPHEMERAL: Final = ContainerPart.EPHEMERAL
_PART_INIT: Final = ContainerPart.INIT
_PART_MAIN: Final = ContainerPart.MAIN
_PART_SIDECAR: Final = ContainerPart.SIDECAR
_PART_UNWANTED: Final = ContainerPart.UNWANTED
_NOBODY: Final = frozenset[str]()


class Draft:
    """Collects starts, stops and reasons by container name; never leaves this package."""

    __slots__ = (
        "_definitions",
        "ends",
        "has_sidecars",
        "is_deleted",
        "makes_sandbox",
        "newest",
        "older",
        "pod",
        "rules",
        "seen",
        "starting",
        "stops",
        "why",
    )

    def __init__(self, pod: Pod, seen: PodSeen, definitions: Definitions, rules: Rules) -> None:
        self.pod = pod
        self.seen = seen
        self.rules = rules
        self._definitions = definitions
        self.newest, self.older = look(seen, definitions.kubelet, keeps_ends=rules.keeps_init_progress)
        self.has_sidecars = any(one.restartable for one in pod.init_containers)
        self.is_deleted = seen.is_deleted or bool(pod.deletion_timestamp)
        self.ends = False
        self.makes_sandbox = False
        self.starting: set[str] = set()
        self.stops: dict[str, Stop] = {}
        self.why: dict[str, Why] = {}

    def start(self, name: str, why: Why) -> None:
        self.starting.add(name)
        self.why[name] = why

    def stop(self, name: str, latest: Latest, why: Why, reason: StopReason, message: str) -> None:
        self.why[name] = why
        self.stops[name] = Stop(container_id=latest.id, name=name, reason=reason, message=message)

    def stop_unknown(self, name: str, latest: Latest, kind: str) -> bool:
        """Stop an instance whose state nobody knows; whether another one starts by the same plan."""
        message = f'{kind} is in "unknown" state, try killing it before restart'
        self.stop(name, latest, Why.STATE_UNKNOWN, StopReason.UNKNOWN, message)
        if self.rules.one_instance:
            return False
        self.starting.add(name)
        return True

    def reason_of(self, containers: Iterable[Container], why: Why) -> None:
        """Give a reason to those of whom nothing else is said."""
        for one in containers:
            self.why.setdefault(one.name, why)

    def is_owed(self, latest: Latest) -> bool:
        """Whether it was stopped to start again, so that how it ended says nothing of that."""
        return (latest.id or latest.kept_id) in self.seen.owed

    def is_changed(self, latest: Latest) -> bool:
        """Whether a container that runs was made from something else than what is wanted."""
        report = latest.report
        return report is not None and self._definitions.differs(
            report.record, self.seen.resized, compares_all=self.rules.follows_edits
        )

    def plan(self, need: SandboxNeed) -> PodPlan:
        pod = self.pod
        if self.ends and not self.makes_sandbox and self.rules.spares_doomed:
            self.starting.clear()
        older = self._older() if self.older else ()
        copies = {one.record.name for one in older} if older else _NOBODY
        steps = [self._step(one, _PART_EPHEMERAL, copies) for one in pod.ephemeral_containers]
        for one in pod.init_containers:
            part = _PART_SIDECAR if one.restartable else _PART_INIT
            steps.append(self._step(one, part, copies))
        steps += [self._step(one, _PART_MAIN, copies) for one in pod.containers]
        steps += [self._unwanted(one) for one in older]
        return PodPlan(
            uid=pod.uid,
            ends=self.ends,
            makes_sandbox=self.makes_sandbox,
            sandbox_id=need.sandbox_id,
            attempt=need.attempt,
            steps=tuple(steps),
            sandbox_why=need.why,
        )

    def _older(self) -> Sequence[ContainerReport]:
        """Instances that run and are wanted no more."""
        rules, names = self.rules, self._definitions.kubelet
        return [
            one
            for one in self.older
            if (rules.one_instance if one.record.name in names else rules.follows_edits)
        ]

    def _step(self, one: Container, part: ContainerPart, copies: Collection[str]) -> ContainerStep:
        name = one.name
        latest = self.newest.get(name)
        why = self.why.get(name, Why.POD_ENDS)
        start = name in self.starting
        held = None
        if start:
            held = self.seen.held.get(name)
            if name in copies:
                why = Why.OLD_COPY_RUNS
            start = held is None and name not in copies
        return ContainerStep(
            name=name,
            part=part,
            why=why,
            start=start,
            stop=self.stops.get(name),
            exit=latest.exit if latest else None,
            held=held,
            resize=why is Why.RUNS and self._is_resized(latest),
        )

    def _is_resized(self, latest: Latest | None) -> bool:
        if latest is None or latest.report is None or not self.rules.follows_edits:
            return False
        return self._definitions.resizes(latest.report.record, self.seen.resized)

    def _unwanted(self, report: ContainerReport) -> ContainerStep:
        record = report.record
        why = Why.OLD_COPY if record.name in self._definitions.kubelet else Why.NOT_NAMED
        stop = Stop(
            container_id=record.id,
            name=record.name,
            reason=StopReason.NONE,
            message=f"Container {record.name}: {why.value}",
        )
        return ContainerStep(name=record.name, part=_PART_UNWANTED, why=why, stop=stop)
