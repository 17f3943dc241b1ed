"""What a kubelet is told: the fields of the document that something here follows, with its defaults."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from typing import Final, NewType

from nodealloc import _attrs as attrs
from nodealloc._arguments import addresses
from nodealloc._typed import typed_fields
from nodealloc._wire import wire
from nodealloc.errors import ConfigurationError

__all__ = [
    "NOT_SUPPORTED",
    "NO_TIME",
    "UNFOLLOWED",
    "CrashLoopBackOff",
    "KubeletConfig",
    "MemoryReservation",
    "MemorySwap",
    "Seconds",
    "unfollowed_features",
]

Seconds = NewType("Seconds", float)
"""A duration; in the document a text as Go writes it."""

NOT_SUPPORTED: Final = frozenset(
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
    makeIPTablesUtilChains maxOpenFiles nodeLeaseDurationSeconds
    nodeStatusMaxImages nodeStatusReportFrequency nodeStatusUpdateFrequency oomScoreAdj podCIDR
    port protectKernelDefaults providerID qosReserved readOnlyPort
    registerWithTaints registryBurst registryPullQPS rotateCertificates runOnce
    serverTLSBootstrap showHiddenMetricsForVersion shutdownGracePeriod shutdownGracePeriodByPodPriority
    shutdownGracePeriodCriticalPods streamingConnectionIdleTimeout systemCgroups systemReservedCgroup
    tlsCertFile tlsCipherSuites tlsMinVersion tlsPrivateKeyFile tracing volumePluginDir
    volumeStatsAggPeriod
    """.split()  # noqa: SIM905 - ninety names
)
"""Fields of the document that no package follows yet."""

_FEATURES: Final = frozenset(
    {
        *("CPUManagerPolicyAlphaOptions", "CPUManagerPolicyBetaOptions"),
        *("TopologyManagerPolicyAlphaOptions", "TopologyManagerPolicyBetaOptions"),
        *("CustomCPUCFSQuotaPeriod", "KubeletCrashLoopBackOffMax", "MemoryQoS"),
    }
)

_MOST: Final = (1 << 31) - 1
UNFOLLOWED: Final = "nodealloc.kubeconfig.unfollowed"
"""In a field's metadata: values that may be left out with a word, since without them a node decides the same
of pods: what the machine is asked for before the start, who tells an API server, when images go.
`cgroupsPerQOS: false` is none: pods would be confined."""
NO_TIME: Final = "0s"
"""What says nothing of most durations, however it is written."""


def _only(*values: object) -> Callable[[object], str]:
    words = " or ".join("true" if one is True else "false" if one is False else str(one) for one in values)
    return lambda value: "" if value in values else f"is {value}; only {words} is supported"


_TRUE, _FALSE = _only(True), _only(False)  # noqa: FBT003 - they are what is looked for


def unfollowed_features(gates: Mapping[str, bool], /) -> list[str]:
    """Those that are on and that nothing here follows."""
    return [name for name, is_on in gates.items() if is_on and name not in _FEATURES]


def _features(gates: Mapping[str, bool]) -> str:
    on = unfollowed_features(gates)
    return f"{', '.join(on)} is not supported; leave it out" if on else ""


def _at_least_one(value: int) -> str:
    return _in_32_bits(value) if value >= 1 else f"is {value}; give 1 or more"


def _not_negative(value: int) -> str:
    return _in_32_bits(value) if value >= 0 else f"is {value}; give 0 for any number, or more"


def _in_32_bits(value: int) -> str:
    return "" if value <= _MOST else f"is {value}; give at most {_MOST}"


def _is_part(value: float) -> str:
    return "" if 0 < value <= 1 else f"is {value}; give more than 0 and at most 1"


def _folder(path: str) -> str:
    if path and not path.startswith("/"):
        return f"is {path!r}; give an absolute path"
    if not path.isascii():
        return f"is {path!r}; give a path of ASCII letters"
    plain = f"/{posixpath.normpath(path).lstrip('/')}"
    return "" if not path or path == plain else f"is {path!r}; write {plain}"


def _addresses(servers: tuple[str, ...]) -> str:
    try:
        addresses("it", servers)
    except ConfigurationError as error:
        return str(error).removeprefix("it: ")
    return ""


def _texts() -> Mapping[str, str]:
    return {}


def _eviction() -> Mapping[str, str]:
    return {
        "imagefs.available": "15%",
        "imagefs.inodesFree": "5%",
        "memory.available": "100Mi",
        "nodefs.available": "10%",
        "nodefs.inodesFree": "5%",
    }


@typed_fields
@attrs.frozen(kw_only=True)
class CrashLoopBackOff:
    """How long a container that ends again and again waits at most.

    Attributes:
        max_container_restart_period_s: In seconds, 1 to 300; None for 300. Needs a feature.
    """

    max_container_restart_period_s: Seconds | None = attrs.field(
        default=None, metadata=wire("maxContainerRestartPeriod")
    )


@typed_fields
@attrs.frozen(kw_only=True)
class MemorySwap:
    """Who may use the machine's swap.

    Attributes:
        swap_behavior: `NoSwap`, which is meant by nothing too, or `LimitedSwap`.
    """

    swap_behavior: str = attrs.field(default="", metadata=wire(check=_only("", "NoSwap", "LimitedSwap")))


