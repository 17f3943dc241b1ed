"""The merge: from every provider's hints to the one that the node goes by.

One pass sorts the hints out (`_reading`). A mask that all resources prefer wins
(`_preferred`); without one, the best of what comes out when each resource
chooses (`_compromise`). What kubelets see every day are lists, and few masks
that all of them prefer: these are compared here, as bare integers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from nodealloc._arguments import check
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
def _tolerated(affinity: NumaMask) -> Merged:
    return Merged(TopologyHint(affinity, preferred=False), admit=True)


@lru_cache(maxsize=4096)
def _rejected(affinity: NumaMask) -> Merged:
    return Merged(TopologyHint(affinity, preferred=False), admit=False)


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
    reading = read_bare(providers, full, names)
    common, offered, lists, counted = reading
    if counted or policy.comparison is not None:
        affinity, preferred = _of_all(policy, Reading(*reading), numa, allocated, work)
    elif common is None:
        if name is _SINGLE:
            return _ANYWHERE if offered is None else _anywhere(offered, full)
        preferred = True
        affinity = full if offered is None else narrowest({*offered, full}, numa, near=policy.prefer_closest)
    elif not common:
        if name is _SINGLE:
            return _NOWHERE
        preferred = False
        affinity = compromise(lists, numa, policy, work) if lists else full
    else:
        preferred = True
        affinity = narrowest(common, numa, near=policy.prefer_closest)
        if name is _SINGLE and affinity & (affinity - 1):
            return _NOWHERE
    if preferred:
        return _preferred(None if name is _SINGLE and affinity == full else affinity)
    if name is _SINGLE:
        return _NOWHERE
    return _tolerated(affinity or full) if name is _BEST_EFFORT else _rejected(affinity or full)


def _anywhere(offered: Collection[NumaMask], full: NumaMask) -> Merged:
    """Under single-numa-node, where nobody is bound to nodes: the lowest node that is offered, or any."""
    node = min([mask for mask in offered if not mask & (mask - 1)], default=full)
    return _preferred(None if node == full else node)


def _of_all(
    policy: Policy,
    reading: Reading,
    numa: NumaTopology,
    allocated: Mapping[int, float] | None,
    work: Work | None,
) -> tuple[NumaMask, bool]:
    """The best mask where hints are counted, or compared by the policy's own comparison."""
    # Imported late: most nodes have neither, and importing this package should stay quick.
    from nodealloc.topology._candidates import best  # noqa: PLC0415

    return best(policy, reading, numa, allocated or {}, work or Work(policy.work_units)) or (0, False)
