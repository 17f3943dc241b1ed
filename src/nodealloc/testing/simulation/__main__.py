"""`python -m nodealloc.testing.simulation`: live many seeds, or tell the story of one."""

from __future__ import annotations

import argparse
import math
import os
import random
import sys
from collections.abc import Callable

from nodealloc.errors import ConfigurationError
from nodealloc.testing.simulation._report import ViolationError
from nodealloc.testing.simulation.node import PLANTED_FAULTS, NodeSimulation
from nodealloc.testing.simulation.node._many import SeedTally, seed_of, seeds_until, try_wiring, wiring_named
from nodealloc.testing.simulation.node._planted_faults import spoiled

_HASHES = "0"
"""The order of hashes that a seed is told with: parts of somebody else's may iterate in it."""


def main(argv: list[str] | None = None) -> int:
    """Run the command; 0 without a violation, 1 with one, 2 for bad input."""
    arguments = _parser().parse_args(argv)
    if os.environ.get("PYTHONHASHSEED") != _HASHES:
        os.environ["PYTHONHASHSEED"] = _HASHES
        given = sys.argv[1:] if argv is None else argv
        command = [sys.executable, "-m", "nodealloc.testing.simulation", *given]
        os.execv(sys.executable, command)  # noqa: S606 - this program again
    if arguments.plants:
        for plant in PLANTED_FAULTS:
            print(f"{plant.name:32} {plant.about}")
        return 0
    if arguments.plant and arguments.plant not in {plant.name for plant in PLANTED_FAULTS}:
        print(f"no planted bug is called {arguments.plant!r}; --plants lists them", file=sys.stderr)
        return 2
    try:
        try_wiring(arguments.wiring)
        drawn = seed_of(arguments.seed_of) if arguments.seed_of else None
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return 2
    if arguments.story:
        if arguments.seed is None:
            print("--story needs the seed that it is to tell; add --seed N", file=sys.stderr)
            return 2
        if arguments.seconds is not None or arguments.faults is not None:
            print("--story tells one life to its end; leave out --seconds and --faults", file=sys.stderr)
            return 2
        return _tell(arguments.seed, arguments.wiring, arguments.plant)
    return _live(arguments, drawn)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m nodealloc.testing.simulation",
        description="Live the lives of simulated nodes, one a seed, with a checker for each guarantee.",
    )
    parser.add_argument("--seconds", type=_seconds, metavar="S", help="begin no further seed after so long")
    parser.add_argument(
        "--faults", type=_from(1), metavar="F", help="begin no further seed after so many faults"
    )
    first = parser.add_mutually_exclusive_group()
    first.add_argument("--seed", type=_from(0), metavar="N", help="the first seed; alone: only that one")
    first.add_argument(
        "--seed-of",
        nargs="+",
        metavar="PATH",
        help="the first seed is drawn from this code: fresh with each change",
    )
    parser.add_argument(
        "--plant", default="", metavar="NAME", help="plant this bug; who finds it is the last seed"
    )
    parser.add_argument("--plants", action="store_true", help="list the bugs that can be planted")
    parser.add_argument(
        "--wiring", default="", metavar="MODULE:FUNCTION", help="an agent of yours: from NodePorts to a group"
    )
    parser.add_argument("--story", action="store_true", help="tell the life of --seed line by line")
    parser.add_argument(
        "--jobs",
        type=_from(1),
        default=os.cpu_count() or 1,
        metavar="J",
        help="processes; default: one for each core",
    )
    return parser


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return seconds


def _from(least: int) -> Callable[[str], int]:
    """Reads whole numbers; of a seed and its negative the same would be drawn."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {least} on")
        return number

    return read


def _live(arguments: argparse.Namespace, drawn: int | None) -> int:
    one = arguments.seed is not None and arguments.seconds is None and arguments.faults is None
    seconds = 60.0 if arguments.seconds is None and arguments.faults is None else arguments.seconds
    first = drawn if arguments.seed is None else arguments.seed
    if first is None:
        first = random.SystemRandom().randrange(1 << 31)
    if drawn is not None:
        print(f"the first seed is {first}", flush=True)
    tally = SeedTally()
    for lived in seeds_until(
        first,
        seconds=-1.0 if one else seconds,
        faults=arguments.faults,
        jobs=1 if one else arguments.jobs,
        wiring=arguments.wiring,
        plant=arguments.plant,
    ):
        tally.add(lived)
        if lived.violation:
            print(lived.violation)
            more = f" --wiring {arguments.wiring}" if arguments.wiring else ""
            more += f" --plant {arguments.plant}" if arguments.plant else ""
            print(f"again: python -m nodealloc.testing.simulation --seed {lived.seed} --story{more}")
            print(flush=True)
            if arguments.plant:
                break
    print(tally)
    return 1 if tally.violations else 0


def _tell(seed: int, wiring: str, plant: str) -> int:
    tally = SeedTally()
    wire = wiring_named(wiring)
    with NodeSimulation(seed, spoiled(wire, plant) if plant else wire) as node:
        print(f"seed {seed}, class {node.seeds.name}: {node.seeds.about}")
        print(*node.story, sep="\n")
        node.on_line = print
        try:
            node.run()
        except ViolationError as error:
            print(f"violation, at {error.at_s:.3f} s: {error.what}")
            tally.violations = 1
        report = node.report()
    tally.operations, tally.faults, tally.passed_s = report.operations, report.faults, report.passed_s
    print(tally)
    return 1 if tally.violations else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # who read has read enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