@typed_fields
@attrs.frozen(kw_only=True)
class MemoryReservation:
    """What is kept for the system on one NUMA node.

    Attributes:
        numa_node: Which.
        limits: Resource to amount, as quantities.
    """

    numa_node: int
    limits: Mapping[str, str]


@typed_fields
@attrs.frozen(kw_only=True)
class KubeletConfig:
    """A KubeletConfiguration, `kubelet.config.k8s.io/v1beta1`: its fields in Python's spelling, its defaults.

    What a word or an amount means is looked at where it is used: by `NodePlan.of`.
    `sync_frequency_s` may be anything: pods are looked at when something changed.

    Source: Kubernetes ``kubelet/config/v1beta1/types.go``.
    """

    static_pod_path: str = ""
    static_pod_url: str = attrs.field(default="", metadata=wire("staticPodURL"))
    static_pod_url_header: Mapping[str, tuple[str, ...]] = attrs.field(
        factory=dict[str, tuple[str, ...]], metadata=wire("staticPodURLHeader")
    )
    file_check_frequency_s: Seconds = attrs.field(
        default=Seconds(20.0), metadata=wire("fileCheckFrequency", unset=NO_TIME)
    )
    http_check_frequency_s: Seconds = attrs.field(
        default=Seconds(20.0), metadata=wire("httpCheckFrequency", unset=NO_TIME)
    )
    sync_frequency_s: Seconds = attrs.field(
        default=Seconds(60.0), metadata=wire("syncFrequency", unset=NO_TIME)
    )
    container_runtime_endpoint: str = ""
    runtime_request_timeout_s: Seconds = attrs.field(
        default=Seconds(120.0), metadata=wire("runtimeRequestTimeout", unset=NO_TIME)
    )
    cgroup_driver: str = attrs.field(
        default="cgroupfs", metadata=wire(check=_only("cgroupfs", "systemd"), unset="")
    )
    cgroup_root: str = attrs.field(default="/", metadata=wire(unset=""))
    cgroups_per_qos: bool = attrs.field(default=True, metadata=wire("cgroupsPerQOS", check=_TRUE))
    enforce_node_allocatable: tuple[str, ...] = ("pods",)
    system_reserved: Mapping[str, str] = attrs.field(factory=_texts)
    kube_reserved: Mapping[str, str] = attrs.field(factory=_texts)
    reserved_system_cpus: str = attrs.field(default="", metadata=wire("reservedSystemCPUs"))
    eviction_hard: Mapping[str, str] = attrs.field(factory=_eviction)
    cpu_manager_policy: str = attrs.field(default="none", metadata=wire(unset=""))
    cpu_manager_policy_options: Mapping[str, str] = attrs.field(factory=_texts)
    cpu_manager_reconcile_period_s: Seconds = attrs.field(
        default=Seconds(10.0), metadata=wire("cpuManagerReconcilePeriod", unset=NO_TIME)
    )
    memory_manager_policy: str = attrs.field(default="None", metadata=wire(unset=""))
    reserved_memory: tuple[MemoryReservation, ...] = ()
    topology_manager_policy: str = attrs.field(default="none", metadata=wire(unset=""))
    topology_manager_scope: str = attrs.field(default="container", metadata=wire(unset=""))
    topology_manager_policy_options: Mapping[str, str] = attrs.field(factory=_texts)
    cluster_dns: tuple[str, ...] = attrs.field(default=(), metadata=wire("clusterDNS", check=_addresses))
    cluster_domain: str = ""
    resolv_conf: str = "/etc/resolv.conf"
    allowed_unsafe_sysctls: tuple[str, ...] = ()
    max_pods: int = attrs.field(default=110, metadata=wire(check=_at_least_one, unset=0))
    pods_per_core: int = attrs.field(default=0, metadata=wire(check=_not_negative))
    pod_pids_limit: int = -1
    cpu_cfs_quota: bool = attrs.field(default=True, metadata=wire("cpuCFSQuota"))
    cpu_cfs_quota_period_s: Seconds = attrs.field(default=Seconds(0.1), metadata=wire("cpuCFSQuotaPeriod"))
    memory_throttling_factor: float = attrs.field(default=0.9, metadata=wire(check=_is_part))
    memory_swap: MemorySwap = MemorySwap()
    single_process_oom_kill: bool | None = attrs.field(default=None, metadata=wire("singleProcessOOMKill"))
    seccomp_default: bool = False
    pod_logs_dir: str = attrs.field(default="", metadata=wire(check=_folder))
    serialize_image_pulls: bool | None = None
    max_parallel_image_pulls: int | None = attrs.field(default=None, metadata=wire(check=_at_least_one))
    image_gc_high_threshold_percent: int = attrs.field(
        default=100,
        metadata={**wire("imageGCHighThresholdPercent", check=_only(100)), UNFOLLOWED: tuple(range(100))},
    )
    fail_swap_on: bool = attrs.field(default=False, metadata={**wire(check=_FALSE), UNFOLLOWED: (True,)})
    register_node: bool = attrs.field(default=False, metadata={**wire(check=_FALSE), UNFOLLOWED: (True,)})
    crash_loop_back_off: CrashLoopBackOff = CrashLoopBackOff()
    feature_gates: Mapping[str, bool] = attrs.field(factory=dict[str, bool], metadata=wire(check=_features))
