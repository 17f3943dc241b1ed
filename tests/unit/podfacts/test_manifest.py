"""A pod's status as the API's JSON, and back."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nodealloc.errors import DecodeError, Fault
from nodealloc.podfacts import (
    ConditionStatus,
    ContainerRunning,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    Exited,
    ExitUnknown,
    PodCondition,
    PodPhase,
    PodStatus,
    ResourceHealth,
    ResourceHealthState,
    ResourceStatus,
    status_from_manifest,
    status_to_manifest,
)
from nodealloc.podspec import Pod, QosClass
from nodealloc.testing.conformance import read_rows
from nodealloc.testing.conformance._recorded_status import recorded_status

DOCUMENT = {
    "phase": "Running",
    "conditions": [
        {
            "type": "Ready",
            "status": "True",
            "lastTransitionTime": "2026-01-02T03:04:05Z",
            "observedGeneration": 3,
        }
    ],
    "hostIP": "192.0.2.1",
    "hostIPs": [{"ip": "192.0.2.1"}],
    "podIP": "10.0.0.7",
    "podIPs": [{"ip": "10.0.0.7"}, {"ip": "fd00::7"}],
    "startTime": "2026-01-02T03:04:00Z",
    "containerStatuses": [
        {
            "name": "app",
            "state": {"running": {"startedAt": "2026-01-02T03:04:05Z"}},
            "lastState": {
                "terminated": {
                    "exitCode": 137,
                    "signal": 9,
                    "reason": "OOMKilled",
                    "message": "last words",
                    "startedAt": "2026-01-02T03:04:01Z",
                    "finishedAt": "2026-01-02T03:04:03Z",
                    "containerID": "containerd://a",
                }
            },
            "ready": True,
            "restartCount": 1,
            "image": "web:1",
            "imageID": "sha256:1",
            "containerID": "containerd://b",
            "started": True,
            "allocatedResourcesStatus": [
                {
                    "name": "vendor.example/gpu",
                    "resources": [{"resourceID": "gpu-1", "health": "Unhealthy"}],
                }
            ],
            "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True}],
        }
    ],
    "qosClass": "Burstable",
    "nominatedNodeName": "n2",
}


def test_a_status_of_the_api_comes_back_as_it_was() -> None:
    """All that it says is in the values, what concerns others as it came."""
    status = status_from_manifest(DOCUMENT)
    assert status_to_manifest(status) == DOCUMENT
    assert list(status_to_manifest(status)) == list(DOCUMENT)
    assert (status.qos, status.pod_ips, status.carried) == (
        QosClass.BURSTABLE,
        ("10.0.0.7", "fd00::7"),
        {"nominatedNodeName": "n2"},
    )
    (app,) = status.containers
    last = app.last_state
    assert isinstance(last, ContainerTerminated)
    assert last.exit == Exited(code=137, signal=9)
    assert app.allocated == (
        ResourceStatus(
            name="vendor.example/gpu",
            resources=(ResourceHealth(id="gpu-1", health=ResourceHealthState.UNHEALTHY),),
        ),
    )


def test_a_pod_carries_its_status_through_its_manifest() -> None:
    """`Pod.status` is what is read here."""
    manifest = {
        "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "app", "image": "web:1"}]},
        "status": DOCUMENT,
    }
    pod = Pod.from_manifest(manifest)
    assert status_from_manifest(pod.status) == status_from_manifest(DOCUMENT)
    assert status_from_manifest(Pod.from_manifest({**manifest, "status": {}}).status) == PodStatus()


def test_recorded_statuses_come_back(vectors: Path) -> None:
    """Every status of every recorded pod, through JSON as text."""
    count = 0
    for row in read_rows(vectors / "pod_phase_status.jsonl.gz"):
        for part in (row.get("api_status"), row.get("previous_status"), row["want"]):
            if row["kind"] == "status" and isinstance(part, dict):
                status = recorded_status(part)
                text = json.dumps(status_to_manifest(status))
                assert status_from_manifest(json.loads(text)) == status
                count += 1
    assert count > 1000


def test_an_unknown_exit_is_told_by_its_reason() -> None:
    """137 alone is an exit; a reason of the runtime's own stands in the text."""
    ended = ContainerTerminated(exit=ExitUnknown(), reason="Unknown", message="was away")
    status = PodStatus(containers=(ContainerStatus(name="app", state=ended),))
    written = status_to_manifest(status)
    assert written["containerStatuses"] == [
        {
            "name": "app",
            "state": {
                "terminated": {
                    "exitCode": 137,
                    "reason": "ContainerStatusUnknown",
                    "message": "Unknown: was away",
                }
            },
            "lastState": {},
            "ready": False,
            "restartCount": 0,
            "image": "",
            "imageID": "",
        }
    ]
    state = status_from_manifest(written).containers[0].state
    assert isinstance(state, ContainerTerminated)
    assert state.exit == ExitUnknown()


