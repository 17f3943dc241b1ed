"""The shell: serves registrations, follows every plugin's stream, asks plugins on admission's behalf."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import attrs

from nodealloc.devices._allocator import DeviceAllocator
from nodealloc.devices._codec import RegisterRequest
from nodealloc.devices._directory import plugin_socket, resolved
from nodealloc.devices._errors import PluginUnavailableError, RegistrationRefusedError
from nodealloc.devices._events import DeviceEvent, DeviceEvents, event_of
from nodealloc.devices._grants import Grant
from nodealloc.devices._grpc import GrpcConnection
from nodealloc.devices._inventory import Capacity, DeviceList, Inventory, PluginOptions
from nodealloc.devices._launch import Launch
from nodealloc.devices._launched import launch_of
from nodealloc.devices._life import Phase
from nodealloc.devices._names import check_offer
from nodealloc.devices._own_socket import KUBELET_SOCKET, OwnSocket
from nodealloc.devices._ports import AllocatorKeeper, Connect, PluginConnection
from nodealloc.devices._preferences import PreferenceQuestion
from nodealloc.devices._status import DevicePluginStatus, status_of
from nodealloc.errors import NodeallocError, PermanentError, RetryableError
from nodealloc.topology import NotYet, Owner

__all__ = ["DevicePlugins"]

GRACE_S = 300.0
_SHOWN = 100
"""Characters of a plugin's own words that are repeated to it; it may say a megabyte."""

_log = logging.getLogger("nodealloc.devices")


@attrs.frozen(kw_only=True, eq=False)
class _Endpoint:
    """One registration: its generation, its socket, its connection."""

    resource: str
    generation: int
    socket: str
    connection: PluginConnection
    offered: PluginOptions


