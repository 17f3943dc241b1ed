"""The picture of a node, as text and as SVG."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import attrs
import pytest

from nodealloc.idset import CPUSet
from nodealloc.machine import draw_svg, draw_text, machine_from_text

PARSE = CPUSet.parse


def test_four_cpus_fit_on_a_few_lines() -> None:
    """Holders have letters, the pool and the reserved CPUs signs, and a legend explains them."""
    text = draw_text(
        machine_from_text("4 cores", name="small"), {"web/api": PARSE("2-3")}, reserved=PARSE("0")
    )
    assert text.splitlines() == [
        "small: 4 CPUs · 4 cores · 1 socket · 1 NUMA node · 1 L3 cache · 16 GiB",
        "",
        "socket 0",
        "  NUMA node 0 · 16 GiB",
        "    0 #  1 ·  2 A  3 A",
        "",
        "A  web/api      2 CPUs  2-3",
        "#  reserved     1 CPU   0",
        "·  shared pool  1 CPU   1",
    ]


def test_a_column_is_a_core() -> None:
    """Threads of one core stand below each other, beside their cache."""
    text = draw_text(machine_from_text("1 socket x 2 l3 x 2 cores x 2 threads"), {"a": PARSE("1,5")})
    assert text.splitlines()[4:8] == [
        "    L3 0     0 ·  1 A",
        "             4 ·  5 A",
        "    L3 1     2 ·  3 ·",
        "             6 ·  7 ·",
    ]


def test_256_cpus_fit_on_a_screen() -> None:
    """Two lines for each of sixteen caches, none wider than asked."""
    machine = machine_from_text("2 sockets x 8 l3 x 8 cores x 2 threads")
    lines = draw_text(machine, {"a": PARSE("8-15,136-143")}, width=80).splitlines()
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 80


def test_long_rows_are_parted_alike() -> None:
    """20 cores where 15 fit are two rows of 10."""
    lines = draw_text(machine_from_text("20 cores"), {}, width=90).splitlines()[4:6]
    assert [len(line.split()) for line in lines] == [20, 20]


def test_a_bare_machine_has_no_marks() -> None:
    """Without holders there is nothing to explain but what is offline."""
    text = draw_text(machine_from_text("4 cores, offline=3"))
    assert "pool" not in text
    assert text.splitlines()[-4:] == ["offline", "  3 x", "", "x  offline  1 CPU  3"]


def test_two_holders_of_a_cpu_are_seen() -> None:
    """It is marked, and both keep their line."""
    text = draw_text(machine_from_text("4 cores"), {"a": PARSE("0-1"), "b": PARSE("1-2")})
    assert "0 A  1 *  2 B  3 ·" in text
    assert "*  several of the above  1 CPU   1" in text


def test_what_nobody_holds_is_seen() -> None:
    """A pool that is given need not hold all the rest."""
    text = draw_text(machine_from_text("4 cores"), {}, shared=PARSE("0-1"))
    assert "0 ·  1 ·  2 -  3 -" in text


def test_a_node_without_cpus_comes_last() -> None:
    """With its memory."""
    text = draw_text(machine_from_text("2 cores + 1 numa x 0 cores"))
    assert text.splitlines()[-1] == "NUMA node 1 · 16 GiB · no CPUs"


def test_sockets_stand_in_nodes_where_these_are_larger() -> None:
    """Boxes follow inclusion."""
    lines = draw_text(machine_from_text("1 numa x 2 sockets x 2 cores")).splitlines()
    assert lines[2:] == ["NUMA node 0 · 16 GiB", "  socket 0", "    0  1", "  socket 1", "    2  3"]


def test_sizes_have_the_largest_unit() -> None:
    """Of bytes to TiB, with one decimal where there is one to show."""
    machine = machine_from_text("1 socket x 5 numa x 1 core, memory=1Gi/1536/3Mi/2047Gi/4096Ti")
    first, *others = machine.numa_nodes
    machine = attrs.evolve(machine, numa_nodes=(attrs.evolve(first, memory_bytes=5), *others))
    details = [line.split(" · ")[1] for line in draw_text(machine).splitlines() if "NUMA node " in line]
    assert details == ["5 B", "1.5 KiB", "3 MiB", "2.0 TiB", "4096 TiB"]


def test_dies_have_boxes() -> None:
    """Where a socket has several."""
    lines = draw_text(machine_from_text("1 socket x 2 dies x 1 core")).splitlines()
    assert [line.strip() for line in lines[2:]] == [
        "socket 0",
        "die 0",
        "NUMA node 0 · 16 GiB",
        "0",
        "die 1",
        "NUMA node 0 · 16 GiB",
        "1",
    ]


def test_many_holders_have_longer_symbols() -> None:
    """After `z` comes `AA`."""
    machine = machine_from_text("60 cores")
    text = draw_text(machine, {f"h{n:02}": CPUSet.of(n) for n in range(60)})
    assert "51 z " in text
    assert "52 AA" in text


def test_long_labels_and_lists_are_clipped() -> None:
    """No line is wider than asked, however long a label is."""
    machine = machine_from_text("64 cores")
    text = draw_text(machine, {"x" * 300: CPUSet(range(0, 64, 2))}, width=60)
    assert max(map(len, text.splitlines())) <= 60 + len(text.splitlines()[0])
    assert max(len(line) for line in text.splitlines()[2:]) <= 60


def test_colour_is_asked_for() -> None:
    """Escape sequences come only then, and change no character."""
    machine = machine_from_text("4 cores, offline=3")
    plain = draw_text(machine, {"a": PARSE("0")}, reserved=PARSE("1"))
    coloured = draw_text(machine, {"a": PARSE("0")}, reserved=PARSE("1"), colour=True)
    assert "\x1b[" not in plain
    assert "\x1b[1;38;5;33m0 A\x1b[0m" in coloured
    for style in ("1;38;5;33", "2", "7", "9;2", "0"):
        coloured = coloured.replace(f"\x1b[{style}m", "")
    assert coloured == plain


@pytest.mark.parametrize(
    "text", ["4 cores", "2 sockets x 8 l3 x 8 cores x 2 threads, offline=255", "2 cores x 8 threads"]
)
def test_svg_is_well_formed_and_keeps_its_width(text: str) -> None:
    """One element with a cell for each CPU, labels escaped, no wider than asked."""
    machine = machine_from_text(text)
    root = ET.fromstring(draw_svg(machine, {"<a> & b": PARSE("0-1")}, width=1320))  # noqa: S314 - our own
    cells = [element.text for element in root.iter() if element.get("class") == "n"]
    assert sorted(map(int, filter(None, cells))) == [*(machine.online | machine.offline)]
    assert float(root.attrib["width"]) <= 1320
    assert any("<a> & b" in (element.text or "") for element in root.iter())


def test_svg_frames_cores_of_several_threads() -> None:
    """Eight threads stand in two columns of one frame."""
    svg = draw_svg(machine_from_text("1 core x 8 threads"))
    assert svg.count('stroke="#9a9a9a"') == 1


def test_a_cpu_that_is_not_there_is_refused() -> None:
    """With the label that holds it."""
    with pytest.raises(ValueError, match="web: CPUs 9 are not on the machine small, which has 0-3"):
        draw_svg(machine_from_text("4 cores", name="small"), {"web": PARSE("9")})


def test_labels_disturb_neither_a_terminal_nor_an_xml_reader() -> None:
    """Control characters and halves of characters are replaced; names come from anywhere."""
    machine = machine_from_text("2 cores", name="a\x1b[2Jb")
    holders = {"x\x1b[31m\ny": CPUSet.of(0), "\x00\ud800]]>": CPUSet.of(1)}
    text = draw_text(machine, holders)
    assert "x\ufffd[31m\ufffdy" in text
    assert "\x1b" not in text
    ET.fromstring(draw_svg(machine, holders))  # noqa: S314 - our own text
