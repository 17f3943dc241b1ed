"""What an API server would not take of a pod that can be read."""

from __future__ import annotations

from typing import Any

import pytest

from nodealloc.podspec import Pod, api_faults

APP = {"name": "app", "image": "registry.example/app:1"}
NAME_FIELD = {"fieldRef": {"fieldPath": "metadata.name"}}


def _pod(metadata: dict[str, Any] | None = None, app: dict[str, Any] | None = None, **spec: Any) -> Pod:
    """A pod of one container, with more fields."""
    whole = {"containers": [{**APP, **(app or {})}], **spec}
    return Pod.from_manifest({"metadata": {"name": "web", **(metadata or {})}, "spec": whole})


def _mount(**fields: Any) -> dict[str, Any]:
    """Fields of a pod that mounts one volume."""
    return {
        "volumes": [{"name": "v", "emptyDir": {}}],
        "app": {"volumeMounts": [{"name": "v", "mountPath": "/v", **fields}]},
    }


def _volume(kind: str, **fields: Any) -> dict[str, Any]:
    return {"volumes": [{"name": "v", kind: fields}]}


def _debugged(**fields: Any) -> dict[str, Any]:
    return {"ephemeralContainers": [{"name": "debug", "image": "i", **fields}]}


def _init(**fields: Any) -> dict[str, Any]:
    return {"initContainers": [{"name": "first", "image": "i", **fields}]}


def _variable(**source: Any) -> dict[str, Any]:
    return {"app": {"env": [{"name": "A", "valueFrom": source}]}}


SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}


def _spread(**fields: Any) -> dict[str, Any]:
    return {"topologySpreadConstraints": [{**SPREAD, **fields}]}


def _windows(**spec: Any) -> dict[str, Any]:
    return {"os": {"name": "windows"}, **spec}


