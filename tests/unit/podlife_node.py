"""A node on which pods live: a runtime in memory, time that stands still, calls in an order of ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import ParamSpec, Protocol, TypeVar, cast

import attrs

from nodealloc.checkpoint import JsonCheckpoint, rows_of
from nodealloc.dsw_asw import Cancel, Group, Moment, Step, World
from nodealloc.podfacts import Exited, LifeState
from nodealloc.podlife import (
    POD_ROWS,
    Configures,
    LifePolicy,
    PodLives,
    PodRecord,
    Preparation,
    Rules,
    record_from_checkpoint,
)
from nodealloc.podlife._ports import LifeTold, LifeVerdicts
from nodealloc.podspec import Container, Pod, RestartPolicy
from nodealloc.runtime import RUNTIME_ROWS, ContainerReport, RunState, RuntimeWatch, pod_from_checkpoint
from nodealloc.testing.dsw_asw import ManualExecutor, MemoryJournal, VirtualClock
from nodealloc.testing.podlife import FakeHooks, PlainConfiguration
from nodealloc.testing.runtime import FakeContainerRuntime

P = ParamSpec("P")
T = TypeVar("T")

QUIET = ("listing", "inspect", "health", "images")


@attrs.frozen
class Verdicts:
    """What probes say of a pod."""

    alive: dict[str, bool] = attrs.field(factory=dict[str, bool])
    started: dict[str, bool] = attrs.field(factory=dict[str, bool])


def pod(
    uid: str = "u",
    *,
    containers: Sequence[Container] = (Container(name="app", image="busybox"),),
    policy: RestartPolicy = RestartPolicy.ALWAYS,
    grace_s: int = 30,
    **more: object,
) -> Pod:
    """A small pod; its name is its uid's, unless another is given."""
    fields: dict[str, object] = {"name": f"web-{uid}", **more}
    return Pod(
        uid=uid,
        containers=tuple(containers),
        restart_policy=policy,
        termination_grace_period_seconds=grace_s,
        **fields,  # type: ignore[arg-type]
    )


class _Operation(Protocol):
    began_s: float | None
    cancel: Cancel


