"""Takes plugins on and follows their streams; whoever serves is let go when the newcomer has listed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import attrs

from nodealloc import _sockets
from nodealloc._rpc.turns import Turns
from nodealloc.devices._allocator import DeviceAllocator
from nodealloc.devices._endpoints import Endpoint, Endpoints, Joined
from nodealloc.devices._errors import PluginUnavailableError, RegistrationRefusedError
from nodealloc.devices._inventory import DeviceList, Inventory, PluginOptions
from nodealloc.devices._life import Phase
from nodealloc.devices._limits import PluginLimits
from nodealloc.devices._ports import AllocatorKeeper, Connect, PluginConnection
from nodealloc.devices._room import with_room
from nodealloc.errors import NodeallocError, RetryableError

__all__ = ["Introduction", "Streams", "Told"]

_log = logging.getLogger("nodealloc.devices")
_CALL = "GetDevicePluginOptions"

Told = Callable[[Inventory | None, DeviceAllocator, str], None]
"""Is called after a change: a resource's inventory before, the allocator after, the resource."""


@attrs.frozen(kw_only=True)
class Introduction:
    """How a plugin registered.

    Attributes:
        resource: What it serves.
        socket: Where it listens, in its own words.
        path: The same, resolved.
        offered: What it wants to be asked, as it said already.
    """

    resource: str
    socket: str
    path: str
    offered: PluginOptions = PluginOptions()


