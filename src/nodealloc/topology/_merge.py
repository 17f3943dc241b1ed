"""The merge: from every provider's hints to the one that the node goes by.

One pass sorts the hints out (`_reading`). A mask that all resources prefer wins
(`_preferred`); without one, the best of what comes out when each resource
chooses (`_compromise`). What kubelets see every day are short lists: these are
compared here, as bare integers, and what they come to is remembered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from nodealloc._arguments import check
from nodealloc.topology._candidates import best
from nodealloc.topology._counted import CountedHints
from nodealloc.topology._hints import Hints, NumaMask, NumaTopology, TopologyHint
from nodealloc.topology._lists import FEW, combinations, of_few
from nodealloc.topology._many import HALVED, of_many
from nodealloc.topology._nearest import narrowest
from nodealloc.topology._policy import Policy, PolicyName
from nodealloc.topology._reading import Reading, read
from nodealloc.topology._work import Work

__all__ = ["Merged", "merge"]


class Merged(NamedTuple):
    """Outcome of a merge.

    Attributes:
        hint: The best hint that the providers' hints intersect to; an affinity
            of None allows any node.
        admit: Whether the policy lets it in.
    """

    hint: TopologyHint
    admit: bool


_NO_POLICY = Merged(TopologyHint(affinity=None, preferred=False), admit=True)
_NOWHERE = Merged(TopologyHint(affinity=None, preferred=False), admit=False)


class _Equals(NamedTuple):
    """Equally good masks, of which distances choose one, ascending; and the outcome that each would be."""

    masks: tuple[NumaMask, ...]
    outcomes: Sequence[Merged]


class _Worked(NamedTuple):
    """An outcome that took counted work: so much is spent again whenever it is asked for."""

    outcome: Merged
    spent: int


_Answer: TypeAlias = Merged | _Equals

_KEPT = 1024

_LONG, _KEPT_LONG = 64, 50_000
"""Questions of more hints are long; of all long ones together so many hints are kept."""

_END = object()
"""Stands after each resource's hints in a question; an empty list is this alone."""

_COUNTED = object()
"""Stands in a question for what is counted; nothing that has it is remembered."""

_answers: dict[tuple[object, ...], _Answer | _Worked] = {}
"""What questions came to: the kind of policy, all nodes, and each resource's hints.

A node is asked the same again, and a fleet many times.
"""

_long = [0]
"""How many hints the long ones among them have."""


def merge(
    policy: Policy,
    providers: Sequence[Hints],
    numa: NumaTopology,
    /,
    *,
    names: Sequence[str] = (),
    allocated: Mapping[int, float] | None = None,
    work: Work | None = None,
) -> Merged:
    """The best combination of one hint per resource, exactly as trying all would find it.

    Args:
        policy: Which combinations count, and which result is let in.
        providers: Each provider's answer. Empty mapping: no preference at all.
        numa: The machine.
        names: Names of the providers for messages, in the same order.
        allocated: Node id to taken share, for a `Policy.comparison` that asks.
        work: Where several merges share what they may spend; of its own,
            `Policy.work_units`, by default.

    Returns:
        The hint and the verdict. Without any usable combination the hint is
        all nodes (None under single-numa-node), not preferred.

    Raises:
        HintError: A provider's answer is no mapping of resources to hints.
        MaskOutsideError: A hint names nodes that the machine does not have.
        DistanceError: `prefer_closest` without distances.
        ConfigurationError: Something else than a policy or a NUMA topology came.
        WorkLimitError: It took more work than that.

    Source: kubelet v1.32 ``cm/topologymanager/policy*.go``.
    """
    question: list[object] | None = None
    try:
        question = [policy.kind, numa.mask]
        for hints in providers:
            if hints:
                for options in hints.values():
                    if options:
                        # What is counted may be endless, and is no list that is known.
                        if options.__class__ is CountedHints:
                            question.append(_COUNTED)
                        else:
                            question += options
                        question.append(_END)
                    elif options is not None:
                        question.append(_END)
        answer = _answers[(*question,)]
        if type(answer) is Merged:
            return answer
    except KeyError:
        answer = _asked(policy, providers, numa, question, names=names, allocated=allocated, work=work)
    except (AttributeError, TypeError, ValueError):
        answer = _asked(policy, providers, numa, None, names=names, allocated=allocated, work=work)
    if isinstance(answer, _Worked):
        spending = work or Work(policy.work_units)
        if spending.left >= answer.spent + HALVED:
            spending.spend(answer.spent)
            return answer.outcome
        answer = _asked(policy, providers, numa, None, names=names, allocated=allocated, work=spending)
    if isinstance(answer, _Equals):
        return answer.outcomes[answer.masks.index(numa.closest(answer.masks))]
    return answer


