"""Protobuf messages of device plugins and their values; raw bytes stop here."""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.message import DecodeError as ProtobufError

from nodealloc import _attrs as attrs
from nodealloc._proto import deviceplugin_v1beta1_pb2 as wire
from nodealloc.devices._inventory import NO_SUCH_NODE, Device, PluginOptions
from nodealloc.devices._launch import DeviceMount, DeviceNode, Response
from nodealloc.devices._preferences import PreferenceQuestion
from nodealloc.errors import DecodeError, Fault

__all__ = [
    "RegisterRequest",
    "decode_allocated",
    "decode_list",
    "decode_options",
    "decode_preferred",
    "decode_register",
    "decode_response",
    "encode_allocate",
    "encode_list",
    "encode_pre_start",
    "encode_preferred",
    "encode_register",
    "encode_response",
]


@attrs.frozen(kw_only=True)
class RegisterRequest:
    """How a plugin introduces itself on `kubelet.sock`.

    Attributes:
        version: Of the protocol, `v1beta1`.
        endpoint: Its socket's name in the directory of `kubelet.sock`.
        resource: What it serves, `example.com/gpu`.
        options: What it wants to be asked; its answer to `GetDevicePluginOptions` counts.
    """

    version: str
    endpoint: str
    resource: str
    options: PluginOptions = PluginOptions()


def _unreadable(what: str, error: Exception) -> DecodeError:
    return DecodeError(what, [Fault("$", f"not a protobuf message of this kind ({error})")])


def decode_register(data: bytes, /) -> RegisterRequest:
    """A plugin's registration; raises `DecodeError`."""
    try:
        message = wire.RegisterRequest.FromString(data)
    except (ProtobufError, UnicodeDecodeError) as error:
        raise _unreadable("RegisterRequest", error) from error
    return RegisterRequest(
        version=message.version,
        endpoint=message.endpoint,
        resource=message.resource_name,
        options=_options(message.options),
    )


def encode_register(request: RegisterRequest, /) -> bytes:
    """The same, the other way."""
    options = wire.DevicePluginOptions(
        pre_start_required=request.options.pre_start_required,
        get_preferred_allocation_available=request.options.preferred_allocation,
    )
    return wire.RegisterRequest(
        version=request.version, endpoint=request.endpoint, resource_name=request.resource, options=options
    ).SerializeToString()


def _options(message: wire.DevicePluginOptions) -> PluginOptions:
    return PluginOptions(
        pre_start_required=message.pre_start_required,
        preferred_allocation=message.get_preferred_allocation_available,
    )


def decode_options(data: bytes, /) -> PluginOptions:
    """What a plugin wants to be asked; raises `DecodeError`."""
    try:
        return _options(wire.DevicePluginOptions.FromString(data))
    except (ProtobufError, UnicodeDecodeError) as error:
        raise _unreadable("DevicePluginOptions", error) from error


def decode_list(data: bytes, /) -> list[Device]:
    """A full list of devices, as the plugin sent it; raises `DecodeError`.

    NUMA ids that no machine can have (below 0, or beyond Linux's last) become
    `NO_SUCH_NODE`, so that the check against the machine finds them.
    """
    try:
        message = wire.ListAndWatchResponse.FromString(data)
    except (ProtobufError, UnicodeDecodeError) as error:
        raise _unreadable("ListAndWatchResponse", error) from error
    devices: list[Device] = []
    places: dict[bytes, int | None] = {}
    for device in message.devices:
        if device.HasField("topology"):
            topology = device.topology
            # Most devices share a handful of places: decode each of them once.
            key = topology.SerializeToString()
            place = places[key] if key in places else places.setdefault(key, _place(topology))
        else:
            place = None
        devices.append(Device(device.ID, device.health, place))
    return devices


