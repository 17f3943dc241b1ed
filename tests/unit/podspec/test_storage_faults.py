"""What an API server refuses of volumes: of storage systems, of claims, and of what a node makes itself."""

from __future__ import annotations

from typing import Any

import pytest

from nodealloc.podspec import Pod, api_faults

NFS = {"server": "files.example", "path": "/exports"}
ISCSI = {"targetPortal": "192.0.2.1", "iqn": "iqn.2001-04.com.example:disk", "lun": 0}
AZURE = {"diskName": "d", "diskURI": "https://example.com/d"}
MANAGED = {"diskName": "d", "diskURI": "/subscriptions/d", "kind": "Managed"}
SCALE = {"gateway": "g", "system": "s", "volumeName": "v"}
CLAIM = {"kind": "PersistentVolumeClaim", "name": "a"}
NAME_FIELD = {"fieldPath": "metadata.name"}


def _faults(kind: str, spec: object) -> list[str]:
    """Where a pod with one such volume has faults, below its kind."""
    volume = {"name": "v", kind: spec}
    app = {"name": "app", "image": "i"}
    pod = Pod.from_manifest({"metadata": {"name": "web"}, "spec": {"containers": [app], "volumes": [volume]}})
    return [one.path.removeprefix("$.spec.volumes[0].") for one in api_faults(pod)]


