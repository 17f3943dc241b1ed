"""A check for whoever judges pods: handlers of your own.

>>> from nodealloc.admission import node_name
>>> check_handler(node_name)
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterable

from nodealloc.admission import Handler
from nodealloc.podfacts import LifeState, NodeView, PodOnNode, Pressure, Taint, TaintEffect
from nodealloc.podspec import Container, ContainerPort, Pod, resources
from nodealloc.verdicts import Admitted, NotYet, Refused, Verdict

__all__ = ["check_handler", "judged_pods", "judged_views"]


def check_handler(
    handler: Handler, pods: Iterable[Pod] = (), views: Iterable[NodeView] = ()
) -> list[tuple[Pod, NodeView, Verdict]]:
    """Hold a handler to its promises, on pods and nodes of the kit and on yours.

    It answers with a verdict whatever it is asked; it is a pure function (asking
    again, in another order, or of equal copies gives the same answer, and it
    changes neither pod nor node); refusing says why in one word and in a
    sentence; what it answers travels to other processes.

    Args:
        handler: To check.
        pods: More pods; give some on both sides of what the handler looks at.
        views: More nodes, the same way.

    Returns:
        Every question with its answer, to look at what else it promises.
    """
    questions = [(pod, view) for view in (*judged_views(), *views) for pod in (*judged_pods(), *pods)]
    answers = [_asked(handler, pod, view) for pod, view in questions]
    for (pod, view), answer in reversed(list(zip(questions, answers, strict=True))):
        again = handler(copy.deepcopy(pod), copy.deepcopy(view))
        assert again == answer, (
            f"{pod.full_name} on {view.name}: asked again it says {again}, before {answer}; a handler is a "
            "function of the pod and the view alone"
        )
        assert pickle.loads(pickle.dumps(answer)) == answer, f"{answer!r} does not travel"  # noqa: S301 - our own
    return [(pod, view, answer) for (pod, view), answer in zip(questions, answers, strict=True)]


def _asked(handler: Handler, pod: Pod, view: NodeView) -> Verdict:
    before = copy.deepcopy((pod, view))
    answer: object = handler(pod, view)
    assert isinstance(answer, Admitted | Refused | NotYet), (
        f"{pod.full_name} on {view.name}: {answer!r} is no verdict; answer Admitted, Refused or NotYet"
    )
    assert _facts(*before) == _facts(pod, view), (
        f"{pod.full_name} on {view.name}: asking changed what was asked"
    )
    if isinstance(answer, Refused):
        assert not any(map(str.isspace, answer.reason)), (
            f"{answer.reason!r}: a reason is one word, for programs"
        )
        assert len(answer.message.split()) > 1, f"{answer.message!r}: a message is a sentence, for people"
    return answer


def _facts(pod: Pod, view: NodeView) -> tuple[object, ...]:
    return pod, view.name, view.labels, view.taints, view.allocatable, dict(view.pods), view.pressure


def judged_pods() -> tuple[Pod, ...]:
    """Pods that ask for nothing, little and much, for ports, and a critical one."""

    def pod(name: str, *, port: int = 0, priority: int | None = None, **requests: str) -> Pod:
        ports = (ContainerPort(container_port=80, host_port=port),) if port else ()
        box = Container(name="app", image="app", requests=resources(requests), ports=ports)
        return Pod(uid=f"uid-{name}", name=name, containers=(box,), priority=priority)

    return (
        pod("nothing"),
        pod("little", cpu="100m", memory="64Mi"),
        pod("much", cpu="1000", memory="10Ti"),
        pod("port", port=80),
        pod("critical", priority=2_000_000_000, cpu="2"),
    )


def judged_views() -> tuple[NodeView, ...]:
    """Nodes: nothing known but the name, empty, full, one whose pods are ending, one in trouble."""
    _, little, _, port, _ = judged_pods()
    empty = NodeView(
        name="empty",
        labels={"kubernetes.io/os": "linux"},
        allocatable=resources({"cpu": 2, "memory": "4Gi", "pods": 3}),
    )

    def holding(name: str, state: LifeState) -> NodeView:
        view = NodeView(name=name, labels=empty.labels, allocatable=empty.allocatable)
        for number, one in enumerate((little, port, little)):
            there = Pod(uid=f"there-{number}", name=f"there-{number}", containers=one.containers)
            view = view.with_pod(PodOnNode.of(there, state=state))
        return view

    return (
        NodeView(name="unknown"),
        empty,
        holding("full", LifeState.SYNCING),
        holding("ending", LifeState.TERMINATING),
        NodeView(
            name="trouble",
            allocatable=empty.allocatable,
            taints=(Taint(key="k", effect=TaintEffect.NO_EXECUTE),),
            pressure=frozenset({Pressure.MEMORY}),
            shutting_down=True,
        ),
    )
