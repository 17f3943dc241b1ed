"""Removing cgroups: one at a time for a name, with back-off, and who is in the way by name."""

from __future__ import annotations

import enum
import threading
from typing import TYPE_CHECKING, Final, Protocol

import attrs

from nodealloc._back_off import BackOff
from nodealloc.cgroups._errors import CgroupBusyError, Process
from nodealloc.errors import NodeallocError

if TYPE_CHECKING:
    from nodealloc.cgroups._name import CgroupName

__all__ = ["Removal", "RemovalState", "Removals", "RemovingDriver"]


class RemovingDriver(Protocol):
    """The part of a driver that removal calls; see `CgroupDriver` and `ProcessDriver`."""

    def kill(self, name: CgroupName, /) -> tuple[Process, ...]:
        """Send SIGKILL to all in `name`; who is still there."""
        ...

    def remove(self, name: CgroupName, /) -> None:
        """Remove `name` and all below it; an unknown one is not an error."""
        ...


class RemovalState(enum.Enum):
    """How an attempt to remove a cgroup went."""

    REMOVED = "removed"
    STUCK = "stuck"
    BACKING_OFF = "backing off"
    IN_FLIGHT = "in flight"


@attrs.frozen(kw_only=True)
class Removal:
    """What became of one attempt.

    Attributes:
        name: The cgroup.
        state: How it went.
        after_s: When to try again, in seconds from now; 0 once it is removed.
        failures: Attempts in a row that failed.
        stuck: Processes that SIGKILL did not end; state `D` waits for a device or a file server.
        reason: Why the last attempt failed, or "".
    """

    name: CgroupName
    state: RemovalState
    after_s: float = 0.0
    failures: int = 0
    stuck: tuple[Process, ...] = ()
    reason: str = ""

    def __str__(self) -> str:
        """One line for a log."""
        if self.state is RemovalState.REMOVED:
            return f"cgroup {self.name}: removed"
        return f"cgroup {self.name}: {self.state.value}, again in {self.after_s:g} s ({self.reason})"


@attrs.frozen(kw_only=True)
class _Past:
    failures: int
    due_s: float
    stuck: tuple[Process, ...]
    reason: str


_IN_FLIGHT_AGAIN_S: Final = 0.1


class Removals:
    """Removes cgroups with everything that runs in them. May be used from several threads.

    Attributes:
        back_off: How long to wait after failures.
    """

    def __init__(self, driver: RemovingDriver, /, *, back_off: BackOff | None = None) -> None:
        self._driver = driver
        self.back_off: BackOff = back_off or BackOff()
        self._lock = threading.Lock()
        self._in_flight: set[CgroupName] = set()
        self._past: dict[CgroupName, _Past] = {}

    def remove(self, name: CgroupName, /, *, now_s: float) -> Removal:
        """Kill all in `name` and remove it, unless that is under way or has to wait.

        Args:
            name: The cgroup.
            now_s: Seconds of a clock that does not go back.

        Returns:
            How it went; a failure is a value with the time to try again, so
            that one stuck pod does not stop a round over all.
        """
        with self._lock:
            past = self._past.get(name)
            if name in self._in_flight:
                return _told(name, RemovalState.IN_FLIGHT, past, _IN_FLIGHT_AGAIN_S)
            if past is not None and now_s < past.due_s:
                return _told(name, RemovalState.BACKING_OFF, past, past.due_s - now_s)
            self._in_flight.add(name)
        failure: _Past | None = None
        try:
            failure = self._attempt(name, past.failures if past else 0, now_s)
        finally:
            with self._lock:
                self._in_flight.discard(name)
                if failure is None:
                    self._past.pop(name, None)
                else:
                    self._past[name] = failure
        if failure is None:
            return Removal(name=name, state=RemovalState.REMOVED)
        return _told(name, RemovalState.STUCK, failure, failure.due_s - now_s)

    def pending(self) -> tuple[CgroupName, ...]:
        """Cgroups whose removal failed and is to be tried again, sorted."""
        with self._lock:
            return tuple(sorted(self._past))

    def is_in_flight(self, name: CgroupName, /) -> bool:
        """Whether somebody is removing it right now."""
        with self._lock:
            return name in self._in_flight

    def forget(self, name: CgroupName, /) -> None:
        """Drop the back-off of a cgroup: it is wanted again, or an operator mended it."""
        with self._lock:
            self._past.pop(name, None)

    def _attempt(self, name: CgroupName, failures: int, now_s: float) -> _Past | None:
        """Why it failed, or None."""
        stuck: tuple[Process, ...] = ()
        try:
            stuck = self._driver.kill(name)
            self._driver.remove(name)
        except CgroupBusyError as error:
            reason, stuck = str(error), error.processes or stuck
        except NodeallocError as error:
            reason = str(error)
        else:
            return None
        due_s = now_s + self.back_off.after(failures + 1)
        return _Past(failures=failures + 1, due_s=due_s, stuck=stuck, reason=reason)


def _told(name: CgroupName, state: RemovalState, past: _Past | None, after_s: float) -> Removal:
    if past is None:
        return Removal(name=name, state=state, after_s=after_s, reason="another caller is at it")
    return Removal(
        name=name, state=state, after_s=after_s, failures=past.failures, stuck=past.stuck, reason=past.reason
    )
