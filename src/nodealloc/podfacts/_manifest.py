"""A pod's status as the JSON of the Kubernetes API, and back; dicts stop here."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from nodealloc._frozen import thawed
from nodealloc._reading import MAX_DOCUMENT_BYTES, Reader
from nodealloc._typed import typed, typed_on_error
from nodealloc.podfacts._containers import (
    ContainerRunning,
    ContainerState,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    Exited,
)
from nodealloc.podfacts._status import PodCondition, PodStatus
from nodealloc.podfacts._unknown import UNKNOWN_CODE, UNKNOWN_REASON

if TYPE_CHECKING:
    from nodealloc._reading import Json
    from nodealloc.errors import Fault

__all__ = ["status_from_manifest", "status_to_manifest"]


@typed
def status_from_manifest(
    document: object,
    /,
    *,
    source: str = "",
    max_bytes: int = MAX_DOCUMENT_BYTES,
    unread: Callable[[Fault], None] | None = None,
) -> PodStatus:
    """Read what stands below `status` of a pod, as JSON or YAML gives it: `Pod.status`, for example.

    Every field of v1.32 is read, or carried along as it came. An exit code of 137
    with the reason `ContainerStatusUnknown` is `ExitUnknown`.

    Args:
        document: A mapping; an empty one is a status that tells nothing.
        source: What to call it in an error.
        max_bytes: A document that takes more is refused unread.
        unread: Told of each field that is unknown, which is then left out. None
            refuses the document.

    Raises:
        DecodeError: Lists every wrong field with its path.
    """
    reader = Reader(source or "pod status", unread=unread)
    if not reader.fits(document, max_bytes):
        reader.check()
    # Imported late: whoever reads no status needs no cattrs.
    from nodealloc.podfacts._documents import read_status  # noqa: PLC0415

    found = read_status(document, reader)
    reader.check()
    return found or PodStatus()


@typed_on_error
def status_to_manifest(status: PodStatus, /) -> dict[str, Json]:
    """The status as the API's JSON has it; read again it is an equal one.

    What is empty is left out; containers always say `ready`, `restartCount`,
    `image`, `imageID` and `lastState`, as a kubelet does. An unknown exit
    becomes 137 with the reason `ContainerStatusUnknown`.
    """
    return _said(
        {
            "phase": status.phase.value if status.phase else None,
            "conditions": [_condition(one) for one in status.conditions],
            "message": status.message,
            "reason": status.reason,
            "hostIP": status.host_ips[0] if status.host_ips else None,
            "hostIPs": _ips(status.host_ips),
            "podIP": status.pod_ips[0] if status.pod_ips else None,
            "podIPs": _ips(status.pod_ips),
            "startTime": _moment(status.started_unix_s),
            "initContainerStatuses": [_container(one) for one in status.init_containers],
            "containerStatuses": [_container(one) for one in status.containers],
            "qosClass": status.qos.value if status.qos else None,
            "ephemeralContainerStatuses": [_container(one) for one in status.ephemeral_containers],
        },
        status.carried,
    )


def _condition(one: PodCondition) -> dict[str, Json]:
    made: dict[str, Json] = {
        "type": one.type,
        "status": one.status.value,
        "lastTransitionTime": _moment(one.last_transition_unix_s),
        "reason": one.reason,
        "message": one.message,
    }
    return _said(made, one.carried)


def _container(one: ContainerStatus) -> dict[str, Json]:
    return {
        "name": one.name,
        "state": _state(one.state),
        "lastState": _state(one.last_state),
        "ready": one.ready,
        "restartCount": one.restart_count,
        "image": one.image,
        "imageID": one.image_id or "",
        **_said({"containerID": one.container_id}, {}),
        **({} if one.started is None else {"started": one.started}),
        **_said(
            {
                "allocatedResourcesStatus": [
                    {
                        "name": resource.name,
                        "resources": [
                            {"resourceID": each.id, "health": each.health.value}
                            for each in resource.resources
                        ],
                    }
                    for resource in one.allocated
                ]
            },
            one.carried,
        ),
    }


def _state(state: ContainerState | None) -> dict[str, Json]:
    match state:
        case ContainerWaiting():
            return {"waiting": _said({"reason": state.reason, "message": state.message}, {})}
        case ContainerRunning():
            return {"running": _said({"startedAt": _moment(state.started_unix_s)}, {})}
        case ContainerTerminated():
            return {"terminated": _terminated(state)}
        case None:
            return {}


def _terminated(state: ContainerTerminated) -> dict[str, Json]:
    code, signal, reason, message = UNKNOWN_CODE, None, state.reason, state.message
    if isinstance(state.exit, Exited):
        code, signal = state.exit.code, state.exit.signal
    elif reason != UNKNOWN_REASON:
        # The reason is what tells a reader that the code is none; the one that it had stands in the text.
        message = ": ".join(filter(None, (reason, message)))
        reason = UNKNOWN_REASON
    return {
        "exitCode": code,
        **_said(
            {
                "signal": signal,
                "reason": reason,
                "message": message,
                "startedAt": _moment(state.started_unix_s),
                "finishedAt": _moment(state.finished_unix_s),
                "containerID": state.container_id,
            },
            {},
        ),
    }


def _said(fields: dict[str, Json], carried: Mapping[str, Json]) -> dict[str, Json]:
    """Fields that say something, and what came with them."""
    return {
        **{key: one for key, one in fields.items() if one},
        **{key: thawed(one) for key, one in carried.items()},
    }


def _ips(addresses: Sequence[str]) -> list[Json]:
    return [{"ip": one} for one in addresses]


@functools.lru_cache(maxsize=4096)
def _moment(unix_s: float | None) -> str | None:
    """RFC 3339 in UTC; whole seconds without a fraction. Kept, since most of a status stays as it was."""
    if unix_s is None:
        return None
    at = datetime.fromtimestamp(unix_s, UTC)
    text = at.isoformat(timespec="microseconds" if at.microsecond else "seconds")
    return text.replace("+00:00", "Z")
