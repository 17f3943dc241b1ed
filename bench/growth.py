"""Growth series as SVG, drawn without a plotting library; both axes are logarithmic."""

from __future__ import annotations

import math
import re
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from bench.figure import Figure

__all__ = ["draw_growth"]

WIDTH, HEIGHT, MARGIN = 720, 420, 70
COLOURS = ("#0b6e99", "#c2410c", "#4d7c0f", "#7e22ce", "#be123c", "#0f766e")


def draw_growth(figures: Iterable[Figure], folder: Path) -> list[Path]:
    """One plot for each package, axis and unit, with a curve a figure."""
    groups: dict[tuple[str, str, str], list[Figure]] = {}
    for figure in figures:
        if len(figure.growth) > 1:
            groups.setdefault((figure.package, figure.growth_of, figure.growth_unit), []).append(figure)
    paths: list[Path] = []
    for key, group in groups.items():
        words = " ".join(key).lower().replace("µ", "u")
        path = folder / (re.sub(r"[^a-z0-9]+", "-", words).strip("-") + ".svg")
        path.write_text(_plot(group, *key), encoding="utf-8")
        paths.append(path)
    return paths


def _plot(group: Sequence[Figure], package: str, axis: str, unit: str) -> str:
    points = [(max(x, 1e-12), max(y, 1e-12)) for figure in group for x, y in figure.growth]
    across = _Scale([x for x, _ in points], MARGIN, WIDTH - 20)
    up = _Scale([y for _, y in points], HEIGHT - MARGIN, 30)
    tall = HEIGHT + 18 * len(group)
    title = f"{escape(package)}: {escape(unit)} against {escape(axis)}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {tall}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{tall}" fill="white"/><g font-size="12">',
        f'<text x="{MARGIN}" y="18" font-size="14">{title}</text>',
    ]
    for value, place in across.ticks():
        parts.append(f'<path d="M{place} 30V{HEIGHT - MARGIN}" stroke="#ddd"/>')
        parts.append(f'<text x="{place}" y="{HEIGHT - MARGIN + 18}" text-anchor="middle">{value:g}</text>')
    for value, place in up.ticks():
        parts.append(f'<path d="M{MARGIN} {place}H{WIDTH - 20}" stroke="#ddd"/>')
        parts.append(f'<text x="{MARGIN - 6}" y="{place + 4}" text-anchor="end">{value:g}</text>')
    for number, figure in enumerate(group):
        colour = COLOURS[number % len(COLOURS)]
        track = " ".join(f"{across.place(x):.1f},{up.place(y):.1f}" for x, y in figure.growth)
        parts.append(f'<polyline points="{track}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(
            f'<text x="{MARGIN}" y="{HEIGHT - 30 + 18 * number}" fill="{colour}">{escape(figure.name)}</text>'
        )
    return "\n".join([*parts, "</g></svg>\n"])


class _Scale:
    """Logarithmic axis from values to picture coordinates."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        positive = [max(value, 1e-12) for value in values]
        self._low, self._high = math.log10(min(positive)), math.log10(max(positive))
        if self._high - self._low < 0.3:
            self._low, self._high = self._low - 0.3, self._high + 0.3
        self._start, self._end = start, end

    def place(self, value: float) -> float:
        """Coordinate of a value."""
        part = (math.log10(max(value, 1e-12)) - self._low) / (self._high - self._low)
        return self._start + part * (self._end - self._start)

    def ticks(self) -> list[tuple[float, float]]:
        """Round values inside the axis, with their coordinates."""
        steps = (1, 2, 5) if self._high - self._low < 2 else (1,)
        tens = range(math.floor(self._low), math.ceil(self._high) + 1)
        values = [step * 10.0**ten for ten in tens for step in steps]
        return [
            (v, round(self.place(v), 1))
            for v in values
            if self._low - 1e-9 <= math.log10(v) <= self._high + 1e-9
        ]
