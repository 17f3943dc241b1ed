"""A pod as a manifest again."""

from __future__ import annotations

from collections.abc import Mapping

from nodealloc._frozen import thawed
from nodealloc._reading import Json
from nodealloc._wire import written
from nodealloc.podspec._fields import PodFields
from nodealloc.podspec._model import Container, Resources, Volume, VolumeUse

__all__ = ["manifest_of", "use_manifest", "volume_manifest"]


def manifest_of(pod: PodFields, /) -> dict[str, Json]:
    """The manifest of a pod, without what has its default."""
    metadata: dict[str, Json] = {
        "name": pod.name,
        "namespace": pod.namespace,
        "uid": pod.uid,
        "labels": dict(pod.labels),
        "annotations": dict(pod.annotations),
        "creationTimestamp": pod.creation_timestamp,
        "deletionTimestamp": pod.deletion_timestamp,
    }
    metadata = {key: one for key, one in metadata.items() if one}
    if pod.deletion_grace_period_seconds is not None:
        metadata["deletionGracePeriodSeconds"] = pod.deletion_grace_period_seconds
    found = written(pod)
    spec: dict[str, Json] = dict(found) if isinstance(found, Mapping) else {}
    for key, containers in (
        ("initContainers", pod.init_containers),
        ("containers", pod.containers),
        ("ephemeralContainers", pod.ephemeral_containers),
    ):
        if containers:
            spec[key] = [_container(one) for one in containers]
    if pod.volumes:
        spec["volumes"] = [volume_manifest(one) for one in pod.volumes]
    if pod.overhead:
        spec["overhead"] = _amounts(pod.overhead)
    for path, one in pod.carried.items():
        section, _, key = path.partition(".")
        (metadata if section == "metadata" else spec)[key] = thawed(one)
    status: dict[str, Json] = {"status": thawed(dict(pod.status))} if pod.status else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, **status}


def _container(container: Container) -> dict[str, Json]:
    found = written(container)
    fields: dict[str, Json] = dict(found) if isinstance(found, Mapping) else {}
    resources: dict[str, Json] = {
        "requests": _amounts(container.requests),
        "limits": _amounts(container.limits),
        "claims": written(container.claims),
    }
    resources = {key: one for key, one in resources.items() if one}
    if resources:
        fields["resources"] = resources
    if container.restartable:
        fields["restartPolicy"] = "Always"
    mounts: list[Json] = [use_manifest(one) for one in container.volumes if not one.block]
    blocks: list[Json] = [
        {"name": one.name, "devicePath": one.path} for one in container.volumes if one.block
    ]
    if mounts:
        fields["volumeMounts"] = mounts
    if blocks:
        fields["volumeDevices"] = blocks
    return fields


def use_manifest(use: VolumeUse) -> dict[str, Json]:
    """Of a mount."""
    more: dict[str, Json] = {
        "readOnly": use.read_only,
        "subPath": use.sub_path,
        "subPathExpr": use.sub_path_expr,
        "mountPropagation": use.propagation if use.propagation != "None" else "",
        "recursiveReadOnly": use.recursive_read_only,
    }
    return {"name": use.name, "mountPath": use.path, **{key: one for key, one in more.items() if one}}


def volume_manifest(volume: Volume) -> dict[str, Json]:
    """Of a volume."""
    return {"name": volume.name, volume.kind: thawed(dict(volume.spec))}


def _amounts(amounts: Resources) -> dict[str, Json]:
    return {name: str(amount) for name, amount in amounts.items()}
