"""What is told of pods that live on a node by a kubelet's rules, where that is more than one decision."""

from __future__ import annotations

import pytest

from nodealloc.podfacts import (
    ContainerRunning,
    ContainerTerminated,
    ContainerWaiting,
    Exited,
    PodPhase,
)
from nodealloc.podspec import Container, RestartPolicy
from tests.unit.podlife_node import pod
from tests.unit.podstatus.test_with_lives import TellingNode

STATIC = {"kubernetes.io/config.source": "file"}


@pytest.mark.parametrize("annotations", [{}, STATIC])
def test_a_pod_that_is_too_old_is_told_with_the_delay_that_was_decided_before(
    annotations: dict[str, str],
) -> None:
    """A kubelet looks at it once more, as its time is over; what waits then is lost in the end."""
    node = TellingNode(is_kubelet=True)
    node.heard("u")
    node.lives.put(
        pod(
            containers=(Container(name="app", image="busybox"), Container(name="other", image="busybox")),
            active_deadline_seconds=9,
            policy=RestartPolicy.ON_FAILURE,
            annotations=annotations,
        )
    )
    for _ in range(2):
        node.after(2)
        node.exit("app", 1)
    node.after(2)
    assert isinstance(node.told()[-1].containers[0].state, ContainerTerminated)
    node.executor.held.add("stop")
    node.after(5)
    app, other = node.told()[-1].containers
    assert isinstance(other.state, ContainerRunning)
    assert isinstance(app.state, ContainerWaiting)
    assert app.state.reason == "CrashLoopBackOff"
    node.executor.parked[0]()
    node.after(5)
    last = node.told()[-1]
    assert (last.phase, last.reason) == (PodPhase.FAILED, "DeadlineExceeded")
    lost = last.containers[0]
    assert isinstance(lost.state, ContainerTerminated)
    assert lost.state.reason == "ContainerStatusUnknown"
    assert isinstance(lost.last_state, ContainerTerminated)
    assert lost.last_state.exit == Exited(code=1)
