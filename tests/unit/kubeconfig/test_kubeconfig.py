"""A KubeletConfiguration: every field is used, or refused by name; and what it comes to on a machine."""

from __future__ import annotations

import json
import os
import re
import threading
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import attrs
import pytest

from nodealloc._wire import camel, wire_of
from nodealloc.admission import Rules
from nodealloc.agent import AGENT_FORMATS, KUBELET, Remembered, remembering_editions
from nodealloc.cgroups import SwapBehavior, container_files, container_limits
from nodealloc.checkpoint import MemoryStore
from nodealloc.cpuset import CpuAllocator
from nodealloc.dsw_asw import InlineExecutor
from nodealloc.errors import ConfigurationError, DecodeError
from nodealloc.kubeconfig import (
    KubeletConfig,
    NodePlan,
    has_app_armor,
    kubelet_config,
    life_policy,
    machine_capacity,
    node_settings,
    pod_sources,
    read_kubelet_config,
)
from nodealloc.kubeconfig._configuration import NOT_SUPPORTED
from nodealloc.kubeconfig._durations import duration_s
from nodealloc.machine import machine_from_text
from nodealloc.node import NodeAllocator
from nodealloc.podspec import Container, Pod, resources
from nodealloc.runtime import DnsConfig
from nodealloc.testing.dsw_asw import VirtualClock
from nodealloc.testing.podsources import FakeSource
from nodealloc.topology import Placed
from nodealloc.verdicts import Admitted, NotYet
from tests.stories.rows import read, reason_to_skip

VECTORS = Path(__file__).parents[2] / "vectors"
KIND = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
POD = Pod(uid="u", name="p", containers=(Container(name="c"),))
MACHINE = machine_from_text("1 socket x 2 cores, memory=8Gi")


def config(folder: Path, **fields: object) -> KubeletConfig:
    """Read from a file with these fields."""
    path = folder / "kubelet.yaml"
    path.write_text(json.dumps({**KIND, **fields}))
    return read_kubelet_config(path)


def planned(config: KubeletConfig, folder: Path) -> NodePlan:
    """What it comes to on a small machine."""
    capacity = machine_capacity(MACHINE, folder=folder)
    return NodePlan.of(config, MACHINE, name="n1", capacity=capacity, kernel="6.1.0")


def test_an_empty_configuration_has_the_kubelets_defaults(tmp_path: Path) -> None:
    """Nothing has to be said."""
    found = config(tmp_path)
    assert (found.max_pods, found.topology_manager_policy) == (110, "none")
    assert found.file_check_frequency_s == 20.0


