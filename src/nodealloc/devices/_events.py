"""What happened to devices, and whom it touches: pure differences, and a stream of them."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable

from nodealloc import _attrs as attrs
from nodealloc._typed import typed
from nodealloc.devices._grants import Grants
from nodealloc.devices._inventory import Capacity, DeviceList, Inventory
from nodealloc.devices._life import Phase
from nodealloc.topology import Owner

__all__ = ["DeviceEvent", "DeviceEvents", "EventReaders", "Touched", "event_of", "touched_by"]


@attrs.frozen(kw_only=True)
class Touched:
    """A member of a workload that holds devices whose health changed.

    Attributes:
        owner: Who holds them.
        resource: Of the devices.
        unhealthy: Its devices that are unhealthy or absent now, ascending.
        healthy: Its devices that are healthy, ascending.
    """

    owner: Owner
    resource: str
    unhealthy: tuple[str, ...]
    healthy: tuple[str, ...]


@attrs.frozen(kw_only=True)
class DeviceEvent:
    """Something happened to one resource; a reason to look, and whom to look at.

    Attributes:
        resource: Whose plugin.
        phase: Where its life stands.
        capacity: What to report now.
        touched: Holders whose devices changed their health.
        trouble: Why it is not serving, or "".
        findings: What was wrong with its last list.
    """

    resource: str
    phase: Phase
    capacity: Capacity
    touched: tuple[Touched, ...] = ()
    trouble: str = ""
    findings: tuple[str, ...] = ()


def touched_by(
    before: DeviceList, after: DeviceList, resource: str, grants: Grants, /
) -> tuple[Touched, ...]:
    """Holders of devices that became healthy, unhealthy or absent between two lists."""
    found: list[Touched] = []
    for workload, held in grants.items():
        for (member, name), grant in held.items():
            if name != resource:
                continue
            ids = sorted(grant.ids)
            if all(_is_healthy(before, i) == _is_healthy(after, i) for i in ids):
                continue
            found.append(
                Touched(
                    owner=Owner(workload, member),
                    resource=resource,
                    unhealthy=tuple(i for i in ids if not _is_healthy(after, i)),
                    healthy=tuple(i for i in ids if _is_healthy(after, i)),
                )
            )
    return tuple(found)


def _is_healthy(devices: DeviceList, identity: str) -> bool:
    bit = devices.index.get(identity)
    return bit is not None and bool(devices.healthy >> bit & 1)


def event_of(before: Inventory | None, after: Inventory, grants: Grants, /) -> DeviceEvent:
    """The event between two moments of one resource."""
    old = DeviceList() if before is None else before.devices
    touched: tuple[Touched, ...] = ()
    if old != after.devices:
        touched = touched_by(old, after.devices, after.resource, grants)
    return DeviceEvent(
        resource=after.resource,
        phase=after.phase,
        capacity=after.capacity,
        touched=touched,
        trouble=after.trouble,
        findings=after.devices.findings,
    )


class DeviceEvents:
    """A stream of events for one reader; thread-safe.

    It never holds more than one event a resource: a newer one takes the older
    one's place and keeps whom it touched.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[str, DeviceEvent] = {}

    def put(self, event: DeviceEvent, /) -> None:
        """Add an event."""
        with self._changed:
            older = self._waiting.pop(event.resource, None)
            if older is not None:
                event = attrs.evolve(event, touched=_together(older.touched, event.touched))
            self._waiting[event.resource] = event
            self._changed.notify_all()

    @typed
    def take(self, timeout_s: float | None = 0.0, /) -> tuple[DeviceEvent, ...]:
        """What happened since the last call, oldest first; waits for the first one.

        Args:
            timeout_s: How long to wait at most; None for ever.
        """
        with self._changed:
            self._changed.wait_for(lambda: bool(self._waiting), timeout_s)
            taken, self._waiting = self._waiting, {}
        return tuple(taken.values())


def _together(older: Iterable[Touched], newer: Iterable[Touched]) -> tuple[Touched, ...]:
    latest = {touched.owner: touched for touched in older}
    latest.update((touched.owner, touched) for touched in newer)
    return tuple(latest.values())


class EventReaders:
    """The streams that somebody reads; one that nobody holds any more is forgotten. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._streams = weakref.WeakSet[DeviceEvents]()

    def new(self) -> DeviceEvents:
        """A stream of what happens from now on."""
        stream = DeviceEvents()
        with self._lock:
            self._streams.add(stream)
        return stream

    def put(self, event: DeviceEvent, /) -> None:
        """Tell all of them."""
        with self._lock:
            streams = tuple(self._streams)
        for stream in streams:
            stream.put(event)
