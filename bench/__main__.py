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


def verdict(figure: Figure) -> str:
    """`ok`, `MISSED`, or nothing where no bound was set."""
    if figure.at_most is None and figure.at_least is None:
        return ""
    low = figure.at_least is None or figure.value >= figure.at_least
    high = figure.at_most is None or figure.value <= figure.at_most
    return "ok" if low and high else "MISSED"


def bound(figure: Figure) -> str:
    """The bound as it stands in the table."""
    parts = [f"≤ {figure.at_most:g}"] if figure.at_most is not None else []
    parts += [f"≥ {figure.at_least:g}"] if figure.at_least is not None else []
    return " ".join(parts)


def line(figure: Figure) -> str:
    """One row of the table."""
    shown = f"{figure.value:,.4g}" if abs(figure.value) < 10_000 else f"{figure.value:,.0f}"
    name = f"{figure.package:<11} {figure.name:<62}"
    return f"{name} {shown:>12} {figure.unit:<14} {bound(figure):<9} {verdict(figure)}".rstrip()


def measure(package: str) -> list[Figure]:
    """All figures of a package, printed as they come."""
    found: list[Figure] = []
    for figure in importlib.import_module(f"bench.{package}").figures():
        print(line(figure), flush=True)
        for x, value in figure.growth:
            print(f"{'':<11}   {figure.growth_of} {x:g}: {value:,.4g} {figure.growth_unit}")
        found.append(figure)
    return found


def write(found: Sequence[Figure], folder: Path) -> None:
    """The table as JSON, and each growth series as a plot."""
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "python": platform.python_version(),
        "calibration": calibration(),
        "figures": [{**attrs.asdict(figure), "verdict": verdict(figure)} for figure in found],
    }
    (folder / "bench.json").write_text(json.dumps(document, indent=1) + "\n")
    for path in draw_growth(found, folder):
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
    print("Ratios to the kubelet are scaled by it; below 1 is faster.\n")
    found = [figure for package in arguments.packages or packages for figure in measure(package)]
    write(found, arguments.out)
    missed = [figure for figure in found if verdict(figure) == "MISSED"]
    print(f"{len(found)} figures, {len(missed)} bounds missed, {time.monotonic() - started:.0f} s")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
