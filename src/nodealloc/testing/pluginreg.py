"""Fakes and checks for plugin registration: sockets, watchers, handlers, promises put to the test."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

from nodealloc.errors import NodeallocError, PermanentError
from nodealloc.pluginreg import (
    AsyncRegistration,
    PluginHandler,
    PluginInfo,
    Registration,
    RegistrationUnavailableError,
)
from nodealloc.testing._wording import in_words

__all__ = [
    "FakeAsyncRegistration",
    "FakeRegistration",
    "RecordingHandler",
    "bare_socket",
    "check_async_registration",
    "check_handler",
    "check_registration",
]

_SOON_S = 10.0
_TIMES = 1000


def bare_socket(path: Path, /) -> None:
    """Bind a Unix socket on which nobody answers, as a plugin that crashed leaves it behind."""
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


class FakeRegistration:
    """A `Registration` over a dict of sockets. Thread-safe.

    Attributes:
        plugins: Socket to who is there; an error is raised instead.
        asked: Sockets that were asked who is there, in order.
        told: What plugins were told, in order: socket, and error or "".
        hang: Sockets that never answer until `release` is called.
    """

    def __init__(self, plugins: dict[str, PluginInfo | NodeallocError] | None = None, /) -> None:
        self.plugins: dict[str, PluginInfo | NodeallocError] = {} if plugins is None else plugins
        self.asked: list[str] = []
        self.told: list[tuple[str, str]] = []
        self.hang: set[str] = set()
        self._released = threading.Event()

    def release(self) -> None:
        """Let everything that hangs go on."""
        self._released.set()

    def info(self, socket: str, /) -> PluginInfo:
        """See `Registration`."""
        self.asked.append(socket)
        if socket in self.hang:
            self._released.wait()
        found = self.plugins.get(socket)
        if found is None:
            raise RegistrationUnavailableError(socket, "GetInfo", "UNAVAILABLE")
        if isinstance(found, NodeallocError):
            raise found
        return found

    def notify(self, socket: str, error: str, /) -> None:
        """See `Registration`."""
        if socket not in self.plugins:
            raise RegistrationUnavailableError(socket, "NotifyRegistrationStatus", "UNAVAILABLE")
        self.told.append((socket, error))


class FakeAsyncRegistration(FakeRegistration):
    """The same as an `AsyncRegistration`; what hangs is a future that is not done. Thread-safe.

    Attributes:
        hanging: Socket to the newest future of it that hangs.
    """

    def __init__(self, plugins: dict[str, PluginInfo | NodeallocError] | None = None, /) -> None:
        super().__init__(plugins)
        self.hanging: dict[str, Future[PluginInfo]] = {}

    def info_later(self, socket: str, /) -> Future[PluginInfo]:
        """See `AsyncRegistration`."""
        future = Future[PluginInfo]()
        if socket in self.hang:
            self.asked.append(socket)
            self.hanging[socket] = future
            return future
        try:
            future.set_result(self.info(socket))
        except NodeallocError as error:
            future.set_exception(error)
        return future

    def notify_later(self, socket: str, error: str, /) -> Future[None]:
        """See `AsyncRegistration`."""
        future = Future[None]()
        try:
            self.notify(socket, error)
        except NodeallocError as failure:
            future.set_exception(failure)
        else:
            future.set_result(None)
        return future


class RecordingHandler:
    """A `PluginHandler` that writes down what it is asked. Thread-safe.

    Attributes:
        calls: Verb, name and endpoint, in order.
        taken: The same without what it refused or failed.
        held: Name and endpoint of what is registered.
        refuse: Names that `validate` refuses, with the reason.
        fail: Names whose `register` raises this many times more.
        hang: Names whose `register` waits for the event.
        overlaps: Names for which two calls overlapped; stays empty.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, str]] = []
        self.taken: list[tuple[str, str, str]] = []
        self.held: dict[tuple[str, str], tuple[str, ...]] = {}
        self.refuse: dict[str, str] = {}
        self.fail: dict[str, int] = {}
        self.hang: dict[str, threading.Event] = {}
        self.overlaps: list[str] = []
        self._lock = threading.Lock()
        self._inside: set[str] = set()

    def validate(self, name: str, endpoint: str, versions: Sequence[str], /) -> None:
        """See `PluginHandler`."""
        del versions
        with self._lock:
            self.calls.append(("validate", name, endpoint))
        if name in self.refuse:
            raise PermanentError(self.refuse[name])

    def register(self, name: str, endpoint: str, versions: Sequence[str], /) -> None:
        """See `PluginHandler`."""
        self._enter(name)
        try:
            if name in self.hang:
                self.hang[name].wait()
            with self._lock:
                self.calls.append(("register", name, endpoint))
                if self.fail.get(name, 0):
                    self.fail[name] -= 1
                    raise PermanentError("told to fail")
                self.taken.append(("register", name, endpoint))
                self.held[name, endpoint] = tuple(versions)
        finally:
            self._leave(name)

    def deregister(self, name: str, endpoint: str, /) -> None:
        """See `PluginHandler`."""
        self._enter(name)
        try:
            with self._lock:
                self.calls.append(("deregister", name, endpoint))
                self.taken.append(("deregister", name, endpoint))
                self.held.pop((name, endpoint), None)
        finally:
            self._leave(name)

    def _enter(self, name: str) -> None:
        with self._lock:
            if name in self._inside:
                self.overlaps.append(name)
            self._inside.add(name)

    def _leave(self, name: str) -> None:
        with self._lock:
            self._inside.discard(name)


