"""What an allocator can do besides hints and grants; each is a Protocol, each is optional."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from nodealloc import _attrs as attrs
from nodealloc._frozen import Frozen, freeze
from nodealloc._typed import typed_fields
from nodealloc.podspec import Json
from nodealloc.topology._claims import Claim, Owner
from nodealloc.topology._holdings import Confinement, Holding, ResourceUse
from nodealloc.topology._ports import Allocator, Shortfall
from nodealloc.verdicts import NotYet

__all__ = ["Accounts", "Adopts", "Confines", "Recalled", "Remembers", "Restored"]


@typed_fields
@attrs.frozen(kw_only=True)
class Restored:
    """An allocator with remembered grants in it, as far as they still fit the machine.

    Attributes:
        allocator: Holds every grant but the evicted ones.
        moved: What is on other CPUs or nodes than before, a line each.
        evicted: Workload to the reason why what it held can no longer be had.
        notes: What else changed, in words.
    """

    allocator: Allocator
    moved: tuple[str, ...] = ()
    evicted: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    notes: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class Recalled:
    """What somebody else's record says of one workload.

    Attributes:
        members: Who of it holds something, in the record's order.
        grants: What they hold, in the words of `Remembers.remembered`.
    """

    members: tuple[str, ...]
    grants: Json


@runtime_checkable
class Remembers(Protocol):
    """Ability of an `Allocator` to outlive the process. Pure, like everything else of it."""

    def remembered(self, workload: str, /) -> Json:
        """What a workload holds, in words of this allocator's choosing; None where that is nothing.

        Everything that makes a difference is in it, fractions included.
        """
        ...

    def restored(self, grants: Mapping[str, Json], /) -> Restored:
        """This allocator, which holds nothing, with grants that `remembered` told of.

        What fits is held as it was. What the machine of today does not allow is
        moved or evicted, and said so; nothing is granted twice.

        Args:
            grants: By workload, in the order of admission.

        Raises:
            DecodeError: Something that `remembered` never answered.
        """
        ...


@runtime_checkable
class Accounts(Protocol):
    """Ability of an `Allocator` to say what is held, by name, and what is left."""

    def holdings(self) -> Sequence[Holding]:
        """What every owner holds, an entry for each resource and set of NUMA nodes.

        No CPU and no id is in the hands of two workloads, unless the amount
        says that its holders have a part of it.
        """
        ...

    def capacity(self) -> Sequence[ResourceUse]:
        """What there is and what is left, an entry for each resource and NUMA node."""
        ...


@runtime_checkable
class Confines(Protocol):
    """Ability of an `Allocator` to say where a container may run, and what it may use."""

    def confinement(self, owner: Owner, /) -> Confinement:
        """What this allocator has to say of an owner's container, held or not; the rest is left open.

        What is `exclusive` in it was granted to this owner.
        """
        ...


@runtime_checkable
class Adopts(Protocol):
    """Ability of an `Allocator` to take in what runs already."""

    def adopted(self, claim: Claim, where: Confinement, /) -> Allocator | Shortfall | NotYet:
        """This allocator with the claim held where its container runs, or why that cannot be.

        Never on anything else than what `where` names, and never on what others
        hold. A claim that asks for nothing here is answered with `self`.
        """
        ...
