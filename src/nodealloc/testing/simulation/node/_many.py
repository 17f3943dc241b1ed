"""Many seeds on all cores."""

from __future__ import annotations

import faulthandler
import hashlib
import itertools
import multiprocessing
import time
import traceback
from collections.abc import Iterable, Iterator
from importlib import import_module
from multiprocessing.pool import AsyncResult
from pathlib import Path
from typing import Final, cast

from nodealloc import _attrs as attrs
from nodealloc.dsw_asw import Driven
from nodealloc.errors import ConfigurationError
from nodealloc.testing.simulation._report import Report, ViolationError
from nodealloc.testing.simulation.node._classes.calm import CALM
from nodealloc.testing.simulation.node._fewest import Shrunk, shrunk
from nodealloc.testing.simulation.node._planted_faults import spoiled
from nodealloc.testing.simulation.node._simulation import NodeSimulation, Wiring
from nodealloc.testing.simulation.node._wiring import agent

__all__ = ["Lived", "SeedTally", "live", "seed_of", "seeds_until", "try_wiring", "wiring_named"]

_HANGS_S: Final = 300.0
_MARGIN_S: Final = 100.0
"""The seeds before it may take their time, too."""


@attrs.frozen(kw_only=True)
class Lived:
    """What came of one seed.

    Attributes:
        seed: Which.
        operations: Port calls and calls of the executor.
        faults: How many struck.
        passed_s: Virtual seconds.
        violation: What was found, with the story of the fewest faults that lead to it; "" for nothing.
    """

    seed: int
    operations: int
    faults: int
    passed_s: float
    violation: str = ""


@attrs.define
class SeedTally:
    """What many seeds came to."""

    operations: int = 0
    faults: int = 0
    passed_s: float = 0.0
    violations: int = 0
    seeds: int = 0

    def add(self, lived: Lived, /) -> None:
        """One more."""
        self.operations += lived.operations
        self.faults += lived.faults
        self.passed_s += lived.passed_s
        self.violations += bool(lived.violation)
        self.seeds += 1

    def count(self, report: Report, /) -> None:
        """One more, which kept all its guarantees."""
        self.operations += report.operations
        self.faults += report.faults
        self.passed_s += report.passed_s
        self.seeds += 1

    def __str__(self) -> str:
        hours = self.passed_s / 3600.0
        return (
            f"{self.operations} operations, {self.faults} faults, {hours:.1f} node-hours, "
            f"{self.violations} violations"
        )


def wiring_named(name: str, /) -> Wiring:
    """The wiring that `MODULE:FUNCTION` names; "" for the one that ships.

    Raises:
        ConfigurationError: There is none of that name.
    """
    if not name:
        return agent
    module, colon, function = name.partition(":")
    if not colon or not module or not function:
        raise ConfigurationError(
            f"wiring {name!r} is no MODULE:FUNCTION; write it as my_agent.wiring:agent, "
            "a function that takes NodePorts"
        )
    try:
        found: object = getattr(import_module(module), function)
    except (Exception, SystemExit) as error:  # a module of somebody else's raises what it likes
        what = "" if isinstance(error, ImportError | AttributeError) else f"{type(error).__name__}: "
        raise ConfigurationError(f"wiring {name!r} cannot be had: {what}{error}") from error
    if not callable(found):
        raise ConfigurationError(
            f"wiring {name!r} is a {type(found).__name__}; name a function (NodePorts) -> group"
        )
    return cast("Wiring", found)


def try_wiring(name: str, /) -> None:
    """Build its agent once, on a node on which nothing goes wrong.

    Raises:
        ConfigurationError: There is no wiring of that name, it raises, or what it returns is no agent.
    """
    wiring = wiring_named(name)
    with NodeSimulation(0, wiring, seeds=CALM) as node:
        try:
            built: object = node.built()
        except (Exception, SystemExit) as error:
            at = traceback.extract_tb(error.__traceback__)[-1]
            raise ConfigurationError(
                f"wiring {name!r} builds no agent where nothing goes wrong: "
                f"{type(error).__name__}: {error} ({at.filename}, line {at.lineno})"
            ) from error
    if not isinstance(built, Driven):
        raise ConfigurationError(
            f"wiring {name!r} returns a {type(built).__name__}; return a group of reconcilers, such as Group"
        )


