"""What a node is worth to a pod: the verdict of the whole chain, as a number with a reason."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence

import attrs

from nodealloc.admission import chain_of
from nodealloc.idset import format_list
from nodealloc.podfacts import NodeView
from nodealloc.podspec import Pod
from nodealloc.topology import Placed, Reports, Snapshot, Workload, workload_of
from nodealloc.verdicts import NotYet, Refused

__all__ = ["Candidate", "Score", "Scores", "score", "score_all", "score_each"]

_ALIGNED = 100.0
_ONE_NODE_LESS = 10.0


@attrs.frozen
class Candidate:
    """A node of the fleet.

    Attributes:
        view: Its name, what it gives out, and who is there.
        snapshot: Who holds which CPUs and memory.
    """

    view: NodeView
    snapshot: Snapshot


@attrs.frozen(order=True)
class Score:
    """What a node is worth to a pod.

    Attributes:
        points: More is better.
        node: The node's name; decides between equals.
        reason: Why, in a line.
    """

    points: float
    node: str
    reason: str


@attrs.frozen
class Scores:
    """The outcome for a part of the fleet; small, however large the part is.

    Attributes:
        best: The best scores, best first.
        fitting: On how many nodes the pod fits.
        refused: The kubelet's reason to the number of nodes that refuse by it.
    """

    best: tuple[Score, ...]
    fitting: int
    refused: Counter[str]

    @classmethod
    def joined(cls, parts: Iterable[Scores], top: int) -> Scores:
        """The outcome for all parts together."""
        every = list(parts)
        refused: Counter[str] = Counter()
        for part in every:
            refused.update(part.refused)
        best = heapq.nlargest(top, (score for part in every for score in part.best))
        return cls(tuple(best), sum(part.fitting for part in every), refused)


def score_each(candidates: Sequence[Candidate], pods: Sequence[Pod], top: int) -> list[Scores]:
    """Score a part of the fleet for each of several pods; this is what travels to other processes."""
    return [score_all(candidates, pod, top) for pod in pods]


def score_all(candidates: Sequence[Candidate], pod: Pod, top: int) -> Scores:
    """Score a part of the fleet for one pod."""
    refused: Counter[str] = Counter()
    best: list[Score] = []
    fitting = 0
    for candidate in candidates:
        result = score(candidate, pod)
        if not isinstance(result, Score):
            refused[result] += 1
            continue
        fitting += 1
        if len(best) < top:
            heapq.heappush(best, result)
        elif best:
            heapq.heappushpop(best, result)
    return Scores(tuple(sorted(best, reverse=True)), fitting, refused)


def score(candidate: Candidate, pod: Pod) -> Score | str:
    """The score of one node, or why it refuses.

    Aligned members count most, then few NUMA nodes, then full nodes, so that
    whole nodes stay free for pods that need them.
    """
    verdict = chain_of(snapshot=candidate.snapshot)(pod, candidate.view)
    if isinstance(verdict, NotYet):
        return f"not yet: {verdict.message}"
    if isinstance(verdict, Refused):
        return verdict.reason
    if not isinstance(verdict, Placed):  # the chain ends with the snapshot's own answer
        raise TypeError(f"{candidate.view.name} answered {verdict}")
    hints = list(verdict.affinity.values())
    aligned = sum(hint.preferred for hint in hints) / max(1, len(hints))
    widths = [hint.affinity.bit_count() for hint in hints if hint.affinity is not None]
    free = _free_share(verdict.snapshot, workload_of(pod))
    points = _ALIGNED * aligned - _ONE_NODE_LESS * sum(widths) + 10 * (1 - free)
    return Score(round(points, 3), candidate.view.name, _reason(verdict, free))


def _free_share(after: Snapshot, asked: Workload) -> float:
    shares = [
        sum(report.free.values()) / max(1, sum(report.allocatable.values()))
        for allocator in after.allocators
        if isinstance(allocator, Reports)
        for report in allocator.availability(asked.claims)
    ]
    return sum(shares) / len(shares) if shares else 1.0


def _reason(verdict: Placed, free: float) -> str:
    places = ", ".join(
        f"{member} on {'any node' if hint.affinity is None else 'node ' + format_list(hint.affinity)}"
        f"{'' if hint.preferred else ' (not preferred)'}"
        for member, hint in verdict.affinity.items()
    )
    return f"{places}; {free:.0%} free afterwards"
