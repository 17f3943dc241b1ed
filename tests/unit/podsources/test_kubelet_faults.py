"""What is refused of a file where a kubelet is followed, and what is taken there alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nodealloc.errors import DecodeError
from nodealloc.podsources import _documents
from nodealloc.podspec import Pod

APP = {"name": "app", "image": "i"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ANY = {"runAsUserName": "somebody"}
PIECE = {"name": "v", "image": {"reference": "registry.example/files:1"}}


def _read(spec: dict[str, Any], *, is_lenient: bool) -> Pod:
    """The pod of a file, as it comes to its node."""
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": [APP], **spec},
    }
    data = json.dumps(manifest).encode()
    return _documents.pod_in(data, where="a.json", source="file", node_name="n", is_lenient=is_lenient)


def _faults(spec: dict[str, Any], *, is_lenient: bool) -> list[str]:
    """Where its faults are."""
    try:
        _read(spec, is_lenient=is_lenient)
    except DecodeError as error:
        return [one.path.removeprefix("$.spec.") for one in error.faults]
    return []


def _setting(name: str, **spec: Any) -> dict[str, Any]:
    return {"securityContext": {"sysctls": [{"name": name, "value": "1"}]}, **spec}


def _mounted(**fields: str) -> dict[str, Any]:
    mount = {"name": "v", "mountPath": "/v", **fields}
    return {"volumes": [PIECE], "containers": [{**APP, "volumeMounts": [mount]}]}


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        ({"dnsConfig": {"searches": ["a", "b_c"]}}, "dnsConfig.searches[1]"),
        ({"dnsConfig": {"searches": ["."]}}, "dnsConfig.searches[0]"),
        (_setting("kernel.shm_next_id", hostIPC=True), "securityContext.sysctls[0].name"),
        (_setting("kernel/msg_next_id", hostIPC=True), "securityContext.sysctls[0].name"),
        (_mounted(subPath="a"), "containers[0].volumeMounts[0].subPath"),
        (_mounted(subPathExpr="$(A)"), "containers[0].volumeMounts[0].subPathExpr"),
    ],
)
def test_what_only_a_kubelet_refuses(spec: dict[str, Any], where: str) -> None:
    """v1.32 does; others take it."""
    assert _faults(spec, is_lenient=True) == [where]
    assert _faults(spec, is_lenient=False) == []


@pytest.mark.parametrize(
    "spec",
    [
        {"dnsConfig": {"searches": ["a-b.example."]}},
        _setting("kernel.shm_next_id"),
        _setting("kernel.sem_next_id", hostIPC=True),
        _mounted(),
        {"os": {"name": "linux"}},
        {"volumes": [{"name": "v", "projected": {"sources": [{}]}}]},
        {
            "serviceAccount": "a",
            "volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}],
        },
        {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": None}, {"name": "w", "configMap": None}]},
        {
            "volumes": [
                {"name": "v", "projected": {"sources": [{"secret": {"name": "s"}, "configMap": None}]}}
            ]
        },
    ],
)
def test_what_all_take(spec: dict[str, Any]) -> None:
    """The nearest right neighbours, and what is null and therefore not there."""
    assert _faults(spec, is_lenient=True) == _faults(spec, is_lenient=False) == []


def test_a_kind_of_null_is_not_there() -> None:
    """A volume of no other kind is an empty directory."""
    kinds = {"volumes": [{"name": "v", "hostPath": {"path": "/a"}, "nfs": None}, {"name": "w", "nfs": None}]}
    assert [one.kind for one in _read(kinds, is_lenient=False).volumes] == ["hostPath", "emptyDir"]


@pytest.mark.parametrize("kind", ["emptyDir", "nfs", "fc"])
def test_a_kind_that_nobody_knows_is_left_out_beside_one_that_is_known(kind: str) -> None:
    """By a kubelet; two that are known, and two that nobody knows, are a fault for all."""
    known = {"nfs": {"server": "a", "path": "/b"}, "fc": {"wwids": ["a"]}}
    volume = {"name": "v", kind: known.get(kind, {}), "later": {}}
    assert [one.kind for one in _read({"volumes": [volume]}, is_lenient=True).volumes] == [kind]
    assert _faults({"volumes": [volume]}, is_lenient=False) == ["volumes[0].later"]
    pairs: list[dict[str, Any]] = [{"hostPath": {"path": "/a"}, "emptyDir": {}}, {"later": {}, "latest": {}}]
    for both in pairs:
        assert _faults({"volumes": [{"name": "v", **both}]}, is_lenient=True) == ["volumes[0]"]


@pytest.mark.parametrize("operator", ["Gt", "Lt"])
def test_a_label_that_is_compared_with_no_number(operator: str) -> None:
    """A kubelet takes it, and no node matches; so does one that is liked."""
    terms = [{"matchExpressions": [{"key": "a", "operator": operator, "values": ["many"]}]}]
    spec = {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}}
    at = f"affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values"
    assert (_faults(spec, is_lenient=True), _faults(spec, is_lenient=False)) == ([], [at])
    terms[0]["matchExpressions"][0]["values"] = ["-5"]
    assert _faults(spec, is_lenient=False) == []
    terms[0]["matchExpressions"][0]["values"] = ["1", "2"]
    assert _faults(spec, is_lenient=True) == [at]


@pytest.mark.parametrize(("asked", "has"), [(-1, 1), (-(2**40), 1), (0, 0), (7, 7)])
def test_a_grace_of_less_than_none_is_a_second(asked: int, has: int) -> None:
    """For a kubelet; else it is a fault."""
    spec = {"terminationGracePeriodSeconds": asked}
    assert _read(spec, is_lenient=True).termination_grace_period_seconds == has
    assert _faults(spec, is_lenient=False) == (["terminationGracePeriodSeconds"] if asked < 0 else [])


def test_an_amount_without_a_value_is_none_at_all_to_a_kubelet() -> None:
    """As YAML has it behind a bare `memory:`; blanks around one do not matter. Others say where it stands."""
    amounts = {"limits": {"cpu": None, "memory": " 64Mi "}, "requests": {"cpu": None}}
    spec = {"containers": [{**APP, "resources": amounts}], "overhead": {"cpu": " 1 "}}
    where = "containers[0].resources"
    told = [f"{where}.limits.cpu", f"{where}.limits.memory", f"{where}.requests.cpu", "overhead.cpu"]
    assert sorted(_faults(spec, is_lenient=False)) == sorted(told)
    (app,) = _read(spec, is_lenient=True).containers
    assert {name: str(one) for name, one in app.limits.items()} == {"cpu": "0", "memory": "64Mi"}
    assert app.requests == app.limits
    assert _faults({"containers": [{**APP, "resources": 7}, None]}, is_lenient=True)


def test_a_grace_that_is_no_number_stays_a_fault() -> None:
    """Whoever reads it."""
    assert _faults({"terminationGracePeriodSeconds": "-1"}, is_lenient=True) == [
        "terminationGracePeriodSeconds"
    ]


@pytest.mark.parametrize("context", ["pod", "init", "app"])
@pytest.mark.parametrize(
    ("system", "options", "is_right"), [("linux", ANY, False), ("linux", None, True), (None, ANY, True)]
)
def test_options_for_windows_are_none_for_linux(
    context: str, system: str | None, options: object, *, is_right: bool
) -> None:
    """Where a manifest says what it is for; where it does not, they are left out."""
    inside = {"securityContext": {"windowsOptions": options}}
    specs: dict[str, dict[str, Any]] = {
        "pod": inside,
        "init": {"initContainers": [{**APP, "name": "first", **inside}]},
        "app": {"containers": [{**APP, **inside}]},
    }
    at = {"pod": "", "init": "initContainers[0].", "app": "containers[0]."}[context]
    found = _faults({**specs[context], "os": system and {"name": system}}, is_lenient=True)
    assert found == ([] if is_right else [f"{at}securityContext.windowsOptions"])


@pytest.mark.parametrize(
    ("options", "at"),
    [
        ({}, ""),
        ({"gmsaCredentialSpecName": "a.b-1", "gmsaCredentialSpec": "x", "runAsUserName": "me"}, ""),
        ({"gmsaCredentialSpecName": "A_b"}, "gmsaCredentialSpecName"),
        ({"gmsaCredentialSpecName": ""}, "gmsaCredentialSpecName"),
        ({"gmsaCredentialSpec": ""}, "gmsaCredentialSpec"),
        ({"gmsaCredentialSpec": "x" * 65536}, ""),
        ({"gmsaCredentialSpec": "x" * 65537}, "gmsaCredentialSpec"),
        ({"gmsaCredentialSpec": 1}, "gmsaCredentialSpec"),
        ({"runAsUserName": ""}, "runAsUserName"),
        ({"runAsUserName": "a\tb"}, "runAsUserName"),
        ({"runAsUserName": "NT AUTHORITY\\SYSTEM"}, ""),
        ({"runAsUserName": "my-very-long.domain.test\\me"}, ""),
        ({"runAsUserName": "a\\b\\c"}, "runAsUserName"),
        ({"runAsUserName": "\\me"}, "runAsUserName"),
        ({"runAsUserName": ".a\\me"}, "runAsUserName"),
        ({"runAsUserName": "no_domain_of_that_length\\me"}, "runAsUserName"),
        ({"runAsUserName": "a." * 127 + "aa\\me"}, "runAsUserName"),
        ({"runAsUserName": "a\\"}, "runAsUserName"),
        ({"runAsUserName": "x" * 104}, ""),
        ({"runAsUserName": "x" * 105}, "runAsUserName"),
        ({"runAsUserName": ". ."}, "runAsUserName"),
        ({"runAsUserName": "me@home"}, "runAsUserName"),
        ({"hostProcess": "yes"}, "hostProcess"),
        ([], "-"),
    ],
)
def test_what_a_kubelet_refuses_of_options_for_windows(options: object, at: str) -> None:
    """What makes no sense there is refused for any node."""
    where = "securityContext.windowsOptions"
    found = _faults({"securityContext": {"windowsOptions": options}}, is_lenient=True)
    assert found == ([] if not at else [where if at == "-" else f"{where}.{at}"])


@pytest.mark.parametrize(
    ("of_pod", "of_containers", "has_network", "found"),
    [
        (None, [None, None], False, []),
        (False, [False, None], False, []),
        (True, [None, True], True, []),
        (None, [True, True], True, []),
        (True, [True, True], False, ["hostNetwork"]),
        (True, [False, None], True, ["containers[0].securityContext.windowsOptions.hostProcess", "$.spec"]),
        (None, [True, None], True, ["$.spec"]),
        (None, [True, None], False, ["$.spec", "hostNetwork"]),
    ],
)
def test_processes_of_a_windows_host_are_all_containers_of_a_pod(
    of_pod: bool | None, of_containers: list[bool | None], has_network: bool, found: list[str]
) -> None:
    """As the pod says, and with the network of the node."""

    def context(said: bool | None) -> dict[str, Any]:
        return {} if said is None else {"securityContext": {"windowsOptions": {"hostProcess": said}}}

    spec: dict[str, Any] = {
        **context(of_pod),
        "hostNetwork": has_network,
        "containers": [{**APP, "name": f"c{n}", **context(one)} for n, one in enumerate(of_containers)],
    }
    assert _faults(spec, is_lenient=True) == found


def test_a_claim_is_named_for_the_pod_on_its_node() -> None:
    """What is made for a static pod has the node's name in it."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    made = {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}
    named = {"name": "w", "persistentVolumeClaim": {"claimName": "a-n-v"}}
    other = {"name": "w", "persistentVolumeClaim": {"claimName": "a-v"}}
    at = "volumes[1].persistentVolumeClaim.claimName"
    assert _faults({"volumes": [made, named]}, is_lenient=True) == [at]
    assert _faults({"volumes": [made, other]}, is_lenient=True) == []