EXEC = {"exec": {"command": ["true"]}}


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"metadata": {"labels": {"a b": "c"}}}, "metadata.labels.a b"),
        (_windows(securityContext={"fsGroup": 1}), "securityContext.fsGroup"),
        (_windows(hostPID=True), "spec.hostPID"),
        (
            _windows(app={"securityContext": {"privileged": False}}),
            "containers[0].securityContext.privileged",
        ),
        (_spread(maxSkew=0), "topologySpreadConstraints[0].maxSkew"),
        (_spread(topologyKey=""), "topologySpreadConstraints[0].topologyKey"),
        (_spread(whenUnsatisfiable="Never"), "topologySpreadConstraints[0].whenUnsatisfiable"),
        (_spread(minDomains=2, whenUnsatisfiable="ScheduleAnyway"), "Constraints[0].minDomains"),
        (_spread(nodeTaintsPolicy="Maybe"), "topologySpreadConstraints[0].nodeTaintsPolicy"),
        ({"topologySpreadConstraints": [SPREAD, SPREAD]}, "spec.topologySpreadConstraints"),
        ({"metadata": {"labels": {"a": "c" * 64}}}, "metadata.labels.a"),
        ({"metadata": {"annotations": {"a b": "c"}}}, "metadata.annotations.a b"),
        ({"app": {"image": ""}}, "containers[0].image"),
        ({"app": {"image": " i"}}, "containers[0].image"),
        ({"app": {"ports": [{"containerPort": one, "name": "a"} for one in (1, 2)]}}, "containers[0].ports"),
        ({"app": {"ports": [{"containerPort": one, "hostPort": 8} for one in (1, 2)]}}, "spec.containers"),
        ({"app": {"ports": [{"containerPort": 1, "hostPort": 8}]}, "hostNetwork": True}, "ports[0].hostPort"),
        (_variable(fieldRef={"fieldPath": "spec.priority"}), "env[0].valueFrom.fieldRef.fieldPath"),
        (_variable(secretKeyRef={"name": "s", "key": "a/b"}), "env[0].valueFrom.secretKeyRef.key"),
        (_variable(configMapKeyRef={"key": "k"}), "env[0].valueFrom.configMapKeyRef.name"),
        (_variable(resourceFieldRef={"resource": "requests.gpu"}), "valueFrom.resourceFieldRef.resource"),
        ({"app": {"resources": {"claims": [{"name": "x"}]}}}, "resources.claims[0].name"),
        ({"app": {"livenessProbe": {"exec": {"command": []}}}}, "livenessProbe.exec.command"),
        (
            {
                "app": {
                    "livenessProbe": {"httpGet": {"port": 1, "httpHeaders": [{"name": "a b", "value": ""}]}}
                }
            },
            "httpHeaders[0].name",
        ),
        ({"app": {"lifecycle": {"preStop": {"sleep": {"seconds": 31}}}}}, "preStop.sleep.seconds"),
        ({"app": {"lifecycle": {"preStop": {"sleep": {"seconds": 0}}}}}, "preStop.sleep.seconds"),
        ({"activeDeadlineSeconds": 2**31}, "spec.activeDeadlineSeconds"),
        (_init(livenessProbe=EXEC), "initContainers[0].livenessProbe"),
        (_init(lifecycle={"preStop": EXEC}), "initContainers[0].lifecycle"),
        (_mount(mountPropagation="Bidirectional"), "containers[0].volumeMounts"),
        (_mount(recursiveReadOnly="Enabled"), "containers[0].volumeMounts"),
        (_volume("emptyDir", sizeLimit="-1"), "emptyDir.sizeLimit"),
        (_volume("emptyDir", sizeLimit="much"), "emptyDir.sizeLimit"),
        (_volume("hostPath", path="/a/../b"), "hostPath.path"),
        (_volume("hostPath", path="/a", type="Pipe"), "hostPath.type"),
        (_volume("hostPath"), "hostPath.path"),
        (_volume("configMap"), "configMap.name"),
        (_volume("secret"), "secret.secretName"),
        (_volume("persistentVolumeClaim"), "persistentVolumeClaim.claimName"),
        (_volume("configMap", name="c", defaultMode=512), "configMap.defaultMode"),
        (_volume("configMap", name="c", items=[{"key": "k", "path": "../a"}]), "configMap.items[0].path"),
        (_volume("downwardAPI", items=[{"path": "/a", **NAME_FIELD}]), "downwardAPI.items[0].path"),
        (_volume("downwardAPI", items=[{"path": "a"}]), "downwardAPI.items[0]"),
        (
            _volume("downwardAPI", items=[{"path": "a", "fieldRef": {"fieldPath": "status.podIP"}}]),
            "items[0].fieldRef.fieldPath",
        ),
        (
            _volume("downwardAPI", items=[{"path": "a", "resourceFieldRef": {"resource": "limits.cpu"}}]),
            "resourceFieldRef.containerName",
        ),
        (
            _volume("projected", sources=[{"serviceAccountToken": {"path": "t", "expirationSeconds": 10}}]),
            "serviceAccountToken.expirationSeconds",
        ),
        (
            _volume(
                "projected",
                sources=[
                    {"serviceAccountToken": {"path": "t"}},
                    {"downwardAPI": {"items": [{"path": "t", **NAME_FIELD}]}},
                ],
            ),
            "projected.sources",
        ),
        ({"dnsConfig": {"nameservers": ["x"]}}, "nameservers[0]"),
        ({"hostAliases": [{"ip": "1.1.1.1", "hostnames": ["A_"]}]}, "hostAliases[0].hostnames"),
        ({"nodeName": "A b"}, "spec.nodeName"),
        ({"nodeSelector": {"a b": "c"}}, "spec.nodeSelector.a b"),
        ({"priorityClassName": "A"}, "spec.priorityClassName"),
        ({"serviceAccountName": "A b"}, "spec.serviceAccountName"),
        ({"securityContext": {"sysctls": [{"name": "A b", "value": "1"}]}}, "sysctls[0].name"),
        (
            {"hostNetwork": True, "securityContext": {"sysctls": [{"name": "net/ipv4/x", "value": "1"}]}},
            "sysctls[0].name",
        ),
        (
            {"hostIPC": True, "securityContext": {"sysctls": [{"name": "kernel.sem", "value": "1"}]}},
            "sysctls[0].name",
        ),
        (
            {"securityContext": {"sysctls": [{"name": one, "value": "1"} for one in ("net.a", "net.a")]}},
            "securityContext.sysctls",
        ),
        ({"securityContext": {"fsGroupChangePolicy": "Never"}}, "fsGroupChangePolicy"),
        ({"securityContext": {"supplementalGroups": [-1]}}, "spec.securityContext"),
        ({"app": {"securityContext": {"runAsUser": 2**31}}}, "containers[0].securityContext"),
        (
            {
                "app": {
                    "securityContext": {
                        "capabilities": {"add": ["CAP_SYS_ADMIN"]},
                        "allowPrivilegeEscalation": False,
                    }
                }
            },
            "allowPrivilegeEscalation",
        ),
        (
            {
                "app": {
                    "securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "../a"}}
                }
            },
            "seccompProfile.localhostProfile",
        ),
        ({"os": {"name": "beos"}}, "spec.os.name"),
        ({"schedulingGates": [{"name": "a"}, {"name": "a"}]}, "spec.schedulingGates"),
        ({"schedulingGates": [{"name": "a"}], "nodeName": "n"}, "spec.nodeName"),
        ({"readinessGates": [{"conditionType": "a b"}]}, "readinessGates[0].conditionType"),
        (
            {"app": {"resizePolicy": [{"resourceName": "gpu", "restartPolicy": "NotRequired"}]}},
            "resizePolicy",
        ),
        ({"app": {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "Always"}]}}, "resizePolicy"),
        (
            {"app": {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}] * 2}},
            "resizePolicy",
        ),
        (
            {
                "restartPolicy": "Never",
                "app": {"resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]},
            },
            "resizePolicy",
        ),
        ({"app": {"securityContext": {"procMount": "x"}}}, "securityContext.procMount"),
        (
            _variable(resourceFieldRef={"resource": "limits.cpu", "divisor": "10m"}),
            "resourceFieldRef.divisor",
        ),
        (
            _variable(resourceFieldRef={"resource": "limits.cpu", "divisor": "1Mi"}),
            "resourceFieldRef.divisor",
        ),
        (_variable(resourceFieldRef={"resource": "limits.memory", "divisor": 3}), "divisor"),
        (_variable(resourceFieldRef={"resource": "limits.memory", "divisor": "1m"}), "divisor"),
        (_variable(fieldRef={"fieldPath": "metadata.name", "apiVersion": "v2"}), "fieldRef.apiVersion"),
        (_variable(fieldRef={"fieldPath": "metadata.labels['a b']"}), "fieldRef.fieldPath"),
        (_variable(configMapKeyRef={"name": "UPPER", "key": "k"}), "configMapKeyRef.name"),
        ({"app": {"envFrom": [{"configMapRef": {}}]}}, "envFrom[0].configMapRef.name"),
        ({"app": {"envFrom": [{"secretRef": {"name": "a b"}}]}}, "envFrom[0].secretRef.name"),
        (
            _volume(
                "downwardAPI",
                items=[{"path": "a", "resourceFieldRef": {"containerName": "app", "resource": "limits.foo"}}],
            ),
            "resourceFieldRef.resource",
        ),
        (_debugged(targetContainerName="nobody"), "ephemeralContainers[0].targetContainerName"),
        (_debugged(livenessProbe=EXEC), "ephemeralContainers[0].livenessProbe"),
        (_debugged(ports=[{"containerPort": 1}]), "ephemeralContainers[0].ports"),
        (_debugged(resources={"limits": {"cpu": 1}}), "ephemeralContainers[0].resources"),
        ({"resourceClaims": [{"name": "a"}]}, "resourceClaims[0]"),
        (
            {"resourceClaims": [{"name": "a", "resourceClaimName": "x", "resourceClaimTemplateName": "y"}]},
            "resourceClaims[0]",
        ),
    ],
)
def test_what_is_refused_is_named_with_its_place(fields: dict[str, Any], where: str) -> None:
    """One fault, which says where it stands."""
    assert api_faults(_pod(**fields))[0].path.endswith(where)


