"""A service on a Unix socket: started where nobody else listens, kept served, and stopped for good."""

from __future__ import annotations

import logging
import os
import stat
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import grpc

from nodealloc import _attrs as attrs
from nodealloc import _sockets
from nodealloc._rpc import channels
from nodealloc.errors import NodeallocError, PermanentError

__all__ = ["KeptServer", "ServerOptions", "UnixServer"]

_STOP_S = 5.0
"""How long the calls of a stopped server are waited for; it listens no more in any case."""


@attrs.frozen(kw_only=True)
class ServerOptions:
    """How a service is served.

    Attributes:
        workers: Calls that are answered at once; each has a thread while it lasts.
        largest_bytes: Of a request.
        mode: Rights of the socket.
        log: Where to say what happens.
    """

    workers: int = 8
    largest_bytes: int = 1 << 20
    mode: int = 0o660
    log: logging.Logger = attrs.field(factory=lambda: logging.getLogger("nodealloc"))


class UnixServer:
    """Serves unary calls of one service on a Unix socket.

    What a method raises goes to the caller: a `PermanentError` as
    `INVALID_ARGUMENT`, another `NodeallocError` as `UNAVAILABLE`, each with its
    text; anything else is logged, and ends as `INTERNAL`.

    Args:
        path: The socket; its directory exists when it starts.
        service: Full name, `v1beta1.Registration`.
        methods: Name to what answers, called on a thread of the service.
        options: How it is served.

    Attributes:
        path: The socket.
    """

    def __init__(
        self,
        path: Path,
        service: str,
        methods: Mapping[str, Callable[[bytes], bytes]],
        /,
        *,
        options: ServerOptions | None = None,
    ) -> None:
        self.path = path
        self._service = service
        self._methods = methods
        self._options = ServerOptions() if options is None else options
        self._server: channels.Server | None = None
        self._identity: tuple[int, int, bytes] | None = None

    def check(self) -> None:
        """Whether it could start; changes nothing.

        Raises:
            PermanentError: The path is longer than a socket's may be, is no
                socket, is in no directory, or is one on which somebody listens.
        """
        if fault := _sockets.too_long(self.path):
            raise PermanentError(f"{self.path}: {fault}")
        try:
            if not stat.S_ISSOCK(self.path.lstat().st_mode):
                raise PermanentError(f"{self.path} is there and is no socket; move it away")
        except FileNotFoundError:
            pass
        except NotADirectoryError as error:
            raise PermanentError(f"{self.path.parent} is there and is no directory; move it away") from error
        if _sockets.is_served(self.path):
            raise PermanentError(
                f"{self.path}: somebody listens there already; end the other agent, "
                "or choose another directory"
            )

    def start(self) -> None:
        """Listen; a socket that somebody left behind is replaced.

        Raises:
            PermanentError: As `check`, and where nobody can listen.
            OSError: The directory is not there or not writable.
        """
        self.check()
        pool = ThreadPoolExecutor(self._options.workers, thread_name_prefix=self._service)
        limit = (("grpc.max_receive_message_length", self._options.largest_bytes),)
        server = cast("channels.Server", grpc.server(pool, options=limit))
        methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            name: grpc.unary_unary_rpc_method_handler(self._answering(name, answer))
            for name, answer in self._methods.items()
        }
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(self._service, methods)])
        # gRPC removes what stands at the path that it was given once it ends, be it another's
        # socket: it is given a path that is gone by then. Callers see the socket with its rights.
        first, rest = self.path.name[0], self.path.name[1:]
        hidden = self.path.with_name(("_" if first == "." else ".") + (rest or "_"))
        hidden.unlink(missing_ok=True)
        if not _bound(server, hidden):
            raise PermanentError(f"{self.path}: nobody can listen there; check the directory's rights")
        try:
            hidden.chmod(self._options.mode)
            self.path.unlink(missing_ok=True)
            os.link(hidden, self.path)
            hidden.unlink()
            server.start()
        except BaseException:  # one that did not start goes on to listen, and answers nobody
            server.stop(0)
            raise
        self._server = server
        self._identity = _sockets.identity(self.path)

    def is_listening(self) -> bool:
        """Whether the socket on disk is still the one that this service listens on."""
        return self._server is not None and _sockets.identity(self.path) == self._identity

    def is_taken(self) -> bool:
        """Whether somebody else listens there now."""
        return not self.is_listening() and _sockets.is_served(self.path)

    def stop(self) -> None:
        """Stop listening; calls under way are cut off. May be repeated."""
        server, self._server = self._server, None
        if server is None:
            return
        # With None instead of 0, gRPC itself would wait without a bound.
        if not server.stop(0).wait(_STOP_S):
            self._options.log.warning("%s: calls under way do not end; they are left behind", self.path)
        if _sockets.identity(self.path) == self._identity:
            self.path.unlink(missing_ok=True)

    def _answering(
        self, name: str, answer: Callable[[bytes], bytes]
    ) -> Callable[[bytes, channels.Context], bytes]:
        def called(request: bytes, context: channels.Context) -> bytes:
            try:
                return answer(request)
            except PermanentError as error:
                status, said = grpc.StatusCode.INVALID_ARGUMENT, str(error)
            except NodeallocError as error:
                status, said = grpc.StatusCode.UNAVAILABLE, str(error)
            except Exception as error:
                self._options.log.exception("%s: %s failed", self.path, name)
                status, said = grpc.StatusCode.INTERNAL, f"{type(error).__name__}; see the agent's log"
            # A path in the text may be no UTF-8, which a refusal has to be.
            context.abort(status, said.encode("utf-8", "backslashreplace").decode())
            return b""

        return called


