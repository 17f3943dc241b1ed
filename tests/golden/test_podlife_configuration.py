"""What a kubelet asked a runtime for, made again from the pods of the recorded stories."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import attrs
import pytest
from google.protobuf.message import Message

from nodealloc._proto import runtime_v1_pb2 as wire
from nodealloc.cgroups import PodOptions
from nodealloc.cri._requests import encode_create, encode_run
from nodealloc.idset import CPUSet
from nodealloc.podlife import (
    ContainerConfigError,
    ContainerRunOptions,
    ImageFacts,
    NodeSettings,
    container_config,
    sandbox_config,
)
from nodealloc.podspec import Container, Pod, Volume
from nodealloc.runtime import DnsConfig, PortMapping

VECTORS = Path(__file__).parent.parent / "vectors"
NODE = NodeSettings(
    name="n1",
    memory_capacity_bytes=25276514304,
    cluster_dns=("192.0.2.10",),
    cluster_domain="cluster.test",
    resolver=DnsConfig(servers=("192.0.2.1",), searches=("example.test",)),
    limits=PodOptions(hugepage_sizes=(2 << 20, 1 << 30)),
)
SERVICES = {
    "KUBERNETES_PORT": "tcp://10.96.0.1:443",
    "KUBERNETES_PORT_443_TCP": "tcp://10.96.0.1:443",
    "KUBERNETES_PORT_443_TCP_ADDR": "10.96.0.1",
    "KUBERNETES_PORT_443_TCP_PORT": "443",
    "KUBERNETES_PORT_443_TCP_PROTO": "tcp",
    "KUBERNETES_SERVICE_HOST": "10.96.0.1",
    "KUBERNETES_SERVICE_PORT": "443",
    "KUBERNETES_SERVICE_PORT_HTTPS": "443",
}
ROOT = 'container has runAsNonRoot and image will run as root (pod: "q-n1_default(<uid>)", container: a)'
IMAGE = ImageFacts(id="sha256:1")
FOLDERS = {"emptyDir": "kubernetes.io~empty-dir", "configMap": "kubernetes.io~configmap"}
OURS = ("io.kubernetes.container.hash", "nodealloc.io/")
"""How annotations begin that say from what something was made: in the stories there are none."""


class Objects:
    """What the API server of the stories has: one config map, in one of them late."""

    def config_map(self, namespace: str, name: str, /) -> dict[str, str] | None:
        """It has one key."""
        return {"k": "v"} if (namespace, name) == ("default", "cm") else None

    def secret(self, namespace: str, name: str, /) -> dict[str, bytes] | None:
        """There is none."""
        del namespace, name
        return None


class NoObjects(Objects):
    """The same, before that config map is there."""

    def config_map(self, namespace: str, name: str, /) -> dict[str, str] | None:
        """There is none."""
        del namespace, name
        return None


def stories(kind: str) -> list[dict[str, Any]]:
    """All recorded stories of a kind."""
    with gzip.open(VECTORS / f"{kind}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def patched(old: Any, patch: Any) -> Any:
    """A document after a patch: mappings are merged, and lists of what has names by name."""
    if isinstance(old, dict) and isinstance(patch, dict):
        return {**old, **{key: patched(old.get(key), value) for key, value in patch.items()}}
    if isinstance(old, list) and all("name" in one for one in (*old, *patch)):
        byname = {one["name"]: one for one in old}
        return [
            *({**byname, **{one["name"]: patched(byname.get(one["name"]), one) for one in patch}}.values())
        ]
    return patch


def written(story: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], bool]]:
    """Manifests in the order of the steps, patched ones too, and whether each is of the API."""
    known: dict[str, dict[str, Any]] = {}
    for step in story["steps"]:
        manifest = step.get("manifest")
        if step["do"] == "api_patch" and step["name"] in known:
            manifest = patched(known[step["name"]], step["patch"])
        if isinstance(manifest, dict) and manifest.get("kind") == "Pod":
            is_api = step["do"].startswith("api_")
            if is_api:
                known[manifest["metadata"]["name"]] = manifest
            yield manifest, is_api


def editions(story: Mapping[str, Any]) -> dict[str, list[Pod]]:
    """Pods of a story by their name on the node, oldest first."""
    found: dict[str, list[Pod]] = {}
    for manifest, is_api in written(story):
        try:
            pod = Pod.from_manifest(manifest, unread=lambda _: None)
        except ValueError:
            continue
        name = pod.name if is_api else f"{pod.name}-n1"
        marks = {"kubernetes.io/config.source": "api" if is_api else "file"}
        if not is_api:
            marks["kubernetes.io/config.hash"] = "<uid>"
        found.setdefault(name, []).append(
            attrs.evolve(pod, uid="<uid>", name=name, annotations={**pod.annotations, **marks})
        )
    return found


def said(message: Message) -> dict[str, Any]:
    """The fields of a message that are set, as the stories write them."""
    return {field.name: plain(value) for field, value in message.ListFields()}


def plain(value: object) -> Any:
    """One value of a message."""
    if isinstance(value, Message):
        return said(value)
    if isinstance(value, str | int):
        return value
    if isinstance(value, Mapping):
        return dict(value)
    return [plain(one) for one in cast("Sequence[object]", value)]


def volume_path(volume: Volume) -> str:
    """Where a volume of the stories lies on the node."""
    if volume.kind == "hostPath":
        return str(volume.spec["path"])
    return f"/var/lib/kubelet/pods/<uid>/volumes/{FOLDERS[volume.kind]}/{volume.name}"


def asked_container(
    pod: Pod, container: Container, attempt: int, want: Mapping[str, Any], *, is_api: bool, late: bool
) -> dict[str, Any]:
    """What we would ask for; CPUs are what somebody else gave it."""
    cpus = want["linux"]["resources"].get("cpuset_cpus")
    config = container_config(
        pod,
        container,
        attempt=attempt,
        image=IMAGE,
        node=attrs.evolve(NODE, services=SERVICES if is_api else {}),
        options=ContainerRunOptions(
            cpus=CPUSet.parse(cpus) if cpus else None,
            volumes={one.name: volume_path(one) for one in pod.volumes if one.kind in {*FOLDERS, "hostPath"}},
        ),
        source=Objects() if late else NoObjects(),
    )
    sandbox = sandbox_config(pod, attempt=0, node=NODE)
    data = encode_create("box", config, sandbox)
    got = said(wire.CreateContainerRequest.FromString(data).config)
    got["image"] = got["image"]["user_specified_image"]
    got["annotations"] = without_ours(got["annotations"])
    for mount in got["mounts"]:
        mount["host_path"] = re.sub(r"(/containers/[^/]+/)\d+$", r"\1<n>", mount["host_path"])
    return got


def without_ours(annotations: dict[str, Any]) -> dict[str, Any]:
    """The others."""
    return {key: one for key, one in annotations.items() if not key.startswith(OURS)}


def in_order_of_name(config: dict[str, Any]) -> dict[str, Any]:
    """Variables by name: the kubelet draws their order by lot."""
    if "envs" not in config:
        return config
    return {**config, "envs": sorted(config["envs"], key=lambda one: str(one["key"]))}


def recorded(what: str) -> Iterator[tuple[str, bool, list[Pod], str, dict[str, Any]]]:
    """Every configuration that was asked for, with the editions of its pod."""
    for kind in ("kubelet_stories", "kubelet_api_stories"):
        for story in stories(kind):
            pods = editions(story)
            for name, want in story["seen"].get(what, {}).items():
                pod = name.partition("/")[0].partition("@")[0].partition("#")[0]
                yield (
                    f"{kind} {story['id']} {name}",
                    kind == "kubelet_api_stories",
                    pods.get(pod, []),
                    name,
                    want,
                )


def test_containers_are_asked_for_as_recorded() -> None:
    """All but the hash, which the stories leave out, of all containers of all stories.

    Of a pod that was edited, one of its editions has to give what was asked for.
    """
    count = 0
    for where, is_api, pods, name, want in recorded("container_config"):
        container, _, attempt = name.partition("/")[2].partition("@")
        tried = [
            in_order_of_name(
                asked_container(pod, one, int(attempt), want, is_api=is_api, late="opt" not in name)
            )
            for pod in pods
            for one in (*pod.all_containers, *pod.ephemeral_containers)
            if one.name == container
        ]
        if not tried:
            continue
        count += 1
        assert in_order_of_name(want) in tried, f"{where}\n{json.dumps(want)}\n{json.dumps(tried[-1])}"
    assert count == 253


def test_sandboxes_are_asked_for_as_recorded() -> None:
    """All but the cgroup, which is given, and the uid, which the stories leave out."""
    count = 0
    for where, _, pods, name, want in recorded("sandbox_config"):
        tried = []
        for pod in pods:
            config = sandbox_config(
                pod, attempt=int(name.partition("@")[2]), node=NODE, cgroup_parent="parent"
            )
            got = said(wire.RunPodSandboxRequest.FromString(encode_run(config)).config)
            del got["metadata"]["uid"]
            annotations = without_ours(got.pop("annotations"))
            tried.append({**got, "annotations": annotations} if annotations else got)
        want["linux"]["cgroup_parent"] = "parent"
        if not tried:
            continue
        count += 1
        assert want in tried, f"{where}\n{json.dumps(want)}\n{json.dumps(tried[-1])}"
    assert count == 222


def test_ports_of_sidecars_lead_to_the_pod() -> None:
    """A port of the node is one, whichever container serves it; the kubelet forgets those of sidecars."""
    manifest = {
        "metadata": {"name": "web", "uid": "u"},
        "spec": {
            "containers": [{"name": "app", "ports": [{"containerPort": 80}]}],
            "initContainers": [
                {"name": "setup", "ports": [{"containerPort": 1}]},
                {
                    "name": "proxy",
                    "restartPolicy": "Always",
                    "ports": [{"containerPort": 81, "hostPort": 8081}],
                },
            ],
        },
    }
    config = sandbox_config(Pod.from_manifest(manifest), attempt=0, node=NODE)
    assert config.ports == (PortMapping(container_port=81, host_port=8081), PortMapping(container_port=80))


@pytest.mark.parametrize(
    ("kind", "number", "pod", "words"),
    [
        ("kubelet_stories", 47, "envcm-n1", "couldn't get configMap default/cm, no kubeClient defined"),
        ("kubelet_stories", 59, "q-n1", "couldn't get secret default/s, no kubeClient defined"),
        ("kubelet_api_stories", 13, "env", 'configmap "cm" not found'),
        (
            "kubelet_stories",
            80,
            "q-n1",
            ROOT,
        ),
    ],
)
def test_what_cannot_be_configured_says_so_as_recorded(kind: str, number: int, pod: str, words: str) -> None:
    """Reason and words are those that users of the stories saw."""
    story = next(one for one in stories(kind) if one["id"] == number)
    found = editions(story)[pod][0]
    source = NoObjects() if kind == "kubelet_api_stories" else None
    with pytest.raises(ContainerConfigError) as caught:
        container_config(found, found.containers[0], attempt=0, image=IMAGE, node=NODE, source=source)
    assert (caught.value.reason, str(caught.value)) == ("CreateContainerConfigError", words)