@in_words
def check_registration(client: Registration, plugin: str, absent: str, /) -> None:
    """Hold a `Registration` to its promises.

    Args:
        client: To check.
        plugin: Socket of a plugin that answers.
        absent: Socket that is not there.
    """
    info = client.info(plugin)
    assert info.type, "a plugin has a type"
    assert info.name, "a plugin has a name"
    assert info.endpoint, "an endpoint that the plugin does not name is its socket"
    assert client.info(plugin) == info, "asking again gives the same"
    client.notify(plugin, "")
    client.notify(plugin, "no")
    for verb in ("info", "notify"):
        try:
            if verb == "info":
                client.info(absent)
            else:
                client.notify(absent, "")
        except NodeallocError:
            continue
        raise AssertionError(f"{verb}: {absent} is not there and was answered for")


def check_async_registration(client: AsyncRegistration, plugin: str, absent: str, /) -> None:
    """Hold an `AsyncRegistration` to its promises; arguments as for `check_registration`.

    It says the same twice, of a plugin and of a socket that is not there, and a call that
    was cancelled does not keep the next one from being answered.
    """
    answers = [client.info_later(plugin) for _ in range(2)]
    first, second = (answer.result(_SOON_S) for answer in answers)
    assert first == second, "asking twice at once gives the same"
    assert first.name, "a plugin has a name"
    client.info_later(plugin).cancel()
    client.notify_later(plugin, "").result(_SOON_S)
    client.notify_later(plugin, "no").result(_SOON_S)
    later: list[Future[PluginInfo] | Future[None]] = [
        client.info_later(absent),
        client.notify_later(absent, ""),
    ]
    for one in later:
        error = one.exception(_SOON_S)
        assert isinstance(error, NodeallocError), f"{absent} is not there and was answered for"


@in_words
def check_handler(handler: PluginHandler, name: str, endpoint: str, versions: Sequence[str], /) -> None:
    """Hold a `PluginHandler` to its promises with a plugin that it accepts.

    Every call may be repeated, refuses by raising and in no other way, and leaves what it
    is given alone; a plugin that is not registered can be let go.

    Raises:
        AssertionError: A promise is broken; the text says which.
    """
    given = list(versions)
    let_go, taken = ("deregister", handler.deregister), ("register", handler.register)
    for what, call in (let_go, ("validate", handler.validate), taken, let_go, taken, let_go):
        for time in ("first", "second"):
            rest = () if call == handler.deregister else (given,)
            try:
                said: object = call(name, endpoint, *rest)
            except Exception as error:
                raise AssertionError(f"{what} of {name}, for the {time} time, raised {error!r}") from error
            assert said is None, f"{what} answered {said!r}; whoever refuses raises"
            assert given == list(versions), f"{what} changed the versions that it was given"
