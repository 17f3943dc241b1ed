"""The shell: serves registrations, follows every plugin's stream, asks plugins on admission's behalf."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError
from pathlib import Path
from types import TracebackType
from typing import Self

import attrs

from nodealloc._arguments import check, wrong
from nodealloc._rpc.server import KeptServer
from nodealloc._typed import typed, typed_but
from nodealloc.devices._allocator import DeviceAllocator
from nodealloc.devices._directory import plugin_socket, prepare_directory, resolved
from nodealloc.devices._errors import PluginUnavailableError, RegistrationRefusedError
from nodealloc.devices._events import DeviceEvents, EventReaders, event_of
from nodealloc.devices._inventory import Capacity, Inventory
from nodealloc.devices._launch import Launch
from nodealloc.devices._life import Phase
from nodealloc.devices._limits import Deadlines, PluginLimits
from nodealloc.devices._names import check_offer
from nodealloc.devices._ports import AllocatorKeeper, Connect, PluginConnection
from nodealloc.devices._preferences import PreferenceQuestion
from nodealloc.devices._status import DevicePluginStatus, status_of
from nodealloc.devices.plugins._callbacks import Callbacks, PluginRegistration
from nodealloc.devices.plugins._codec import RegisterRequest
from nodealloc.devices.plugins._endpoints import Endpoint, Endpoints
from nodealloc.devices.plugins._grpc import dialling
from nodealloc.devices.plugins._inventories import Inventories
from nodealloc.devices.plugins._launched import launch_of
from nodealloc.devices.plugins._periodic import PeriodicLooks
from nodealloc.devices.plugins._preparing import prepare
from nodealloc.devices.plugins._registration import RegistrationService
from nodealloc.devices.plugins._silent_processes import SilentProcessError
from nodealloc.devices.plugins._streams import Streams
from nodealloc.devices.plugins._unanswered import UnansweredPlugins
from nodealloc.dsw_asw import Cancel, Clock, Executor, Group, Summary, SystemClock, ThreadExecutor, World
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

    Each plugin's stream is an operation of its own, so that one that hangs or
    floods delays no other. Nothing here chooses devices: that is
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
        executor: Follows streams, each call as long as its stream lasts, and looks and calls back
            beside them; by default threads.
        clock: Time for grace periods and looks.
        grace_s: How long after the end of a stream the capacity stands, and a
            plugin that did not answer is tried again.
        await_s: How long after the start plugins that nobody knows yet may come.
            Until then a claim for a resource without a plugin is put off, from
            then on it is refused, until that plugin does come. None puts off
            for ever.
        look_s: Between two looks at the own socket, and at those who registered
            and do not listen.

    Attributes:
        engine: What runs here, as one; `start` drives it. Its `reconcile` makes a
            pass by hand.
    """

    @typed_but("keeper")
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
        executor: Executor | None = None,
        clock: Clock | None = None,
        grace_s: float = GRACE_S,
        await_s: float | None = GRACE_S,
        look_s: float = 1.0,
    ) -> None:
        expected = "a DeviceLedger(allocator), or what NodeAllocator.allocator(DeviceAllocator) answers"
        if not hasattr(keeper, "current"):
            raise wrong("DevicePlugins, keeper", keeper, expected)
        check("DevicePlugins, what the keeper keeps", keeper.current(), DeviceAllocator, expected)
        self._keeper = keeper
        self._directory = directory = None if directory is None else Path(directory)
        self._roots = None if roots is None else tuple(Path(root).resolve() for root in roots)
        self._clock: Clock = SystemClock() if clock is None else clock
        self._await_s = await_s
        self._readers = EventReaders()
        self._own_socket: KeptServer | None = None
        if directory is not None:
            service = RegistrationService(directory / KUBELET_SOCKET, self._introduced)
            self._own_socket = KeptServer(service, lambda: prepare_directory(directory), log=_log)
        self._started = False
        bounds = PluginLimits() if limits is None else limits
        self._endpoints = Endpoints()
        self._inventories = Inventories(
            keeper, self._clock, most=bounds.resources, grace_s=grace_s, told=self._tell
        )
        if connect is None:
            connect = dialling(deadlines, bounds)
        self.engine: Group = self._wired(connect, bounds, executor, grace_s, look_s)

    def _wired(
        self, connect: Connect, limits: PluginLimits, executor: Executor | None, grace_s: float, look_s: float
    ) -> Group:
        """The parts that run, as one."""
        followed: World[int, Endpoint] = World("device plugins that answered")
        self._callbacks = Callbacks(
            self._keeper,
            self._inventories,
            self._endpoints,
            followed,
            connect=connect,
            limits=limits,
            clock=self._clock,
        )
        self._streams = Streams(
            self._keeper,
            self._inventories,
            self._endpoints,
            self._callbacks,
            followed,
            executor=ThreadExecutor("device plugin stream") if executor is None else executor,
            clock=self._clock,
        )
        self._unanswered = UnansweredPlugins(
            self._callbacks.take_on,
            ThreadExecutor("device plugins", most=limits.introductions) if executor is None else executor,
            self._clock,
            most=limits.resources,
            keep_s=grace_s,
            look_s=look_s,
        )
        self._looks = PeriodicLooks(
            self._keeper,
            self._observe,
            ThreadExecutor("kubelet.sock") if executor is None else executor,
            self._clock,
            look_s=look_s,
        )
        return Group(
            self._inventories.engine,
            self._streams.engine,
            self._unanswered.engine,
            self._looks.engine,
            name="device plugins",
            stop_timeout_s=5.0,
        )

    # Life of the shell.

    def start(self) -> None:
        """Begin, and make passes in a thread; raises as `begin` does."""
        self.begin()
        self.engine.start()

    def begin(self) -> None:
        """Sweep the directory, serve `kubelet.sock`, and start the grace periods of awaited plugins.

        For whoever drives `engine` as a member of a group.

        Raises:
            PermanentError: The socket's path is too long, somebody listens there,
                or it has started already, stopped or not.
            ConfigurationError: The directory cannot be made.
            OSError: The directory cannot be read or written.
        """
        if self._started or self._callbacks.stopping.is_set():
            raise PermanentError("device plugins are served once by each DevicePlugins; make another one")
        self._inventories.observe(self._as_found)
        if self._own_socket is not None:
            self._own_socket.open()
        self._started = True
        self._looks.begin(self._await_s)

    def stop(self) -> None:
        """Stop serving and let go of every plugin; what was granted stands. May be repeated."""
        self._callbacks.close()
        if self._own_socket is not None:
            self._own_socket.close()
        self._streams.close()
        self.engine.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def reconcile(self) -> Summary:
        """Make a pass by hand: what is due is begun; what takes long goes on beside it."""
        return self.engine.run_until_quiet()

    # A plugin handler by shape: validate, register, deregister.

    @typed
    def validate(self, name: str, endpoint: str, versions: Sequence[str], /) -> None:
        """Whether this plugin may serve; raises `RegistrationRefusedError` with the reason."""
        self._checked(name, endpoint, versions)

    @typed
    def register(self, name: str, endpoint: str, versions: Sequence[str], /) -> None:
        """Take a plugin on once it has answered; its devices follow in their own time.

        Whoever serves the resource already serves on until then.

        Raises:
            RegistrationRefusedError: As `validate`, or there is no room for another resource.
            PluginUnavailableError: Nobody answers there.
            PluginRefusedError: What it answers makes no sense.
        """
        path = self._checked(name, endpoint, versions)
        self._callbacks.take_on(PluginRegistration(resource=name, socket=endpoint, path=path))

    @typed
    def deregister(self, name: str, endpoint: str, /) -> None:
        """Let a plugin go; one that another took the place of is no longer there to let go."""
        self._streams.let_go(name, endpoint)

    # What admission needs from plugins.

    def ask(self, outcome: DeviceAllocator, /) -> bool:
        """Ask plugins what an admission could not answer itself.

        Call it with the allocator that an admission ended in, before that is
        committed. A plugin that does not answer counts as one without an
        opinion, for this question and those that follow.

        Returns:
            True when there are answers now that were not there: decide again.
        """
        answers: dict[PreferenceQuestion, tuple[str, ...]] = {}
        silent: set[str] = set()
        for question in outcome.unanswered:
            resource = question.resource
            connection = self._connection(resource)
            answers[question] = ()
            if connection is not None and resource not in silent:
                try:
                    answers[question] = connection.preferred(question)
                except NodeallocError as error:
                    _log.warning("%s has no preference: %s", resource, error)
                    if isinstance(error, PluginUnavailableError):
                        silent.add(resource)
        if answers:
            self._keeper.alter(lambda allocator: allocator.with_answers(answers))
        return bool(answers)

    def prepare(self, workload: str, /, *, cancel: Cancel | None = None) -> None:
        """Have plugins prepare what the workload was granted; remembers what they answer.

        Grants that have their answer are left alone, so that this may be
        repeated, and needs no plugin for what ran before a restart.

        Args:
            workload: Its key.
            cancel: Asks to stop: a plugin that hangs is waited for no longer.
                What was granted stays granted, and a plugin may be asked for
                the same devices again. None waits for `Deadlines.allocate_s`.

        Raises:
            CancelledError: Of `concurrent.futures`; asked to stop before there was every answer.
            PluginUnavailableError: A plugin did not answer; try again later.
            PluginRefusedError: A plugin refused; release the workload.
        """
        check("prepare", workload, str, "a workload's key (owner.workload, pod.uid)")
        prepare(self._keeper, lambda resource: self._calls(resource, "Allocate"), workload, cancel)

    @typed
    def pre_start(self, owner: Owner, /, *, cancel: Cancel | None = None) -> None:
        """Before each start of a container: plugins that want it prepare its devices; after `prepare`.

        Args:
            owner: The container.
            cancel: Asks to stop, as of `prepare`. None waits for `Deadlines.pre_start_s`.

        Raises:
            CancelledError: Of `concurrent.futures`; asked to stop before there was every answer.
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
                if cancel is not None and cancel.is_set():
                    raise CancelledError
                self._calls(resource, "PreStartContainer").pre_start(sorted(grant.ids), cancel=cancel)

    @typed
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
        return self._readers.new()

    def status(self) -> tuple[DevicePluginStatus, ...]:
        """Every resource's plugin, by name."""
        return status_of(self._keeper.current(), self._endpoints.sockets(), now_s=self._clock.monotonic_s())

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
        registration = PluginRegistration(resource=request.resource, socket=path, path=path)
        try:
            self._callbacks.take_on(registration)
        except (RegistrationRefusedError, SilentProcessError):
            raise
        except NodeallocError:
            self._unanswered.add(registration)
            raise
        self._unanswered.forget(request.resource)

    def _tell(self, before: Inventory | None, after: DeviceAllocator, resource: str) -> None:
        self._readers.put(event_of(before, after.inventories[resource], after.grants))

    def _calls(self, resource: str, call: str) -> PluginConnection:
        connection = self._connection(resource)
        if connection is None:
            raise PluginUnavailableError(resource, call, "NOT REGISTERED")
        return connection

    def _connection(self, resource: str) -> PluginConnection | None:
        """To the plugin that serves a resource now."""
        endpoint = self._endpoints.serving(resource)
        return None if endpoint is None else endpoint.connection

    def _observe(self) -> None:
        """Whether the own socket is still there, and what the keeper knows that no plugin has spoken of."""
        self._inventories.observe(self._as_found)
        if self._own_socket is not None:
            self._own_socket.keep()

    def _as_found(self, inventory: Inventory) -> Inventory:
        """An inventory as a new shell finds it: whoever served it before is away."""
        now_s = self._clock.monotonic_s()
        if inventory.phase is Phase.AWAITED:
            return attrs.evolve(inventory, since_s=now_s)
        return inventory.ended(inventory.generation, "the agent started anew", now_s=now_s)
