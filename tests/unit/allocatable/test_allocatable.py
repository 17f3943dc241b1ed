"""What is reserved, and what is left to give."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from nodealloc.allocatable import (
    Reservation,
    ReservationError,
    allocatable,
    reservation_faults,
    usable_by_pods,
)
from nodealloc.allocatable._thresholds import threshold_amount
from nodealloc.idset import CPUSet
from nodealloc.podspec import Quantity


def amounts(**texts: str) -> dict[str, Quantity]:
    """Quantities from texts; `cpu`, `memory`."""
    return {name: Quantity.parse(text) for name, text in texts.items()}


def test_allocatable_of_a_node() -> None:
    """Reservations, hard eviction and huge pages leave the rest; pods may use what eviction keeps free."""
    capacity = {**amounts(cpu="8", memory="16Gi", pid="1000"), "hugepages-2Mi": Quantity.of("1Gi")}
    capacity["ephemeral-storage"] = Quantity.of("100Gi")
    reservation = Reservation(
        kube_reserved=amounts(cpu="500m", memory="1Gi", pid="100"),
        system_reserved=amounts(cpu="500m"),
        hard_eviction={"memory.available": "512Mi", "nodefs.available": "10%", "imagefs.available": "15%"},
    )
    left = allocatable(capacity, reservation)
    assert {name: str(amount) for name, amount in left.items()} == {
        "cpu": "7",
        "memory": "13824Mi",
        "pid": "900",
        "hugepages-2Mi": "1Gi",
        "ephemeral-storage": "96636764000",  # a tenth in single precision is a little more
    }
    usable = usable_by_pods(capacity, reservation)
    assert (str(usable["memory"]), str(usable["ephemeral-storage"])) == ("14Gi", "100Gi")


def test_huge_pages_that_are_reserved_are_gone_from_memory_too() -> None:
    """Whoever they are kept for: a page that is in the pool is no ordinary memory."""
    capacity = amounts(memory="16Gi") | {"hugepages-1Gi": Quantity.of("4Gi")}
    reservation = Reservation(kube_reserved={"hugepages-1Gi": "1Gi"}, system_reserved={"memory": "2Gi"})
    for left in (allocatable(capacity, reservation), usable_by_pods(capacity, reservation)):
        assert {name: str(amount) for name, amount in left.items()} == {
            "memory": "10Gi",
            "hugepages-1Gi": "3Gi",
        }


def test_exact_reserved_cpus_stand_in_for_amounts() -> None:
    """CPUs that are named count instead of amounts of CPU; memory stays."""
    reservation = Reservation(
        kube_reserved=amounts(cpu="3", memory="1Gi"),
        reserved_cpus=CPUSet.parse("0-1"),
        system_reserved=amounts(cpu="2"),
    )
    left = allocatable(amounts(cpu="8", memory="8Gi"), reservation, online=CPUSet.parse("0-7"))
    assert (str(left["cpu"]), str(left["memory"])) == ("6", "7Gi")


def test_every_fault_of_a_reservation_is_named() -> None:
    """Too much, unknown, negative, malformed and offline: all at once."""
    reservation = Reservation(
        kube_reserved=amounts(memory="3Gi", gpu="1"),
        system_reserved=amounts(memory="-1", cpu="1"),
        hard_eviction={
            "memory.available": "2Gi",
            "nodefs.available": "110%",
            "nodefs.inodesFree": "many",
            "memory.free": "1Mi",
        },
        reserved_cpus=CPUSet.of(9),
    )
    capacity = amounts(cpu="4", memory="4Gi")
    faults = reservation_faults(capacity, reservation, online=CPUSet.parse("0-3"))
    for words in (
        "kube-reserved names gpu",
        "system-reserved memory -1 is negative",
        "memory:",
        "nodefs.available '110%'",
        "nodefs.inodesFree 'many'",
        "memory.free is no signal; known are",
        "reserved CPUs 9 are not online",
    ):
        assert any(words in fault for fault in faults), words
    assert len(faults) == 7
    with pytest.raises(ReservationError, match="of 4Gi") as refused:
        allocatable(capacity, reservation)
    assert refused.value.faults == faults[:-1]


def test_percentages_amount_to_what_was_recorded() -> None:
    """Of every threshold that was recorded, `10%%` aside."""
    rows = Path(__file__).parents[2] / "vectors" / "eviction_thresholds.jsonl.gz"
    looked_at = 0
    for line in gzip.decompress(rows.read_bytes()).splitlines():
        row: dict[str, Any] = json.loads(line)
        said: dict[str, str] = row["eviction_hard"] or {}
        kept: list[dict[str, Any]] = row.get("thresholds", [])
        for one in kept:
            text = said.get(one["signal"], "")
            derived = one["signal"] in {"allocatableMemory.available", *row["eviction_soft"]}
            if derived or not text.endswith("%"):
                continue
            if not text[:-1].replace(".", "").isdecimal():
                continue
            found = threshold_amount(text, Quantity.of(row["capacity"]))
            assert found is not None
            assert found.value == one["threshold_at_capacity"], (row["id"], text)
            looked_at += 1
    assert looked_at > 100


def test_what_a_kubelet_takes_for_off_keeps_nothing_free() -> None:
    """As recorded of `0%` and `100%`, each written so; a node with nothing for pods is not meant."""
    rows = Path(__file__).parents[2] / "vectors" / "eviction_thresholds.jsonl.gz"
    off: set[str] = set()
    for line in gzip.decompress(rows.read_bytes()).splitlines():
        row: dict[str, Any] = json.loads(line)
        said: dict[str, str] = row["eviction_hard"] or {}
        if not row.get("error") and row["thresholds"] == [] and [*said] == ["memory.available"]:
            off |= {*said.values()}
    assert {"0%", "100%"} <= off
    capacity = amounts(memory="16Gi")
    for text in off:
        given = allocatable(capacity, Reservation(hard_eviction={"memory.available": text}))
        assert given == capacity, text
    literally = Reservation(hard_eviction={"memory.available": "100.0%"})
    assert allocatable(capacity, literally)["memory"] == Quantity.of(0)


def test_thresholds_that_a_kubelet_refuses_are_none() -> None:
    """Every recorded one of hard eviction with a known signal, an amount of 0 among them."""
    rows = Path(__file__).parents[2] / "vectors" / "eviction_thresholds.jsonl.gz"
    refused: set[str] = set()
    for line in gzip.decompress(rows.read_bytes()).splitlines():
        row: dict[str, Any] = json.loads(line)
        said: dict[str, str] = row["eviction_hard"] or {}
        is_its = not row["eviction_soft"] and not row["eviction_minimum_reclaim"]
        if row.get("error") and is_its and [*said] == ["memory.available"]:
            refused |= {*said.values()}
    assert {"0", "0Mi", "-1Gi", "abc"} <= refused
    assert [text for text in refused if threshold_amount(text, Quantity.of(100)) is not None] == []
    assert threshold_amount("0%", Quantity.of(100)) == Quantity()


@pytest.mark.parametrize("text", ["1m%", "nan%", "inf%", "1_0%", "10%%", "-1%", " 1%", "%", "0x1p-1%"])
def test_what_is_no_percentage_is_refused(text: str) -> None:
    """A number from 0 to 100 is one."""
    assert threshold_amount(text, Quantity.of(100)) is None
