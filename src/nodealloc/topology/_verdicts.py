"""Values only: what admission adds to the verdicts that everybody answers with."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol, cast

from nodealloc import _attrs as attrs
from nodealloc._frozen import freeze
from nodealloc._typed import trusting
from nodealloc.idset import format_list
from nodealloc.podspec import Json
from nodealloc.topology._claims import Claim
from nodealloc.topology._errors import WorkLimitError
from nodealloc.topology._evidence import Evidence
from nodealloc.topology._hints import NumaMask, TopologyHint
from nodealloc.topology._policy import PolicyName
from nodealloc.topology._ports import Shortfall
from nodealloc.topology._snapshot import Affinities, Snapshot
from nodealloc.topology._wording import hint_dict, shortfall_dict, shortfall_line, where
from nodealloc.verdicts import Admitted, Figure, Refused

__all__ = [
    "TOPOLOGY_AFFINITY_ERROR",
    "TOPOLOGY_WORK_LIMIT",
    "Placed",
    "Refusal",
    "misfit",
    "short",
    "undecided",
]

TOPOLOGY_AFFINITY_ERROR = "TopologyAffinityError"
"""The kubelet's reason when the merged hint is not one that the policy lets in."""

TOPOLOGY_WORK_LIMIT = "TopologyWorkLimit"
"""Our reason for a refusal that proves nothing: the counted work was used up before there was an answer."""


def _generation(snapshot: Snapshot) -> str:
    # A whole node in every line of a log would bury what the line is about.
    return f"<Snapshot, generation {snapshot.generation}>"


@attrs.frozen(kw_only=True)
class Placed(Admitted):
    """The workload fits; commit `snapshot` and it is in.

    Attributes:
        workload: Its key.
        snapshot: The node with the workload in it.
        affinity: Member to the hint that its resources were allocated by.
        repeated: It had been admitted before; `snapshot` is the one that was asked.
    """

    workload: str
    snapshot: Snapshot = attrs.field(repr=_generation, hash=False)
    affinity: Affinities = attrs.field(hash=False, validator=freeze)
    repeated: bool = False

    def __str__(self) -> str:
        """One line: which member goes where."""
        places = ", ".join(f"{member} on {where(hint.affinity)}" for member, hint in self.affinity.items())
        return (
            f"{self.workload}: admitted{' before' if self.repeated else ''}, {places or 'asks for nothing'}"
        )


@attrs.frozen(kw_only=True)
class Refusal(Refused):
    """The workload may not come in; the snapshot that was asked is as it was.

    This is the short story, from what admission had at hand: printing, logging
    and pickling it asks nobody, and its words are made when they are first read.
    `nodealloc.topology.explain` works out the long one, in the process in which
    `admit` answered.

    Attributes:
        reason: The kubelet's name: `TopologyAffinityError`,
            `UnexpectedAdmissionError`, `SMTAlignmentError`; ours is
            `TopologyWorkLimit`, which claims no proof.
        message: What is lacking where, in a sentence for people.
        figures: `policy` and `nodes` (that the hints merged to, as a list of ids
            or `any`); of a shortfall also `provider`, `resource`, `wanted` and
            `free`, and `nodes` are those that were allowed.
        workload: Its key.
        member: Whose claim failed; "" when the members were placed together.
        claims: The claims that failed: one, or all of the workload.
        policy: By which the node goes.
        provider: Which allocator refused; "" when only the merge did.
        hint: What the providers' hints had merged to.
        shortfall: What that allocator said, or None.
        steps: How many claims a whole-pod search tried; 0 without a search.
        exhausted: Whether the merge or that search stopped at its bound, so
            that an assignment may exist which was not reached.
        evidence: The context as it was; None once the refusal has been pickled.
    """

    workload: str
    member: str
    claims: tuple[Claim, ...] = attrs.field(repr=False, hash=False)
    policy: PolicyName
    provider: str = ""
    hint: TopologyHint
    shortfall: Shortfall | None = None
    steps: int = 0
    exhausted: bool = False
    evidence: Evidence | None = attrs.field(default=None, eq=False, repr=False)

    if not TYPE_CHECKING:  # type checkers would take it for a class that has any attribute

        def __getattr__(self, name: str) -> str | Mapping[str, Figure]:
            """The message and the figures where they were left for later; Python asks for what is lacking."""
            if name not in _WORDS or not hasattr(self, "shortfall"):  # never filled
                raise AttributeError(f"a {type(self).__name__} has no {name}", name=name, obj=self)
            told = _told(self)
            _set(self, "message", told.message)
            _set(self, "figures", told.figures)
            return getattr(told, name)

    def __str__(self) -> str:
        """Two lines: who was refused what for which reason, and the main figures."""
        who = f"{self.workload}/{self.member}" if self.member else self.workload
        by = f" by {self.provider}" if self.provider else ""
        return f"{who}: {self.reason}{by}: {self.message}\n  {self._asked()}{self._searched()}"

    def as_dict(self) -> Mapping[str, Json]:
        """The short story as JSON has it; a set of nodes is a list of ids, None is null."""
        return {
            "workload": self.workload,
            "members": [claim.owner.member for claim in self.claims],
            "reason": self.reason,
            "message": self.message,
            "policy": self.policy.value,
            "provider": self.provider,
            "hint": hint_dict(self.hint),
            "shortfall": None if self.shortfall is None else shortfall_dict(self.shortfall),
            "steps": self.steps,
            "exhausted": self.exhausted,
        }

    def _asked(self) -> str:
        if self.shortfall is not None:
            figures = f"{shortfall_line(self.shortfall)}; " if self.shortfall.detail else ""
            return f"{figures}policy {self.policy.value}"
        asked = [
            ", ".join(f"{amount} {resource}" for resource, amount in claim.amounts.items())
            for claim in self.claims[:_SHOWN]
        ]
        more = f" and {len(self.claims) - _SHOWN} members more" if len(self.claims) > _SHOWN else ""
        return f"wanted: {' + '.join(asked)}{more}; merged hint: {where(self.hint.affinity)}, not preferred"

    def _searched(self) -> str:
        if not self.steps:
            return ""
        bound = ", up to its bound" if self.exhausted else ""
        return f"; claims tried by a search: {self.steps}{bound}"


