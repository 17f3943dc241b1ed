"""Kinds `cgroup` and `pod_qos`: names, conversions, and what a pod's cgroup may use."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from nodealloc.cgroups import CgroupName, Spelling, oom_score_adj
from nodealloc.cgroups._convert import milli_cpu_to_quota_us, milli_cpu_to_shares, shares_to_weight
from nodealloc.cgroups._pods import pod_limits
from nodealloc.podspec import Container, Pod, Quantity, qos_class

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nodealloc.podspec import Json, Resources
    from nodealloc.testing.conformance._kinds import Row

__all__ = ["cgroup", "pod_qos"]


def cgroup(row: Row, _machines: Mapping[str, Row]) -> tuple[Json, Json]:
    """Expected and got for one name under both spellings, or one amount of CPU.

    The recorded kubelet ran without its feature `CustomCPUCFSQuotaPeriod`: it
    computes quotas over 100 ms, whatever period a row names.
    """
    if row["op"] == "cgroup_name":
        parts = cast("Sequence[str]", row["components"])
        name = CgroupName(tuple(parts))
        got: dict[str, Json] = {
            "components": list(CgroupName.parse(name.path(Spelling.SYSTEMD), Spelling.SYSTEMD).parts),
            "cgroupfs": name.path(),
            "systemd": name.path(Spelling.SYSTEMD),
        }
    else:
        milli_cpu = cast("int", row["milli_cpu"])
        shares = milli_cpu_to_shares(milli_cpu)
        got = {
            "quota_us": milli_cpu_to_quota_us(milli_cpu),
            "shares": shares,
            "weight_v2": shares_to_weight(shares),
        }
    return {name: row[name] for name in got}, got


def pod_qos(row: Row, _machines: Mapping[str, Row]) -> tuple[Json, Json]:
    """Expected and got for one pod: class, OOM scores, and the limits of its cgroup."""
    recorded = cast("Mapping[str, Json]", row["pod"])
    pod = Pod(
        uid=str(recorded["uid"]),
        init_containers=_containers(recorded["init_containers"]),
        containers=_containers(recorded["containers"]),
    )
    limits = pod_limits(pod)
    capacity = cast("int", row["memory_capacity_bytes"])
    got: dict[str, Json] = {
        "qos": qos_class(pod).value,
        "oom_score_adj": {
            each.name: oom_score_adj(pod, each, memory_capacity_bytes=capacity)
            for each in _scored(pod, cast("Mapping[str, Json]", row["oom_score_adj"]))
        },
        "pod_cgroup": {
            "cpu_shares": limits.cpu_shares,
            "cpu_quota_us": limits.cpu_quota_us,
            "cpu_period_us": limits.cpu_period_us,
            "memory_limit_bytes": limits.memory_bytes,
            "hugepage_limit_bytes": {str(size): amount for size, amount in limits.hugepage_bytes.items()},
        },
    }
    return {name: row[name] for name in got}, got


def _scored(pod: Pod, recorded: Mapping[str, Json]) -> list[Container]:
    return [container for container in pod.all_containers if container.name in recorded]


def _containers(recorded: Json) -> tuple[Container, ...]:
    return tuple(
        Container(
            name=str(each["name"]),
            requests=_resources(each["requests"]),
            limits=_resources(each["limits"]),
            restartable=bool(each.get("restartable", False)),
        )
        for each in cast("Sequence[Mapping[str, Json]]", recorded)
    )


def _resources(recorded: Json) -> Resources:
    amounts = cast("Mapping[str, str]", recorded)
    return {name: Quantity.parse(text) for name, text in amounts.items()}
