"""`python -m bench [PACKAGE...]`: one table over all packages, as text, JSON and SVG."""

from __future__ import annotations

import argparse
import importlib
import json
import platform
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from bench.figure import calibration
from bench.growth import draw_growth

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.figure import Figure

HERE = Path(__file__).parent
NOT_PACKAGES = {"__init__", "__main__", "figure", "growth"}


@attrs.frozen
class Measured:
    """A figure, and the pace of the machine beside it.

    Attributes:
        figure: What a benchmark module yielded.
        pace: How many times as long as the recording machine this one took for the calibration
            loop, before and after the figure was measured, or between its rounds.
    """

    figure: Figure
    pace: float

    @property
    def judged(self) -> float:
        """What the bound is held against: work of a core at the recording machine's pace."""
        if not self.figure.cpu:
            return self.figure.value
        per_s = self.figure.unit == "per s"
        return self.figure.value * self.pace if per_s else self.figure.value / self.pace

    @property
    def verdict(self) -> str:
        """`ok`, `MISSED`, or nothing where no bound was set."""
        low, high = self.figure.at_least, self.figure.at_most
        if low is None and high is None:
            return ""
        kept = (low is None or self.judged >= low) and (high is None or self.judged <= high)
        return "ok" if kept else "MISSED"


def bound(figure: Figure) -> str:
    """The bound as it stands in the table."""
    parts = [f"≤ {figure.at_most:g}"] if figure.at_most is not None else []
    parts += [f"≥ {figure.at_least:g}"] if figure.at_least is not None else []
    return " ".join(parts)


def shown(value: float) -> str:
    """Four digits, or a whole number."""
    return f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"


def line(one: Measured) -> str:
    """One row of the table; work of a core also at the recording machine's pace, in brackets."""
    figure = one.figure
    name = f"{figure.package:<11} {figure.name:<62}"
    scaled = f"({shown(one.judged)})" if figure.cpu else ""
    unit = f"{figure.unit:<13} {scaled:>9}"
    return f"{name} {shown(figure.value):>9} {unit} {bound(figure):<9} {one.verdict}".rstrip()


def measure(package: str) -> list[Measured]:
    """All figures of a package, printed as they come."""
    found: list[Measured] = []
    before = _pace()
    for figure in importlib.import_module(f"bench.{package}").figures():
        after = _pace()
        found.append(Measured(figure, figure.pace or (before + after) / 2))
        print(line(found[-1]), flush=True)
        for x, value in figure.growth:
            print(f"{'':<11}   {figure.growth_of} {x:g}: {value:,.4g} {figure.growth_unit}")
        before = after
    return found


def _pace() -> float:
    return calibration(rounds=5)


def write(found: Sequence[Measured], folder: Path) -> None:
    """The table as JSON, and each growth series as a plot."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "python": platform.python_version(),
        "calibration": calibration(),
        "figures": [
            {**attrs.asdict(one.figure), "pace": one.pace, "judged": one.judged, "verdict": one.verdict}
            for one in found
        ],
    }
    (folder / "bench.json").write_text(json.dumps(document, indent=1) + "\n")
    for path in draw_growth([one.figure for one in found], folder):
        print(f"plot: {path}")
    print(f"json: {folder / 'bench.json'}")


def main() -> int:
    """Measure the packages that are named, or all; 1 when a bound was missed."""
    packages = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in NOT_PACKAGES)
    known = ", ".join(packages)
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=f"of {known}")
    parser.add_argument("--out", type=Path, default=Path("build/bench"), help="folder for the results")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.packages) - set(packages))
    if unknown:
        parser.error(f"no benchmark for {', '.join(unknown)}; there are {known}")
    started = time.monotonic()
    scale = calibration()
    python = platform.python_version()
    print(f"Python {python}; this machine takes {scale:.2f} of the recorded calibration time.")
    print("Ratios to the kubelet are scaled by it; below 1 is faster. Work of a core stands in brackets")
    print("at the recorded machine's pace, taken beside each figure: that is what its bound is for.\n")
    found = [figure for package in arguments.packages or packages for figure in measure(package)]
    write(found, arguments.out)
    missed = [one for one in found if one.verdict == "MISSED"]
    print(f"{len(found)} figures, {len(missed)} bounds missed, {time.monotonic() - started:.0f} s")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
