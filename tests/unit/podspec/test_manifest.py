"""Pod manifests: what is read, and what one message says about what is wrong."""

from __future__ import annotations

from typing import Any, cast

import pytest

from nodealloc.errors import DecodeError
from nodealloc.podspec import Pod, QosClass, Quantity, qos_class

GOOD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "uid": "7f0c", "labels": {"app": "web"}},
    "spec": {
        "initContainers": [
            {"name": "fetch", "command": ["sh", "-c"], "args": ["true"]},
            {"name": "proxy", "restartPolicy": "Always", "resources": {"limits": {"cpu": 1}}},
        ],
        "containers": [
            {
                "name": "app",
                "env": [
                    {"name": "A", "value": "1"},
                    {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                ],
                "resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}},
                "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True}],
            }
        ],
        "volumes": [{"name": "data", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "bare"}],
    },
}


def test_a_manifest_becomes_a_pod() -> None:
    """Commands are joined, requests follow limits, sidecars are told from init containers."""
    pod = Pod.from_manifest(GOOD)
    fetch, proxy, app = pod.all_containers
    assert (pod.uid, pod.full_name, pod.labels) == ("7f0c", "default/web", {"app": "web"})
    assert (fetch.command, fetch.restartable, proxy.restartable) == (("sh", "-c", "true"), False, True)
    assert proxy.requests == {"cpu": Quantity.of(1)}
    assert app.requests == {"cpu": Quantity.of(1), "memory": Quantity.parse("1Gi")}
    assert app.env == {"A": "1"}
    assert app.volumes[0].read_only
    assert [(volume.name, volume.kind) for volume in pod.volumes] == [
        ("data", "emptyDir"),
        ("bare", "emptyDir"),
    ]
    assert qos_class(pod) is QosClass.BURSTABLE


def test_a_pod_without_uid_gets_the_same_one_each_time() -> None:
    """The made-up uid depends on namespace and name alone."""
    bare = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}]}}
    other = {**bare, "metadata": {"name": "a", "namespace": "b"}}
    assert Pod.from_manifest(bare).uid == Pod.from_manifest(bare).uid != Pod.from_manifest(other).uid


def faults(manifest: object) -> dict[str, str]:
    """What is wrong with a manifest, by path."""
    with pytest.raises(DecodeError) as caught:
        Pod.from_manifest(manifest, source="test.yaml")
    assert str(caught.value).startswith("test.yaml: ")
    return {fault.path: fault.reason for fault in caught.value.faults}


@pytest.mark.parametrize(
    "junk", [None, [], "text", 7, {1: 2}, {"kind": "Deployment", "metadata": {"name": "a"}}]
)
def test_what_is_no_pod_is_refused(junk: object) -> None:
    """A list, a text, nothing, or another kind is named for what it is."""
    assert all(reason for reason in faults(junk).values())


@pytest.mark.parametrize(
    ("section", "fields", "path"),
    [
        ("", {"status": 5}, "$.status"),
        ("", {"status": []}, "$.status"),
        ("", {"status": {"phase": [float("nan")]}}, "$.status.phase[0]"),
        ("metadata", {"ownerReferences": [{"uid": float("nan")}]}, "$.metadata.ownerReferences[0].uid"),
        ("spec", {"schedulerName": float("-inf")}, "$.spec.schedulerName"),
        ("spec", {"volumes": [{"name": "v", "own": {"a": float("inf")}}]}, "$.spec.volumes[0].own.a"),
    ],
)
def test_what_is_carried_along_can_be_written_again(
    section: str, fields: dict[str, object], path: str
) -> None:
    """A status is a mapping, and JSON has all numbers: whoever writes the pod down would fail."""
    manifest: dict[str, object] = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}]}}
    part = cast("dict[str, object]", manifest[section]) if section else manifest
    part.update(fields)
    assert list(faults(manifest)) == [path]