@pytest.mark.parametrize(
    "fields",
    [
        _windows(),
        _spread(minDomains=2),
        {"os": {"name": "linux"}, "hostPID": True},
        {"topologySpreadConstraints": [SPREAD, {**SPREAD, "topologyKey": "rack"}]},
        {},
        {"metadata": {"labels": {"app.example/name": "", "a": "B_c.d"}, "annotations": {"A/b": "any text"}}},
        {"app": {"ports": [{"containerPort": 5, "protocol": one, "hostPort": 5} for one in ("TCP", "UDP")]}},
        {"app": {"ports": [{"containerPort": 80, "name": "http"}]}, "hostNetwork": True},
        _variable(fieldRef={"fieldPath": "metadata.labels['app']"}),
        _variable(fieldRef={"fieldPath": "status.podIPs"}),
        _variable(fieldRef={"fieldPath": "spec.host"}),
        _variable(resourceFieldRef={"resource": "limits.hugepages-2Mi"}),
        _variable(resourceFieldRef={"resource": "limits.cpu", "divisor": "0.001"}),
        _variable(resourceFieldRef={"resource": "limits.memory", "divisor": "1024Ki"}),
        _variable(resourceFieldRef={"resource": "requests.cpu", "divisor": 0}),
        _variable(secretKeyRef={"name": "s", "key": ".dockerconfigjson"}),
        _init(restartPolicy="Always", livenessProbe=EXEC, lifecycle={"preStop": EXEC}),
        _mount(readOnly=True, recursiveReadOnly="IfPossible"),
        {"volumes": [{"name": "v"}]},
        _volume("emptyDir", medium="Memory", sizeLimit="1Gi"),
        _volume("configMap", name="c", items=[{"key": "k", "path": "a/..b", "mode": 0o400}]),
        _volume("downwardAPI", items=[{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]),
        _volume("csi", driver="example.com"),
        {"hostAliases": [{"ip": "::1", "hostnames": ["a.example"]}]},
        {"securityContext": {"sysctls": [{"name": "net.ipv4.ip_local_port_range", "value": "1 2"}]}},
        {"hostIPC": True, "securityContext": {"sysctls": [{"name": "kernel.shm_next_id", "value": "1"}]}},
        {"app": {"resources": {"claims": [{"name": "x"}]}}, "resourceClaims": [
            {"name": "x", "resourceClaimName": "y"}]},
        {"app": {"lifecycle": {"preStop": {"sleep": {"seconds": 30}}}}},
        _debugged(targetContainerName="app"),
    ],
)  # fmt: skip
def test_what_an_api_server_takes_has_no_fault(fields: dict[str, Any]) -> None:
    """The nearest right neighbours of what is refused."""
    assert api_faults(_pod(**fields)) == ()
