"""Kind `memory_qos_swap`: what a container's cgroup v2 files say."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import attrs

from nodealloc.cgroups import PodOptions
from nodealloc.cgroups._pods import pod_limits
from nodealloc.podlife import NodeSettings
from nodealloc.podlife._configuration import linux_resources
from nodealloc.podspec import Quantity, qos_class
from nodealloc.podspec._pod import pod_as_it_stands

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nodealloc.podspec import Container, Json, Pod
    from nodealloc.testing.conformance._kinds import Row

__all__ = ["memory_qos_swap"]


def memory_qos_swap(row: Row, _machines: Mapping[str, Row]) -> tuple[Json, Json]:
    """Expected and got for the containers of one pod, the pod's own cgroup, and its class."""
    pod = _as_recorded(row["pod"])
    node = NodeSettings(
        name="node",
        memory_capacity_bytes=cast("int", row["memory_capacity"]),
        limits=PodOptions(
            cpu_quota=cast("bool", row["cpu_cfs_quota"]),
            period_us=cast("int", row["cpu_cfs_quota_period_us"]),
            memory_qos=cast("bool", row["memory_qos"]),
            memory_throttling=cast("float", row["memory_throttling_factor"]),
            allocatable_memory_bytes=cast("int | None", row["node_allocatable_memory"]) or 0,
            unified=True,
            swap=cast("str", row["swap_behavior"]),
            swap_capacity_bytes=cast("int", row["swap_capacity"]),
            single_oom_kill=row["single_process_oom_kill"] is not False,
        ),
    )
    least = pod_limits(pod, node.limits).memory_min_bytes
    recorded = cast("Mapping[str, Json]", row["containers"])
    got: dict[str, Json] = {
        "containers": {one.name: _told(pod, one, node) for one in pod.all_containers if one.name in recorded},
        "pod_cgroup_unified": {"memory.min": str(least)} if least else {},
        "qos": qos_class(pod).value,
    }
    return {name: row[name] or {} for name in got}, got


def _told(pod: Pod, container: Container, node: NodeSettings) -> Json:
    found = linux_resources(pod, container, node)
    told: dict[str, Json] = {
        "cpu_shares": found.cpu_shares,
        "memory_limit_bytes": found.memory_bytes or 0,
        "oom_score_adj": found.oom_score_adj,
        "unified": dict(found.unified),
    }
    if node.limits.cpu_quota:
        told |= {"cpu_quota_us": found.cpu_quota_us or 0, "cpu_period_us": found.cpu_period_us}
    return told


def _as_recorded(manifest: Json) -> Pod:
    """The pod with the requests that stand in the row: no API server has filled in what follows limits."""
    pod = pod_as_it_stands(manifest)
    spec = cast("Mapping[str, Sequence[Mapping[str, Json]]]", cast("Mapping[str, Json]", manifest)["spec"])

    def of(field: str, containers: Sequence[Container]) -> tuple[Container, ...]:
        return tuple(map(_asking, containers, spec.get(field, ())))

    return attrs.evolve(
        pod,
        init_containers=of("initContainers", pod.init_containers),
        containers=of("containers", pod.containers),
    )


def _asking(container: Container, recorded: Mapping[str, Json]) -> Container:
    asked = cast("Mapping[str, Mapping[str, str]]", recorded.get("resources", {})).get("requests", {})
    return attrs.evolve(container, requests={name: Quantity.parse(text) for name, text in asked.items()})
