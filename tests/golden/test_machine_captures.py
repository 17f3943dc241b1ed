"""Captured machines: discovery agrees with what another tool says of each."""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodealloc.machine import Machine, by_first_cpu, discover, machine_from_json, machine_to_json
from tests.archives import unpack

Truth = dict[str, Any]


@pytest.fixture(scope="module")
def captured(captures: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Truth]]:
    """Name to unpacked sysfs root and what is true of the machine."""
    folder = tmp_path_factory.mktemp("captures")
    found: dict[str, tuple[Path, Truth]] = {}
    for archive in sorted(captures.glob("*.tar.xz")):
        name = archive.name.removesuffix(".tar.xz")
        with tarfile.open(archive) as packed:
            unpack(packed, folder)
        found[name] = (folder / name / "sys", json.loads((captures / f"{name}.json").read_text()))
    return found


def skipped(truth: Truth, path: str) -> bool:
    """Whether the capture's caveats say that a path departs from the files on purpose."""
    words = path.split(".")
    return any(
        len(rule) <= len(words) and all(map(matches, rule, words))
        for rule in (text.split(".") for text in truth["caveats"]["skip"])
    )


def matches(pattern: str, word: str) -> bool:
    """`*`, `{1,3}` or the word itself."""
    several = re.fullmatch(r"\{(.*)\}", pattern)
    return pattern in {"*", word} or (several is not None and word in several[1].split(","))


def differences(machine: Machine, truth: Truth) -> Iterator[str]:
    """Every entry in which a discovered machine and the truth are not the same."""
    compared = by_first_cpu(machine)
    cpuless = set(truth["caveats"]["cpuless_nodes"])
    if {str(cpu) for cpu in machine.online} != set(truth["cpus"]):
        yield "cpus"
        return
    for key, want in truth["cpus"].items():
        cpu = compared.cpu[int(key)]
        for level in ("socket", "core", "l3", "die", "cluster"):
            if skipped(truth, f"cpus.{key}.{level}") or (level in {"die", "cluster"} and want[level] is None):
                continue
            if getattr(cpu, level) != want[level]:
                yield f"cpus.{key}.{level}: {getattr(cpu, level)}, expected {want[level]}"
        local = [node for node in want["numa_node"] if node not in cpuless]
        if not skipped(truth, f"cpus.{key}.numa_node") and [*cpu.numa_nodes] != local:
            yield f"cpus.{key}.numa_node: {cpu.numa_nodes}, expected {local}"
    yield from node_differences(compared, truth, cpuless)
    if truth["offline_cpus"] != [*machine.offline]:
        yield f"offline_cpus: {machine.offline}"


def node_differences(machine: Machine, truth: Truth, cpuless: set[int]) -> Iterator[str]:
    """The same for NUMA nodes and their distances."""
    got = machine_to_json(machine)
    nodes = got["numa_nodes"]
    assert isinstance(nodes, dict)
    if not skipped(truth, "numa_nodes"):
        if set(nodes) != set(truth["numa_nodes"]):
            yield f"numa_nodes: {sorted(nodes)}"
        for key, want in truth["numa_nodes"].items():
            expected = {**want, "cpus": []} if int(key) in cpuless else want
            for field, value in expected.items():
                entry = nodes[key]
                assert isinstance(entry, dict)
                if not skipped(truth, f"numa_nodes.{key}.{field}") and entry[field] != value:
                    yield f"numa_nodes.{key}.{field}: {entry[field]}, expected {value}"
    told = truth["distances"] is not None and not skipped(truth, "distances")
    if told and got["distances"] != truth["distances"]:
        yield f"distances: {got['distances']}"


def test_every_capture_is_read_as_it_is(captured: dict[str, tuple[Path, Truth]]) -> None:
    """On each captured machine all that is comparable is the same."""
    assert captured
    wrong = {
        name: found
        for name, (root, truth) in captured.items()
        if (found := [*differences(discover(root).machine, truth)])
    }
    assert wrong == {}


def test_every_capture_survives_json(captured: dict[str, tuple[Path, Truth]]) -> None:
    """A discovered machine goes through JSON text and comes back equal."""
    for name, (root, _) in captured.items():
        machine = discover(root, name=name).machine
        assert machine_from_json(json.loads(json.dumps(machine_to_json(machine)))) == machine


def test_what_captures_lack_is_noted(captured: dict[str, tuple[Path, Truth]]) -> None:
    """Trees without NUMA, with an empty L3 mask, and with edited masks say so; a whole tree says nothing."""
    expected = {
        "2arm-2c": "no NUMA nodes",
        "8ia64-2n2s2c": "not who shares it",
        "40intel64-4n10c+pci-conflicts": "masks disagree",
        "32intel64-2p8co2t+8ve": "",
    }
    for name, words in expected.items():
        if name not in captured:
            pytest.skip(f"no capture {name}")
        notes = "\n".join(map(str, discover(captured[name][0]).notes))
        assert words in notes
        assert bool(notes) == bool(words)
