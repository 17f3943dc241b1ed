"""Hypothesis strategies for Pod manifests, sound and broken, and for pods."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from hypothesis import strategies as st

from nodealloc import _attrs as attrs
from nodealloc.podspec import Json, Pod

__all__ = ["BrokenManifest", "broken_manifests", "manifests", "pods"]

_Tree: TypeAlias = dict[str, Json]

_MAYBE = st.booleans()
_NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
_SHARES: st.SearchStrategy[Json] = st.sampled_from(["100m", "250m", "1500m", 0.5])
_WHOLE: st.SearchStrategy[Json] = st.sampled_from([1, 1, 2, "2", "3000m", 4])
_MEMORY: st.SearchStrategy[Json] = st.sampled_from(["1Mi", "64Mi", "200M", "256Mi", "1Gi", "1e6", 1 << 27])


@st.composite
def _resources(draw: st.DrawFn, extended: Sequence[str]) -> _Tree:
    """Of one container: whole CPUs or shares of one, limits like the requests, above them, or none."""
    devices: _Tree = {name: draw(st.integers(0, 2)) for name in extended if draw(_MAYBE)}
    match draw(st.sampled_from(["whole", "whole", "shares", "burstable", "none"])):
        case "whole":
            return {"limits": {"cpu": draw(_WHOLE), "memory": draw(_MEMORY), **devices}}
        case "shares":
            return {"limits": {"cpu": draw(_SHARES), "memory": draw(_MEMORY), **devices}}
        case "burstable":
            return {"requests": {"cpu": draw(_SHARES), "memory": "1Mi"}, "limits": {"cpu": 8, **devices}}
        case _:
            return {"limits": devices} if devices else {}


@st.composite
def manifests(
    draw: st.DrawFn,
    *,
    name: str | None = None,
    extended: Sequence[str] = ("example.com/gpu",),
    most_containers: int = 3,
) -> Mapping[str, Json]:
    """A manifest that is read without a fault: init containers, sidecars, volumes, any QoS class.

    Args:
        draw: Given by Hypothesis.
        name: Of the pod, and its uid; None draws one and leaves the uid out.
        extended: Device resources that containers may ask for.
        most_containers: Init containers at most, and main ones at most.
    """
    volumes = draw(st.lists(_NAMES, max_size=2, unique=True))
    kinds = draw(st.lists(st.sampled_from(["init", "sidecar"]), max_size=most_containers))
    kinds += ["main"] * draw(st.integers(1, most_containers))
    made: list[_Tree] = []
    for place, kind in enumerate(kinds):
        one: _Tree = {"name": f"{kind}-{place}", "resources": draw(_resources(extended))}
        if kind == "sidecar":
            one["restartPolicy"] = "Always"
        mounts = draw(_MAYBE)
        if volumes and mounts:
            one["volumeMounts"] = [{"name": draw(st.sampled_from(volumes)), "mountPath": "/data"}]
        if draw(_MAYBE):
            one["env"] = [{"name": "MODE", "value": draw(st.text(max_size=5))}]
        made.append(one)
    metadata: _Tree = {"name": name or draw(_NAMES)}
    if name is not None:
        metadata["uid"] = name
    named = list(zip(kinds, made, strict=True))
    spec: _Tree = {"containers": [one for kind, one in named if kind == "main"]}
    if named[0][0] != "main":
        spec["initContainers"] = [one for kind, one in named if kind != "main"]
    if volumes:
        spec["volumes"] = [{"name": volume, "emptyDir": {}} for volume in volumes]
    head: _Tree = {"apiVersion": "v1", "kind": "Pod"} if draw(_MAYBE) else {}
    return {**head, "metadata": metadata, "spec": spec}


def pods(
    *, name: str | None = None, extended: Sequence[str] = ("example.com/gpu",), most_containers: int = 3
) -> st.SearchStrategy[Pod]:
    """The pod of a manifest; arguments as of `manifests`."""
    return manifests(name=name, extended=extended, most_containers=most_containers).map(Pod.from_manifest)


@attrs.frozen
class BrokenManifest:
    """A manifest with one fault.

    Attributes:
        manifest: As it would be handed over.
        path: Of the fault, as the error has to name it.
    """

    manifest: object
    path: str


def broken_manifests() -> st.SearchStrategy[BrokenManifest]:
    """A sound manifest in which one thing was broken."""
    return st.builds(_broken, manifests(), st.sampled_from(sorted(_FAULTS)))


def _broken(manifest: Mapping[str, Json], path: str) -> BrokenManifest:
    tree = copy.deepcopy(dict(manifest))
    metadata, spec = tree["metadata"], tree["spec"]
    assert isinstance(metadata, dict)
    assert isinstance(spec, dict)
    containers = spec["containers"]
    assert isinstance(containers, list)
    first = containers[0]
    assert isinstance(first, dict)
    return BrokenManifest(_FAULTS[path](_Parts(tree, metadata, spec, containers, first)) or tree, path)


@attrs.frozen
class _Parts:
    """Where to break a manifest."""

    tree: _Tree
    metadata: _Tree
    spec: _Tree
    containers: list[Json]
    first: _Tree


def _limits(parts: _Parts, **limits: Json) -> None:
    parts.first["resources"] = {"limits": {name.replace("_", "/"): one for name, one in limits.items()}}


_MAIN = "$.spec.containers[0]"
_FAULTS: Final[Mapping[str, Callable[[_Parts], object]]] = {
    "$": lambda _: ["no", "mapping"],
    "$.kind": lambda at: at.tree.update(kind="Deployment"),
    "$.apiVersion": lambda at: at.tree.update(apiVersion="v2"),
    "$.metadata": lambda at: at.tree.update(metadata=None),
    "$.metadata.name": lambda at: at.metadata.update(name="Not_A_Name"),
    "$.metadata.uid": lambda at: at.metadata.update(uid="../etc"),
    "$.metadata.labels": lambda at: at.metadata.update(labels="web"),
    "$.spec": lambda at: at.tree.pop("spec") and None,
    "$.spec.containers": lambda at: at.containers.clear(),
    _MAIN: lambda at: at.containers.__setitem__(0, "app"),
    f"{_MAIN}.name": lambda at: at.first.update(name="app/1"),
    f"{_MAIN}.restartPolicy": lambda at: at.first.update(restartPolicy="Always"),
    f"{_MAIN}.command": lambda at: at.first.update(command="sleep 1"),
    f"{_MAIN}.volumeMounts": lambda at: at.first.update(volumeMounts=[{"name": "gone", "mountPath": "/x"}]),
    f"{_MAIN}.resources.limits.cpu": lambda at: _limits(at, cpu="-1"),
    f"{_MAIN}.resources.limits.memory": lambda at: _limits(at, memory="1 GB"),
    f"{_MAIN}.resources.limits.gpu": lambda at: _limits(at, gpu=1),
    f"{_MAIN}.resources.limits.example.com/gpu": lambda at: _limits(at, **{"example.com_gpu": "500m"}),
    f"{_MAIN}.resources.requests.cpu": lambda at: at.first.update(
        resources={"requests": {"cpu": 2}, "limits": {"cpu": 1}}
    ),
}
"""Path of a fault to how it is made; answers with the whole where that was replaced."""
