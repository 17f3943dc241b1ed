"""A KubeletConfiguration: every field is used, or refused by name because there is no room for it yet."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, cast

import attrs
import cattrs
import yaml
from cattrs.errors import BaseValidationError
from cattrs.gen import make_dict_structure_fn, override
from cattrs.v import format_exception

from nodealloc.errors import DecodeError, Fault

__all__ = ["CrashLoops", "KubeletConfig", "MemoryOfNode", "read_config", "seconds"]

_ROOMLESS: Final = frozenset(
    """
    address authentication authorization configMapAndSecretChangeDetectionStrategy
    containerLogMaxFiles containerLogMaxSize containerLogMaxWorkers containerLogMonitorInterval
    contentType enableContentionProfiling enableControllerAttachDetach enableDebugFlagsHandler
    enableDebuggingHandlers enableProfilingHandler enableServer enableSystemLogHandler
    enableSystemLogQuery eventBurst eventRecordQPS evictionMaxPodGracePeriod evictionMinimumReclaim
    evictionPressureTransitionPeriod evictionSoft evictionSoftGracePeriod failCgroupV1 hairpinMode
    healthzBindAddress healthzPort imageGCLowThresholdPercent imageMaximumGCAge imageMinimumGCAge
    imageServiceEndpoint iptablesDropBit iptablesMasqueradeBit kernelMemcgNotification kubeAPIBurst
    kubeAPIQPS kubeReservedCgroup kubeletCgroups localStorageCapacityIsolation logging
    makeIPTablesUtilChains maxOpenFiles memorySwap memoryThrottlingFactor nodeLeaseDurationSeconds
    nodeStatusMaxImages nodeStatusReportFrequency nodeStatusUpdateFrequency oomScoreAdj podCIDR
    podLogsDir podsPerCore port protectKernelDefaults providerID qosReserved readOnlyPort
    registerWithTaints registryBurst registryPullQPS rotateCertificates runOnce seccompDefault
    serverTLSBootstrap showHiddenMetricsForVersion shutdownGracePeriod shutdownGracePeriodByPodPriority
    shutdownGracePeriodCriticalPods streamingConnectionIdleTimeout systemCgroups systemReservedCgroup
    tlsCertFile tlsCipherSuites tlsMinVersion tlsPrivateKeyFile tracing volumePluginDir
    volumeStatsAggPeriod
    """.split()  # noqa: SIM905 - ninety names
)
"""Fields of the document that nothing here does anything about."""
_FEATURES: Final = frozenset({"KubeletCrashLoopBackOffMax"})
_KIND: Final = ("kubelet.config.k8s.io/v1beta1", "KubeletConfiguration")
_UNITS_S: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "us": 1e-6, "ns": 1e-9}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s|us|ns)")
_WORDS: Final = {
    "dns": "DNS",
    "url": "URL",
    "cpu": "CPU",
    "cfs": "CFS",
    "qos": "QOS",
    "gc": "GC",
    "cpus": "CPUs",
}


_ONLY: Final[Mapping[str, tuple[object, ...]]] = {
    "cgroup_driver": ("cgroupfs", "systemd"),
    "cgroups_per_qos": (True,),
    "image_gc_high_threshold_percent": (100,),
    "fail_swap_on": (False,),
    "register_node": (False,),
}
"""Fields of which some values have no room."""


@attrs.frozen(kw_only=True)
class CrashLoops:
    """`crashLoopBackOff`."""

    max_container_restart_period: str = "300s"


@attrs.frozen(kw_only=True)
class MemoryOfNode:
    """An entry of `reservedMemory`."""

    numa_node: int
    limits: Mapping[str, str]


@attrs.frozen(kw_only=True)
class KubeletConfig:
    """What the agent is told; the kubelet's names, in Python's spelling, with the kubelet's defaults."""

    static_pod_path: str = ""
    static_pod_url: str = ""
    static_pod_url_header: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict[str, tuple[str, ...]])
    file_check_frequency: str = "20s"
    http_check_frequency: str = "20s"
    sync_frequency: str = "1m"
    container_runtime_endpoint: str = ""
    runtime_request_timeout: str = "2m"
    cgroup_driver: str = "cgroupfs"
    cgroup_root: str = "/"
    cgroups_per_qos: bool = True
    enforce_node_allocatable: tuple[str, ...] = ("pods",)
    system_reserved: Mapping[str, str] = attrs.field(factory=dict[str, str])
    kube_reserved: Mapping[str, str] = attrs.field(factory=dict[str, str])
    reserved_system_cpus: str = ""
    eviction_hard: Mapping[str, str] = attrs.field(factory=dict[str, str])
    cpu_manager_policy: str = "none"
    cpu_manager_policy_options: Mapping[str, str] = attrs.field(factory=dict[str, str])
    cpu_manager_reconcile_period: str = "10s"
    memory_manager_policy: str = "None"
    reserved_memory: tuple[MemoryOfNode, ...] = ()
    topology_manager_policy: str = "none"
    topology_manager_scope: str = "container"
    topology_manager_policy_options: Mapping[str, str] = attrs.field(factory=dict[str, str])
    cluster_dns: tuple[str, ...] = ()
    cluster_domain: str = ""
    resolv_conf: str = "/etc/resolv.conf"
    allowed_unsafe_sysctls: tuple[str, ...] = ()
    max_pods: int = 110
    pod_pids_limit: int = -1
    cpu_cfs_quota: bool = True
    cpu_cfs_quota_period: str = "100ms"
    serialize_image_pulls: bool = True
    max_parallel_image_pulls: int | None = None
    image_gc_high_threshold_percent: int = 100
    fail_swap_on: bool = False
    register_node: bool = False
    crash_loop_back_off: CrashLoops = CrashLoops()
    feature_gates: Mapping[str, bool] = attrs.field(factory=dict[str, bool])

    def __attrs_post_init__(self) -> None:
        for name, values in _ONLY.items():
            if getattr(self, name) not in values:
                words = " or ".join(map(repr, values))
                raise ValueError(f"{_spelled(name)} is {getattr(self, name)!r}; only {words} has a room here")
        for name, is_on in self.feature_gates.items():
            if is_on and name not in _FEATURES:
                raise ValueError(f"feature gate {name} has no room here; leave it out")


