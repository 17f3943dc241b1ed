"""The merge: from every provider's hints to the one that the node goes by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nodealloc.topology._candidates import best, options_of
from nodealloc.topology._hints import Hints, NumaTopology, TopologyHint
from nodealloc.topology._policy import Policy, PolicyName

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


_ANY = TopologyHint(affinity=None, preferred=False)
_NO_POLICY = Merged(hint=_ANY, admit=True)


def merge(
    policy: Policy,
    providers: Sequence[Hints],
    numa: NumaTopology,
    /,
    *,
    names: Sequence[str] = (),
    allocated: Mapping[int, float] | None = None,
) -> Merged:
    """The best combination of one hint per resource, exactly as trying all would find it.

    Args:
        policy: Which combinations count, and which result is let in.
        providers: Each provider's answer. Empty mapping: no preference at all.
        numa: The machine.
        names: Names of the providers for messages, in the same order.
        allocated: Node id to taken share, for a `Policy.comparison` that asks.

    Returns:
        The hint and the verdict. Without any usable combination the hint is
        all nodes (None under single-numa-node), not preferred.

    Raises:
        HintError: A provider's answer is no mapping of resources to hints.
        MaskOutsideError: A hint names nodes that the machine does not have.
        DistanceError: `prefer_closest` without distances.

    Source: kubelet v1.32 ``cm/topologymanager/policy*.go``.
    """
    if policy.name is PolicyName.NONE:
        return _NO_POLICY
    options = options_of(policy, providers, numa, names)
    found = best(policy, options, numa, allocated or {}) or TopologyHint(numa.mask, preferred=False)
    if policy.name is PolicyName.SINGLE_NUMA_NODE and found.affinity == numa.mask:
        found = TopologyHint(None, found.preferred)
    return Merged(found, found.preferred or policy.name is PolicyName.BEST_EFFORT)