class DevicePlugins:
    """Device plugins of a node, found either way; a plugin handler for `DevicePlugin`. Thread-safe.

    Each plugin has a thread of its own that follows its stream, so that one
    that hangs or floods delays no other. Nothing here chooses devices: that is
    `DeviceAllocator`, which the keeper holds.

    Args:
        keeper: Holds the allocator.
        directory: Where to serve `kubelet.sock`; None serves none, and plugins
            come through `register` alone.
        roots: Directories below which a plugin found by its own socket may
            listen; None allows any.
        connect: From a socket's path to a connection.
        clock: Monotonic seconds.
        grace_s: How long after the end of a stream the capacity stands.
        heartbeat_s: Between two looks at the own socket and the grace periods.
    """

    def __init__(
        self,
        keeper: AllocatorKeeper,
        /,
        *,
        directory: Path | None = None,
        roots: Sequence[Path] | None = None,
        connect: Connect = GrpcConnection,
        clock: Callable[[], float] = time.monotonic,
        grace_s: float = GRACE_S,
        heartbeat_s: float = 1.0,
    ) -> None:
        self._keeper = keeper
        self._directory = directory
        self._roots = None if roots is None else tuple(root.resolve() for root in roots)
        self._connect = connect
        self._clock = clock
        self._grace_s = grace_s
        self._heartbeat_s = heartbeat_s
        self._lock = threading.Lock()
        self._endpoints: dict[str, _Endpoint] = {}
        self._threads: set[threading.Thread] = set()
        self._readers = weakref.WeakSet[DeviceEvents]()
        self._generation = 0
        self._stopping = threading.Event()
        self._own_socket = None if directory is None else OwnSocket(directory, self._introduced)
        self._started = False

    # Life of the shell.

    def start(self) -> None:
        """Sweep the directory, serve `kubelet.sock`, and start the grace periods of awaited plugins.

        Raises:
            PermanentError: The socket's path is too long, somebody listens there,
                or it has started already, stopped or not.
            OSError: The directory cannot be made or written.
        """
        if self._started or self._stopping.is_set():
            raise PermanentError("device plugins are served once by each DevicePlugins; make another one")
        now_s = self._clock()
        for resource, inventory in self._keeper.current().inventories.items():
            self._generation = max(self._generation, inventory.generation)
            self._change(resource, lambda known: _as_found(known, now_s))
        if self._own_socket is not None:
            self._own_socket.open()
        self._started = True
        self._spawn(self._beat, "device plugin heartbeat")

    def stop(self) -> None:
        """Stop serving and let go of every plugin; what was granted stands. May be repeated."""
        self._stopping.set()
        if self._own_socket is not None:
            self._own_socket.close()
        with self._lock:
            endpoints, self._endpoints = list(self._endpoints.values()), {}
            threads = list(self._threads)
        for endpoint in endpoints:
            endpoint.connection.close()
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(5.0)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def tick(self) -> None:
        """Let the grace periods that are over end, and serve anew if somebody took the socket away."""
        now_s = self._clock()
        for resource, inventory in self._keeper.current().inventories.items():
            if inventory.aged(now_s=now_s, grace_s=self._grace_s) is not inventory:
                self._change(resource, lambda known: known.aged(now_s=now_s, grace_s=self._grace_s))
        if self._own_socket is not None:
            self._own_socket.keep()

    # A plugin handler by shape: validate, register, deregister.

    def validate(self, name: str, endpoint: str, versions: Sequence[str], /) -> None:
        """Whether this plugin may serve; raises `RegistrationRefusedError` with the reason."""
        check_offer(name, versions)
        path = resolved(endpoint)
        if self._roots is not None and not any(root in path.parents for root in self._roots):
            raise RegistrationRefusedError(
                f"endpoint {endpoint[:_SHOWN]!r} is in none of the directories for plugins"
            )

    def register(self, name: str, endpoint: str, versions: Sequence[str], /) -> None:
        """Take a plugin on; its devices follow in their own time. Takes the place of an older one."""
        self.validate(name, endpoint, versions)
        self._begin(name, endpoint, PluginOptions())

    def deregister(self, name: str, endpoint: str, /) -> None:
        """Let a plugin go; one that another took the place of is no longer there to let go."""
        with self._lock:
            endpoint_now = self._endpoints.get(name)
            if endpoint_now is None or endpoint_now.socket != endpoint:
                return
            del self._endpoints[name]
        endpoint_now.connection.close()
        self._ended(endpoint_now, "its socket was removed")

    # What admission needs from plugins.

    def ask(self, outcome: DeviceAllocator, /) -> bool:
        """Ask plugins what an admission could not answer itself.

        Call it with the allocator that an admission ended in, before that is
        committed. A plugin that does not answer counts as one without an
        opinion.

        Returns:
            True when there are answers now that were not there: decide again.
        """
        answers: dict[PreferenceQuestion, tuple[str, ...]] = {}
        for question in outcome.unanswered:
            with self._lock:
                endpoint = self._endpoints.get(question.resource)
            answers[question] = ()
            if endpoint is not None:
                try:
                    answers[question] = endpoint.connection.preferred(question)
                except NodeallocError as error:
                    _log.warning("%s has no preference: %s", question.resource, error)
        if answers:
            self._keeper.alter(lambda allocator: allocator.with_answers(answers))
        return bool(answers)

    def prepare(self, workload: str, /) -> None:
        """Have plugins prepare what the workload was granted; remembers what they answer.

        Grants that have their answer are left alone, so that this may be
        repeated, and needs no plugin for what ran before a restart.

        Raises:
            PluginUnavailableError: A plugin did not answer; try again later.
            PluginRefusedError: A plugin refused; release the workload.
        """
        for (member, resource), grant in sorted(self._keeper.current().grants.get(workload, {}).items()):
            if grant.response is not None:
                continue
            response = self._calls(resource, "Allocate").allocate(sorted(grant.ids))
            self._answered(Owner(workload, member), resource, grant, response)

    def pre_start(self, owner: Owner, /) -> None:
        """Before each start of a container: plugins that want it prepare its devices.

        Raises:
            PluginUnavailableError: A plugin that wants it did not answer.
            PluginRefusedError: A plugin refused; do not start the container.
        """
        allocator = self._keeper.current()
        for (member, resource), grant in sorted(allocator.grants.get(owner.workload, {}).items()):
            inventory = allocator.inventories.get(resource)
            wanted = inventory is not None and inventory.options.pre_start_required
            if member == owner.member and wanted:
                self._calls(resource, "PreStartContainer").pre_start(sorted(grant.ids))

    def launch(self, owner: Owner, /) -> Launch | NotYet:
        """What a container gets with its devices; see `launch_of`."""
        return launch_of(self._keeper.current(), owner)

    # Views.

    def capacity(self) -> Mapping[str, Capacity]:
        """What to report, by resource; a plugin that is gone has zero."""
        inventories = self._keeper.current().inventories
        return {resource: inventory.capacity for resource, inventory in sorted(inventories.items())}

    def events(self) -> DeviceEvents:
        """A stream of what happens from now on; one for each reader, filled as long as it is held."""
        reader = DeviceEvents()
        with self._lock:
            self._readers.add(reader)
        return reader

    def status(self) -> tuple[DevicePluginStatus, ...]:
        """Every resource's plugin, by name."""
        with self._lock:
            sockets = {resource: endpoint.socket for resource, endpoint in self._endpoints.items()}
        return status_of(self._keeper.current(), sockets, now_s=self._clock())

    # What the methods above share.

    def _introduced(self, request: RegisterRequest) -> None:
        """A plugin introduced itself on `kubelet.sock`; its own socket may follow later."""
        if self._directory is None:
            raise RegistrationRefusedError("registrations are not served here")
        check_offer(request.resource, [request.version])
        socket = plugin_socket(self._directory, request.endpoint, own=KUBELET_SOCKET)
        self._begin(request.resource, str(socket), request.options)

    def _begin(self, resource: str, socket: str, offered: PluginOptions) -> None:
        with self._lock:
            if self._stopping.is_set():
                raise RetryableError("the agent is stopping; register again when kubelet.sock is made anew")
            self._generation += 1
            endpoint = _Endpoint(
                resource=resource,
                generation=self._generation,
                socket=socket,
                connection=self._connect(socket),
                offered=offered,
            )
            older = self._endpoints.get(resource)
            self._endpoints[resource] = endpoint
        if older is not None:
            older.connection.close()
        now_s = self._clock()
        self._change(resource, lambda known: known.registered(endpoint.generation, now_s=now_s))
        self._spawn(lambda: self._follow(endpoint), f"device plugin {resource}")

    def _follow(self, endpoint: _Endpoint) -> None:
        """One plugin's thread: from its options to the end of its stream."""
        trouble = "its stream ended"
        try:
            options = self._options(endpoint)
            for devices in endpoint.connection.lists():
                self._listed(endpoint, options, DeviceList.of(devices, nodes=self._keeper.current().nodes))
        except NodeallocError as error:
            trouble = str(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this plugin's trouble alone
            trouble = f"{type(error).__name__}: {error}"
            _log.exception("device plugin %s: following its stream failed", endpoint.resource)
        finally:
            endpoint.connection.close()
            with self._lock:
                if self._endpoints.get(endpoint.resource) is endpoint:
                    del self._endpoints[endpoint.resource]
            self._ended(endpoint, trouble)

    def _options(self, endpoint: _Endpoint) -> PluginOptions:
        said = endpoint.connection.options()
        return PluginOptions(
            pre_start_required=said.pre_start_required or endpoint.offered.pre_start_required,
            preferred_allocation=said.preferred_allocation or endpoint.offered.preferred_allocation,
        )

    def _listed(self, endpoint: _Endpoint, options: PluginOptions, devices: DeviceList) -> None:
        now_s = self._clock()
        self._change(
            endpoint.resource, lambda known: known.listed(endpoint.generation, devices, options, now_s=now_s)
        )

    def _ended(self, endpoint: _Endpoint, trouble: str) -> None:
        now_s = self._clock()
        self._change(endpoint.resource, lambda known: known.ended(endpoint.generation, trouble, now_s=now_s))

    def _change(self, resource: str, change: Callable[[Inventory], Inventory]) -> None:
        if self._stopping.is_set():
            return
        blank = Inventory(resource=resource)

        def altered(allocator: DeviceAllocator) -> DeviceAllocator:
            return allocator.with_inventory(change(allocator.inventories.get(resource, blank)))

        while True:
            try:
                before, after = self._keeper.alter(altered)
                break
            except RetryableError as error:  # a full disk is no plugin's fault
                _log.warning("%s: what happened cannot be remembered yet: %s", resource, error)
                if self._stopping.wait(max(error.after_s, 0.1)):
                    return
        older, newer = before.inventories.get(resource), after.inventories[resource]
        if older is newer:
            return
        self._tell(event_of(older, newer, after.grants))

    def _tell(self, event: DeviceEvent) -> None:
        with self._lock:
            readers = tuple(self._readers)
        for reader in readers:
            reader.put(event)

    def _answered(self, owner: Owner, resource: str, asked: Grant, response: bytes) -> None:
        """Remember an answer, unless other devices were granted to the same owner meanwhile."""

        def altered(allocator: DeviceAllocator) -> DeviceAllocator:
            grant = allocator.grants.get(owner.workload, {}).get((owner.member, resource))
            return allocator.with_response(owner, resource, response) if grant == asked else allocator

        self._keeper.alter(altered)

    def _calls(self, resource: str, call: str) -> PluginConnection:
        with self._lock:
            endpoint = self._endpoints.get(resource)
        if endpoint is None:
            raise PluginUnavailableError(resource, call, "NOT REGISTERED")
        return endpoint.connection

    def _beat(self) -> None:
        while not self._stopping.wait(self._heartbeat_s):
            try:
                self.tick()
            except Exception:  # noqa: BLE001 - the heart goes on
                _log.exception("device plugins: a heartbeat failed; the next one follows")

    def _spawn(self, call: Callable[[], None], name: str) -> None:
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


def _as_found(inventory: Inventory, now_s: float) -> Inventory:
    """An inventory as a new shell finds it: whoever served it before is away."""
    if inventory.phase is Phase.AWAITED:
        return attrs.evolve(inventory, since_s=now_s)
    return inventory.ended(inventory.generation, "the agent started anew", now_s=now_s)
