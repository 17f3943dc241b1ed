"""The agent: walks each pod through its containers, in the order in which things are safe."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from examples.agent.node import Node
from examples.agent.place import Place
from examples.agent.runtime import Process, ProcessRuntime
from examples.agent.volumes import Volumes
from nodealloc.cgroups import QosTree, container_limits, container_name
from nodealloc.cpuset import CPUSet, CpusetReconciler
from nodealloc.devices import Launch
from nodealloc.errors import NodeallocError, RetryableError
from nodealloc.machine import Machine, draw_text
from nodealloc.node import WorkloadRecord
from nodealloc.podspec import Container, Pod
from nodealloc.topology import Admitted, NotYet, Owner, Placed, Refusal, Workload, explain, workload_of
from nodealloc.verdicts import Refused

__all__ = ["Agent"]


@attrs.define
class Agent:
    """Runs the pods that there should be, on the node that there is. One thread.

    Attributes:
        machine: What is given out.
        node: What is held, and by which plugins' leave.
        place: How containers are confined.
        runtime: Runs them.
        cpusets: Writes where they run.
        tree: Keeps the pods' cgroups.
        volumes: Mounts what they name.
        say: Prints a line.
        known: Pods that were seen, by uid.
        verdicts: Kind of each pod's verdict, so that it is said once.
        told: Why a pod waits, for the same reason.
        targets: What `cpusets` confines, by owner.
    """

    machine: Machine
    node: Node
    place: Place
    runtime: ProcessRuntime
    cpusets: CpusetReconciler
    tree: QosTree
    volumes: Volumes
    say: Callable[[str], None]
    known: dict[str, Pod] = attrs.field(factory=dict[str, Pod])
    verdicts: dict[str, str] = attrs.field(factory=dict[str, str])
    told: dict[str, str] = attrs.field(factory=dict[str, str])
    targets: dict[Owner, str] = attrs.field(factory=dict[Owner, str])

    def round(self, wanted: Mapping[str, Pod]) -> bool:
        """One pass over all pods; whether everything is where it should be.

        Raises:
            RetryableError: Something has to wait that concerns all pods, such as
                a full disk; the next round goes on.
        """
        records = self.node.allocator.records
        others = {uid for uid, pod in wanted.items() if _is_other(pod, records.get(uid))}
        wanted = {uid: pod for uid, pod in wanted.items() if uid not in others}
        leaving = [uid for uid in {**self.known, **records} if uid not in wanted]
        for process in self.runtime.processes():
            if process.owner.workload in leaving and self.runtime.stop(process):
                self.node.allocator.after_stop(process.owner, process.container_id)
        admitted = {uid: pod for uid, pod in wanted.items() if self._admit(pod)}
        running = {process.owner: process for process in self.runtime.processes()}
        self.volumes.tell(admitted, {owner.workload for owner in running})
        self.tree.reconcile(admitted.values())
        still = {owner.workload for owner in running}
        gone = [uid not in still and self._forget(uid) for uid in leaving]
        for owner, process in running.items():
            if owner.workload in admitted and owner not in self.targets:
                self._watch(admitted[owner.workload], process)
        # Those who share make room before anybody starts on CPUs of its own.
        self.cpusets.follow(self.node.cpus)
        self.cpusets.reconcile()
        settled = [self._advance(pod, running) for pod in admitted.values()]
        return all(settled) and all(gone) and not others

    def picture(self, reserved: CPUSet) -> str:
        """Who holds which CPU."""
        cpus = self.node.cpus
        holders = {
            f"{self.known[owner.workload].name}/{owner.member}": cpus.exclusive_of(owner)
            for owner, _ in cpus.state.items()
            if owner.workload in self.known
        }
        # Without strict reservation the shared pool covers the reserved CPUs as well.
        return draw_text(self.machine, holders, shared=cpus.shared, reserved=reserved - cpus.shared)

    def _admit(self, pod: Pod) -> bool:
        self.known[pod.uid] = pod
        try:
            for container in pod.all_containers:
                container_limits(container)
        except ValueError as error:  # less memory than a page
            words = f"pod {pod.full_name} does not come in\n  {error}"
            self._say_once(pod, "impossible", lambda: words)
            return False
        verdict = self.node.allocator.admit(pod)
        # Put into words only to be said: every round refuses anew, and explaining takes far longer.
        self._say_once(pod, type(verdict).__name__, lambda: _words(pod, verdict))
        return isinstance(verdict, Admitted)

    def _say_once(self, pod: Pod, kind: str, words: Callable[[], str]) -> None:
        if self.verdicts.get(pod.uid) != kind:
            self.verdicts[pod.uid] = kind
            self.say(words())

    def _advance(self, pod: Pod, running: Mapping[Owner, Process]) -> bool:
        """Start the next containers that are due; whether nothing is left to wait for."""
        due = [one for one in pod.init_containers if not self._is_over(pod, one)]
        plain = next((place for place, one in enumerate(due) if not one.restartable), len(due))
        starting = due[: plain + 1] if plain < len(due) else [*due, *pod.containers]
        try:
            for container in starting:
                owner = Owner(pod.uid, container.name)
                if owner not in running and self.runtime.exit_status(owner) is None:
                    self._start(pod, container)
        except NodeallocError as error:  # one pod's trouble is no other's
            if self.told.get(pod.uid) != str(error):
                self.told[pod.uid] = str(error)
                self.say(f"pod {pod.full_name} waits: {error}")
            return False
        return plain == len(due) or self.runtime.exit_status(Owner(pod.uid, due[plain].name)) is not None

    def _is_over(self, pod: Pod, container: Container) -> bool:
        """Whether an init container has done its work; what it alone held goes back."""
        over = self.runtime.exit_status(Owner(pod.uid, container.name)) == 0
        if over:
            self.node.allocator.release(pod.uid, container.name)
        return over

    def _start(self, pod: Pod, container: Container) -> None:
        owner = Owner(pod.uid, container.name)
        self.node.plugins.prepare(pod.uid)
        self.node.plugins.pre_start(owner)
        paths = self.volumes.paths(pod)
        launch = self.node.plugins.launch(owner)
        if not isinstance(launch, Launch):
            raise RetryableError(launch.message, after_s=launch.after_s)
        self.place.driver.apply(container_name(self.place.root, pod, container), container_limits(container))
        self.runtime.start(
            owner,
            container_name(self.place.root, pod, container),
            container.command or ("true",),
            {**container.env, **launch.env, **paths},
            lambda process: self._confine(pod, container, process),
        )

    def _confine(self, pod: Pod, container: Container, process: Process) -> None:
        """Before the container's first instruction."""
        granted = self.node.allocator.before_start(process.owner, process.container_id)
        target = self.place.target(container_name(self.place.root, pod, container), process.pid)
        self.targets[process.owner] = target
        self.cpusets.add(target, process.owner, mems=granted.mems)
        self.cpusets.reconcile()
        if intruders := self.cpusets.intruders(target):
            why = [f"{one} ({failure.error})" for one in intruders for failure in self.cpusets.failures(one)]
            raise RetryableError(f"still on its CPUs: {', '.join(why or intruders)}", after_s=0.1)
        cpus = f"{'exclusive' if granted.exclusive else 'shared'} CPUs {granted.cpus}"
        devices = "".join(f" with {one}" for one in self.node.devices_of(process.owner))
        self.say(f"container {pod.name}/{container.name} starts on {cpus}{devices}")

    def _watch(self, pod: Pod, process: Process) -> None:
        """Keep a container confined that an earlier agent started."""
        container = next(one for one in pod.all_containers if one.name == process.owner.member)
        granted = self.node.allocator.before_start(process.owner, process.container_id)
        target = self.place.target(container_name(self.place.root, pod, container), process.pid)
        self.targets[process.owner] = target
        self.cpusets.add(target, process.owner, mems=granted.mems)

    def _forget(self, uid: str) -> bool:
        """Give back what a pod held whose containers have stopped; False while it has mounts."""
        if self.volumes.holds(uid):
            return False
        record = self.node.allocator.records.get(uid)
        for claim in record.workload.claims if record else ():
            self.runtime.forget(claim.owner)
            self.cpusets.remove(self.targets.pop(claim.owner, ""))
        self.node.allocator.release(uid)
        self.verdicts.pop(uid, None)
        self.told.pop(uid, None)
        pod = self.known.pop(uid, None)
        self.say(f"pod {pod.full_name if pod else uid} has ended and holds nothing")
        return True


def _is_other(pod: Pod, record: WorkloadRecord | None) -> bool:
    """Whether a pod asks for something else than the one admitted under its uid, which then ends first."""
    if record is None or not record.workload.claims:
        return False
    return _asked(record.workload) != _asked(workload_of(pod))


def _asked(workload: Workload) -> list[tuple[object, ...]]:
    """What decides over a container's life; annotations may change while it runs."""
    return [(claim.owner, claim.kind, claim.exclusive, claim.amounts) for claim in workload.claims]


def _words(pod: Pod, verdict: Placed | Refused | NotYet) -> str:
    if isinstance(verdict, Refusal):
        return f"pod {pod.full_name} does not come in\n  " + explain(verdict).text.replace("\n", "\n  ")
    if isinstance(verdict, Refused):
        return f"pod {pod.full_name} does not come in\n  {verdict}"
    if isinstance(verdict, NotYet):
        return f"pod {pod.full_name} has to wait\n  {verdict}"
    how = "was admitted before and stays" if verdict.repeated else "is admitted and remembered"
    return f"pod {pod.full_name} {how}"
