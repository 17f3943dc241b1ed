"""Transition tables and their drawings."""

from __future__ import annotations

import enum
from xml.etree import ElementTree as ET

import attrs
import pytest

from nodealloc.dsw_asw import (
    Transition,
    Transitions,
    as_text,
)
from nodealloc.testing.dsw_asw import check_transitions
from tests.drawn_tables import as_svg


class Door(enum.Enum):
    """States."""

    SHUT = "shut"
    OPEN = "open"
    GONE = "gone"


class Act(enum.Enum):
    """Events."""

    PUSH = "push"
    PULL = "pull"
    BURN = "burn"


DOOR = Transitions(
    name="door",
    start=Door.SHUT,
    rows=(
        Transition(Door.SHUT, Act.PUSH, Door.OPEN),
        Transition(Door.OPEN, Act.PULL, Door.SHUT),
        Transition(Door.OPEN, Act.PUSH, Door.OPEN, "it swings"),
        Transition(Door.SHUT, Act.BURN, Door.GONE),
    ),
)


def test_an_event_that_is_not_taken_changes_nothing() -> None:
    """Every pair outside the table leaves the state as it is."""
    assert DOOR.after(Door.GONE, Act.PUSH) is Door.GONE
    assert not DOOR.takes(Door.GONE, Act.PUSH)
    assert DOOR.takes(Door.OPEN, Act.PUSH)


def test_the_walk_tries_every_pair_against_the_real_thing() -> None:
    """A driver that follows the table passes, one that does not is caught."""

    def drive(events: object) -> Door:
        state = Door.SHUT
        for event in events:  # type: ignore[attr-defined]
            state = DOOR.after(state, event)
        return state

    assert check_transitions(DOOR, ends=[Door.GONE], drive=drive) == 9
    with pytest.raises(AssertionError, match="led to"):
        check_transitions(DOOR, ends=[Door.GONE], drive=lambda _: Door.SHUT)


def test_the_walk_finds_states_that_are_lost_or_stuck() -> None:
    """A state without a way to it, or without a way back, is named."""
    with pytest.raises(AssertionError, match="no way back"):
        check_transitions(DOOR)
    with pytest.raises(AssertionError, match="no events lead"):
        check_transitions(attrs.evolve(DOOR, rows=DOOR.rows[:3]))


def test_two_rows_for_one_pair_are_refused() -> None:
    """A table answers each question once."""
    with pytest.raises(ValueError, match="two rows"):
        attrs.evolve(DOOR, rows=(*DOOR.rows, DOOR.rows[0]))


def test_drawings_hold_every_row() -> None:
    """Text and SVG name each state and event."""
    text, svg = as_text(DOOR), as_svg(DOOR)
    assert text.splitlines()[2].split() == ["shut", "open", "·", "gone"]
    root = ET.fromstring(svg)  # noqa: S314 - drawn two lines above
    words = " ".join(root.itertext())
    assert all(str(state.value) in words for state in Door)
    assert all(str(event.value) in words for event in Act)
