"""Registrations of plugins that die, change their mind, share a name, or say nonsense of themselves."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nodealloc.dirwatch import InotifyWatcher
from nodealloc.dsw_asw import InlineExecutor, Step, ThreadExecutor
from nodealloc.pluginreg import (
    PluginInfo,
    PluginRegistrar,
    RegistrationState,
    SocketIdentity,
    _scan,
    _watching,
)
from nodealloc.testing.devices import wait_until
from nodealloc.testing.dirwatch import FakeWatcher
from nodealloc.testing.dsw_asw import ManualCancel, run_to_rest
from nodealloc.testing.pluginreg import (
    FakeAsyncRegistration,
    FakeRegistration,
    RecordingHandler,
    bare_socket,
)
from tests.unit.pluginreg.test_pluginreg import Bench, gpu

GPU = "example.com/gpu"


def rest(bench: Bench) -> None:
    """Let as much time pass as it takes."""
    run_to_rest(bench.registrar.reconciler, bench.executor, bench.clock)


def test_a_plugin_that_died_before_the_next_try_is_not_registered() -> None:
    """Its socket file stays; who it was, it said before it died."""
    bench = Bench()
    bench.handler.fail[GPU] = 2
    bench.appear("/a")
    bench.settle()
    del bench.client.plugins["/a"]
    for _ in range(4):
        bench.clock.advance(10.0)
        bench.settle()
    (status,) = bench.registrar.status()
    assert status.state is RegistrationState.IDENTIFIED
    assert "GetInfo got no answer" in status.error
    assert bench.handler.held == {}


def test_a_plugin_that_failed_is_taken_as_it_is_at_the_next_try() -> None:
    """What it says anew counts, be it another version, another endpoint or another name."""
    bench = Bench()
    bench.handler.refuse[GPU] = "version v2 is needed"
    bench.appear("/a")
    bench.settle()
    bench.client.plugins["/a"] = gpu("example.com/other", "/other.sock")
    rest(bench)
    (status,) = bench.registrar.status()
    assert status.state is RegistrationState.REGISTERED
    assert (status.name, status.error) == ("example.com/other", "")
    assert set(bench.handler.held) == {("example.com/other", "/other.sock")}
    assert bench.client.told[-1] == ("/a", "")


def test_a_plugin_that_is_taken_at_once_is_asked_once() -> None:
    """Only who failed is asked again."""
    bench = Bench()
    bench.appear("/a")
    rest(bench)
    assert bench.client.asked == ["/a"]
    bench.handler.fail[GPU] = 1
    bench.appear("/a")
    rest(bench)
    assert bench.client.asked == ["/a"] * 3


def test_of_two_sockets_with_one_endpoint_one_may_go() -> None:
    """The plugin stays registered as long as one socket of it is there."""
    bench = Bench()
    bench.appear("/one")
    bench.appear("/two")
    bench.settle()
    bench.vanish("/one")
    bench.settle()
    (status,) = bench.registrar.status()
    assert (status.path, status.state) == ("/two", RegistrationState.REGISTERED)
    assert set(bench.handler.held) == {(GPU, "/e.sock")}
    bench.vanish("/two")
    bench.settle()
    assert bench.handler.held == {}


def test_of_two_sockets_with_one_endpoint_both_may_go() -> None:
    """At once; the handler lets go, once."""
    bench = Bench()
    bench.appear("/one")
    bench.appear("/two")
    bench.settle()
    bench.sockets.clear()
    bench.registrar.observe()
    bench.settle()
    assert bench.handler.held == {}
    assert bench.verbs().count("deregister") == 1


def test_the_socket_that_stays_says_which_versions_hold() -> None:
    """The handler hears of the other's versions when the newer plugin goes."""
    bench = Bench()
    bench.appear("/old")
    bench.settle()
    newer = PluginInfo(type="DevicePlugin", name=GPU, endpoint="/e.sock", versions=("v1", "v2"))
    bench.appear("/new", newer)
    bench.settle()
    assert bench.handler.held == {(GPU, "/e.sock"): ("v1", "v2")}
    bench.vanish("/new")
    bench.settle()
    assert bench.handler.held == {(GPU, "/e.sock"): ("v1beta1",)}


