"""A service on a Unix socket and its caller, whatever is said and whoever stands in the way."""

from __future__ import annotations

import logging
import os
import re
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodealloc import _sockets
from nodealloc._proto import pluginregistration_v1_pb2 as wire
from nodealloc._rpc.caller import Caller
from nodealloc._rpc.errors import CallRefusedError, CallUnavailableError
from nodealloc._rpc.server import KeptServer, ServerOptions, UnixServer
from nodealloc.errors import PermanentError, RetryableError
from nodealloc.testing.devices import wait_until
from nodealloc.testing.pluginreg import bare_socket

pytestmark = pytest.mark.real

SERVICE = "pluginregistration.Registration"


@pytest.fixture
def path() -> Iterator[Path]:
    """Of a socket, short enough for one."""
    place = Path(tempfile.mkdtemp(prefix="na-"))
    yield place / "s.sock"
    shutil.rmtree(place, ignore_errors=True)


def answer(request: bytes) -> bytes:
    """What the service says."""
    if request == b"no":
        raise PermanentError("never")
    if request == b"path":
        raise PermanentError("no such thing in d\udcff")
    if request == b"later":
        raise RetryableError("not now")
    if request == b"bug":
        raise RuntimeError("a bug")
    return request * 2


def caller(path: Path) -> Caller:
    """A client of it."""
    return Caller(path, wire.DESCRIPTOR, "Registration", largest_bytes=1 << 20)


@pytest.fixture
def server(path: Path) -> Iterator[UnixServer]:
    """A service that runs."""
    one = UnixServer(path, SERVICE, {"GetInfo": answer}, options=ServerOptions(mode=0o600))
    one.start()
    yield one
    one.stop()
    one.stop()