def test_each_state_has_its_shape() -> None:
    """Waiting, running, and nothing told yet."""
    states = (ContainerWaiting(reason="r", message="m"), ContainerWaiting(), ContainerRunning(), None)
    status = PodStatus(
        init_containers=tuple(ContainerStatus(name=f"c{at}", state=state) for at, state in enumerate(states)),
        ephemeral_containers=(ContainerStatus(name="debug", started=False),),
    )
    assert status_from_manifest(status_to_manifest(status)) == status


def test_moments_keep_what_they_have() -> None:
    """Fractions of a second, other zones, moments of YAML, and one without a zone, which is UTC."""
    exact = PodStatus(started_unix_s=1_700_000_000.25)
    assert status_to_manifest(exact)["startTime"] == "2023-11-14T22:13:20.250000Z"
    assert status_from_manifest(status_to_manifest(exact)) == exact
    zoned = status_from_manifest({"startTime": "2023-11-14T23:13:20+01:00"})
    bare = status_from_manifest({"startTime": "2023-11-14T22:13:20"})
    yaml = status_from_manifest({"startTime": datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)})
    with pytest.raises(DecodeError, match="expected a text"):
        status_from_manifest({"startTime": 1_700_000_000})
    assert zoned == bare == yaml == PodStatus(started_unix_s=1_700_000_000.0)


def test_every_fault_is_named_with_its_path() -> None:
    """One message for all of them."""
    with pytest.raises(DecodeError) as caught:
        status_from_manifest(
            {
                "phase": "Runing",
                "conditions": [{"type": "Ready"}],
                "podIP": "x",
                "hostIPs": [{}],
                "startTime": "yesterday",
                "hostIP": "",
                "foo": 1,
                "resize": [[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]],
                "containerStatuses": [
                    {"name": "a", "restartCount": -1, "state": {"running": {}, "waiting": {}}},
                    {"name": "a", "lastState": {"terminated": {"exitCode": 999}}},
                    {"ready": True},
                ],
            }
        )
    paths = [one.path for one in caught.value.faults]
    assert paths[:6] == [
        "$.phase",
        "$.conditions[0].status",
        "$.podIP",
        "$.hostIPs[0]",
        "$.startTime",
        "$.foo",
    ]
    assert paths[6].startswith("$.resize[0]")
    assert paths[7:] == [
        "$.containerStatuses[0].restartCount",
        "$.containerStatuses[0].state",
        "$.containerStatuses[1].lastState.terminated",
        "$.containerStatuses[2].name",
        "$",
    ]


def test_a_newer_api_can_be_read() -> None:
    """Whoever wants to is told of what is not read, instead of a refusal."""
    unread: list[Fault] = []
    assert (
        status_from_manifest({"phase": "Pending", "new": 1}, unread=unread.append).phase is PodPhase.PENDING
    )
    assert [one.path for one in unread] == ["$.new"]


def test_what_is_too_large_is_refused_unread() -> None:
    """At the size that is allowed."""
    with pytest.raises(DecodeError, match="larger than 100 bytes"):
        status_from_manifest({"message": "m" * 1000}, max_bytes=100)


def test_a_condition_carries_what_others_wrote() -> None:
    """And the mapping that it came in cannot be changed."""
    (one,) = status_from_manifest(DOCUMENT).conditions
    assert one == PodCondition(
        type="Ready",
        status=ConditionStatus.TRUE,
        last_transition_unix_s=one.last_transition_unix_s,
        carried={"observedGeneration": 3},
    )
    with pytest.raises(TypeError):
        one.carried["more"] = 1  # type: ignore[index]
