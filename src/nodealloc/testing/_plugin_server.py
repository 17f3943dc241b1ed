"""A real device plugin: gRPC on a Unix socket, with switches to misbehave."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import grpc

from nodealloc import _attrs as attrs
from nodealloc._proto import deviceplugin_v1beta1_pb2 as wire
from nodealloc._proto import pluginregistration_v1_pb2 as registry
from nodealloc._rpc import channels
from nodealloc.devices import Device, DeviceMount, DeviceNode, PluginOptions, Response
from nodealloc.devices.plugins._codec import (
    RegisterRequest,
    encode_list,
    encode_response,
)
from nodealloc.devices.plugins._registration import introduce
from nodealloc.errors import NodeallocError

__all__ = ["CALLS", "STATUSES", "Behaviour", "DevicePluginServer"]

CALLS = (
    "GetDevicePluginOptions",
    "ListAndWatch",
    "GetPreferredAllocation",
    "Allocate",
    "PreStartContainer",
    "GetInfo",
    "NotifyRegistrationStatus",
)
"""Calls that a switch can name."""

STATUSES = tuple(sorted(code.name for code in grpc.StatusCode))
"""Names of gRPC's statuses."""

_SOON_S = 0.05
_OPTIONS = (("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1))


@attrs.frozen(kw_only=True)
class Behaviour:
    """How the plugin behaves; by default as it should.

    Attributes:
        hang: Calls that never return.
        crash_on: Calls at which the process dies.
        garbage: Calls whose answer is no protobuf message.
        status: Calls that end with the status of `status_code`.
        status_code: Name of a gRPC status.
        slow_s: Seconds before each answer.
        crash_after: Lists after which the process dies in mid-stream; 0 for never.
        end_after: Lists after which the stream ends in peace; 0 for never.
        flap_s: Seconds between two changes of the first device's health; 0 for never.
        change_s: Seconds between two changes of the set of devices; 0 for never.
        flood: Lists that are sent one after another at once, before the true one.
        refuse_allocate: `Allocate` is refused with this text; "" for not.
        answer_bytes: Bytes by which the answer to `Allocate` is larger than it need be.
        extra_answers: Containers too many that `Allocate` answers for.
        wrong_ids: Lists an id twice and one without a name, and prefers ids that do not exist.
        foreign_nodes: Puts devices on a NUMA node that no machine has.
        strange_health: A word for health that nobody knows; "" for not.
        empty_first: The first list of a stream has no devices.
        register_twice: Registers a second time at once.
        leave_socket: Leaves its socket behind when it is asked to end.
        versions: What it says it speaks.
    """

    hang: frozenset[str] = frozenset()
    crash_on: frozenset[str] = frozenset()
    garbage: frozenset[str] = frozenset()
    status: frozenset[str] = frozenset()
    status_code: str = "INTERNAL"
    slow_s: float = 0.0
    crash_after: int = 0
    end_after: int = 0
    flap_s: float = 0.0
    change_s: float = 0.0
    flood: int = 0
    refuse_allocate: str = ""
    answer_bytes: int = 0
    extra_answers: int = 0
    wrong_ids: bool = False
    foreign_nodes: bool = False
    strange_health: str = ""
    empty_first: bool = False
    register_twice: bool = False
    leave_socket: bool = False
    versions: tuple[str, ...] = ("v1beta1",)


class DevicePluginServer:
    """Serves a resource's devices; also the registration socket of `nodealloc.pluginreg`.

    Thread-safe. Devices may be changed while it serves.

    Args:
        resource: What it serves.
        devices: Its devices.
        socket: Where it listens.
        options: What it wants to be asked.
        behaviour: How it behaves.
        tell: Called with each thing that happens, as a word and its details.
    """

    def __init__(
        self,
        resource: str,
        devices: tuple[Device, ...],
        socket: Path,
        /,
        *,
        options: PluginOptions | None = None,
        behaviour: Behaviour | None = None,
        tell: Callable[[str, str], None] = lambda _what, _details: None,
    ) -> None:
        self.resource = resource
        self.socket = socket
        self.options: PluginOptions = PluginOptions() if options is None else options
        self.behaviour: Behaviour = Behaviour() if behaviour is None else behaviour
        self._tell = tell
        self._changed = threading.Condition()
        self._devices = devices
        self._version = 0
        self._stopped = threading.Event()
        self._server: channels.Server | None = None
        self._lists = 0

    @property
    def devices(self) -> tuple[Device, ...]:
        """What it lists now."""
        return self._devices

    def set_devices(self, devices: tuple[Device, ...], /) -> None:
        """List these from now on."""
        with self._changed:
            self._devices = devices
            self._version += 1
            self._changed.notify_all()

    def start(self) -> None:
        """Listen; a socket that is there is replaced."""
        self.socket.parent.mkdir(parents=True, exist_ok=True)
        self.socket.unlink(missing_ok=True)
        self._stopped.clear()
        pool = ThreadPoolExecutor(16, thread_name_prefix="test plugin")
        server = cast("channels.Server", grpc.server(pool, options=_OPTIONS))
        answers: dict[str, Callable[[bytes], bytes]] = {
            "GetDevicePluginOptions": self._get_options,
            "GetPreferredAllocation": self._prefer,
            "Allocate": self._allocate,
            "PreStartContainer": self._pre_start,
        }
        introductions: dict[str, Callable[[bytes], bytes]] = {
            "GetInfo": self._get_info,
            "NotifyRegistrationStatus": self._notified,
        }
        handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            name: _unary(self._wrapped(name, answer)) for name, answer in answers.items()
        }
        handlers["ListAndWatch"] = grpc.unary_stream_rpc_method_handler(self._list_and_watch)
        registering = {name: _unary(self._wrapped(name, answer)) for name, answer in introductions.items()}
        server.add_generic_rpc_handlers(
            (
                grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", handlers),
                grpc.method_handlers_generic_handler("pluginregistration.Registration", registering),
            )
        )
        server.add_insecure_port(channels.target(self.socket))
        server.start()
        self._server = server
        self._tell("serving", str(self.socket))
        for period_s, change in (
            (self.behaviour.flap_s, self._flap),
            (self.behaviour.change_s, self._change),
        ):
            if period_s:
                threading.Thread(target=self._every, args=(period_s, change), daemon=True).start()

    def stop(self) -> None:
        """Stop serving; the socket goes too. May be repeated."""
        self._stopped.set()
        with self._changed:
            self._changed.notify_all()
        server, self._server = self._server, None
        if server is not None:
            server.stop(None).wait()
        with contextlib.suppress(NotADirectoryError):  # a file stands in the place of its folder
            self.socket.unlink(missing_ok=True)

    def introduce(self, kubelet_socket: Path, /) -> bool:
        """Register on `kubelet.sock`; False when nobody is there or the answer is no."""
        request = RegisterRequest(
            version=self.behaviour.versions[-1],
            endpoint=self.socket.name,
            resource=self.resource,
            options=self.options,
        )
        try:
            introduce(kubelet_socket, request)
            if self.behaviour.register_twice:
                introduce(kubelet_socket, request)
        except NodeallocError as error:
            self._tell("refused", str(error))
            return False
        self._tell("registered", self.resource)
        return True

    def keep_introducing(self, kubelet_socket: Path, stop: threading.Event, /) -> None:
        """Register, and again whenever the own socket was deleted or `kubelet.sock` is another.

        Where it cannot listen, such as with a file in the place of its folder, it tells `unserved`, once,
        and tries again.
        """
        introduced: tuple[int, int, int] | None = None
        unserved = ""
        while not stop.wait(_SOON_S):
            if not self.socket.exists():
                introduced, before = None, unserved
                if unserved := self._served_anew():
                    if unserved != before:
                        self._tell("unserved", unserved)
                    continue
            now = _identity(kubelet_socket)
            if now is not None and now != introduced and self.introduce(kubelet_socket):
                introduced = now

    def _served_anew(self) -> str:
        """Why it cannot listen; "" where it does."""
        try:
            self.stop()
            self.start()
        except (OSError, RuntimeError) as error:  # gRPC's word for an address that it cannot have
            return str(error)
        return ""

    def _wrapped(
        self, name: str, answer: Callable[[bytes], bytes]
    ) -> Callable[[bytes, channels.Context], bytes]:
        def call(request: bytes, context: channels.Context) -> bytes:
            self._tell("called", name)
            behaviour = self.behaviour
            if name in behaviour.crash_on:
                os._exit(3)
            if name in behaviour.hang:
                self._stopped.wait()
            time.sleep(behaviour.slow_s)
            if name in behaviour.status:
                context.abort(grpc.StatusCode[behaviour.status_code], "told to fail")
            if name in behaviour.garbage:
                return b"\xff\xff\xff\xff\x07garbage"
            if name == "Allocate" and behaviour.refuse_allocate:
                context.abort(grpc.StatusCode.FAILED_PRECONDITION, behaviour.refuse_allocate)
            return answer(request)

        return call

    def _list_and_watch(self, _request: bytes, context: channels.Context) -> Iterator[bytes]:
        self._tell("called", "ListAndWatch")
        behaviour = self.behaviour
        if "ListAndWatch" in behaviour.crash_on:
            os._exit(3)
        if "ListAndWatch" in behaviour.hang:
            self._stopped.wait()
        if "ListAndWatch" in behaviour.status:
            context.abort(grpc.StatusCode[behaviour.status_code], "told to fail")
        if "ListAndWatch" in behaviour.garbage:
            # A list right behind would overtake the junk.
            yield b"\xff\xff\xff\xff\x07garbage"
            self._stopped.wait()
        if behaviour.empty_first:
            yield encode_list(())
        for _ in range(behaviour.flood):
            yield encode_list(())
        sent = 0
        while not self._stopped.is_set() and context.is_active():
            with self._changed:
                version, devices = self._version, self._devices
            time.sleep(behaviour.slow_s)
            yield encode_list(self._as_listed(devices))
            sent += 1
            self._tell("listed", str(len(devices)))
            if behaviour.crash_after and sent >= behaviour.crash_after:
                time.sleep(_SOON_S)
                os._exit(3)
            if behaviour.end_after and sent >= behaviour.end_after:
                return
            with self._changed:
                while version == self._version and not self._stopped.is_set() and context.is_active():
                    self._changed.wait(0.2)

    def _as_listed(self, devices: tuple[Device, ...]) -> tuple[Device, ...]:
        behaviour = self.behaviour
        if behaviour.strange_health:
            devices = tuple(device._replace(health=behaviour.strange_health) for device in devices)
        if behaviour.foreign_nodes:
            devices = tuple(device._replace(numa_nodes=1 << 999) for device in devices)
        if behaviour.wrong_ids:
            devices = (*devices, *devices[:1], Device(""))
        return devices

    def _get_options(self, _request: bytes) -> bytes:
        return wire.DevicePluginOptions(
            pre_start_required=self.options.pre_start_required,
            get_preferred_allocation_available=self.options.preferred_allocation,
        ).SerializeToString()

    def _prefer(self, request: bytes) -> bytes:
        """Prefers the highest ids."""
        answers: list[wire.ContainerPreferredAllocationResponse] = []
        for asked in wire.PreferredAllocationRequest.FromString(request).container_requests:
            must = list(asked.must_include_deviceIDs)
            rest = sorted(set(asked.available_deviceIDs) - set(must), reverse=True)
            chosen = ["no-such-device"] if self.behaviour.wrong_ids else must + rest
            answers.append(
                wire.ContainerPreferredAllocationResponse(deviceIDs=chosen[: asked.allocation_size])
            )
        return wire.PreferredAllocationResponse(container_responses=answers).SerializeToString()

    def _allocate(self, request: bytes) -> bytes:
        answers: list[wire.ContainerAllocateResponse] = []
        for asked in wire.AllocateRequest.FromString(request).container_requests:
            ids = sorted(asked.devices_ids)
            self._tell("allocated", ",".join(ids))
            word = self.resource.rpartition("/")[2].upper().replace("-", "_").replace(".", "_")
            response = Response(
                env={f"{word}_VISIBLE_DEVICES": ",".join(ids)},
                mounts=(DeviceMount("/usr/lib/plugin", "/opt/plugin/lib", read_only=True),),
                device_nodes=tuple(DeviceNode(f"/dev/{i}", f"/dev/{i}", "rw") for i in ids),
                annotations={f"{self.resource}.devices": str(len(ids)), **self._padding()},
                cdi_devices=tuple(f"{self.resource}={i}" for i in ids),
            )
            answers.append(wire.ContainerAllocateResponse.FromString(encode_response(response)))
        answers += [wire.ContainerAllocateResponse()] * self.behaviour.extra_answers
        return wire.AllocateResponse(container_responses=answers).SerializeToString()

    def _padding(self) -> dict[str, str]:
        size = self.behaviour.answer_bytes
        return {"padding": "x" * size} if size else {}

    def _pre_start(self, request: bytes) -> bytes:
        self._tell(
            "prepared", ",".join(sorted(wire.PreStartContainerRequest.FromString(request).devices_ids))
        )
        return wire.PreStartContainerResponse().SerializeToString()

    def _get_info(self, _request: bytes) -> bytes:
        return registry.PluginInfo(
            type="DevicePlugin", name=self.resource, supported_versions=self.behaviour.versions
        ).SerializeToString()

    def _notified(self, request: bytes) -> bytes:
        status = registry.RegistrationStatus.FromString(request)
        self._tell("registered" if status.plugin_registered else "refused", status.error or self.resource)
        return registry.RegistrationStatusResponse().SerializeToString()

    def _every(self, period_s: float, change: Callable[[], None]) -> None:
        while not self._stopped.wait(period_s):
            if self._devices:
                change()

    def _flap(self) -> None:
        first, *rest = self._devices
        health = "Unhealthy" if first.health == "Healthy" else "Healthy"
        self.set_devices((first._replace(health=health), *rest))

    def _change(self) -> None:
        """The last device leaves, or comes back under a new id."""
        *rest, last = self._devices
        self._lists += 1
        self.set_devices((*rest, last._replace(id=f"changed-{self._lists}")))


def _unary(call: Callable[[bytes, channels.Context], bytes]) -> grpc.RpcMethodHandler[bytes, bytes]:
    return grpc.unary_unary_rpc_method_handler(call)


def _identity(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_ctime_ns
