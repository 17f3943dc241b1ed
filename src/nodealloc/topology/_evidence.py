"""Values only: what a refusal captures, so that it can be explained later or never."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from nodealloc.topology._claims import Claim, Workload
from nodealloc.topology._ports import Allocator
from nodealloc.topology._snapshot import Affinities, Snapshot

__all__ = ["Evidence"]


@attrs.frozen(kw_only=True)
class Evidence:
    """The scene of a refusal; immutable, so it can be looked at any time later.

    Attributes:
        snapshot: The node that was asked.
        workload: Who asked.
        claims: The claims that failed: one, or all of the workload.
        allocators: The node's allocators at that moment, with the members granted
            that came before.
        fits: Asks a snapshot about a workload anew: the affinity of each member,
            or None. Passed in, so that explaining does not depend on admitting.
    """

    snapshot: Snapshot
    workload: Workload
    claims: Sequence[Claim]
    allocators: tuple[Allocator, ...]
    fits: Callable[[Snapshot, Workload], Affinities | None]
