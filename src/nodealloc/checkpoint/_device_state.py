"""The device manager's state file, `kubelet_internal_checkpoint`, in the layouts that kubelets write."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from nodealloc import _attrs as attrs
from nodealloc._frozen import freeze
from nodealloc.checkpoint._fnv import fnv1a32
from nodealloc.checkpoint._framing import check
from nodealloc.checkpoint._json import Json, Shape, go_json, read_json
from nodealloc.checkpoint._pod_devices import DeviceLayout, Ids, PodDevices, print_ids

__all__ = ["DEVICE_STATE", "DeviceManagerState"]

DEVICE_STATE = "kubelet_internal_checkpoint"
"""Name of the file (in the folder `device-plugins`), and its key in a store."""


@attrs.frozen(kw_only=True)
class DeviceManagerState:
    """What the device manager remembers. None is the kubelet's nil: nothing.

    Attributes:
        pod_device_entries: Who holds what.
        registered_devices: Resource name to the ids of its healthy devices.
        boot_id: The boot in which it was written; empty where the kubelet does
            not say. No checksum covers it.
        layout: Which layout `marshal` writes.
        checksum: As it was read; None for a state made here.

    Source: kubelet v1.32 ``cm/devicemanager/checkpoint/checkpoint.go``; the boot
    id as on its main branch in 2026, the first layout as in v1.20 ``checkpointv1.go``.
    """

    pod_device_entries: tuple[PodDevices, ...] | None = None
    registered_devices: Mapping[str, Ids] | None = attrs.field(factory=dict[str, Ids], validator=freeze)
    boot_id: str = ""
    layout: DeviceLayout = DeviceLayout.V2
    checksum: int | None = attrs.field(default=None, eq=False)

    def marshal(self) -> bytes:
        """The file as the kubelet writes it."""
        entries = b"null"
        if self.pod_device_entries is not None:
            entries = b"[%b]" % b",".join([entry.json(self.layout) for entry in self.pod_device_entries])
        registered: Json = None
        if self.registered_devices is not None:
            registered = dict(sorted(self.registered_devices.items()))
        listed = go_json(registered).encode()
        boot = b',"BootID":%b' % go_json(self.boot_id).encode() if self.boot_id else b""
        return b'{"Data":{"PodDeviceEntries":%b,"RegisteredDevices":%b},"Checksum":%d%b}' % (
            entries,
            listed,
            self._hashed(),
            boot,
        )

    @classmethod
    def unmarshal(cls, data: bytes, /) -> DeviceManagerState:
        """Read a file of any layout."""
        shape = Shape(DEVICE_STATE)
        top = shape.fields(read_json(DEVICE_STATE, data), "$", ("Data", "Checksum"), ("BootID",))
        found = shape.fields(top.get("Data"), "$.Data", ("PodDeviceEntries", "RegisteredDevices"))
        shape.check()
        listed = found["PodDeviceEntries"]
        layout = DeviceLayout.V2
        entries: tuple[PodDevices, ...] | None = None
        if listed is not None:
            items = cast("Sequence[Json]", shape.sequence(listed, "$.Data.PodDeviceEntries"))
            if any(isinstance(item, Mapping) and isinstance(item.get("DeviceIDs"), list) for item in items):
                layout = DeviceLayout.V1
            entries = tuple(
                _read_entry(shape, item, f"$.Data.PodDeviceEntries[{index}]", layout)
                for index, item in enumerate(items)
            )
        registered: dict[str, Ids] | None = None
        if found["RegisteredDevices"] is not None:
            path = "$.Data.RegisteredDevices"
            resources = shape.mapping(found["RegisteredDevices"], path)
            registered = {name: _read_ids(shape, ids, f"{path}[{name!r}]") for name, ids in resources.items()}
        boot_id = shape.text(top.get("BootID", ""), "$.BootID")
        number = shape.number(top.get("Checksum"), "$.Checksum", bits=64)
        shape.check()
        return cls(
            pod_device_entries=entries,
            registered_devices=registered,
            boot_id=boot_id,
            layout=layout,
            checksum=number,
        )

    def verify(self) -> None:
        """Raise `CorruptCheckpointError` when content and checksum disagree."""
        if self.checksum is not None:
            parts = self._printed()
            texts = [one.printed(self.layout) if isinstance(one, PodDevices) else one for one in parts]
            check(DEVICE_STATE, self.checksum, None, [b"".join(texts)])

    def _hashed(self) -> int:
        """The checksum; of large entries only what is not known of them yet is worked out."""
        value: int | None = None
        text: list[bytes] = []
        for part in self._printed():
            if isinstance(part, PodDevices):
                value = part.hashed(_hash(value, text))
                text = []
            else:
                text.append(part)
        return _hash(value, text)

    def _printed(self) -> Iterator[bytes | PodDevices]:
        """As Go prints it, in parts; a large entry stands for its own print."""
        yield b"(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)"
        if self.pod_device_entries is None:
            yield b"<nil>"
        else:
            keeps = self.layout is DeviceLayout.V2
            for number, entry in enumerate(self.pod_device_entries):
                yield b" " if number else b"["
                yield entry if keeps and entry.is_large else entry.printed(self.layout)
            yield b"]" if self.pod_device_entries else b"[]"
        registered = "<nil>"
        if self.registered_devices is not None:
            listed = [f"{name}:{print_ids(ids)}" for name, ids in sorted(self.registered_devices.items())]
            registered = f"map[{' '.join(listed)}]"
        yield f" RegisteredDevices:(map[string][]string){registered}}}".encode()


def _hash(before: int | None, text: Sequence[bytes]) -> int:
    data = b"".join(text)
    return fnv1a32(data) if before is None else fnv1a32(data, start=before)


def _read_entry(shape: Shape, value: object, path: str, layout: DeviceLayout) -> PodDevices:
    names = ("PodUID", "ContainerName", "ResourceName", "DeviceIDs", "AllocResp")
    found = shape.fields(value, path, names)
    listed = found.get("DeviceIDs")
    ids: dict[int, Ids] | None = None
    if listed is not None and layout is DeviceLayout.V1:
        ids = {0: _read_ids(shape, listed, f"{path}.DeviceIDs")}
    elif listed is not None:
        ids = {
            shape.number_key(node, f"{path}.DeviceIDs"): _read_ids(shape, held, f"{path}.DeviceIDs[{node}]")
            for node, held in shape.mapping(listed, f"{path}.DeviceIDs").items()
        }
    return PodDevices(
        pod_uid=shape.text(found.get("PodUID"), f"{path}.PodUID"),
        container_name=shape.text(found.get("ContainerName"), f"{path}.ContainerName"),
        resource_name=shape.text(found.get("ResourceName"), f"{path}.ResourceName"),
        device_ids=ids,
        alloc_resp=_read_bytes(shape, found.get("AllocResp"), f"{path}.AllocResp"),
    )


def _read_ids(shape: Shape, value: object, path: str) -> Ids:
    if value is None:
        return None
    return tuple(
        name if isinstance(name, str) else shape.text(name, path) for name in shape.sequence(value, path)
    )


def _read_bytes(shape: Shape, value: object, path: str) -> bytes | None:
    if value is None:
        return None
    text = shape.text(value, path)
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        shape.expected("base64", text, path)
        return None
    if base64.b64encode(data).decode() != text:
        shape.fault(path, "base64 with stray bits at its end")
    return data
