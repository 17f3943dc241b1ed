"""Hooks of containers: a command, a request, a pause; each can be cut short."""

from __future__ import annotations

import contextlib
import errno
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from nodealloc import _attrs as attrs
from nodealloc._arguments import addresses
from nodealloc._error_words import error_words
from nodealloc._redirects import FOLLOWED, MOST_REQUESTS, Target, is_whole_url
from nodealloc._request_paths import path_of
from nodealloc._typed import typed, typed_methods
from nodealloc.errors import ConfigurationError
from nodealloc.podlife._quoting import quoted
from nodealloc.runtime import CommandTimedOutError

if TYPE_CHECKING:
    from http.client import HTTPConnection

    from nodealloc.dsw_asw import Cancel
    from nodealloc.podlife._ports import HookCall
    from nodealloc.podspec import ExecAction, HttpGetAction
    from nodealloc.runtime import CommandResult, CommandRunner

__all__ = ["ContainerHooks"]

_SHOWN: Final = 1 << 14
"""Bytes of what a command wrote that are told; a kubelet tells all of it."""
_READ: Final = 1024
"""Bytes of an answer that are read; nobody looks at them."""
_LARGEST_PORT: Final = 65535
_NO_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"})
"""Why no hands could be shaken with a server that speaks plain HTTP."""
_NOT_REACHED: Final = frozenset({errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ETIMEDOUT})
"""What nobody hears before a connection is there."""
_LEAST_S: Final = 0.001
"""A socket takes 0 for not waiting at all."""


@typed_methods
class ContainerHooks:
    """The `HookRunner` over whoever runs commands; thread-safe.

    Whatever a hook does, the call returns when its time is over, and soon after it
    is asked to stop. A request is closed then, and a pause ends. A command is left to
    the runtime, which ends it when its time is over or with its container.

    Args:
        commands: Runs commands in containers.
        node_ip: Where a pod with the node's network is asked that names no host; "" where nobody knows.

    Raises:
        ConfigurationError: `node_ip` is no IP address.

    Source: kubelet ``lifecycle/handlers.go``.
    """

    @typed
    def __init__(self, commands: CommandRunner, /, *, node_ip: str = "") -> None:
        addresses("ContainerHooks: node_ip", [node_ip] if node_ip else [])
        self._commands = commands
        self._node_ip = node_ip

    def run_hook(self, call: HookCall, cancel: Cancel, /) -> str:
        """Run one to its end, until its time is over, or until asked to stop.

        Returns:
            Why it failed, in words, also where it was called off or ran out of time; "" where
            it did not.
        """
        run = _Run(call, cancel, self._node_ip)
        handler = call.handler
        if handler.exec is not None:
            return run.told("Exec", _listed(handler.exec), self._exec(run, handler.exec))
        if handler.http_get is not None:
            return run.told("HTTP", handler.http_get.path, _http(run, handler.http_get))
        if handler.sleep is not None:
            return run.told("Sleep", str(handler.sleep.seconds), _sleep(run, handler.sleep.seconds))
        return run.told("TCP", "", _Ended("nothing is done for it any more; use exec, httpGet or sleep"))

    def _exec(self, run: _Run, action: ExecAction) -> _Ended:
        limit_s = run.left_s
        if limit_s <= 0:
            return run.cut_off()

        def work() -> _Ended:
            try:
                done = self._commands.run_command(run.container_id, action.command, limit_s)
            except CommandTimedOutError:
                return run.cut_off()
            return _exit_of(action, done)

        return run.beside(work, lambda: None)


@attrs.frozen
class _Ended:
    """How a hook ended.

    Attributes:
        fault: What went wrong, "" for nothing.
        output: What it wrote.
    """

    fault: str = ""
    output: bytes = b""


class _Run:
    """One hook that runs, with its time."""

    def __init__(self, call: HookCall, cancel: Cancel, node_ip: str) -> None:
        self._call = call
        self._node_ip = node_ip
        self._until_s = time.monotonic() + call.timeout_s
        self.cancel = cancel
        self.container_id = call.container_id

    @property
    def left_s(self) -> float:
        return self._until_s - time.monotonic()

    def cut_off(self) -> _Ended:
        return _Ended(f"it has not ended after {self._call.timeout_s:g} s, which is all it was given")

    def called_off(self) -> _Ended:
        return _Ended("it was called off before it had ended")

    def told(self, kind: str, what: str, ended: _Ended) -> str:
        """The words of kubelets' events, as they were recorded."""
        if not ended.fault:
            return ""
        pod = self._call.pod
        where = f'Container "{self._name}" in Pod "{pod.name}_{pod.namespace}({pod.uid})"'
        # Only a command has written something.
        written = f", message: {quoted(ended.output)}" if kind == "Exec" else ""
        return f"{kind} lifecycle hook ({what}) for {where} failed - error: {ended.fault}{written}"

    def beside(self, work: Callable[[], _Ended], stop: Callable[[], None]) -> _Ended:
        """Work on a thread of its own, so that nothing that hangs holds the caller.

        Args:
            work: What is done; what it raises is how the hook failed.
            stop: Makes it end soon; called when its time is over, or on a request to stop.
        """
        found: list[_Ended] = []
        over = threading.Event()

        def run() -> None:
            try:
                found.append(work())
            except Exception as error:  # noqa: BLE001 - whatever it is, the hook failed of it
                found.append(_Ended(error_words(error)))
            finally:
                over.set()

        leave = self.cancel.on_cancel(over.set)
        try:
            threading.Thread(target=run, name=f"hook {self.container_id}", daemon=True).start()
            over.wait(max(0.0, self.left_s))
        finally:
            leave()
        if found:
            return found[0]
        with contextlib.suppress(OSError):
            stop()
        return self.called_off() if self.cancel.is_set() else self.cut_off()

    @property
    def host(self) -> str:
        own = next(iter(self._call.report.ips), "")
        return self._node_ip if self._call.pod.host_network and not own else own

    @property
    def lacks_host(self) -> str:
        if self._call.pod.host_network:
            return "a pod with the node's network has no address of its own; write the host of the request"
        return "the pod has no address yet to send the request to"

    def port(self, port: int | str) -> int:
        """A number, or that of the container's port of this name."""
        if isinstance(port, int) or port.isdecimal():
            number = int(port)
        else:
            named = (one.container_port for one in self._call.container.ports if one.name == port)
            number = next(named, 0)
        if not 1 <= number <= _LARGEST_PORT:
            raise ConfigurationError(f"port {port} of the hook is none that container {self._name} has")
        return number

    @property
    def _name(self) -> str:
        return self._call.container.name


