"""All of a pod: what is read, named, checked and written again."""

from __future__ import annotations

import copy
from typing import Any

import attrs
import pytest

from nodealloc.errors import DecodeError, Fault
from nodealloc.podspec import (
    Container,
    Pod,
    ProfileType,
    PullPolicy,
    Quantity,
    RestartPolicy,
    Variable,
    container_hash,
    effective_limits,
    effective_requests,
    kubelet_hash,
)

_APP: dict[str, Any] = {
    "name": "app",
    "image": "registry.example:5000/app:1.2",
    "command": ["run"],
    "args": ["--fast"],
    "workingDir": "/srv",
    "env": [
        {"name": "A", "value": "1"},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "CPUS", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
        {"name": "COLOR", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "color", "optional": True}}},
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "token"}}},
    ],
    "envFrom": [{"prefix": "X_", "configMapRef": {"name": "c"}}, {"secretRef": {"name": "s"}}],
    "ports": [{"containerPort": 80, "hostPort": 8080, "hostIP": "127.0.0.1", "name": "http"}],
    "resources": {
        "requests": {"cpu": "500m"},
        "limits": {"cpu": 1, "memory": "1Gi"},
        "claims": [{"name": "gpu", "request": "one"}],
    },
    "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
    "livenessProbe": {"httpGet": {"port": "http", "path": "/live"}, "terminationGracePeriodSeconds": 5},
    "readinessProbe": {"tcpSocket": {"port": 80}, "periodSeconds": 3},
    "startupProbe": {"grpc": {"port": 9000, "service": "app"}, "failureThreshold": 30},
    "lifecycle": {"postStart": {"exec": {"command": ["true"]}}, "preStop": {"sleep": {"seconds": 3}}},
    "securityContext": {
        "runAsUser": 1000,
        "capabilities": {"drop": ["ALL"]},
        "appArmorProfile": {"type": "Localhost", "localhostProfile": "app"},
        "seccompProfile": {"type": "RuntimeDefault"},
    },
    "terminationMessagePolicy": "FallbackToLogsOnError",
    "volumeMounts": [
        {"name": "data", "mountPath": "/data", "subPath": "app", "mountPropagation": "HostToContainer"},
        {"name": "all", "mountPath": "/all", "subPathExpr": "$(A)", "readOnly": True},
    ],
    "volumeDevices": [{"name": "disk", "devicePath": "/dev/x"}],
    "tty": True,
}

WHOLE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web",
        "namespace": "shop",
        "uid": "7f0c",
        "labels": {"app": "web"},
        "annotations": {"a": "b"},
        "ownerReferences": [{"kind": "ReplicaSet", "name": "web", "uid": "1", "apiVersion": "apps/v1"}],
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 0,
    },
    "spec": {
        "initContainers": [
            {"name": "fetch", "image": "fetch"},
            {"name": "proxy", "image": "proxy@sha256:00", "restartPolicy": "Always"},
        ],
        "containers": [_APP],
        "ephemeralContainers": [{"name": "look", "image": "busybox", "targetContainerName": "app"}],
        "volumes": [
            {"name": "data", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
            {"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}},
            {
                "name": "all",
                "projected": {
                    "sources": [
                        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
                        {
                            "downwardAPI": {
                                "items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]
                            }
                        },
                    ]
                },
            },
            {"name": "own", "example.com/own": {"anything": [1, {"goes": None}]}},
        ],
        "restartPolicy": "OnFailure",
        "terminationGracePeriodSeconds": 0,
        "activeDeadlineSeconds": 60,
        "securityContext": {"fsGroup": 7, "sysctls": [{"name": "net.core.somaxconn", "value": "1024"}]},
        "imagePullSecrets": [{"name": "registry"}],
        "nodeName": "n1",
        "nodeSelector": {"disk": "ssd"},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
                    ]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 7,
                        "preference": {"matchFields": [{"key": "metadata.name", "operator": "Exists"}]},
                    }
                ],
            },
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]},
        },
        "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9}],
        "priority": 10,
        "priorityClassName": "high",
        "preemptionPolicy": "Never",
        "overhead": {"cpu": "250m", "memory": "120Mi"},
        "runtimeClassName": "kata",
        "hostPID": True,
        "hostIPC": True,
        "hostUsers": False,
        "dnsPolicy": "None",
        "dnsConfig": {"nameservers": ["192.0.2.1"], "options": [{"name": "ndots", "value": "5"}]},
        "hostAliases": [{"ip": "192.0.2.9", "hostnames": ["db"]}],
        "hostname": "web",
        "subdomain": "shop",
        "setHostnameAsFQDN": True,
        "enableServiceLinks": False,
        "serviceAccountName": "web",
        "automountServiceAccountToken": False,
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu-1"}],
        "readinessGates": [{"conditionType": "example.com/ready"}],
        "schedulingGates": [{"name": "example.com/wait"}],
        "os": {"name": "linux"},
        "schedulerName": "mine",
    },
    "status": {"phase": "Running"},
}


