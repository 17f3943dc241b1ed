"""The parts of a pod's status as they stand in the API's JSON, and what is made of them."""

from __future__ import annotations

import functools
import ipaddress
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, NewType, cast

from nodealloc import _attrs as attrs
from nodealloc._declared import FAULTY, At, Documents
from nodealloc._reading import Json, Reader, as_shown, under
from nodealloc._wire import wire
from nodealloc.podfacts._containers import (
    ContainerRunning,
    ContainerState,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    Exited,
    ExitUnknown,
    ResourceHealth,
    ResourceHealthState,
    ResourceStatus,
)
from nodealloc.podfacts._status import ConditionStatus, PodCondition, PodPhase, PodStatus
from nodealloc.podfacts._unknown import UNKNOWN_CODE, UNKNOWN_REASON
from nodealloc.podspec import QosClass

__all__ = ["read_status"]

Moment = NewType("Moment", float)
Address = NewType("Address", str)

_RAW: Final = wire(raw=True)
_NEEDED: Final = wire(required=True)
_LEVELS: Final = 16
"""Depth of what is taken as it comes; the API's own has four."""


def _count(number: int) -> str:
    return "" if number >= 0 else f"{number} restarts; give 0 or more"


@attrs.frozen(kw_only=True)
class Ip:
    """An entry of `podIPs` and `hostIPs`."""

    ip: Address = attrs.field(default=Address(""), metadata=_NEEDED)


@attrs.frozen(kw_only=True)
class Condition:
    """An entry of `conditions`."""

    type: str = attrs.field(default="", metadata=_NEEDED)
    status: ConditionStatus | None = attrs.field(default=None, metadata=_NEEDED)
    reason: str = ""
    message: str = ""
    last_transition_time: Moment | None = None
    last_probe_time: Json = attrs.field(default=None, metadata=_RAW)
    observed_generation: Json = attrs.field(default=None, metadata=_RAW)


@attrs.frozen(kw_only=True)
class Waiting:
    """Below `waiting`."""

    reason: str = ""
    message: str = ""


@attrs.frozen(kw_only=True)
class Running:
    """Below `running`."""

    started_at: Moment | None = None


@attrs.frozen(kw_only=True)
class Terminated:
    """Below `terminated`."""

    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: Moment | None = None
    finished_at: Moment | None = None
    container_id: str = attrs.field(default="", metadata=wire("containerID"))


@attrs.frozen(kw_only=True)
class State:
    """`state` and `lastState`: one of the three at most."""

    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


@attrs.frozen(kw_only=True)
class Health:
    """A device below `allocatedResourcesStatus`."""

    resource_id: str = attrs.field(default="", metadata=wire("resourceID", required=True))
    health: ResourceHealthState = ResourceHealthState.UNKNOWN


@attrs.frozen(kw_only=True)
class Allocated:
    """An entry of `allocatedResourcesStatus`."""

    name: str = attrs.field(default="", metadata=_NEEDED)
    resources: tuple[Health, ...] = ()


@attrs.frozen(kw_only=True)
class Container:
    """An entry of `containerStatuses` and its like."""

    name: str = attrs.field(default="", metadata=_NEEDED)
    state: State | None = None
    last_state: State | None = None
    ready: bool = False
    restart_count: int = attrs.field(default=0, metadata=wire(check=_count))
    image: str = ""
    image_id: str = attrs.field(default="", metadata=wire("imageID"))
    container_id: str = attrs.field(default="", metadata=wire("containerID"))
    started: bool | None = None
    allocated_resources_status: tuple[Allocated, ...] = ()
    allocated_resources: Json = attrs.field(default=None, metadata=_RAW)
    resources: Json = attrs.field(default=None, metadata=_RAW)
    volume_mounts: Json = attrs.field(default=None, metadata=_RAW)
    user: Json = attrs.field(default=None, metadata=_RAW)
    stop_signal: Json = attrs.field(default=None, metadata=_RAW)