def test_relative_paths_begin_in_the_folder_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a kubelet, wherever the program was started; absolute ones and empty ones stay."""
    here = config(tmp_path, staticPodPath="./pods", resolvConf="../resolv.conf", podLogsDir="logs")
    folder = str(tmp_path)
    assert (here.static_pod_path, here.pod_logs_dir) == (f"{folder}/pods", f"{folder}/logs")
    assert here.resolv_conf == str(tmp_path.parent / "resolv.conf")
    monkeypatch.chdir(tmp_path)
    assert read_kubelet_config("kubelet.yaml") == here
    there = config(tmp_path, staticPodPath="/etc/pods", resolvConf="")
    assert (there.static_pod_path, there.resolv_conf) == ("/etc/pods", "")
    with pytest.raises(DecodeError, match="give an absolute path"):
        kubelet_config({"podLogsDir": "logs"})


def test_what_is_empty_has_the_kubelets_default_too(tmp_path: Path) -> None:
    """As kubeadm writes it; of the resolver nothing is an answer."""
    empty: dict[str, object] = {
        **dict.fromkeys(("fileCheckFrequency", "httpCheckFrequency", "syncFrequency"), "0s"),
        **dict.fromkeys(("runtimeRequestTimeout", "cpuManagerReconcilePeriod"), "0s"),
        **dict.fromkeys(("cgroupDriver", "cgroupRoot", "cpuManagerPolicy", "memoryManagerPolicy"), ""),
        **dict.fromkeys(("topologyManagerPolicy", "topologyManagerScope"), ""),
        "maxPods": 0,
    }
    assert config(tmp_path, **empty) == config(tmp_path)
    assert config(tmp_path, resolvConf="").resolv_conf == ""


@pytest.mark.parametrize("nothing", ["0", "0m", "0h0m0s", "0.0s", ".0ms", "0.1ns"])
def test_no_time_is_the_default_however_it_is_written(nothing: str) -> None:
    """`runtimeRequestTimeout: "0"` had every call of the runtime run out of time at once."""
    empty: dict[str, object] = {
        **dict.fromkeys(("fileCheckFrequency", "httpCheckFrequency", "syncFrequency"), nothing),
        **dict.fromkeys(("runtimeRequestTimeout", "cpuManagerReconcilePeriod"), nothing),
    }
    assert kubelet_config(empty) == kubelet_config({})
    assert kubelet_config({"cpuCFSQuotaPeriod": nothing}).cpu_cfs_quota_period_s < 1e-9


@pytest.mark.parametrize(
    ("gates", "words"),
    [
        ({}, "option distribute-cpus-across-cores needs featureGates: CPUManagerPolicyAlphaOptions: true"),
        ({"CPUManagerPolicyAlphaOptions": True}, ""),
    ],
)
def test_an_option_needs_the_feature_of_its_stage(tmp_path: Path, gates: dict[str, bool], words: str) -> None:
    """As a kubelet, which does not start with an alpha option alone."""
    options = {"distribute-cpus-across-cores": "true"}
    told = config(
        tmp_path,
        cpuManagerPolicy="static",
        cpuManagerPolicyOptions=options,
        reservedSystemCPUs="0",
        featureGates=gates,
    )
    with pytest.raises(ConfigurationError, match=words) if words else nullcontext():
        planned(told, tmp_path)


def test_options_of_a_policy_that_is_off_are_refused(tmp_path: Path) -> None:
    """They would mean nothing."""
    with pytest.raises(ConfigurationError, match="are of the policy static"):
        planned(config(tmp_path, cpuManagerPolicyOptions={"full-pcpus-only": "true"}), tmp_path)


def test_every_fault_is_told_by_the_name_of_its_field(tmp_path: Path) -> None:
    """What is not supported, what is no field, what is no number: all at once."""
    with pytest.raises(DecodeError) as caught:
        config(tmp_path, evictionSoft={"memory.available": "1Gi"}, maxPod=3, maxPods="many")
    told = str(caught.value)
    assert "nothing here acts upon it yet; leave it out @ $.evictionSoft" in told
    assert "did you mean maxPods? @ $.maxPod\n" in told
    assert "a whole number" in told


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("failSwapOn", True),
        ("cgroupDriver", "none"),
        ("featureGates", {"NodeSwap": True}),
        ("registerNode", True),
    ],
)
def test_a_value_that_is_not_supported_is_refused(tmp_path: Path, field: str, value: object) -> None:
    """A field may be used for some of its values alone."""
    with pytest.raises(DecodeError, match=r"is (not )?supported"):
        config(tmp_path, **{field: value})


@pytest.mark.parametrize(
    ("reservation", "words"),
    [
        ({"limits": {"memory": "1Gi"}}, "a numaNode is needed @ $.reservedMemory[0].numaNode"),
        (
            {"numaNode": "a", "limits": {}},
            "expected a whole number, found 'a' @ $.reservedMemory[0].numaNode",
        ),
        ({"numaNode": 0}, "a limits is needed @ $.reservedMemory[0].limits"),
        ({}, "a numaNode and a limits is needed @ $.reservedMemory[0]"),
    ],
)
def test_a_part_that_lacks_what_it_needs_is_named(
    tmp_path: Path, reservation: dict[str, object], words: str
) -> None:
    """What has no default is needed, whether it is absent or wrong."""
    with pytest.raises(DecodeError, match=re.escape(words) + "$"):
        config(tmp_path, reservedMemory=[reservation])


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("systemReserved", {"cpu": "-1"}, "systemReserved.cpu: cpu: -1 is asked for; ask for 0 or more"),
        ("kubeReserved", {"memory": ""}, "kubeReserved.memory: quantity '': not a quantity; write a number"),
        (
            "reservedMemory",
            [{"numaNode": 0, "limits": {"memory": "1GB"}}],
            "reservedMemory[0].limits.memory: quantity '1GB': not a quantity; write a number",
        ),
        ("reservedSystemCPUs", "a", "reservedSystemCPUs: CPU set: expected a decimal id, found 'a'"),
        ("memoryManagerPolicy", "static", "memoryManagerPolicy is 'static'; give None, Static, BestEffort"),
        ("cpuCFSQuotaPeriod", "2s", "cpuCFSQuotaPeriod is 2 s; give 1ms to 1s"),
    ],
)
def test_a_value_that_a_plan_refuses_is_told_by_the_name_of_its_field(
    tmp_path: Path, field: str, value: object, words: str
) -> None:
    """With what would be right."""
    with pytest.raises(ConfigurationError, match="^" + re.escape(words)):
        planned(config(tmp_path, **{field: value}), tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1: 2", "the key 1 is no text; put it in quotes @ $"),
        ("on: 2", "the key True is no text; put it in quotes @ $"),
        ("memoryThrottlingFactor: .nan", "expected a number, found nan @ $.memoryThrottlingFactor"),
        ("memoryThrottlingFactor: -.inf", "expected a number, found -inf @ $.memoryThrottlingFactor"),
        (f"memoryThrottlingFactor: 1{'0' * 400}", "expected a number, found an enormous number"),
    ],
)
def test_what_yaml_takes_for_another_kind_is_named_with_its_file(
    tmp_path: Path, text: str, words: str
) -> None:
    """A key that is no text, and a number that is none."""
    path = tmp_path / "kubelet.yaml"
    path.write_text("".join(f"{name}: {value}\n" for name, value in KIND.items()) + text)
    with pytest.raises(DecodeError, match=re.escape(f"{path}: {words}")):
        read_kubelet_config(path)


@pytest.mark.parametrize("name", ["", "A b", "n_1"])
def test_a_node_has_a_name_that_the_api_takes(tmp_path: Path, name: str) -> None:
    """It is a label's value, and stands in the names of static pods."""
    capacity = machine_capacity(MACHINE, folder=tmp_path)
    with pytest.raises(ConfigurationError, match=f"name of the node: '{name}' is no valid name"):
        NodePlan.of(config(tmp_path), MACHINE, name=name, capacity=capacity, kernel="6.1.0")


