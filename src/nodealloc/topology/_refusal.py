"""A refusal: why a workload may not come in, told as briefly or as fully as wanted."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import attrs

from nodealloc.podspec import Json
from nodealloc.topology._evidence import Evidence
from nodealloc.topology._explanation import Explanation, explanation_of
from nodealloc.topology._hints import TopologyHint
from nodealloc.topology._ports import Shortfall

__all__ = ["TOPOLOGY_AFFINITY_ERROR", "Refusal"]

TOPOLOGY_AFFINITY_ERROR = "TopologyAffinityError"
"""The kubelet's reason when the merged hint is not one that the policy lets in."""


@attrs.frozen(kw_only=True, slots=False)
class Refusal:
    """The workload may not come in; the snapshot that was asked is as it was.

    The short story costs nothing. The long one, `explanation`, is worked out
    from captured values when it is first looked at, and before pickling.

    Attributes:
        workload: Its key.
        member: Whose claim failed; "" when the members were placed together.
        reason: The kubelet's name: `TopologyAffinityError`,
            `UnexpectedAdmissionError`, `SMTAlignmentError`.
        provider: Which allocator refused; "" when only the merge did.
        hint: What the providers' hints had merged to.
        shortfall: What that allocator said, or None.
        steps: How many claims a whole-pod search tried; 0 without a search.
        exhausted: Whether that search stopped at its bound, so that an
            assignment may exist which it did not reach.
        evidence: The scene as it was; None once the refusal has been pickled.
    """

    workload: str
    member: str
    reason: str
    provider: str = ""
    hint: TopologyHint
    shortfall: Shortfall | None = None
    steps: int = 0
    exhausted: bool = False
    evidence: Evidence | None = attrs.field(default=None, eq=False, repr=False)

    @cached_property
    def explanation(self) -> Explanation:
        """The long story as fields."""
        if self.evidence is None:
            raise ValueError(
                "a Refusal made by hand has no evidence to explain; take one that admit returned"
            )
        return explanation_of(self.evidence, self.reason, self.hint, self.shortfall)

    def __str__(self) -> str:
        """The long story in a few lines."""
        return self.explanation.text

    def as_dict(self) -> Mapping[str, Json]:
        """The long story as JSON has it."""
        return self.explanation.as_dict()

    def __getstate__(self) -> dict[str, object]:
        # The evidence holds the whole node; what it tells is a thousandth of it.
        state = dict(self.__dict__)
        if self.evidence is not None:
            state["explanation"] = self.explanation
        return {**state, "evidence": None}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
