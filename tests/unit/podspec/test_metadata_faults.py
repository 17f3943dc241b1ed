"""What an API server refuses of the metadata of a pod."""

from __future__ import annotations

from typing import Any

import pytest

from nodealloc.podspec import Pod, api_faults

OWNER = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}
COST = "controller.kubernetes.io/pod-deletion-cost"
ARMOR = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"
SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
LOCAL = {"type": "Localhost", "localhostProfile": "p"}


def _faults(metadata: dict[str, Any], app: dict[str, Any] | None = None, **spec: Any) -> list[str]:
    """Where a pod of this metadata has faults."""
    whole = {"containers": [{"name": "app", "image": "i", **(app or {})}], **spec}
    pod = Pod.from_manifest({"metadata": {"name": "web", **metadata}, "spec": whole}, max_bytes=1 << 20)
    return [one.path for one in api_faults(pod)]


@pytest.mark.parametrize(
    ("metadata", "where"),
    [
        ({"generateName": "web-"}, None),
        ({"generateName": "w"}, None),
        ({"generateName": "A_"}, "generateName"),
        ({"generateName": "-"}, "generateName"),
        ({"generation": 1}, None),
        ({"generation": -1}, "generation"),
        ({"finalizers": ["orphan", "example.com/mine"]}, None),
        ({"finalizers": ["mine"]}, "finalizers[0]"),
        ({"finalizers": ["orphan", "a b/c"]}, "finalizers[1]"),
        ({"finalizers": ["orphan", "foregroundDeletion"]}, "finalizers"),
        ({"ownerReferences": [OWNER, {**OWNER, "controller": True}]}, None),
        ({"ownerReferences": [{**OWNER, "apiVersion": "apps/v1"}]}, None),
        ({"ownerReferences": [{**OWNER, "apiVersion": ""}]}, "ownerReferences[0].apiVersion"),
        ({"ownerReferences": [{**OWNER, "apiVersion": "a/b/c"}]}, "ownerReferences[0].apiVersion"),
        ({"ownerReferences": [{**OWNER, "kind": ""}]}, "ownerReferences[0].kind"),
        ({"ownerReferences": [OWNER, {**OWNER, "name": ""}]}, "ownerReferences[1].name"),
        ({"ownerReferences": [{**OWNER, "uid": ""}]}, "ownerReferences[0].uid"),
        ({"ownerReferences": [{**OWNER, "kind": "Event"}]}, "ownerReferences[0]"),
        ({"ownerReferences": [{**OWNER, "controller": True}] * 2}, "ownerReferences"),
        ({"managedFields": [{"operation": "Apply", "fieldsType": "FieldsV1", "manager": "m" * 128}]}, None),
        ({"managedFields": [{"operation": "Write"}]}, "managedFields[0].operation"),
        ({"managedFields": [{"operation": "Update", "fieldsType": "V2"}]}, "managedFields[0].fieldsType"),
        ({"managedFields": [{"operation": "Update", "manager": "m" * 129}]}, "managedFields[0].manager"),
        ({"managedFields": [{"operation": "Update", "manager": "\n"}]}, "managedFields[0].manager"),
        ({"creationTimestamp": "2024-02-29T10:20:30Z"}, None),
        ({"creationTimestamp": "2024-02-29T10:20:30.123456789+01:00"}, None),
        ({"creationTimestamp": "2023-02-29T10:20:30Z"}, "creationTimestamp"),
        ({"creationTimestamp": "yesterday"}, "creationTimestamp"),
        ({"deletionTimestamp": "2024-02-29"}, "deletionTimestamp"),
        ({"annotations": {"a": "x" * ((256 << 10) - 1)}}, None),
        ({"annotations": {"a": "x" * (256 << 10)}}, "annotations"),
        ({"annotations": {"a": "\u00e4" * (128 << 10)}}, "annotations"),
        *[({"annotations": {COST: cost}}, None) for cost in ("0", "-5", "2147483647", "-2147483648")],
        *[
            ({"annotations": {COST: cost}}, f"annotations.{COST}")
            for cost in ("", "x", "+5", "05", "-0", "1.5", "2147483648", "-2147483649")
        ],
    ],
)
def test_metadata_are_held_to_their_form(metadata: dict[str, Any], where: str | None) -> None:
    """Each refused one beside its nearest right neighbour."""
    assert _faults(metadata) == ([] if where is None else [f"$.metadata.{where}"])


@pytest.mark.parametrize(
    ("key", "value", "is_right"),
    [
        (ARMOR + "app", "unconfined", True),
        (ARMOR + "app", "localhost/p", True),
        (ARMOR + "app", "", True),
        (ARMOR + "app", "docker/default", False),
        (ARMOR + "first", "runtime/default", True),
        (ARMOR + "nobody", "runtime/default", False),
        (SECCOMP_POD, "docker/default", True),
        (SECCOMP_POD, "strict", False),
        (SECCOMP + "nobody", "localhost/a/b", True),
        (SECCOMP + "app", "localhost/../b", False),
        (SECCOMP + "app", "localhost//b", False),
        (SECCOMP + "app", "", False),
    ],
)
def test_an_annotation_names_a_profile_that_there_is(key: str, value: str, *, is_right: bool) -> None:
    """And, of AppArmor, a container of the pod."""
    found = _faults({"annotations": {key: value}}, initContainers=[{"name": "first", "image": "i"}])
    assert found == ([] if is_right else [f"$.metadata.annotations.{key}"])


@pytest.mark.parametrize(
    ("key", "value", "profile", "is_right"),
    [
        (ARMOR + "app", "unconfined", {"type": "Unconfined"}, True),
        (ARMOR + "app", "unconfined", {"type": "RuntimeDefault"}, False),
        (ARMOR + "app", "runtime/default", {"type": "RuntimeDefault"}, True),
        (ARMOR + "app", "localhost/p", LOCAL, True),
        (ARMOR + "app", "localhost/q", LOCAL, False),
        (SECCOMP + "app", "docker/default", {"type": "RuntimeDefault"}, True),
        (SECCOMP + "app", "localhost/p", LOCAL, True),
        (SECCOMP + "app", "unconfined", LOCAL, False),
    ],
)
def test_an_annotation_says_what_its_field_says(
    key: str, value: str, profile: dict[str, str], *, is_right: bool
) -> None:
    """Where both are there; the fault stands where the field is."""
    name = "appArmorProfile" if key.startswith(ARMOR) else "seccompProfile"
    found = _faults({"annotations": {key: value}}, {"securityContext": {name: profile}})
    assert found == ([] if is_right else [f"$.spec.containers[0].securityContext.{name}"])


def test_the_profile_of_a_pod_is_compared_too() -> None:
    """That of AppArmor with each container's annotation, that of seccomp with the pod's own."""
    unconfined = {"type": "Unconfined"}
    said = {ARMOR + "app": "runtime/default"}
    of_pod = {"appArmorProfile": unconfined}
    assert _faults({"annotations": said}, securityContext=of_pod) == [
        "$.spec.containers[0].securityContext.appArmorProfile"
    ]
    assert _faults({"annotations": said}, os={"name": "windows"}, securityContext=of_pod) == [
        "$.spec.securityContext.appArmorProfile"
    ]
    own = {"securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}}}
    assert _faults({"annotations": said}, own, securityContext=of_pod) == []
    of_pod = {"seccompProfile": unconfined}
    assert _faults({"annotations": {SECCOMP_POD: "runtime/default"}}, securityContext=of_pod) == [
        "$.spec.securityContext.seccompProfile"
    ]
    assert _faults({"annotations": {SECCOMP_POD: "unconfined"}}, securityContext=of_pod) == []