def test_memory_and_swap_of_cgroup_v2_follow_the_document(tmp_path: Path) -> None:
    """Each word reaches the options of pods; under cgroup v1 nothing of it is asked for."""
    told = config(
        tmp_path,
        featureGates={"MemoryQoS": True},
        memoryThrottlingFactor=0.5,
        memorySwap={"swapBehavior": "LimitedSwap"},
        singleProcessOOMKill=True,
    )
    capacity = machine_capacity(MACHINE, folder=tmp_path)
    of = partial(NodePlan.of, told, MACHINE, name="n1", capacity=capacity, kernel="6.1.0")
    pods = of(unified=True, swap_bytes=1 << 30).tree.pods
    assert (pods.memory_qos, pods.memory_throttling, pods.swap) == (True, 0.5, SwapBehavior.LIMITED)
    assert (pods.swap_capacity_bytes, pods.single_oom_kill, pods.unified) == (1 << 30, True, True)
    assert pods.allocatable_memory_bytes == planned(told, tmp_path).tree.root_limits.memory_bytes
    assert not of().tree.pods.memory_qos
    # Nobody says how a container ends that runs out of memory: as the kernel's cgroups have it.
    bare = partial(NodePlan.of, config(tmp_path), MACHINE, name="n1", capacity=capacity, kernel="6.1.0")
    assert [bare(unified=one).tree.pods.single_oom_kill for one in (True, False)] == [False, True]
    assert not container_files(POD, POD.containers[0], of().tree.pods, memory_capacity_bytes=1 << 33)


def test_what_a_kubelet_starts_with_is_taken(tmp_path: Path) -> None:
    """A threshold that keeps nothing, a period with its feature, single processes under cgroup v2."""
    told = config(
        tmp_path,
        evictionHard={"memory.available": "0%"},
        cpuCFSQuotaPeriod="50ms",
        featureGates={"CustomCPUCFSQuotaPeriod": True},
        singleProcessOOMKill=False,
        podLogsDir="/logs",
    )
    capacity = machine_capacity(MACHINE, folder=tmp_path)
    plan = NodePlan.of(told, MACHINE, name="n1", capacity=capacity, kernel="6.1.0", unified=True)
    assert (plan.tree.pods.period_us, plan.tree.pods.single_oom_kill) == (50_000, False)
    assert plan.view.allocatable["memory"].value == 8 << 30


def test_pods_use_no_pages_that_they_do_not_ask_for(tmp_path: Path) -> None:
    """Of each size that the machine has, also where its pool is empty."""
    machine = machine_from_text("1 socket x 2 cores, memory=8Gi, hugepages=2Mi:0/1Gi:2")
    capacity = machine_capacity(machine, folder=tmp_path)
    plan = NodePlan.of(config(tmp_path), machine, name="n1", capacity=capacity, kernel="6.1.0")
    assert container_limits(POD.containers[0], plan.tree.pods).hugepage_bytes == {2 << 20: 0, 1 << 30: 0}


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("memorySwap", {"swapBehavior": "Unlimited"}, "NoSwap or LimitedSwap"),
        ("memoryThrottlingFactor", 0, "more than 0 and at most 1"),
        ("memoryThrottlingFactor", 1.5, "more than 0 and at most 1"),
        ("memoryThrottlingFactor", "0.5", "a number"),
        ("podLogsDir", "/a/../b", r"is '/a/\.\./b'; write /b @ \$\.podLogsDir"),
        ("podLogsDir", "//logs/", "write /logs"),
        ("podLogsDir", "/lögs", "ASCII letters"),
    ],
)
def test_words_about_memory_mean_something(tmp_path: Path, field: str, value: object, words: str) -> None:
    """Or are refused with what there is."""
    with pytest.raises(DecodeError, match=words):
        config(tmp_path, **{field: value})


