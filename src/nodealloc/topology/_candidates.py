"""Every merged hint that can come out, in order of preference: the merge at length.

`merge` has a short way for what kubelets see every day; this module is the long
way for the rest (mixed "any node" hints, comparisons of your own, explanations,
the search over a whole workload). Both answer alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, cast

from nodealloc.topology._comparison import Closest, Comparison, Narrowest, Scene
from nodealloc.topology._errors import HintError, MaskOutsideError
from nodealloc.topology._hints import Hints, NumaMask, NumaTopology, TopologyHint
from nodealloc.topology._policy import Policy, PolicyName
from nodealloc.topology._reachable import reachable

__all__ = ["Options", "best", "candidates", "options_of"]


class Options(NamedTuple):
    """One resource's hints, sorted out.

    Attributes:
        provider: Who gave them.
        resource: For what; "" for a provider without any preference.
        good: Masks that are preferred.
        masks: All masks, preferred or not.
        any_good: Whether "any node" is a preferred hint.
        any_node: Whether "any node" is a hint at all.
    """

    provider: str
    resource: str
    good: frozenset[NumaMask]
    masks: frozenset[NumaMask]
    any_good: bool
    any_node: bool

    @property
    def empty(self) -> bool:
        """Whether no hint is left, so that nothing can be combined."""
        return not self.masks and not self.any_node


_NO_MASKS: frozenset[NumaMask] = frozenset()


def options_of(
    policy: Policy, providers: Sequence[Hints], numa: NumaTopology, names: Sequence[str] = ()
) -> list[Options]:
    """Sort out and check all hints, as far as the policy looks at them.

    None becomes a preferred "any node", an empty list a "any node" that is not
    preferred; single-numa-node drops what is wider than one node or not preferred.

    Raises:
        HintError: An answer is no mapping of resources to hints.
        MaskOutsideError: A hint names nodes that the machine does not have.

    Source: kubelet ``cm/topologymanager/policy.go``, ``policy_single_numa_node.go``.
    """
    found: list[Options] = []
    for place, hints in enumerate(providers):
        name = names[place] if place < len(names) else f"provider {place}"
        for resource, given in _resources(name, hints):
            found.append(_options(name, resource, given, numa.mask))
    return [_narrowed(one) for one in found] if policy.name is PolicyName.SINGLE_NUMA_NODE else found


def _resources(provider: str, hints: object) -> list[tuple[str, object]]:
    if not isinstance(hints, Mapping):
        kind = type(hints).__name__
        raise HintError(provider, "", f"a {kind} came as hints; answer with a mapping of resources to hints")
    answers = cast("Mapping[object, object]", hints)
    return [(str(resource), given) for resource, given in answers.items()]


def _options(provider: str, resource: str, given: object, machine: NumaMask) -> Options:
    if given is None:
        return Options(provider, resource, _NO_MASKS, _NO_MASKS, any_good=True, any_node=True)
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise HintError(provider, resource, f"{given!r} is no sequence of hints")
    good: set[NumaMask] = set()
    masks: set[NumaMask] = set()
    any_good = any_node = False
    for hint in cast("Iterable[object]", given):
        affinity, preferred = _hint(provider, resource, hint)
        if affinity is None:
            any_node = True
            any_good |= preferred
            continue
        if affinity <= 0 or affinity & ~machine:
            raise MaskOutsideError(provider, resource, affinity, machine)
        masks.add(affinity)
        if preferred:
            good.add(affinity)
    return Options(
        provider, resource, frozenset(good), frozenset(masks), any_good, any_node or not (masks or any_node)
    )


def _hint(provider: str, resource: str, hint: object) -> tuple[int | None, bool]:
    pair = cast("tuple[object, ...]", hint) if isinstance(hint, tuple) else ()
    if len(pair) == 2:
        affinity, preferred = pair
        counted = affinity is None or (isinstance(affinity, int) and not isinstance(affinity, bool))
        if counted and isinstance(preferred, bool):
            return cast("int | None", affinity), preferred
    raise HintError(provider, resource, f"{hint!r} is no hint; give TopologyHint(mask or None, preferred)")


def _narrowed(one: Options) -> Options:
    singles = frozenset(mask for mask in one.good if not mask & (mask - 1))
    return one._replace(good=singles, masks=singles, any_node=one.any_good)


def narrowest(options: Iterable[Options]) -> int:
    """Of each resource's narrowest mask the number of nodes; the largest of them, else 0."""
    return max((min(map(int.bit_count, one.masks)) for one in options if one.masks), default=0)


def preferred_masks(options: Sequence[Options], full: NumaMask) -> frozenset[NumaMask]:
    """Masks of combinations in which all masks are the same and every hint is preferred."""
    bound = [one.good for one in options if not one.any_good]
    if bound:
        return bound[0].intersection(*bound[1:])
    return frozenset({full}).union(*(one.good for one in options))


def other_masks(options: Sequence[Options], full: NumaMask) -> set[NumaMask]:
    """Masks of all combinations that have a node in common, preferred or not."""
    if any(one.empty for one in options):
        return set()
    return reachable(
        [one.masks | {full} if one.any_node else one.masks for one in options if one.masks], full
    )


def candidates(
    policy: Policy, options: Sequence[Options], numa: NumaTopology, allocated: Mapping[int, float]
) -> list[TopologyHint]:
    """All merged hints that the policy lets in, best first; preferred ones come first.

    A mask that can be had as preferred is not listed a second time.
    """
    good = preferred_masks(options, numa.mask) if numa.mask else frozenset({0})
    rest = other_masks(options, numa.mask) - good if policy.name is PolicyName.BEST_EFFORT else ()
    scene = Scene(numa=numa, narrowest=narrowest(options), allocated=allocated)
    comparison = comparison_of(policy)
    return [
        hint
        for masks, preferred in ((good, True), (rest, False))
        for hint in _ranked([TopologyHint(mask, preferred) for mask in masks], comparison, scene)
    ]


def best(
    policy: Policy, options: Sequence[Options], numa: NumaTopology, allocated: Mapping[int, float]
) -> TopologyHint | None:
    """The first of `candidates`, or None; looks at the preferred ones alone where it can."""
    good = preferred_masks(options, numa.mask)
    masks = good or other_masks(options, numa.mask)
    scene = Scene(numa=numa, narrowest=narrowest(options), allocated=allocated)
    found = _ranked([TopologyHint(mask, bool(good)) for mask in masks], comparison_of(policy), scene)
    return found[0] if found else None


def comparison_of(policy: Policy) -> Comparison:
    """The policy's own comparison, or the kubelet's."""
    if policy.comparison is not None:
        return policy.comparison
    closest = policy.prefer_closest and policy.name is not PolicyName.SINGLE_NUMA_NODE
    return Closest() if closest else Narrowest()


def _ranked(hints: list[TopologyHint], comparison: Comparison, scene: Scene) -> list[TopologyHint]:
    return sorted(hints, key=lambda hint: (comparison.rank(hint, scene), hint.affinity))
