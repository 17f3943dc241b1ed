"""After damage: what runs is taken over where it runs, before anything new is granted."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from examples.agent.place import Place
from examples.agent.runtime import Process, ProcessRuntime
from nodealloc.cgroups import container_name
from nodealloc.errors import NodeallocError
from nodealloc.idset import CPUSet
from nodealloc.node import AdoptionError, Confinement, NodeAllocator
from nodealloc.podspec import Pod, QosClass, qos_class

__all__ = ["adopt_running"]


def adopt_running(
    node: NodeAllocator,
    pods: Mapping[str, Pod],
    runtime: ProcessRuntime,
    place: Place,
    say: Callable[[str], None],
) -> None:
    """Adopt pods that run and are not remembered; one that runs where it cannot stay is stopped."""
    for uid, pod in pods.items():
        running = {one.owner.member: one for one in runtime.processes() if one.owner.workload == uid}
        if not running or uid in node.records:
            continue
        try:
            node.adopt(pod, {name: _where(pod, one, place) for name, one in running.items()})
            say(f"pod {pod.full_name} runs and is taken over where it runs")
        except AdoptionError as error:
            say(f"pod {pod.full_name} is stopped: {error}")
            for process in running.values():
                runtime.stop(process)


def _where(pod: Pod, process: Process, place: Place) -> Confinement:
    """What a container is confined to now; its own CPUs where its kind of pod gets some.

    Memory nodes are left to the node where nobody confines a container to some.
    """
    container = next(one for one in pod.all_containers if one.name == process.owner.member)
    target = place.target(container_name(place.root, pod, container), process.pid)
    try:
        cpus, mems = place.writer.read(target)
    except NodeallocError:
        cpus, mems = CPUSet(), None
    asked = container.requests.get("cpu")
    own = qos_class(pod) is QosClass.GUARANTEED and asked is not None and asked.is_whole
    return Confinement(cpus=cpus, exclusive=cpus if own else CPUSet(), mems=mems or None)
