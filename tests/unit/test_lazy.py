"""Attributes that are worked out once, when first asked for."""

from __future__ import annotations

import pickle

import attrs

from nodealloc._derived import Derives
from nodealloc._lazy import lazy
from nodealloc.cpuset import CpuAllocator
from nodealloc.machine import machine_from_text
from nodealloc.memblocks import MemoryAllocator


@attrs.frozen(slots=False)
class Disc:
    """A value with something to work out."""

    radius: int

    def __getstate__(self) -> dict[str, object]:
        return {"radius": self.radius}

    @lazy
    def area(self) -> int:
        """In thirds."""
        ASKED.append(self.radius)
        return 3 * self.radius * self.radius


ASKED: list[int] = []


def test_the_work_is_done_once_and_not_before_it_is_asked_for() -> None:
    """Making the value asks for nothing; asking twice works once."""
    ASKED.clear()
    disc = Disc(2)
    assert not ASKED
    assert (disc.area, disc.area) == (12, 12)
    assert ASKED == [2]


def test_what_was_worked_out_is_no_part_of_the_value() -> None:
    """Equality, hash and pickle are as if nobody had asked."""
    asked, fresh = Disc(2), Disc(2)
    before = pickle.dumps(asked)
    assert asked.area == 12
    assert asked == fresh
    assert hash(asked) == hash(fresh)
    assert pickle.dumps(asked) == before
    assert pickle.loads(before).area == 12  # noqa: S301 - our own bytes


def test_the_class_shows_the_attribute_with_its_words() -> None:
    """Documentation is read off the class."""
    assert Disc.area.__doc__ == "In thirds."


def test_allocators_have_their_tables_before_the_first_pod_comes() -> None:
    """What depends on the machine alone is a field, worked out with the allocator, not while a pod waits."""
    machine = machine_from_text("2 numa x 4 cores, memory=4Gi")
    cpus, memory = CpuAllocator.of(machine), MemoryAllocator.of(machine)
    for one in (cpus.policy, cpus.state, memory.state, memory.state.layout):
        assert not [name for name, attribute in vars(type(one)).items() if isinstance(attribute, lazy)]
        assert not hasattr(one, "__dict__")


def test_what_a_machine_has_is_worked_out_again_where_a_pickle_is_read() -> None:
    """Tables stay at home; the value that comes out is equal, and has its own."""
    machine = machine_from_text("4 numa x 4 cores, memory=4Gi")
    for value in (CpuAllocator.of(machine).policy, MemoryAllocator.of(machine).state.layout):
        assert isinstance(value, Derives)
        carried = pickle.dumps(value)
        again = pickle.loads(carried)  # noqa: S301 - our own bytes
        assert again == value
        assert b"NodeSets" not in carried
        assert b"HintTable" not in carried
    assert again.columns[0b1010] == (1, 3)
