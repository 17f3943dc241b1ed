"""Values only: the three answers of admission, without the refusal's long story."""

from __future__ import annotations

import attrs

from nodealloc.topology._snapshot import Affinities, Snapshot

__all__ = ["Admitted", "NotYet"]


@attrs.frozen(kw_only=True)
class Admitted:
    """The workload fits; commit `snapshot` and it is in.

    Attributes:
        workload: Its key.
        snapshot: The node with the workload in it.
        affinity: Member to the hint that its resources were allocated by.
        repeated: It had been admitted before; `snapshot` is the one that was asked.
    """

    workload: str
    snapshot: Snapshot
    affinity: Affinities
    repeated: bool = False


@attrs.frozen(kw_only=True)
class NotYet:
    """Nobody can say yet; ask again. Nothing is held and nobody is to blame.

    Attributes:
        workload: Its key.
        member: For whose claim an allocator was not ready; "" for all together.
        provider: Name of that allocator.
        resource: What was asked of it.
        reason: What is awaited, in words.
        after_s: When asking again makes sense, in seconds.
    """

    workload: str
    member: str
    provider: str
    resource: str
    reason: str
    after_s: float

    def __str__(self) -> str:
        """One line: who waits for what."""
        return (
            f"{self.workload}: not yet, {self.resource}: {self.reason} (ask again after {self.after_s:g} s)"
        )
