"""Registrations without a socket: order, generations, back-off, reports, the view for people."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from nodealloc import _sockets
from nodealloc._walk import subdirectories
from nodealloc.dirwatch import InotifyWatcher, Watcher
from nodealloc.dsw_asw import BackOff, Uncertain
from nodealloc.errors import PermanentError
from nodealloc.pluginreg import (
    REGISTRATION_LIFE,
    PluginInfo,
    PluginRegistrar,
    PollingWatcher,
    RegistrationBrokenError,
    RegistrationState,
    SocketIdentity,
)
from nodealloc.pluginreg._scan import scan
from nodealloc.pluginreg._sightings import Sightings
from nodealloc.testing.devices import wait_until
from nodealloc.testing.dirwatch import FakeWatcher, check_watcher
from nodealloc.testing.dsw_asw import (
    ManualExecutor,
    RecordingObserver,
    VirtualClock,
    check_transitions,
    run_to_rest,
)
from nodealloc.testing.pluginreg import (
    FakeRegistration,
    RecordingHandler,
    bare_socket,
    check_handler,
    check_registration,
)


def gpu(name: str = "example.com/gpu", endpoint: str = "/e.sock") -> PluginInfo:
    """A plugin that says who it is."""
    return PluginInfo(type="DevicePlugin", name=name, endpoint=endpoint, versions=("v1beta1",))


class Bench:
    """A registrar over invented sockets, a clock that stands still, calls in the order that a test likes."""

    def __init__(self, *, most_sockets: int = 1024, client: FakeRegistration | None = None) -> None:
        self.sockets: dict[str, int] = {}
        self.client = FakeRegistration() if client is None else client
        self.handler = RecordingHandler()
        self.executor = ManualExecutor()
        self.clock = VirtualClock()
        self.registrar = PluginRegistrar(
            "/nowhere",
            {"DevicePlugin": self.handler},
            watcher=FakeWatcher(),
            registration=self.client,
            executor=self.executor,
            clock=self.clock,
            back_off=BackOff(initial_s=1.0, max_s=8.0),
            most_sockets=most_sockets,
            look=self._look,
        )

    def _look(self, _directory: str) -> Mapping[str, SocketIdentity]:
        return {path: SocketIdentity(1, number, b"") for path, number in self.sockets.items()}

    def appear(self, path: str, info: PluginInfo | None = None) -> None:
        """A socket is bound, or bound anew."""
        self.sockets[path] = self.sockets.get(path, 0) + 1
        self.client.plugins[path] = info or gpu()
        self.registrar.observe()

    def vanish(self, path: str) -> None:
        """A socket is removed."""
        del self.sockets[path]
        self.client.plugins.pop(path, None)
        self.registrar.observe()

    def settle(self) -> None:
        """Run all that can be run now, and let no time pass."""
        self.registrar.reconciler.run_until_quiet()
        while len(self.executor):
            self.executor.run()
            self.registrar.reconciler.run_until_quiet()

    def verbs(self) -> list[str]:
        """What the handler was asked, in order."""
        return [call[0] for call in self.handler.calls]


def test_a_plugin_is_registered_and_told() -> None:
    """Who answers is validated, registered, and hears of it."""
    bench = Bench()
    bench.appear("/a")
    bench.settle()
    assert bench.verbs() == ["validate", "register"]
    assert bench.client.told == [("/a", "")]
    (status,) = bench.registrar.status()
    assert (status.state, status.name, status.seen) == (RegistrationState.REGISTERED, "example.com/gpu", True)


def test_a_removed_socket_is_deregistered() -> None:
    """What is gone is let go, once."""
    bench = Bench()
    bench.appear("/a")
    bench.settle()
    bench.vanish("/a")
    bench.settle()
    assert bench.verbs() == ["validate", "register", "deregister"]
    assert bench.registrar.status() == ()


def test_a_socket_made_anew_is_deregistered_first() -> None:
    """The old one is let go before the new one is registered."""
    bench = Bench()
    bench.appear("/a")
    bench.settle()
    bench.appear("/a")
    bench.settle()
    assert bench.verbs() == ["validate", "register", "deregister", "validate", "register"]


def test_looking_again_changes_nothing() -> None:
    """A doubled event is one look more and no call."""
    bench = Bench()
    bench.appear("/a")
    bench.settle()
    for _ in range(5):
        bench.registrar.observe()
    assert bench.registrar.reconciler.reconcile().is_idle
    assert bench.verbs() == ["validate", "register"]


def test_a_refused_plugin_hears_the_reason() -> None:
    """Validation's words go to the plugin and into the view, and it is tried again later."""
    bench = Bench()
    bench.handler.refuse["example.com/gpu"] = "version v2 is too new"
    bench.appear("/a")
    bench.settle()
    assert bench.client.told == [("/a", "version v2 is too new")]
    (status,) = bench.registrar.status()
    assert (status.state, status.tries) == (RegistrationState.IDENTIFIED, 1)
    assert "too new" in status.error
    assert "too new" in str(status)
    del bench.handler.refuse["example.com/gpu"]
    run_to_rest(bench.registrar.reconciler, bench.executor, bench.clock)
    assert bench.registrar.status()[0].state is RegistrationState.REGISTERED