_WORDS: Final = ("message", "figures")
_set = object.__setattr__


class _MakesRefusal(Protocol):
    """Makes a refusal that finds its words when somebody reads them."""

    def __call__(
        self,
        *,
        reason: str,
        workload: str,
        member: str,
        claims: tuple[Claim, ...],
        policy: PolicyName,
        provider: str,
        hint: TopologyHint,
        shortfall: Shortfall | None,
        evidence: Evidence,
    ) -> Refusal: ...


_wordless = cast("_MakesRefusal", trusting(Refusal, *_WORDS))

_SHOWN = 4
"""Members whose wishes are printed; the fields have them all."""

_NEEDED: Mapping[PolicyName, str] = {
    PolicyName.RESTRICTED: "no set of NUMA nodes is preferred for all that was asked",
    PolicyName.SINGLE_NUMA_NODE: "no single NUMA node is preferred for all that was asked",
}


def misfit(evidence: Evidence, claims: tuple[Claim, ...], hint: TopologyHint) -> Refusal:
    """The refusal of a merged hint that the policy does not let in."""
    return _refusal(reason=TOPOLOGY_AFFINITY_ERROR, evidence=evidence, claims=claims, hint=hint)


def undecided(evidence: Evidence, claims: tuple[Claim, ...], limit: WorkLimitError) -> Refusal:
    """The refusal of claims that took more work than may be spent; it proves nothing."""
    policy = evidence.snapshot.policy.name
    return Refusal(
        reason=TOPOLOGY_WORK_LIMIT,
        message=str(limit),
        figures={"policy": policy.value, "nodes": "any", "work_units": limit.units},
        workload=evidence.workload.key,
        member=claims[0].owner.member if len(claims) == 1 else "",
        claims=claims,
        policy=policy,
        hint=TopologyHint(affinity=None, preferred=False),
        exhausted=True,
        evidence=evidence,
    )


def short(evidence: Evidence, claim: Claim, hint: TopologyHint, provider: str, lack: Shortfall) -> Refusal:
    """The refusal of a claim that one allocator cannot grant where the hints had merged to."""
    if lack.__class__ is not Shortfall or not lack.reason or (lack.nodes or 0) < 0:
        _short(evidence.snapshot.policy.name, provider, lack)  # says what is wrong, if anything is
    return _refusal(
        reason=lack.reason, evidence=evidence, claims=(claim,), hint=hint, provider=provider, shortfall=lack
    )


def _refusal(
    *,
    reason: str,
    evidence: Evidence,
    claims: tuple[Claim, ...],
    hint: TopologyHint,
    provider: str = "",
    shortfall: Shortfall | None = None,
) -> Refusal:
    """A refusal of what was looked at elsewhere; message and figures are left for later."""
    return _wordless(
        reason=reason,
        workload=evidence.workload.key,
        member=claims[0].owner.member if len(claims) == 1 else "",
        claims=claims,
        policy=evidence.snapshot.policy.name,
        provider=provider,
        hint=hint,
        shortfall=shortfall,
        evidence=evidence,
    )


def _told(refusal: Refusal) -> Refused:
    """What a refusal says in words."""
    if refusal.shortfall is None:
        return _misfit(refusal.policy, refusal.hint.affinity)
    return _short(refusal.policy, refusal.provider, refusal.shortfall)


@lru_cache(maxsize=1024)
def _misfit(policy: PolicyName, nodes: NumaMask | None) -> Refused:
    # A fleet refuses a pod for the same few reasons; each is put into words once.
    found = "none in particular" if nodes is None else where(nodes)
    return Refused(
        reason=TOPOLOGY_AFFINITY_ERROR,
        message=f"{_NEEDED[policy]}, the hints merge to {found}; policy {policy.value} needs one",
        figures={"policy": policy.value, "nodes": "any" if nodes is None else format_list(nodes)},
    )


def _short(policy: PolicyName, provider: str, lack: Shortfall) -> Refused:
    return Refused(
        reason=lack.reason,
        message=lack.detail or shortfall_line(lack),
        figures={
            "policy": policy.value,
            "provider": provider,
            "resource": lack.resource,
            "wanted": lack.wanted,
            "free": lack.free,
            "nodes": "any" if lack.nodes is None else format_list(lack.nodes),
        },
    )
