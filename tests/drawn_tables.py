"""Transition tables as SVG: the pictures in the docs."""

from __future__ import annotations

import enum
from html import escape
from typing import TypeVar

from nodealloc.dsw_asw import Transitions

S = TypeVar("S", bound=enum.Enum)
E = TypeVar("E", bound=enum.Enum)

_WIDTH, _ROW, _BOX = 760, 92, 170


def as_svg(table: Transitions[S, E], /) -> str:
    """A picture that stands alone: a box a state, top to bottom, arrows with their events.

    Arrows that lead on stand on the right, arrows that lead back on the left;
    events that share their ends share an arrow.
    """
    order = list(table.paths())
    order += [state for state in table.states if state not in order]
    labels: dict[tuple[S, S], list[str]] = {}
    for row in table.rows:
        labels.setdefault((row.state, row.to), []).append(str(row.event.value))
    boxes = "".join(_box(at, str(state.value)) for at, state in enumerate(order))
    arrows = "".join(
        _arrow(order.index(pair[0]), order.index(pair[1]), ", ".join(events), number)
        for number, (pair, events) in enumerate(labels.items())
    )
    height = _ROW * len(order) + 20
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'font-family="sans-serif" font-size="11"><title>{escape(table.name)}</title>'
        '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker></defs>'
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>'
    )
    return f"{head}{arrows}{boxes}</svg>\n"


def _box(at: int, name: str) -> str:
    left, top = (_WIDTH - _BOX) // 2, at * _ROW + 15
    return (
        f'<rect x="{left}" y="{top}" width="{_BOX}" height="34" rx="8" fill="#eef3fb" stroke="#4a6da7"/>'
        f'<text x="{_WIDTH // 2}" y="{top + 22}" text-anchor="middle" font-size="13">{escape(name)}</text>'
    )


def _arrow(start: int, end: int, label: str, number: int) -> str:
    side = 1 if end >= start else -1
    edge = _WIDTH // 2 + side * _BOX // 2
    # Each arrow ends at a height of its own, so that two of them can be told apart.
    shift = number % 5 * 5
    top, bottom = start * _ROW + 20 + shift, end * _ROW + 20 + shift
    if start == end:
        bottom += 12
    reach = edge + side * (40 + 26 * abs(end - start) + number % 3 * 14)
    middle, anchor = (top + bottom) // 2, "start" if side > 0 else "end"
    at = (edge + 3 * reach) // 4 + side * 4
    return (
        f'<path d="M{edge},{top} C{reach},{top} {reach},{bottom} {edge},{bottom}" '
        'fill="none" stroke="#555" marker-end="url(#tip)"/>'
        f'<text x="{at}" y="{middle + 4}" text-anchor="{anchor}" '
        f'stroke="white" stroke-width="4" paint-order="stroke">{escape(label)}</text>'
    )