def test_an_unknown_type_is_reported_and_waits_for_its_handler() -> None:
    """A type without handler is told so; a handler that comes later takes it at once."""
    bench = Bench()
    bench.appear("/csi", PluginInfo(type="CSIPlugin", name="csi.example", endpoint="/x"))
    bench.settle()
    assert "no handler" in bench.client.told[0][1]
    late = RecordingHandler()
    bench.registrar.add_handler("CSIPlugin", late)
    bench.settle()
    assert ("csi.example", "/x") in late.held


def test_a_dead_socket_is_tried_with_back_off() -> None:
    """Nobody answers: the waits grow, and end when the socket goes."""
    bench = Bench()
    bench.appear("/a")
    del bench.client.plugins["/a"]
    bench.settle()
    waits = []
    for _ in range(5):
        (failure,) = bench.registrar.reconciler.failures("/a")
        waits.append(failure.due_s - bench.clock.monotonic_s())
        bench.clock.advance(waits[-1])
        bench.settle()
    assert waits == [1.0, 2.0, 4.0, 8.0, 8.0]
    bench.vanish("/a")
    bench.settle()
    assert bench.registrar.status() == ()


def test_a_failed_registration_is_retried() -> None:
    """A handler that fails twice has it the third time."""
    bench = Bench()
    bench.handler.fail["example.com/gpu"] = 2
    bench.appear("/a")
    bench.settle()
    run_to_rest(bench.registrar.reconciler, bench.executor, bench.clock)
    assert bench.verbs().count("register") == 3
    assert bench.handler.held


def test_several_versions_at_once() -> None:
    """Two sockets of one name are both registered, by their endpoints, one after the other."""
    bench = Bench()
    bench.appear("/v1", gpu(endpoint="/v1"))
    bench.appear("/v2", gpu(endpoint="/v2"))
    bench.settle()
    assert set(bench.handler.held) == {("example.com/gpu", "/v1"), ("example.com/gpu", "/v2")}
    bench.vanish("/v1")
    bench.settle()
    assert set(bench.handler.held) == {("example.com/gpu", "/v2")}
    assert bench.handler.overlaps == []


def test_a_hung_plugin_delays_no_other() -> None:
    """While one plugin's introduction hangs, the next is registered."""
    bench = Bench()
    bench.appear("/hung", gpu("example.com/hung"))
    bench.registrar.reconciler.run_until_quiet()
    bench.appear("/fine", gpu("example.com/fine"))
    bench.registrar.reconciler.run_until_quiet()
    while len(bench.executor) > 1:
        bench.executor.run(len(bench.executor) - 1)
        bench.registrar.reconciler.run_until_quiet()
    states = {status.path: status.state for status in bench.registrar.status()}
    assert states == {"/fine": RegistrationState.REGISTERED, "/hung": RegistrationState.UNKNOWN}