def test_all_of_a_pod_is_read() -> None:
    """Placement, security, probes, hooks, environment and what others care for are there as values."""
    pod = Pod.from_manifest(WHOLE)
    app = pod.containers[0]
    assert pod.restart_policy is RestartPolicy.ON_FAILURE
    assert (pod.deletion_grace_period_seconds, pod.termination_grace_period_seconds) == (0, 0)
    assert (pod.node_selector, pod.priority, pod.host_pid, pod.os and pod.os.name) == (
        {"disk": "ssd"},
        10,
        True,
        "linux",
    )
    assert pod.affinity is not None
    assert pod.affinity.node_affinity is not None
    assert pod.affinity.node_affinity.required is not None
    assert pod.affinity.node_affinity.required.node_selector_terms[0].match_expressions[0].values == (
        "a",
        "b",
    )
    assert (app.command, app.entrypoint, app.args, app.env) == (
        ("run", "--fast"),
        ("run",),
        ("--fast",),
        {"A": "1"},
    )
    assert [one.value_from is not None for one in app.variables] == [False, True, True, True, True]
    assert app.liveness_probe is not None
    assert (app.liveness_probe.period_seconds, app.liveness_probe.failure_threshold) == (10, 3)
    assert app.security_context is not None
    assert app.security_context.app_armor_profile is not None
    assert app.security_context.app_armor_profile.type is ProfileType.LOCALHOST
    assert [(one.sub_path, one.sub_path_expr) for one in app.volumes] == [("app", ""), ("", "$(A)"), ("", "")]
    assert [one.image_pull_policy for one in (*pod.all_containers, *pod.ephemeral_containers)] == [
        PullPolicy.ALWAYS,
        PullPolicy.IF_NOT_PRESENT,
        PullPolicy.IF_NOT_PRESENT,
        PullPolicy.ALWAYS,
    ]
    assert pod.carried["spec.schedulerName"] == "mine"
    assert pod.status == {"phase": "Running"}


def test_a_pod_written_and_read_again_is_equal() -> None:
    """Nothing is lost on the way out, and what has its default is left out."""
    pod = Pod.from_manifest(WHOLE)
    manifest = pod.to_manifest()
    assert Pod.from_manifest(manifest) == pod
    spec = manifest["spec"]
    assert isinstance(spec, dict)
    assert set(spec) == set(WHOLE["spec"])
    assert set(spec["containers"][0]) >= set(_APP)
    bare = Pod.from_manifest(
        {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}]}}
    ).to_manifest()
    assert bare["spec"] == {"containers": [{"name": "c"}]}


def test_a_manifest_is_written_with_the_lists_and_weights_that_it_came_with() -> None:
    """What is carried and what volumes say has plain lists; a weight has no default of the API."""
    sources = [{"downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}}]
    near = {"weight": 1, "preference": {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}}
    spec: dict[str, Any] = {
        "containers": [{"name": "c"}],
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [near]}},
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}
        ],
        "volumes": [{"name": "v", "projected": {"sources": sources}}],
    }
    assert Pod.from_manifest({"metadata": {"name": "a"}, "spec": spec}).to_manifest()["spec"] == spec


@pytest.mark.parametrize("weight", [None, 0, 101])
def test_a_preferred_node_has_a_weight(weight: int | None) -> None:
    """From 1 to 100, and it has to be said."""
    near: dict[str, Any] = {"preference": {}} | ({} if weight is None else {"weight": weight})
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [near]}}
    manifest = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}], "affinity": affinity}}
    with pytest.raises(DecodeError, match="weight"):
        Pod.from_manifest(manifest)


def test_every_field_is_named_that_nobody_declares() -> None:
    """Each mapping of a whole manifest refuses a field of its own, with its path."""
    for path in _mappings(WHOLE, ()):
        manifest = copy.deepcopy(WHOLE)
        _at(manifest, path)["qqq"] = 1
        with pytest.raises(DecodeError) as caught:
            Pod.from_manifest(manifest)
        where = "$" + "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in path)
        assert [one.path for one in caught.value.faults if one.path.startswith(where)], where


_FREE = {
    "labels", "annotations", "nodeSelector", "ownerReferences", "podAntiAffinity", "status", "items",
    "example.com/own",
}  # fmt: skip
"""What takes any key, or is carried as it came."""


