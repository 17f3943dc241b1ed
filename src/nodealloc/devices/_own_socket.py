"""The agent's own socket, on which plugins introduce themselves: served, and kept served."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from nodealloc.devices._codec import RegisterRequest
from nodealloc.devices._directory import prepare_directory
from nodealloc.devices._registration import RegistrationService

__all__ = ["KUBELET_SOCKET", "OwnSocket"]

KUBELET_SOCKET = "kubelet.sock"

_log = logging.getLogger("nodealloc.devices")


class OwnSocket:
    """`kubelet.sock` of a directory. Thread-safe.

    Args:
        directory: Of the sockets.
        register: Called for each plugin that introduces itself; see
            `RegistrationService`.
    """

    def __init__(self, directory: Path, register: Callable[[RegisterRequest], None], /) -> None:
        self._directory = directory
        self._service = RegistrationService(directory / KUBELET_SOCKET, register)
        self._lock = threading.Lock()
        self._open = False
        self._ousted = False

    def open(self) -> None:
        """Sweep the directory and serve; touches nothing while somebody else listens there.

        Raises:
            PermanentError: The path is too long for a socket, or taken.
            OSError: The directory cannot be made or written.
        """
        with self._lock:
            self._service.check()
            prepare_directory(self._directory)
            self._service.start()
            self._open = True

    def keep(self) -> None:
        """Serve anew after somebody took the socket away; what plugins have is left alone.

        Whoever listens there instead, as a kubelet that was started later, keeps it.
        """
        with self._lock:
            if not self._open or self._service.is_listening():
                return
            path = self._service.path
            if self._service.is_taken():
                if not self._ousted:
                    _log.error("%s: somebody else listens there now; new plugins go to it", path)
                self._ousted = True
                return
            _log.warning("%s is gone; serving it anew", path)
            self._ousted = False
            self._service.stop()
            path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
            self._service.start()

    def close(self) -> None:
        """Serve no longer. May be repeated."""
        with self._lock:
            self._open = False
            self._service.stop()