def test_a_plugin_that_vanishes_while_it_is_registered_is_let_go() -> None:
    """The handler is still at it when the socket goes: it is deregistered afterwards, never forgotten."""
    bench = Bench()
    bench.appear("/a")
    bench.registrar.reconciler.run_until_quiet()
    bench.executor.run()
    bench.registrar.reconciler.run_until_quiet()
    assert len(bench.executor) == 1
    bench.vanish("/a")
    bench.registrar.reconciler.run_until_quiet()
    bench.settle()
    assert bench.handler.held == {}
    assert bench.registrar.status() == ()


def test_a_plugin_made_anew_while_it_is_registered_is_let_go_first() -> None:
    """Between the registrations of two sockets of one path stands a deregistration."""
    bench = Bench()
    bench.appear("/a")
    bench.registrar.reconciler.run_until_quiet()
    bench.executor.run()
    bench.registrar.reconciler.run_until_quiet()
    bench.appear("/a")
    bench.settle()
    assert bench.verbs() == ["validate", "register", "deregister", "validate", "register"]
    (status,) = bench.registrar.status()
    assert (status.state, status.generation) == (RegistrationState.REGISTERED, 2)


def test_a_plugin_that_cannot_be_told_is_registered_all_the_same() -> None:
    """News that do not arrive undo nothing and are noted."""
    bench = Bench()
    bench.appear("/a")
    bench.registrar.reconciler.run_until_quiet()
    bench.executor.run()
    bench.registrar.reconciler.run_until_quiet()
    del bench.client.plugins["/a"]
    bench.settle()
    (status,) = bench.registrar.status()
    assert status.state is RegistrationState.REGISTERED
    assert "could not be told" in status.error


def until(registrar: PluginRegistrar, state: RegistrationState | None) -> None:
    """Make passes until the only socket is in this state, or unknown for None."""

    def there() -> bool:
        registrar.reconciler.run_until_quiet()
        return [one.state for one in registrar.status()] == ([] if state is None else [state])

    wait_until(there, what=f"{state}; {registrar.status()}")


@pytest.mark.parametrize("fails", [False, True])
def test_an_overdue_handler_is_uncertain_until_it_returns(fails: bool) -> None:
    """Past its deadline nobody knows; once it is back it is registered, if need be after letting go."""
    sockets = {"/a": SocketIdentity(1, 1, b"")}
    client, handler, clock = FakeRegistration({"/a": gpu()}), RecordingHandler(), VirtualClock()
    release = handler.hang["example.com/gpu"] = threading.Event()
    registrar = PluginRegistrar(
        "/nowhere",
        {"DevicePlugin": handler},
        watcher=FakeWatcher(),
        registration=client,
        clock=clock,
        handle_s=5.0,
        look=lambda _directory: dict(sockets),
    )
    handler.fail["example.com/gpu"] = int(fails)
    registrar.observe()
    until(registrar, RegistrationState.IDENTIFIED)
    wait_until(lambda: ("validate", "example.com/gpu", "/e.sock") in handler.calls)
    clock.advance(6.0)
    until(registrar, RegistrationState.UNCERTAIN)
    release.set()

    def settled() -> bool:
        clock.advance(1.0)
        registrar.reconciler.run_until_quiet()
        return [one.state for one in registrar.status()] == [RegistrationState.REGISTERED]

    wait_until(settled)
    assert [verb for verb, _, _ in handler.taken] == (["deregister", "register"] if fails else ["register"])
    sockets.clear()
    registrar.observe()
    until(registrar, None)
    assert handler.held == {}


