"""The picture of a node as SVG: the boxes of the text picture, drawn to scale and coloured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodealloc import _attrs as attrs
from nodealloc._arguments import wrong
from nodealloc._typed import typed_but
from nodealloc.idset import CPUSet
from nodealloc.machine._layout import layout, legend, summary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from nodealloc.machine._layout import Box, Legend, Mark
    from nodealloc.machine._model import Machine

__all__ = ["draw_svg"]

_PALETTE = (
    "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#17becf",
    "#bcbd22", "#e377c2", "#8c564b", "#005f73", "#6a994e", "#9b2226",
)  # fmt: skip
_ROLES = {
    "several": ("url(#several)", "#111111"),
    "reserved": ("#3d3d3d", "#ffffff"),
    "shared": ("#e4ecf4", "#4a5a68"),
    "free": ("#ffffff", "#8a8a8a"),
    "offline": ("url(#offline)", "#8a8a8a"),
}
"""Role to fill and colour of the number in it."""

_CELL_HEIGHT = 18
_CORE_PAD = 2
_CORE_GAP = 4
_CORES_A_ROW = 10
_GAP = 6
_PAD = 8
_TITLE = 18
_STACK = 4
"""Threads of a core below each other; more go into further columns, as on SMT-8 machines."""
_LEGEND_ROW = 20

_STYLE = (
    "text{font-family:ui-sans-serif,system-ui,'DejaVu Sans',sans-serif;font-size:11px;fill:#222}"
    ".n{font-size:10px;text-anchor:middle;font-variant-numeric:tabular-nums}"
    ".h{font-size:14px;font-weight:600}.d{fill:#666}.s{font-weight:700}"
)
_DEFS = (
    '<defs><pattern id="several" width="6" height="6" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect width="6" height="6" fill="#fff3b0"/>'
    '<rect width="2" height="6" fill="#d62728"/></pattern>'
    '<pattern id="offline" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect width="5" height="5" fill="#fafafa"/><rect width="1" height="5" fill="#c8c8c8"/></pattern></defs>'
)
_FRAMES = ("#f4f4f4", "#fbfbfb", "#ffffff", "#f7f7f7")
"""Grounds of boxes, from the outermost in."""


@attrs.frozen
class _Drawing:
    """Something with a size that can put itself at a place."""

    width: int
    height: int
    at: Callable[[int, int], Iterator[str]]


@typed_but("machine", "holders")
def draw_svg(
    machine: Machine,
    holders: Mapping[str, CPUSet | str] | None = None,
    *,
    shared: CPUSet | None = None,
    reserved: CPUSet = CPUSet(),  # noqa: B008 - an immutable value
    width: int = 1320,
) -> str:
    """Draw who holds which CPU as one SVG element that needs nothing else.

    Sockets, NUMA nodes and caches are boxes in boxes; a core is a frame around
    its threads; a thread is its CPU number on the colour of its holder, with the
    letters that stand for that holder in the legend; its label shows when the
    pointer rests on it. `width=760` is read on a page without scaling.

    Args:
        machine: The machine.
        holders: Label to CPUs, in the order in which they get their colours
            (twelve, then again from the first) and letters (each its own); None
            draws the bare machine.
        shared: The shared pool; None means every online CPU that nobody holds
            and that is not reserved.
        reserved: CPUs for the system.
        width: Pixels that the picture should keep to; a single row of one
            cache's cores may be wider.

    Raises:
        ConfigurationError: A holder has CPUs that the machine has not.

    >>> from nodealloc.machine import machine_from_text
    >>> draw_svg(machine_from_text("4 cores"), {"web": CPUSet.of(1, 2)})[:38]
    '<svg xmlns="http://www.w3.org/2000/svg'
    """
    if width < 1:
        raise wrong("draw_svg, width", width, "pixels, 1 or more")
    marks = legend(machine, holders, shared=shared, reserved=reserved)
    pen = _Pen(marks, machine)
    inner = max(width, 200) - 2 * _PAD
    boxes = [pen.box(box, inner, 0) for box in layout(machine)]
    if machine.offline:
        boxes.append(pen.framed("offline", "", pen.cores([(cpu,) for cpu in machine.offline], inner), 0))
    body = _flow(boxes, inner)
    keys = pen.legend(max(inner, body.width))
    high = _PAD + _TITLE + _GAP + body.height + _GAP + keys.height + _PAD
    wide = 2 * _PAD + max(body.width, keys.width, 9 * len(summary(machine)))
    title = _escaped(summary(machine))
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" '
            f'height="{high}" role="img"><title>{title}</title><style>{_STYLE}</style>{_DEFS}'
            f'<rect width="{wide}" height="{high}" fill="#ffffff"/>'
            f'<text class="h" x="{_PAD}" y="{_PAD + 13}">{title}</text>'
        ),
        *body.at(_PAD, _PAD + _TITLE + _GAP),
        *keys.at(_PAD, _PAD + _TITLE + _GAP + body.height + _GAP),
        "</svg>",
    ]
    return "\n".join(parts)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _flow(drawings: Sequence[_Drawing], width: int, gap: int = _GAP) -> _Drawing:
    """Side by side while they fit, then below; rows are made alike where all are of one size."""
    rows: list[list[_Drawing]] = [[]]
    at_once = _alike(drawings, width, gap)
    for drawing in drawings:
        used = sum(other.width + gap for other in rows[-1])
        if rows[-1] and (used + drawing.width > width or len(rows[-1]) == at_once):
            rows.append([])
        rows[-1].append(drawing)
    wide = max((sum(d.width for d in row) + gap * (len(row) - 1) for row in rows if row), default=0)
    high = sum(max((d.height for d in row), default=0) for row in rows) + gap * (len(rows) - 1)

    def at(x: int, y: int) -> Iterator[str]:
        top = y
        for row in rows:
            left = x
            for drawing in row:
                yield from drawing.at(left, top)
                left += drawing.width + gap
            top += max((d.height for d in row), default=0) + gap

    return _Drawing(wide, high, at)


def _alike(drawings: Sequence[_Drawing], width: int, gap: int) -> int:
    if not drawings or len({d.width for d in drawings}) > 1:
        return len(drawings)
    fit = max(1, (width + gap) // (drawings[0].width + gap))
    rows = -(-len(drawings) // fit)
    return -(-len(drawings) // rows)


class _Pen:
    """Draws cores, boxes and the legend of one picture."""

    def __init__(self, marks: Legend, machine: Machine) -> None:
        self._marks = marks
        self._machine = machine
        largest = max(machine.online.mask, machine.offline.mask).bit_length() - 1
        holders = [len(mark.symbol) for mark in marks.marks if mark.role == "holder"]
        # Colours come again after twelve holders, and some see none: letters tell all apart.
        self._cell = 8 + 7 * len(str(largest)) + 8 * max(holders, default=0)

    def box(self, box: Box, width: int, depth: int) -> _Drawing:
        """A box with everything inside it, no wider than `width` where that can be."""
        inner = width - 2 * _PAD
        if box.cores:
            content = self.cores(
                box.cores, min(inner, _CORES_A_ROW * (self._cell + 2 * _CORE_PAD + _CORE_GAP))
            )
        else:
            content = _flow([self.box(inside, inner, depth + 1) for inside in box.boxes], inner)
        return self.framed(box.title, box.detail, content, depth)

    def framed(self, title: str, detail: str, content: _Drawing, depth: int) -> _Drawing:
        """A content in a frame with a title."""
        words = f"{title} · {detail}" if detail else title
        wide = max(content.width, 7 * len(words)) + 2 * _PAD
        high = _TITLE + content.height + _PAD + (2 if content.height else 0)
        ground = _FRAMES[min(depth, len(_FRAMES) - 1)]

        def at(x: int, y: int) -> Iterator[str]:
            yield (
                f'<rect x="{x}.5" y="{y}.5" width="{wide - 1}" height="{high - 1}" rx="5" '
                f'fill="{ground}" stroke="#b8b8b8"/>'
            )
            # A distance and no blank, which some renderers drop at the beginning of a span.
            more = f'<tspan class="d" dx="4">· {_escaped(detail)}</tspan>' if detail else ""
            yield f'<text x="{x + _PAD}" y="{y + 14}">{_escaped(title)}{more}</text>'
            yield from content.at(x + _PAD, y + _TITLE + 2)

        return _Drawing(wide, high, at)

    def cores(self, cores: Sequence[Sequence[int]], width: int) -> _Drawing:
        """Cores side by side."""
        return _flow([self._core(core) for core in cores], width, gap=_CORE_GAP)

    def _core(self, cpus: Sequence[int]) -> _Drawing:
        columns = -(-len(cpus) // _STACK)
        stacked = -(-len(cpus) // columns)
        wide = columns * self._cell + 2 * _CORE_PAD
        high = stacked * _CELL_HEIGHT + 2 * _CORE_PAD

        def at(x: int, y: int) -> Iterator[str]:
            if len(cpus) > 1:
                yield (
                    f'<rect x="{x}.5" y="{y}.5" width="{wide - 1}" height="{high - 1}" rx="4" '
                    f'fill="none" stroke="#9a9a9a"/>'
                )
            for place, cpu in enumerate(cpus):
                column, row = divmod(place, stacked)
                yield self._thread(
                    cpu, x + _CORE_PAD + column * self._cell, y + _CORE_PAD + row * _CELL_HEIGHT
                )

        return _Drawing(wide, high, at)

    def _thread(self, cpu: int, x: int, y: int) -> str:
        mark = self._marks.of[cpu]
        fill, ink = _colours(mark)
        middle = x + self._cell / 2
        letters = f'<tspan class="s" dx="3">{mark.symbol}</tspan>' if mark.role == "holder" else ""
        return (
            f"<g><title>{_escaped(self._words(cpu, mark))}</title>"
            f'<rect x="{x + 1}" y="{y + 1}" width="{self._cell - 2}" height="{_CELL_HEIGHT - 2}" rx="2" '
            f'fill="{fill}" stroke="#000000" stroke-opacity="0.25"/>'
            f'<text class="n" x="{middle:g}" y="{y + 12.5}" style="fill:{ink}">{cpu}{letters}</text></g>'
        )

    def _words(self, cpu: int, mark: Mark) -> str:
        known = self._machine.cpu.get(cpu)
        kind = f", {known.kind} core" if known is not None and known.kind else ""
        return f"CPU {cpu}: {mark.label}{kind}"

    def legend(self, width: int) -> _Drawing:
        """A key for each mark, with how many CPUs and which."""
        marks = [mark for mark in self._marks.marks if mark.explained]
        return _flow([self._key(mark, width) for mark in marks], width)

    def _key(self, mark: Mark, width: int) -> _Drawing:
        fill, _ = _colours(mark)
        room = max(24, width // 7 - 10)
        letters = f"{mark.symbol}  " if mark.role == "holder" else ""
        words = f"{letters}{mark.label}: {len(mark.cpus)} ({mark.cpus})"
        words = words if len(words) <= room else f"{words[: room - 1]}…"

        def at(x: int, y: int) -> Iterator[str]:
            box = f'x="{x}.5" y="{y + 3}.5" width="13" height="13" rx="2"'
            yield f'<rect {box} fill="{fill}" stroke="#000000" stroke-opacity="0.25"/>'
            yield f'<text x="{x + 20}" y="{y + 14}">{_escaped(words)}</text>'

        return _Drawing(20 + 7 * len(words), _LEGEND_ROW, at)


def _colours(mark: Mark) -> tuple[str, str]:
    """Fill, and the ink that is read on it."""
    if mark.role in _ROLES:
        return _ROLES[mark.role]
    fill = _PALETTE[mark.rank % len(_PALETTE)]
    red, green, blue = (int(fill[start : start + 2], 16) for start in (1, 3, 5))
    bright = 0.299 * red + 0.587 * green + 0.114 * blue > 150
    return fill, "#111111" if bright else "#ffffff"
