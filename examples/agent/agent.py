"""The agent: wires the packages together and walks each pod through its containers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import attrs

from examples.agent.place import Place
from examples.agent.runtime import Process, ProcessRuntime
from nodealloc.cgroups import QosTree, TreeOptions, container_limits, container_name
from nodealloc.checkpoint import Store
from nodealloc.cpuset import CpuAllocator, CPUSet, CpusetReconciler, StaticOptions, StaticPolicy
from nodealloc.dsw_asw import InlineExecutor
from nodealloc.machine import Machine, draw_text
from nodealloc.memblocks import memory_allocator
from nodealloc.node import CpuKeeper, Keeper, MemoryKeeper, NodeAllocator
from nodealloc.podspec import Container, Pod
from nodealloc.topology import Admitted, NumaTopology, Owner, Policy, Snapshot, Verdict

__all__ = ["Agent", "empty_node"]

Say = Callable[[str], None]


def empty_node(machine: Machine, *, policy: str, reserved: CPUSet) -> Snapshot:
    """The machine with nothing held."""
    nodes = tuple(machine.nodes) or (0,)
    cpus = StaticPolicy.of(machine, reserved=reserved, options=StaticOptions())
    system = {node.id: {"memory": min(node.memory_bytes // 10, 512 << 20)} for node in machine.numa_nodes[:1]}
    return Snapshot(
        numa=NumaTopology(nodes=nodes, distances=machine.distances or {}),
        policy=Policy.parse(policy),
        allocators=(CpuAllocator(policy=cpus), memory_allocator(machine, reserved=system)),
    )


@attrs.define
class Agent:
    """Runs the pods that there should be, on the node that there is. One thread.

    Attributes:
        machine: What is given out.
        node: What is held.
        place: How containers are confined.
        runtime: Runs them.
        reserved: CPUs of the system, for the picture.
        say: Prints a line.
    """

    machine: Machine
    place: Place
    runtime: ProcessRuntime
    node: NodeAllocator
    cpusets: CpusetReconciler
    tree: QosTree
    reserved: CPUSet
    say: Say
    known: dict[str, Pod] = attrs.field(factory=dict[str, Pod])
    verdicts: dict[str, str] = attrs.field(factory=dict[str, str])

    @classmethod
    def start(
        cls,
        machine: Machine,
        store: Store,
        place: Place,
        folder: Path,
        *,
        policy: str,
        reserved: CPUSet,
        say: Say,
    ) -> Agent:
        """Load what was remembered, ask what runs, and go on from there."""
        runtime = ProcessRuntime(folder / "containers", place.driver)
        empty = empty_node(machine, policy=policy, reserved=reserved)
        keepers: dict[str, Keeper] = {"cpu": CpuKeeper(), "memory": MemoryKeeper()}
        node = NodeAllocator(empty, store, keepers, runtime=runtime, kubelet_files=["cpu"])
        report = node.start()
        say(str(report))
        if not report.is_clean:
            node.accept()
        cpusets = CpusetReconciler(place.writer, executor=InlineExecutor(), allocator=_cpus(node))
        tree = QosTree(place.driver, TreeOptions(root=place.root))
        return cls(machine, place, runtime, node, cpusets, tree, reserved, say)

    def round(self, wanted: Mapping[str, Pod]) -> bool:
        """One pass over all pods; whether everything is where it should be."""
        for uid in [uid for uid in {**self.known, **self.node.records} if uid not in wanted]:
            self._end(uid)
        admitted = {uid: pod for uid, pod in wanted.items() if self._admit(pod)}
        self.tree.sync(admitted.values(), now_s=time.monotonic())
        self.cpusets.follow(_cpus(self.node))
        self.cpusets.reconcile()
        running = {process.owner: process for process in self.runtime.processes()}
        for owner, process in running.items():
            if owner.workload in admitted:
                self._watch(admitted[owner.workload], process)
        settled = [self._advance(pod, running) for pod in admitted.values()]
        self.cpusets.reconcile()
        return all(settled)

    def picture(self) -> str:
        """Who holds which CPU."""
        cpus = _cpus(self.node)
        holders = {
            f"{self.known[owner.workload].name}/{owner.member}": cpus.exclusive_of(owner)
            for owner, _ in cpus.state.items()
            if owner.workload in self.known
        }
        # Without strict reservation the shared pool covers the reserved CPUs as well.
        return draw_text(self.machine, holders, shared=cpus.shared, reserved=self.reserved - cpus.shared)

    def _admit(self, pod: Pod) -> bool:
        verdict = self.node.admit(pod)
        self.known[pod.uid] = pod
        kind = type(verdict).__name__
        if self.verdicts.get(pod.uid) != kind:
            self.verdicts[pod.uid] = kind
            self.say(_told(pod, verdict))
        return isinstance(verdict, Admitted)

    def _advance(self, pod: Pod, running: Mapping[Owner, Process]) -> bool:
        """Start the next container that is due; whether nothing is left to wait for."""
        for container in pod.init_containers:
            owner = Owner(pod.uid, container.name)
            ended = self.runtime.exit_status(owner)
            if owner not in running and ended is None:
                self._start(pod, container)
            if not container.restartable and ended != 0:
                return ended is not None
        for container in pod.containers:
            owner = Owner(pod.uid, container.name)
            if owner not in running and self.runtime.exit_status(owner) is None:
                self._start(pod, container)
        return True

    def _start(self, pod: Pod, container: Container) -> None:
        owner = Owner(pod.uid, container.name)
        cgroup = container_name(self.place.root, pod, container)

        def confine(process: Process) -> None:
            granted = self.node.before_start(owner, process.container_id)
            self.cpusets.add(self.place.target(cgroup, process.pid), owner, mems=granted.mems)
            self.cpusets.reconcile()
            cpus = f"{'exclusive' if granted.exclusive else 'shared'} CPUs {granted.cpus}"
            self.say(f"container {pod.name}/{container.name} starts on {cpus} as process {process.pid}")

        self.place.driver.apply(cgroup, container_limits(container))
        self.runtime.start(owner, cgroup, container.command or ("true",), container.env, confine)

    def _watch(self, pod: Pod, process: Process) -> None:
        """Keep a container confined that an earlier agent started."""
        container = next(one for one in pod.all_containers if one.name == process.owner.member)
        cgroup = container_name(self.place.root, pod, container)
        granted = self.node.before_start(process.owner, process.container_id)
        self.cpusets.add(self.place.target(cgroup, process.pid), process.owner, mems=granted.mems)

    def _end(self, uid: str) -> None:
        """Stop a pod's containers, then give back what they held."""
        for process in self.runtime.processes():
            if process.owner.workload == uid:
                self.runtime.stop(process)
                self.node.after_stop(process.owner, process.container_id)
        record = self.node.records.get(uid)
        for claim in record.workload.claims if record else ():
            self.runtime.forget(claim.owner)
        self.node.release(uid)
        self.verdicts.pop(uid, None)
        pod = self.known.pop(uid, None)
        self.say(f"pod {pod.full_name if pod else uid} has ended and holds nothing")


def _told(pod: Pod, verdict: Verdict) -> str:
    if not isinstance(verdict, Admitted):
        return f"pod {pod.full_name} does not come in\n  " + str(verdict).replace("\n", "\n  ")
    how = "was admitted before and stays" if verdict.repeated else "is admitted and remembered"
    return f"pod {pod.full_name} {how}"


def _cpus(node: NodeAllocator) -> CpuAllocator:
    return next(one for one in node.snapshot.allocators if isinstance(one, CpuAllocator))