def read_config(path: Path, /) -> KubeletConfig:
    """A configuration file, in YAML or JSON.

    Raises:
        DecodeError: Lists every field that is unknown, has no room, or makes no sense.
    """
    try:
        document = yaml.safe_load(path.read_text())
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise DecodeError(str(path), [Fault("$", f"cannot be read: {error}")]) from error
    if not isinstance(document, dict):
        raise DecodeError(str(path), [Fault("$", "expected an object of kind KubeletConfiguration")])
    fields = cast("dict[str, object]", document)
    kind = fields.pop("apiVersion", None), fields.pop("kind", None)
    faults = [] if kind == _KIND else [Fault("$", f"is {kind[0]} {kind[1]}, expected {' '.join(_KIND)}")]
    known = {_spelled(field.name) for field in attrs.fields(KubeletConfig)}
    for name in [one for one in fields if one not in known]:
        why = (
            "has no room here yet; leave it out"
            if name in _ROOMLESS
            else "is no field of a KubeletConfiguration"
        )
        faults.append(Fault(f"$.{name}", why))
        del fields[name]
    try:
        made = _CONVERTER.structure(fields, KubeletConfig)
    except (BaseValidationError, ValueError) as error:
        lines = cattrs.transform_error(error, path="$", format_exception=_worded)
        faults += [Fault(line.rpartition(" @ ")[2], line.rpartition(" @ ")[0]) for line in lines]
        raise DecodeError(str(path), faults) from error
    if faults:
        raise DecodeError(str(path), faults)
    return made


def seconds(text: str, /) -> float:
    """A duration as Go writes it (`1m30s`), in seconds.

    Raises:
        ValueError: It is none.
    """
    parts = _DURATION.findall(text)
    if text != "0" and (not parts or "".join(map("".join, parts)) != text):
        raise ValueError(f"{text!r} is no duration; write 90s, 1m30s, 500ms")
    return sum(float(number) * _UNITS_S[unit] for number, unit in parts)


def _spelled(name: str) -> str:
    """The document's spelling of a field."""
    first, *rest = name.split("_")
    return first + "".join(_WORDS.get(word, word.capitalize()) for word in rest)


def _worded(error: BaseException, kind: type | None) -> str:
    return str(error) if type(error) is ValueError else format_exception(error, kind)


def _strict(kind: type) -> Callable[[object, object], object]:
    def structure(value: object, _: object) -> object:
        if type(value) is not kind:
            raise ValueError(f"expected {kind.__name__}, got {value!r}")
        return value

    return structure


def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True)
    for kind in (str, int, bool):
        converter.register_structure_hook(kind, _strict(kind))
    for declared in (MemoryOfNode, CrashLoops, KubeletConfig):
        names = {field.name: override(rename=_spelled(field.name)) for field in attrs.fields(declared)}
        made = make_dict_structure_fn(declared, converter, **names)  # type: ignore[arg-type]
        converter.register_structure_hook(declared, made)
    return converter


_CONVERTER: Final = _converter()