@pytest.mark.parametrize(
    ("field", "least"),
    [
        ("initialDelaySeconds", 0),
        ("timeoutSeconds", 1),
        ("periodSeconds", 1),
        ("successThreshold", 1),
        ("failureThreshold", 1),
        ("terminationGracePeriodSeconds", 1),
    ],
)
@pytest.mark.parametrize("value", [2**31, 2**62])
def test_no_number_of_a_probe_is_beyond_what_can_be_waited_for(field: str, least: int, value: int) -> None:
    """The API has 32 bits for them."""
    probe = {"tcpSocket": {"port": 1}, field: value}
    kind = "readinessProbe" if field == "successThreshold" else "livenessProbe"
    found = faults(
        {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i", kind: probe}]}}
    )
    assert found == {f"$.spec.containers[0].{kind}.{field}": f"{value} is outside {least} to 2147483647"}


def with_resources(**resources: object) -> dict[str, object]:
    """A pod of one container with these resources."""
    container = {"name": "c", "resources": resources}
    return {"metadata": {"name": "p"}, "spec": {"containers": [container]}}


@pytest.mark.parametrize(
    ("resources", "path", "words"),
    [
        ({"requests": {"cpu": "-1"}}, "requests.cpu", "negative"),
        ({"requests": {"memory": "9e30"}}, "requests.memory", "more than any machine"),
        ({"requests": {"memory": "5Gb"}}, "requests.memory", "not a quantity"),
        ({"requests": {"memory": "5K"}}, "requests.memory", "unknown suffix"),
        ({"requests": {"cpu": "3"}, "limits": {"cpu": "2"}}, "requests.cpu", "above the limit"),
        ({"requests": {"gpu": "3"}}, "requests.gpu", "unknown resource"),
        (
            {"requests": {"requests.example.com/gpu": "3"}},
            "requests.requests.example.com/gpu",
            "unknown resource",
        ),
        ({"requests": {"a..b/gpu": "3"}}, "requests.a..b/gpu", "unknown resource"),
        ({"requests": {"cpu": True}}, "requests.cpu", "bool"),
        ({"limits": {"example.com/gpu": "1.5"}}, "limits.example.com/gpu", "whole"),
        ({"requests": {"example.com/gpu": "1"}}, "requests.example.com/gpu", "overcommitted"),
        ({"limits": {"cpu": 1, "hugepages-2Mi": "3Mi"}}, "limits.hugepages-2Mi", "page size"),
        ({"limits": {"hugepages-x": "3Mi"}}, "limits.hugepages-x", "page size"),
        ({"limits": {"hugepages-2Mi": "4Mi"}}, "", "beside them"),
        ({"limits": "many"}, "limits", "mapping"),
    ],
)
def test_a_wrong_amount_is_named_with_its_path(resources: dict[str, object], path: str, words: str) -> None:
    """Each fault of a resource says where it is and what would be right."""
    found = faults(with_resources(**resources))
    where = "$.spec.containers[0].resources" + (f".{path}" if path else "")
    assert words in found[where]


@pytest.mark.parametrize(
    "resources",
    [
        {"requests": {"kubernetes.io/batch": "1"}},
        {"requests": {"kubernetes.io/batch": "1"}, "limits": {"kubernetes.io/batch": "2"}},
        {"limits": {"kubernetes.io/batch": "500m"}},
    ],
)
def test_a_resource_of_kubernetes_itself_may_be_shared(resources: dict[str, object]) -> None:
    """Only those of others are given out in whole ones."""
    (container,) = Pod.from_manifest(with_resources(**resources)).containers
    assert [*container.requests] == ["kubernetes.io/batch"]


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"serviceAccount": "old"}, "old"),
        ({"serviceAccount": "old", "serviceAccountName": "new"}, "new"),
        ({"serviceAccount": "", "serviceAccountName": "new"}, "new"),
        ({"serviceAccount": 5}, ""),
    ],
)
def test_an_account_may_stand_under_its_deprecated_name(fields: dict[str, object], name: str) -> None:
    """The newer one counts where both are there; both are written again."""
    manifest = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}], **fields}}
    pod = Pod.from_manifest(manifest)
    assert pod.service_account_name == name
    assert Pod.from_manifest(pod.to_manifest()) == pod


