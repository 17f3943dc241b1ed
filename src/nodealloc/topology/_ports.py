"""Protocols that admission calls: whoever gives hints and allocates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from nodealloc import _attrs as attrs
from nodealloc._arguments import check
from nodealloc._frozen import freeze
from nodealloc._typed import typed_fields
from nodealloc.topology._claims import Claim
from nodealloc.topology._hints import Hints, TopologyHint
from nodealloc.verdicts import NotYet

__all__ = ["Allocator", "Availability", "Reports", "Serves", "Shortfall"]

_UNEXPECTED: Final = "UnexpectedAdmissionError"


@typed_fields
@attrs.frozen(kw_only=True, slots=False)  # a dict is filled faster than slots
class Shortfall:
    """Why one allocator cannot grant one claim on the nodes that it was given.

    Attributes:
        resource: `cpu`, `memory`, `hugepages-2Mi`, `example.com/gpu`.
        wanted: In the resource's unit: whole CPUs, bytes, devices; fractions
            rounded up.
        free: What there was on the nodes that were allowed, same unit, rounded
            down.
        nodes: Those nodes as a mask; None for "any".
        reason: The kubelet's name: `UnexpectedAdmissionError`, `SMTAlignmentError`.
        detail: What, where, and what to do, in a sentence for people.
    """

    resource: str
    wanted: int
    free: int
    nodes: int | None = None
    reason: str = _UNEXPECTED
    detail: str = ""

    @classmethod
    def told_by(
        cls,
        tell: Callable[[], str],
        /,
        *,
        resource: str,
        wanted: int,
        free: int,
        nodes: int | None = None,
        reason: str = _UNEXPECTED,
    ) -> Shortfall:
        """A shortfall whose `detail` is made when somebody first reads it: most refusals nobody reads.

        Args:
            tell: Makes the sentence, of values that nobody changes; the same however often it is called.
            resource: As the fields, which are not looked at here.
            wanted: The same.
            free: The same.
            nodes: The same.
            reason: The same.
        """
        made = cls.__new__(cls)
        made.__dict__.update(
            resource=resource, wanted=wanted, free=free, nodes=nodes, reason=reason, _tell=tell
        )
        return made

    if not TYPE_CHECKING:  # type checkers would take it for a class that has any attribute

        def __getattr__(self, name: str) -> str:
            """`detail`, where it was left for later; Python asks here for what an instance lacks."""
            held = self.__dict__
            if name != "detail" or "_tell" not in held:
                raise AttributeError(f"a {type(self).__name__} has no {name}", name=name, obj=self)
            told = check("what Shortfall.told_by tells", held["_tell"](), str, "a text")
            held["detail"] = told
            return told

    def __getstate__(self) -> Mapping[str, object]:
        """The fields alone, `detail` among them."""
        return {field.name: getattr(self, field.name) for field in attrs.fields(type(self))}


class Allocator(Protocol):
    """A policy together with its state, as one immutable value.

    Every method is a pure function of the value and its arguments, may be
    repeated, and changes nothing: it answers with another value. Instances can
    be pickled and shared between threads.
    """

    @property
    def name(self) -> str:
        """Unique among the allocators of a snapshot; names the provider in explanations."""
        ...

    def hints(self, claims: Sequence[Claim], /) -> Hints | NotYet:
        """Where the claims could go: one claim, or all of a workload (scope `pod`).

        For several claims the answer is for what they hold at their peak (see
        `nodealloc.topology.peak`). A resource that this allocator does not
        manage, or an amount that it does not pin, is left out. *Not yet* is the
        answer of admission as it stands; its `blocker` is the resource.
        """
        ...

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> Allocator | Shortfall | NotYet:
        """This allocator with the claim granted on these nodes.

        An affinity of None allows any node. A claim that is held already is
        answered with an equal value. A claim that asks for nothing here is
        answered with `self`.
        """
        ...

    def release(self, workload: str, member: str | None = None, /) -> Allocator:
        """This allocator without what the member, or the whole workload, holds.

        Something that another member still holds stays held. An unknown
        workload or member is answered with an equal value.
        """
        ...


@typed_fields
@attrs.frozen(kw_only=True)
class Availability:
    """One resource as a refusal shows it.

    Attributes:
        resource: Its name.
        wanted: What the claims ask for at their peak, in the resource's unit;
            fractions rounded up.
        free: NUMA node id to what is free there, same unit, rounded down; -1
            for what has no node.
        allocatable: NUMA node id to what could ever be granted there, same unit.
    """

    resource: str
    wanted: int
    free: Mapping[int, int] = attrs.field(validator=freeze)
    allocatable: Mapping[int, int] = attrs.field(validator=freeze)


@runtime_checkable
class Serves(Protocol):
    """Optional ability of an `Allocator`: to say which resources are its business.

    Whoever does not say is asked to allocate some, which costs more.
    """

    def serves(self, resource: str, /) -> bool:
        """Whether a claim for this resource is answered here: granted, refused, or put off."""
        ...


@runtime_checkable
class Reports(Protocol):
    """Optional ability of an `Allocator`: to say what is free where."""

    def availability(self, claims: Sequence[Claim], /) -> Sequence[Availability]:
        """One entry for each resource that the claims ask of this allocator."""
        ...
