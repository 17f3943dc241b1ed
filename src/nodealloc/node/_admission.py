"""May it come in, or have other resources: the chain over the view that a node keeps; decides alone."""

from __future__ import annotations

from typing import Final

from nodealloc import _attrs as attrs
from nodealloc._entries import with_entry, without_entry
from nodealloc.admission import Chain, MakingRoom, allocation, chain_of, resized
from nodealloc.errors import ConfigurationError
from nodealloc.node._asked import Asked
from nodealloc.node._holdings import Held
from nodealloc.podfacts import NodeView
from nodealloc.podspec import Pod, Quantity
from nodealloc.topology import (
    Accounts,
    Allocator,
    Claim,
    Confines,
    Owner,
    Placed,
    Snapshot,
    Workload,
    admit,
    release,
)
from nodealloc.verdicts import Admitted, NotYet, Refused

__all__ = ["NodeAdmission", "view_of"]

_CPU: Final = "cpu"
_PAGES: Final = "hugepages-"
_UNSAID: Final = frozenset({_CPU, "memory", "ephemeral-storage", "hugepages-*", "pods"})
_NOBODY: Final = Owner("", "")


@attrs.frozen(kw_only=True)
class NodeAdmission:
    """Admission to a node.

    Attributes:
        chain: The handlers; what is held is asked behind them.
        admits_anew: Whether a pod that is remembered, and is not in the view, is judged once more.
    """

    chain: Chain
    admits_anew: bool = False

    @classmethod
    def of(cls, chain: Chain | None, *, admits_anew: bool = False) -> NodeAdmission:
        """With the chain of a node where none is given.

        Raises:
            ConfigurationError: The chain has a snapshot of its own, or lets pods in before their victims end.
        """
        chosen = chain or chain_of()
        if chosen.allocates:
            raise ConfigurationError(
                "the chain gives out from a snapshot of its own; a node has its own, so leave out `snapshot`"
            )
        if not chosen.rules.waits_for_victims:
            raise ConfigurationError(
                "by the rules of this chain a pod is in before its victims have ended, and what they hold "
                "would be granted twice; let `waits_for_victims` be True"
            )
        return cls(chain=chosen.before_allocation(), admits_anew=admits_anew)

    def admitted(self, held: Held, asked: Asked) -> Placed | Refused | NotYet:
        """Whether it may come in.

        What is in stays, and no handler is asked but for members that came later, or for all of a pod that
        is to be admitted anew; claims that are no pod's are allocated, no more.

        Raises:
            ProviderError: An allocator raised, or answered with nonsense.
        """
        pod, key = asked.pod, asked.workload.key
        later = asked.later_than(held.records.get(key))
        if later and key in held.snapshot.admitted:
            return self._joined(held, asked, later)
        if pod is None or key in held.snapshot.admitted:
            judged = self._anew(held, pod)
            return admit(held.snapshot, asked.workload) if isinstance(judged, Admitted) else _told(judged)
        view = _of_others(held, key)
        verdict = self.chain(pod, view)
        if isinstance(verdict, Admitted):
            verdict = allocation(held.snapshot)(pod, view)
        elif not self.chain.rules.allocates_last and isinstance(verdict, Refused | MakingRoom):
            first = allocation(held.snapshot)(pod, view)
            verdict = first if isinstance(first, Refused) else verdict
        return _told(verdict)

    def _anew(self, held: Held, pod: Pod | None) -> Admitted | Refused | NotYet:
        """Whether a pod that is remembered stays in; what it holds is not asked for again."""
        if pod is None or not self.admits_anew or pod.uid in held.view.pods:
            return Admitted()
        return self.chain(pod, held.view)

    def _joined(self, held: Held, asked: Asked, later: tuple[Claim, ...]) -> Placed | Refused | NotYet:
        """Members that came later, all or none, beside what the others of their workload keep.

        What they hold from before they came, or came again, is given back first.
        """
        key, snapshot = asked.workload.key, held.snapshot
        if asked.pod is not None:
            judged = self.chain(asked.pod, held.view.without(key))
            if not isinstance(judged, Admitted):
                return _told(judged)
        others = snapshot
        for claim in later:
            others = release(others, key, claim.owner.member)
        others = attrs.evolve(others, admitted=without_entry(others.admitted, key))
        verdict = admit(others, Workload(key=key, claims=later))
        if not isinstance(verdict, Placed):
            return verdict
        affinity = {**snapshot.admitted[key], **verdict.affinity}
        admitted = with_entry(snapshot.admitted, key, affinity)
        after = attrs.evolve(verdict.snapshot, admitted=admitted)
        return attrs.evolve(verdict, snapshot=after, affinity=affinity)

    def resized(self, held: Held, pod: Pod, *, is_edit: bool) -> Placed | Refused | NotYet:
        """Whether a pod that is in may have other resources, and where it is edited other members, too.

        Raises:
            ConfigurationError: It is not in.
        """
        asked = Asked.of(pod)
        is_in = pod.uid in held.snapshot.admitted
        view, snapshot = held.view if is_in else _of_others(held, pod.uid), held.snapshot
        later = asked.later_than(held.records.get(pod.uid)) if is_edit and is_in else ()
        if later:
            joined = self._joined(held, asked, later)
            if not isinstance(joined, Placed):
                return joined
            snapshot = joined.snapshot
        return resized(pod, view, snapshot, chain=self.chain, is_edit=is_edit)


def _of_others(held: Held, key: str) -> NodeView:
    """The view without a pod that was not admitted here: one that is only known to end is in it."""
    return held.view.without(key) if key in held.view.pods else held.view


def view_of(empty: Snapshot, /) -> NodeView:
    """A view of a node of which nobody has said more than what its allocators know.

    CPUs are those that containers without any of their own run on, memory and
    huge pages what is pinned; nobody knows how many pods it takes, nor what it is called.
    """
    found: dict[str, int] = {}
    for one in empty.allocators:
        found |= {name: amount for name, amount in _native(one).items() if name not in found}
    return NodeView(
        name="node",
        is_named=False,
        allocatable={name: Quantity.of(amount) for name, amount in found.items()},
        elsewhere=_UNSAID - found.keys(),
    )


def _native(allocator: Allocator) -> dict[str, int]:
    """Amounts of what every node has; devices come and go, and are their allocator's to count."""
    found: dict[str, int] = {}
    for use in allocator.capacity() if isinstance(allocator, Accounts) else ():
        if use.resource in _UNSAID or use.resource.startswith(_PAGES):
            found[use.resource] = found.get(use.resource, 0) + use.allocatable
    if not found.get(_CPU, 1):
        # Nobody gets CPUs for itself there: all run on what the shared pool has.
        shared = allocator.confinement(_NOBODY).cpus if isinstance(allocator, Confines) else None
        found[_CPU] = len(shared or ())
    return {name: amount for name, amount in found.items() if amount}


def _told(verdict: Admitted | Refused | NotYet) -> Placed | Refused | NotYet:
    if isinstance(verdict, Placed | Refused | NotYet):
        return verdict
    raise TypeError(f"an allocation answered {verdict}")  # its promise is another one
