"""Who makes room for a critical pod: a plan, with a total order and nobody in it who could be spared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nodealloc._typed import typed
from nodealloc.admission._fit import PODS, Shortage, amount_of, shortages, without
from nodealloc.admission._importance import eviction_order, rank
from nodealloc.admission._rules import Rules
from nodealloc.podfacts import NodeView, PodOnNode
from nodealloc.podspec import Pod, QosClass, Quantity, is_critical, qos_class
from nodealloc.verdicts import Refused

__all__ = ["victims"]

_Requirements = list[tuple[str, int]]


@typed
def victims(pod: Pod, view: NodeView, /, *, rules: Rules) -> tuple[PodOnNode, ...] | Refused:
    """Pods that have to end for a critical one to fit, in order; a refusal where no pods will do.

    Never one of its own rank or above. With `Rules()`, taking any one out of the
    plan leaves too little, and who is less important goes before who is more so.

    Args:
        pod: The critical one.
        view: The node, with what it gives out and everybody who is in.
        rules: `victims_by_rank`: ours, or as a kubelet chooses.

    Returns:
        Pods in the order in which they are to be ended; none where it fits once those have
        ended that are ending already.

    Source: kubelet ``preemption/preemption.go`` with `KUBELET`; else ours.
    """
    if not rules.victims_by_rank:
        return _as_recorded(pod, view, rules)
    less = [one for one in view.pods.values() if not one.state.is_ending and rank(one.pod) < rank(pod)]
    going = {one.pod.uid for one in view.pods.values() if one.state.is_ending}
    chosen = {one.pod.uid: one for one in sorted(less, key=eviction_order)}
    short = shortages(pod, without(view, [*going, *chosen]), rules)
    if short:
        return _refusal(short, rules)
    for one in sorted(less, key=eviction_order, reverse=True):
        spared = [uid for uid in chosen if uid != one.pod.uid]
        if not shortages(pod, without(view, [*going, *spared]), rules):
            del chosen[one.pod.uid]
    return tuple(chosen.values())


def _refusal(short: Sequence[Shortage], rules: Rules) -> Refused:
    if rules.names_what_is_short:
        return short[0].refusal()
    return _unexpected([(one.resource, _counted(one.resource, one.missing_nanos)) for one in short])


def _unexpected(requirements: _Requirements) -> Refused:
    told = "".join(f"(res: {name}, q: {amount}), " for name, amount in requirements)
    return Refused(
        reason="UnexpectedAdmissionError",
        message="Unexpected error while attempting to recover from admission failure: preemption: error "
        f"finding a set of pods to preempt: no set of running pods found to reclaim resources: [{told}]",
        figures=dict(requirements),
    )


def _counted(name: str, nanos: int) -> int:
    """As the kubelet counts: whole units, CPU in thousandths, rounded up."""
    amount = Quantity(nanos=nanos)
    return amount.milli_value if name == "cpu" else amount.value


def _as_recorded(pod: Pod, view: NodeView, rules: Rules) -> tuple[PodOnNode, ...] | Refused:
    short = shortages(pod, view, rules)
    asked = [(one.resource, one.requested - (one.capacity - one.used)) for one in short]
    groups: dict[QosClass, list[PodOnNode]] = {one: [] for one in QosClass}
    for one in view.pods.values():
        if _preemptable(pod, one.pod):
            groups[qos_class(one.pod)].append(one)
    guaranteed, burstable, best_effort = (
        groups[QosClass.GUARANTEED],
        groups[QosClass.BURSTABLE],
        groups[QosClass.BEST_EFFORT],
    )
    unmet = _less(asked, [*best_effort, *burstable, *guaranteed])
    if unmet:
        return short[0].refusal() if rules.names_what_is_short else _unexpected(unmet)
    first = _by_distance(guaranteed, _less(asked, [*burstable, *best_effort]))
    second = _by_distance(burstable, _less(asked, [*best_effort, *first]))
    third = _by_distance(best_effort, _less(asked, [*second, *first]))
    return (*third, *second, *first)


def _preemptable(pod: Pod, other: Pod) -> bool:
    if is_critical(pod) and not is_critical(other):
        return True
    return pod.priority is not None and other.priority is not None and pod.priority > other.priority


def _by_distance(pods: Sequence[PodOnNode], asked: _Requirements) -> list[PodOnNode]:
    left, found = list(pods), list[PodOnNode]()
    while asked and left:
        best, nearest = 0, float(len(asked) + 1)
        for place, one in enumerate(left):
            distance = _distance(one, asked)
            if distance < nearest or (distance == nearest and _is_smaller(one, left[best])):
                best, nearest = place, distance
        asked = _less(asked, [left[best]])
        found.append(left[best])
        # As recorded: the last one takes the place of the one that goes.
        left[best] = left[-1]
        left.pop()
    return found


def _distance(one: PodOnNode, asked: _Requirements) -> float:
    distance = 0.0
    for name, amount in asked:
        rest = float(amount - _request(one.pod, name))
        if rest > 0:
            distance += (rest / float(amount)) ** 2
    return distance


def _is_smaller(one: PodOnNode, other: PodOnNode) -> bool:
    for name in ("memory", "cpu"):
        mine, its = _request(one.pod, name), _request(other.pod, name)
        if mine != its:
            return mine < its
    return True


def _less(asked: _Requirements, pods: Iterable[PodOnNode]) -> _Requirements:
    gone = list(pods)
    rest = [(name, amount - sum(_request(one.pod, name) for one in gone)) for name, amount in asked]
    return [(name, amount) for name, amount in rest if amount > 0]


def _request(pod: Pod, name: str) -> int:
    """As the kubelet counts a victim: init containers by their largest, sidecars as if they ended."""
    if name == PODS:
        return 1
    total = sum(amount_of(one.requests, name) for one in pod.containers)
    total = max([total, *(amount_of(one.requests, name) for one in pod.init_containers)])
    if total:
        total += amount_of(pod.overhead, name)
    return _counted(name, total)
