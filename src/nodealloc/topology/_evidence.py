"""Values only: what a refusal captures, so that it can be explained later or never."""

from __future__ import annotations

from nodealloc import _attrs as attrs
from nodealloc.topology._claims import Workload
from nodealloc.topology._ports import Allocator
from nodealloc.topology._snapshot import Snapshot

__all__ = ["Evidence"]


@attrs.frozen(kw_only=True)
class Evidence:
    """The context of a refusal; immutable, so it can be looked at any time later.

    It does not travel: its pickle is None, since it holds the whole node.

    Attributes:
        snapshot: The node that was asked.
        workload: Who asked.
        allocators: The node's allocators at that moment, with the members granted
            that came before.
    """

    snapshot: Snapshot
    workload: Workload
    allocators: tuple[Allocator, ...]

    def __reduce__(self) -> tuple[object, ...]:
        return _left_behind, ()

    def __copy__(self) -> Evidence:
        return self

    def __deepcopy__(self, _: object) -> Evidence:
        return self


def _left_behind() -> None:
    return None
