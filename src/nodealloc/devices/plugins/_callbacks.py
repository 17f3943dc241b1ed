"""Calls plugins back after they registered, and takes on those who answer. Follows nobody."""

from __future__ import annotations

import logging
import threading

from nodealloc import _attrs as attrs
from nodealloc import _sockets
from nodealloc._rpc.errors import GAVE_WAY
from nodealloc._rpc.turns import Turns
from nodealloc.devices._errors import PluginUnavailableError, RegistrationRefusedError
from nodealloc.devices._inventory import Inventory, PluginOptions
from nodealloc.devices._life import Phase
from nodealloc.devices._limits import PluginLimits
from nodealloc.devices._ports import AllocatorKeeper, Connect, PluginConnection
from nodealloc.devices._room import with_room_for
from nodealloc.devices.plugins._endpoints import Endpoint, Endpoints, JoinOutcome
from nodealloc.devices.plugins._inventories import Inventories
from nodealloc.devices.plugins._silent_processes import SilentProcessError, SilentProcesses
from nodealloc.dsw_asw import Clock, World
from nodealloc.errors import NodeallocError, RetryableError

__all__ = ["Callbacks", "PluginRegistration"]

_log = logging.getLogger("nodealloc.devices")
_CALL = "GetDevicePluginOptions"


@attrs.frozen(kw_only=True)
class PluginRegistration:
    """How a plugin registered.

    Attributes:
        resource: What it serves.
        socket: Where it listens, in its own words.
        path: The same, resolved.
    """

    resource: str
    socket: str
    path: str


class Callbacks:
    """Takes plugins on. Thread-safe.

    Args:
        keeper: Holds the allocator.
        inventories: What is known of each resource.
        endpoints: Who serves what.
        followed: Whose streams are to be followed, by generation; written here.
        connect: From a socket's path to a connection.
        limits: How many plugins there may be.
        clock: Time.

    Attributes:
        stopping: Set once nobody is taken on any more.
    """

    def __init__(
        self,
        keeper: AllocatorKeeper,
        inventories: Inventories,
        endpoints: Endpoints,
        followed: World[int, Endpoint],
        *,
        connect: Connect,
        limits: PluginLimits,
        clock: Clock,
    ) -> None:
        self._keeper = keeper
        self._inventories = inventories
        self._endpoints = endpoints
        self._followed = followed
        self._connect = connect
        self._limits = limits
        self._clock = clock
        self._turns = Turns(limits.introductions)
        self._silence = SilentProcesses(clock)
        self.stopping = threading.Event()

    def take_on(self, registration: PluginRegistration, /) -> None:
        """Call a plugin back, and have its stream followed. Who serves already serves on until it lists.

        Raises:
            PluginUnavailableError: Nobody answers there, or on many other sockets of that process.
            PluginRefusedError: The answer makes no sense.
            RegistrationRefusedError: There is no room for it, or another one was quicker.
            RetryableError: The agent is stopping.
        """
        process, resource = _sockets.listener(registration.path), registration.resource
        self._silence.check(process, registration.path, _CALL)
        known = with_room_for(self._keeper.current(), resource, self._limits.resources).inventories.get(
            resource
        )
        generation = self._endpoints.next_generation(0 if known is None else known.generation)
        before = _sockets.identity(registration.path)
        connection = self._connect(registration.path)
        try:
            options = self._asked(connection, registration, process)
            self._silence.broken(process)
        except NodeallocError as error:
            if isinstance(error, PluginUnavailableError) and not isinstance(error, SilentProcessError):
                self._kept_silent(process, error.status)
            connection.close()
            self._failed(resource, generation, str(error))
            raise
        after = _sockets.identity(registration.path)
        newcomer = Endpoint(
            resource=resource,
            generation=generation,
            socket=registration.socket,
            path=registration.path,
            # Who answered is not who stands there now, where another took the path meanwhile.
            identity=after if before in (None, after) else None,
            connection=connection,
            options=options,
        )
        try:
            self._join(newcomer)
        except NodeallocError:
            newcomer.end()
            raise

    def close(self) -> None:
        """Take nobody on from here on; whoever waits for an answer is told so."""
        self.stopping.set()
        self._turns.close()

    def _asked(
        self, connection: PluginConnection, registration: PluginRegistration, process: int
    ) -> PluginOptions:
        """What the plugin wants to be asked; that it answers is the point."""
        with self._turns.take(connection.close, registration.path, process or None) as turn:
            self._silence.check(process, registration.path, _CALL)  # others were silent while it waited
            try:
                return connection.options()
            except NodeallocError as error:
                if self.stopping.is_set():
                    raise _stopping() from error
                if not turn.gave_way:
                    raise
                why = "it kept silent while others waited for their turn; register again"
                raise PluginUnavailableError(registration.path, _CALL, GAVE_WAY, why) from error
            except Exception as error:
                _log.exception("device plugin %s: asking for its options failed", registration.resource)
                kind = type(error).__name__
                raise PluginUnavailableError(registration.path, _CALL, kind, str(error)) from error

    def _kept_silent(self, process: int, status: str) -> None:
        # Who is not there yet harms nobody, unless others wait for his turn to end.
        if process != _sockets.NOBODY or status == GAVE_WAY:
            self._silence.kept(process)

    def _join(self, newcomer: Endpoint) -> None:
        resource = newcomer.resource
        joined, known, driven_out = self._endpoints.join(newcomer)
        if joined is JoinOutcome.CLOSED:
            raise _stopping()
        if joined is JoinOutcome.LATE:
            raise RegistrationRefusedError(
                f"{resource}: another plugin registered later and has answered first"
            )
        if driven_out is not None:
            driven_out.end()
        if joined is JoinOutcome.SAME and known is not None:
            newcomer.end()
            self._wants(known, newcomer.options)
            return
        if joined is JoinOutcome.SERVES:
            now_s = self._clock.monotonic_s()
            try:
                self._inventories.change(
                    resource,
                    lambda known: known.registered(
                        newcomer.generation, now_s=now_s, options=newcomer.options
                    ),
                )
            except RegistrationRefusedError:
                self._endpoints.left(newcomer)
                raise
        self._followed.put(newcomer.generation, newcomer, by="callback")

    def _wants(self, endpoint: Endpoint, options: PluginOptions) -> None:
        """Who registered again is asked as it wants by now; who does not serve yet, once it lists."""

        def changed(known: Inventory) -> Inventory:
            serves = known.generation == endpoint.generation
            return attrs.evolve(known, options=options) if serves else known

        self._inventories.change(endpoint.resource, changed)

    def _failed(self, resource: str, generation: int, trouble: str) -> None:
        """A plugin that registered cannot be reached: said where nobody else serves the resource."""
        now_s = self._clock.monotonic_s()

        def changed(known: Inventory) -> Inventory:
            if known.phase in (Phase.CONNECTING, Phase.SERVING):
                return known
            if known.generation:
                return attrs.evolve(known, trouble=trouble)
            return known.registered(generation, now_s=now_s).ended(generation, trouble, now_s=now_s)

        try:
            self._inventories.change(resource, changed)
        except RegistrationRefusedError:
            _log.debug("%s: no room to say that %s", resource, trouble)


def _stopping() -> RetryableError:
    return RetryableError("the agent is stopping; register again when kubelet.sock is made anew")
