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

from nodealloc import _sockets
from nodealloc._arguments import wrong
from nodealloc._rpc.server import KeptServer
from nodealloc.devices._allocator import DeviceAllocator
from nodealloc.devices._codec import RegisterRequest
from nodealloc.devices._directory import plugin_socket, prepare_directory, resolved
from nodealloc.devices._errors import PluginUnavailableError, RegistrationRefusedError
from nodealloc.devices._events import DeviceEvents, event_of
from nodealloc.devices._grants import Grant
from nodealloc.devices._grpc import GrpcConnection
from nodealloc.devices._inventory import Capacity, Inventory
from nodealloc.devices._latecomers import Latecomers
from nodealloc.devices._launch import Launch
from nodealloc.devices._launched import launch_of
from nodealloc.devices._life import Phase
from nodealloc.devices._limits import Deadlines, PluginLimits
from nodealloc.devices._names import check_offer
from nodealloc.devices._ports import AllocatorKeeper, Connect, PluginConnection
from nodealloc.devices._preferences import PreferenceQuestion
from nodealloc.devices._registration import RegistrationService
from nodealloc.devices._status import DevicePluginStatus, status_of
from nodealloc.devices._streams import Introduction, Streams
from nodealloc.errors import NodeallocError, PermanentError
from nodealloc.topology import NotYet, Owner

__all__ = ["DevicePlugins"]

GRACE_S = 300.0
KUBELET_SOCKET = "kubelet.sock"
_SHOWN = 100
"""Characters of a plugin's own words that are repeated to it; it may say a megabyte."""

_log = logging.getLogger("nodealloc.devices")


