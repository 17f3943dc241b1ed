"""Values only: who asks, and for how much. Knows nothing of pods."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import add
from typing import TypeVar

from nodealloc import _attrs as attrs
from nodealloc._arguments import check, choice, wrong
from nodealloc._frozen import Frozen, frozen
from nodealloc._peak import peak as _peak
from nodealloc._typed import typed_fields, typed_on_error
from nodealloc.errors import ConfigurationError
from nodealloc.podspec import Amounts, Resources, resources

__all__ = ["Claim", "ClaimKind", "Owner", "Workload", "lent", "peak", "with_claims"]

H = TypeVar("H")


class ClaimKind(enum.Enum):
    """When a member of a workload runs, which decides what may be shared with it."""

    INIT = "init"
    """Runs to its end before the next member starts; what it held may be reused."""
    SIDECAR = "sidecar"
    """Starts before the members behind it and stays; shares nothing."""
    MAIN = "main"
    """Runs together with all other main members."""


@typed_fields
@attrs.frozen(order=True)
class Owner:
    """Who holds something: a member of a workload (a container of a pod, a rank of a job).

    Attributes:
        workload: Unique on the node for all time (a pod's uid, a job id with its start).
        member: Unique inside the workload.
    """

    workload: str
    member: str

    def __attrs_post_init__(self) -> None:
        if self.workload.__class__ is not str or self.member.__class__ is not str:
            check("Owner.workload", self.workload, str, "a text, such as a pod's uid")
            check("Owner.member", self.member, str, "a text, such as a container's name")


@typed_fields
@attrs.frozen(kw_only=True)
class Claim:
    """What one member asks of the node.

    Attributes:
        owner: Who asks.
        amounts: Resource name to exact amount: `cpu` in CPUs, `memory` and
            `hugepages-*` in bytes, devices by count.
        kind: When the member runs.
        exclusive: Whether it may hold resources for itself alone (for pods: QoS
            class Guaranteed).
        reuse: Members of the same workload that have ended when this one starts
            (for pods: the init containers before it, sidecars left out). What
            they were granted may be granted again, as far as no other member
            holds it for good.
        settings: Words for one allocator, such as a per-container policy; an
            allocator ignores what it does not know.
    """

    owner: Owner
    amounts: Resources
    kind: ClaimKind = ClaimKind.MAIN
    exclusive: bool = True
    reuse: tuple[str, ...] = ()
    settings: Mapping[str, str] = attrs.field(factory=Frozen[str, str])

    def __attrs_post_init__(self) -> None:
        # One look at all of them: a claim is made for each container of each admission.
        given = (self.owner.__class__, self.kind.__class__, self.reuse.__class__)
        if given != _KINDS or self.settings.__class__ is dict or self.amounts.__class__ is not Amounts:
            object.__setattr__(self, "amounts", resources(self.amounts))
            object.__setattr__(self, "settings", frozen(self.settings))
            check("Claim.owner", self.owner, Owner, "an Owner(workload, member)")
            object.__setattr__(self, "kind", choice(ClaimKind, self.kind, "Claim.kind"))
            check("Claim.reuse", self.reuse, tuple, "a tuple of names of members")
        if self.reuse and self.owner.member in self.reuse:
            raise ConfigurationError(
                f"Claim.reuse of {self.owner.member}: names the member itself; "
                "name those that have ended when it starts"
            )


@typed_fields
@attrs.frozen(kw_only=True)
class Workload:
    """Claims that are admitted together or not at all, in the order they start.

    Attributes:
        key: The `Owner.workload` of every claim.
        claims: Init members and sidecars first, then main members; none asks
            for nothing.

    Raises:
        ConfigurationError: A claim of another workload, or two claims of one member.
    """

    key: str
    claims: tuple[Claim, ...]

    def __attrs_post_init__(self) -> None:
        # What is granted is released by the key: a claim of another would hold it for ever.
        try:
            owners = [claim.owner for claim in self.claims]
        except (AttributeError, TypeError):
            raise wrong("Workload.claims", self.claims, "a tuple, a Claim in each place") from None
        if len({owner.member for owner in owners}) != len(owners):
            listed = ", ".join(owner.member for owner in owners)
            raise ConfigurationError(
                f"workload {self.key!r} has the members {listed}; each needs a name of its own"
            )
        for owner in owners:
            if owner.workload != self.key:
                raise ConfigurationError(
                    f"workload {self.key!r} has a claim of {owner.workload}/{owner.member}; "
                    "give all claims the workload's key"
                )


def with_claims(asked: Workload, /) -> Workload:
    """A workload that somebody asks for, which has claims.

    One without any stands for what was taken over before anybody told of its claims.

    Raises:
        ConfigurationError: It has none, or no key, or it is no workload.
    """
    if asked.__class__ is not Workload:
        raise wrong("what is admitted", asked, "a Pod or a Workload; Pod.from_manifest reads a manifest")
    if not asked.claims:
        raise ConfigurationError(
            f"workload {asked.key!r} has no claims: give one for each member, "
            "with empty amounts where a member asks for nothing"
        )
    if not asked.key:
        raise ConfigurationError(
            f"the workload of {asked.claims[0].owner.member!r} has no key; "
            "give one of its own, or the next one without would be taken for it"
        )
    return asked


_KINDS = (Owner, ClaimKind, tuple)

# Members of an enumeration are slow to look up before Python 3.12.
_MAIN, _SIDECAR = ClaimKind.MAIN, ClaimKind.SIDECAR


@typed_on_error
def peak(claims: Sequence[Claim], amount: Callable[[Claim], int], /) -> int:
    """Largest total that the claims hold at one moment.

    Each init member runs beside the sidecars before it; main members run beside
    all sidecars.

    Source: KEP-753, "Resources calculation for scheduling and pod admission".
    """
    together = [amount(claim) for claim in claims if claim.kind is _MAIN]
    if len(together) == len(claims):
        return sum(together)
    return _peak(
        [(amount(claim), claim.kind is _SIDECAR) for claim in claims if claim.kind is not _MAIN],
        together,
        nothing=0,
        add=add,
        most=max,
    )


@typed_on_error
def lent(claim: Claim, held: Iterable[tuple[str, H]], /) -> tuple[list[H], list[H]]:
    """What members that have ended lend to a claim, and what the others of its workload keep.

    What the claim's own member holds is in neither. An allocator grants out of
    what is lent and not kept, and no member's twice.

    Args:
        claim: Who asks, and which members have ended (`Claim.reuse`).
        held: Each member of its workload with something that it holds.

    Source: kubelet ``cm/cpumanager/policy_static.go``, ``cm/memorymanager`` and
    ``cm/devicemanager``, each in its own words.
    """
    ended: list[H] = []
    kept: list[H] = []
    for member, what in held:
        if member in claim.reuse:
            ended.append(what)
        elif member != claim.owner.member:
            kept.append(what)
    return ended, kept