@attrs.frozen(kw_only=True)
class Status:
    """The whole document."""

    phase: PodPhase | None = None
    conditions: tuple[Condition, ...] = ()
    message: str = ""
    reason: str = ""
    host_ip: Address = attrs.field(default=Address(""), metadata=wire("hostIP"))
    host_ips: tuple[Ip, ...] = attrs.field(default=(), metadata=wire("hostIPs"))
    pod_ip: Address = attrs.field(default=Address(""), metadata=wire("podIP"))
    pod_ips: tuple[Ip, ...] = attrs.field(default=(), metadata=wire("podIPs"))
    start_time: Moment | None = None
    init_container_statuses: tuple[Container, ...] = ()
    container_statuses: tuple[Container, ...] = ()
    ephemeral_container_statuses: tuple[Container, ...] = ()
    qos_class: QosClass | None = None
    nominated_node_name: Json = attrs.field(default=None, metadata=_RAW)
    resize: Json = attrs.field(default=None, metadata=_RAW)
    resource_claim_statuses: Json = attrs.field(default=None, metadata=_RAW)
    observed_generation: Json = attrs.field(default=None, metadata=_RAW)


def read_status(document: object, reader: Reader) -> PodStatus | None:
    """The status of a document; None, or what could be read of it, after a fault."""
    found = documents().read(Status, document, "$", reader)
    return cast("PodStatus | None", found)


@functools.cache
def documents() -> Documents:
    """The reader of statuses, made when the first one is read."""
    return Documents(
        unsupported={},
        checks={},
        builders={
            Condition: _condition,
            State: _state,
            Terminated: _terminated,
            Container: _container,
            Status: _status,
        },
        hooks={Moment: _moment, Address: _address},
        raw=_raw,
    )


def _raw(at: At, _: object) -> object:
    value, path, reader = at
    return _copied(value, path, reader, 0)


