"""Pure: what would be written where for a pod, as text to review."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodealloc._typed import typed
from nodealloc.cgroups._pods import container_limits, container_name, oom_score_adj, pod_limits, pod_name
from nodealloc.cgroups._qos_tree import TreeOptions, desired_tree
from nodealloc.cgroups._render import render
from nodealloc.podspec import Pod, qos_class

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nodealloc.cgroups._layout import Layout
    from nodealloc.cgroups._limits import Limits
    from nodealloc.cgroups._name import CgroupName

__all__ = ["pod_view"]


@typed
def pod_view(
    pod: Pod,
    layout: Layout,
    options: TreeOptions | None = None,
    /,
    *,
    beside: Iterable[Pod] = (),
    memory_capacity_bytes: int = 0,
) -> str:
    """What running a pod would write, cgroup by cgroup; nothing is written.

    Args:
        pod: The pod.
        layout: Where cgroups are; of this node (`detect().layout`) or of any other.
        options: What the administrator decided.
        beside: Pods that run already; the class's cgroup counts them.
        memory_capacity_bytes: Memory of the node; 0 leaves the OOM scores out.

    Raises:
        ControllerMissingError: A limit could not be set on such a node.
        UnsupportedLimitError: The same, for a limit of v2 on v1.
    """
    chosen = options or TreeOptions()
    tree = desired_tree((*beside, pod), chosen)
    own = pod_name(chosen.root, pod)
    lines = [f"pod {pod.full_name}: {qos_class(pod).value}"]
    above = [name for name in tree if own.is_below(name)]
    for name in above:
        lines += _section(layout, name, tree[name])
    lines += _section(layout, own, pod_limits(pod, chosen.pods))
    for container in pod.all_containers:
        name = container_name(chosen.root, pod, container)
        lines += _section(layout, name, container_limits(container, chosen.pods))
        if memory_capacity_bytes:
            score = oom_score_adj(pod, container, memory_capacity_bytes=memory_capacity_bytes)
            lines.append(f"  /proc/PID/oom_score_adj = {score}")
    return "\n".join(lines)


def _section(layout: Layout, name: CgroupName, limits: Limits) -> Iterator[str]:
    yield str(name)
    writes = render(layout, name, limits)
    yield from (f"  {write}" for write in writes)
    if not writes:
        yield "  (created; nothing is limited)"
