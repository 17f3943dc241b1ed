"""What a runtime answers, from protobuf messages to values; raw bytes stop here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol, TypeVar, cast

from google.protobuf.message import DecodeError as ProtobufError

from nodealloc._frozen import Frozen
from nodealloc._proto import runtime_v1_pb2 as wire
from nodealloc.cri import _labels as labels
from nodealloc.errors import DecodeError, Fault
from nodealloc.idset import CPUSet, NodeSet
from nodealloc.podfacts import Exited, ExitUnknown, PodIdentity
from nodealloc.runtime import (
    CgroupDriverKind,
    CommandResult,
    ContainerRecord,
    ContainerReport,
    Exit,
    ImageRecord,
    Oddity,
    RunState,
    RuntimeCondition,
    RuntimeHealth,
    SandboxRecord,
    SandboxReport,
)

__all__ = [
    "Confined",
    "decode_cgroup_driver",
    "decode_command",
    "decode_confined",
    "decode_container",
    "decode_containers",
    "decode_health",
    "decode_id",
    "decode_images",
    "decode_sandbox",
    "decode_sandboxes",
    "is_end",
]

_NANO: Final = 1_000_000_000
_STATES: Final = {
    wire.CONTAINER_CREATED: RunState.CREATED,
    wire.CONTAINER_RUNNING: RunState.RUNNING,
    wire.CONTAINER_EXITED: RunState.EXITED,
    wire.CONTAINER_UNKNOWN: RunState.UNKNOWN,
}
_BOXES: Final = {wire.SANDBOX_READY: RunState.RUNNING, wire.SANDBOX_NOTREADY: RunState.EXITED}
_BEGINNINGS: Final = frozenset({wire.CONTAINER_CREATED_EVENT, wire.CONTAINER_STARTED_EVENT})
_NO_BOXES: Final = Frozen[str, SandboxRecord]()
_NO_RUNS: Final = Frozen[str, ContainerRecord]()
_UNKNOWN_CODE: Final = 255
_UNKNOWN_REASON: Final = "Unknown"

M_co = TypeVar("M_co", covariant=True)


class _Kind(Protocol[M_co]):
    def FromString(self, data: bytes, /) -> M_co: ...  # noqa: N802 - protobuf's name


def _read(kind: _Kind[M_co], what: str, data: bytes) -> M_co:
    try:
        return kind.FromString(data)
    except (ProtobufError, UnicodeDecodeError) as error:
        raise DecodeError(what, [Fault("$", f"not a protobuf message of this kind ({error})")]) from error


def _unix_s(nanoseconds: int) -> float | None:
    return nanoseconds / _NANO if nanoseconds > 0 else None


def decode_id(data: bytes, /) -> str:
    """The id of what was made, or of an image that was pulled."""
    return _read(wire.CreateContainerResponse, "id", data).container_id


def is_end(event: bytes, /) -> bool:
    """Whether an event tells of an end, or of something that nobody here knows."""
    try:
        return _read(wire.ContainerEventResponse, "event", event).container_event_type not in _BEGINNINGS
    except DecodeError:
        return True  # a hint to look is enough


def decode_sandboxes(
    data: bytes, known: Mapping[str, SandboxRecord] = _NO_BOXES, /
) -> tuple[list[SandboxRecord], list[Oddity]]:
    """Sandboxes of pods, and what made no sense among them; what is `known` and unchanged is not read."""

    def record(one: wire.PodSandbox) -> SandboxRecord:
        before = known.get(one.id)
        return before if before and before.state is _BOXES.get(one.state) else _sandbox_record(one)

    found = _read(wire.ListPodSandboxResponse, "sandboxes", data).items
    return _all(found, record, lambda one: one.metadata.uid)


def decode_containers(
    data: bytes, known: Mapping[str, ContainerRecord] = _NO_RUNS, /
) -> tuple[list[ContainerRecord], list[Oddity]]:
    """Containers of pods, and what made no sense among them, in the same way; others are not ours."""

    def record(one: wire.Container) -> ContainerRecord:
        before = known.get(one.id)
        return before if before and before.state is _STATES.get(one.state) else _container_record(one)

    found = _read(wire.ListContainersResponse, "containers", data).containers
    mine = [one for one in found if one.id in known or labels.UID in one.labels]
    return _all(mine, record, lambda one: one.labels[labels.UID])


class _Listed(Protocol):
    @property
    def id(self) -> str: ...


L = TypeVar("L", bound=_Listed)
R = TypeVar("R")


def _all(
    found: Iterable[L], read: Callable[[L], R], uid_of: Callable[[L], str]
) -> tuple[list[R], list[Oddity]]:
    records: list[R] = []
    oddities: list[Oddity] = []
    for one in found:
        try:
            records.append(read(one))
        except ValueError as error:
            oddities.append(Oddity.of(uid_of(one), f"{one.id[:80]!r}: {error}"))
    return records, oddities


def decode_sandbox(data: bytes, /) -> SandboxReport:
    """One sandbox, inspected."""
    status = _read(wire.PodSandboxStatusResponse, "sandbox", data).status
    network = status.linux.namespaces.options.network == wire.NODE
    ips: tuple[str, ...] | None = None
    if status.HasField("network") and not network:
        also = (one.ip for one in status.network.additional_ips)
        ips = tuple(one for one in (status.network.ip, *also) if one)
    return SandboxReport(record=_sandbox_record(status), uses_host_network=network, ips=ips)


def decode_container(data: bytes, /) -> ContainerReport | None:
    """One container, inspected; None for one that belongs to no pod."""
    status = _read(wire.ContainerStatusResponse, "container", data).status
    if labels.pod_of(status.labels) is None:
        return None
    record = _container_record(status)
    return ContainerReport(
        record=record,
        exit=_exit(status) if record.state is RunState.EXITED else None,
        reason=status.reason,
        message=status.message,
        started_unix_s=_unix_s(status.started_at),
        finished_unix_s=_unix_s(status.finished_at),
        log_path=status.log_path,
    )


def decode_command(data: bytes, /) -> CommandResult:
    """What a command left."""
    answer = _read(wire.ExecSyncResponse, "command", data)
    return CommandResult(code=answer.exit_code, output=answer.stdout, errors=answer.stderr)


def decode_images(data: bytes, /) -> list[ImageRecord]:
    """Images; one without an id cannot be asked for, and is left out."""
    return [
        ImageRecord(
            id=one.id,
            names=(*one.repo_tags, *one.repo_digests),
            size_bytes=one.size,
            is_pinned=one.pinned,
            user=one.uid.value if one.HasField("uid") else None,
            username=one.username,
        )
        for one in _read(wire.ListImagesResponse, "images", data).images
        if one.id
    ]


def decode_health(status: bytes, version: bytes, /) -> RuntimeHealth:
    """What a runtime says of itself."""
    said = _read(wire.StatusResponse, "status", status)
    who = _read(wire.VersionResponse, "version", version)
    return RuntimeHealth(
        conditions={
            one.type: RuntimeCondition(holds=one.status, reason=one.reason, message=one.message)
            for one in said.status.conditions
        },
        name=who.runtime_name,
        version=who.runtime_version,
        handlers=tuple(one.name for one in said.runtime_handlers),
    )


def decode_cgroup_driver(data: bytes, /) -> CgroupDriverKind | None:
    """Who makes cgroups; None where the runtime does not say."""
    answer = _read(wire.RuntimeConfigResponse, "configuration", data)
    if not answer.HasField("linux"):
        return None
    kinds = {wire.SYSTEMD: CgroupDriverKind.SYSTEMD, wire.CGROUPFS: CgroupDriverKind.CGROUPFS}
    return kinds.get(answer.linux.cgroup_driver)


def _sandbox_record(one: wire.PodSandbox | wire.PodSandboxStatus) -> SandboxRecord:
    meta = one.metadata
    if one.state not in _BOXES:
        raise ValueError(f"a sandbox in state {one.state}, which nobody knows")
    return SandboxRecord(
        id=one.id,
        pod=PodIdentity(uid=meta.uid, namespace=meta.namespace, name=meta.name),
        attempt=meta.attempt,
        is_ready=one.state == wire.SANDBOX_READY,
        created_unix_s=_unix_s(one.created_at),
        handler=one.runtime_handler,
        labels=dict(one.labels),
        annotations=dict(one.annotations),
    )


def _container_record(one: wire.Container | wire.ContainerStatus) -> ContainerRecord:
    pod = labels.pod_of(one.labels)
    if pod is None:
        raise ValueError("a container of no pod")
    if one.state not in _STATES:
        raise ValueError(f"a container in state {one.state}, which nobody knows")
    # The inspection of a container does not say in which sandbox it is.
    sandbox_id = one.pod_sandbox_id if isinstance(one, wire.Container) else "-"
    return ContainerRecord(
        id=one.id,
        pod=pod,
        name=one.labels.get(labels.CONTAINER, "") or one.metadata.name,
        sandbox_id=sandbox_id,
        attempt=one.metadata.attempt,
        state=_STATES[one.state],
        created_unix_s=_unix_s(one.created_at),
        image=one.image.user_specified_image or one.image.image,
        image_id=one.image_id or one.image_ref,
        definition=one.annotations.get(labels.DEFINITION, ""),
        labels=dict(one.labels),
        annotations=dict(one.annotations),
    )


def _exit(status: wire.ContainerStatus) -> Exit:
    code = status.exit_code
    # What a runtime says of a container that ended while it was away itself.
    if status.reason == _UNKNOWN_REASON and code == _UNKNOWN_CODE:
        return ExitUnknown()
    return Exited(code=code) if 0 <= code <= _UNKNOWN_CODE else ExitUnknown()


class Confined:
    """What a container is confined to, as its runtime wrote it down.

    Attributes:
        cpus: None where it was not confined.
        mems: None where it was not confined.
        pid: Of its first process; 0 where none runs.
    """

    def __init__(self, cpus: CPUSet | None, mems: NodeSet | None, pid: int) -> None:
        self.cpus = cpus
        self.mems = mems
        self.pid = pid


def decode_confined(data: bytes, /) -> Confined:
    """From the runtime's own notes, which all versions keep; raises `DecodeError`."""
    answer = _read(wire.ContainerStatusResponse, "container", data)
    try:
        info = json.loads(answer.info.get("info", "{}"))
    except (ValueError, RecursionError) as error:
        raise DecodeError("notes of the runtime", [Fault("$.info", f"no JSON: {error}")]) from error
    cpu = _below(info, "runtimeSpec", "linux", "resources", "cpu")
    linux = answer.status.resources.linux
    cpus = str(cpu.get("cpus") or linux.cpuset_cpus)
    mems = str(cpu.get("mems") or linux.cpuset_mems)
    pid = _below(info).get("pid")
    return Confined(
        CPUSet.parse(cpus) if cpus else None,
        NodeSet.parse(mems) if mems else None,
        pid if type(pid) is int and pid > 0 else 0,
    )


def _below(value: object, *path: str) -> Mapping[str, object]:
    for key in path:
        value = cast("Mapping[str, object]", value).get(key) if isinstance(value, Mapping) else None
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}
