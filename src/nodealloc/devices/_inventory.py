"""Values only: the devices of one resource, and how their plugin is doing."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from nodealloc import _attrs as attrs
from nodealloc._arguments import check, choice, filled, wrong
from nodealloc._frozen import Frozen, freeze
from nodealloc._lazy import lazy
from nodealloc._typed import typed_fields, typed_methods, typed_on_error
from nodealloc.devices._grants import NO_NODE
from nodealloc.devices._life import DEVICE_LIFE, Phase, PluginEvent
from nodealloc.idset import MAX_ID, NodeSet, bits

__all__ = ["NO_SUCH_NODE", "Capacity", "Device", "DeviceList", "Inventory", "PluginOptions"]

HEALTHY = "Healthy"
NO_SUCH_NODE = 1 << 10
"""The first NUMA node that Linux cannot have; stands for all that it cannot. A place has as many bits as
its highest node, and a list may have 200,000 places."""
_SHOWN = 40
"""Characters of a plugin's own words that are shown; it may say a megabyte."""
_FEW, _ONE = 8, ord("1")
_FLAGS = bytes(byte == _ONE for byte in range(256))
"""From the digits of a binary number to what is true of them."""
_KNOWN_HEALTH = frozenset({HEALTHY, "Unhealthy"})


class Device(NamedTuple):
    """One device as its plugin describes it.

    Attributes:
        id: Unique inside the resource.
        health: `Healthy`; every other word counts as unhealthy.
        numa_nodes: Where it is attached, as a mask; None when it has no place.
    """

    id: str
    health: str = HEALTHY
    numa_nodes: int | None = None


def _phase(phase: Phase | str) -> Phase:
    return choice(Phase, phase, "Inventory.phase")


def _check_device(device: Device) -> None:
    check("DeviceList.of", device, Device, 'devices, each as Device(id="gpu0", numa_nodes=1 << node)')
    at = device.numa_nodes
    if at is not None and (type(at) is not int or at < 0):
        raise wrong(f"device {device.id}, numa_nodes", at, "a mask as an integer from 0 on, or None")


