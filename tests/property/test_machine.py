"""Laws of machines: what is written is what is found."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodealloc.errors import DecodeError
from nodealloc.idset import CPUSet
from nodealloc.machine import (
    Discovery,
    Machine,
    NotAMachineError,
    Note,
    as_kubelet_counts,
    by_first_cpu,
    discover,
    draw_svg,
    draw_text,
    machine_from_json,
    machine_from_text,
    machine_to_json,
)
from nodealloc.machine._model import LEVELS
from nodealloc.testing.machine import sysfs_files, write_sysfs
from nodealloc.testing.strategies.machine import cpu_sets, machines


@given(machine=machines(max_cpus=16))
def test_a_written_tree_is_discovered_as_it_was(machine: Machine) -> None:
    """Sysfs, as a kernel would print it, gives the machine back, without remarks."""
    with tempfile.TemporaryDirectory() as folder:
        write_sysfs(machine, Path(folder))
        found = discover(folder)
    # A die of one CPU beside others is what kernels print where there are no dies.
    sizes = {die: len(cpus) for die, cpus in machine.groups("die").items()}
    lone = {die for die, size in sizes.items() if size == 1}
    expected = attrs.evolve(
        machine,
        cpus=tuple(
            attrs.evolve(cpu, die=None) if cpu.die in lone and _has_company(machine, cpu.socket) else cpu
            for cpu in machine.cpus
        ),
    )
    assert by_first_cpu(found.machine) == by_first_cpu(expected)
    assert _unexpected(machine, found) == []


def _unexpected(machine: Machine, found: Discovery) -> list[Note]:
    """Remarks on a whole tree; only distances that were never written may be missed."""
    return [
        note for note in found.notes if machine.distances is not None or not note.where.endswith("distance")
    ]


def _has_company(machine: Machine, socket: int) -> bool:
    return len(machine.groups("socket")[socket]) > 1


@given(machine=machines(max_cpus=16))
def test_discovery_keeps_the_kernels_numbers(machine: Machine) -> None:
    """Sockets and L3 caches go by the kernel's ids, cores by their smallest CPU."""
    with tempfile.TemporaryDirectory() as folder:
        write_sysfs(machine, Path(folder))
        found = discover(folder).machine
    assert [(cpu.core, cpu.socket, cpu.l3) for cpu in found.cpus] == [
        (cpu.core, cpu.socket, cpu.l3) for cpu in machine.cpus
    ]


@given(machine=machines(max_cpus=16), data=st.data())
def test_a_tree_with_holes_gives_a_machine_or_a_clear_refusal(machine: Machine, data: st.DataObject) -> None:
    """Files that vanish, are cut off, or hold NUL bytes or junk never end in anything else."""
    files = sysfs_files(machine)
    broken = data.draw(st.sets(st.sampled_from(sorted(files)), max_size=12))
    junk = st.sampled_from([None, "", "\0", "\0\0\n", "zz", "-1", "99999999", "0-", "ffffffff,ffffffff"])
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            text = data.draw(junk) if name in broken else content
            if text is not None:
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        refused: NotAMachineError | None = None
        try:
            found = discover(folder)
        except NotAMachineError as error:
            refused = error
    if refused is not None:
        assert refused.root == folder
        return
    assert found.machine.online
    assert found.machine.online <= machine.online | machine.offline
    if not broken:
        assert _unexpected(machine, found) == []


@given(machine=machines())
def test_json_is_a_round_trip(machine: Machine) -> None:
    """A machine goes through JSON text and comes back equal."""
    again = machine_from_json(json.loads(json.dumps(machine_to_json(machine))))
    assert again == machine
    assert again.fingerprint() == machine.fingerprint()
    assert hash(again) == hash(machine)


@given(machine=machines())
def test_groups_part_the_cpus(machine: Machine) -> None:
    """Groups of a level are disjoint, and those of cores and sockets hold every CPU."""
    for level in LEVELS:
        together = CPUSet()
        for cpus in machine.groups(level).values():
            assert cpus
            assert together.isdisjoint(cpus)
            together = together | cpus
        if level in {"core", "socket"}:
            assert together == machine.online


@given(machine=machines())
def test_views_are_idempotent_and_keep_the_groups(machine: Machine) -> None:
    """Renaming groups twice changes nothing more, and moves no CPU."""
    renamed = by_first_cpu(machine)
    assert by_first_cpu(renamed) == renamed
    for level in LEVELS:
        assert {*renamed.groups(level).values()} == {*machine.groups(level).values()}
    counted = as_kubelet_counts(machine)
    assert as_kubelet_counts(counted) == counted
    assert {*counted.groups("l3").values()} <= {*machine.groups("l3").values()}