def test_what_a_method_raises_goes_to_the_caller(
    server: UnixServer, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """No, not now, and a bug are told apart; only the bug is in the log, with its trace."""
    assert path.stat().st_mode & 0o777 == 0o600
    client = caller(path)
    assert client.call("GetInfo", b"ab", 5.0) == b"abab"
    for request, kind, status, said in (
        (b"no", CallRefusedError, "INVALID_ARGUMENT", "never"),
        (b"path", CallRefusedError, "INVALID_ARGUMENT", re.escape(r"in d\udcff")),
        (b"later", CallUnavailableError, "UNAVAILABLE", "not now"),
        (b"bug", CallRefusedError, "INTERNAL", "see the agent's log"),
    ):
        with pytest.raises(kind, match=said) as caught:
            client.call("GetInfo", request, 5.0)
        assert caught.value.status == status  # type: ignore[attr-defined]
    client.close()
    assert [one.getMessage() for one in caplog.records] == [f"{path}: GetInfo failed"]
    assert server.is_listening()


def test_a_caller_that_was_closed_calls_nobody(server: UnixServer, path: Path) -> None:
    """Every call says so, a stream as well; closing twice is no error."""
    assert server.is_listening()
    client = caller(path)
    client.close()
    client.close()
    for call in (
        lambda: client.call("GetInfo", b"", 1.0),
        lambda: client.address("GetInfo", 1.0),
        lambda: client.stream("GetInfo"),
    ):
        with pytest.raises(CallUnavailableError, match="CANCELLED"):
            call()


def test_a_call_is_ended_from_another_thread(path: Path) -> None:
    """Also one that waits for somebody to listen."""
    client, said = caller(path), list[str]()

    def call() -> None:
        try:
            client.address("GetInfo", 60.0)
        except CallUnavailableError as error:
            said.append(error.status)

    thread = threading.Thread(target=call)
    thread.start()
    client.close()
    thread.join(10)
    assert said == ["CANCELLED"]


def test_a_caller_waits_for_somebody_to_listen(path: Path) -> None:
    """A socket that nobody serves yet is no reason to give up before the deadline."""
    bare_socket(path)
    client, said = caller(path), list[bytes]()

    def call() -> None:
        assert client.address("GetInfo", 30.0).startswith("/proc/self/fd/")
        said.append(client.call("GetInfo", b"x", 30.0))

    thread = threading.Thread(target=call)
    thread.start()
    one = UnixServer(path, SERVICE, {"GetInfo": answer})
    one.start()
    thread.join(30)
    assert said == [b"xx"]
    client.close()
    one.stop()


def test_a_service_starts_where_nobody_stands_in_its_way(server: UnixServer, path: Path) -> None:
    """Not where somebody listens, not where no socket is, not where the directory is missing."""
    second = UnixServer(path, SERVICE, {"GetInfo": answer})
    with pytest.raises(PermanentError, match="somebody listens there already"):
        second.start()
    (path.parent / "file").write_text("")
    with pytest.raises(PermanentError, match="is no socket"):
        UnixServer(path.parent / "file", SERVICE, {}).start()
    with pytest.raises((PermanentError, OSError)):
        UnixServer(path.parent / "absent" / "s.sock", SERVICE, {}).start()
    assert server.is_listening()


@pytest.mark.parametrize("kind", ["file", "pipe"])
def test_a_folder_that_is_none_is_named(tmp_path: Path, kind: str) -> None:
    """The error of the system named a socket that nobody had spoken of, and no remedy."""
    folder = tmp_path / "plugins"
    if kind == "file":
        folder.write_text("")
    else:
        os.mkfifo(folder)
    with pytest.raises(PermanentError, match="/plugins is there and is no directory; move it away"):
        UnixServer(folder / "kubelet.sock", "v1.Echo", {}).check()


def test_a_kept_service_comes_back_and_gives_way(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Gone: served anew. Somebody else's: left to him, said once. Closed: served no more."""
    prepared: list[int] = []
    one = UnixServer(path, SERVICE, {"GetInfo": answer})
    kept = KeptServer(one, lambda: prepared.append(1), log=logging.getLogger("test"))
    kept.keep()
    assert not path.exists()
    kept.open()
    shutil.rmtree(path.parent)
    kept.keep()
    assert one.is_listening()
    path.unlink()
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        for _ in range(3):
            kept.keep()
        assert caplog.text.count("somebody else listens") == 1
    kept.keep()
    wait_until(one.is_listening)
    kept.close()
    kept.keep()
    assert not path.exists()
    assert prepared == [1]


@pytest.mark.parametrize("stands", ["a file", "a link that leads nowhere", "a link to itself"])
def test_what_stands_in_the_place_of_a_services_folder_is_named(
    stands: str, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Said once, with what to do; it is served again once the place is free."""
    one, folder = UnixServer(path, SERVICE, {"GetInfo": answer}), path.parent
    kept = KeptServer(one, lambda: None, log=logging.getLogger("test"))
    kept.open()
    shutil.rmtree(folder)
    if stands == "a file":
        folder.write_text("")
    else:
        folder.symlink_to("nowhere" if "nowhere" in stands else folder)
    for _ in range(3):
        kept.keep()
    assert [one.getMessage() for one in caplog.records] == [
        f"{path}: it cannot be served anew: {folder} is there and is no folder; move it away"
    ]
    folder.unlink()
    kept.keep()
    assert one.is_listening()
    kept.close()


def test_a_service_that_gets_no_thread_listens_nowhere_and_is_tried_again(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Callers hear that nobody is there, not silence; it is no other program's socket."""
    starts = threading.Thread.start

    def refused(thread: threading.Thread) -> None:
        if "_serve" in thread.name:  # the one of gRPC that takes calls
            raise RuntimeError("can't start new thread")
        starts(thread)

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refused)
        one = UnixServer(path, SERVICE, {"GetInfo": answer})
        with pytest.raises(RuntimeError, match="can't start") as kept_alive:
            one.start()
        assert not _sockets.is_served(path)
    kept = KeptServer(
        UnixServer(path, SERVICE, {"GetInfo": answer}), lambda: None, log=logging.getLogger("nodealloc")
    )
    kept.open()
    path.unlink()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refused)
        kept.keep()
    assert "it cannot be served anew: can't start new thread" in caplog.text
    kept.keep()
    assert caller(path).call("GetInfo", b"ab", 5.0) == b"abab"
    kept.close()
    assert str(kept_alive.value)