@pytest.mark.parametrize(
    ("info", "said"),
    [
        (PluginInfo(type="DevicePlugin", name="", endpoint="/e.sock"), "no name"),
        (PluginInfo(type="DevicePlugin", name="a\0b", endpoint="/e.sock"), "control characters"),
        (PluginInfo(type="DevicePlugin", name="a\n", endpoint="/e.sock"), "control characters"),
        (PluginInfo(type="DevicePlugin", name="x" * 513, endpoint="/e.sock"), "513 characters, 512"),
        (PluginInfo(type="DevicePlugin", name=GPU, endpoint="/e\0.sock"), "endpoint '/e\\x00.sock'"),
    ],
)
def test_a_plugin_that_says_nonsense_of_itself_reaches_no_handler(info: PluginInfo, said: str) -> None:
    """It is told what is wrong, once a try."""
    bench = Bench()
    bench.appear("/a", info)
    bench.settle()
    assert said in bench.client.told[0][1]
    assert bench.handler.calls == []
    assert bench.registrar.status()[0].state is RegistrationState.IDENTIFIED


def test_the_longest_name_is_taken() -> None:
    """512 characters are more than a resource may have."""
    bench = Bench()
    bench.appear("/a", gpu("x" * 512))
    bench.settle()
    assert bench.registrar.status()[0].state is RegistrationState.REGISTERED