def test_looking_that_fails_is_tried_again(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """A look that raises is logged, and the next one finds the plugins."""
    trouble = [OSError("no such device")]

    def look(_directory: str) -> Mapping[str, SocketIdentity]:
        if trouble:
            raise trouble.pop()
        return {"/a": SocketIdentity(1, 1, b"")}

    handler = RecordingHandler()
    with PluginRegistrar(
        tmp_path,
        {"DevicePlugin": handler},
        watcher=FakeWatcher(),
        registration=FakeRegistration({"/a": gpu()}),
        look=look,
    ):
        wait_until(lambda: bool(handler.held))
    assert "looking for sockets failed" in caplog.text


def test_the_extra_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without inotify_simple the error says what to install."""
    monkeypatch.setitem(sys.modules, "inotify_simple", None)
    with pytest.raises(ImportError, match=r"nodealloc\[inotify\]"):
        InotifyWatcher("/")


def test_the_table_is_walked() -> None:
    """Every state is reached, every event is somebody's."""
    check_transitions(REGISTRATION_LIFE)


def test_sightings_keep_their_generation() -> None:
    """The same socket is the same sighting; another one on its path is not."""
    one, two = SocketIdentity(1, 5, b"x"), SocketIdentity(1, 5, b"y")
    first = Sightings().after({"/a": one, "/b": one})
    assert first.after({"/a": one, "/b": one}) == first
    second = first.after({"/a": two})
    assert second.by_path["/a"].generation == 3
    assert set(second.by_path) == {"/a"}
    assert second.after({"/b": one}).by_path["/b"].generation == 4


def test_a_scan_sees_sockets_alone(tmp_path: Path) -> None:
    """Dot-files, other files, directories and what lies below a dot do not count."""
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / ".hidden").mkdir()
    for name in ("a.sock", ".b.sock", "deep/er/c.sock", ".hidden/d.sock"):
        bare_socket(tmp_path / name)
    (tmp_path / "file").write_text("")
    (tmp_path / "link.sock").symlink_to("a.sock")
    (tmp_path / "dangling").symlink_to("nothing")
    (tmp_path / "loop").symlink_to(".")
    found = scan(str(tmp_path))
    assert sorted(found) == [str(tmp_path / name) for name in ("a.sock", "deep/er/c.sock", "link.sock")]
    assert list(subdirectories(str(tmp_path))) == [
        str(tmp_path), str(tmp_path / "deep"), str(tmp_path / "deep" / "er"),
    ]  # fmt: skip
    assert scan(str(tmp_path / "nothing")) == {}


def test_a_socket_made_anew_within_a_moment_is_another(tmp_path: Path) -> None:
    """Inode numbers are used again at once; the identity tells the sockets apart all the same."""
    path = tmp_path / "a.sock"
    seen = set()
    for _ in range(100):
        bare_socket(path)
        seen.add(scan(str(tmp_path))[str(path)])
        path.unlink()
    assert len(seen) == 100


