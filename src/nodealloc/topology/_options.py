"""Hints one resource at a time: what is wrong in an answer, and what an explanation shows of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, cast

from nodealloc.topology._counted import CountedHints
from nodealloc.topology._errors import HintError, MaskOutsideError
from nodealloc.topology._hints import Hints, NumaMask

__all__ = ["Options", "narrowed", "options_of"]

_SHOWN = 64
"""Sets that are listed of an answer that is counted; it may stand for more than any list holds."""


class Options(NamedTuple):
    """One resource's hints, sorted out.

    Attributes:
        provider: Who gave them.
        resource: For what; "" for a provider without any preference.
        good: Masks that are preferred; of an answer that is counted the lowest.
        masks: All masks, preferred or not; of an answer that is counted the
            lowest of the narrowest.
        any_good: Whether "any node" is a preferred hint.
        any_node: Whether "any node" is a hint at all.
        counted: The answer, if it is counted.
    """

    provider: str
    resource: str
    good: frozenset[NumaMask]
    masks: frozenset[NumaMask]
    any_good: bool
    any_node: bool
    counted: CountedHints | None = None

    def allows(self, mask: NumaMask) -> bool:
        """Whether a mask is a hint."""
        return mask in self.masks or (self.counted is not None and self.counted.counts(mask))

    def prefers(self, mask: NumaMask) -> bool:
        """Whether a mask is a preferred hint."""
        return mask in self.good or (self.counted is not None and self.counted.prefers(mask))


_NO_MASKS: frozenset[NumaMask] = frozenset()


def options_of(providers: Sequence[Hints], machine: NumaMask, names: Sequence[str] = ()) -> list[Options]:
    """Sort out and check all hints.

    None becomes a preferred "any node", an empty list an "any node" that is not
    preferred.

    Raises:
        HintError: An answer is no mapping of resources to hints.
        MaskOutsideError: A hint names nodes that the machine does not have.

    Source: kubelet ``cm/topologymanager/policy.go``.
    """
    found: list[Options] = []
    for place, hints in enumerate(providers):
        name = names[place] if place < len(names) else f"provider {place}"
        for resource, given in _resources(name, hints):
            found.append(_options(name, resource, given, machine))
    return found


def narrowed(one: Options) -> Options:
    """What single-numa-node looks at: preferred hints for one node.

    Source: kubelet ``cm/topologymanager/policy_single_numa_node.go``.
    """
    singles = frozenset(mask for mask in one.good if not mask & (mask - 1))
    return one._replace(good=singles, masks=singles, any_node=one.any_good)


def _resources(provider: str, hints: object) -> list[tuple[str, object]]:
    if not isinstance(hints, Mapping):
        kind = type(hints).__name__
        raise HintError(provider, "", f"a {kind} came as hints; answer with a mapping of resources to hints")
    answers = cast("Mapping[object, object]", hints)
    return [(str(resource), given) for resource, given in answers.items()]


def _options(provider: str, resource: str, given: object, machine: NumaMask) -> Options:
    if given is None:
        return Options(provider, resource, _NO_MASKS, _NO_MASKS, any_good=True, any_node=True)
    if isinstance(given, CountedHints):
        return _counted(provider, resource, given, machine)
    if isinstance(given, str) or not isinstance(given, Sequence):
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


def _counted(provider: str, resource: str, given: CountedHints, machine: NumaMask) -> Options:
    for mask in (given.nodes, *[affinity or 0 for affinity, _ in given.others]):
        if mask < 0 or mask & ~machine or (mask == 0 and mask != given.nodes):
            raise MaskOutsideError(provider, resource, mask, machine)
    shown = given.some(_SHOWN)
    good = {affinity for affinity, preferred in shown if preferred and affinity}
    masks = {affinity for affinity, _ in shown if affinity}
    return Options(
        provider,
        resource,
        frozenset(good),
        frozenset(masks),
        any_good=False,
        any_node=not masks,
        counted=given,
    )