class DevicePlugins:
    """Device plugins of a node, found either way; a plugin handler for `DevicePlugin`. Thread-safe.

    A plugin that registers is called back before it is told that it is
    registered. Who serves its resource already goes on until the newcomer has
    listed its devices. One that does not answer is told so; when it registered
    on `kubelet.sock` and begins to listen later, it is tried again.

    Each plugin has threads of its own that follow its stream, so that one that
    hangs or floods delays no other. Nothing here chooses devices: that is
    `DeviceAllocator`, which the keeper holds.

    Args:
        keeper: Holds the allocator.
        directory: Where to serve `kubelet.sock`; None serves none, and plugins
            come through `register` alone.
        roots: Directories below which a plugin found by its own socket may
            listen; None allows any.
        connect: From a socket's path to a connection; by default a
            `GrpcConnection` with these deadlines and limits.
        deadlines: How long a plugin may take.
        limits: How many plugins there may be, and how much they may say.
        clock: Monotonic seconds.
        grace_s: How long after the end of a stream the capacity stands, and a
            plugin that did not answer is tried again.
        await_s: How long after the start plugins that nobody knows yet may come.
            Until then a claim for a resource without a plugin is put off, from
            then on it is refused, until that plugin does come. None puts off
            for ever.
        heartbeat_s: Between two looks at the own socket and the grace periods.
    """

    def __init__(
        self,
        keeper: AllocatorKeeper,
        /,
        *,
        directory: Path | str | None = None,
        roots: Sequence[Path | str] | None = None,
        connect: Connect | None = None,
        deadlines: Deadlines | None = None,
        limits: PluginLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
        grace_s: float = GRACE_S,
        await_s: float | None = GRACE_S,
        heartbeat_s: float = 1.0,
    ) -> None:
        def dial(socket: str) -> PluginConnection:
            return GrpcConnection(socket, deadlines=deadlines, limits=limits)

        bounds = PluginLimits() if limits is None else limits
        if not hasattr(keeper, "current"):
            raise wrong("DevicePlugins, keeper", keeper, "a DeviceLedger(allocator), or a NodeDevices")
        self._keeper = keeper
        self._directory = directory = None if directory is None else Path(directory)
        self._roots = None if roots is None else tuple(Path(root).resolve() for root in roots)
        self._clock = clock
        self._grace_s = grace_s
        self._await_s = await_s
        self._started_s = 0.0
        self._heartbeat_s = heartbeat_s
        self._lock = threading.Lock()
        self._readers = weakref.WeakSet[DeviceEvents]()
        self._streams = Streams(keeper, connect or dial, bounds, clock, self._tell)
        self._latecomers = Latecomers(most=bounds.resources, keep_s=grace_s)
        self._own_socket: KeptServer | None = None
        if directory is not None:
            service = RegistrationService(directory / KUBELET_SOCKET, self._introduced)
            self._own_socket = KeptServer(service, lambda: prepare_directory(directory), log=_log)
        self._started = False

    # Life of the shell.

    def start(self) -> None:
        """Sweep the directory, serve `kubelet.sock`, and start the grace periods of awaited plugins.

        Raises:
            PermanentError: The socket's path is too long, somebody listens there,
                or it has started already, stopped or not.
            OSError: The directory cannot be made or written.
        """
        if self._started or self._streams.stopping.is_set():
            raise PermanentError("device plugins are served once by each DevicePlugins; make another one")
        now_s = self._started_s = self._clock()
        for resource in self._keeper.current().inventories:
            self._streams.change(resource, lambda known: _as_found(known, now_s))
        if self._own_socket is not None:
            self._own_socket.open()
        self._started = True
        self._streams.spawn(self._beat, "device plugin heartbeat")

    def stop(self) -> None:
        """Stop serving and let go of every plugin; what was granted stands. May be repeated."""
        self._streams.refuse()
        if self._own_socket is not None:
            self._own_socket.close()
        self._streams.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def tick(self) -> None:
        """What time brings: ends of grace periods and waiting, further tries, the own socket served anew."""
        now_s = self._clock()
        for resource, inventory in self._keeper.current().inventories.items():
            if inventory.aged(now_s=now_s, grace_s=self._grace_s) is not inventory:
                self._streams.change(resource, lambda known: known.aged(now_s=now_s, grace_s=self._grace_s))
        for introduction in self._latecomers.due(now_s=now_s):
            found = _sockets.pin(introduction.path)
            if found is not None:
                if found.is_served() and self._latecomers.begun(introduction):
                    self._try_again(introduction)
                found.release()
        if self._await_s is not None and self._started and now_s - self._started_s >= self._await_s:
            self._await_no_more()
        if self._own_socket is not None:
            self._own_socket.keep()

    # A plugin handler by shape: validate, register, deregister.

    def validate(self, name: str, endpoint: str, versions: Sequence[str], /) -> None:
        """Whether this plugin may serve; raises `RegistrationRefusedError` with the reason."""
        self._checked(name, endpoint, versions)

    def register(self, name: str, endpoint: str, versions: Sequence[str], /) -> None:
        """Take a plugin on once it has answered; its devices follow in their own time.

        Whoever serves the resource already serves on until then.

        Raises:
            RegistrationRefusedError: As `validate`, or there is no room for another resource.
            PluginUnavailableError: Nobody answers there.
            PluginRefusedError: What it answers makes no sense.
        """
        path = self._checked(name, endpoint, versions)
        self._streams.take_on(Introduction(resource=name, socket=endpoint, path=path))

    def deregister(self, name: str, endpoint: str, /) -> None:
        """Let a plugin go; one that another took the place of is no longer there to let go."""
        self._streams.let_go(name, endpoint)

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
            connection = self._streams.connection(question.resource)
            answers[question] = ()
            if connection is not None:
                try:
                    answers[question] = connection.preferred(question)
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
        """Before each start of a container: plugins that want it prepare its devices; after `prepare`.

        Raises:
            PluginUnavailableError: `NOT PREPARED`: `prepare` has no answer so far.
            PluginUnavailableError: A plugin that wants it did not answer.
            PluginRefusedError: A plugin refused; do not start the container.
        """
        allocator = self._keeper.current()
        for (member, resource), grant in sorted(allocator.grants.get(owner.workload, {}).items()):
            inventory = allocator.inventories.get(resource)
            wanted = inventory is not None and inventory.options.pre_start_required
            if member == owner.member and wanted:
                if grant.response is None:
                    why = "call prepare first, and again until it succeeds"
                    raise PluginUnavailableError(resource, "PreStartContainer", "NOT PREPARED", why)
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
        return status_of(self._keeper.current(), self._streams.sockets(), now_s=self._clock())

    # What the methods above share.

    def _checked(self, name: str, endpoint: str, versions: Sequence[str]) -> str:
        """The endpoint's path, resolved; that is what is dialled."""
        check_offer(name, versions)
        path = resolved(endpoint)
        if self._roots is not None and not any(root in path.parents for root in self._roots):
            raise RegistrationRefusedError(
                f"endpoint {endpoint[:_SHOWN]!r} is in none of the directories for plugins"
            )
        return str(path)

    def _introduced(self, request: RegisterRequest) -> None:
        """A plugin introduced itself on `kubelet.sock`, and waits for the answer."""
        if self._directory is None:
            raise RegistrationRefusedError("registrations are not served here")
        check_offer(request.resource, [request.version])
        path = str(plugin_socket(self._directory, request.endpoint, own=KUBELET_SOCKET))
        introduction = Introduction(
            resource=request.resource, socket=path, path=path, offered=request.options
        )
        try:
            self._streams.take_on(introduction)
        except RegistrationRefusedError:
            raise
        except NodeallocError:
            self._latecomers.add(introduction, now_s=self._clock())
            raise
        self._latecomers.forget(request.resource)

    def _try_again(self, introduction: Introduction) -> None:
        resource = introduction.resource

        def call() -> None:
            try:
                self._streams.take_on(introduction)
            except NodeallocError as error:
                _log.info("%s: it listens now and cannot be taken on: %s", introduction.path, error)
                self._latecomers.failed(introduction, now_s=self._clock())
            else:
                _log.info("%s: %s began to listen after it had registered", introduction.path, resource)
                self._latecomers.forget(resource)

        self._streams.spawn(call, f"latecomer {resource}")

    def _tell(self, before: Inventory | None, after: DeviceAllocator, resource: str) -> None:
        event = event_of(before, after.inventories[resource], after.grants)
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
        connection = self._streams.connection(resource)
        if connection is None:
            raise PluginUnavailableError(resource, call, "NOT REGISTERED")
        return connection

    def _await_no_more(self) -> None:
        if self._keeper.current().awaited != frozenset():
            self._keeper.alter(lambda allocator: attrs.evolve(allocator, awaited=frozenset()))

    def _beat(self) -> None:
        while not self._streams.stopping.wait(self._heartbeat_s):
            try:
                self.tick()
            except Exception:  # noqa: BLE001 - the heart goes on
                _log.exception("device plugins: a heartbeat failed; the next one follows")


def _as_found(inventory: Inventory, now_s: float) -> Inventory:
    """An inventory as a new shell finds it: whoever served it before is away."""
    if inventory.phase is Phase.AWAITED:
        return attrs.evolve(inventory, since_s=now_s)
    return inventory.ended(inventory.generation, "the agent started anew", now_s=now_s)
