"""A judge and a reader of exits, for type checkers: every case is told apart by its type."""

from __future__ import annotations

from typing import assert_never, assert_type

from nodealloc.podfacts import (
    ContainerRunning,
    ContainerState,
    ContainerTerminated,
    ContainerWaiting,
    Exited,
    ExitUnknown,
    NodeView,
    PodOnNode,
    PodPhase,
    PodStatus,
)
from nodealloc.podspec import Pod
from nodealloc.verdicts import Admitted, NotYet, Verdict


def succeeded(state: ContainerState) -> bool | None:
    """None where nobody can say: there is no exit code to mistake for one."""
    match state:
        case ContainerTerminated(exit=Exited(code=code)):
            assert_type(code, int)
            return code == 0
        case ContainerTerminated(exit=ExitUnknown()) | ContainerWaiting() | ContainerRunning():
            return None
        case ContainerTerminated():
            return None
        case _:
            assert_never(state)


def judge(pod: Pod, view: NodeView) -> Verdict:
    """No class of the library is needed to be one."""
    if view.shutting_down:
        return NotYet(blocker="shutdown", message=f"{pod.full_name} waits")
    return Admitted()


assert_type(judge(Pod(uid="u"), NodeView(name="n").with_pod(PodOnNode.of(Pod(uid="v")))), Verdict)
assert_type(PodStatus().phase, PodPhase | None)
assert succeeded(ContainerTerminated(exit=ExitUnknown())) is None
