"""Descriptions of machines that keep the reader busy, or say what is no number."""

from __future__ import annotations

import math
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from nodealloc.errors import DecodeError
from nodealloc.idset import CPUSet, bits
from nodealloc.machine import (
    Cpu,
    Machine,
    NumaNode,
    machine_from_cadvisor,
    machine_from_json,
    machine_from_text,
    machine_to_json,
)
from nodealloc.machine._synthetic_text import parse_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

EVERY = "0-65535"


def cpus(count: int, **fields: object) -> dict[str, Any]:
    """The entries of this many CPUs."""
    return {str(cpu): {"core": cpu, **fields} for cpu in range(count)}


@pytest.mark.parametrize(
    ("read", "data"),
    [
        (machine_from_json, {"cpus": cpus(300, numa_nodes=EVERY)}),
        (
            machine_from_json,
            {"cpus": cpus(500), "numa_nodes": {str(node): {"cpus": EVERY} for node in range(500)}},
        ),
        (
            machine_from_json,
            {"cpus": cpus(2000, numa_nodes="0-1999"), "numa_nodes": {str(n): {} for n in range(2000)}},
        ),
        (
            machine_from_cadvisor,
            {"topology": [{"node_id": 0, "cores": [{"thread_ids": EVERY, "socket_id": 0}] * 500}]},
        ),
    ],
    ids=["nodes of CPUs", "CPUs of nodes", "all with all", "cAdvisor"],
)
def test_lists_together_name_a_bounded_number_of_ids(
    read: Callable[[Mapping[str, object]], Machine], data: dict[str, Any]
) -> None:
    """Ranges that stand for millions of ids are faults; they are not written out to find that."""
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError, match="all lists together name more than 262144") as caught:
            read(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(caught.value.faults) <= 101
    assert peak < 100 << 20


@pytest.mark.parametrize("read", [machine_from_json, machine_from_cadvisor])
def test_a_larger_description_is_refused_unread_unless_the_caller_allows_it(
    read: Callable[..., Machine],
) -> None:
    """What takes more than 256 KiB is not looked into; `max_bytes` lets it in, and then it is wrong."""
    junk = {"cpus": {"x" * 80_000: 1}, "topology": ["x" * 300_000], "name": "x" * 300_000}
    with pytest.raises(DecodeError, match="larger than 262144 bytes") as caught:
        read(junk)
    assert len(caught.value.faults) == 1
    with pytest.raises(DecodeError) as caught:
        read(junk, max_bytes=1 << 20)
    assert "larger" not in str(caught.value)


def test_two_thousand_cpus_are_a_description_of_ordinary_size() -> None:
    """A machine that large is written and read without a word about its size."""
    machine = machine_from_text("8 sockets x 2 numa x 64 cores x 2 threads")
    assert machine_from_json(machine_to_json(machine)) == machine


def test_a_longer_text_is_refused_unread_unless_the_caller_allows_it() -> None:
    """The text of a machine is a line, not a file; `max_bytes` lets a longer one in."""
    long = " + ".join(["1 core"] * 30_000)
    with pytest.raises(DecodeError, match="longer than 262144 bytes"):
        machine_from_text(long)
    assert len(machine_from_text(long, max_bytes=1 << 20, max_cpus=1 << 20).cpus) == 30_000


class Line(str):
    """A text that counts how often all of it is copied."""

    __slots__ = ()
    copies = 0

    def lower(self) -> str:
        """A copy in small letters."""
        Line.copies += 1
        return super().lower()


def test_a_text_is_copied_once_however_many_words_it_has() -> None:
    """Each word of a sum is found in the same copy, so that cost is linear in the text."""
    Line.copies = 0
    assert len(parse_cores(Line(" + ".join(["1 Core"] * 2000)), 8192)) == 2000
    assert Line.copies <= 1


def test_a_row_of_blanks_is_looked_at_once() -> None:
    """Two hundred thousand blanks before nothing cost no more than as many letters."""
    assert len(machine_from_text("2 cores" + " " * 200_000).cpus) == 2


def test_a_letter_that_grows_moves_no_fault() -> None:
    """A letter whose small form is longer stands where it stood."""
    with pytest.raises(DecodeError, match="character 7"):
        machine_from_text("1 core İ")


@pytest.mark.parametrize("word", ["9" * 100_000 + " cores", "1 " + "a" * 100_000, "1 core " + "b" * 100_000])
def test_a_fault_quotes_the_start_of_a_long_word(word: str) -> None:
    """However long a word is, the message about it is short."""
    with pytest.raises(DecodeError) as caught:
        machine_from_text(word)
    assert len(str(caught.value)) < 1000


def test_a_long_key_is_not_repeated_for_what_stands_below_it() -> None:
    """A key of 100 kB above thousands of ids takes little memory, and its fault is short."""
    data = {"cpus": {"x" * 100_000: {"numa_nodes": list(range(20_000))}}, "numa_nodes": {"y" * 40_000: {}}}
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError) as caught:
            machine_from_json(data, max_bytes=1 << 20)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(str(caught.value)) < 2000
    assert peak < 10 << 20


