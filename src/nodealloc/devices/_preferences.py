"""Values only: what a plugin is asked about which devices go well together, and its answers.

Choosing devices is pure; asking a plugin is not. So the choice notes the
questions that it could not answer (`DeviceAllocator.unanswered`), somebody
with a connection asks them, and the choice is made once more with the answers
at hand. Without anybody who asks, the choice stands as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from nodealloc import _attrs as attrs
from nodealloc._typed import typed_fields

__all__ = ["Answers", "PreferenceQuestion"]


@typed_fields
@attrs.frozen(kw_only=True)
class PreferenceQuestion:
    """One question for `GetPreferredAllocation`.

    Attributes:
        resource: Whose plugin.
        available: Ids to choose from, ascending, the settled ones included.
        must_include: Ids that are settled already, ascending.
        size: How many ids the answer should have, the settled ones included.
    """

    resource: str
    available: tuple[str, ...]
    must_include: tuple[str, ...]
    size: int


Answers: TypeAlias = Mapping[PreferenceQuestion, tuple[str, ...]]
"""Ids that a plugin prefers, by question; empty when it had nothing to say."""
