"""Sockets and plugins in numbers: churn against both watchers, a hundred plugins of which three hang."""

from __future__ import annotations

import random
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from nodealloc._rpc.conversations import Conversations
from nodealloc.dirwatch import InotifyWatcher, Watcher
from nodealloc.dsw_asw import ThreadExecutor
from nodealloc.pluginreg import (
    GrpcRegistration,
    PluginInfo,
    PluginRegistrar,
    PollingWatcher,
    RegistrationBrokenError,
    RegistrationState,
    RegistrationUnavailableError,
)
from nodealloc.pluginreg._scan import scan
from nodealloc.testing.device_plugin import Behaviour, DevicePluginServer, numbered
from nodealloc.testing.devices import wait_until
from nodealloc.testing.pluginreg import FakeRegistration, RecordingHandler, bare_socket
from tests.real.hanging import HELLO, Hanging, elsewhere

pytestmark = pytest.mark.real

WATCHERS: dict[str, Callable[[Path], Watcher]] = {
    "polling": lambda directory: PollingWatcher(str(directory), interval_s=0.05),
    "inotify": lambda directory: InotifyWatcher(str(directory)),
}


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory with a path short enough for sockets."""
    path = Path(tempfile.mkdtemp(prefix="na-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


class SocketsOnDisk(FakeRegistration):
    """Whoever has a socket on disk answers, under its path."""

    def info(self, socket: str, /) -> PluginInfo:
        """See `Registration`."""
        if not Path(socket).exists():
            raise RegistrationUnavailableError(socket, "GetInfo", "UNAVAILABLE")
        return PluginInfo(type="DevicePlugin", name=socket, endpoint=socket)

    def notify(self, socket: str, error: str, /) -> None:
        """See `Registration`."""


def churn(directory: Path, events: int, rng: random.Random) -> None:
    """Create, remove, move and re-create sockets and directories in random order."""
    for _ in range(events):
        folder = directory / f"d{rng.randrange(5)}" if rng.random() < 0.5 else directory
        path = folder / f"s{rng.randrange(20)}.sock"
        what = rng.random()
        if what < 0.05 and folder is not directory:
            shutil.rmtree(folder, ignore_errors=True)
        elif path.exists():
            path.unlink()
            if what < 0.4:
                bare_socket(path)
            elif what < 0.5:
                bare_socket(path.with_name("moved.sock.new"))
                path.with_name("moved.sock.new").rename(path)
        else:
            folder.mkdir(exist_ok=True)
            bare_socket(path)


def converged(registrar: PluginRegistrar, handler: RecordingHandler, directory: Path) -> bool:
    """Whether what is registered is what is on disk, by path and by identity of the newest socket."""
    there = set(scan(str(directory)))
    states = registrar.status()
    return (
        {status.path for status in states} == there
        and all(status.state is RegistrationState.REGISTERED for status in states)
        and {endpoint for _, endpoint in handler.held} == there
    )


def churned(place: Path, watcher: str, events: int, seed: int) -> float:
    """Seconds from the last event to convergence."""
    directory = place / "plugins"
    handler = RecordingHandler()
    registrar = PluginRegistrar(
        directory,
        {"DevicePlugin": handler},
        watcher=WATCHERS[watcher](directory),
        registration=SocketsOnDisk(),
    )
    rng = random.Random(seed)
    with registrar:
        churn(directory, events, rng)
        started = time.monotonic()
        wait_until(lambda: converged(registrar, handler, directory), within_s=30.0)
        took = time.monotonic() - started
    assert handler.overlaps == []
    return took


@pytest.mark.parametrize("watcher", WATCHERS)
def test_churn_converges(place: Path, watcher: str) -> None:
    """Five hundred events in random order; what is registered is what is on disk."""
    churned(place, watcher, 500, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("watcher", WATCHERS)
def test_ten_thousand_events_converge(place: Path, watcher: str) -> None:
    """Ten thousand create, remove, move and re-create events; nothing is lost, nothing is left over."""
    took = churned(place, watcher, 10_000, seed=2)
    print(f"{watcher}: converged {took:.3f} s after the last event")


def test_each_new_socket_on_a_path_registers_anew(place: Path) -> None:
    """A plugin that is made again within a moment is let go and registered again."""
    directory = place / "plugins"
    handler = RecordingHandler()
    with PluginRegistrar(
        directory,
        {"DevicePlugin": handler},
        watcher=InotifyWatcher(str(directory)),
        registration=SocketsOnDisk(),
    ) as registrar:
        path = directory / "a.sock"
        bare_socket(path)
        wait_until(lambda: converged(registrar, handler, directory))
        path.unlink()
        bare_socket(path)
        wait_until(lambda: len(handler.calls) >= 5 and converged(registrar, handler, directory))
    assert [call[0] for call in handler.calls] == [
        "validate", "register", "deregister", "validate", "register",
    ]  # fmt: skip


def test_watching_goes_on_where_the_kernel_gives_no_watches(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no watches left, the directories that could not be watched are looked at every so often."""
    directory = place / "plugins"
    directory.mkdir()
    watcher = InotifyWatcher(str(directory))

    def full(_path: str, _mask: int) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(watcher._inotify, "add_watch", full)
    watcher._watch_all()
    assert "No space left" in watcher.skipped
    assert watcher.wait(0.0)
    bare_socket(directory / "a.sock")
    assert watcher.wait(1.0)
    watcher.close()


