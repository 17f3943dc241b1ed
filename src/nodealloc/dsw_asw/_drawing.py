"""Transition tables as text, drawn from the table that the code reads."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, TypeVar

from nodealloc._typed import typed

if TYPE_CHECKING:
    from nodealloc.dsw_asw._transitions import Transitions

__all__ = ["as_text"]

S = TypeVar("S", bound=enum.Enum)
E = TypeVar("E", bound=enum.Enum)


@typed
def as_text(table: Transitions[S, E], /) -> str:
    """A grid, a line a state and a column an event; `·` where the event changes nothing."""
    header = [table.name, *(str(event.value) for event in table.events)]
    lines = [
        [str(state.value)]
        + [
            str(table.after(state, event).value) if table.takes(state, event) else "·"
            for event in table.events
        ]
        for state in table.states
    ]
    widths = [max(len(line[at]) for line in [header, *lines]) for at in range(len(header))]
    drawn = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
             for line in [header, *lines]]  # fmt: skip
    rule = "  ".join("─" * width for width in widths)
    return "\n".join([drawn[0], rule, *drawn[1:]]) + "\n"