def test_all_faults_come_in_one_message() -> None:
    """Wrong shapes, wrong names and clashes are found in one reading."""
    manifest = {
        "metadata": {"name": "Web"},
        "spec": {
            "initContainers": "none",
            "containers": [
                {"name": "a", "command": "sh", "restartPolicy": "Always", "env": [{}]},
                {"name": "a", "volumeMounts": [{"name": "v", "subPath": "../x"}]},
                7,
            ],
            "volumes": [{"name": "d"}, {"name": "d", "emptyDir": {}, "hostPath": {}}],
        },
    }
    assert set(faults(manifest)) >= {
        "$.metadata.name",
        "$.spec.initContainers",
        "$.spec.containers[0].command",
        "$.spec.containers[0].restartPolicy",
        "$.spec.containers[1].name",
        "$.spec.containers[1].volumeMounts",
        "$.spec.containers[1].volumeMounts[0].subPath",
        "$.spec.containers[2]",
        "$.spec.volumes[1].name",
        "$.spec.volumes[1]",
    }


def test_later_changes_to_the_manifest_do_not_reach_the_pod() -> None:
    """A pod keeps a copy of what stood below a volume."""
    spec: dict[str, Any] = {"sizeLimit": "1Gi"}
    manifest = {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c"}], "volumes": [{"name": "v", "emptyDir": spec}]},
    }
    pod = Pod.from_manifest(manifest)
    spec["sizeLimit"] = "2Gi"
    assert pod.volumes[0].spec == {"sizeLimit": "1Gi"}


def nested(levels: int) -> dict[str, Any]:
    """A mapping in a mapping, and so on."""
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"again": value}
    return value


def doubled(times: int) -> list[Any]:
    """A list of itself twice, and so on: few bytes of YAML, and a million values."""
    value: list[Any] = [1]
    for _ in range(times):
        value = [value, value]
    return value


@pytest.mark.parametrize("value", [nested(40), {"sizes": doubled(20)}], ids=["nested", "doubled"])
def test_an_endless_volume_is_refused(value: dict[str, Any]) -> None:
    """The fault says where and how much is too much; it is told once."""
    manifest = {**GOOD, "spec": {**GOOD["spec"], "volumes": [{"name": "data", "example.com/own": value}]}}
    with pytest.raises(DecodeError, match="32 levels deep or in itself, or more than 10000 values") as caught:
        Pod.from_manifest(manifest, max_bytes=1 << 24)
    (fault,) = caught.value.faults
    assert fault.path.startswith("$.spec.volumes[0].example.com/own.")


@pytest.mark.parametrize("seconds", [False, 0.0, ""])
def test_what_is_no_number_is_not_taken_for_0(seconds: object) -> None:
    """`false` says something, and it is wrong."""
    probe = {"exec": {"command": ["x"]}, "periodSeconds": seconds}
    with pytest.raises(DecodeError, match=r"livenessProbe\.periodSeconds"):
        Pod.from_manifest(
            {
                "metadata": {"name": "p", "uid": "u"},
                "spec": {"containers": [{"name": "c", "livenessProbe": probe}]},
            }
        )


def test_what_is_empty_is_not_said() -> None:
    """As Go reads it: an empty word, and 0 in a probe, have the default; a grace of 0 is one."""
    probe = {
        "httpGet": {"port": 1, "path": "", "scheme": ""},
        **dict.fromkeys(("periodSeconds", "timeoutSeconds", "successThreshold", "failureThreshold"), 0),
    }
    app = {
        "name": "app",
        "image": "i:1",
        "imagePullPolicy": "",
        "terminationMessagePath": "",
        "terminationMessagePolicy": "",
        "ports": [{"containerPort": 80, "protocol": ""}],
        "livenessProbe": probe,
    }
    spec = {"restartPolicy": "", "dnsPolicy": "", "terminationGracePeriodSeconds": 0, "containers": [app]}
    found = Pod.from_manifest({"metadata": {"name": "web"}, "spec": spec})
    plain = {
        "name": "app",
        "image": "i:1",
        "ports": [{"containerPort": 80}],
        "livenessProbe": {"httpGet": {"port": 1}},
    }
    bare = {"terminationGracePeriodSeconds": 0, "containers": [plain]}
    assert found == Pod.from_manifest({"metadata": {"name": "web"}, "spec": bare})
    assert found.termination_grace_period_seconds == 0