def test_another_kind_is_refused(tmp_path: Path) -> None:
    """A Pod is no configuration; nor is a list."""
    path = tmp_path / "pod.yaml"
    path.write_text("{apiVersion: v1, kind: Pod}")
    with pytest.raises(DecodeError, match=r"expected kubelet\.config\.k8s\.io/v1beta1 KubeletConfiguration"):
        read_kubelet_config(path)
    path.write_text("[]")
    with pytest.raises(DecodeError, match="expected an object"):
        read_kubelet_config(path)


def test_fields_may_say_their_kind() -> None:
    """A whole document is taken as it was loaded, and one of another kind is refused as such."""
    assert kubelet_config({**KIND, "maxPods": 20}) == kubelet_config({"maxPods": 20})
    with pytest.raises(DecodeError, match="is v1 Pod, expected kubelet"):
        kubelet_config({"apiVersion": "v1", "kind": "Pod", "spec": {}})
    with pytest.raises(DecodeError, match="is None KubeletConfiguration, expected kubelet"):
        kubelet_config({"kind": "KubeletConfiguration"})


def test_no_field_is_both_used_and_not_supported() -> None:
    """The two lists are apart."""
    used = {wire_of(one.metadata).key or camel(one.name) for one in attrs.fields(KubeletConfig)}
    assert not used & NOT_SUPPORTED
    assert {"clusterDNS", "cpuCFSQuota", "imageGCHighThresholdPercent", "reservedSystemCPUs"} <= used


def test_all_stories_that_can_be_played_have_a_configuration(tmp_path: Path) -> None:
    """No field that a recorded story sets is refused, unless the story needs what is not built yet."""
    for story in read(VECTORS / "kubelet_stories.jsonl.gz"):
        if not reason_to_skip(story) and story.name != "config-soft-without-grace":
            config(tmp_path, **story.settings)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1m30s", 90.0),
        ("500ms", 0.5),
        ("0", 0.0),
        ("2h", 7200.0),
        (".5s", 0.5),
        ("1.s", 1.0),
        ("2.5m.5s", 150.5),
        ("3\u00b5s", 3e-6),
        ("3\u03bcs", 3e-6),
    ],
)
def test_durations_are_read_as_go_writes_them(text: str, value: float) -> None:
    """Numbers with units, in a row."""
    assert duration_s(text) == value


