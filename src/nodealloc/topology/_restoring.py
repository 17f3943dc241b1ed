"""What a start would do with what an allocator was remembered to hold: keep, move or evict."""

from __future__ import annotations

from typing import Generic, TypeVar, cast

from nodealloc import _attrs as attrs
from nodealloc.topology._abilities import Restored
from nodealloc.topology._claims import Owner
from nodealloc.topology._ports import Allocator

__all__ = ["Eviction", "Move", "RestorePlan"]

H = TypeVar("H")
A = TypeVar("A", bound=Allocator)


@attrs.frozen(kw_only=True)
class Move(Generic[H]):
    """An owner that can stay, on other CPUs or nodes.

    Attributes:
        owner: Who.
        before: What it was remembered to hold.
        after: What it is to have; what everybody has where it holds nothing any more.
        reason: Why, with figures.
    """

    owner: Owner
    before: H
    after: H
    reason: str


@attrs.frozen(kw_only=True)
class Eviction(Generic[H]):
    """An owner that has no place any more, with its whole workload.

    Attributes:
        owner: Who.
        before: What it was remembered to hold.
        reason: Why, with figures.
    """

    owner: Owner
    before: H
    reason: str


@attrs.frozen(kw_only=True)
class RestorePlan(Generic[H, A]):
    """What a start would do with what was remembered; nothing has been done yet.

    Attributes:
        keep: Owners that hold what they held.
        move: Owners that get something else of the same kind.
        evict: Owners whose workload has to end.
        notes: What else changed, in words.
        allocator: The allocator after all of it: use it to accept the plan.
    """

    keep: tuple[Owner, ...] = ()
    move: tuple[Move[H], ...] = ()
    evict: tuple[Eviction[H], ...] = ()
    notes: tuple[str, ...] = ()
    allocator: A

    @property
    def is_clean(self) -> bool:
        """Whether everything stays as it was."""
        return not self.move and not self.evict

    def restored(self, what: str, /) -> Restored:
        """The plan as a node takes it; `what` is moved, in a word (`CPUs`)."""
        return Restored(
            allocator=self.allocator,
            moved=tuple(
                f"{one.owner.workload}/{one.owner.member}: {what} {_shown(one.before)} "
                f"to {_shown(one.after)}: {one.reason}"
                for one in self.move
            ),
            evicted={one.owner.workload: one.reason for one in self.evict},
            notes=self.notes,
        )

    def __str__(self) -> str:
        """One line for each change, and one for what stays."""
        lines = [f"keep {len(self.keep)}"]
        lines += [
            f"move {one.owner.workload}/{one.owner.member} from {_shown(one.before)} to "
            f"{_shown(one.after)}: {one.reason}"
            for one in self.move
        ]
        lines += [
            f"evict {one.owner.workload}/{one.owner.member} from {_shown(one.before)}: {one.reason}"
            for one in self.evict
        ]
        return "\n".join([*lines, *self.notes])


def _shown(held: object) -> str:
    """Several things one after the other; nothing is held anywhere."""
    if isinstance(held, tuple):
        return ", ".join(map(str, cast("tuple[object, ...]", held))) or "anywhere"
    return str(held)
