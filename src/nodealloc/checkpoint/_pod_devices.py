"""What one container holds of one resource, as the device manager's file has it.

A large entry keeps what was worked out of it: it costs its own commit, and no later one.
"""

from __future__ import annotations

import base64
import enum
from collections.abc import Mapping
from typing import Final

from nodealloc import _attrs as attrs
from nodealloc._frozen import freeze
from nodealloc._lazy import lazy
from nodealloc._typed import typed_fields, typed_methods
from nodealloc.checkpoint._fnv import fnv1a32, joined
from nodealloc.checkpoint._json import Json, go_json

__all__ = ["DeviceLayout", "Ids", "PodDevices", "print_ids"]

Ids = tuple[str, ...] | None

_LARGE: Final = 4096
"""Characters of ids and bytes of an answer below which working it out again costs less than keeping it."""
_LAST: Final = 4
"""Hashes that are kept of one entry, by the low byte of what stands before it."""
_NUMBERS: Final = tuple(str(number).encode() for number in range(256))


class DeviceLayout(enum.Enum):
    """How device ids are laid out; a file is written back as it was read."""

    V1 = 1
    """Kubelet up to 1.19: one list a container."""
    V2 = 2
    """Kubelet from 1.20: a list a NUMA node."""


@typed_methods
@typed_fields
@attrs.frozen(kw_only=True, slots=False)
class PodDevices:
    """Devices of one resource that one container holds. None is the kubelet's nil: nothing.

    Attributes:
        pod_uid: The pod.
        container_name: The container.
        resource_name: `example.com/gpu`.
        device_ids: NUMA node id to device ids, in the order of the file; -1 for devices
            without a node. All stand under 0 when the layout knows no nodes.
        alloc_resp: What the plugin answered, an encoded `ContainerAllocateResponse`.
    """

    pod_uid: str
    container_name: str
    resource_name: str
    device_ids: Mapping[int, Ids] | None = attrs.field(factory=dict[int, Ids], validator=freeze)
    alloc_resp: bytes | None = b""

    def __getstate__(self) -> dict[str, object]:
        """What is pickled: the fields, not what was worked out from them."""
        return {field.name: self.__dict__[field.name] for field in attrs.fields(PodDevices)}

    @lazy
    def is_large(self) -> bool:
        """Whether it keeps what is worked out of it, in the newest layout."""
        ids = [identity for held in (self.device_ids or {}).values() for identity in held or ()]
        return len(self.alloc_resp or b"") + sum(map(len, ids)) >= _LARGE

    def json(self, layout: DeviceLayout, /) -> bytes:
        """As the file has it."""
        return self._json if self.is_large and layout is DeviceLayout.V2 else self._as_json(layout)

    def answered(self, response: bytes, /) -> PodDevices:
        """The same devices with another answer; what was worked out of the devices is kept."""
        fresh = attrs.evolve(self, alloc_resp=response)
        kept: bytes | None = self.__dict__.get("_json")
        if kept is not None:
            head = kept.removesuffix(_answer_json(self.alloc_resp))
            fresh.__dict__["_json"] = head + _answer_json(response)
        fresh.__dict__["_head_ends"] = self._head_ends
        return fresh

    def printed(self, layout: DeviceLayout, /) -> bytes:
        """As Go prints it, for the checksum."""
        return self._printed_head(layout) + self._printed_answer

    def _printed_head(self, layout: DeviceLayout) -> bytes:
        if layout is DeviceLayout.V1:
            ids = f"([]string){print_ids(self._flat)}"
        elif self.device_ids is None:
            ids = "(checkpoint.DevicesPerNUMA)<nil>"
        else:
            nodes = [f"{node}:{print_ids(held)}" for node, held in sorted(self.device_ids.items())]
            ids = f"(checkpoint.DevicesPerNUMA)map[{' '.join(nodes)}]"
        head = (
            f"{{PodUID:(string){self.pod_uid} ContainerName:(string){self.container_name} "
            f"ResourceName:(string){self.resource_name} DeviceIDs:{ids} AllocResp:([]uint8)"
        )
        return head.encode()

    @property
    def _printed_answer(self) -> bytes:
        return b"%b}" % (b"<nil>" if self.alloc_resp is None else _print_bytes(self.alloc_resp))

    def hashed(self, before: int, /) -> int:
        """The hash after what Go prints of it in the newest layout, from the hash before it.

        What is kept is the end for a low byte; all above it is only multiplied
        on its way, so that the same end serves every hash with that low byte.
        """
        low = before & 0xFF
        if low not in self._ends:
            head, answer = self._head_end(low), self._printed_answer
            both = fnv1a32(answer, start=head[0]), head[1] + len(answer)
            self.__dict__["_ends"] = _with_end(self._ends, low, both)
        end, length = self._ends[low]
        return joined(before, low, end, length)

    def _head_end(self, low: int) -> tuple[int, int]:
        """The same of all but the answer, which comes when the devices have been granted."""
        if low not in self._head_ends:
            text = self._printed_head(DeviceLayout.V2)
            end = fnv1a32(text, start=low), len(text)
            self.__dict__["_head_ends"] = _with_end(self._head_ends, low, end)
        return self._head_ends[low]

    @lazy
    def _json(self) -> bytes:
        return self._as_json(DeviceLayout.V2)

    @lazy
    def _ends(self) -> Mapping[int, tuple[int, int]]:
        return {}

    @lazy
    def _head_ends(self) -> Mapping[int, tuple[int, int]]:
        return {}

    @property
    def _flat(self) -> Ids:
        if self.device_ids is None:
            return None
        if set(self.device_ids) == {0}:
            return self.device_ids[0]
        return tuple(name for _, held in sorted(self.device_ids.items()) for name in held or ())

    def _as_json(self, layout: DeviceLayout) -> bytes:
        ids: Json
        if layout is DeviceLayout.V1:
            ids = self._flat
        elif self.device_ids is None:
            ids = None
        else:
            ids = dict(sorted((str(node), held) for node, held in self.device_ids.items()))
        entry: Json = {
            "PodUID": self.pod_uid,
            "ContainerName": self.container_name,
            "ResourceName": self.resource_name,
            "DeviceIDs": ids,
        }
        return go_json(entry).encode()[:-1] + _answer_json(self.alloc_resp)


def _answer_json(answer: bytes | None) -> bytes:
    """The end of an entry."""
    text = None if answer is None else base64.b64encode(answer).decode()
    return b',"AllocResp":%b}' % go_json(text).encode()


def _with_end(
    ends: Mapping[int, tuple[int, int]], low: int, end: tuple[int, int]
) -> Mapping[int, tuple[int, int]]:
    return {**dict(list(ends.items())[1 - _LAST :]), low: end}


def print_ids(ids: Ids, /) -> str:
    """Device ids as Go prints them: `[a b]`."""
    return "<nil>" if ids is None else f"[{' '.join(ids)}]"


def _print_bytes(data: bytes) -> bytes:
    return b"[%b]" % b" ".join([_NUMBERS[byte] for byte in data])