@pytest.mark.parametrize("text", ["", "5", "s", "1 s", "1mm", ".s", "\u0663s", "1..5s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """A number without a unit is none."""
    with pytest.raises(ValueError, match="is no duration"):
        duration_s(text)


@pytest.mark.parametrize("text", ["9" * 400 + "h", "2562048h", "153722868m", "1h9223372036s"])
def test_what_go_cannot_count_is_no_duration(text: str) -> None:
    """It was taken, the longest of them for one without an end."""
    with pytest.raises(ValueError, match="longer than any duration; write 2562047h at most"):
        duration_s(text)
    assert duration_s("2562047h") == 2562047 * 3600


def test_a_reservation_is_taken_off_what_is_given_out(tmp_path: Path) -> None:
    """The system's and the agent's parts, and what eviction keeps free."""
    told = config(
        tmp_path,
        systemReserved={"memory": "1Gi"},
        reservedSystemCPUs="0",
        evictionHard={"memory.available": "1Gi"},
        cpuManagerPolicy="static",
    )
    built = planned(told, tmp_path)
    assert built.view.allocatable["memory"].value == 6 << 30
    assert built.view.allocatable["cpu"].value == 1
    assert built.tree.root_limits.memory_bytes == built.tree.pods.allocatable_memory_bytes == 7 << 30
    assert str(built.empty[CpuAllocator].shared) == "0-1"


def test_eviction_keeps_what_a_kubelet_keeps_where_nothing_is_said(tmp_path: Path) -> None:
    """The defaults hold as a whole where the field is absent; an empty one keeps nothing."""
    left = planned(config(tmp_path), tmp_path).view.allocatable
    capacity = machine_capacity(MACHINE, folder=tmp_path)
    assert left["memory"].value == (8 << 30) - (100 << 20)
    assert left["ephemeral-storage"].value == pytest.approx(
        capacity["ephemeral-storage"].value * 0.9, rel=1e-6
    )
    assert planned(config(tmp_path, evictionHard={}), tmp_path).view.allocatable["memory"].value == 8 << 30


@pytest.mark.parametrize(
    ("architecture", "label"), [("x86_64", "amd64"), ("aarch64", "arm64"), ("s390x", "s390x"), ("", None)]
)
def test_a_node_has_the_label_of_its_architecture(
    tmp_path: Path, architecture: str, label: str | None
) -> None:
    """In Go's words, as selectors of pods have it."""
    capacity = machine_capacity(MACHINE, folder=tmp_path)
    plan = NodePlan.of(
        config(tmp_path), MACHINE, name="n1", capacity=capacity, kernel="6.1.0", architecture=architecture
    )
    assert plan.view.labels.get("kubernetes.io/arch") == label


@pytest.mark.parametrize(
    ("profile", "is_on", "reason"),
    [
        ("RuntimeDefault", False, "AppArmor"),
        ("RuntimeDefault", True, ""),
        ("Unconfined", False, ""),
    ],
)
def test_a_node_without_app_armor_refuses_who_asks_for_a_profile(
    tmp_path: Path, profile: str, is_on: bool, reason: str
) -> None:
    """As a kubelet, behind all else; nobody has to enforce what is unconfined."""
    capacity = machine_capacity(MACHINE, folder=tmp_path)
    plan = NodePlan.of(
        config(tmp_path), MACHINE, name="n1", capacity=capacity, kernel="6.1.0", app_armor=is_on
    )
    spec = {"securityContext": {"appArmorProfile": {"type": profile}}, "containers": [{"name": "c"}]}
    verdict = plan.chain(Pod.from_manifest({"metadata": {"name": "p"}, "spec": spec}), plan.view)
    assert getattr(verdict, "reason", "") == reason
    if reason:
        words = "Cannot enforce AppArmor: AppArmor is not enabled on the host"
        assert getattr(verdict, "message", "") == words


@pytest.mark.parametrize(("rules", "answer"), [(None, NotYet), (KUBELET.admission, Placed)])
def test_whether_a_device_that_nobody_serves_is_waited_for(
    tmp_path: Path, rules: Rules | None, answer: type
) -> None:
    """A kubelet forgets that it was asked for, here as in its sums; the pod had waited for ever."""
    plan = NodePlan.of(
        config(tmp_path),
        MACHINE,
        name="n1",
        capacity=machine_capacity(MACHINE, folder=tmp_path),
        kernel="6.1.0",
        rules=rules,
    )
    node = NodeAllocator(plan.empty, MemoryStore(AGENT_FORMATS), view=plan.view, chain=plan.chain)
    node.start()
    gpu = resources({"example.com/gpu": "1"})
    pod = Pod(uid="u", name="p", containers=(Container(name="a", requests=gpu, limits=gpu),))
    assert type(node.admit(pod)) is answer


def test_app_armor_is_on_where_the_kernel_and_its_profiles_say_so(tmp_path: Path) -> None:
    """Neither alone: in a container the kernel's word may be there without the profiles."""
    assert not has_app_armor(folder=tmp_path)
    enabled = tmp_path / "module" / "apparmor" / "parameters" / "enabled"
    enabled.parent.mkdir(parents=True)
    enabled.write_text("Y\n")
    assert not has_app_armor(folder=tmp_path)
    (tmp_path / "kernel" / "security" / "apparmor").mkdir(parents=True)
    assert has_app_armor(folder=tmp_path)
    enabled.write_text("N\n")
    assert not has_app_armor(folder=tmp_path)


def test_sockets_are_not_aligned_where_one_node_has_to_do(tmp_path: Path) -> None:
    """As a kubelet, which does not start with options that contradict its topology policy."""
    told = config(
        tmp_path,
        cpuManagerPolicy="static",
        cpuManagerPolicyOptions={"align-by-socket": "true"},
        reservedSystemCPUs="0",
        topologyManagerPolicy="single-numa-node",
        featureGates={"CPUManagerPolicyAlphaOptions": True},
    )
    with pytest.raises(ConfigurationError, match="contradicts topology policy single-numa-node"):
        planned(told, tmp_path)


def test_a_node_has_the_huge_pages_of_its_machine(tmp_path: Path) -> None:
    """By size, over all NUMA nodes; memory is less by them."""
    machine = machine_from_text("2 sockets x 2 cores, memory=8Gi, hugepages=2Mi:512/1Gi:0")
    capacity = machine_capacity(machine, folder=tmp_path)
    plan = NodePlan.of(
        config(tmp_path, evictionHard={}), machine, name="n1", capacity=capacity, kernel="6.1.0"
    )
    left = {name: amount.value for name, amount in plan.view.allocatable.items()}
    assert (left["hugepages-2Mi"], left["hugepages-1Gi"], left["memory"]) == (2 << 30, 0, 14 << 30)
    assert (plan.tree.root_limits.memory_bytes, plan.tree.root_limits.hugepage_bytes) == (14 << 30, {})
    asked = Container(name="c", limits=resources({"cpu": 1, "memory": "1Gi", "hugepages-2Mi": "4Mi"}))
    pod = Pod(uid="u", name="p", containers=(attrs.evolve(asked, requests=asked.limits),))
    assert isinstance(plan.chain(pod, plan.view), Admitted)


@pytest.mark.parametrize(
    ("on_node_0", "on_node_1", "words"),
    [
        ("100Mi", "1Gi", ""),
        ("1124Mi", "0", ""),
        ("100Mi", "100Mi", "make 1178599424; make the two equal"),
    ],
)
def test_reserved_memory_is_what_the_node_keeps(
    tmp_path: Path, on_node_0: str, on_node_1: str, words: str
) -> None:
    """As a kubelet, whose static policy does not start otherwise."""
    machine = machine_from_text("2 sockets x 2 cores, memory=8Gi")
    reserved = [
        {"numaNode": node, "limits": {"memory": amount}} for node, amount in enumerate((on_node_0, on_node_1))
    ]
    told = config(
        tmp_path,
        memoryManagerPolicy="Static",
        systemReserved={"memory": "1Gi"},
        reservedMemory=reserved,
    )
    capacity = machine_capacity(machine, folder=tmp_path)
    with pytest.raises(ConfigurationError, match=words) if words else nullcontext():
        NodePlan.of(told, machine, name="n1", capacity=capacity, kernel="6.1.0")


def test_static_cpus_need_a_cpu_for_the_system(tmp_path: Path) -> None:
    """Else the whole machine could be given away."""
    with pytest.raises(ValueError, match="without a CPU for the system"):
        planned(config(tmp_path, cpuManagerPolicy="static"), tmp_path)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"evictionHard": {"memory.available": "0"}}, "'0' is no amount above 0 and no percentage"),
        ({"evictionHard": {"memory.available": "0Mi"}}, "'0Mi' is no amount above 0"),
        ({"singleProcessOOMKill": False}, "singleProcessOOMKill is false, and processes end one by one"),
        ({"cpuCFSQuotaPeriod": "50ms"}, "needs featureGates: CustomCPUCFSQuotaPeriod: true"),
        (
            {"cpuCFSQuotaPeriod": "2s", "featureGates": {"CustomCPUCFSQuotaPeriod": True}},
            "cpuCFSQuotaPeriod is 2 s; give 1ms to 1s",
        ),
        ({"topologyManagerScope": "cluster"}, "topologyManagerScope is 'cluster'; give container, pod"),
        ({"enforceNodeAllocatable": ["pod"]}, "enforceNodeAllocatable is 'pod'; give pods"),
        ({"enforceNodeAllocatable": ["pods", "none"]}, "none beside others"),
        ({"enforceNodeAllocatable": ["pods", "kube-reserved"]}, "has kube-reserved, whose cgroup"),
        ({"cpuManagerPolicy": "dynamic"}, "give none or static"),
        (
            {"reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Mi"}}] * 2},
            "memory of NUMA node 0 stands twice",
        ),
        ({"topologyManagerPolicy": "loose"}, "loose"),
        ({"memoryManagerPolicy": "static"}, "static"),
        ({"kubeReserved": {"memory": "much"}}, "much"),
        ({"kubeReserved": {"pods": "1"}}, "kubeReserved has 'pods'; give cpu, memory"),
        ({"cgroupRoot": "../up"}, "up"),
    ],
)
def test_words_that_mean_nothing_are_refused(tmp_path: Path, fields: dict[str, object], words: str) -> None:
    """With what there is, before anything is made."""
    with pytest.raises(ConfigurationError, match=re.escape(words)):
        planned(config(tmp_path, **fields), tmp_path)