def _sleep(run: _Run, seconds: int) -> _Ended:
    left_s = run.left_s
    if run.cancel.wait(max(0.0, min(float(seconds), left_s))):
        return run.called_off()
    return _Ended() if seconds <= left_s else run.cut_off()


def _http(run: _Run, action: HttpGetAction) -> _Ended:
    """Any answer will do, as with kubelets; redirects within the host are followed."""
    request = _Request(run, action)
    return run.beside(request.send, request.stop)


class _Request:
    """One request; whoever stops it ends whatever it is doing."""

    def __init__(self, run: _Run, action: HttpGetAction) -> None:
        self._run = run
        self._action = action
        self._lock = threading.Lock()
        self._stopped = False
        self._connection: HTTPConnection | None = None

    def send(self) -> _Ended:
        action, run = self._action, self._run
        host = action.host or run.host
        if not host:
            return _Ended(run.lacks_host)
        target = Target.of(action.scheme.lower(), host, run.port(action.port), path_of(action.path))
        headers = _headers(action)
        for _ in range(MOST_REQUESTS):
            try:
                location = self._sent(_connection(target, max(_LEAST_S, run.left_s)), target.path, headers)
            except ssl.SSLError as error:
                if error.reason not in _NO_TLS:
                    raise
                # It does not speak TLS: whoever wrote HTTPS meets a server of plain HTTP.
                target, headers = attrs.evolve(target, scheme="http"), _without(headers, "authorization")
                continue
            except OSError as error:
                return _Ended(f'Get "{target.url}": {_failed_at(target, error)}')
            onward = target.at(location) if location else target
            if not location or onward.host != target.host:
                return _Ended()
            target = onward
            if is_whole_url(location):
                headers = _without(headers, "host")
        return _Ended(f"{MOST_REQUESTS} requests, and redirected again")

    def _sent(self, made: HTTPConnection, path: str, headers: dict[str, str]) -> str:
        """Send one request; where its answer leads, "" for nowhere."""
        try:
            made.connect()
            with self._lock:
                # A stop while it was connecting found nothing to close.
                if self._stopped:
                    return ""
                self._connection = made
            made.request("GET", path, headers=headers)
            answer = made.getresponse()
            answer.read(_READ)
            location = answer.headers.get("Location", "") if answer.status in FOLLOWED else ""
            return location.encode("latin-1").decode(errors="surrogateescape")
        finally:
            made.close()

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            made = self._connection
        # Whoever sends may close it at this moment.
        dialled = None if made is None else made.sock
        if dialled is not None:
            dialled.shutdown(socket.SHUT_RDWR)


def _failed_at(target: Target, error: OSError) -> str:
    """Why there was no answer, in the words that people know from kubelets; they name who did not answer.

    Source: Go ``net`` and ``net/http``, which kubelets ask by.
    """
    if isinstance(error, socket.gaierror):
        unknown = error.errno in {socket.EAI_NONAME, socket.EAI_NODATA}
        return f"dial tcp: lookup {target.host}: {'no such host' if unknown else error.strerror}"
    if error.errno in _NOT_REACHED:
        return f"dial tcp {target.netloc}: connect: {(error.strerror or '').lower()}"
    # Its server hung up: the library says so by an error without a number.
    return "EOF" if isinstance(error, ConnectionResetError) and not error.errno else error_words(error)


def _connection(target: Target, timeout_s: float) -> HTTPConnection:
    # With its headers 2 MiB, which nodes without a hook over HTTP spare.
    from http.client import HTTPConnection, HTTPSConnection  # noqa: PLC0415

    if target.scheme != "https":
        return HTTPConnection(target.host, target.port, timeout=timeout_s)
    # A pod's certificate is for its service; nobody here could tell whether it is right.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return HTTPSConnection(target.host, target.port, timeout=timeout_s, context=context)


def _headers(action: HttpGetAction) -> dict[str, str]:
    words = {"User-Agent": "kube-lifecycle/1.32", "Accept": "*/*", "Connection": "close"}
    for one in action.http_headers:
        same = next((name for name in words if name.lower() == one.name.lower()), one.name)
        words.pop(same, None)
        words[one.name] = one.value
    return {name: value for name, value in words.items() if value}


def _without(headers: dict[str, str], left_out: str) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() != left_out}


def _exit_of(action: ExecAction, done: CommandResult) -> _Ended:
    if not done.code:
        return _Ended()
    errors = done.errors[-_SHOWN:].decode("utf-8", "replace")
    fault = f"command '{' '.join(action.command)}' exited with {done.code}: {errors}"
    return _Ended(fault, (done.output + done.errors)[-_SHOWN:])


def _listed(action: ExecAction) -> str:
    return f"[{' '.join(action.command)}]"
