"""The merge: from every provider's hints to the one that the node goes by.

What kubelets see every day, lists of hints on at most eight nodes, is settled as
bare integers (`_listed`). Anything else is read at length (`_reading`): a mask
that all resources prefer wins (`_preferred`); without one, the best of what
comes out when each resource chooses (`_non_preferred`). Nothing is remembered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from nodealloc._arguments import check
from nodealloc.topology._candidates import best
from nodealloc.topology._counted import CountedHints
from nodealloc.topology._hints import Hints, NumaMask, NumaTopology, TopologyHint
from nodealloc.topology._listed import OFFERS, OUTCOMES, SINGLE, of_lists, offered_by, prepared
from nodealloc.topology._many import of_many
from nodealloc.topology._nearest import narrowest
from nodealloc.topology._outcome import Merged
from nodealloc.topology._policy import Policy, PolicyName
from nodealloc.topology._reading import Reading, masks_of, read
from nodealloc.topology._small_machine import ANYWHERE
from nodealloc.topology._work import Work

__all__ = ["Merged", "merge"]

_NO_POLICY = Merged(TopologyHint(affinity=None, preferred=False), admit=True)
_NOWHERE = Merged(TopologyHint(affinity=None, preferred=False), admit=False)


def merge(  # noqa: PLR0917 - three keyword-only ones would take longer than a short list
    policy: Policy,
    providers: Sequence[Hints],
    numa: NumaTopology,
    /,
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
        MaskOutsideError: A hint names nodes that the machine does not have. Under single-numa-node
            hints behind those that settle a refusal need not be looked at.
        DistanceError: `prefer_closest` without distances.
        ConfigurationError: Something else than a policy or a NUMA topology came.
        WorkLimitError: It took more work than that.

    Source: kubelet v1.32 ``cm/topologymanager/policy*.go``.
    """
    try:
        kind, full = policy.kind, numa.mask
        if kind and kind < SINGLE:
            found = of_lists(policy, kind, providers, numa, work)
            if found is not None:
                return found
        elif kind:
            # Here and not in a function of its own: a call would take a tenth of what most merges take.
            offers, common, offered = OFFERS[full], -1, 0
            for hints in providers:
                for options in hints.values() if hints else ():
                    if options is None:
                        continue
                    nodes = 0
                    if type(options) is list:
                        for hint in options:  # pyright: ignore[reportUnknownVariableType]
                            nodes |= offers[hint]
                    elif type(options) is CountedHints:
                        return _at_length(
                            policy, providers, numa, names=names, allocated=allocated, work=work
                        )
                    else:
                        nodes = offered_by(options, full)
                    if nodes >= ANYWHERE:
                        offered |= nodes
                    else:
                        common &= nodes
                        if not common:
                            return _NOWHERE
            if common < 0:
                common = offered & full
            return OUTCOMES[full][common & -common]
    except KeyError:
        # The first machine of its kind, a large one, or a mask that it does not have.
        if prepared(numa.mask):
            return merge(policy, providers, numa, names, allocated, work)
    except (AttributeError, TypeError, ValueError):
        _at_length(policy, providers, numa, names=names, allocated=allocated, work=work)  # says what is wrong
        raise
    return _at_length(policy, providers, numa, names=names, allocated=allocated, work=work)


def _at_length(
    policy: Policy,
    providers: Sequence[Hints],
    numa: NumaTopology,
    *,
    names: Sequence[str],
    allocated: Mapping[int, float] | None,
    work: Work | None,
) -> Merged:
    """A merge of any hints, all of them looked at first."""
    check("merge, policy", policy, Policy, "a Policy; Policy.parse reads a kubelet's words")
    check("merge, numa", numa, NumaTopology, "a NumaTopology(nodes=(0, 1))")
    check("merge, providers", providers, Iterable, "a list of each provider's hints")
    if policy.kind == 0:
        return _NO_POLICY
    reading = read(providers, numa.mask, names)
    return _answered(policy, reading, numa, allocated, work or Work(policy.work_units))


def _answered(
    policy: Policy,
    reading: Reading,
    numa: NumaTopology,
    allocated: Mapping[int, float] | None,
    work: Work,
) -> Merged:
    """What hints come to."""
    full = numa.mask
    if reading.counted or policy.comparison is not None:
        return _of_all(policy, reading, numa, allocated or {}, work)
    if policy.name is PolicyName.SINGLE_NUMA_NODE:
        return _on_one_node(reading, full)
    preferred = reading.choice(full)
    if preferred:
        ties = narrowest(preferred)
        return _outcome(numa.closest(ties) if policy.prefer_closest else ties[0], preferred=True)
    lists = [masks_of(one, full) for one in reading.lists]
    target = max([one.least for one in reading.lists], default=0)
    found = of_many(lists, target, numa, near=policy.prefer_closest, work=work)
    return _outcome(found or full or None, preferred=False, admit=policy.name is PolicyName.BEST_EFFORT)


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
    return _outcome(affinity or full or None, preferred=False, admit=policy.name is PolicyName.BEST_EFFORT)
