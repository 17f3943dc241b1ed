"""The merge: from every provider's hints to the one that the node goes by.

One pass sorts the hints out (`_reading`). A mask that all resources prefer wins
(`_preferred`); without one, the best of what comes out when each resource
chooses (`_compromise`). What kubelets see every day are lists, and few masks
that all of them prefer: these are compared here, as bare integers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from nodealloc._arguments import check
from nodealloc.topology._candidates import best
from nodealloc.topology._hints import Hints, NumaMask, NumaTopology, TopologyHint
from nodealloc.topology._lists import compromise, narrowest
from nodealloc.topology._policy import Policy, PolicyName
from nodealloc.topology._reading import Reading, read_bare
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


# Members of an enumeration are slow to look up; these are asked for on every call.
_NONE = PolicyName.NONE
_BEST_EFFORT = PolicyName.BEST_EFFORT
_SINGLE = PolicyName.SINGLE_NUMA_NODE


_NO_POLICY = Merged(TopologyHint(affinity=None, preferred=False), admit=True)
_ANYWHERE = Merged(TopologyHint(affinity=None, preferred=True), admit=True)
_NOWHERE = Merged(TopologyHint(affinity=None, preferred=False), admit=False)


# There are few different outcomes on a machine, so each is made once.
@lru_cache(maxsize=4096)
def _preferred(affinity: NumaMask | None) -> Merged:
    return Merged(TopologyHint(affinity, preferred=True), admit=True)


@lru_cache(maxsize=4096)
def _not_preferred(affinity: NumaMask, admit: bool) -> Merged:
    return Merged(TopologyHint(affinity, preferred=False), admit=admit)


@lru_cache(maxsize=4096)
def _on_one_node(masks: frozenset[NumaMask], full: NumaMask, bound: bool) -> Merged:
    """Under single-numa-node: the lowest node among some masks; without one any, or none for who is bound."""
    node = min([mask for mask in masks if not mask & (mask - 1)], default=0)
    if bound and not node:
        return _NOWHERE
    return _preferred(None if node in {0, full} else node)


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
    try:
        name, full = policy.name, numa.mask
    except AttributeError:
        check("merge, policy", policy, Policy, "a Policy; Policy.parse reads a kubelet's words")
        check("merge, numa", numa, NumaTopology, "a NumaTopology(nodes=(0, 1))")
        raise
    if name is _NONE:
        return _NO_POLICY
    reading = common, offered, lists, counted = read_bare(providers, full, names)
    if counted or policy.comparison is not None:
        return _of_all(policy, Reading(*reading), numa, allocated, work)
    if common:
        if name is _SINGLE:
            return _on_one_node(common, full, True)  # noqa: FBT003 - they are bound
        return _preferred(narrowest(common, numa, policy.prefer_closest))
    if common is None:
        if offered is None:
            return _ANYWHERE if name is _SINGLE else _preferred(full)
        if name is _SINGLE:
            return _on_one_node(offered, full, False)  # noqa: FBT003 - nobody is bound
        return _preferred(narrowest(offered | {full}, numa, policy.prefer_closest))
    if name is _SINGLE:
        return _NOWHERE
    affinity = (compromise(lists, numa, policy, work) or full) if lists else full
    return _not_preferred(affinity, name is _BEST_EFFORT)


def _of_all(
    policy: Policy,
    reading: Reading,
    numa: NumaTopology,
    allocated: Mapping[int, float] | None,
    work: Work | None,
) -> Merged:
    """The best mask where hints are counted, or compared by the policy's own comparison."""
    full, single = numa.mask, policy.name is _SINGLE
    found = best(policy, reading, numa, allocated or {}, work or Work(policy.work_units))
    affinity, preferred = found or (0, False)
    if preferred:
        return _preferred(None if single and affinity == full else affinity)
    return _NOWHERE if single else _not_preferred(affinity or full, policy.name is _BEST_EFFORT)
