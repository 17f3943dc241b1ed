"""Slips of whoever writes a first program: the error names what was written, where it was written."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nodealloc.checkpoint import MemoryStore
from nodealloc.devices import Device, DeviceAllocator
from nodealloc.devices.plugins import DeviceAdvisor
from nodealloc.errors import ConfigurationError, DecodeError
from nodealloc.node import FORMATS, NodeAllocator
from nodealloc.podlife.preparers import CgroupPreparer, FolderPreparer, StatusPreparer
from nodealloc.podsources import FolderSource, HttpSource, is_mirror_of, mirror_of
from nodealloc.podsources._documents import pods_in
from nodealloc.podspec import Pod, api_faults, container_hash, kubelet_hash, resources
from nodealloc.topology import NumaTopology, Snapshot

NODES = DeviceAllocator(nodes=(0, 1))
HELD = NodeAllocator(
    Snapshot(numa=NumaTopology(nodes=(0, 1)), allocators=(NODES,)), MemoryStore(FORMATS)
).allocator(DeviceAllocator)
GPU = "example.com/gpu"
NOTHING: Any = None


def test_amounts_that_are_none_are_named() -> None:
    """Of several amounts each that is none is told with the name of its resource."""
    with pytest.raises(DecodeError) as caught:
        resources({"cpu": 1, "memory": "1Gb", "pods": NOTHING})
    assert [fault.path for fault in caught.value.faults] == ["$.memory", "$.pods"]
    assert "found '1Gb'" in caught.value.faults[0].reason
    assert "found nothing" in caught.value.faults[1].reason


@pytest.mark.parametrize(
    ("devices", "words"),
    [
        ([Device("gpu-0"), Device("gpu-0", numa_nodes=2)], "came twice"),
        ([Device("")], "without id"),
        ([Device("gpu-0", health="healthy")], "say 'Healthy'"),
        ([Device("gpu-0", numa_nodes=1 << 5)], "NUMA nodes [5]"),
    ],
)
def test_devices_that_somebody_says_are_meant(devices: list[Device], words: str) -> None:
    """What a plugin's list is forgiven for is a slip in a program: one device fewer is a wrong answer."""
    with pytest.raises(ConfigurationError, match=r"example\.com/gpu") as caught:
        NODES.with_devices(GPU, devices)
    assert words in str(caught.value)


@pytest.mark.parametrize("resource", ["", "cpu", "memory", "hugepages-2Mi", "ephemeral-storage", "pods"])
def test_what_others_count_is_no_device(resource: str) -> None:
    """CPUs that two allocators answer for would be granted by both; a kubelet refuses such a plugin."""
    with pytest.raises(ConfigurationError, match=r"with_devices, resource: .* found '") as caught:
        NODES.with_devices(resource, [Device("0")])
    assert repr(resource) in str(caught.value)
    assert NODES.with_devices("gpu", [Device("0")]).holdings() == ()


def test_a_mask_below_none_is_refused_with_its_device() -> None:
    """-1 is how others say that a device has no place; None is how it is said here."""
    with pytest.raises(ConfigurationError, match=r"device gpu-0, numa_nodes: .*or None, found -1"):
        NODES.with_devices(GPU, [Device("gpu-0", numa_nodes=-1)])


@pytest.mark.parametrize(
    ("call", "where"),
    [
        (lambda: StatusPreparer(NOTHING), "StatusPreparer: told"),
        (lambda: FolderPreparer(NOTHING, NOTHING), "FolderPreparer: pods"),
        (lambda: CgroupPreparer(NOTHING, NOTHING, NOTHING), "CgroupPreparer: tree"),
        (lambda: HELD.alter(NOTHING), r"HeldAllocator\.alter: change"),
        (lambda: DeviceAdvisor(NOTHING), "DeviceAdvisor: plugins"),
        (lambda: container_hash(NOTHING), "container_hash: container"),
        (lambda: kubelet_hash(NOTHING), "kubelet_hash: container"),
        (lambda: mirror_of(NOTHING), "mirror_of: pod"),
        (lambda: is_mirror_of(NOTHING, NOTHING), "is_mirror_of: mirror"),
    ],
)
def test_nothing_is_refused_where_it_was_handed_in(call: Callable[[], object], where: str) -> None:
    """The error names the function that was called, and it comes at the call."""
    with pytest.raises(ConfigurationError, match=where):
        call()


@pytest.mark.parametrize("name", ["Node_1", "a b", "-n1", "x" * 300])
def test_a_node_has_a_name_that_a_node_can_have(tmp_path: Path, name: str) -> None:
    """It would have been a fault of each manifest, at a field that nobody wrote."""
    with pytest.raises(ConfigurationError, match=r"FolderSource: node_name: .* is no valid name"):
        FolderSource(tmp_path, node_name=name)
    with pytest.raises(ConfigurationError, match=r"HttpSource: node_name: .* is no valid name"):
        HttpSource("http://127.0.0.1:1/pods", node_name=name)


def test_a_nodes_name_may_be_left_out_and_written_large(tmp_path: Path) -> None:
    """A kubelet writes it small behind a pod's name."""
    for name in ("", "NODE-1", "n1.example.com"):
        FolderSource(tmp_path, node_name=name)


def _answer(*images: str) -> bytes:
    """A list of pods, in which one without an image is wrong."""
    items = [
        {"metadata": {"name": f"p{n}"}, "spec": {"containers": [{"name": "a", "image": image}]}}
        for n, image in enumerate(images)
    ]
    return json.dumps({"apiVersion": "v1", "kind": "PodList", "items": items}).encode()


@pytest.mark.parametrize("is_lenient", [False, True])
def test_each_pod_that_is_wrong_in_an_answer_is_told(*, is_lenient: bool) -> None:
    """An answer counts as a whole, so whoever serves it mends all of them at once."""
    read = partial(pods_in, where="x", source="s", node_name="", is_lenient=is_lenient)
    with pytest.raises(DecodeError) as caught:
        list(read(_answer("ok", "", "ok", "")))
    assert [fault.path for fault in caught.value.faults] == [
        "$.items[1].spec.containers[0].image",
        "$.items[3].spec.containers[0].image",
    ]
    with pytest.raises(DecodeError) as caught:
        list(read(_answer(*[""] * 1000)))
    assert len(caught.value.faults) == 100


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        ("Deployment", "take the pod template out of its controller"),
        ("List", "write each of its pods by itself"),
        ("PodList", "write each of its pods by itself"),
    ],
)
def test_another_kind_is_told_with_what_to_do(kind: str, remedy: str) -> None:
    """A list has no controller and no template."""
    with pytest.raises(DecodeError, match=remedy):
        Pod.from_manifest({"apiVersion": "v1", "kind": kind, "items": []})


@pytest.mark.parametrize(
    ("mode", "words"),
    [("0o644", "'0o644' is a text; write a number such as 420"), (0o1000, "512 is no mode; 0 to 511")],
)
def test_a_mode_that_is_a_text_is_told_as_one(mode: object, words: str) -> None:
    """What YAML 1.2 reads as a number is none to a reader of YAML 1.1."""
    volume = {"name": "v", "downwardAPI": {"defaultMode": mode}}
    app = {"name": "a", "image": "a"}
    pod = Pod.from_manifest({"metadata": {"name": "p"}, "spec": {"containers": [app], "volumes": [volume]}})
    (fault,) = api_faults(pod)
    assert words in fault.reason
