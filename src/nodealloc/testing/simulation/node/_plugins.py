"""Device plugins of a simulated node: they come, go, fall silent and talk nonsense."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from typing import Final

from nodealloc import _attrs as attrs
from nodealloc.devices import (
    Capacity,
    Device,
    DeviceMount,
    DeviceNode,
    PluginConnection,
    PluginOptions,
    PluginRefusedError,
    PluginUnavailableError,
    PreferenceQuestion,
    Response,
)
from nodealloc.devices.plugins._codec import encode_response
from nodealloc.dsw_asw import Cancel
from nodealloc.errors import PermanentError, RetryableError
from nodealloc.pluginreg import PluginInfo, SocketIdentity
from nodealloc.testing.simulation._clock import SimulatedClock
from nodealloc.testing.simulation._executor import Rest
from nodealloc.testing.simulation._life import Life
from nodealloc.testing.simulation.node._events import Event, Events, What
from nodealloc.testing.simulation.node._resources import (
    NODES,
    OF_EACH_NODE,
    RESOURCES,
    file_of,
    library_of,
    node_of,
    variable_of,
)

__all__ = ["SimulatedPlugins"]

_PATIENCE_S: Final = 10.0
"""After it a call of a plugin that hangs is given up, as by a client with a deadline."""
_FORGOTTEN_S: Final = 200.0
"""A plugin that nobody has followed for so long may be taken for gone soon: its grace period is 300 s."""


@attrs.define(eq=False)
class _Process:
    """One process of a plugin; a new one is another, also at the same socket."""

    resource: str
    path: str
    number: int
    devices: dict[str, bool]
    is_alive: bool = True
    rests: list[Rest] = attrs.field(factory=list[Rest])

    def changed(self) -> None:
        """Wake whoever follows it."""
        rests, self.rests = self.rests, []
        for one in rests:
            one.end()


class SimulatedPlugins:
    """Plugins of two resources, over all lives of an agent; also their registration sockets.

    Faults, by name: `plugin is away`, `plugin is slow`, `plugin hangs` (until the caller's
    deadline, or until it is to stop), `plugin refuses`, `plugin talks nonsense`, `directory tells
    nothing` (a socket came or went, and nobody hears of it before the next look).

    Args:
        clock: The machine's.
        events: Is told what plugins were asked to do.

    Attributes:
        are_asked: Whether an agent ever talked to any.
        heard_s: When the present life of the agent was told of a resource's devices first.
        ill_s: Since when it has known of a device that it is not well.
    """

    def __init__(self, clock: SimulatedClock, events: Events) -> None:
        self._clock = clock
        self._events = events
        self._life: Life | None = None
        self._sockets: dict[str, _Process] = {}
        self._also: dict[str, str] = {}
        self._number = 0
        self._on_change: Callable[[], object] = lambda: None
        self._capacity: Callable[[], Mapping[str, Capacity]] = dict
        self._broken: set[str] = set()
        self.are_asked: bool = False
        self.heard_s: dict[str, float] = {}
        self.ill_s: dict[str, float] = {}
        self._followed: dict[str, set[object]] = {resource: set() for resource in RESOURCES}
        self._left_s: dict[str, float] = {}
        self._back_s: dict[str, float] = {}
        for resource in RESOURCES:
            self._begin(resource)

    def serve(self, life: Life) -> SimulatedPlugins:
        """From now on this life calls."""
        self._life = life
        self.heard_s.clear()
        self.ill_s.clear()
        for resource in RESOURCES:
            self._followed[resource].clear()
            self._left_s.setdefault(resource, self._clock.awake_s)
        self._on_change = lambda: None
        self._capacity = dict
        return self

    # What an agent asks.

    def on_change(self, call: Callable[[], object], /) -> None:
        """Call this when a socket comes or goes, as the kernel would."""
        self._on_change = call

    def reports(self, capacity: Callable[[], Mapping[str, Capacity]], /) -> None:
        """What the agent reports of each resource at any time; one that never says is not held to it."""
        self._capacity = capacity

    def look(self, _directory: str, /) -> Mapping[str, SocketIdentity]:
        """Sockets that stand there; some may be of dead processes."""
        there = {path: SocketIdentity(1, one.number, b"") for path, one in self._sockets.items()}
        return there | {
            path: SocketIdentity(2, self._sockets[own].number, b"") for path, own in self._also.items()
        }

    def info(self, socket: str, /) -> PluginInfo:
        """See `Registration.info`; a socket beside a plugin's own names that one as where it serves."""
        socket = self._also.get(socket, socket)
        one = self._answers(socket, "GetInfo")
        strange = self._strikes("plugin talks nonsense")
        return PluginInfo(
            type="DevicePlugin",
            name="no resource" if strange else one.resource,
            endpoint=socket,
            versions=("v1beta1",),
        )

    def notify(self, socket: str, error: str, /) -> None:
        """See `Registration.notify`; nobody here listens."""
        del error
        self._answers(self._also.get(socket, socket), "NotifyRegistrationStatus")

    def connect(self, path: str, /) -> PluginConnection:
        """A connection to whoever serves there now."""
        self.are_asked = True
        return _Connection(self, path, self._sockets.get(path))

    # What others do.

    def act(self, rng: random.Random) -> None:
        """A plugin dies, comes back, or says something else of a device."""
        resource = rng.choice(list(RESOURCES))
        one = self._serving(resource)
        if one is None:
            self._begin(resource, at_old=rng.random() < 0.5)
        elif rng.random() < 0.3:
            self._end(one, keeps_socket=rng.random() < 0.5)
        else:
            device = rng.choice(sorted(one.devices))
            one.devices[device] = not one.devices[device]
            (self._broken.discard if one.devices[device] else self._broken.add)(device)
            self._happen(What.DEVICE, device, str(one.devices[device]))
            one.changed()

    def replace(self, rng: random.Random) -> None:
        """A plugin is upgraded: another process serves, and the old one leaves."""
        one = self._serving(rng.choice(list(RESOURCES)))
        if one is not None:
            self._begin(one.resource)
            self._end(one, keeps_socket=False)

    def register_twice(self, rng: random.Random) -> None:
        """A plugin has another socket to register by, for the same endpoint; or has it no more."""
        one = self._serving(rng.choice(list(RESOURCES)))
        if one is None:
            return
        if not self._leave_second(one):
            self._also[f"{one.path}.again"] = one.path
            self._happen(What.PLUGIN, one.resource, "registers by another socket, too")
        self._tell()

    def calm(self) -> None:
        """Every resource is served from now on, and every device is well; each registers by two sockets."""
        self._broken.clear()
        for resource in RESOURCES:
            one = self._serving(resource) or self._begin(resource)
            one.devices.update(dict.fromkeys(one.devices, True))
            one.changed()
            self._also[f"{one.path}.again"] = one.path
        self._tell()

    def register_once(self) -> None:
        """Each plugin has its own socket alone from now on, and serves there as before."""
        for one in list(self._sockets.values()):
            self._leave_second(one)
        self._tell()

    def power_cut(self) -> None:
        """Every process is gone; its service manager starts each again."""
        for one in list(self._sockets.values()):
            self._end(one, keeps_socket=False)
        for resource in RESOURCES:
            self._begin(resource)

    # What connections share.

    def enter(self, one: _Process | None, path: str, call: str, cancel: Cancel | None = None) -> _Process:
        """A call begins; what may go wrong before it is answered, does."""
        life = self._life
        if life is not None:
            life.enter()
        if one is None or not one.is_alive or self._strikes("plugin is away"):
            raise PluginUnavailableError(path, call, "UNAVAILABLE", "connection refused")
        if life is not None and self._strikes("plugin is slow"):
            life.pause(life.chance.rng.uniform(0.5, 5.0))
        if life is not None and self._strikes("plugin hangs"):
            life.pause(_PATIENCE_S, cancel)
            if cancel is not None and cancel.is_set():
                raise CancelledError
            raise PluginUnavailableError(path, call, "DEADLINE_EXCEEDED")
        if self._strikes("plugin refuses"):
            raise PluginRefusedError(path, call, "INTERNAL", "the simulated plugin does not feel like it")
        return one

    def next_list(
        self,
        one: _Process | None,
        path: str,
        seen: Sequence[Device] | None,
        by: _Connection,
    ) -> Sequence[Device]:
        """The next list of a plugin that is not the one that was seen; it ends with its process alone.

        A plugin whose stream broke would notice, and register again.
        """
        while True:
            if one is None or not one.is_alive or self._life is None or by.is_closed:
                self._is_left(one, by)
                raise PluginUnavailableError(path, "ListAndWatch", "UNAVAILABLE", "stream removed")
            devices = self._listed(one)
            if devices != seen:
                self._is_followed(one, by)
                return devices
            wait = Rest()
            one.rests.append(wait)
            self._life.rest(wait)

    def was_long_gone(self, resource: str, since_s: float, /) -> bool:
        """Whether an agent that is asked may have taken a plugin for gone at some time since then."""
        now_s = self._clock.awake_s
        left_s = self._left_s.get(resource, now_s)
        return now_s - left_s > _FORGOTTEN_S or self._back_s.get(resource, -1.0) >= since_s

    @property
    def reported(self) -> Mapping[str, Capacity]:
        """What the present life of the agent reports, by resource; nothing once it is over."""
        return {} if self._life is not None and self._life.is_over else self._capacity()

    def away_s(self, resource: str, /) -> float:
        """How long nobody has followed a plugin of a resource, on the clock of events; 0 for one that is."""
        return self._clock.awake_s - self._left_s.get(resource, self._clock.awake_s)

    def well(self, resource: str, /) -> int:
        """How many devices its plugin says to be well."""
        one = self._serving(resource)
        return 0 if one is None else sum(one.devices.values())

    def was_heard(self, one: _Process | None, devices: Sequence[Device]) -> None:
        """A list of a plugin was taken in, and the next one is asked for."""
        if one is not None:
            self.heard_s.setdefault(one.resource, self._clock.awake_s)
        is_sound = all(device.id in one.devices for device in devices) if one is not None else False
        for device in devices:
            if device.health != "Unhealthy":
                self.ill_s.pop(device.id, None)
            elif is_sound:
                self.ill_s.setdefault(device.id, self._clock.awake_s)

    def did(self, what: What, resource: str, ids: Sequence[str]) -> None:
        """A plugin did what it was asked to."""
        self._happen(what, resource, ",".join(sorted(ids)))

    def leave(self) -> None:
        """A call was answered; the agent may be gone by then."""
        if self._life is not None:
            self._life.leave()

    def _is_followed(self, one: _Process, by: _Connection) -> None:
        self._followed[one.resource].add(by)
        left_s, now_s = self._left_s.pop(one.resource, None), self._clock.awake_s
        if left_s is not None and now_s - left_s > _FORGOTTEN_S:
            self._back_s[one.resource] = now_s

    def _is_left(self, one: _Process | None, by: _Connection) -> None:
        if one is not None:
            self._followed[one.resource].discard(by)
            if not self._followed[one.resource]:
                self._left_s.setdefault(one.resource, self._clock.awake_s)

    def _listed(self, one: _Process) -> Sequence[Device]:
        devices = [
            Device(name, "Healthy" if is_well else "Unhealthy", 1 << node_of(name))
            for name, is_well in one.devices.items()
        ]
        if self._strikes("plugin talks nonsense"):
            devices += [devices[0], Device("", "Healthy"), Device("odd", "Sick", 1 << 40)]
        return tuple(devices)

    def _answers(self, socket: str, call: str) -> _Process:
        try:
            one = self.enter(self._sockets.get(socket), socket, call)
        except PluginRefusedError as error:
            raise PermanentError(str(error)) from error
        except PluginUnavailableError as error:
            raise RetryableError(str(error)) from error
        self.leave()
        return one

    def _strikes(self, fault: str) -> bool:
        return self._life is not None and self._life.chance.strikes(fault)

    def _serving(self, resource: str) -> _Process | None:
        mine = [one for one in self._sockets.values() if one.resource == resource and one.is_alive]
        return mine[-1] if mine else None

    def _begin(self, resource: str, *, at_old: bool = False) -> _Process:
        self._number += 1
        name = resource.rpartition("/")[2]
        old = [path for path, one in self._sockets.items() if one.resource == resource and not one.is_alive]
        path = old[0] if at_old and old else f"/plugins/{name}-{self._number}.sock"
        for one in () if at_old else old:
            del self._sockets[one]
        ids = [f"{name}-{number}" for number in range(NODES * OF_EACH_NODE)]
        made = _Process(resource, path, self._number, {one: one not in self._broken for one in ids})
        self._sockets[path] = made
        self._happen(What.PLUGIN, resource, "serves")
        self._tell()
        return made

    def _leave_second(self, one: _Process) -> bool:
        """Its other socket is gone, where it had one."""
        had = self._also.pop(f"{one.path}.again", "")
        if had:
            self._happen(What.PLUGIN, one.resource, "registers by its own socket alone")
        return bool(had)

    def _end(self, one: _Process, *, keeps_socket: bool) -> None:
        one.is_alive = False
        self._leave_second(one)
        if not keeps_socket:
            self._sockets.pop(one.path, None)
        self._happen(What.PLUGIN, one.resource, "is gone")
        one.changed()
        self._tell()

    def _tell(self) -> None:
        if self._life is not None and not self._life.is_over and not self._strikes("directory tells nothing"):
            self._on_change()

    def _happen(self, what: What, id_: str, value: str) -> None:
        self._events.happen(Event(what=what, at_s=self._clock.awake_s, id=id_, value=value))


