"""Laws of id sets, against Python's own sets."""

from __future__ import annotations

import pickle
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodealloc.errors import DecodeError
from nodealloc.idset import MAX_ID, CPUSet, format_list, lowest, parse_list

ids = st.frozensets(st.integers(0, 300) | st.integers(0, MAX_ID), max_size=40)


@given(a=ids, b=ids)
def test_algebra_is_that_of_sets(a: frozenset[int], b: frozenset[int]) -> None:
    """Every operator gives what a frozenset gives."""
    ours, theirs = CPUSet(a), CPUSet(b)
    assert {*(ours | theirs)} == a | b
    assert {*(ours & theirs)} == a & b
    assert {*(ours - theirs)} == a - b
    assert {*(ours ^ theirs)} == a ^ b
    assert (ours <= theirs, ours < theirs, ours >= theirs, ours > theirs) == (a <= b, a < b, a >= b, a > b)
    assert ours.isdisjoint(theirs) == a.isdisjoint(b)
    assert (ours == theirs, len(ours), bool(ours)) == (a == b, len(a), bool(a))


@given(a=ids)
def test_the_list_format_is_a_round_trip(a: frozenset[int]) -> None:
    """Formatting and reading give the set again, ascending."""
    cpus = CPUSet(a)
    assert CPUSet.parse(str(cpus)) == cpus
    assert [*cpus] == sorted(a)
    assert pickle.loads(pickle.dumps(cpus)) == cpus  # noqa: S301 - our own bytes


@given(a=ids)
def test_the_list_format_is_shortest(a: frozenset[int]) -> None:
    """Ranges are maximal: no two parts touch."""
    parts = [part.split("-") for part in format_list(CPUSet(a).mask).split(",") if part]
    bounds = [(int(part[0]), int(part[-1])) for part in parts]
    assert all(before[1] + 1 < after[0] for before, after in pairwise(bounds))


@given(text=st.text(alphabet="0123456789-,+ x\n", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text does anything but give a mask or a `DecodeError`."""
    try:
        mask = parse_list(text)
    except DecodeError:
        return
    assert parse_list(format_list(mask)) == mask


@given(a=ids, b=ids)
def test_equal_sets_hash_alike(a: frozenset[int], b: frozenset[int]) -> None:
    """Hash follows equality."""
    if a == b or CPUSet(a) == CPUSet(b):
        assert hash(CPUSet(a)) == hash(CPUSet(b))
    assert hash(CPUSet(a)) == hash(CPUSet(sorted(a)))


@given(a=ids, count=st.integers(0, 60))
def test_the_lowest_are_the_first(a: frozenset[int], count: int) -> None:
    """So many of the smallest ids, or all."""
    assert [*CPUSet.from_mask(lowest(CPUSet(a).mask, count))] == sorted(a)[:count]


@pytest.mark.parametrize("text", ["0-65535", "65535"])
def test_bounds_are_read(text: str) -> None:
    """The longest mask formats as it was read."""
    assert format_list(parse_list(text)) == text