class Streams:
    """Every plugin's stream, each on a thread of its own. Thread-safe.

    Args:
        keeper: Holds the allocator.
        connect: From a socket's path to a connection.
        limits: How many plugins there may be.
        clock: Monotonic seconds.
        told: Is told of every change.
    """

    def __init__(
        self,
        keeper: AllocatorKeeper,
        connect: Connect,
        limits: PluginLimits,
        clock: Callable[[], float],
        told: Told,
    ) -> None:
        self._keeper = keeper
        self._connect = connect
        self._limits = limits
        self._clock = clock
        self._told = told
        self._endpoints = Endpoints()
        self._turns = Turns(limits.introductions)
        self._lock = threading.Lock()
        self._threads: set[threading.Thread] = set()
        self.stopping = threading.Event()

    def connection(self, resource: str, /) -> PluginConnection | None:
        """To the plugin that serves a resource now."""
        endpoint = self._endpoints.serving(resource)
        return None if endpoint is None else endpoint.connection

    def sockets(self) -> dict[str, str]:
        """Resource to where its plugin listens."""
        return dict(self._endpoints.sockets())

    def take_on(self, introduction: Introduction, /) -> None:
        """Call a plugin back, and follow its stream. Who serves already serves on until it lists.

        Raises:
            PluginUnavailableError: Nobody answers there.
            PluginRefusedError: The answer makes no sense.
            RegistrationRefusedError: There is no room for it, or another one was quicker.
            RetryableError: The agent is stopping.
        """
        resource = introduction.resource
        known = with_room(self._keeper.current(), resource, self._limits.resources).inventories.get(resource)
        generation = self._endpoints.next_generation(0 if known is None else known.generation)
        connection = self._connect(introduction.path)
        try:
            options = self._asked(connection, introduction)
        except NodeallocError as error:
            connection.close()
            self._failed(resource, generation, str(error))
            raise
        newcomer = Endpoint(
            resource=resource,
            generation=generation,
            socket=introduction.socket,
            path=introduction.path,
            identity=_sockets.identity(introduction.path),
            connection=connection,
            options=options,
            offered=introduction.offered,
        )
        try:
            self._join(newcomer)
        except NodeallocError:
            connection.close()
            raise

    def let_go(self, resource: str, socket: str, /) -> None:
        """Let a plugin go; one that another took the place of is no longer there to let go."""
        for endpoint in self._endpoints.at(resource, socket):
            self._left(endpoint, "its socket was removed")
            endpoint.connection.close()

    def change(self, resource: str, change: Callable[[Inventory], Inventory], /) -> None:
        """Change a resource's inventory, and tell of it; waits while the keeper cannot remember it.

        Raises:
            RegistrationRefusedError: The resource is a new one, and there is no room for it.
        """
        if self.stopping.is_set():
            return
        blank = Inventory(resource=resource)

        def altered(allocator: DeviceAllocator) -> DeviceAllocator:
            known = allocator.inventories.get(resource)
            if known is None:
                allocator = with_room(allocator, resource, self._limits.resources)
            return allocator.with_inventory(change(blank if known is None else known))

        while True:
            try:
                before, after = self._keeper.alter(altered)
                break
            except RetryableError as error:  # a full disk is no plugin's fault
                _log.warning("%s: what happened cannot be remembered yet: %s", resource, error)
                if self.stopping.wait(max(error.after_s, 0.1)):
                    return
        older = before.inventories.get(resource)
        if older is not after.inventories[resource]:
            self._told(older, after, resource)

    def spawn(self, call: Callable[[], None], name: str, /) -> None:
        """Run something on a thread that `close` waits for."""

        def run() -> None:
            try:
                call()
            finally:
                with self._lock:
                    self._threads.discard(threading.current_thread())

        thread = threading.Thread(target=run, name=name, daemon=True)
        with self._lock:
            self._threads.add(thread)
        thread.start()

    def refuse(self) -> None:
        """Take nobody on from here on; whoever waits for an answer is told so."""
        self.stopping.set()
        self._turns.close()

    def close(self) -> None:
        """Let go of every plugin. May be repeated."""
        self.refuse()
        for endpoint in self._endpoints.close():
            endpoint.connection.close()
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(5.0)

    def _asked(self, connection: PluginConnection, introduction: Introduction) -> PluginOptions:
        """What the plugin wants to be asked; that it answers is the point."""
        offered = introduction.offered
        with self._turns.take(connection.close) as turn:
            try:
                said = connection.options()
            except NodeallocError as error:
                if self.stopping.is_set():
                    raise _stopping() from error
                if not turn.gave_way:
                    raise
                why = "it kept silent while others waited for their turn; register again"
                raise PluginUnavailableError(introduction.path, _CALL, "GAVE WAY", why) from error
            except Exception as error:
                _log.exception("device plugin %s: asking for its options failed", introduction.resource)
                kind = type(error).__name__
                raise PluginUnavailableError(introduction.path, _CALL, kind, str(error)) from error
        return PluginOptions(
            pre_start_required=said.pre_start_required or offered.pre_start_required,
            preferred_allocation=said.preferred_allocation or offered.preferred_allocation,
        )

    def _join(self, newcomer: Endpoint) -> None:
        resource = newcomer.resource
        joined, driven_out = self._endpoints.join(newcomer)
        if joined is Joined.CLOSED:
            raise _stopping()
        if joined is Joined.LATE:
            raise RegistrationRefusedError(
                f"{resource}: another plugin registered later and has answered first"
            )
        if joined is Joined.SAME:
            newcomer.connection.close()
            return
        if driven_out is not None:
            driven_out.connection.close()
        if joined is Joined.SERVES:
            now_s = self._clock()
            try:
                self.change(resource, lambda known: known.registered(newcomer.generation, now_s=now_s))
            except RegistrationRefusedError:
                self._endpoints.left(newcomer)
                raise
        self.spawn(lambda: self._follow(newcomer), f"device plugin {resource}")

    def _failed(self, resource: str, generation: int, trouble: str) -> None:
        """A plugin that registered cannot be reached: said where nobody else serves the resource."""
        now_s = self._clock()

        def changed(known: Inventory) -> Inventory:
            if known.phase in (Phase.CONNECTING, Phase.SERVING):
                return known
            if known.generation:
                return attrs.evolve(known, trouble=trouble)
            return known.registered(generation, now_s=now_s).ended(generation, trouble, now_s=now_s)

        try:
            self.change(resource, changed)
        except RegistrationRefusedError:
            _log.debug("%s: no room to say that %s", resource, trouble)

    def _follow(self, endpoint: Endpoint) -> None:
        """One plugin's thread: to the end of its stream."""
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
            endpoint.connection.close()
            self._left(endpoint, trouble)

    def _listed(self, endpoint: Endpoint, devices: DeviceList) -> None:
        counts, older = self._endpoints.listed(endpoint)
        if not counts:
            return
        now_s, generation = self._clock(), endpoint.generation

        def changed(known: Inventory) -> Inventory:
            taken_over = known.registered(generation, now_s=now_s)
            return taken_over.listed(generation, devices, endpoint.options, now_s=now_s)

        self.change(endpoint.resource, changed)
        if older is not None:
            older.connection.close()

    def _left(self, endpoint: Endpoint, trouble: str) -> None:
        resource = endpoint.resource
        left = self._endpoints.left(endpoint)
        now_s = self._clock()
        if left.was_coming and not self.stopping.is_set():
            _log.warning("%s: %s left before its first list: %s", resource, endpoint.socket, trouble)
        if not left.served:
            return
        if left.heir is None and endpoint.is_owed and self._opened_again(endpoint):
            return

        def changed(known: Inventory) -> Inventory:
            ended = known.ended(endpoint.generation, trouble, now_s=now_s)
            return ended if left.heir is None else ended.registered(left.heir.generation, now_s=now_s)

        self.change(resource, changed)

    def _opened_again(self, endpoint: Endpoint) -> bool:
        """Whether a plugin that registered a second time serves on, by the stream that this opens for it."""
        found = _sockets.pin(endpoint.path)
        served = found is not None and found.is_served()
        if found is not None:
            found.release()
        if self.stopping.is_set() or not served:
            return False
        introduction = Introduction(
            resource=endpoint.resource, socket=endpoint.socket, path=endpoint.path, offered=endpoint.offered
        )
        try:
            self.take_on(introduction)
        except NodeallocError:
            return False
        return True


def _stopping() -> RetryableError:
    return RetryableError("the agent is stopping; register again when kubelet.sock is made anew")
