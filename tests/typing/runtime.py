"""A reader of exits and a runtime of one's own, for type checkers."""

from __future__ import annotations

from typing import assert_never, assert_type

from nodealloc.podfacts import Exited, ExitUnknown, PodIdentity
from nodealloc.runtime import ContainerReport, Heard, Looks, PodReport, SandboxConfig, may_start
from nodealloc.testing.runtime import ContainerRuntime, FakeContainerRuntime
from nodealloc.verdicts import NotYet


def succeeded(report: ContainerReport) -> bool | None:
    """None where it has not ended, or nobody can say how."""
    match report.exit:
        case Exited(code=code):
            assert_type(code, int)
            return code == 0
        case ExitUnknown() | None:
            return None
        case _ as never:
            assert_never(never)


def pods(looks: Looks) -> list[PodReport]:
    """Whoever can be looked at."""
    return [looks.inspect(uid) for uid in looks.listing().pods]


runtime: ContainerRuntime = FakeContainerRuntime()
sandbox = runtime.run_sandbox(SandboxConfig(pod=PodIdentity(uid="u", namespace="default", name="web")))
assert_type(sandbox, str)
assert [one.uid for one in pods(runtime)] == ["u"]
assert_type(may_start(Heard(), now_s=0.0), NotYet | None)
assert not any(succeeded(one) for report in pods(runtime) for one in report.containers)