class _Connection:
    """A `PluginConnection`: to the process that served at a path when it was made."""

    def __init__(self, plugins: SimulatedPlugins, path: str, one: _Process | None) -> None:
        self._plugins, self._path, self._one = plugins, path, one
        self.is_closed: bool = False

    def options(self) -> PluginOptions:
        """See `PluginWatch`."""
        return RESOURCES[self._enter("GetDevicePluginOptions").resource]

    def lists(self) -> Iterator[Sequence[Device]]:
        """See `PluginWatch`; lasts as long as the process and the connection do."""
        seen = None
        while True:
            seen = self._plugins.next_list(self._one, self._path, seen, self)
            yield seen
            self._plugins.was_heard(self._one, seen)

    def preferred(self, question: PreferenceQuestion, /) -> tuple[str, ...]:
        """See `PluginCalls`; it likes the highest ids, and may name some that nobody asked for."""
        self._enter("GetPreferredAllocation")
        rest = sorted(set(question.available) - set(question.must_include), reverse=True)
        self._plugins.leave()
        return (*question.must_include, *rest)[: question.size]

    def allocate(self, ids: Sequence[str], /, *, cancel: Cancel | None = None) -> bytes:
        """See `PluginCalls`."""
        one = self._enter("Allocate", cancel)
        self._plugins.did(What.ALLOCATED, one.resource, ids)
        self._plugins.leave()
        return encode_response(
            Response(
                env={variable_of(one.resource): ",".join(sorted(ids))},
                device_nodes=tuple(DeviceNode(path, path) for path in map(file_of, sorted(ids))),
                mounts=(DeviceMount(library_of(one.resource), library_of(one.resource), read_only=True),),
            )
        )

    def pre_start(self, ids: Sequence[str], /, *, cancel: Cancel | None = None) -> None:
        """See `PluginCalls`."""
        one = self._enter("PreStartContainer", cancel)
        self._plugins.did(What.PREPARED, one.resource, ids)
        self._plugins.leave()

    def close(self) -> None:
        """See `PluginWatch`."""
        self.is_closed = True
        if self._one is not None:
            self._one.changed()

    def _enter(self, call: str, cancel: Cancel | None = None) -> _Process:
        if self.is_closed:
            raise PluginUnavailableError(self._path, call, "CANCELLED")
        return self._plugins.enter(self._one, self._path, call, cancel)