def _place(topology: wire.TopologyInfo) -> int | None:
    mask = 0
    for node in topology.nodes:
        mask |= 1 << (node.ID if 0 <= node.ID < NO_SUCH_NODE else NO_SUCH_NODE)
    return mask or None


def encode_list(devices: Sequence[Device], /) -> bytes:
    """The same, the other way."""
    message = wire.ListAndWatchResponse()
    for device in devices:
        added = message.devices.add(ID=device.id, health=device.health)
        if device.numa_nodes is not None:
            nodes = [n for n in range(device.numa_nodes.bit_length()) if device.numa_nodes >> n & 1]
            added.topology.CopyFrom(wire.TopologyInfo(nodes=[wire.NUMANode(ID=node) for node in nodes]))
    return message.SerializeToString()


def encode_preferred(question: PreferenceQuestion, /) -> bytes:
    """A question for `GetPreferredAllocation`."""
    asked = wire.ContainerPreferredAllocationRequest(
        available_deviceIDs=question.available,
        must_include_deviceIDs=question.must_include,
        allocation_size=question.size,
    )
    return wire.PreferredAllocationRequest(container_requests=[asked]).SerializeToString()


def decode_preferred(data: bytes, /) -> tuple[str, ...]:
    """Its answer: ids of the first container, or none; raises `DecodeError`."""
    try:
        message = wire.PreferredAllocationResponse.FromString(data)
    except (ProtobufError, UnicodeDecodeError) as error:
        raise _unreadable("PreferredAllocationResponse", error) from error
    return tuple(message.container_responses[0].deviceIDs) if message.container_responses else ()


def encode_allocate(ids: Sequence[str], /) -> bytes:
    """`Allocate` for one container."""
    asked = wire.ContainerAllocateRequest(devices_ids=ids)
    return wire.AllocateRequest(container_requests=[asked]).SerializeToString()


def decode_allocated(data: bytes, /) -> tuple[bytes, int]:
    """Its answer for the first container, in bytes of its own, and for how many it answered.

    Raises `DecodeError`.
    """
    try:
        message = wire.AllocateResponse.FromString(data)
    except (ProtobufError, UnicodeDecodeError) as error:
        raise _unreadable("AllocateResponse", error) from error
    if not message.container_responses:
        fault = Fault("$.container_responses", "empty; one entry for the one container is needed")
        raise DecodeError("AllocateResponse", [fault])
    first = message.container_responses[0].SerializeToString(deterministic=True)
    return first, len(message.container_responses)


def encode_pre_start(ids: Sequence[str], /) -> bytes:
    """`PreStartContainer` for one container."""
    return wire.PreStartContainerRequest(devices_ids=ids).SerializeToString()


def decode_response(data: bytes, /) -> Response:
    """What a container gets, from the bytes that are remembered; raises `DecodeError`."""
    try:
        message = wire.ContainerAllocateResponse.FromString(data)
    except (ProtobufError, UnicodeDecodeError) as error:
        raise _unreadable("ContainerAllocateResponse", error) from error
    return Response(
        env=dict(message.envs),
        mounts=tuple(DeviceMount(m.container_path, m.host_path, m.read_only) for m in message.mounts),
        device_nodes=tuple(DeviceNode(d.container_path, d.host_path, d.permissions) for d in message.devices),
        annotations=dict(message.annotations),
        cdi_devices=tuple(device.name for device in message.cdi_devices),
    )


def encode_response(response: Response, /) -> bytes:
    """The same, the other way."""
    message = wire.ContainerAllocateResponse(
        envs=response.env,
        annotations=response.annotations,
        mounts=[wire.Mount(container_path=m[0], host_path=m[1], read_only=m[2]) for m in response.mounts],
        devices=[
            wire.DeviceSpec(container_path=d[0], host_path=d[1], permissions=d[2])
            for d in response.device_nodes
        ],
        cdi_devices=[wire.CDIDevice(name=name) for name in response.cdi_devices],
    )
    return message.SerializeToString(deterministic=True)
