"""The line to the keeper: starts one where none is, asks, and passes on what it tells."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from examples.processes._kept import LISTENS, SOCKET, open_log
from nodealloc.runtime import AnswerLostError, RuntimeUnavailableError

__all__ = ["KeeperLine"]

_KEEPER = "examples.processes._keeper"
_ATTEMPTS = 5
_GREETS_S = 10.0


class KeeperLine:
    """A connection with one thread that listens. Thread-safe.

    Args:
        folder: Where the keeper keeps everything.
        tree: Where cgroups are mounted.
        root: Cgroup of all containers.
        on_ended: Is called, on the listening thread, with each container that has ended.
        on_lost: Is called when the keeper has died and another has taken over.
    """

    def __init__(
        self,
        folder: Path,
        tree: str,
        root: str,
        on_ended: Callable[[str], None],
        on_lost: Callable[[], None],
    ) -> None:
        self._folder, self._words = folder, (tree, root)
        self._on_ended, self._on_lost = on_ended, on_lost
        self._changed = threading.Condition()
        self._line: socket.socket | None = None
        self._answers: dict[str, bool] = {}
        self._closed = False
        self._keeper: subprocess.Popen[bytes] | None = None
        self._line = self._reach()
        self._thread = threading.Thread(target=self._listen, name="keeper line", daemon=True)
        self._thread.start()

    def start(self, name: str, timeout_s: float = 30.0, /) -> bool:
        """Have a container started; whether it was.

        Raises:
            RuntimeUnavailableError: There is no keeper just now.
            AnswerLostError: It died or hangs; the container may run.
        """
        with self._changed:
            line = self._line
            if line is None:
                raise RuntimeUnavailableError("start_container", "the keeper of containers is away")
            self._answers.pop(name, None)
            try:
                line.sendall(f"start {name}\n".encode())
            except OSError as error:
                raise AnswerLostError("start_container", str(error)) from error
            self._changed.wait_for(lambda: name in self._answers or self._line is not line, timeout_s)
            if name not in self._answers:
                raise AnswerLostError("start_container", "the keeper of containers died, or hangs")
            return self._answers.pop(name)

    def close(self) -> None:
        """Hang up; the keeper stays for as long as anything runs."""
        with self._changed:
            self._closed = True
            if self._line is not None:
                self._line.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        if self._keeper is not None:
            self._keeper.poll()
            self._keeper.returncode = self._keeper.returncode or 0  # not waited for: it outlives us

    def _listen(self) -> None:
        while True:
            line = self._line
            if line is not None:
                self._hear(line)
                line.close()
            with self._changed:
                self._line = None
                self._changed.notify_all()
                if self._closed:
                    return
            try:
                reached = self._reach()
            except RuntimeUnavailableError:
                with self._changed:
                    self._changed.wait_for(lambda: self._closed, 1.0)
                continue
            with self._changed:
                self._line = reached
            self._on_lost()

    def _hear(self, line: socket.socket) -> None:
        """Until the connection ends."""
        rest = b""
        while True:
            try:
                data = line.recv(65536)
            except OSError:
                data = b""
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            for one in lines:
                word, _, name = one.decode().partition(" ")
                if word == "ended":
                    self._on_ended(name)
                    continue
                with self._changed:
                    self._answers[name] = word == "started"
                    self._changed.notify_all()

    def _reach(self) -> socket.socket:
        """A connection to the keeper that is there, or to a new one.

        Raises:
            RuntimeUnavailableError: There is none, and none can be started.
        """
        for _ in range(_ATTEMPTS):
            with contextlib.suppress(OSError):
                return self._connect()
            try:
                said = self._start_keeper()
            except OSError as error:
                raise RuntimeUnavailableError("keeper", f"it cannot be started: {error}") from error
            if said:
                raise RuntimeUnavailableError("keeper", f"it cannot be started: {said}")
        raise RuntimeUnavailableError("keeper", f"see {self._folder / 'keeper.log'}")

    def _connect(self) -> socket.socket:
        folder = os.open(self._folder, os.O_PATH | os.O_DIRECTORY)
        line = socket.socket(socket.AF_UNIX)
        try:
            line.settimeout(_GREETS_S)
            line.connect(f"/proc/self/fd/{folder}/{SOCKET}")  # however long the folder's name is
            _greeted(line)
            line.settimeout(None)
        except BaseException:
            line.close()
            raise
        finally:
            os.close(folder)
        return line

    def _start_keeper(self) -> str:
        """Start one and wait until it listens, or leaves because another one does.

        Returns:
            What stands in its way; "" for nothing.
        """
        command = [sys.executable, "-m", _KEEPER, str(self._folder), *self._words]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(one or os.curdir for one in sys.path)}
        with os.fdopen(open_log(self._folder / "keeper.log"), "ab") as log:
            keeper = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
        words = b""
        if keeper.stdout is not None:
            with keeper.stdout as said:
                words = said.readline()
        if self._keeper is not None:
            self._keeper.poll()
        self._keeper = keeper
        if words == LISTENS:
            return ""
        with contextlib.suppress(subprocess.TimeoutExpired):  # it has hung up, and leaves
            keeper.wait(_GREETS_S)
        return words.decode(errors="replace").strip()


def _greeted(line: socket.socket) -> None:
    """Wait until the keeper has let us in: an end before that is on disk, one behind it is told."""
    said = b""
    while not said.endswith(b"\n"):
        part = line.recv(1)
        if not part:
            raise ConnectionError("the keeper hung up")
        said += part
