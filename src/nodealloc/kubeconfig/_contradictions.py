"""Fields of a configuration that contradict each other, or ask for what nothing here acts upon; pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from nodealloc._arguments import named
from nodealloc.cgroups import Enforce
from nodealloc.errors import ConfigurationError
from nodealloc.idset import CPUSet
from nodealloc.kubeconfig._configuration import KubeletConfig
from nodealloc.memblocks import MemoryPolicy
from nodealloc.podspec import resources
from nodealloc.podspec._checks import subdomain

__all__ = ["check_fields", "check_node", "word"]

E = TypeVar("E", bound=enum.Enum)

_NEEDS: Final[Mapping[str, tuple[str, bool]]] = {
    **dict.fromkeys(
        (
            "align-by-socket",
            "distribute-cpus-across-cores",
            "distribute-cpus-across-numa",
            "prefer-align-cpus-by-uncorecache",
            "strict-cpu-reservation",
        ),
        ("CPUManagerPolicyAlphaOptions", False),
    ),
    "full-pcpus-only": ("CPUManagerPolicyBetaOptions", True),
    "max-allowable-numa-nodes": ("TopologyManagerPolicyBetaOptions", True),
}
"""Option to the feature that it needs, and whether that is on where nothing is said.

Source: Kubernetes v1.32 ``cm/cpumanager/policy_options.go``, ``cm/topologymanager/policy_options.go``.
"""
_SHORTEST_S: Final = 0.001
_LONGEST_S: Final = 1.0
"""Of a period of CPU quotas, as the kernel takes them."""
_PERIOD: Final = "CustomCPUCFSQuotaPeriod"
_RESERVABLE: Final = ("cpu", "memory", "ephemeral-storage", "pid")


def check_fields(config: KubeletConfig, /, *, unified: bool) -> None:
    """Raises `ConfigurationError` for the first field with which a kubelet does not start.

    Args:
        config: What has them.
        unified: Whether the machine's cgroups are of version 2 alone.

    Source: kubelet ``apis/config/validation``.
    """
    _check_amounts(config)
    _check_features(config)
    _check_period(config)
    if config.single_process_oom_kill is False and not unified:
        raise ConfigurationError(
            "singleProcessOOMKill is false, and processes end one by one under cgroup v1; leave it out"
        )
    _check_levels(config.enforce_node_allocatable)
    _check_reserved(config)


def check_node(name: str, /) -> None:
    """Raises `ConfigurationError` for a name that no node can have."""
    if reason := subdomain(name):
        raise ConfigurationError(f"NodePlan.of, name of the node: {reason}")


def _check_amounts(config: KubeletConfig) -> None:
    """Words and amounts that are looked at further on, where nobody knows any more whose they are."""
    for field, amounts in (
        ("kubeReserved", config.kube_reserved),
        ("systemReserved", config.system_reserved),
    ):
        for name, amount in amounts.items():
            with named(f"{field}.{name}"):
                resources({name: amount})
    for index, one in enumerate(config.reserved_memory):
        for name, amount in one.limits.items():
            with named(f"reservedMemory[{index}].limits.{name}"):
                resources({name: amount})
    with named("reservedSystemCPUs"):
        CPUSet.parse(config.reserved_system_cpus)
    word(MemoryPolicy, "memoryManagerPolicy", config.memory_manager_policy)


def _check_features(config: KubeletConfig) -> None:
    """An option of a manager needs the feature of its stage to be on."""
    for option in (*config.cpu_manager_policy_options, *config.topology_manager_policy_options):
        feature, is_on = _NEEDS.get(option, ("", True))
        if not config.feature_gates.get(feature, is_on):
            raise ConfigurationError(f"option {option} needs featureGates: {feature}: true")


def _check_period(config: KubeletConfig) -> None:
    period_s = config.cpu_cfs_quota_period_s
    if not _SHORTEST_S <= period_s <= _LONGEST_S:
        raise ConfigurationError(f"cpuCFSQuotaPeriod is {period_s:g} s; give 1ms to 1s")
    if period_s != 0.1 and not config.feature_gates.get(_PERIOD, False):
        raise ConfigurationError(f"cpuCFSQuotaPeriod other than 100ms needs featureGates: {_PERIOD}: true")


def _check_levels(words: Sequence[str]) -> None:
    """Levels of `enforceNodeAllocatable`: no package limits the system's own cgroups by them."""
    if "none" in words and len(words) > 1:
        raise ConfigurationError("enforceNodeAllocatable has none beside others; give none alone")
    for one in words:
        if one not in {"none", Enforce.PODS.value}:
            word(Enforce, "enforceNodeAllocatable", one)
            raise ConfigurationError(
                f"enforceNodeAllocatable has {one}, whose cgroup nothing here limits yet; leave it out"
            )


def _check_reserved(config: KubeletConfig) -> None:
    """Source: kubelet ``app/server.go``."""
    both = (("kubeReserved", config.kube_reserved), ("systemReserved", config.system_reserved))
    for field, amounts in both:
        for name in amounts:
            if name not in _RESERVABLE:
                raise ConfigurationError(f"{field} has {name[:80]!r}; give {', '.join(_RESERVABLE)}")


def word(kind: type[E], field: str, text: str, /) -> E:
    """The member that a text names; raises `ConfigurationError` with the list of what there is."""
    found = next((one for one in kind if one.value == text), None)
    if found is None:
        raise ConfigurationError(f"{field} is {text!r}; give {', '.join(str(one.value) for one in kind)}")
    return found
