"""Each rule that a file is held to by every dialect: what is refused beside its nearest right neighbour."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nodealloc.errors import DecodeError
from nodealloc.podsources import _documents

APP: dict[str, Any] = {"name": "app", "image": "i:1"}
EXEC = {"exec": {"command": ["true"]}}
TERMS = "requiredDuringSchedulingIgnoredDuringExecution"
LOCAL = {"type": "Localhost", "localhostProfile": "a"}
PLAIN = {"name": "v", "emptyDir": {}}


def _faults(spec: dict[str, Any], *, is_lenient: bool) -> list[str]:
    """Where the faults of a file are that has these fields; those of `app` are its container's."""
    app = {**APP, **spec.get("app", {})}
    rest = {key: value for key, value in spec.items() if key not in {"app", "metadata"}}
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", **spec.get("metadata", {})},
        "spec": {"containers": [app], **rest},
    }
    told = {"where": "a.json", "source": "file", "node_name": "n", "is_lenient": is_lenient}
    try:
        _documents.pod_in(json.dumps(manifest).encode(), **told)  # type: ignore[arg-type]
    except DecodeError as error:
        return [one.path.removeprefix("$.").removeprefix("spec.") for one in error.faults]
    return []


def _app(**fields: Any) -> dict[str, Any]:
    return {"app": fields}


def _mount(*, privileged: bool = False, **fields: Any) -> dict[str, Any]:
    mount = {"name": "v", "mountPath": "/v", **fields}
    return {"volumes": [PLAIN], **_app(volumeMounts=[mount], securityContext={"privileged": privileged})}


def _port(**fields: Any) -> dict[str, Any]:
    return _app(ports=[{"containerPort": 1, **fields}])


def _variable(**fields: Any) -> dict[str, Any]:
    return _app(env=[{"name": "A", **fields}])


def _probed(name: str = "livenessProbe", **fields: Any) -> dict[str, Any]:
    return _app(**{name: {**EXEC, **fields}})


def _asked(**fields: Any) -> dict[str, Any]:
    return _app(livenessProbe=fields)


def _hook(**fields: Any) -> dict[str, Any]:
    return _app(lifecycle={"preStop": fields})


def _first(**fields: Any) -> dict[str, Any]:
    return {"initContainers": [{"name": "first", "image": "i", **fields}]}


def _own(**fields: Any) -> dict[str, Any]:
    return _app(securityContext=fields)


def _of_pod(**fields: Any) -> dict[str, Any]:
    return {"securityContext": fields}


def _tolerated(**fields: Any) -> dict[str, Any]:
    return {"tolerations": [fields]}


def _wanted(terms: list[Any]) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": {TERMS: {"nodeSelectorTerms": terms}}}}


def _amounts(**fields: Any) -> dict[str, Any]:
    return _app(resources=fields)


def _volume(kind: str, **fields: Any) -> dict[str, Any]:
    return {"volumes": [{"name": "v", kind: fields}]}


def _told(**fields: Any) -> dict[str, Any]:
    """A file that says something of its pod."""
    return _volume("downwardAPI", items=[{"path": "a", **NAME, **fields}])


def _part(kind: str, **fields: Any) -> dict[str, Any]:
    """One source of a volume of several."""
    return {**_volume("projected", sources=[{kind: fields}]), "serviceAccountName": "a"}