@pytest.mark.parametrize(("most", "per_core"), [(110, 0), (110, 3), (2, 3), (110, 1)])
def test_how_many_pods_there_may_be(tmp_path: Path, most: int, per_core: int) -> None:
    """So many, and so many for each CPU where that is said."""
    plan = planned(config(tmp_path, maxPods=most, podsPerCore=per_core), tmp_path)
    expected = min(most, per_core * len(MACHINE.online)) if per_core else most
    assert plan.view.allocatable["pods"].value == expected
    with pytest.raises(DecodeError, match="podsPerCore"):
        config(tmp_path, podsPerCore=-1)


def test_patience_follows_the_configuration(tmp_path: Path) -> None:
    """Back-off, time-outs and pulls at once."""
    fields = {
        "crashLoopBackOff": {"maxContainerRestartPeriod": "5s"},
        "featureGates": {"KubeletCrashLoopBackOffMax": True},
        "runtimeRequestTimeout": "30s",
    }
    policy = life_policy(config(tmp_path, **fields))
    restarts = policy.restarts
    assert (restarts.base_s, restarts.cap_s, restarts.reset_after_s) == (5.0, 5.0, 10.0)
    assert (policy.call_s, policy.pulls_at_once) == (30.0, 1)


@pytest.mark.parametrize(
    ("fields", "most"),
    [
        ({}, 1),
        ({"maxParallelImagePulls": 4}, 4),
        ({"maxParallelImagePulls": 1}, 1),
        ({"serializeImagePulls": True, "maxParallelImagePulls": 1}, 1),
        ({"serializeImagePulls": False}, None),
        ({"serializeImagePulls": False, "maxParallelImagePulls": 4}, 4),
    ],
)
def test_how_many_images_are_fetched_at_once(
    tmp_path: Path, fields: dict[str, object], most: int | None
) -> None:
    """One, unless one of two fields says something else."""
    assert life_policy(config(tmp_path, **fields)).pulls_at_once == most


