"""Follows plugins' streams, each as one operation of the engine that lasts as long as the stream."""

from __future__ import annotations

import logging
from collections.abc import Callable

from nodealloc.devices._inventory import DeviceList, Inventory
from nodealloc.devices._ports import AllocatorKeeper
from nodealloc.devices.plugins._callbacks import Callbacks, PluginRegistration
from nodealloc.devices.plugins._endpoints import Endpoint, Endpoints
from nodealloc.devices.plugins._inventories import Inventories
from nodealloc.devices.plugins._unanswered import is_served
from nodealloc.dsw_asw import (
    KEEP,
    Cancel,
    Clock,
    Executor,
    Outcome,
    Plan,
    Reconciler,
    Step,
    View,
    World,
)
from nodealloc.errors import NodeallocError

__all__ = ["Streams"]

_log = logging.getLogger("nodealloc.devices")


class Streams:
    """A `Domain`: wanted are plugins whose streams are to be followed, there are those that are followed.

    Whoever serves a resource is let go when a newcomer has listed its devices.

    Args:
        keeper: Holds the allocator.
        inventories: What is known of each resource.
        endpoints: Who serves what.
        callbacks: Takes on a plugin whose stream ended and that registered again meanwhile.
        followed: What is wanted, by generation; a stream that ended is dropped from it.
        executor: Runs each call as long as its stream lasts.
        clock: Time.

    Attributes:
        engine: Follows them.
    """

    def __init__(
        self,
        keeper: AllocatorKeeper,
        inventories: Inventories,
        endpoints: Endpoints,
        callbacks: Callbacks,
        followed: World[int, Endpoint],
        *,
        executor: Executor,
        clock: Clock,
    ) -> None:
        self._keeper = keeper
        self._inventories = inventories
        self._endpoints = endpoints
        self._callbacks = callbacks
        self._followed = followed
        self._clock = clock
        self.engine: Reconciler[int, Endpoint, Endpoint, Endpoint] = Reconciler(
            self,
            desired=followed,
            actual=World[int, Endpoint]("device plugins that are followed"),
            executor=executor,
            clock=clock,
            name="device plugin streams",
        )

    def plan(self, view: View[int, Endpoint, Endpoint, Endpoint], /) -> Plan[Endpoint, Endpoint]:
        """Follow it once, from its first list to its end."""
        if view.want is None:
            return Plan(have=KEEP if view.running else None, cancel=True)
        step = Step(scope=("stream", view.key), verb="follow", detail=view.want)
        return Plan(have=view.want, steps=[step])

    def perform(self, step: Step[Endpoint], cancel: Cancel, /) -> None:
        """Read its lists until its stream ends, or the connection is closed."""
        endpoint = step.detail
        leave = cancel.on_cancel(endpoint.end)
        trouble = "its stream ended"
        try:
            for devices in endpoint.connection.lists():
                self._listed(endpoint, DeviceList.of(devices, nodes=self._keeper.current().nodes))
        except NodeallocError as error:
            trouble = str(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this plugin's trouble alone
            trouble = f"{type(error).__name__}: {error}"
            _log.exception("device plugin %s: following its stream failed", endpoint.resource)
        finally:
            leave()
            endpoint.end()
            self._followed.drop(endpoint.generation, by="its end")
            self._left(endpoint, trouble)

    def settled(
        self, _have: Endpoint | None, _step: Step[Endpoint], _outcome: Outcome[None], /
    ) -> Endpoint | None:
        """However it ended, it is followed no longer."""
        return None

    def let_go(self, resource: str, socket: str, /) -> None:
        """Let a plugin go; one that another took the place of is no longer there to let go."""
        for endpoint in self._endpoints.at(resource, socket):
            self._left(endpoint, "its socket was removed")
            endpoint.end()

    def close(self) -> None:
        """Let go of every plugin. May be repeated."""
        for endpoint in self._endpoints.close():
            endpoint.end()

    def _listed(self, endpoint: Endpoint, devices: DeviceList) -> None:
        counts, older = self._endpoints.listed(endpoint)
        if not counts:
            return
        now_s, generation = self._clock.monotonic_s(), endpoint.generation

        def changed(known: Inventory) -> Inventory:
            taken_over = known.registered(generation, now_s=now_s)
            return taken_over.listed(generation, devices, endpoint.options, now_s=now_s)

        self._change(endpoint.resource, changed)
        if older is not None:
            older.end()

    def _left(self, endpoint: Endpoint, trouble: str) -> None:
        resource = endpoint.resource
        left = self._endpoints.left(endpoint)
        now_s = self._clock.monotonic_s()
        if left.was_coming and not self._callbacks.stopping.is_set():
            _log.warning("%s: %s left before its first list: %s", resource, endpoint.socket, trouble)
        if not left.served:
            return
        if left.successor is None and endpoint.is_owed and self._opened_again(endpoint):
            return

        def changed(known: Inventory) -> Inventory:
            ended = known.ended(endpoint.generation, trouble, now_s=now_s)
            if left.successor is None:
                return ended
            return ended.registered(left.successor.generation, now_s=now_s, options=left.successor.options)

        self._change(resource, changed)

    def _change(self, resource: str, change: Callable[[Inventory], Inventory]) -> None:
        # Whoever stops lets go of everybody: what was known of them stands.
        if not self._callbacks.stopping.is_set():
            self._inventories.change(resource, change)

    def _opened_again(self, endpoint: Endpoint) -> bool:
        """Whether a plugin that registered a second time serves on, by the stream that this opens for it."""
        try:
            served = is_served(endpoint.path)
        except OSError:  # no descriptor is left to look with
            served = False
        if self._callbacks.stopping.is_set() or not served:
            return False
        registration = PluginRegistration(
            resource=endpoint.resource, socket=endpoint.socket, path=endpoint.path
        )
        try:
            self._callbacks.take_on(registration)
        except NodeallocError:
            return False
        return True
