"""The picture of a node for a terminal."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from nodealloc._typed import typed_but
from nodealloc.idset import CPUSet
from nodealloc.machine._layout import layout, legend, summary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from nodealloc.machine._layout import Box, Legend, Mark
    from nodealloc.machine._model import Machine

__all__ = ["draw_text"]

_INDENT = 2
_GAP = 2
_HOLDER_COLOURS = (33, 208, 35, 170, 220, 45, 160, 99, 112, 203, 31, 136)
"""xterm-256 colours that are told apart on light and on dark ground."""


@typed_but("machine", "holders")
def draw_text(
    machine: Machine,
    holders: Mapping[str, CPUSet | str] | None = None,
    *,
    shared: CPUSet | None = None,
    reserved: CPUSet = CPUSet(),  # noqa: B008 - an immutable value
    width: int = 100,
    colour: bool = False,
) -> str:
    """Draw who holds which CPU, core by core, NUMA node by NUMA node.

    A column is a core and each row below its first one more thread of it; a
    CPU is its number and the symbol of its holder, which the legend explains.

    Args:
        machine: The machine.
        holders: Label to CPUs, in the order in which they get their symbols;
            a label is anything, `namespace/pod/container` for example. None
            draws the bare machine.
        shared: The shared pool; None means every online CPU that nobody holds
            and that is not reserved.
        reserved: CPUs for the system.
        width: Columns that a line may have, at least 40.
        colour: Colour the CPUs with xterm-256 sequences.

    Returns:
        Lines without a newline at the end.

    Raises:
        ConfigurationError: A holder has CPUs that the machine has not.

    >>> from nodealloc.machine import machine_from_text
    >>> print(draw_text(machine_from_text("4 cores"), {"web": CPUSet.of(1, 2)}, reserved=CPUSet.of(0)))
    4 CPUs · 4 cores · 1 socket · 1 NUMA node · 1 L3 cache · 16 GiB
    <BLANKLINE>
    socket 0
      NUMA node 0 · 16 GiB
        0 #  1 A  2 A  3 ·
    <BLANKLINE>
    A  web          2 CPUs  1-2
    #  reserved     1 CPU   0
    ·  shared pool  1 CPU   3
    """
    marks = legend(machine, holders, shared=shared, reserved=reserved)
    pen = _Pen(marks, max(machine.online.mask, machine.offline.mask).bit_length() - 1, width, colour=colour)
    lines = [summary(machine), ""]
    for box in layout(machine):
        lines += pen.box(box, 0)
    if machine.offline:
        lines += ["offline", *pen.rows([(cpu,) for cpu in machine.offline], " " * _INDENT)]
    explained = [*pen.legend()]
    return "\n".join([*lines, "", *explained] if explained else lines)


class _Pen:
    """Knows the widths that all rows of one picture share."""

    def __init__(self, marks: Legend, largest: int, width: int, *, colour: bool) -> None:
        self._marks = marks
        self._digits = len(str(max(largest, 0)))
        self._symbol = max((len(mark.symbol) for mark in marks.marks), default=1)
        self._width = max(width, 40)
        self._colour = colour

    def box(self, box: Box, depth: int) -> Iterator[str]:
        """A box with everything inside it."""
        lead = " " * (_INDENT * depth)
        title = f"{box.title} · {box.detail}" if box.detail else box.title
        if box.cores and box.title.startswith("L3"):
            # Caches stand side by side with their cores: a line less for each.
            yield from self.rows(box.cores, lead, f"{title:<7}")
            return
        yield f"{lead}{title}"
        for inner in box.boxes:
            yield from self.box(inner, depth + 1)
        if box.cores:
            yield from self.rows(box.cores, lead + " " * _INDENT)

    def rows(self, cores: Sequence[Sequence[int]], lead: str, label: str = "") -> Iterator[str]:
        """Cores side by side, their threads below each other; as many lines as the width asks for."""
        lead += f"{label}{' ' * _GAP}" if label else ""
        blank = " " * len(lead)
        cell = self._digits + (1 + self._symbol if self._symbol else 0)
        at_once = max(1, (self._width - len(lead) + _GAP) // (cell + _GAP))
        at_once = _even(len(cores), at_once)
        for start in range(0, len(cores), at_once):
            for row in zip_longest(*cores[start : start + at_once]):
                cells = (" " * cell if cpu is None else self._cell(cpu) for cpu in row)
                yield (lead + (" " * _GAP).join(cells)).rstrip()
                lead = blank

    def _cell(self, cpu: int) -> str:
        mark = self._marks.of[cpu]
        symbol = f" {mark.symbol:<{self._symbol}}" if self._symbol else ""
        return self._painted(f"{cpu:>{self._digits}}{symbol}", mark)

    def _painted(self, text: str, mark: Mark) -> str:
        if not self._colour:
            return text
        plain = {"shared": "2", "reserved": "7", "free": "0", "offline": "9;2", "several": "1;4"}
        style = plain.get(mark.role) or f"1;38;5;{_HOLDER_COLOURS[mark.rank % len(_HOLDER_COLOURS)]}"
        return text if style == "0" else f"\x1b[{style}m{text}\x1b[0m"

    def legend(self) -> Iterator[str]:
        """A line for each mark: symbol, label, how many CPUs and which."""
        marks = [mark for mark in self._marks.marks if mark.explained]
        room = max(8, self._width - self._symbol - 40)
        labels = [_clipped(mark.label, room) for mark in marks]
        counts = [f"{len(mark.cpus)} CPU{'' if len(mark.cpus) == 1 else 's'}" for mark in marks]
        wide, tall = (max(map(len, texts), default=0) for texts in (labels, counts))
        for mark, label, number in zip(marks, labels, counts, strict=True):
            head = f"{mark.symbol:<{self._symbol}}  {label:<{wide}}  {number:<{tall}}  "
            cpus = _clipped(str(mark.cpus), max(16, self._width - len(head)))
            yield self._painted(mark.symbol, mark) + (head[len(mark.symbol) :] + cpus).rstrip()


def _even(number: int, at_most: int) -> int:
    """How many a row so that rows are alike: 20 cores where 13 fit are two rows of 10."""
    rows = -(-number // at_most)
    return -(-number // rows)


def _clipped(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
