"""The parts of a pod that are made ready before anything of it runs: each a preparer of two methods."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from nodealloc.admission import MakingRoom
from nodealloc.cgroups import QosTree, RemovalState, TreeReport, pod_name
from nodealloc.cpuset import CpuAllocator, CpusetReconciler
from nodealloc.devices.plugins import DevicePlugins
from nodealloc.dsw_asw import Cancel, World
from nodealloc.node import NodeAllocator
from nodealloc.podlife import ContainerGift, PodGift, Provided
from nodealloc.podspec import Container, Pod
from nodealloc.topology import Owner
from nodealloc.verdicts import Admitted, NotYet, Refused
from nodealloc.volumes import VolumeManager, parse_mountinfo

__all__ = ["Admission", "Cgroups", "Devices", "Folders", "Volumes"]

_SOON_S = 0.1


class Admission:
    """May it come in; what it is granted is remembered, and shared containers make room for it first.

    Args:
        node: Judges, and remembers.
        cpusets: Moves shared containers off CPUs that become somebody's own.
        end: Ends a pod that has to make room.
    """

    def __init__(self, node: NodeAllocator, cpusets: CpusetReconciler, end: Callable[[str], None]) -> None:
        self._node, self._cpusets, self._end = node, cpusets, end

    def make_ready(self, pod: Pod, _cancel: Cancel, /) -> Admitted | NotYet | Refused:
        """See `Preparer.make_ready`: it is ready once nobody else runs on its CPUs."""
        verdict = self._node.admit(pod)
        if isinstance(verdict, MakingRoom):
            for uid in verdict.victims:
                self._end(uid)
        if not isinstance(verdict, Admitted):
            return verdict
        self._cpusets.follow(self._node.snapshot[CpuAllocator])
        self._cpusets.reconcile()
        others = {
            one
            for container in pod.all_containers
            for one in self._cpusets.intruders_of(Owner(pod.uid, container.name))
        }
        if others:
            words = f"containers that still run on its CPUs: {', '.join(sorted(others))}"
            return NotYet(blocker="cpusets", message=words, after_s=_SOON_S)
        return verdict

    def take_back(self, pod: Pod, _cancel: Cancel, /) -> None:
        """See `Preparer.take_back`."""
        self._node.release(pod.uid)
        self._cpusets.follow(self._node.snapshot[CpuAllocator])
        self._cpusets.reconcile()


class Cgroups:
    """Pods' cgroups; one round of the tree serves all pods that came meanwhile.

    Args:
        tree: Keeps them.
        pods: Known from an earlier life.
        running: Uids of the pods of which the runtime has something; None while nobody knows.
        follows: Whether an edit of a pod changes its cgroup; a kubelet leaves it as it was made.
    """

    def __init__(
        self,
        tree: QosTree,
        pods: Iterable[Pod],
        running: Callable[[], Collection[str] | None],
        *,
        follows: bool = True,
    ) -> None:
        self._tree, self._running, self._follows = tree, running, follows
        self._lock = threading.Lock()
        self._rounds = threading.Lock()
        self._pods = {pod.uid: pod for pod in pods}
        self._gone: set[str] = set()
        self._asked = self._done = 0
        self._last = TreeReport(applied={}, removals=(), failed={})

    def settle(self) -> None:
        """Make a round for the pods that are known."""
        self._round()

    def make_ready(self, pod: Pod, _cancel: Cancel, /) -> Provided | NotYet:
        """See `Preparer.make_ready`."""
        with self._lock:
            if self._follows or pod.uid not in self._pods:
                self._pods[pod.uid] = pod
            self._gone.discard(pod.uid)
        report = self._round()
        if report is None:
            return NotYet(blocker="runtime", message="what runs is not known yet", after_s=_SOON_S)
        name = pod_name(self._tree.options.root, pod)
        why = report.refused.get(pod.uid) or report.failed.get(name)
        if why is not None:
            return NotYet(blocker="cgroups", message=str(why), after_s=1.0)
        return Provided(value=PodGift(cgroup_parent=name.path()))

    def take_back(self, pod: Pod, _cancel: Cancel, /) -> NotYet | None:
        """See `Preparer.take_back`: whatever is still in there is ended."""
        with self._lock:
            self._pods.pop(pod.uid, None)
            self._gone.add(pod.uid)
        report = self._round()
        name = pod_name(self._tree.options.root, pod)
        left = [] if report is None else [one for one in report.removals if one.name == name]
        if report is None or any(one.state is not RemovalState.REMOVED for one in left):
            return NotYet(blocker="cgroups", message=f"{name} is being removed", after_s=_SOON_S)
        return None

    def _round(self) -> TreeReport | None:
        with self._lock:
            self._asked += 1
            mine = self._asked
        with self._rounds:
            running = self._running()
            if running is None:
                return None
            with self._lock:
                if self._done >= mine:
                    return self._last
                self._done, pods = self._asked, dict(self._pods)
            # Of what runs and nobody has told of, the cgroup stays as it is: so it is for a pod
            # that can have none, such as one with a limit below a page.
            self._gone &= set(running)
            for uid in set(running) - pods.keys() - self._gone:
                pods[uid] = Pod(uid=uid, containers=(Container(name="unknown", limits={"memory": 1}),))
            self._last = self._tree.reconcile(pods.values())
            return self._last


class Folders:
    """The pod's own directory: there while a source has the pod, or anything is mounted below it.

    Args:
        pods: Holds all of them.
        has: Whether a source has a pod.
    """

    def __init__(self, pods: Path, has: Callable[[str], bool]) -> None:
        self._pods, self._has = pods, has

    def make_ready(self, pod: Pod, _cancel: Cancel, /) -> Admitted:
        """See `Preparer.make_ready`."""
        for name in ("volumes", "plugins"):
            (self._pods / pod.uid / name).mkdir(parents=True, exist_ok=True)
        return Admitted()

    def take_back(self, pod: Pod, _cancel: Cancel, /) -> NotYet | None:
        """See `Preparer.take_back`."""
        mounted = self._mounted(pod.uid)
        if mounted:
            return NotYet(blocker="mounts", message=f"still mounted: {', '.join(mounted)}", after_s=1.0)
        self.remove(pod.uid)
        return None

    def remove(self, uid: str) -> None:
        """Remove the directory, unless it is needed."""
        if not self._has(uid) and not self._mounted(uid):
            shutil.rmtree(self._pods / uid, ignore_errors=True)

    def _mounted(self, uid: str) -> list[str]:
        mounts = parse_mountinfo(Path("/proc/self/mountinfo").read_text(errors="surrogateescape"))
        return [one.target for one in mounts if one.target.startswith(f"{self._pods / uid}/")]


class Volumes:
    """The volume manager, told of one pod after the other.

    Attributes:
        mounted: Counts changes of a pod's mounts, so that it is asked again at once.
    """

    def __init__(self, manager: VolumeManager) -> None:
        self._manager = manager
        self.mounted: World[str, int] = World("changes of mounts")
        self._changes = manager.actual.watch(self._changed)

    def make_ready(self, pod: Pod, _cancel: Cancel, /) -> Provided | NotYet:
        """See `Preparer.make_ready`."""
        self._manager.pod_changed(pod.uid)
        used = {use.name for one in pod.all_containers for use in one.volumes}
        found = {one.name: one for one in self._manager.volumes_of(pod.uid)}
        missing = sorted(name for name in used if name not in found or not found[name].mounted)
        if missing:
            why = [f"{name} ({found[name].error})" if name in found else name for name in missing]
            return NotYet(blocker="volumes", message=f"not mounted yet: {', '.join(why)}", after_s=1.0)
        paths = {name: one.path for name, one in found.items()}
        return Provided(value=PodGift(everywhere=ContainerGift(volumes=paths)))

    def take_back(self, pod: Pod, _cancel: Cancel, /) -> NotYet | None:
        """See `Preparer.take_back`."""
        self._manager.pod_changed(pod.uid)
        held = self._manager.holds(pod.uid)
        return NotYet(blocker="volumes", message="still mounted", after_s=_SOON_S) if held else None

    def _changed(self) -> None:
        for key in self._changes.take():
            record = self._manager.actual.get(key)
            for uid in record.mounts if record is not None else ():
                self.mounted.alter(uid, lambda count: (count or 0) + 1, by="mounts")


class Devices:
    """What device plugins have to do for a pod before its containers start."""

    def __init__(self, plugins: DevicePlugins) -> None:
        self._plugins = plugins

    def make_ready(self, pod: Pod, _cancel: Cancel, /) -> Admitted:
        """See `Preparer.make_ready`."""
        self._plugins.prepare(pod.uid)
        return Admitted()

    def take_back(self, _pod: Pod, _cancel: Cancel, /) -> None:
        """See `Preparer.take_back`: the grant goes with the admission."""