def seed_of(paths: Iterable[str], /) -> int:
    """A seed that is another one with each change of the code, and the same for the same code.

    Args:
        paths: Files, and folders whose `*.py` count, at any depth; by their paths and their bytes.

    Raises:
        ConfigurationError: One of them has no code, or it cannot be read.
    """
    digest = hashlib.sha256()
    try:
        for file in sorted(file for one in paths for file in _code(Path(one))):
            digest.update(f"{file.as_posix()}\0{file.stat().st_size}\0".encode() + file.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"code cannot be read: {error}") from error
    return int.from_bytes(digest.digest()[:4], "big") >> 1


def _code(path: Path) -> list[Path]:
    files = [path] if path.is_file() else list(path.rglob("*.py"))
    if not files:
        raise ConfigurationError(f"no code is in {path}; name files or folders of it")
    return files


def live(seed: int, wiring: str = "", plant: str = "") -> Lived:
    """Live one seed to its end, or to the first violation.

    One that waits for something real, such as a lock that is never released, cannot be ended from
    within: after five minutes its process ends, and says where it stood.
    """
    faulthandler.dump_traceback_later(_HANGS_S, exit=True)
    try:
        return _lived(seed, wiring, plant)
    finally:
        faulthandler.cancel_dump_traceback_later()


def _lived(seed: int, wiring: str, plant: str) -> Lived:
    wire = wiring_named(wiring)

    def anew() -> Wiring:
        return spoiled(wire, plant) if plant else wire

    with NodeSimulation(seed, anew()) as node:
        violation = ""
        try:
            node.run()
        except ViolationError as error:
            violation = _said(error, shrunk(seed, anew))
        report = node.report()
    return Lived(
        seed=seed,
        operations=report.operations,
        faults=report.faults,
        passed_s=report.passed_s,
        violation=violation,
    )


def _said(error: ViolationError, less: Shrunk | None) -> str:
    return str(error) if less is None else f"{error.headline}\n{less}"


def _came(seed: int, coming: AsyncResult[Lived]) -> Lived:
    """What a worker found; nothing comes of one that hung."""
    try:
        return coming.get(_HANGS_S + _MARGIN_S)
    except multiprocessing.TimeoutError:
        what = (
            f"seed {seed} hangs: {_HANGS_S:g} s of real time were not enough; its process said where it stood"
        )
        return Lived(seed=seed, operations=0, faults=0, passed_s=0.0, violation=what)


def seeds_until(
    first: int, *, seconds: float | None, faults: int | None, jobs: int, wiring: str = "", plant: str = ""
) -> Iterator[Lived]:
    """Live one seed after the other, until the time is over or so many faults have struck.

    Args:
        first: The first seed; the others follow it.
        seconds: Real seconds after which no further seed begins; None for no end.
        faults: Faults after which none does; None for no end.
        jobs: Processes at a time; 1 for this one.
        wiring: See `wiring_named`.
        plant: Which bug is planted; "" for none.
    """
    until = None if seconds is None else time.monotonic() + seconds
    struck = 0

    def is_over() -> bool:
        return (until is not None and time.monotonic() > until) or (faults is not None and struck >= faults)

    if jobs == 1:
        for seed in itertools.count(first):
            lived = live(seed, wiring, plant)
            struck += lived.faults
            yield lived
            if is_over():
                return
    # Spawned, so that a child has no lock of its parent's; it takes the order of hashes from the environment.
    context = multiprocessing.get_context("spawn")
    with context.Pool(jobs) as pool:
        waiting = [pool.apply_async(live, (first + place, wiring, plant)) for place in range(2 * jobs)]
        seed = first + len(waiting)
        while waiting:
            lived = _came(seed - len(waiting), waiting.pop(0))
            struck += lived.faults
            yield lived
            if not is_over():
                waiting.append(pool.apply_async(live, (seed, wiring, plant)))
                seed += 1