def _copied(value: object, path: str, reader: Reader, level: int) -> Json:
    if level > _LEVELS:
        reader.fault(path, f"nested more than {_LEVELS} levels deep")
        return None
    if isinstance(value, Mapping):
        found = cast("Mapping[object, object]", value)
        return {
            str(key): _copied(one, under(path, str(key)), reader, level + 1) for key, one in found.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        items = cast("Sequence[object]", value)
        return [_copied(one, f"{path}[{n}]", reader, level + 1) for n, one in enumerate(items)]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _moment(at: At, _: object) -> object:
    value, path, reader = at
    if isinstance(value, datetime):
        found = value
    else:
        text = reader.text(value, path)
        if not text:
            return FAULTY
        try:
            found = datetime.fromisoformat(text)
        except ValueError:
            reader.fault(path, f"expected a moment like 2026-01-02T03:04:05Z, found {as_shown(text)}")
            return FAULTY
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    seconds = found.timestamp()
    return seconds if math.isfinite(seconds) else FAULTY


def _address(at: At, _: object) -> object:
    value, path, reader = at
    text = reader.text(value, path)
    if not text:
        return text
    try:
        ipaddress.ip_address(text)
    except ValueError:
        reader.fault(path, f"{as_shown(text)} is no IP address")
        return FAULTY
    return text


def _condition(made: dict[str, object], _path: str, _reader: Reader) -> PodCondition | object:
    # A fault was told where one of the two is absent.
    if not made.get("type") or made.get("status") is None:
        return FAULTY
    carried = _carried(made, last_probe_time="lastProbeTime", observed_generation="observedGeneration")
    return PodCondition(
        type=str(made["type"]),
        status=cast("ConditionStatus", made["status"]),
        reason=_text(made, "reason"),
        message=_text(made, "message"),
        last_transition_unix_s=_number(made, "last_transition_time"),
        carried=carried,
    )


def _state(made: dict[str, object], path: str, reader: Reader) -> ContainerState | None:
    if len(made) > 1:
        reader.fault(path, f"{' and '.join(made)} exclude one another")
    if (waiting := cast("Waiting | None", made.get("waiting"))) is not None:
        return ContainerWaiting(reason=waiting.reason, message=waiting.message)
    if (running := cast("Running | None", made.get("running"))) is not None:
        return ContainerRunning(started_unix_s=running.started_at)
    return cast("ContainerTerminated | None", made.get("terminated"))


def _terminated(made: dict[str, object], path: str, reader: Reader) -> ContainerTerminated:
    code, signal = cast("int", made.get("exit_code", 0)), cast("int", made.get("signal", 0))
    ended: Exited | ExitUnknown = ExitUnknown()
    if (code, made.get("reason")) != (UNKNOWN_CODE, UNKNOWN_REASON):
        try:
            ended = Exited(code=code, signal=signal or None)
        except ValueError as error:
            reader.fault(path, str(error))
    return ContainerTerminated(
        exit=ended,
        reason=_text(made, "reason"),
        message=_text(made, "message"),
        started_unix_s=_number(made, "started_at"),
        finished_unix_s=_number(made, "finished_at"),
        container_id=_text(made, "container_id") or None,
    )


def _container(made: dict[str, object], _path: str, _reader: Reader) -> ContainerStatus | object:
    if not made.get("name"):
        return FAULTY
    carried = _carried(
        made,
        allocated_resources="allocatedResources",
        resources="resources",
        volume_mounts="volumeMounts",
        user="user",
        stop_signal="stopSignal",
    )
    allocated = cast("tuple[Allocated, ...]", made.get("allocated_resources_status", ()))
    return ContainerStatus(
        name=str(made["name"]),
        state=cast("ContainerState | None", made.get("state")),
        last_state=cast("ContainerState | None", made.get("last_state")),
        ready=bool(made.get("ready")),
        started=cast("bool | None", made.get("started")),
        restart_count=max(0, cast("int", made.get("restart_count", 0))),
        image=_text(made, "image"),
        image_id=_text(made, "image_id") or None,
        container_id=_text(made, "container_id") or None,
        allocated=tuple(
            ResourceStatus(
                name=one.name,
                resources=tuple(
                    ResourceHealth(id=each.resource_id, health=each.health) for each in one.resources
                ),
            )
            for one in allocated
            if one.name and all(each.resource_id for each in one.resources)
        ),
        carried=carried,
    )


def _status(made: dict[str, object], path: str, reader: Reader) -> PodStatus | object:
    carried = _carried(
        made,
        nominated_node_name="nominatedNodeName",
        resize="resize",
        resource_claim_statuses="resourceClaimStatuses",
        observed_generation="observedGeneration",
    )
    try:
        return PodStatus(
            phase=cast("PodPhase | None", made.get("phase")),
            reason=_text(made, "reason"),
            message=_text(made, "message"),
            conditions=cast("tuple[PodCondition, ...]", made.get("conditions", ())),
            init_containers=_statuses(made, "init_container_statuses"),
            containers=_statuses(made, "container_statuses"),
            ephemeral_containers=_statuses(made, "ephemeral_container_statuses"),
            qos=cast("QosClass | None", made.get("qos_class")),
            pod_ips=_ips(made, "pod_ip", "pod_ips"),
            host_ips=_ips(made, "host_ip", "host_ips"),
            started_unix_s=_number(made, "start_time"),
            carried=carried,
        )
    except ValueError as error:
        reader.fault(path, str(error))
        return FAULTY


def _statuses(made: dict[str, object], key: str) -> tuple[ContainerStatus, ...]:
    return cast("tuple[ContainerStatus, ...]", made.get(key, ()))


def _ips(made: dict[str, object], one: str, many: str) -> tuple[str, ...]:
    """The list, with the single one in front where it is not there."""
    first = _text(made, one)
    rest: Iterable[str] = (str(each.ip) for each in cast("tuple[Ip, ...]", made.get(many, ())) if each.ip)
    return tuple(dict.fromkeys(filter(None, (first, *rest))))


def _carried(made: dict[str, object], **keys: str) -> Mapping[str, Json]:
    return {key: cast("Json", made[name]) for name, key in keys.items() if made.get(name) is not None}


def _text(made: dict[str, object], key: str) -> str:
    return cast("str", made.get(key, ""))


def _number(made: dict[str, object], key: str) -> float | None:
    return cast("float | None", made.get(key))
