"""Plans of recorded pods: beside what was asked of them, and beside the kubelet's own."""

from __future__ import annotations

import gc
import time
import tracemalloc
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, cast

from bench.figure import Figure, best_ns, kubelet_ns, ratios, rows
from nodealloc.checkpoint import MemoryStore, row_formats
from nodealloc.dsw_asw import Group, InlineExecutor
from nodealloc.podfacts import Exited
from nodealloc.podlife import KUBELET, POD_ROWS, LifePolicy, PodLives, Rules, plan_pod
from nodealloc.podlife._definitions import Definitions
from nodealloc.podspec import Container, Pod
from nodealloc.runtime import RUNTIME_ROWS, RuntimeWatch
from nodealloc.testing.conformance._podplan import recorded_pod, recorded_seen
from nodealloc.testing.dsw_asw import RecordingObserver, VirtualClock
from nodealloc.testing.podlife import PlainConfiguration
from nodealloc.testing.runtime import FakeContainerRuntime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from nodealloc.testing.conformance import Row

__all__ = ["figures"]


def _plans_ns(count: int, rules: Rules) -> list[float]:
    """Nanoseconds of each plan; pods, reports and definitions are there beforehand."""
    found: list[float] = []
    for row in cast("list[Row]", rows("pod_actions")[:count]):
        pod = recorded_pod(cast("Row", row["pod"]))
        seen = recorded_seen(row, pod)
        call = partial(plan_pod, pod, seen, definitions=Definitions.of(pod), rules=rules)
        found.append(best_ns(call, seconds=0.005))
    return found


class _Node:
    """Pods on a runtime in memory, driven by hand; time stands still between listings."""

    def __init__(self) -> None:
        self.clock = VirtualClock(1000.0)
        self.runtime = FakeContainerRuntime(unix_s=self.clock.monotonic_s)
        self.store = MemoryStore(row_formats(POD_ROWS, RUNTIME_ROWS))
        self.observer = RecordingObserver()
        executor = InlineExecutor()
        self.watch = RuntimeWatch(self.runtime, journal=self.store, executor=executor, clock=self.clock)
        self.lives = PodLives(
            self.runtime,
            watch=self.watch,
            configuring=PlainConfiguration(),
            journal=self.store,
            policy=LifePolicy(pulls_at_once=None),
            executor=executor,
            clock=self.clock,
            observer=self.observer,
        )
        self.group = Group(self.watch, self.lives)

    def start(self, count: int) -> None:
        """So many pods are put, and run."""
        for number in range(count):
            app = Container(name="app", image="busybox")
            self.lives.put(Pod(uid=f"uid-{number}", name=f"pod-{number}", containers=(app,)))
        self.settle()
        started = sum(one.startswith("start_container") for one in self.runtime.calls)
        assert started == count, f"{started} of {count} pods were started"

    def settle(self) -> None:
        """Everything that can be done now, and all listings that it asks for."""
        self.group.run_until_quiet(passes=100_000)
        for _ in range(3):
            self.clock.advance(0.2)
            self.group.run_until_quiet(passes=100_000)


def _cpu_s(work: Callable[[], object]) -> float:
    began_s = time.process_time()
    work()
    return time.process_time() - began_s


def _decision_ms(node: _Node) -> float:
    """Milliseconds from the moment that an end is known to the call that starts the container again."""
    found: list[float] = []
    for number in range(5):
        uid = f"uid-{number}"
        report = node.runtime.inspect(uid).newest("app")
        assert report is not None
        node.runtime.exit(report.record.id, Exited(code=1))
        node.clock.advance(0.2)
        node.watch.hurry()
        node.watch.run_until_quiet()
        before = len(node.runtime.calls)

        def again(since: int = before) -> None:
            while not any(one.startswith("create_container") for one in node.runtime.calls[since:]):
                node.lives.reconcile()

        found.append(_cpu_s(again) * 1e3)
        node.settle()
    return median(found)