def _bound(server: channels.Server, path: Path) -> bool:
    try:
        return bool(server.add_insecure_port(channels.target(path)))
    except RuntimeError:  # how newer versions of gRPC say it
        return False


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o750, parents=True, exist_ok=True)
    except FileExistsError as error:
        raise PermanentError(f"{error.filename} is there and is no folder; move it away") from error


class KeptServer:
    """A server that is there again when somebody took its socket away. Thread-safe.

    Args:
        server: To keep.
        prepare: Called once before it starts, when nobody else listens there.
        log: Where to say what happens.
    """

    def __init__(self, server: UnixServer, prepare: Callable[[], object], /, *, log: logging.Logger) -> None:
        self._server = server
        self._prepare = prepare
        self._log = log
        self._lock = threading.Lock()
        self._open = False
        self._trouble = ""

    def open(self) -> None:
        """Prepare and serve; touches nothing while somebody else listens there.

        Raises:
            PermanentError: The path is too long for a socket, or taken.
            OSError: The directory cannot be made or written.
        """
        with self._lock:
            self._server.check()
            self._prepare()
            self._server.start()
            self._open = True

    def keep(self) -> None:
        """Serve anew after somebody took the socket away.

        Whoever listens there instead, as a kubelet that was started later, keeps
        it. What stands in the way is said once, and looked at again next time.
        """
        with self._lock:
            if not self._open or self._server.is_listening():
                return
            path = self._server.path
            if self._server.is_taken():
                self._said("somebody else listens there now; those that register go to it")
                return
            try:
                self._server.stop()
                _make_folder(path.parent)
                self._server.start()
            except (OSError, PermanentError, RuntimeError) as error:  # the last: no thread is to be had
                self._said(f"it cannot be served anew: {error}")
                return
            self._trouble = ""
            self._log.warning("%s was gone; serving it anew", path)

    def close(self) -> None:
        """Serve no longer. May be repeated."""
        with self._lock:
            self._open = False
            self._server.stop()

    def _said(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._log.error("%s: %s", self._server.path, trouble)
        self._trouble = trouble