@given(machine=machines(), jitter=st.integers(0, 1 << 20))
def test_the_fingerprint_names_the_shape_alone(machine: Machine, jitter: int) -> None:
    """Memory that differs from boot to boot leaves it; a CPU less does not."""
    nodes = tuple(attrs.evolve(node, memory_bytes=node.memory_bytes + jitter) for node in machine.numa_nodes)
    assert attrs.evolve(machine, numa_nodes=nodes, name="other").fingerprint() == machine.fingerprint()
    if len(machine.cpus) > 1:
        gone = machine.cpus[-1]
        nodes = tuple(attrs.evolve(n, cpus=n.cpus - CPUSet.of(gone.id)) for n in machine.numa_nodes)
        fewer = attrs.evolve(
            machine,
            cpus=machine.cpus[:-1],
            numa_nodes=nodes,
            isolated=machine.isolated - CPUSet.of(gone.id),
        )
        assert fewer.fingerprint() != machine.fingerprint()


@given(data=st.data(), machine=machines())
def test_a_picture_shows_every_cpu_once(data: st.DataObject, machine: Machine) -> None:
    """Text and SVG hold each CPU, online or not, exactly once, whoever holds it."""
    holders = {f"h{n}": data.draw(cpu_sets(machine)) for n in range(data.draw(st.integers(0, 3)))}
    reserved = data.draw(cpu_sets(machine))
    width = data.draw(st.sampled_from([40, 80, 200]))
    lines = draw_text(machine, holders, reserved=reserved, width=width).splitlines()
    body = lines[2 : lines.index("", 2)]
    cells = [word for line in body for word in _after_label(line).split()]
    everyone = [str(cpu) for cpu in machine.online | machine.offline]
    assert sorted(cell for cell in cells if cell.isdigit()) == sorted(everyone)
    svg = draw_svg(machine, holders, reserved=reserved)
    shown = [cell.split(">", 1)[1].split("<")[0] for cell in svg.split('class="n"')[1:]]
    assert sorted(shown) == sorted(everyone)


def _after_label(line: str) -> str:
    """A row without its cache label; titles hold no CPU."""
    text = line.strip()
    if text.startswith(("socket", "die", "NUMA", "no ", "offline")):
        return ""
    return text.split("  ", 1)[1] if text.startswith("L3") else text


@given(
    sockets=st.integers(1, 4),
    nodes=st.integers(1, 3),
    cores=st.integers(1, 5),
    threads=st.integers(1, 8),
    numbering=st.sampled_from(["kernel", "adjacent", "interleaved"]),
)
def test_a_text_gives_what_it_says(
    sockets: int, nodes: int, cores: int, threads: int, numbering: str
) -> None:
    """Counts multiply, and every core has its threads, however they are numbered."""
    text = f"{sockets} sockets x {nodes} numa x {cores} cores x {threads} threads, numbering={numbering}"
    machine = machine_from_text(text)
    assert len(machine.groups("socket")) == sockets
    assert len(machine.numa_nodes) == sockets * nodes
    assert {len(cpus) for cpus in machine.groups("core").values()} == {threads}
    assert machine.online == CPUSet(range(sockets * nodes * cores * threads))


@given(text=st.text(alphabet="0123456789 x×*+(),;=/-:.abcdeinmorstuGiM", max_size=40))
def test_any_text_is_a_machine_or_refused(text: str) -> None:
    """No text does anything but give a machine or a `ValueError` that names the text."""
    try:
        machine = machine_from_text(text)
    except DecodeError as error:
        source = error.source
    else:
        source = "machine text"
        assert machine.online
    assert source == "machine text"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 1 << 70) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["cpus", "numa_nodes", "distances", "nodes", "matrix", "0", "1", "x", "socket", "hugepages"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(
    data=st.dictionaries(st.sampled_from(["cpus", "numa_nodes", "distances", "offline_cpus"]), json_values)
)
def test_any_json_is_a_machine_or_refused(data: dict[str, object]) -> None:
    """Junk ends in a list of faults, never in another exception."""
    try:
        source, machine = "machine JSON", machine_from_json(data)
    except DecodeError as error:
        source, machine = error.source, None
    assert source == "machine JSON"
    assert machine is None or machine.online


@given(machine=machines(), cpu=st.integers(0, 200))
def test_a_picture_refuses_cpus_that_are_not_there(machine: Machine, cpu: int) -> None:
    """A holder of a CPU that the machine has not is an error that names it."""
    if cpu in machine.online | machine.offline:
        return
    with pytest.raises(ValueError, match="are not on the machine"):
        draw_text(machine, {"web": CPUSet.of(cpu)})