def _mappings(value: Any, path: tuple[str | int, ...]) -> list[tuple[str | int, ...]]:
    if path and path[-1] in _FREE:
        return []
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [one for key, item in inner for one in _mappings(item, (*path, key))]
    return [path, *found] if isinstance(value, dict) else found


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for one in path:
        value = value[one]
    return value


def with_container(**fields: object) -> dict[str, Any]:
    """A pod of one container with these fields."""
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", **fields}]}}


def with_spec(**fields: object) -> dict[str, Any]:
    """A pod of one container, and these fields of the pod."""
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}], **fields}}


def faults(manifest: object) -> dict[str, str]:
    """What is wrong, by path."""
    with pytest.raises(DecodeError) as caught:
        Pod.from_manifest(manifest)
    return {one.path: one.reason for one in caught.value.faults}


def test_a_field_that_is_misspelled_is_named_with_the_right_one() -> None:
    """`resource` for `resources` would make a pod best-effort in silence."""
    found = faults(with_container(resource={"limits": {"cpu": 1}}))
    assert found == {"$.spec.containers[0].resource": "unknown field 'resource'; did you mean resources?"}
    assert (
        "did you mean limits?"
        in faults(with_container(resources={"limit": {"cpu": 1}}))["$.spec.containers[0].resources.limit"]
    )


@pytest.mark.parametrize(
    ("manifest", "path"),
    [
        (with_spec(resources={"requests": {"cpu": 1}}), "$.spec.resources"),
        (with_spec(securityContext={"windowsOptions": {}}), "$.spec.securityContext.windowsOptions"),
        (with_container(restartPolicyRules=[]), "$.spec.containers[0].restartPolicyRules"),
    ],
)
def test_a_known_field_that_is_not_supported_is_named_as_such(manifest: dict[str, Any], path: str) -> None:
    """It is told apart from one that nobody knows."""
    assert faults(manifest)[path].startswith("is not supported: ")


def test_fields_of_a_newer_api_may_be_told_instead_of_refused() -> None:
    """With `unread` the pod is read without them, and each is told once."""
    told: list[Fault] = []
    pod = Pod.from_manifest(with_container(brandNew=1), unread=told.append)
    assert pod.containers[0].name == "c"
    assert [one.path for one in told] == ["$.spec.containers[0].brandNew"]


