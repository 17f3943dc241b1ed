"""Transition tables: every state, every event, and what becomes of it, in one value."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Mapping
from typing import Generic, TypeVar

from nodealloc import _attrs as attrs
from nodealloc._arguments import several
from nodealloc._typed import typed_fields
from nodealloc.errors import ConfigurationError

__all__ = ["Transition", "Transitions"]

S = TypeVar("S", bound=enum.Enum)
E = TypeVar("E", bound=enum.Enum)


@attrs.frozen
class Transition(Generic[S, E]):
    """One row: in `state`, `event` leads to `to`.

    Attributes:
        state: Before.
        event: What happens.
        to: After; may be the same state where taking the event matters.
        why: Reason, where it is not plain; drawn into the docs.
    """

    state: S
    event: E
    to: S
    why: str = ""


@typed_fields
@attrs.frozen(kw_only=True)
class Transitions(Generic[S, E]):
    """A table of states × events; an event that a state does not take changes nothing.

    The table is what the code reads, what the docs draw (`as_text`), and what
    `nodealloc.testing.dsw_asw.check_transitions` walks.

    Attributes:
        name: What lives this life, for drawings and messages.
        start: State of something that nobody has touched yet.
        rows: At most one a (state, event).

    Example:
        >>> class Lamp(enum.Enum):
        ...     OFF = "off"
        ...     ON = "on"
        >>> class Press(enum.Enum):
        ...     UP = "up"
        ...     DOWN = "down"
        >>> lamp = Transitions(
        ...     name="lamp",
        ...     start=Lamp.OFF,
        ...     rows=(
        ...         Transition(Lamp.OFF, Press.DOWN, Lamp.ON),
        ...         Transition(Lamp.ON, Press.UP, Lamp.OFF),
        ...     ),
        ... )
        >>> lamp.after(Lamp.OFF, Press.DOWN), lamp.after(Lamp.OFF, Press.UP)
        (<Lamp.ON: 'on'>, <Lamp.OFF: 'off'>)
    """

    name: str
    start: S
    rows: tuple[Transition[S, E], ...] = attrs.field(validator=several(Transition, "Transition"))
    _table: Mapping[tuple[S, E], Transition[S, E]] = attrs.field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        table = {(row.state, row.event): row for row in self.rows}
        if len(table) != len(self.rows):
            seen: set[tuple[S, E]] = set()
            for row in self.rows:
                if (row.state, row.event) in seen:
                    raise ConfigurationError(
                        f"{self.name}: {row.state} has two rows for {row.event}; keep one of them"
                    )
                seen.add((row.state, row.event))
        object.__setattr__(self, "_table", table)

    @property
    def states(self) -> tuple[S, ...]:
        """Every state that exists, in the order of their enumeration."""
        return tuple(type(self.start))

    @property
    def events(self) -> tuple[E, ...]:
        """Every event that exists, in the order of their enumeration."""
        return tuple(type(self.rows[0].event))

    def takes(self, state: S, event: E, /) -> bool:
        """Whether `state` has a row for `event`."""
        return (state, event) in self._table

    def after(self, state: S, event: E, /) -> S:
        """The state after `event`; the same one where it is not taken."""
        row = self._table.get((state, event))
        return state if row is None else row.to

    def paths(self) -> Mapping[S, tuple[E, ...]]:
        """Shortest way from the start to every state that can be reached."""
        found: dict[S, tuple[E, ...]] = {self.start: ()}
        queue = deque([self.start])
        while queue:
            state = queue.popleft()
            for event in self.events:
                to = self.after(state, event)
                if to not in found:
                    found[to] = (*found[state], event)
                    queue.append(to)
        return found