def test_who_has_no_descriptor_left_sees_no_empty_directory(tmp_path: Path) -> None:
    """A look that could not be made says nothing; by an empty one every plugin would be let go."""
    socket = tmp_path / "a.sock"
    bare_socket(socket)
    handler = RecordingHandler()
    registrar = PluginRegistrar(
        tmp_path,
        {"DevicePlugin": handler},
        watcher=FakeWatcher(),
        registration=FakeRegistration({str(socket): gpu()}),
        executor=InlineExecutor(),
    )
    registrar.observe()
    registrar.run_until_quiet()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open(tmp_path, os.O_RDONLY)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, limits[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            registrar.observe()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    registrar.run_until_quiet()
    assert [call[0] for call in handler.calls] == ["validate", "register"]


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.ENOENT])
def test_a_directory_that_the_disk_does_not_give_is_not_empty(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every plugin would be let go for it; one that is not there holds none, and one below is passed over."""
    below = tmp_path / "below"
    below.mkdir()
    bare_socket(tmp_path / "a.sock")
    bare_socket(below / "b.sock")
    listed = os.scandir

    def fails_at(broken: Path) -> None:
        def scandir(path: str) -> Any:
            if path == str(broken):
                raise OSError(number, os.strerror(number), path)
            return listed(path)

        monkeypatch.setattr(os, "scandir", scandir)

    fails_at(below)
    assert list(_scan.scan(str(tmp_path))) == [str(tmp_path / "a.sock")]
    fails_at(tmp_path)
    if number == errno.ENOENT:
        assert _scan.scan(str(tmp_path)) == {}
        return
    with pytest.raises(OSError, match=str(tmp_path)):
        _scan.scan(str(tmp_path))


def test_a_socket_that_cannot_be_looked_at_for_want_of_descriptors_is_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody took the last one after the directory was listed; one that is gone by then is left out."""
    bare_socket(tmp_path / "a.sock")
    for number, is_told in ((errno.EMFILE, True), (errno.ENOENT, False)):

        def fails(path: str, number: int = number) -> tuple[int, int, bytes]:
            raise OSError(number, os.strerror(number), path)

        monkeypatch.setattr(_scan, "standing", fails)
        with pytest.raises(OSError, match="Too many") if is_told else contextlib.nullcontext():
            assert _scan.scan(str(tmp_path)) == {}


def test_what_keeps_looks_from_being_made_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """A look is tried each second; the log would be full of one trouble."""
    trouble: list[Exception | None] = [OSError("a"), OSError("a"), OSError("b"), None, OSError("b")]

    def look() -> None:
        if (error := trouble.pop(0)) is not None:
            raise error

    domain = _watching._Domain(look, FakeWatcher(), 0.0)
    while trouble:
        with contextlib.suppress(OSError):
            domain.perform(Step(scope=("/d",), verb="observe", detail=0), ManualCancel())
    assert [str(one.exc_info[1]) for one in caplog.records if one.exc_info] == ["a", "b", "b"]


def test_sockets_beyond_the_most_wait_for_room(caplog: pytest.LogCaptureFixture) -> None:
    """A thousand names cost those beyond the bound alone; who is left out is named, and has its turn."""
    bench = Bench(most_sockets=2)
    for path in ("/b", "/c", "/d", "/a"):
        bench.appear(path, gpu(f"example.com{path}", path))
        bench.settle()
    states = {one.path: (one.state.value, one.seen, one.tries) for one in bench.registrar.status()}
    assert states["/b"] == states["/c"] == ("registered", True, 0)
    assert states["/a"] == states["/d"] == ("unknown", True, 0)
    assert "2 sockets are looked after at most" in str(bench.registrar.status()[-1])
    assert caplog.text.count("left out: /d") == 1
    bench.vanish("/b")
    bench.settle()
    assert set(bench.handler.held) == {("example.com/a", "/a"), ("example.com/c", "/c")}
    bench.vanish("/c")
    bench.settle()
    assert set(bench.handler.held) == {("example.com/a", "/a"), ("example.com/d", "/d")}
    assert [one.path for one in bench.registrar.status()] == ["/a", "/d"]


def test_whoever_answered_waits_behind_nobody_who_does_not() -> None:
    """With one thread for all calls, a registration comes before the next socket is asked who it is."""
    asked_before: list[list[str]] = []

    class Handler(RecordingHandler):
        def register(self, name: str, endpoint: str, versions: Sequence[str], /) -> None:
            asked_before.append(list(client.asked))
            super().register(name, endpoint, versions)

    client = FakeRegistration({"/a": gpu()})
    client.hang = {"/b"}
    registrar = PluginRegistrar(
        "/nowhere",
        {"DevicePlugin": Handler()},
        watcher=FakeWatcher(),
        registration=client,
        executor=ThreadExecutor(most=1),
        look=lambda _: {path: SocketIdentity(1, 1, b"") for path in ("/a", "/b", "/c")},
    )
    registrar.observe()

    def waits_for_its_turn() -> bool:
        registrar.reconciler.run_until_quiet()
        return any(one.verb == "register" for one in registrar.reconciler.running())

    wait_until(waits_for_its_turn)
    client.release()
    wait_until(lambda: bool(asked_before))
    assert asked_before == [["/a", "/b"]]
    registrar.stop()


def test_a_plugin_that_failed_is_asked_anew_without_a_thread() -> None:
    """While it hangs then, no call is left to the executor, and its answer goes on to the handler."""
    bench = Bench(client=FakeAsyncRegistration())
    client = bench.client
    assert isinstance(client, FakeAsyncRegistration)
    bench.handler.fail[GPU] = 1
    bench.appear("/a")
    bench.settle()
    assert [word for _, word in client.told] == ["told to fail"]
    client.hang.add("/a")
    bench.clock.advance(1.0)
    bench.settle()
    assert [one.verb for one in bench.registrar.reconciler.running()] == ["register"]
    client.hanging["/a"].set_result(gpu())
    bench.settle()
    assert bench.registrar.status()[0].state is RegistrationState.REGISTERED
    assert [word for _, word in client.told] == ["told to fail", ""]


def test_a_plugin_that_never_answers_is_cancelled_at_the_deadline() -> None:
    """And asked again after a back-off."""
    bench = Bench(client=FakeAsyncRegistration())
    client = bench.client
    assert isinstance(client, FakeAsyncRegistration)
    client.hang.add("/a")
    bench.appear("/a")
    bench.settle()
    first = client.hanging["/a"]
    bench.clock.advance(20.0)
    bench.settle()
    assert first.cancelled()
    client.hang.clear()
    rest(bench)
    assert bench.handler.held


class Stuck(FakeWatcher):
    """A watcher that cannot be closed without an error."""

    def close(self) -> None:
        """See `Watcher`."""
        super().close()
        raise OSError("not now")


def test_a_watcher_that_does_not_close_well_keeps_no_registrar_from_stopping(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its error is logged; nothing runs on."""
    registrar = PluginRegistrar(tmp_path, {}, watcher=Stuck())
    registrar.start()
    assert registrar.stop() == ()
    assert "not now" in caplog.text
    assert registrar._thread is not None
    assert not registrar._thread.is_alive()


def test_a_directory_that_could_not_be_looked_into_is_watched_as_soon_as_it_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No descriptor was left as it came: what comes into it later would never wake anybody."""
    watcher = InotifyWatcher(tmp_path)
    assert watcher.wait(10.0)
    new = tmp_path / "new"
    new.mkdir()

    def refused(path: str) -> object:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", refused)
        assert watcher.wait(10.0)
        assert watcher.skipped == f"{tmp_path}: Too many open files"
    assert watcher.wait(10.0)
    assert watcher.skipped == ""
    (new / "a").touch()
    assert watcher.wait(10.0)
    watcher.close()