def test_a_look_never_sees_half_of_two_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is made anew while it is looked at is the old one whole, not a third."""
    path = tmp_path / "a.sock"
    bare_socket(path)
    before = scan(str(tmp_path))

    def late(descriptor: int) -> bytes:
        path.unlink()
        bare_socket(path)
        return handle(descriptor)

    handle = _sockets._handle
    monkeypatch.setattr(_sockets, "_handle", late)
    assert scan(str(tmp_path)) == before
    monkeypatch.undo()
    assert scan(str(tmp_path)) != before


def test_a_socket_that_changes_its_rights_is_the_same(tmp_path: Path) -> None:
    """A plugin that calls chmod after bind is registered once."""
    path = tmp_path / "a.sock"
    bare_socket(path)
    before = scan(str(tmp_path))
    if before[str(path)].birth.isdigit():
        pytest.skip("this file system gives no file handles; the time of the last change stands in")
    path.chmod(0o660)
    assert scan(str(tmp_path)) == before


def poke(watcher: Watcher) -> None:
    """Tell the fake that something changed."""
    assert isinstance(watcher, FakeWatcher)
    watcher.poke()


def test_watchers_keep_their_promises(tmp_path: Path) -> None:
    """Both watchers and the fake hold the same check."""
    check_watcher(lambda directory: PollingWatcher(str(directory), interval_s=0.005), tmp_path / "polled")
    check_watcher(lambda directory: InotifyWatcher(str(directory)), tmp_path / "notified")
    check_watcher(lambda _directory: FakeWatcher(), tmp_path / "told", nudge=poke)


def test_a_polling_interval_rests() -> None:
    """No interval at all would be a busy loop."""
    with pytest.raises(ValueError, match="never rest"):
        PollingWatcher("/", interval_s=0.0)


def test_the_fake_watcher_tells_and_closes() -> None:
    """A poke is a reason, once; closing ends a wait."""
    watcher = FakeWatcher()
    assert watcher.wait(0.0)
    assert not watcher.wait(0.0)
    watcher.poke()
    assert watcher.wait(0.0)
    threading.Timer(0.05, watcher.close).start()
    assert not watcher.wait(10.0)


def test_fakes_keep_the_promises() -> None:
    """The fakes of registration sockets and handlers hold the checks of the real ones."""
    check_registration(FakeRegistration({"/a": gpu()}), "/a", "/b")
    check_handler(RecordingHandler(), "example.com/gpu", "/a", ["v1beta1"])


def test_an_introduction_that_makes_no_sense_is_that_plugins_trouble() -> None:
    """A broken answer is shown and tried again; the neighbour is registered."""
    bench = Bench()
    bench.appear("/bad", gpu("example.com/bad"))
    bench.client.plugins["/bad"] = RegistrationBrokenError("/bad", "GetInfo", "BAD ANSWER")
    bench.appear("/good", gpu("example.com/good"))
    bench.settle()
    bad, good = bench.registrar.status()
    assert (bad.state, good.state) == (RegistrationState.UNKNOWN, RegistrationState.REGISTERED)
    assert "BAD ANSWER" in bad.error
    assert isinstance(bench.client.plugins["/bad"], PermanentError)


def test_a_plugins_words_are_shown_in_bounds() -> None:
    """A name may be a megabyte long, and may be missing; the line for people stays a line."""
    bench = Bench()
    bench.appear("/a", PluginInfo(type="DevicePlugin", name="x" * 1_000_000, endpoint="/a"))
    bench.appear("/b", PluginInfo(type="", name="", endpoint="/b"))
    bench.settle()
    long, nameless = map(str, bench.registrar.status())
    assert len(long) < 200
    assert "no type without name, identified" in nameless


def test_a_plugin_that_is_asked_for_too_long_is_uncertain_and_asked_again() -> None:
    """A client without a deadline of its own holds up one socket for `identify_s`, and is told of."""
    client, clock, observer = FakeRegistration({"/a": gpu()}), VirtualClock(), RecordingObserver()
    client.hang.add("/a")
    registrar = PluginRegistrar(
        "/nowhere",
        {"DevicePlugin": RecordingHandler()},
        watcher=FakeWatcher(),
        registration=client,
        clock=clock,
        identify_s=5.0,
        observer=observer,
        look=lambda _directory: {"/a": SocketIdentity(1, 1, b"")},
    )
    registrar.observe()
    registrar.reconciler.run_until_quiet()
    clock.advance(6.0)
    registrar.reconciler.run_until_quiet()
    overdue = [name for name, outcome in observer.ends if isinstance(outcome, Uncertain)]
    assert [name.split()[0] for name in overdue] == ["identify"]
    (status,) = registrar.status()
    assert (status.state, status.tries) == (RegistrationState.UNKNOWN, 1)
    client.release()
    client.hang.clear()

    def registered() -> bool:
        clock.advance(1.0)
        registrar.reconciler.run_until_quiet()
        return [one.state for one in registrar.status()] == [RegistrationState.REGISTERED]

    wait_until(registered)


def test_a_look_without_a_reason_finds_what_a_watcher_kept_to_itself(tmp_path: Path) -> None:
    """Every `observe_s`, whatever the watcher says."""
    sockets: dict[str, SocketIdentity] = {}
    with PluginRegistrar(
        tmp_path / "plugins",
        {"DevicePlugin": RecordingHandler()},
        watcher=FakeWatcher(),
        registration=FakeRegistration({"/a": gpu()}),
        observe_s=0.01,
        look=lambda _directory: dict(sockets),
    ) as registrar:
        sockets["/a"] = SocketIdentity(1, 1, b"")
        wait_until(lambda: [one.state for one in registrar.status()] == [RegistrationState.REGISTERED])