class HoldingExecutor(ManualExecutor):
    """Calls of some verbs hang until they are let go.

    Attributes:
        held: Which verbs.
        parked: Calls that hang.
        hanging: Their operations.
        forgotten: Verbs whose calls nobody ever takes up.
    """

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self.clock = clock
        self.held: set[str] = set()
        self.parked: list[Callable[[], None]] = []
        self.hanging: list[_Operation] = []
        self.forgotten: set[str] = set()

    def submit(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Queue it, or let it hang once it has begun."""
        step: object = getattr(args[0], "step", None) if args else None
        if isinstance(step, Step) and not self.held.isdisjoint({step.verb, step.verb.partition(" for ")[0]}):
            future = Future[T]()
            future.set_running_or_notify_cancel()
            # It has begun for the engine: nobody can take it back.
            operation = cast("_Operation", args[0])
            operation.began_s = self.clock.monotonic_s()

            def go_on() -> None:
                operation.began_s = None
                future.set_result(call(*args, **kwargs))

            self.parked.append(go_on)
            self.hanging.append(operation)
            return future
        if isinstance(step, Step) and step.verb in self.forgotten:
            return Future[T]()
        return super().submit(call, *args, **kwargs)


class NotingRuntime(FakeContainerRuntime):
    """Notes when containers are asked to end, and with how much time."""

    def __init__(self, node: Node) -> None:
        super().__init__(unix_s=node.unix_s)
        self._node = node

    def stop_container(self, container_id: str, grace_s: float, /) -> None:
        """Note it, and end it."""
        self._node.stops.append((self._node.clock.monotonic_s(), grace_s))
        super().stop_container(container_id, grace_s)


class Node:
    """Everything that outlives an agent, and the agent that runs now.

    Attributes:
        others_told: What others were told of pods; None where nobody is waited for.
    """

    others_told: World[str, LifeTold] | None = None

    def __init__(
        self,
        *,
        preparations: Sequence[Preparation] = (),
        policy: LifePolicy | None = None,
        rules: Rules | None = None,
        configuring: Configures | None = None,
    ) -> None:
        self.configuring: Configures = configuring or PlainConfiguration()
        self.clock = VirtualClock(1000.0)
        self.boot_id = "boot-1"
        self.booted_s = 0.0
        self.stops: list[tuple[float, float]] = []
        self.runtime = NotingRuntime(self)
        self.journal: MemoryJournal[JsonCheckpoint] = MemoryJournal()
        self.preparations = preparations
        self.policy = policy or LifePolicy(pulls_at_once=None)
        self.rules = rules or Rules()
        self.configuring = configuring or PlainConfiguration()
        self.hooks = FakeHooks()
        self.verdicts: World[str, LifeVerdicts] = World("verdicts")
        self.start_agent()

    def unix_s(self) -> float:
        """The wall clock."""
        return 1_000_000.0 + self.clock.monotonic_s()

    def now(self) -> Moment:
        """This moment."""
        return Moment(boot_id=self.boot_id, monotonic_s=self.clock.monotonic_s(), unix_s=self.unix_s())

    def start_agent(self) -> None:
        """A new process, with what the journal remembers."""
        self.executor = HoldingExecutor(self.clock)
        rows = self.journal.rows
        lives = rows_of(POD_ROWS, rows, lambda row: record_from_checkpoint(row, self.now()))
        known = rows_of(RUNTIME_ROWS, rows, pod_from_checkpoint)
        self.watch = RuntimeWatch(
            self.runtime, journal=self.journal, known=known, executor=self.executor, clock=self.clock
        )
        self.lives = PodLives(
            self.runtime,
            watch=self.watch,
            configuring=self.configuring,
            hooks=self.hooks,
            preparations=self.preparations,
            probes=self.verdicts,
            told=self.others_told,
            journal=self.journal,
            remembered=lives,
            policy=self.policy,
            rules=self.rules,
            executor=self.executor,
            clock=self.clock,
            now=self.now,
        )
        self.group = Group(self.watch, self.lives)

    def kill_agent(self) -> None:
        """What it had not done is never done; what runs goes on."""
        self.start_agent()

    def after(self, seconds: float = 0.0, *, step_s: float = 0.25) -> None:
        """Let time pass, in small steps."""
        self.settle()
        end_s = self.clock.monotonic_s() + seconds
        while self.clock.monotonic_s() < end_s - 1e-9:
            self.clock.advance(min(step_s, end_s - self.clock.monotonic_s()))
            self.settle()

    def settle(self) -> None:
        """Do all that can be done at this moment."""
        self.group.run_until_quiet()
        while self.executor.run_all():
            self.group.run_until_quiet()

    def calls(self) -> list[str]:
        """What was asked of the runtime that changes something."""
        return [one for one in self.runtime.calls if not one.startswith(QUIET)]

    def record(self, uid: str = "u") -> PodRecord:
        """What is remembered of a pod."""
        record = self.lives.pods.get(uid)
        assert record is not None, f"nothing is remembered of {uid}"
        return record

    def life(self, uid: str = "u") -> LifeState:
        """How far a pod has come."""
        return self.record(uid).life

    def containers(self, uid: str = "u") -> list[ContainerReport]:
        """Every container that the runtime has of a pod, the oldest first."""
        return list(reversed(self.runtime.inspect(uid).containers))

    def running(self, uid: str = "u") -> list[str]:
        """`name#attempt` of what runs."""
        return [
            f"{one.record.name}#{one.record.attempt}"
            for one in self.containers(uid)
            if one.record.state is RunState.RUNNING
        ]

    def id_of(self, name: str, uid: str = "u") -> str:
        """The newest instance of a container."""
        found = self.runtime.inspect(uid).newest(name)
        assert found is not None, f"{uid} has no {name}"
        return found.record.id

    def exit(self, name: str, code: int = 0, uid: str = "u") -> None:
        """A container ends by itself."""
        self.runtime.exit(self.id_of(name, uid), Exited(code=code))
