"""One behaviour of id sets each."""

from __future__ import annotations

import pickle

import pytest

from nodealloc.errors import DecodeError
from nodealloc.idset import MAX_ID, CPUSet, NodeSet, bits, format_list, parse_list


def test_bits_come_in_ascending_order() -> None:
    """The ids of a mask, smallest first."""
    assert [*bits(0b1000_0110)] == [1, 2, 7]
    assert [*bits(0)] == []


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", []),
        ("0", [0]),
        ("0-3,8", [0, 1, 2, 3, 8]),
        ("8,0-3", [0, 1, 2, 3, 8]),
        ("1,1-2,2", [1, 2]),
        ("+1", [1]),
        ("0" * 5000 + "7", [7]),
    ],
)
def test_lists_are_read(text: str, ids: list[int]) -> None:
    """Any order, overlaps, and a leading plus are accepted."""
    assert [*CPUSet.parse(text)] == ids


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("-1", 0),
        ("0,-1", 2),
        ("5-3", 0),
        ("0,5-3", 2),
        ("1,,2", 2),
        ("1,", 2),
        ("1-", 2),
        ("0-x", 2),
        (" 1", 0),
        ("1_0", 0),
        ("0x1", 0),
        ("65536", 0),
        ("0-65536", 2),
        ("99999999999999999999", 0),
        ("9" * 5000, 0),
        ("1-2-3", 2),
        ("\u0663", 0),
        ("1\n", 0),
    ],
)
def test_junk_is_refused_with_its_place(text: str, position: int) -> None:
    """The error names the character at which the text stops making sense."""
    with pytest.raises(DecodeError) as caught:
        CPUSet.parse(text)
    assert [fault.path for fault in caught.value.faults] == [f"character {position}"]


def test_the_largest_id_is_read() -> None:
    """65535 belongs, 65536 does not."""
    assert [*CPUSet.parse(str(MAX_ID))] == [MAX_ID]
    assert format_list(parse_list(f"0-{MAX_ID}")) == f"0-{MAX_ID}"


@pytest.mark.parametrize("number", [-1, MAX_ID + 1])
def test_ids_out_of_bounds_are_refused(number: int) -> None:
    """Negative ids and ids above the largest are no members."""
    with pytest.raises(ValueError, match="outside 0 to 65535"):
        CPUSet.of(number)


@pytest.mark.parametrize("mask", [-1, 1 << (MAX_ID + 1)], ids=["negative", "too long"])
def test_masks_out_of_bounds_are_refused(mask: int) -> None:
    """The same for masks."""
    with pytest.raises(ValueError, match="the mask is"):
        CPUSet.from_mask(mask)


def test_a_set_does_not_change() -> None:
    """No attribute can be set or deleted."""
    cpus = CPUSet.of(1)
    with pytest.raises(AttributeError, match="does not change"):
        cpus.mask = 3
    with pytest.raises(AttributeError, match="does not change"):
        del cpus.mask


def test_cpus_and_nodes_do_not_mix() -> None:
    """A CPU set and a node set neither combine nor compare equal."""
    with pytest.raises(TypeError):
        CPUSet.of(1) | NodeSet.of(1)  # type: ignore[operator]
    with pytest.raises(TypeError):
        assert CPUSet.of(1) <= NodeSet.of(1)  # type: ignore[operator]
    assert CPUSet.of(1) != NodeSet.of(1)
    assert hash(CPUSet.of(1)) != hash(NodeSet.of(1))


def test_membership_of_a_negative_number_is_false() -> None:
    """Asking for a negative id is an answer, not an error."""
    assert -1 not in CPUSet.of(0)
    assert 0 in CPUSet.of(0)


def test_a_set_survives_pickling() -> None:
    """Pickled and read again, it is equal and of its class."""
    assert pickle.loads(pickle.dumps(NodeSet.of(0, 63, 64))) == NodeSet.of(0, 63, 64)  # noqa: S301 - our own bytes


def test_text_and_repr_are_the_list_format() -> None:
    """`str` is what `parse` reads; `repr` names the class."""
    assert str(CPUSet.of(0, 1, 2, 8)) == "0-2,8"
    assert repr(NodeSet.of(0)) == "NodeSet('0')"


def test_order_is_inclusion() -> None:
    """`<` is a proper subset; disjoint sets are in no order."""
    small, large = CPUSet.of(1), CPUSet.of(1, 2)
    assert small < large <= CPUSet.of(1, 2)
    assert large > small
    assert not large < CPUSet.of(1, 2)
    assert small.isdisjoint(CPUSet.of(3))