def _asked(
    policy: Policy,
    providers: Sequence[Hints],
    numa: NumaTopology,
    question: Sequence[object] | None,
    *,
    names: Sequence[str],
    allocated: Mapping[int, float] | None,
    work: Work | None,
) -> _Answer:
    """What a question comes to that is not remembered; now it is, if it may be."""
    check("merge, policy", policy, Policy, "a Policy; Policy.parse reads a kubelet's words")
    check("merge, numa", numa, NumaTopology, "a NumaTopology(nodes=(0, 1))")
    check("merge, providers", providers, Iterable, "a list of each provider's hints")
    if policy.kind == 0:
        return _NO_POLICY
    reading = read(providers, numa.mask, names)
    spending = work or Work(policy.work_units)
    before = spending.left
    answer = _answered(policy, reading, numa, allocated, spending)
    if policy.kind is not None and question and _COUNTED not in question:
        spent = before - spending.left
        if spent == 0:
            _keep(tuple(question), answer)
        elif spending.left >= HALVED and not policy.prefer_closest and isinstance(answer, Merged):
            # With less left, a way may have been given up early; distances are this machine's alone.
            _keep(tuple(question), _Worked(answer, spent))
    return answer


def _keep(question: tuple[object, ...], answer: _Answer | _Worked) -> None:
    if len(_answers) >= _KEPT or _long[0] + len(question) > _KEPT_LONG:
        _answers.clear()
        _long[0] = 0
    if len(question) <= _KEPT_LONG:
        _answers[question] = answer
        _long[0] += len(question) if len(question) > _LONG else 0


def _answered(
    policy: Policy,
    reading: Reading,
    numa: NumaTopology,
    allocated: Mapping[int, float] | None,
    work: Work,
) -> _Answer:
    """What hints come to."""
    full = numa.mask
    if reading.counted or policy.comparison is not None:
        return _of_all(policy, reading, numa, allocated or {}, work)
    if policy.name is PolicyName.SINGLE_NUMA_NODE:
        return _on_one_node(reading, full)
    preferred = reading.choice(full)
    if preferred:
        masks = narrowest(preferred)
    elif (ways := combinations(reading.lists)) <= FEW:
        masks = of_few(reading.lists, full)
    else:
        masks = (of_many(reading.lists, ways, numa, near=policy.prefer_closest, work=work),)
    admit = bool(preferred) or policy.name is PolicyName.BEST_EFFORT
    outcomes = [_outcome(mask or full, preferred=bool(preferred), admit=admit) for mask in masks]
    return _Equals(masks, outcomes) if policy.prefer_closest and len(masks) > 1 else outcomes[0]


def _outcome(affinity: NumaMask | None, *, preferred: bool, admit: bool = True) -> Merged:
    return Merged(TopologyHint(affinity, preferred), admit)


def _on_one_node(reading: Reading, full: NumaMask) -> Merged:
    """Under single-numa-node: the lowest node that all prefer, or none for whom nothing is bound."""
    bound = reading.common is not None
    masks = reading.common if bound else reading.offered
    node = min([mask for mask in masks or () if not mask & (mask - 1)], default=0)
    if bound and not node:
        return _NOWHERE
    return _outcome(None if node in {0, full} else node, preferred=True)


def _of_all(
    policy: Policy, reading: Reading, numa: NumaTopology, allocated: Mapping[int, float], work: Work
) -> Merged:
    """The best mask where hints are counted, or compared by the policy's own comparison."""
    full, single = numa.mask, policy.name is PolicyName.SINGLE_NUMA_NODE
    affinity, preferred = best(policy, reading, numa, allocated, work) or (full, False)
    if preferred:
        return _outcome(None if single and affinity == full else affinity, preferred=True)
    if single:
        return _NOWHERE
    return _outcome(affinity or full, preferred=False, admit=policy.name is PolicyName.BEST_EFFORT)