@pytest.mark.parametrize("far", [math.nan, math.inf, -math.inf, -1, 10.5, 1 << 64])
def test_a_distance_is_a_whole_number(far: float) -> None:
    """What is no number, has no end, no whole value or no sense is refused when the machine is made."""
    node = NumaNode(id=0, cpus=CPUSet.of(0))
    with pytest.raises(ValueError, match="distance from node 0 to 0"):
        Machine(
            cpus=(Cpu(id=0, core=0, socket=0, numa_nodes=(0,)),),
            numa_nodes=(node,),
            distances={0: {0: far}},  # type: ignore[dict-item]  # what a caller without types may pass
        )
    data = {
        "cpus": {"0": {}},
        "numa_nodes": {"0": {"cpus": "0"}},
        "distances": {"nodes": [0], "matrix": [[far]]},
    }
    with pytest.raises(DecodeError, match=r"distances\.matrix\[0\]\[0\]"):
        machine_from_json(data)


def test_a_size_that_is_no_number_is_refused() -> None:
    """NaN bytes of memory are no memory."""
    with pytest.raises(ValueError, match="memory_bytes: expected 0 or more, found nan"):
        NumaNode(id=0, memory_bytes=math.nan)  # type: ignore[arg-type]  # what a caller without types may pass


@pytest.mark.parametrize("ids", [[], [0], [1023], [1024], [0, 1023, 1024, 5000], list(range(0, 66_000, 7))])
def test_ids_of_long_masks_come_in_order(ids: list[int]) -> None:
    """A mask that is cut into parts gives the ids that were put in, ascending."""
    assert list(bits(sum(1 << number for number in ids))) == ids


def test_more_nodes_than_linux_has_are_refused_before_they_are_made() -> None:
    """Of a hundred thousand characters twenty thousand nodes were made, each twice."""
    nodes: dict[str, dict[str, int]] = {str(node): {} for node in range(2000)}
    with pytest.raises(DecodeError, match="2000 NUMA nodes; Linux has at most 1024"):
        machine_from_json({"cpus": {"0": {}}, "numa_nodes": nodes})
    with pytest.raises(DecodeError, match="2000 NUMA nodes; Linux has at most 1024"):
        machine_from_cadvisor({"topology": [{"node_id": node} for node in range(2000)]})


def test_distances_of_many_nodes_are_made_by_rows() -> None:
    """A million pairs, each as far as its sockets say."""
    machine = machine_from_text("2 sockets x 512 numa x 1 core")
    assert machine.distances is not None
    assert [machine.distances[0][node] for node in (0, 1, 511, 512, 1023)] == [10, 12, 12, 32, 32]
    assert [machine.distances[700][node] for node in (0, 511, 512, 700, 1023)] == [32, 32, 12, 10, 12]