@pytest.mark.parametrize(
    ("kind", "spec", "where"),
    [
        ("awsElasticBlockStore", {}, "volumeID"),
        ("awsElasticBlockStore", {"volumeID": "a", "partition": -1}, "partition"),
        ("azureDisk", {"diskURI": "https://a"}, "diskName"),
        ("azureDisk", {"diskName": "d"}, "diskURI"),
        ("azureDisk", {**AZURE, "diskURI": "/subscriptions/d"}, "diskURI"),
        ("azureDisk", {**MANAGED, "diskURI": "https://a"}, "diskURI"),
        ("azureDisk", {**AZURE, "cachingMode": "Some"}, "cachingMode"),
        ("azureDisk", {**AZURE, "kind": "Other"}, "kind"),
        ("azureFile", {"secretName": "a"}, "shareName"),
        ("azureFile", {"shareName": "a"}, "secretName"),
        ("cephfs", {"monitors": []}, "monitors"),
        ("cinder", {}, "volumeID"),
        ("cinder", {"volumeID": "a", "secretRef": {}}, "secretRef"),
        ("csi", {}, "driver"),
        ("csi", {"driver": "a_b"}, "driver"),
        ("csi", {"driver": "a" * 64}, "driver"),
        ("csi", {"driver": "a.b", "nodePublishSecretRef": {"name": ""}}, "nodePublishSecretRef"),
        ("csi", {"driver": "a.b", "nodePublishSecretRef": {"name": "A b"}}, "nodePublishSecretRef"),
        ("fc", {}, ""),
        ("fc", {"targetWWNs": ["a"], "wwids": ["b"], "lun": 1}, ""),
        ("fc", {"targetWWNs": ["a"]}, "lun"),
        ("fc", {"targetWWNs": ["a"], "lun": 256}, "lun"),
        ("flexVolume", {}, "driver"),
        ("flexVolume", {"driver": "a/b", "options": {"my.k8s.io/x": "y"}}, "options.my.k8s.io/x"),
        ("flexVolume", {"driver": "a/b", "options": {"Kubernetes.io/x": "y"}}, "options.Kubernetes.io/x"),
        ("flocker", {}, ""),
        ("flocker", {"datasetName": "a", "datasetUUID": "b"}, ""),
        ("flocker", {"datasetName": "a/b"}, "datasetName"),
        ("gcePersistentDisk", {}, "pdName"),
        ("gcePersistentDisk", {"pdName": "a", "partition": 256}, "partition"),
        ("gcePersistentDisk", {"pdName": "a", "partition": "1"}, "partition"),
        ("gitRepo", {}, "repository"),
        ("gitRepo", {"repository": "a", "directory": "a/../b"}, "directory"),
        ("glusterfs", {"path": "b"}, "endpoints"),
        ("glusterfs", {"endpoints": "a"}, "path"),
        ("image", {"reference": "a", "pullPolicy": "Often"}, "pullPolicy"),
        ("iscsi", {**ISCSI, "targetPortal": ""}, "targetPortal"),
        ("iscsi", {**ISCSI, "iqn": ""}, "iqn"),
        ("iscsi", {**ISCSI, "iqn": "disk"}, "iqn"),
        ("iscsi", {**ISCSI, "iqn": "iqn.2001.com.example:disk"}, "iqn"),
        ("iscsi", {**ISCSI, "iqn": "eui.0123"}, "iqn"),
        ("iscsi", {**ISCSI, "iqn": "naa.62"}, "iqn"),
        ("iscsi", {**ISCSI, "initiatorName": ""}, "initiatorName"),
        ("iscsi", {**ISCSI, "lun": 256}, "lun"),
        ("iscsi", {**ISCSI, "chapAuthSession": True}, "secretRef"),
        ("iscsi", {**ISCSI, "chapAuthDiscovery": True}, "secretRef"),
        ("nfs", {**NFS, "server": ""}, "server"),
        ("nfs", {**NFS, "path": ""}, "path"),
        ("nfs", {**NFS, "path": "exports"}, "path"),
        ("photonPersistentDisk", {}, "pdID"),
        ("portworxVolume", {}, "volumeID"),
        ("quobyte", {"volume": "v"}, "registry"),
        ("quobyte", {"registry": "a:1,b", "volume": "v"}, "registry"),
        ("quobyte", {"registry": "a:1"}, "volume"),
        ("quobyte", {"registry": "a:1", "volume": "v", "tenant": "t" * 65}, "tenant"),
        ("rbd", {"image": "i"}, "monitors"),
        ("rbd", {"monitors": ["a"]}, "image"),
        ("scaleIO", {**SCALE, "gateway": ""}, "gateway"),
        ("scaleIO", {**SCALE, "system": ""}, "system"),
        ("scaleIO", {**SCALE, "volumeName": ""}, "volumeName"),
        ("storageos", {"volumeName": "A b"}, "volumeName"),
        ("storageos", {"volumeName": "a", "volumeNamespace": "A b"}, "volumeNamespace"),
        ("storageos", {"volumeName": "a", "secretRef": {}}, "secretRef"),
        ("vsphereVolume", {}, "volumePath"),
        (
            "downwardAPI",
            {"items": [{"path": "a", "fieldRef": {**NAME_FIELD, "apiVersion": "v2"}}]},
            "items[0].fieldRef.apiVersion",
        ),
        (
            "projected",
            {"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 2**32 + 1}}]},
            "sources[0].serviceAccountToken.expirationSeconds",
        ),
    ],
)
def test_what_a_volume_lacks_is_named(kind: str, spec: object, where: str) -> None:
    """One fault, which says where it stands."""
    assert _faults(kind, spec) == [f"{kind}.{where}".removesuffix(".")]


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("awsElasticBlockStore", {"volumeID": "a", "partition": 0}),
        ("azureDisk", AZURE),
        ("azureDisk", {**AZURE, "cachingMode": "ReadOnly", "kind": "Dedicated"}),
        ("azureDisk", MANAGED),
        ("azureFile", {"secretName": "a", "shareName": "b"}),
        ("cephfs", {"monitors": ["a"]}),
        ("cinder", {"volumeID": "a", "secretRef": {"name": "A b"}}),
        ("csi", {"driver": "A.b"}),
        ("csi", {"driver": "a" * 63, "nodePublishSecretRef": {"name": "a"}}),
        ("fc", {"targetWWNs": ["a"], "lun": 0}),
        ("fc", {"wwids": ["a"]}),
        ("fc", {"wwids": ["a"], "lun": 300}),
        ("flexVolume", {"driver": "a/b", "options": {"notk8s.io/x": "y", "kubernetes": "z"}}),
        ("flocker", {"datasetUUID": "a"}),
        ("gcePersistentDisk", {"pdName": "a", "partition": 255}),
        ("gitRepo", {"repository": "a", "directory": "a/..b"}),
        ("glusterfs", {"endpoints": "a", "path": "b"}),
        ("image", {"reference": "a", "pullPolicy": "Never"}),
        ("iscsi", ISCSI),
        ("iscsi", {**ISCSI, "iqn": "eui.0123456789ABCDEF", "lun": 255}),
        ("iscsi", {**ISCSI, "iqn": "naa.62004567BA64678D0123456789ABCDEF"}),
        ("iscsi", {**ISCSI, "chapAuthSession": True, "secretRef": {"name": "a"}}),
        ("iscsi", {**ISCSI, "chapAuthSession": False, "initiatorName": ISCSI["iqn"]}),
        ("nfs", NFS),
        ("photonPersistentDisk", {"pdID": "a"}),
        ("portworxVolume", {"volumeID": "a"}),
        ("quobyte", {"registry": "a:1,[::1]:2", "volume": "v"}),
        ("quobyte", {"registry": "a:1", "volume": "v", "tenant": "t" * 64}),
        ("rbd", {"monitors": ["a"], "image": "i"}),
        ("scaleIO", SCALE),
        ("storageos", {"volumeName": "a", "volumeNamespace": "b", "secretRef": {"name": "c"}}),
        ("vsphereVolume", {"volumePath": "a"}),
        ("downwardAPI", {"items": [{"path": "a", "fieldRef": {**NAME_FIELD, "apiVersion": "v1"}}]}),
        ("projected", {"sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 2**32}}]}),
        ("example.com/own", {"server": ""}),
    ],
)
def test_what_a_volume_may_say_has_no_fault(kind: str, spec: object) -> None:
    """The nearest right neighbours; of kinds of others nothing is known."""
    assert _faults(kind, spec) == []


def _claim(**spec: Any) -> dict[str, Any]:
    """What stands below `ephemeral`, with other fields of its claim."""
    whole = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return {"volumeClaimTemplate": {"spec": whole}}


def _labelled(**metadata: Any) -> dict[str, Any]:
    return {"volumeClaimTemplate": {**_claim()["volumeClaimTemplate"], "metadata": metadata}}


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        ({}, ""),
        (_claim(accessModes=[]), "spec.accessModes"),
        (_claim(accessModes=["Often"]), "spec.accessModes[0]"),
        (_claim(accessModes=["ReadWriteOnce", "ReadWriteOncePod"]), "spec.accessModes"),
        (_claim(resources={}), "spec.resources.requests.storage"),
        (_claim(resources={"requests": {"storage": "0"}}), "spec.resources.requests.storage"),
        (_claim(resources={"requests": {"storage": "much"}}), "spec.resources.requests.storage"),
        (_claim(resources={"requests": {"storage": True}}), "spec.resources.requests.storage"),
        (_claim(volumeMode="Tape"), "spec.volumeMode"),
        (_claim(storageClassName="A b"), "spec.storageClassName"),
        (_claim(selector={"matchLabels": {"a b": "c"}}), "spec.selector.matchLabels.a b"),
        (_claim(dataSource={"kind": "PersistentVolumeClaim"}), "spec.dataSource.name"),
        (_claim(dataSource={"kind": "VolumeSnapshot", "name": "a"}), "spec.dataSource"),
        (_claim(dataSourceRef={"apiGroup": "A b", "kind": "X", "name": "a"}), "spec.dataSourceRef.apiGroup"),
        (_claim(dataSource=CLAIM, dataSourceRef={**CLAIM, "name": "b"}), "spec.dataSource"),
        (_claim(dataSource=CLAIM, dataSourceRef={**CLAIM, "namespace": "b"}), "spec.dataSource"),
        (_claim(dataSourceRef={**CLAIM, "namespace": "A b"}), "spec.dataSourceRef.namespace"),
        (_labelled(name="x"), "metadata.name"),
        (_labelled(labels={"a": "b c"}), "metadata.labels.a"),
        (_labelled(annotations={"a b": "c"}), "metadata.annotations.a b"),
    ],
)
def test_a_claim_that_could_not_be_made_is_named(spec: object, where: str) -> None:
    """One fault, which says where it stands."""
    assert _faults("ephemeral", spec) == [f"ephemeral.volumeClaimTemplate.{where}".removesuffix(".")]


