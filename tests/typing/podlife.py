"""Plans, a restart policy and a source of variables of one's own, for type checkers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_type

from nodealloc.dsw_asw import Failure, World
from nodealloc.podlife import (
    ContainerHooks,
    EnvironmentSource,
    HookRunner,
    ImageFacts,
    NodeSettings,
    PodLives,
    PodPlan,
    PodSeen,
    RestartBackOff,
    Restarts,
    Stop,
    container_config,
    explain_plan,
    plan_pod,
)
from nodealloc.podspec import Container, Pod
from nodealloc.podstatus import Told
from nodealloc.probes import PodVerdicts
from nodealloc.runtime import CommandRunner, ContainerConfig, PodReport, RuntimeWatch
from nodealloc.testing.podlife import PlainConfiguration
from nodealloc.testing.runtime import FakeContainerRuntime


class Files:
    """A source that needs to inherit nothing."""

    def config_map(self, namespace: str, name: str, /) -> Mapping[str, str] | None:
        """One for all."""
        return {"where": f"{namespace}/{name}"}

    def secret(self, namespace: str, name: str, /) -> Mapping[str, bytes] | None:
        """None."""
        del namespace, name
        return None


web = Pod(uid="u", name="web", containers=(Container(name="app", image="busybox:1"),))
plan = plan_pod(web, PodSeen(report=PodReport(uid="u")))
assert_type(plan, PodPlan)
assert_type(plan.stops, tuple[Stop, ...])
assert_type(explain_plan(plan), tuple[str, ...])
answer = Restarts().asked("app", "v1", RestartBackOff(), ended_s=None, now_s=0.0)
assert_type(answer.held_until_s, float | None)
source: EnvironmentSource = Files()
made = container_config(
    web,
    web.containers[0],
    attempt=0,
    image=ImageFacts(id="sha256:1"),
    node=NodeSettings(name="n1", memory_capacity_bytes=1 << 30),
    source=source,
)
assert_type(made, ContainerConfig)
runtime = FakeContainerRuntime()
verdicts: World[str, PodVerdicts] = World("verdicts")
told: World[str, Told] = World("told")
lives = PodLives(
    runtime, watch=RuntimeWatch(runtime), configuring=PlainConfiguration(), probes=verdicts, told=told
)
alone = PodLives(runtime, watch=RuntimeWatch(runtime), configuring=PlainConfiguration())
assert_type(lives.failures("u"), tuple[Failure, ...])
commands: CommandRunner = FakeContainerRuntime()
hooks: HookRunner = ContainerHooks(commands)
assert plan.makes_sandbox
assert made.name == "app"
