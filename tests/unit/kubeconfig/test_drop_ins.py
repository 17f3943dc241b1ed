"""A configuration as nodes have it: with fields that nothing here acts upon, and a folder of drop-ins."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from nodealloc.errors import DecodeError, Fault
from nodealloc.kubeconfig import kubelet_config, read_kubelet_config

KIND = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}


def write(path: Path, **fields: object) -> Path:
    """A file of a configuration with these fields."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**KIND, **fields}))
    return path


def test_a_file_of_a_kubelet_may_say_what_nothing_here_acts_upon(tmp_path: Path) -> None:
    """Whoever asks to be told reads the rest of it; a value that makes no sense stays a fault."""
    said = {"maxPods": 20, "authentication": {"anonymous": {"enabled": False}}, "newField": 1}
    told: list[Fault] = []
    assert kubelet_config(said, unread=told.append).max_pods == 20
    assert [one.path for one in told] == ["$.authentication", "$.newField"]
    with pytest.raises(DecodeError, match="maxPods"):
        kubelet_config({**said, "maxPods": "many"}, unread=told.append)
    told.clear()
    path = write(tmp_path / "kubelet.yaml", **said)
    assert read_kubelet_config(path, unread=told.append).max_pods == 20
    assert len(told) == 2
    with pytest.raises(DecodeError, match="2 faults"):
        read_kubelet_config(path)


def test_drop_ins_are_laid_over_a_file_in_the_order_of_their_names(tmp_path: Path) -> None:
    """The last that says something counts; lists as a whole, mappings key by key."""
    path = write(
        tmp_path / "kubelet.yaml",
        maxPods=10,
        podsPerCore=3,
        clusterDNS=["10.0.0.1", "10.0.0.2"],
        systemReserved={"cpu": "1", "memory": "1Gi"},
    )
    folder = tmp_path / "kubelet.conf.d"
    write(folder / "20-b.conf", maxPods=30, clusterDNS=["10.0.0.3"])
    write(folder / "10-a.conf", maxPods=20, systemReserved={"cpu": None, "memory": "2Gi"}, podsPerCore=None)
    write(folder / "15" / "a.conf", maxPods=25, staticPodPath="manifests")
    (folder / "99.yaml").write_text("no configuration")
    config = read_kubelet_config(path, drop_ins=folder)
    assert (config.max_pods, config.pods_per_core, config.cluster_dns) == (30, 0, ("10.0.0.3",))
    assert config.system_reserved == {"memory": "2Gi"}
    assert config.static_pod_path == str(folder / "15" / "manifests")


def test_a_drop_in_adds_to_the_evictions_that_a_kubelet_has_by_itself(tmp_path: Path) -> None:
    """They stand in the configuration before anything is laid over it; null takes them out."""
    path, folder = write(tmp_path / "kubelet.yaml"), tmp_path / "d"
    file = write(folder / "a.conf", evictionHard={"memory.available": "1Gi"})
    signals = kubelet_config({}).eviction_hard
    found = read_kubelet_config(path, drop_ins=folder).eviction_hard
    assert found == {**signals, "memory.available": "1Gi"}
    assert len(found) > 1
    write(path, evictionHard={})
    assert read_kubelet_config(path, drop_ins=folder).eviction_hard == {"memory.available": "1Gi"}
    write(file, evictionHard=None)
    assert read_kubelet_config(path, drop_ins=folder).eviction_hard == {}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"maxPod": 3}, "did you mean maxPods"),
        ({"port": 10250}, "is not supported"),
        ({"kind": "Pod"}, "expected kubelet.config"),
    ],
)
def test_what_is_wrong_with_a_drop_in_is_told_with_its_file(
    tmp_path: Path, fields: dict[str, object], words: str
) -> None:
    """Not with that of the configuration that it would have been laid over."""
    path, file = write(tmp_path / "kubelet.yaml", maxPods=3), tmp_path / "d" / "a.conf"
    write(file, **fields)
    with pytest.raises(DecodeError, match=words) as caught:
        read_kubelet_config(path, drop_ins=tmp_path / "d")
    assert caught.value.source == str(file)


def test_a_folder_of_drop_ins_that_is_not_there_is_named(tmp_path: Path) -> None:
    """A kubelet does not start without it."""
    with pytest.raises(DecodeError, match=r"absent: cannot be listed: .*; name a folder of \*\.conf files"):
        read_kubelet_config(write(tmp_path / "kubelet.yaml"), drop_ins=tmp_path / "absent")


def test_values_of_a_real_node_that_nothing_acts_upon_are_left_out_and_told() -> None:
    """Installers write them into each kubelet's file: whoever takes one over had to edit it first."""
    told: list[Fault] = []
    gates = {"RotateKubeletServerCertificate": True, "MemoryQoS": True, "GracefulNodeShutdown": False}
    said = {
        "failSwapOn": True,
        "registerNode": True,
        "imageGCHighThresholdPercent": 85,
        "featureGates": gates,
        "maxPods": 20,
    }
    with pytest.raises(DecodeError, match="4 faults"):
        kubelet_config(said)
    config = kubelet_config(said, unread=told.append)
    assert [fault.path for fault in told] == [
        "$.failSwapOn",
        "$.registerNode",
        "$.imageGCHighThresholdPercent",
        "$.featureGates.RotateKubeletServerCertificate",
    ]
    assert "is 85, which nothing here acts upon" in told[2].reason
    left = {"maxPods": 20, "featureGates": {"MemoryQoS": True, "GracefulNodeShutdown": False}}
    assert config == kubelet_config(left)


@pytest.mark.parametrize(
    "said",
    [
        {"failSwapOn": "yes"},
        {"failSwapOn": 1},
        {"imageGCHighThresholdPercent": 101},
        {"imageGCHighThresholdPercent": -1},
        {"imageGCHighThresholdPercent": True},
        {"featureGates": {"Other": "true"}},
        {"featureGates": ["Other"]},
        {"cgroupsPerQOS": False},
        {"cgroupDriver": "other"},
        {"memorySwap": {"swapBehavior": "UnlimitedSwap"}},
    ],
)
def test_a_value_that_changes_what_pods_get_or_is_none_is_a_fault_all_the_same(
    said: Mapping[str, object],
) -> None:
    """Nothing that a kubelet would refuse, and nothing that confines pods otherwise, is left out."""
    told: list[Fault] = []
    with pytest.raises(DecodeError):
        kubelet_config(said, unread=told.append)
    assert told == []