def test_images_are_fetched_in_one_way(tmp_path: Path) -> None:
    """Both fields together that contradict each other are refused."""
    with pytest.raises(ConfigurationError, match="leave one of them out"):
        life_policy(config(tmp_path, serializeImagePulls=True, maxParallelImagePulls=4))


@pytest.mark.parametrize(
    ("period", "gates", "words"),
    [
        ("5s", {}, "needs featureGates"),
        ("301s", {"KubeletCrashLoopBackOffMax": True}, "is 301.0 s; give 1s to 300s"),
    ],
)
def test_a_longest_wait_needs_its_feature_and_is_bounded(
    tmp_path: Path, period: str, gates: dict[str, bool], words: str
) -> None:
    """As a kubelet, which does not start."""
    told = config(tmp_path, crashLoopBackOff={"maxContainerRestartPeriod": period}, featureGates=gates)
    with pytest.raises(ConfigurationError, match=words):
        life_policy(told)


def test_every_pod_gets_what_the_configuration_says(tmp_path: Path) -> None:
    """Names, resolver, folders."""
    resolver = tmp_path / "resolv.conf"
    resolver.write_text("nameserver 192.0.2.1\nsearch example.test\n")
    fields = {"clusterDNS": ["192.0.2.10"], "clusterDomain": "cluster.test", "resolvConf": str(resolver)}
    found = config(tmp_path, **fields)
    plan = planned(found, tmp_path)
    settings = node_settings(found, plan, root=tmp_path)
    assert (settings.name, settings.cluster_dns) == ("n1", ("192.0.2.10",))
    assert settings.resolver is not None
    assert settings.resolver.servers == ("192.0.2.1",)
    assert settings.pods_directory == str(tmp_path / "pods")
    assert settings.logs_directory == str(tmp_path / "logs")
    assert settings.seccomp_directory == str(tmp_path / "seccomp")
    assert settings.allocatable == plan.view.allocatable
    assert node_settings(found, plan, root=tmp_path, logs=Path("/l")).logs_directory == "/l"


