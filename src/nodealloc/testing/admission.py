"""Checks for whoever judges pods, and for allocators that let what runs grow and shrink.

>>> from nodealloc.admission import node_name
>>> asked = check_admission_handler(node_name)
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from functools import partial

from nodealloc.admission import Handler, Resizes
from nodealloc.podfacts import LifeState, NodeView, PodOnNode, Pressure, Taint, TaintEffect
from nodealloc.podspec import Container, ContainerPort, Pod, resources
from nodealloc.testing._allocator_calls import pickled
from nodealloc.topology import (
    Accounts,
    Allocator,
    Claim,
    Holding,
    Shortfall,
    TopologyHint,
    Workload,
    peak,
)
from nodealloc.verdicts import Admitted, NotYet, Refused, Verdict

__all__ = [
    "check_admission_handler",
    "check_resized_workload",
    "check_resizes",
    "judged_pods",
    "judged_views",
]


def check_admission_handler(
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
        assert pickled(answer, f"{pod.full_name} on {view.name}") == answer, f"{answer!r} does not travel"
    return [(pod, view, answer) for (pod, view), answer in zip(questions, answers, strict=True)]


def check_resizes(allocator: Resizes, claim: Claim, more: Claim, too_much: Claim) -> None:
    """Hold an allocator to what it promises of resizing in place.

    Growing keeps what is held and adds the rest, shrinking back frees it again;
    what cannot be had is a shortfall and changes nothing; the allocator that is
    asked stays as it was.

    Args:
        allocator: An `Accounts` in which the claim's owner holds what it asks for.
        claim: What the owner asks for now.
        more: The same owner asking for more than that, which is free.
        too_much: The same owner asking for more than there is.
    """
    held = _held(allocator, claim)
    assert held, f"{claim.owner} holds nothing to begin with; admit the claim first"
    assert _held(_resized(allocator, claim), claim) == held, "asking for what is held changed what is held"
    grown = _resized(allocator, more)
    assert _held(allocator, claim) == held, "resizing changed the allocator that was asked"
    assert _others(grown, claim) == _others(allocator, claim), (
        f"{claim.owner} grew, and what others hold changed"
    )
    bigger = _held(grown, claim)
    for resource, (amount, ids) in held.items():
        now, now_ids = bigger.get(resource, (0, frozenset()))
        assert ids <= now_ids, (
            f"{resource}: growing took {sorted(map(str, ids - now_ids))} away from {claim.owner}"
        )
        assert now >= amount, f"{resource}: {claim.owner} grew from {amount} to {now}"
    assert bigger != held, f"{claim.owner} asked for more, and holds what it held"
    back = _held(_resized(grown, claim), claim)
    assert {one: back[one][0] for one in back} == {one: held[one][0] for one in held}, (
        f"{claim.owner} asked for what it had first, and holds {back} where it held {held}"
    )
    answer = allocator.resize(too_much)
    assert isinstance(answer, Shortfall), f"{claim.owner} was given more than there is: {answer!r}"


def check_resized_workload(allocator: Allocator, before: Workload, after: Workload) -> None:
    """Hold an allocator to what it promises of members that lend each other what they hold.

    However their amounts change, a workload goes on to hold what it needs at its
    peak: an init container may run once more, beside what was granted to others
    in the meantime.

    Args:
        allocator: An `Accounts` that `Resizes`, in which the workload holds nothing and has room.
        before: What is granted; give it init members that lend to later ones.
        after: The same members asking for other amounts, which are free.
    """
    there = allocator
    for claim in before.claims:
        answer = there.allocate(claim, TopologyHint(None, preferred=True))
        assert not isinstance(answer, Shortfall | NotYet), (
            f"{claim.owner} was not granted what it asks for first: {answer}"
        )
        there = answer
    assert isinstance(there, Resizes), f"{there!r} cannot be resized"
    had = {claim.owner: claim.amounts for claim in before.claims}
    changed: Resizes = there
    for claim in after.claims:
        if claim.amounts != had[claim.owner]:
            changed = _resized(changed, claim, after)
    for resource in sorted({name for claim in after.claims for name in claim.amounts}):
        if _held_together(there, after.key, resource):
            needed = peak(after.claims, partial(_whole, resource))
            holds = _held_together(changed, after.key, resource)
            assert holds >= needed, (
                f"{resource}: {after.key} needs {needed} at its peak and holds {holds} after it was resized; "
                "keep what members lent for those that need it again"
            )


def _whole(resource: str, claim: Claim) -> int:
    return -(-claim.amounts[resource].nanos // 10**9) if resource in claim.amounts else 0


def _held_together(allocator: Resizes, workload: str, resource: str) -> int:
    """How much a workload holds, each CPU and each id once."""
    assert isinstance(allocator, Accounts), "give the allocator `holdings`, so that the check can count"
    held = [one for one in allocator.holdings() if one.owner.workload == workload]
    mine = [one for one in held if one.resource == resource]
    named = {name for one in mine for name in (*one.ids, *one.cpus)}
    return len(named) if named else sum(one.amount for one in mine)


def _resized(allocator: Resizes, claim: Claim, workload: Workload | None = None) -> Resizes:
    answer = allocator.resize(claim, workload)
    assert not isinstance(answer, Shortfall), f"{claim.owner} could be resized, and was not: {answer}"
    assert isinstance(answer, Resizes), f"{answer!r} cannot be resized again"
    return answer


def _others(allocator: Resizes, claim: Claim) -> list[Holding]:
    """What everybody else holds."""
    held = allocator.holdings() if isinstance(allocator, Accounts) else ()
    return sorted(
        (one for one in held if one.owner != claim.owner), key=lambda one: (one.owner, one.resource)
    )


def _held(allocator: Resizes, claim: Claim) -> dict[str, tuple[int, frozenset[object]]]:
    """By resource how much the claim's owner holds, and which ids."""
    assert isinstance(allocator, Accounts), "give the allocator `holdings`, so that the check can count"
    found: dict[str, tuple[int, frozenset[object]]] = {}
    for one in allocator.holdings():
        if one.owner == claim.owner:
            amount, ids = found.get(one.resource, (0, frozenset[object]()))
            mine = frozenset[object]((*one.ids, *(one.cpus or ())))
            found[one.resource] = (amount + one.amount, ids | mine)
    return found


def _asked(handler: Handler, pod: Pod, view: NodeView) -> Verdict:
    before = copy.deepcopy((pod, view))
    try:
        answer: object = handler(pod, view)
    except Exception as error:
        raise AssertionError(
            f"{pod.full_name} on {view.name}: raised {error!r}; a handler answers whatever it is asked"
        ) from error
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