@typed_methods
@typed_fields
@attrs.frozen(kw_only=True, slots=False)
class DeviceList:
    """What one message of a plugin said, checked against the machine.

    Devices are columns: bit *i* of a mask stands for ``ids[i]``.

    Attributes:
        ids: Ascending, each once.
        healthy: Devices that are healthy.
        by_node: NUMA node id to the devices there; a device may be at several.
        findings: What was wrong with the message, in sentences; at most a few.
    """

    ids: tuple[str, ...] = ()
    healthy: int = 0
    by_node: Mapping[int, int] = attrs.field(factory=Frozen[int, int], validator=freeze)
    findings: tuple[str, ...] = ()

    @classmethod
    @typed_on_error
    def of(cls, devices: Iterable[Device], /, *, nodes: Iterable[int]) -> DeviceList:
        """Check and sort a plugin's devices.

        Of two devices with one id the last counts. A NUMA node that is not in
        `nodes` is dropped from its device. A place without any node counts as
        no place.
        """
        latest: dict[str, Device] = {}
        doubled = 0
        for device in devices:
            _check_device(device)
            doubled += device.id in latest
            latest[device.id] = device
        nameless = latest.pop("", None) is not None
        ids = tuple(sorted(latest))
        ordered = [latest[identity] for identity in ids]
        known = NodeSet.of(*nodes).mask
        words = {device.health for device in ordered} - _KNOWN_HEALTH
        for word in words:
            check("DeviceList.of, health of a device", word, str, f"a text such as {HEALTHY}")
        foreign = 0
        for device in ordered:
            if device.numa_nodes:
                foreign |= device.numa_nodes & ~known
        return cls(
            ids=ids,
            healthy=_column(device.health == HEALTHY for device in ordered),
            by_node=_by_node(ordered, known),
            findings=tuple(_findings(doubled, nameless, words, foreign)),
        )

    def __getstate__(self) -> dict[str, object]:
        """What is pickled: the columns, not what was worked out from them."""
        return {field.name: self.__dict__[field.name] for field in attrs.fields(DeviceList)}

    @lazy
    def index(self) -> Mapping[str, int]:
        """Bit of each id."""
        return {identity: bit for bit, identity in enumerate(self.ids)}

    @lazy
    def characters(self) -> int:
        """Of all ids, and one for each."""
        return len(self.ids) + sum(map(len, self.ids))

    @lazy
    def everything(self) -> int:
        """All devices."""
        return (1 << len(self.ids)) - 1

    @lazy
    def placed(self) -> int:
        """Devices that are at some NUMA node."""
        mask = 0
        for devices in self.by_node.values():
            mask |= devices
        return mask

    @lazy
    def _columns(self) -> Sequence[tuple[int, bytes]]:
        """Nodes, ascending, with their devices, a bit each: to ask a mask for one bit copies it."""
        return [
            (node, mask.to_bytes(max(mask.bit_length(), len(self.ids)) // 8 + 1, "little"))
            for node, mask in sorted(self.by_node.items())
        ]

    def mask_of(self, ids: Iterable[str], /) -> int:
        """The devices with these ids; unknown ids are left out."""
        index = self.index
        found = [index[identity] for identity in ids if identity in index]
        if len(found) < _FEW:
            return sum({1 << bit for bit in found})
        flags = bytearray(b"0") * len(self.ids)
        for bit in found:
            flags[bit] = _ONE
        return int(flags[::-1], 2)

    def ids_of(self, mask: int, /) -> tuple[str, ...]:
        """The ids of a mask, ascending."""
        ids = self.ids
        if mask.bit_count() * 4 < len(ids):
            return tuple(ids[bit] for bit in bits(mask))
        flags = bin(mask)[:1:-1].encode().translate(_FLAGS)
        return tuple(itertools.compress(ids, flags))

    def places_of(self, mask: int, /) -> Mapping[int, tuple[str, ...]]:
        """NUMA node to the ids of a mask there, both ascending; those without a place under `NO_NODE`."""
        masks = {NO_NODE: mask & ~self.placed}
        masks.update((node, mask & there) for node, there in sorted(self.by_node.items()))
        return {node: self.ids_of(there) for node, there in masks.items() if there}

    def nodes_of(self, identity: str, /) -> tuple[int, ...]:
        """NUMA nodes of a device, ascending; empty for one without, or unknown."""
        bit = self.index.get(identity)
        if bit is None:
            return ()
        return tuple([node for node, column in self._columns if column[bit >> 3] >> (bit & 7) & 1])

    def device(self, identity: str, /) -> Device | None:
        """One device, or None for an unknown id."""
        bit = self.index.get(identity)
        if bit is None:
            return None
        mask = sum(1 << node for node in self.nodes_of(identity))
        return Device(identity, HEALTHY if self.healthy >> bit & 1 else "Unhealthy", mask or None)


class Capacity(NamedTuple):
    """What a node reports of one resource.

    Attributes:
        capacity: All devices.
        allocatable: Those that are healthy, granted or not.
    """

    capacity: int
    allocatable: int


@typed_fields
@attrs.frozen(kw_only=True)
class PluginOptions:
    """What a plugin wants to be asked.

    Attributes:
        pre_start_required: Before each start of a container (`PreStartContainer`).
        preferred_allocation: Which devices go well together (`GetPreferredAllocation`).
    """

    pre_start_required: bool = False
    preferred_allocation: bool = False


@typed_methods
@typed_fields
@attrs.frozen(kw_only=True)
class Inventory:
    """One resource: its devices, and the life of its plugin.

    Attributes:
        resource: `example.com/gpu`.
        phase: How far the plugin has come.
        generation: Of the registration that is current; grows with each.
        devices: As the plugin last said; unhealthy all while it is lost.
        options: What the plugin wants to be asked.
        settled: Whether this registration has listed a device so far, or none for
            a grace period; some plugins start with an empty list.
        since_s: When the phase began, on the caller's monotonic clock.
        trouble: Why the plugin is not serving, or "".
    """

    resource: str = attrs.field(validator=filled)
    phase: Phase = attrs.field(default=Phase.AWAITED, converter=_phase)
    generation: int = 0
    devices: DeviceList = DeviceList()
    options: PluginOptions = PluginOptions()
    settled: bool = False
    since_s: float = 0.0
    trouble: str = ""

    @property
    def is_said(self) -> bool:
        """Whether a program said its devices, and no plugin has registered for it."""
        return self.phase is Phase.SERVING and not self.generation

    @property
    def capacity(self) -> Capacity:
        """What to report."""
        return Capacity(len(self.devices.ids), self.devices.healthy.bit_count())

    def registered(
        self, generation: int, /, *, now_s: float, options: PluginOptions | None = None
    ) -> Inventory:
        """After a registration; the devices stay as they are until it lists its own.

        Args:
            generation: Of the registration.
            now_s: Now, on the caller's monotonic clock.
            options: What the plugin said that it wants to be asked; None for nothing yet.
        """
        if generation <= self.generation:
            return self
        moved = self._moved(PluginEvent.REGISTERED, now_s)
        said = PluginOptions() if options is None else options
        return attrs.evolve(moved, generation=generation, settled=False, trouble="", options=said)

    def listed(
        self, generation: int, devices: DeviceList, options: PluginOptions, /, *, now_s: float
    ) -> Inventory:
        """After a full list from that registration; another's changes nothing."""
        if generation != self.generation or not DEVICE_LIFE.takes(self.phase, PluginEvent.LISTED):
            return self
        settled = self.settled or bool(devices.ids)
        moved = self._moved(PluginEvent.LISTED, now_s)
        return attrs.evolve(moved, devices=devices, options=options, settled=settled)

    def ended(self, generation: int, trouble: str, /, *, now_s: float) -> Inventory:
        """After the end of that registration's stream; another's changes nothing."""
        if generation != self.generation or not DEVICE_LIFE.takes(self.phase, PluginEvent.ENDED):
            return self
        dark = attrs.evolve(self.devices, healthy=0)
        return attrs.evolve(self._moved(PluginEvent.ENDED, now_s), devices=dark, trouble=trouble)

    def aged(self, *, now_s: float, grace_s: float) -> Inventory:
        """After the clock moved: gone once its grace period is over, or settled without any device."""
        ends_s = self.grace_ends_s(grace_s)
        if ends_s is None or now_s < ends_s:
            return self
        if self._is_bare:
            return attrs.evolve(self, settled=True)
        return attrs.evolve(self._moved(PluginEvent.GRACE_OVER, now_s), devices=DeviceList())

    def grace_ends_s(self, grace_s: float, /) -> float | None:
        """When its grace period is over, on the caller's monotonic clock; None while none runs."""
        runs = self._is_bare or DEVICE_LIFE.takes(self.phase, PluginEvent.GRACE_OVER)
        return self.since_s + grace_s if runs else None

    @property
    def _is_bare(self) -> bool:
        """Whether it serves, and has listed nothing so far."""
        return self.phase is Phase.SERVING and not self.settled

    def _moved(self, event: PluginEvent, now_s: float) -> Inventory:
        phase = DEVICE_LIFE.after(self.phase, event)
        # Each list renews SERVING; "since when" would otherwise say "a moment ago" for ever.
        since_s = self.since_s if phase is self.phase is Phase.SERVING else now_s
        return attrs.evolve(self, phase=phase, since_s=since_s)


def _column(flags: Iterable[bool]) -> int:
    """A mask from its bits, lowest first; linear, where setting bits one by one is not."""
    text = "".join(["1" if flag else "0" for flag in flags])
    return int(text[::-1], 2) if text else 0


def _by_node(devices: list[Device], known: int) -> dict[int, int]:
    places = 0
    for device in devices:
        places |= device.numa_nodes or 0
    return {
        node: _column(bool((device.numa_nodes or 0) >> node & 1) for device in devices)
        for node in bits(places & known)
    }


def _findings(doubled: int, nameless: bool, words: set[str], foreign: int) -> Iterable[str]:
    if doubled:
        yield f"{doubled} device ids came twice in one list; the last of each counts"
    if nameless:
        yield "a device without id was left out"
    if words:
        shown = ", ".join(repr(word[:_SHOWN]) for word in sorted(words)[:3])
        yield f"unknown health {shown} counts as unhealthy; say {HEALTHY!r} or 'Unhealthy'"
    if foreign:
        beyond = [node for node in bits(foreign) if node <= MAX_ID][:5]
        any_other = f" ({NO_SUCH_NODE}: or any below 0 or above)" if NO_SUCH_NODE in beyond else ""
        yield f"NUMA nodes {beyond}{any_other} are not on this machine and were dropped from their devices"