def _idle_plans(node: _Node) -> int:
    """Pods that were planned while a minute of listings showed nothing new."""
    node.settle()
    before = len(node.observer.summaries)
    for _ in range(60):
        node.clock.advance(1.0)
        node.group.run_until_quiet(passes=1000)
    return sum(one.planned for one in node.observer.summaries[before:])


def _restart(node: _Node, times: int) -> None:
    """One container ends and starts again; what the doubles note of it is forgotten."""
    for _ in range(times):
        report = node.runtime.inspect("uid-0").newest("app")
        assert report is not None
        assert report.exit is None, "it did not start again"
        node.runtime.exit(report.record.id, Exited(code=1))
        for wait_s in (1.0, 400.0, 1.0):  # it is seen, its back-off is over, what was made is seen
            node.clock.advance(wait_s)
            node.settle()
    node.runtime.calls.clear()
    for noted in (node.observer.starts, node.observer.ends, node.observer.summaries):
        noted.clear()
    gc.collect()


def _restart_bytes() -> float:
    """Bytes that are held after each restart and were not before it."""
    node = _Node()
    node.start(1)
    _restart(node, 50)
    tracemalloc.start()
    _restart(node, 10)
    before = tracemalloc.get_traced_memory()[0]
    _restart(node, 200)
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return held / 200


def _lives() -> Iterator[Figure]:
    """A node of a thousand pods."""
    growth: list[tuple[float, float]] = []
    for count in (100, 300, 1000):
        gc.collect()
        small = _Node()
        growth.append((count, _cpu_s(partial(small.start, count)) / count * 1e3))
    yield Figure(
        package="podlife",
        name="1,000 pods put and started, memory store, one core",
        value=growth[-1][1],
        unit="s",
        at_most=3,
        cpu=True,
        growth=growth,
        growth_of="pods",
        growth_unit="ms a pod",
    )
    gc.collect()
    tracemalloc.start()
    node = _Node()
    before = tracemalloc.get_traced_memory()[0]
    node.start(1000)
    node.runtime.calls.clear()
    node.observer.starts.clear()
    node.observer.ends.clear()
    gc.collect()
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    yield Figure(
        package="podlife",
        name="memory of a pod that runs, with runtime and store",
        value=held / 1000 / 1024,
        unit="KiB",
        at_most=40,
    )
    yield Figure(
        package="podlife",
        name="pods planned in an idle minute of 1,000 pods",
        value=_idle_plans(node),
        unit="plans",
        at_most=0,
    )
    yield Figure(
        package="podlife",
        name="memory that stays of a restart, over 200 of one container",
        value=_restart_bytes(),
        unit="B",
        at_most=64,
    )
    yield Figure(
        package="podlife",
        name="an exit that is known to the call that starts it again, 1,000 pods",
        value=_decision_ms(node),
        unit="ms",
        at_most=5,
        cpu=True,
    )


def figures() -> Iterator[Figure]:
    """Plans, then lives."""
    yield from _plans()
    yield from _lives()


def _plans() -> Iterator[Figure]:
    """A plan of the median recorded pod, by both rules."""
    theirs = kubelet_ns("pod_actions", "kubelet_ns3")
    recorded = _plans_ns(len(theirs), KUBELET)
    yield Figure(
        package="podlife",
        name="a plan, median recorded pod, as recorded",
        value=median(recorded) / 1e3,
        unit="µs",
        at_most=25,
        cpu=True,
    )
    yield Figure(
        package="podlife",
        name="a plan, median recorded pod, by the right rules",
        value=median(_plans_ns(len(theirs), Rules())) / 1e3,
        unit="µs",
        at_most=25,
        cpu=True,
    )
    yield Figure(
        package="podlife",
        name="a plan, recorded pods, median ratio",
        value=median(ratios(recorded, theirs)),
        unit="× kubelet",
    )