@pytest.mark.parametrize(
    ("manifest", "path"),
    [
        (with_container(livenessProbe={}), "livenessProbe"),
        (with_container(livenessProbe={"tcpSocket": {"port": 70000}}), "livenessProbe.tcpSocket.port"),
        (with_container(livenessProbe={"exec": {}, "grpc": {"port": 1}}), "livenessProbe"),
        (with_container(livenessProbe={"exec": {}, "periodSeconds": -1}), "livenessProbe.periodSeconds"),
        (with_container(livenessProbe={"exec": {}, "successThreshold": 2}), "livenessProbe.successThreshold"),
        (
            with_container(readinessProbe={"exec": {}, "terminationGracePeriodSeconds": 2}),
            "readinessProbe.terminationGracePeriodSeconds",
        ),
        (with_container(lifecycle={"preStop": {}}), "lifecycle.preStop"),
        (
            with_container(env=[{"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]),
            "env[0]",
        ),
        (with_container(env=[{"name": "A", "valueFrom": {}}]), "env[0].valueFrom"),
        (with_container(env=[{"name": "A=B"}]), "env[0].name"),
        (with_container(envFrom=[{}]), "envFrom[0]"),
        (with_container(ports=[{"containerPort": 0}]), "ports[0].containerPort"),
        (with_container(ports=[{"containerPort": 1, "hostIP": "x"}]), "ports[0].hostIP"),
        (with_container(ports=[{"containerPort": 1, "protocol": "tcp"}]), "ports[0].protocol"),
        (with_container(imagePullPolicy="always"), "imagePullPolicy"),
        (with_container(securityContext={"runAsUser": -1}), "securityContext.runAsUser"),
        (
            with_container(securityContext={"appArmorProfile": {"type": "Localhost"}}),
            "securityContext.appArmorProfile.localhostProfile",
        ),
        (
            with_container(securityContext={"privileged": True, "allowPrivilegeEscalation": False}),
            "securityContext.allowPrivilegeEscalation",
        ),
    ],
)
def test_a_value_of_a_container_is_checked_as_the_api_checks_it(manifest: dict[str, Any], path: str) -> None:
    """What an API server would refuse is refused here, where it stands."""
    assert f"$.spec.containers[0].{path}" in faults(manifest)


@pytest.mark.parametrize(
    ("manifest", "path"),
    [
        (with_spec(restartPolicy="Sometimes"), "restartPolicy"),
        (with_spec(terminationGracePeriodSeconds=-1), "terminationGracePeriodSeconds"),
        (with_spec(activeDeadlineSeconds=0), "activeDeadlineSeconds"),
        (with_spec(priority="high"), "priority"),
        (with_spec(hostNetwork="yes"), "hostNetwork"),
        (with_spec(dnsPolicy="None"), "dnsConfig.nameservers"),
        (with_spec(hostPID=True, shareProcessNamespace=True), "shareProcessNamespace"),
        (with_spec(tolerations=[{"operator": "Equal"}]), "tolerations[0].operator"),
        (with_spec(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]), "tolerations[0].value"),
        (with_spec(tolerations=[{"key": "a", "tolerationSeconds": 3}]), "tolerations[0].effect"),
        (with_spec(securityContext={"sysctls": [{"value": "1"}]}), "securityContext.sysctls[0].name"),
        (with_spec(hostAliases=[{"hostnames": ["a"]}]), "hostAliases[0].ip"),
        (with_spec(os={}), "os"),
        (with_spec(overhead={"cpu": "-1"}), "overhead.cpu"),
        (
            with_spec(volumes=[{"name": "v", "emptyDir": {"sizelimit": "1Gi"}}]),
            "volumes[0].emptyDir.sizelimit",
        ),
        (
            with_spec(volumes=[{"name": "v", "projected": {"sources": [{"secret": {}, "configMap": {}}]}}]),
            "volumes[0].projected.sources[0]",
        ),
    ],
)
def test_a_value_of_a_pod_is_checked_as_the_api_checks_it(manifest: dict[str, Any], path: str) -> None:
    """What an API server would refuse is refused here, where it stands."""
    assert f"$.spec.{path}" in faults(manifest)


@pytest.mark.parametrize(
    ("operator", "values", "right"),
    [
        ("In", ["a"], True), ("In", [], False), ("NotIn", [], False), ("Exists", [], True),
        ("Exists", ["a"], False), ("DoesNotExist", ["a"], False), ("Gt", ["-5"], True), ("Gt", ["x"], True),
        ("Gt", [], False), ("Lt", ["1", "2"], False), ("Near", ["a"], False),
    ],
)  # fmt: skip
def test_an_operator_takes_its_values(operator: str, values: list[str], right: bool) -> None:
    """As many as it compares with; that no number is one is a fault of a file alone."""
    term = {"matchExpressions": [{"key": "k", "operator": operator, "values": values}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    manifest = with_spec(affinity={"nodeAffinity": required})
    if right:
        assert Pod.from_manifest(manifest).affinity
    else:
        assert faults(manifest)


def test_a_port_of_a_pod_on_the_host_network_is_a_host_port() -> None:
    """The API says the same number twice; here one is enough."""
    manifest = with_container(ports=[{"containerPort": 80}])
    manifest["spec"]["hostNetwork"] = True
    assert Pod.from_manifest(manifest).containers[0].ports[0].host_port == 80


def test_overhead_is_part_of_what_a_pod_requests() -> None:
    """It counts once for the pod, and for its limits only where there are some."""
    manifest = with_container(resources={"requests": {"cpu": 1}, "limits": {"memory": "1Gi"}})
    manifest["spec"]["overhead"] = {"cpu": "250m", "memory": "1Gi"}
    pod = Pod.from_manifest(manifest)
    assert effective_requests(pod) == {"cpu": Quantity.parse("1250m"), "memory": Quantity.parse("2Gi")}
    assert effective_limits(pod) == {"memory": Quantity.parse("2Gi")}


@pytest.mark.parametrize(
    ("name", "image", "expected"),
    [("test_container", "foo/image:v1", "8e45cbd0")],
)
def test_the_kubelets_hash_of_a_container_is_the_kubelets(name: str, image: str, expected: str) -> None:
    """Name and image, printed as Go prints bytes; v1.31 and later write the same into the annotation."""
    container = Container(name=name, image=image, args=("any",))
    assert kubelet_hash(container) == expected
    assert kubelet_hash(attrs.evolve(container, image="other")) != expected


def test_our_hash_of_a_container_covers_what_needs_a_new_one() -> None:
    """Another command is another container; other resources and probes are not."""
    container = Pod.from_manifest(WHOLE).containers[0]
    same = attrs.evolve(container, limits={}, readiness_probe=None, lifecycle=None, volumes=())
    assert container_hash(same) == container_hash(container)
    for change in (
        {"args": ("--slow",)}, {"image": "other"}, {"variables": (Variable(name="A"),)}, {"working_dir": "/"},
        {"security_context": None}, {"tty": False},
    ):  # fmt: skip
        assert container_hash(attrs.evolve(container, **change)) != container_hash(container)