NAME = {"fieldRef": {"fieldPath": "metadata.name"}}
LABEL = {"fieldPath": "metadata.labels['a']"}
DOWN, PART = "volumes[0].downwardAPI", "volumes[0].projected.sources[0]"
C, M, P, E = "containers[0]", "containers[0].volumeMounts", "containers[0].ports[0]", "containers[0].env[0]"
L, S, FIRST = "containers[0].livenessProbe", "containers[0].securityContext", "initContainers[0]"
CONTAINERS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (_mount(mountPath="v"), _mount(mountPath=""), f"{M}[0].mountPath"),
    (_mount(subPath="..a"), _mount(subPath="a/../b"), f"{M}[0].subPath"),
    (_mount(subPath="a/b"), _mount(subPath="/a"), f"{M}[0].subPath"),
    (_mount(subPathExpr="$(A)"), _mount(subPathExpr="../$(A)"), f"{M}[0].subPathExpr"),
    (_mount(subPath="a"), _mount(subPath="a", subPathExpr="b"), M),
    (_mount(), _mount(name="w"), M),
    (_mount(), _mount(name=""), M),
    (_mount(mountPropagation="HostToContainer"), _mount(mountPropagation="Both"), f"{M}[0].mountPropagation"),
    (_mount(mountPropagation="Bidirectional", privileged=True), _mount(mountPropagation="Bidirectional"), M),
    (_port(containerPort=65535), _port(containerPort=65536), f"{P}.containerPort"),
    (_port(hostPort=65535), _port(hostPort=-1), f"{P}.hostPort"),
    (_port(protocol="SCTP"), _port(protocol="tcp"), f"{P}.protocol"),
    (_port(name="abcdefghijklmno"), _port(name="abcdefghijklmnop"), f"{P}.name"),
    (_port(name="1a"), _port(name="12"), f"{P}.name"),
    (_port(name="a-b"), _port(name="a--b"), f"{P}.name"),
    (_port(name="a"), _port(name="a-"), f"{P}.name"),
    (_variable(valueFrom=NAME), _variable(valueFrom=NAME, value="1"), E),
    (_variable(valueFrom=NAME), _variable(valueFrom={}), f"{E}.valueFrom"),
    (
        _variable(valueFrom={"configMapKeyRef": {"name": "a", "key": "k"}}),
        _variable(valueFrom={**NAME, "configMapKeyRef": {"name": "a", "key": "k"}}),
        f"{E}.valueFrom",
    ),
    (
        _variable(valueFrom={"secretKeyRef": {"name": "a", "key": ".k"}}),
        _variable(valueFrom={"secretKeyRef": {"name": "a", "key": ".."}}),
        f"{E}.valueFrom.secretKeyRef.key",
    ),
    (_variable(name="a.b-c_D"), _variable(name="a=b"), f"{E}.name"),
    (_app(envFrom=[{"secretRef": {"name": "a"}}]), _app(envFrom=[{}]), "containers[0].envFrom[0]"),
    (_asked(grpc={"port": 1}), _asked(), L),
    (_asked(**EXEC), _asked(**EXEC, grpc={"port": 1}), L),
    (_asked(exec={"command": [""]}), _asked(exec={"command": []}), f"{L}.exec.command"),
    (_asked(grpc={"port": 65535}), _asked(grpc={"port": 65536}), f"{L}.grpc.port"),
    (_asked(tcpSocket={"port": "http"}), _asked(tcpSocket={"port": "HTTP"}), f"{L}.tcpSocket.port"),
    (_asked(httpGet={"port": 1}), _asked(httpGet={"port": 65536}), f"{L}.httpGet.port"),
    (_asked(httpGet={"port": 1, "path": "a"}), _asked(httpGet={"path": "a"}), f"{L}.httpGet.port"),
    (
        _asked(httpGet={"port": 1, "scheme": "HTTPS"}),
        _asked(httpGet={"port": 1, "scheme": "FTP"}),
        f"{L}.httpGet.scheme",
    ),
    *[
        (_asked(**EXEC, **{name: 1}), _asked(**EXEC, **{name: -1}), f"{L}.{name}")
        for name in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "failureThreshold")
    ],
    (_probed(successThreshold=1), _probed(successThreshold=2), f"{L}.successThreshold"),
    (
        _probed("readinessProbe", successThreshold=2),
        _probed("startupProbe", successThreshold=2),
        "containers[0].startupProbe.successThreshold",
    ),
    (
        _probed(terminationGracePeriodSeconds=1),
        _probed(terminationGracePeriodSeconds=0),
        f"{L}.terminationGracePeriodSeconds",
    ),
    (
        _probed("startupProbe", terminationGracePeriodSeconds=1),
        _probed("readinessProbe", terminationGracePeriodSeconds=1),
        "containers[0].readinessProbe.terminationGracePeriodSeconds",
    ),
    (_hook(**EXEC), _hook(), "containers[0].lifecycle.preStop"),
    (_hook(sleep={"seconds": 1}), _hook(**EXEC, sleep={"seconds": 1}), "containers[0].lifecycle.preStop"),
    (_first(restartPolicy="Always", lifecycle={}), _first(lifecycle={}), f"{FIRST}.lifecycle"),
    *[
        (_first(restartPolicy="Always", **{name: EXEC}), _first(**{name: EXEC}), f"{FIRST}.{name}")
        for name in ("livenessProbe", "readinessProbe", "startupProbe")
    ],
    (_first(restartPolicy="Always"), _first(restartPolicy="Never"), f"{FIRST}.restartPolicy"),
    (_first(), _first(name="app"), f"{FIRST}.name"),
    (_app(), _app(restartPolicy="Always"), f"{C}.restartPolicy"),
    (_app(image="i"), _app(image="i "), f"{C}.image"),
    (_app(image="i"), _app(image=" "), f"{C}.image"),
    (_app(imagePullPolicy="Never"), _app(imagePullPolicy="Often"), f"{C}.imagePullPolicy"),
    (
        _app(terminationMessagePolicy="File"),
        _app(terminationMessagePolicy="Log"),
        f"{C}.terminationMessagePolicy",
    ),
    (_own(runAsUser=0), _own(runAsUser=-1), f"{S}.runAsUser"),
    (_own(runAsGroup=2**31 - 1), _own(runAsGroup=2**31), S),
    (
        _own(privileged=True, allowPrivilegeEscalation=True),
        _own(privileged=True, allowPrivilegeEscalation=False),
        f"{S}.allowPrivilegeEscalation",
    ),
    (
        _own(seccompProfile=LOCAL),
        _own(seccompProfile={"type": "Localhost"}),
        f"{S}.seccompProfile.localhostProfile",
    ),
    (
        _own(seccompProfile={"type": "Unconfined"}),
        _own(seccompProfile={"type": "Unconfined", "localhostProfile": "a"}),
        f"{S}.seccompProfile.localhostProfile",
    ),
    (
        _own(seccompProfile={"type": "RuntimeDefault"}),
        _own(seccompProfile={"type": "X"}),
        f"{S}.seccompProfile.type",
    ),
    (
        _amounts(requests={"cpu": 1}, limits={"cpu": 1}),
        _amounts(requests={"cpu": 2}, limits={"cpu": 1}),
        f"{C}.resources.requests.cpu",
    ),
    (_amounts(limits={"a.b/c": 1}), _amounts(requests={"a.b/c": 1}), f"{C}.resources.requests.a.b/c"),
    (_amounts(limits={"a.b/c": 1}), _amounts(limits={"a.b/c": "1500m"}), f"{C}.resources.limits.a.b/c"),
    (
        _amounts(limits={"kubernetes.io/c": 1}),
        _amounts(limits={"storage": 1}),
        f"{C}.resources.limits.storage",
    ),
    (_amounts(limits={"cpu": 0}), _amounts(limits={"cpu": -1}), f"{C}.resources.limits.cpu"),
    (
        _amounts(limits={"hugepages-2Mi": "2Mi", "cpu": 1}),
        _amounts(limits={"hugepages-2Mi": "2Mi"}),
        f"{C}.resources",
    ),
]
PODS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (_of_pod(fsGroup=0), _of_pod(fsGroup=-1), "securityContext.fsGroup"),
    (_of_pod(supplementalGroups=[2**31 - 1]), _of_pod(supplementalGroups=[2**31]), "securityContext"),
    ({"dnsPolicy": "Default"}, {"dnsPolicy": "Mine"}, "dnsPolicy"),
    (
        {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["192.0.2.1"]}},
        {"dnsPolicy": "None", "dnsConfig": {"searches": ["a"]}},
        "dnsConfig.nameservers",
    ),
    (
        {"dnsConfig": {"nameservers": ["192.0.2.1"] * 3}},
        {"dnsConfig": {"nameservers": ["192.0.2.1"] * 4}},
        "dnsConfig.nameservers",
    ),
    ({"dnsConfig": {"searches": ["a"] * 32}}, {"dnsConfig": {"searches": ["a"] * 33}}, "dnsConfig.searches"),
    (
        {"dnsConfig": {"options": [{"name": "x"}]}},
        {"dnsConfig": {"options": [{"value": "x"}]}},
        "dnsConfig.options[0].name",
    ),
    ({"hostAliases": [{"ip": "::1"}]}, {"hostAliases": [{"ip": "a"}]}, "hostAliases[0].ip"),
    ({"hostname": "a" * 63}, {"hostname": "a.b"}, "hostname"),
    ({"subdomain": "a"}, {"subdomain": "A"}, "subdomain"),
    ({"restartPolicy": "OnFailure"}, {"restartPolicy": "Often"}, "restartPolicy"),
    ({"activeDeadlineSeconds": 1}, {"activeDeadlineSeconds": 0}, "activeDeadlineSeconds"),
    ({"activeDeadlineSeconds": 2**31 - 1}, {"activeDeadlineSeconds": 2**31}, "activeDeadlineSeconds"),
    ({"preemptionPolicy": "Never"}, {"preemptionPolicy": "Always"}, "preemptionPolicy"),
    ({"runtimeClassName": "a"}, {"runtimeClassName": ""}, "runtimeClassName"),
    (
        _tolerated(key="a", operator="Exists"),
        _tolerated(key="a", operator="Exists", value="b"),
        "tolerations[0].value",
    ),
    (_tolerated(operator="Exists"), _tolerated(operator="Equal"), "tolerations[0].operator"),
    (_tolerated(key="a"), _tolerated(key="a", operator="Like"), "tolerations[0].operator"),
    (
        _tolerated(key="a", effect="NoExecute", tolerationSeconds=-1),
        _tolerated(key="a", effect="NoSchedule", tolerationSeconds=1),
        "tolerations[0].effect",
    ),
    (_tolerated(key="a", effect="NoSchedule"), _tolerated(key="a", effect="Never"), "tolerations[0].effect"),
    (_wanted([{}]), _wanted([]), f"affinity.nodeAffinity.{TERMS}.nodeSelectorTerms"),
    (
        {"shareProcessNamespace": True},
        {"shareProcessNamespace": True, "hostPID": True},
        "shareProcessNamespace",
    ),
    ({"overhead": {"cpu": 1}}, {"overhead": {"gpu": 1}}, "overhead.gpu"),
    ({"os": {"name": "linux"}}, {"os": {"name": ""}}, "os.name"),
    ({"readinessGates": [{"conditionType": "a/b"}]}, {"readinessGates": [{}]}, "readinessGates[0]"),
    ({"topologySpreadConstraints": []}, {"topologySpreadConstraints": {}}, "topologySpreadConstraints"),
    ({"topologySpreadConstraints": []}, {"topologySpreadConstraints": [5]}, "topologySpreadConstraints[0]"),
    ({"ephemeralContainers": []}, {"ephemeralContainers": [APP | {"name": "b"}]}, "ephemeralContainers"),
    ({"resourceClaims": []}, {"resourceClaims": [{"name": "a", "resourceClaimName": "b"}]}, "resourceClaims"),
    ({}, {"containers": []}, "containers"),
    ({"metadata": {"namespace": "a"}}, {"metadata": {"namespace": "a.b"}}, "metadata.namespace"),
    ({"metadata": {"name": "a.b"}}, {"metadata": {"name": "a_b"}}, "metadata.name"),
    ({"volumes": [PLAIN]}, {"volumes": [PLAIN, PLAIN]}, "volumes[1].name"),
    ({"volumes": [PLAIN]}, {"volumes": [{**PLAIN, "name": "a.b"}]}, "volumes[0].name"),
    ({"volumes": [PLAIN]}, {"volumes": [{"emptyDir": {}}]}, "volumes[0].name"),
    ({"volumes": [PLAIN]}, {"volumes": [{**PLAIN, "hostPath": {"path": "/a"}}]}, "volumes[0]"),
    (_volume("hostPath", path="a"), _volume("hostPath", path="a/.."), "volumes[0].hostPath.path"),
    (
        _volume("configMap", name="c", defaultMode=0),
        _volume("configMap", name="c", defaultMode=-1),
        "volumes[0].configMap.defaultMode",
    ),
    (
        _volume("secret", secretName="s", items=[{"key": "k", "path": "a/b", "mode": 0o777}]),
        _volume("secret", secretName="s", items=[{"key": "k", "path": "a/b", "mode": 0o1000}]),
        "volumes[0].secret.items[0].mode",
    ),
    (
        _volume("secret", secretName="s", items=[{"key": "k", "path": "a..b"}]),
        _volume("secret", secretName="s", items=[{"key": "k", "path": "..b"}]),
        "volumes[0].secret.items[0].path",
    ),
    (
        _volume("configMap", name="c", items=[{"key": "k", "path": "b"}]),
        _volume("configMap", name="c", items=[{"key": "k"}]),
        "volumes[0].configMap.items[0].path",
    ),
    (
        _volume("downwardAPI", items=[{"path": "a", **NAME}]),
        _volume("downwardAPI", items=[{"path": "a", "fieldRef": {"fieldPath": "spec.nodeName"}}]),
        "volumes[0].downwardAPI.items[0].fieldRef.fieldPath",
    ),
    (
        _volume("projected", sources=[{"secret": {"name": "a"}}, {"configMap": {"name": "a"}}]),
        _volume("projected", sources=[{"secret": {"name": "a"}, "configMap": {"name": "a"}}]),
        "volumes[0].projected.sources[0]",
    ),
    (_volume("downwardAPI", defaultMode=0), _volume("downwardAPI", defaultMode=512), f"{DOWN}.defaultMode"),
    (_told(mode=0o777), _told(mode=0o1000), f"{DOWN}.items[0].mode"),
    (
        _told(fieldRef=LABEL),
        _told(fieldRef={"fieldPath": "metadata.labels['a b']"}),
        f"{DOWN}.items[0].fieldRef.fieldPath",
    ),
    (
        _volume("configMap", name="c", items=[{"key": "k", "path": "b"}]),
        _volume("configMap", name="c", items=[{"path": "b"}]),
        "volumes[0].configMap.items[0].key",
    ),
    (
        _volume("projected", defaultMode=0),
        _volume("projected", defaultMode=512),
        "volumes[0].projected.defaultMode",
    ),
    (_part("secret", name="s"), _part("secret"), f"{PART}.secret.name"),
    (_part("configMap", name="c"), _part("configMap"), f"{PART}.configMap.name"),
    (
        _part("configMap", name="c", items=[{"key": "k", "path": "b"}]),
        _part("configMap", name="c", items=[{"key": "k", "path": "/b"}]),
        f"{PART}.configMap.items[0].path",
    ),
    (
        _part("downwardAPI", items=[{"path": "a", **NAME}]),
        _part("downwardAPI", items=[{"path": "a"}]),
        f"{PART}.downwardAPI.items[0]",
    ),
    (
        _part("serviceAccountToken", path="a"),
        _part("serviceAccountToken", path="../a"),
        f"{PART}.serviceAccountToken.path",
    ),
]


@pytest.mark.parametrize("is_lenient", [False, True])
@pytest.mark.parametrize(("right", "wrong", "path"), [*CONTAINERS, *PODS])
def test_what_all_refuse(
    right: dict[str, Any], wrong: dict[str, Any], path: str, *, is_lenient: bool
) -> None:
    """The first fault says where; the neighbour has none."""
    assert _faults(right, is_lenient=is_lenient) == []
    found = _faults(wrong, is_lenient=is_lenient)
    assert found[:1] == [path]


def test_a_bundle_of_an_api_server_is_none_of_a_kubelets() -> None:
    """Where one is followed."""
    bundle = {"clusterTrustBundle": {"name": "a", "path": "b"}}
    spec = _volume("projected", sources=[bundle])
    assert _faults(spec, is_lenient=True) == ["volumes[0].projected.sources[0].clusterTrustBundle"]


def test_a_static_pod_has_a_name() -> None:
    """Whoever reads it."""
    for is_lenient in (False, True):
        assert {*_faults({"metadata": {"name": ""}}, is_lenient=is_lenient)} == {"metadata.name"}