def test_a_resolver_that_cannot_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pods would have none, and nobody would know; where nobody named one, there may be none."""
    resolver = tmp_path / "resolv.conf"
    named = config(tmp_path, resolvConf=str(resolver))
    words = f"resolvConf: {resolver}: No such file or directory; name a file such as"
    with pytest.raises(ConfigurationError, match=re.escape(words)):
        node_settings(named, planned(named, tmp_path), root=tmp_path)
    monkeypatch.setattr("nodealloc.kubeconfig._settings._RESOLVER", str(resolver))
    found = node_settings(named, planned(named, tmp_path), root=tmp_path)
    assert found.resolver == DnsConfig()
    monkeypatch.setattr("nodealloc.kubeconfig._settings._HOSTS", str(tmp_path / "hosts"))
    assert node_settings(named, planned(named, tmp_path), root=tmp_path).hosts == ""
    for make in (Path.mkdir, os.mkfifo):  # a pipe would be waited for by whoever makes a pod
        make(resolver)
        with pytest.raises(ConfigurationError, match="no regular file; name a file such as"):
            node_settings(named, planned(named, tmp_path), root=tmp_path)
        resolver.rmdir() if resolver.is_dir() else resolver.unlink()


def test_pods_come_from_the_folder_of_the_configuration_and_go_on_as_the_same(tmp_path: Path) -> None:
    """A manifest without a uid is the same pod for the next process, by what the store remembers."""
    (tmp_path / "static").mkdir()
    app = {"name": "app", "image": "localhost/busybox:1"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [app]}}
    (tmp_path / "static" / "p.json").write_text(json.dumps(pod))
    found, store = config(tmp_path, staticPodPath=str(tmp_path / "static")), MemoryStore(AGENT_FORMATS)
    seen: list[set[str]] = []
    for _ in range(2):
        sources = pod_sources(
            found,
            node_name="n1",
            editions=Remembered.read(store).editions,
            remember=remembering_editions(store),
            executor=InlineExecutor(),
        )
        sources.run_until_quiet()
        assert [one.value.name for one in sources.pods.snapshot().values()] == ["p-n1"]
        seen.append(set(sources.pods.snapshot()))
        sources.close()
    assert seen[0] == seen[1]
    assert set(Remembered.read(store).editions) == {"file"}


def test_a_manifest_is_away_for_a_time_by_the_clock_of_the_sources(tmp_path: Path) -> None:
    """A clock that is given counts what the folder waits for as well, and not its periods alone."""
    folder, clock = tmp_path / "static", VirtualClock()
    folder.mkdir()
    app = {"name": "app", "image": "localhost/busybox:1"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [app]}}
    (folder / "p.json").write_text(json.dumps(pod))
    found = config(tmp_path, staticPodPath=str(folder))
    sources = pod_sources(found, node_name="n1", executor=InlineExecutor(), clock=clock)
    sources.run_until_quiet()
    (folder / "p.json").unlink()
    there: list[int] = []
    for wait_s in (1.0, 4.0, 1.0):
        clock.advance(wait_s)
        sources.hurry("file")
        sources.run_until_quiet()
        there.append(len(sources.pods))
    assert there == [1, 1, 0]
    sources.close()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"staticPodURL": "ftp://x/y"}, "staticPodURL: ftp://x/y: expected an address"),
        (
            {"staticPodURL": "http://x/y", "staticPodURLHeader": {"A b": ["c"]}},
            "staticPodURL: headers: 'A b'",
        ),
        ({"cgroupRoot": "a b"}, "cgroupRoot: .*'a b' has blanks"),
        ({"allowedUnsafeSysctls": ["x y"]}, "allowedUnsafeSysctls: sysctl pattern 'x y' is none"),
    ],
)
def test_what_cannot_be_used_is_named_by_its_field(
    tmp_path: Path, fields: dict[str, object], words: str
) -> None:
    """As the document has it: who reads the error looks there."""
    found = config(tmp_path, **fields)

    def use() -> None:
        pod_sources(found, node_name="n1", others={"api": FakeSource()}, executor=InlineExecutor()).close()
        planned(found, tmp_path)

    with pytest.raises(ConfigurationError, match=words):
        use()


def test_pods_come_from_somewhere_and_from_each_name_once(tmp_path: Path) -> None:
    """No source of the caller's is dropped for one of the configuration's."""
    with pytest.raises(ConfigurationError, match="come from nowhere; set staticPodPath"):
        pod_sources(config(tmp_path), node_name="n1")
    found = config(tmp_path, staticPodPath=str(tmp_path / "static"))
    with pytest.raises(ConfigurationError, match=r"others has \['file'\], as the configuration has"):
        pod_sources(found, node_name="n1", others={"file": FakeSource()})


@pytest.mark.parametrize("field", ["maxPods", "podsPerCore", "maxParallelImagePulls"])
def test_a_count_of_a_kubelet_has_32_bits(tmp_path: Path, field: str) -> None:
    """A kubelet does not start with more."""
    config(tmp_path, **{field: 2**31 - 1})
    with pytest.raises(DecodeError, match=f"is {2**31}; give at most {2**31 - 1} @ .*{field}"):
        config(tmp_path, **{field: 2**31})


def test_a_pipe_is_read_and_one_that_nobody_writes_holds_nobody(tmp_path: Path) -> None:
    """As of a shell's `<(…)`; a document that never comes is none."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(DecodeError, match="found 0 documents"):
        read_kubelet_config(pipe)
    reader, writer = os.pipe()

    def write() -> None:
        with os.fdopen(writer, "w", encoding="utf-8") as file:
            json.dump(KIND, file)

    late = threading.Timer(0.1, write)
    late.start()
    assert read_kubelet_config(f"/dev/fd/{reader}") == KubeletConfig()
    os.close(reader)
    late.join()


def test_a_file_that_is_too_large_or_several_is_refused_unread(tmp_path: Path) -> None:
    """A configuration is one small document."""
    path = tmp_path / "kubelet.yaml"
    path.write_text("a: 1\n---\nb: 2\n")
    with pytest.raises(DecodeError, match="found 2 documents"):
        read_kubelet_config(path)
    path.write_text("#" * 300_000)
    with pytest.raises(DecodeError, match="has more than 262144 bytes"):
        read_kubelet_config(path)
    with pytest.raises(DecodeError, match="cannot be read"):
        read_kubelet_config(tmp_path / "absent")