@pytest.mark.parametrize(
    "spec",
    [
        _claim(),
        _claim(accessModes=["ReadWriteOncePod"], volumeMode="Block", storageClassName="fast"),
        _claim(accessModes=["ReadOnlyMany", "ReadWriteMany"], resources={"requests": {"storage": 1}}),
        _claim(dataSource={"kind": "PersistentVolumeClaim", "name": "a"}),
        _claim(dataSourceRef={"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "a"}),
        _claim(dataSource=CLAIM, dataSourceRef=CLAIM),
        _claim(dataSourceRef={**CLAIM, "namespace": "b"}),
        _claim(selector={"matchLabels": {"a": "c"}}),
        _labelled(labels={"a": "b"}, annotations={"A": "b c"}, name=""),
    ],
)
def test_a_claim_that_can_be_made_has_no_fault(spec: object) -> None:
    """The nearest right neighbours."""
    assert _faults("ephemeral", spec) == []


def _pod_faults(name: str, *volumes: dict[str, Any]) -> list[str]:
    """Where a pod of this name has faults in its volumes."""
    whole = {"containers": [{"name": "app", "image": "i"}], "volumes": list(volumes)}
    pod = Pod.from_manifest({"metadata": {"name": name}, "spec": whole})
    return [one.path.removeprefix("$.spec.") for one in api_faults(pod)]


def test_a_claim_that_is_made_for_a_pod_is_not_named_beside() -> None:
    """It has the pod's name, and the volume's."""
    made = {"name": "v", "ephemeral": _claim()}
    named = {"name": "w", "persistentVolumeClaim": {"claimName": "web-v"}}
    assert _pod_faults("web", made, named) == ["volumes[1].persistentVolumeClaim.claimName"]
    assert _pod_faults("other", made, named) == []


def test_a_claim_that_is_made_has_a_name_of_253_characters() -> None:
    """Those of the pod and the volume, with a `-` between them."""
    made = {"name": "v", "ephemeral": _claim()}
    assert _pod_faults("a" * 251, made) == []
    assert _pod_faults("a" * 252, made) == ["volumes[0].name"]


def test_an_initiator_of_its_own_leaves_64_characters() -> None:
    """Of the volume's name and the portal."""
    portal = "a" * 62
    own = {**ISCSI, "initiatorName": ISCSI["iqn"]}
    assert _pod_faults("web", {"name": "v", "iscsi": {**own, "targetPortal": portal}}) == []
    assert _pod_faults("web", {"name": "vv", "iscsi": {**ISCSI, "targetPortal": portal}}) == []
    assert _pod_faults("web", {"name": "vv", "iscsi": {**own, "targetPortal": portal}}) == ["volumes[0].name"]