def serve(directory: Path, count: int, hung: int) -> list[DevicePluginServer]:
    """Plugins with registration sockets, the last few of which never answer."""
    servers = [
        DevicePluginServer(
            f"example.com/r{number}",
            numbered(1),
            directory / f"p{number}.sock",
            behaviour=Behaviour(hang=frozenset({"GetInfo"}) if number >= count - hung else frozenset()),
        )
        for number in range(count)
    ]
    for server in servers:
        server.start()
    return servers


def stop_all(servers: Sequence[DevicePluginServer]) -> None:
    """Stop them side by side."""
    threads = [threading.Thread(target=server.stop) for server in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def registered_in(place: Path, count: int, hung: int) -> float:
    """Seconds until all that answer are registered."""
    directory = place / f"plugins-{hung}"
    servers = serve(directory, count, hung)
    handler = RecordingHandler()
    with PluginRegistrar(
        directory, {"DevicePlugin": handler}, watcher=InotifyWatcher(str(directory))
    ) as registrar:
        started = time.monotonic()
        wait_until(lambda: len(handler.held) == count - hung, within_s=60.0)
        took = time.monotonic() - started
        hanging = [one for one in registrar.status() if one.state is RegistrationState.UNKNOWN]
    assert len(hanging) == hung
    assert not any(one.tries for one in hanging), "nobody waited for their deadline"
    stop_all(servers)
    return took


def test_a_hung_plugin_delays_no_other(place: Path) -> None:
    """Ten plugins, three of them hung: the seven are registered while the three still hang."""
    registered_in(place, 10, 3)


@pytest.mark.slow
def test_a_hundred_plugins_three_of_them_hung(place: Path) -> None:
    """Ninety-seven are registered whether or not three others hang."""
    without, with_hung = registered_in(place, 97, 0), registered_in(place, 100, 3)
    ratio = with_hung / without
    print(f"97 plugins: {without:.2f} s, beside three that hang: {with_hung:.2f} s ({ratio:.2f} ×)")


@pytest.mark.parametrize("misdeed", ["garbage", "status", "hang"])
def test_a_bad_introduction_is_that_plugins_trouble(place: Path, misdeed: str) -> None:
    """Junk, a made-up status, or no answer at all: the neighbour is registered, the view says why."""
    directory = place / "plugins"
    behaviours = (Behaviour(**{misdeed: frozenset({"GetInfo"})}), Behaviour())  # type: ignore[arg-type]
    servers = [
        DevicePluginServer(f"example.com/r{n}", numbered(1), directory / f"p{n}.sock", behaviour=behaviour)
        for n, behaviour in enumerate(behaviours)
    ]
    for server in servers:
        server.start()
    handler = RecordingHandler()
    with PluginRegistrar(
        directory, {"DevicePlugin": handler}, registration=GrpcRegistration(info_s=0.3)
    ) as registrar:
        wait_until(
            lambda: (
                [(one.state, bool(one.tries)) for one in registrar.status()]
                == [(RegistrationState.UNKNOWN, True), (RegistrationState.REGISTERED, False)]
            ),
            what=f"one failure and one registration; {registrar.status()}",
        )
        bad, _ = registrar.status()
    said = {"garbage": "BAD ANSWER", "status": "INTERNAL", "hang": "DEADLINE_EXCEEDED"}
    assert said[misdeed] in bad.error
    stop_all(servers)


def test_a_refused_plugin_is_told_over_its_socket(place: Path) -> None:
    """The reason of a failed validation reaches the plugin."""
    told: list[tuple[str, str]] = []
    server = DevicePluginServer(
        "example.com/gpu", numbered(1), place / "p" / "p.sock", tell=lambda *what: told.append(what)
    )
    server.start()
    handler = RecordingHandler()
    handler.refuse["example.com/gpu"] = "we have enough of those"
    with PluginRegistrar(place / "p", {"DevicePlugin": handler}):
        wait_until(lambda: ("refused", "we have enough of those") in told)
    assert handler.held == {}
    assert "registered" not in [what for what, _ in told]
    server.stop()


def test_a_socket_whose_path_is_no_utf8_is_dialled(place: Path) -> None:
    """Linux allows any bytes; the plugin is found, and hears errors that name such a path."""
    told: list[tuple[str, str]] = []
    directory = place / "p\udcff"
    server = DevicePluginServer(
        "example.com/gpu", numbered(1), directory / "p.sock", tell=lambda *what: told.append(what)
    )
    server.start()
    handler = RecordingHandler()
    handler.refuse["example.com/gpu"] = f"not from {directory.name}"
    with PluginRegistrar(directory, {"DevicePlugin": handler}):
        wait_until(lambda: ("refused", "not from p\\udcff") in told)
    server.stop()


def test_a_path_too_long_for_a_socket_is_named(place: Path) -> None:
    """A socket can stand there all the same, bound from inside its directory; nobody can dial it."""
    path = str(place / ("p" * 100) / "x.sock")
    with pytest.raises(RegistrationBrokenError, match="107 is the limit"):
        GrpcRegistration().info(path)


def test_a_plugin_that_does_not_take_the_news_is_registered_all_the_same(place: Path) -> None:
    """It has `notify_s`; past that a note says so."""
    directory = place / "p"
    behaviour = Behaviour(hang=frozenset({"NotifyRegistrationStatus"}))
    server = DevicePluginServer("example.com/gpu", numbered(1), directory / "p.sock", behaviour=behaviour)
    server.start()
    client = GrpcRegistration(notify_s=0.1)
    with PluginRegistrar(directory, {"DevicePlugin": RecordingHandler()}, registration=client) as registrar:
        wait_until(lambda: [one.state for one in registrar.status()] == [RegistrationState.REGISTERED])
        assert "could not be told" in registrar.status()[0].error
    server.stop()


@pytest.mark.parametrize("says_hello", [False, True], ids=["silent", "speaks HTTP/2"])
def test_hundreds_of_sockets_that_hang_hardly_delay_a_good_one(place: Path, *, says_hello: bool) -> None:
    """Three hundred, all there before the registrar starts: no thread for any, a descriptor for so many.

    A good one that was there as well, one that comes later, and one that takes a second for its
    answer are registered before any of those was told that its time is over.
    """
    directory = place / "plugins"
    directory.mkdir()
    first = DevicePluginServer("example.com/first", numbered(1), directory / "z.sock")
    later = DevicePluginServer("example.com/later", numbered(1), directory / "l.sock")
    slow = DevicePluginServer(
        "example.com/slow", numbered(1), directory / "m.sock", behaviour=Behaviour(slow_s=1.0)
    )
    client = GrpcRegistration(at_once=32)
    handler = RecordingHandler()
    first.start()
    with Hanging(directory, 300, says_hello=says_hello) as hanging:
        before, threads = descriptors(), threading.active_count()
        with PluginRegistrar(
            directory, {"DevicePlugin": handler}, registration=client, watcher=InotifyWatcher(str(directory))
        ) as registrar:
            took_s = [registered_s(handler, "example.com/first")]
            later.start()
            took_s.append(registered_s(handler, "example.com/later"))
            assert max((one.tries for one in registrar.status()), default=0) == 0
            assert hanging.calls <= 32 + 8
            # Two for each, the other side of it is here, too, and gRPC closes some a moment later.
            assert descriptors() - before <= 4 * 32 + 40
            assert most_threads() + threading.active_count() - threads <= 64
            slow.start()
            took_s.append(registered_s(handler, "example.com/slow"))
        wait_until(lambda: hanging.calls == 0, within_s=30.0, what="no connection is left")
    print(f"registered beside 300 that hang: {took_s}")
    stop_all([first, later, slow])


def test_a_process_with_hundreds_of_sockets_that_hang_stands_behind_its_own(place: Path) -> None:
    """One that was there, too, and comes last by name, is registered while most of those had no turn yet.

    With eight places and turns of 0.1 s, three hundred that all come first would take 3.7 s.
    """
    directory = place / "plugins"
    directory.mkdir()
    good = DevicePluginServer("example.com/good", numbered(1), directory / "z.sock")
    good.start()
    handler = RecordingHandler()
    with (
        elsewhere(directory, 300),
        PluginRegistrar(directory, {"DevicePlugin": handler}, registration=GrpcRegistration(at_once=8)),
    ):
        assert registered_s(handler, "example.com/good") < 3.0
    good.stop()


def registered_s(handler: RecordingHandler, name: str) -> float:
    """Seconds until it is."""
    started = time.monotonic()
    wait_until(lambda: any(held == name for held, _ in handler.held), within_s=30.0, what=name)
    return time.monotonic() - started


def test_who_hangs_beyond_its_time_is_told_apart_from_who_had_no_turn(place: Path) -> None:
    """With two places, ten that hang, and little time: some had theirs, the others gave way."""
    directory = place / "plugins"
    with Hanging(directory, 10, says_hello=True):
        client = GrpcRegistration(info_s=0.3, at_once=2)
        with PluginRegistrar(
            directory, {"DevicePlugin": RecordingHandler()}, registration=client
        ) as registrar:
            wait_until(lambda: sum(bool(one.error) for one in registrar.status()) == 10)
            errors = {one.error.partition("(")[2].partition(")")[0] for one in registrar.status()}
    assert "GAVE WAY" in errors
    assert errors <= {"GAVE WAY", "DEADLINE_EXCEEDED"}


def test_plugins_that_never_take_the_news_hold_no_thread(place: Path) -> None:
    """Twenty are registered with their handler by two threads, and wait to be told, side by side."""
    directory = place / "plugins"
    behaviour = Behaviour(hang=frozenset({"NotifyRegistrationStatus"}))
    deaf = [
        DevicePluginServer(f"example.com/d{n}", numbered(1), directory / f"d{n}.sock", behaviour=behaviour)
        for n in range(20)
    ]
    for one in deaf:
        one.start()
    handler = RecordingHandler()
    with PluginRegistrar(directory, {"DevicePlugin": handler}, executor=ThreadExecutor(most=2)):
        wait_until(lambda: len(handler.held) == 20, within_s=4.0, what="all twenty, before any deadline")
    stop_all(deaf)


def test_a_socket_that_speaks_late_is_heard(place: Path) -> None:
    """As long as nobody else waits it has all of its time; a full queue of callers is waited for too."""
    path = place / "late.sock"
    ask = {"limit_s": 30.0, "wait_s": 30.0, "largest_bytes": 1 << 16}
    with socket.socket(socket.AF_UNIX) as late:
        late.bind(str(path))
        late.listen(0)
        conversations = Conversations(2)
        with socket.socket(socket.AF_UNIX) as other:
            other.connect(str(path))
            call = conversations.ask(str(path), "/a.B/C", b"", **ask)  # type: ignore[arg-type]
            time.sleep(0.1)
            late.accept()[0].close()
            there, _ = late.accept()
        assert there.recv(24) == b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        there.send(HELLO)
        called, _ = late.accept()
        there.close()
        assert called.recv(24) == b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        assert not call.done()
        called.close()
        assert call.result(10.0).status == "UNAVAILABLE"
        call = conversations.ask(str(path), "/a.B/C", b"", **ask)  # type: ignore[arg-type]
        silent, _ = late.accept()
        call.cancel()
        while silent.recv(1 << 16):
            pass
        silent.close()


def most_threads() -> int:
    """How many registrations are under way."""
    return sum(one.name == "plugin registration" for one in threading.enumerate())


def descriptors() -> int:
    """How many this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))
