"""Plugin sockets: what a look costs, and how long a plugin takes to be registered."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.figure import Figure, best_ns
from nodealloc.dirwatch import InotifyWatcher, Watcher
from nodealloc.pluginreg import PluginInfo, PluginRegistrar, PollingWatcher
from nodealloc.pluginreg._scan import scan
from nodealloc.testing.device_plugin import Behaviour, DevicePluginServer, numbered
from nodealloc.testing.devices import wait_until
from nodealloc.testing.pluginreg import FakeRegistration, RecordingHandler, bare_socket


def _look_us(sockets: int) -> float:
    place = Path(tempfile.mkdtemp(prefix="na-"))
    try:
        for number in range(sockets):
            bare_socket(place / f"{number}.sock")
        return best_ns(lambda: scan(str(place)), rounds=2) / 1e3
    finally:
        shutil.rmtree(place)


def _told_ms(polling: bool) -> float:
    """From the bind of a socket to its handler, with answers that take no time; best of five."""
    place = Path(tempfile.mkdtemp(prefix="na-"))
    interval_s = 0.05
    watcher: Watcher = (
        PollingWatcher(str(place), interval_s=interval_s) if polling else InotifyWatcher(str(place))
    )
    handler = RecordingHandler()
    client = FakeRegistration()
    best = float("inf")
    try:
        with PluginRegistrar(place, {"T": handler}, watcher=watcher, registration=client):
            for number in range(5):
                path = place / f"{number}.sock"
                client.plugins[str(path)] = PluginInfo(type="T", name=f"n{number}", endpoint=str(path))
                time.sleep(interval_s)
                started = time.perf_counter()
                bare_socket(path)
                while (f"n{number}", str(path)) not in handler.held:
                    time.sleep(0.0005)
                best = min(best, time.perf_counter() - started)
    finally:
        shutil.rmtree(place)
    return best * 1e3


def _converged_ms(watcher: Watcher, place: Path) -> float:
    """From the last of a thousand random events to the moment when what is registered is what is there."""
    rng = random.Random(7)
    paths = [place / f"{number}.sock" for number in range(20)]
    names = {str(path): PluginInfo(type="T", name=str(path), endpoint=str(path)) for path in paths}
    handler = RecordingHandler()
    with PluginRegistrar(place, {"T": handler}, watcher=watcher, registration=FakeRegistration({**names})):
        for _ in range(1000):
            path = rng.choice(paths)
            if path.exists():
                path.unlink()
            else:
                bare_socket(path)
        started = time.perf_counter()
        there = {str(path) for path in paths if path.exists()}
        wait_until(lambda: {endpoint for _, endpoint in handler.held} == there)
        return (time.perf_counter() - started) * 1e3


def _churned_ms(polling: bool, interval_s: float) -> float:
    place = Path(tempfile.mkdtemp(prefix="na-"))
    try:
        polled = PollingWatcher(str(place), interval_s=interval_s) if polling else InotifyWatcher(str(place))
        return _converged_ms(polled, place)
    finally:
        shutil.rmtree(place)


def _registered_s(hung: int) -> float:
    """Thirty plugins that answer, beside some that do not."""
    place = Path(tempfile.mkdtemp(prefix="na-"))
    servers = [
        DevicePluginServer(
            f"example.com/r{number}",
            numbered(1),
            place / f"{number}.sock",
            behaviour=Behaviour(hang=frozenset({"GetInfo"}) if number >= 30 else frozenset()),
        )
        for number in range(30 + hung)
    ]
    for server in servers:
        server.start()
    handler = RecordingHandler()
    try:
        with PluginRegistrar(place, {"DevicePlugin": handler}, watcher=InotifyWatcher(str(place))):
            started = time.perf_counter()
            wait_until(lambda: len(handler.held) == 30)
            return time.perf_counter() - started
    finally:
        for server in servers:
            server.stop()
        shutil.rmtree(place, ignore_errors=True)


def figures() -> Iterator[Figure]:
    """Looks, delays, and the price of plugins that hang."""
    looks = [(float(count), _look_us(count)) for count in (1, 10, 100, 1000)]
    yield Figure(
        package="pluginreg",
        name="a look at a directory of 100 sockets",
        value=looks[2][1],
        unit="µs",
        at_most=20_000,
        growth=looks,
        growth_of="sockets",
    )
    yield Figure(
        package="pluginreg",
        name="from a new socket to its handler, inotify",
        value=_told_ms(polling=False),
        unit="ms",
        at_most=100,
    )
    yield Figure(
        package="pluginreg",
        name="from a new socket to its handler, polling every 50 ms",
        value=_told_ms(polling=True) / 50,
        unit="× the interval",
        at_most=3,
    )
    yield Figure(
        package="pluginreg",
        name="from the last of 1,000 events to convergence, inotify",
        value=min(_churned_ms(polling=False, interval_s=0) for _ in range(3)),
        unit="ms",
        at_most=500,
    )
    yield Figure(
        package="pluginreg",
        name="from the last of 1,000 events to convergence, polling every 100 ms",
        value=min(_churned_ms(polling=True, interval_s=0.1) for _ in range(3)) / 100,
        unit="× the interval",
        at_most=4,
    )
    alone, beside = (min(_registered_s(hung) for _ in range(3)) for hung in (0, 3))
    yield Figure(
        package="pluginreg",
        name="30 plugins registered beside 3 that hang, over 30 alone",
        value=beside / alone,
        unit="×",
        at_most=3,
    )
