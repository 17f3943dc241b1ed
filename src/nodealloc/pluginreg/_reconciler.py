"""The shell: looks when there is a reason to, and keeps registrations in line with what it saw."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from typing_extensions import override

from nodealloc._arguments import wrong
from nodealloc._logged import logged
from nodealloc._typed import typed, typed_methods
from nodealloc.dirwatch import Watcher
from nodealloc.dsw_asw import (
    BackOff,
    Clock,
    Executor,
    Group,
    Observer,
    Reconciler,
    Running,
    SystemClock,
    ThreadExecutor,
    World,
)
from nodealloc.errors import ConfigurationError
from nodealloc.pluginreg._domain import Known, Registrations, Result, Task
from nodealloc.pluginreg._grpc import GrpcRegistration
from nodealloc.pluginreg._polling import PollingWatcher
from nodealloc.pluginreg._ports import PluginHandler, Registration
from nodealloc.pluginreg._scan import scan
from nodealloc.pluginreg._sightings import Sighting, Sightings, SocketIdentity
from nodealloc.pluginreg._status import RegistrationStatus, left_out_at, status_of
from nodealloc.pluginreg._watching import watching

__all__ = ["PluginRegistrar"]

MOST_SOCKETS = 1024
"""Each is remembered and asked now and then; no node has a tenth as many plugins."""

MOST_CALLS = 64
"""Of handlers; a plugin is asked and told without a thread."""

_log = logging.getLogger("nodealloc.pluginreg")


@typed_methods
class PluginRegistrar(Group):
    """Plugins below a directory: found, registered with their handler, and let go. Thread-safe.

    It is a `nodealloc.dsw_asw.Group` of what keeps registrations in line and of the looks at
    the directory: `start` it. In a group of yours it does not look by itself: call `observe`.

    Args:
        directory: Where plugins put their sockets; made (0750) at start if absent.
        handlers: Plugin type to handler.
        watcher: Says when to look; by default a `PollingWatcher`. The registrar
            closes it.
        registration: Talks to registration sockets.
        executor: Runs handlers, and calls of a `registration` that cannot be asked without
            a thread; by default a thread for each, 64 at most.
        clock: Time for back-off, deadlines and the view.
        back_off: How long a plugin that failed waits.
        observe_s: Seconds after which it looks without a reason.
        identify_s: Deadline for finding out who is there.
        handle_s: Deadline for a handler.
        most_sockets: How many sockets are looked after; those beyond stand in
            `status` as left out, until others are gone.
        observer: Is told of progress.
        look: From the directory to the sockets below it.

    Attributes:
        reconciler: Keeps registrations in line; `failures` of a socket's path are there.
    """

    @typed
    def __init__(
        self,
        directory: str | Path,
        handlers: Mapping[str, PluginHandler],
        /,
        *,
        watcher: Watcher | None = None,
        registration: Registration | None = None,
        executor: Executor | None = None,
        clock: Clock | None = None,
        back_off: BackOff | None = None,
        observe_s: float = 10.0,
        identify_s: float = 20.0,
        handle_s: float = 60.0,
        most_sockets: int = MOST_SOCKETS,
        observer: Observer | None = None,
        look: Callable[[str], Mapping[str, SocketIdentity]] = scan,
    ) -> None:
        if most_sockets < 1:
            raise wrong("PluginRegistrar, most_sockets", most_sockets, "1 or more")
        self._directory = os.fspath(directory)
        self._watcher = PollingWatcher(self._directory) if watcher is None else watcher
        self._most_sockets = most_sockets
        self._scan = look
        self._clock: Clock = SystemClock() if clock is None else clock
        self._handlers = dict(handlers)
        self._lock = threading.Lock()
        self._sightings = Sightings()
        self._desired: World[str, Sighting] = World("sockets")
        self._actual: World[str, Known] = World("plugins")
        if executor is None:
            executor = ThreadExecutor("plugin registration", most=MOST_CALLS)
        domain = Registrations(
            self._actual,
            GrpcRegistration() if registration is None else registration,
            self._handlers,
            identify_s=identify_s,
            handle_s=handle_s,
            executor=executor,
        )
        self.reconciler: Reconciler[str, Sighting, Known, Task, Result] = Reconciler(
            domain,
            desired=self._desired,
            actual=self._actual,
            executor=executor,
            clock=self._clock,
            back_off=back_off,
            observer=observer,
            name="plugin registrations",
        )
        self._watched: World[str, int] = World("watched directories")
        super().__init__(
            self.reconciler,
            watching(self._watched, self.observe, self._watcher, observe_s=observe_s, clock=self._clock),
            name="plugin registrations",
            stop_timeout_s=2.0,
        )

    @override
    def start(self) -> None:
        """Make the directory if need be and begin; a registrar starts once.

        Raises:
            ConfigurationError: The directory cannot be made.
        """
        try:
            Path(self._directory).mkdir(mode=0o750, parents=True, exist_ok=True)
        except OSError as error:
            reason = error.strerror or str(error)
            raise ConfigurationError(
                f"{self._directory}: no directory can be made ({reason}); give another"
            ) from error
        self._watched.put(self._directory, 0, by="start")
        super().start()

    @override
    def stop(self, timeout_s: float | None = None, /) -> tuple[Running[object], ...]:
        """Stop looking; registrations stay as they are. See `Group`."""
        logged(_log, self._watcher.close, "%s: its watcher did not close well", self._directory)
        return super().stop(timeout_s)

    def observe(self) -> int:
        """Read the directory now: every socket that is new, another, or gone becomes work.

        Whoever has an event of their own may call it.

        Returns:
            How many sockets are looked after.

        Raises:
            OSError: No descriptor or memory was left to look with, or the disk did not give
                the directory; nobody was let go.
        """
        with self._lock:
            before = self._sightings
            after = before.after(self._scan(self._directory), most=self._most_sockets)
            if after.left_out and not before.left_out:
                _log.warning(
                    "%s: %d sockets, %d at most are looked after; the first that is left out: %s",
                    self._directory,
                    len(after.by_path) + len(after.left_out),
                    self._most_sockets,
                    after.left_out[0],
                )
            for path in [path for path in before.by_path if path not in after.by_path]:
                self._desired.drop(path, by="observe")
            for path, sighting in after.by_path.items():
                self._desired.put(path, sighting, by="observe")
            self._sightings = after
        return len(after.by_path)

    @typed
    def add_handler(self, plugin_type: str, handler: PluginHandler, /) -> None:
        """Take another type; plugins of it that are waiting are tried at once."""
        self._handlers[plugin_type] = handler
        for path, record in self._actual.snapshot().items():
            if record.value.info.type == plugin_type:
                self.reconciler.retry_now(path)

    def status(self) -> tuple[RegistrationStatus, ...]:
        """Every socket that is seen or registered, by path, then those that are left out; for people."""
        desired, actual = self._desired.snapshot(), self._actual.snapshot()
        left_out = [left_out_at(path, self._most_sockets) for path in self._sightings.left_out]
        looked_after = tuple(
            status_of(
                path,
                desired[path].value if path in desired else None,
                actual[path].value if path in actual else None,
                self.reconciler.failures(path),
                now_s=self._clock.monotonic_s(),
            )
            for path in sorted({*desired, *actual})
        )
        return (*looked_after, *left_out)
