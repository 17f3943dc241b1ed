"""What an API server refuses of the volumes that a container mounts, or has as devices."""

from __future__ import annotations

from typing import Any

import pytest

from nodealloc.podspec import Pod, api_faults

DISK = {"name": "disk", "persistentVolumeClaim": {"claimName": "c"}}
SPARE = {"name": "spare", "persistentVolumeClaim": {"claimName": "d"}}
EMPTY = {"name": "v", "emptyDir": {}}


def _faults(*volumes: dict[str, Any], **app: Any) -> list[str]:
    """Where the only container of a pod has faults."""
    whole = {"containers": [{"name": "app", "image": "i", **app}], "volumes": list(volumes)}
    pod = Pod.from_manifest({"metadata": {"name": "web"}, "spec": whole})
    return [one.path.removeprefix("$.spec.containers[0].") for one in api_faults(pod)]


def _device(name: str = "disk", path: str = "/dev/d") -> dict[str, str]:
    return {"name": name, "devicePath": path}


@pytest.mark.parametrize(
    ("mount", "where"),
    [
        ({}, []),
        ({"mountPath": "/a:b"}, []),
        ({"mountPath": "a/b"}, []),
        ({"recursiveReadOnly": "Disabled"}, []),
        ({"recursiveReadOnly": "Never"}, ["volumeMounts[0].recursiveReadOnly"]),
        ({"recursiveReadOnly": "Enabled", "readOnly": True}, []),
        ({"recursiveReadOnly": "Enabled"}, ["volumeMounts"]),
        (
            {"recursiveReadOnly": "IfPossible", "readOnly": True, "mountPropagation": "HostToContainer"},
            ["volumeMounts"],
        ),
    ],
)
def test_a_mount_is_held_to_the_words_there_are(mount: dict[str, Any], where: list[str]) -> None:
    """`recursiveReadOnly` is one of three; a ':' in a path is for the runtime to judge."""
    assert _faults(EMPTY, volumeMounts=[{"name": "v", "mountPath": "/v", **mount}]) == where


@pytest.mark.parametrize(("second", "where"), [("/w", []), ("/v/w", []), ("/v", ["volumeMounts"])])
def test_nothing_is_mounted_over_another(second: str, where: list[str]) -> None:
    """At one path stands one volume; one volume may stand at two."""
    mounts = [{"name": "v", "mountPath": path} for path in ("/v", second)]
    assert _faults(EMPTY, volumeMounts=mounts) == where


@pytest.mark.parametrize(
    ("devices", "where"),
    [
        ([_device()], []),
        ([_device(path="dev")], []),
        ([_device(), _device("spare", "/dev/e")], []),
        ([_device("v")], ["volumeDevices[0].name"]),
        ([_device(path="/a/../b")], ["volumeDevices[0].devicePath"]),
        ([_device(path="/a/..b")], []),
        ([_device(), _device("spare")], ["volumeDevices[0].devicePath", "volumeDevices[1].devicePath"]),
        ([_device(), _device(path="/dev/e")], ["volumeDevices[0].name", "volumeDevices[1].name"]),
    ],
)
def test_a_device_is_a_claim_of_its_own_at_a_path_of_its_own(
    devices: list[dict[str, str]], where: list[str]
) -> None:
    """A directory is no device, and neither name nor path stands there twice."""
    assert _faults(DISK, SPARE, EMPTY, volumeDevices=devices) == where


@pytest.mark.parametrize(
    ("mount", "where"),
    [
        ({"name": "v", "mountPath": "/v"}, []),
        ({"name": "v", "mountPath": "/dev/d"}, ["volumeDevices[0].devicePath"]),
        ({"name": "disk", "mountPath": "/v"}, ["volumeDevices[0].name"]),
    ],
)
def test_a_device_is_not_mounted_beside(mount: dict[str, str], where: list[str]) -> None:
    """Neither the volume, nor anything at its path."""
    assert _faults(DISK, EMPTY, volumeMounts=[mount], volumeDevices=[_device()]) == where


def test_a_claim_that_is_made_for_the_pod_can_be_a_device() -> None:
    """As one that is there."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    made = {"name": "disk", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}
    assert _faults(made, volumeDevices=[_device()]) == []


@pytest.mark.parametrize(
    ("part", "is_right"), [({}, True), ({"subPath": "a"}, False), ({"subPathExpr": "a"}, False)]
)
def test_a_container_for_debugging_mounts_whole_volumes(part: dict[str, str], *, is_right: bool) -> None:
    """No part of one."""
    debug = {"name": "debug", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v", **part}]}
    app = {"name": "app", "image": "i"}
    spec = {"containers": [app], "ephemeralContainers": [debug], "volumes": [EMPTY]}
    found = api_faults(Pod.from_manifest({"metadata": {"name": "web"}, "spec": spec}))
    assert [one.path for one in found] == ([] if is_right else ["$.spec.ephemeralContainers[0].volumeMounts"])
