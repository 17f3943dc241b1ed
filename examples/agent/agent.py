"""The agent: sources, admission, the life of pods, probes and status, wired to one runtime and one store."""

from __future__ import annotations

import threading
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import cast

import attrs

from examples.agent.build import Built
from examples.agent.config import KubeletConfig, seconds
from examples.agent.kept import Kept
from examples.agent.made_from import Configuring
from examples.agent.parts import Admission, Devices
from examples.agent.sweeper import Collector
from examples.agent.told import StatusFile
from nodealloc.cgroups import CgroupFs, QosTree
from nodealloc.checkpoint import Store
from nodealloc.cpuset import CpuAllocator, CpusetReconciler, CpusetWriter
from nodealloc.cri import last_output
from nodealloc.devices import DeviceAllocator
from nodealloc.devices.plugins import DeviceAdvisor, DevicePlugins
from nodealloc.dirwatch import InotifyWatcher, Watcher
from nodealloc.dsw_asw import Group, ThreadExecutor, World
from nodealloc.node import NodeAllocator, confinement_of
from nodealloc.pluginreg import PluginRegistrar
from nodealloc.podfacts import LifeState, PodPhase, PodStatus
from nodealloc.podlife import (
    ContainerHooks,
    Ending,
    EndingKind,
    ImageFacts,
    LastWords,
    LifePolicy,
    LifeTold,
    LifeVerdicts,
    LoggedRuntime,
    NodeConfiguration,
    NodeSettings,
    PodFacts,
    PodFiles,
    PodLives,
    Preparation,
    RestartBackOff,
    WholeRuntime,
)
from nodealloc.podlife import Rules as LifeRules
from nodealloc.podlife.preparers import BegunPods, CgroupPreparer, FolderPreparer, VolumePreparer
from nodealloc.podsources import FolderSource, HttpSource, PodSources, Polling, Source
from nodealloc.podsources import Rules as SourceRules
from nodealloc.podspec import Pod
from nodealloc.podstatus import (
    Observed,
    Part,
    StatusManager,
    TellingOptions,
    Told,
    observed_of,
    with_runtime,
    with_verdicts,
)
from nodealloc.podstatus import Rules as StatusRules
from nodealloc.probes import ProbeOptions, Probers, Probing
from nodealloc.probes import Rules as ProbeRules
from nodealloc.probes.health import GrpcProber
from nodealloc.runtime import Images, Pace, RunState, RuntimeWatch
from nodealloc.topology import Owner
from nodealloc.volumes import (
    LinuxMounter,
    LinuxMountTable,
    PodsDirectory,
    SafeRoot,
    VolumeManager,
    WatchedMounter,
)
from nodealloc.volumes.plugins import EmptyDir, HostPath

__all__ = ["Agent", "Place", "Rulebook"]


@attrs.frozen(kw_only=True)
class Rulebook:
    """Whose rules hold, package by package."""

    life: LifeRules = LifeRules()
    sources: SourceRules = SourceRules()
    status: StatusRules = StatusRules()
    probes: ProbeRules = ProbeRules()
    vanishes: bool = False


@attrs.frozen(kw_only=True)
class Place:
    """What the agent stands on.

    Attributes:
        runtime: Runs containers.
        cpusets: Confines them.
        driver: Of the cgroups.
        store: Remembers.
        root: Holds `pods` and the plugins' sockets.
        settings: What all pods get.
        node_ip: Of the node.
        status: File of what pods are told to be.
        links: Folder of links to logs; None for none.
    """

    runtime: WholeRuntime
    cpusets: CpusetWriter
    driver: CgroupFs
    store: Store
    root: Path
    settings: NodeSettings
    node_ip: str
    status: Path
    links: Path | None = None


class Agent:
    """Runs the pods of a configuration's sources.

    Attributes:
        group: Everything that is driven.
        lives: Pods.
        node: What is held.
    """

    def __init__(self, config: KubeletConfig, built: Built, place: Place, rules: Rulebook) -> None:
        self._place, self._rules = place, rules
        self._confines = config.cpu_manager_policy != "none"
        runtime = LoggedRuntime(place.runtime, links=place.links)
        kept = Kept(place.store)
        was = kept.read()
        looks = LastWords(runtime, place.settings, output=last_output)
        self._watch = RuntimeWatch(
            looks,
            events=runtime if rules.life.tells_meanwhile else None,
            journal=place.store,
            known=was.known,
            pace=Pace(
                period_s=5.0 if rules.life.tells_meanwhile else 1.0,
                gap_s=0.02 if rules.life.tells_meanwhile else 0.1,
                rest_times=10.0,
            ),
        )
        self.node = _node(built, place.store)
        self._cpusets = CpusetReconciler(
            place.cpusets,
            executor=ThreadExecutor("cpusets"),
            allocator=self.node.snapshot[CpuAllocator],
            recheck_s=seconds(config.cpu_manager_reconcile_period),
        )
        self._plugins, self._registrar = self._devices(place.root)
        self._sources = PodSources(
            _sources(config, built.view.name, rules.sources),
            wakers=_wakers(config),
            editions=was.editions,
            remember=kept.remember,
            polling=Polling(period_s=seconds(config.file_check_frequency)),
            rules=rules.sources,
        )
        facts: World[str, PodFacts] = World("facts of pods")
        self._probing: Probing[PodFacts] = Probing(
            Probers.real(commands=runtime, grpc=GrpcProber()),
            reports=facts,
            journal=place.store,
            remembered=was.verdicts,
            options=ProbeOptions(node_ip=place.node_ip),
            rules=rules.probes,
        )
        self._volumes = self._volume_manager(place.root)
        self._folders = FolderPreparer(place.root / "pods", self._has)
        self._cgroups = CgroupPreparer(
            QosTree(place.driver, built.tree),
            [one.pod for one in was.lives.values() if "cgroups" in one.made],
            self._running,
            follows=not rules.vanishes,
        )
        told: World[str, Told] = World("told")
        self.lives = PodLives(
            runtime,
            watch=self._watch,
            configuring=Configuring(
                whole=NodeConfiguration(
                    place.settings,
                    image=partial(_image, runtime),
                    files=PodFiles(),
                    host_ips=(place.node_ip,),
                ),
                node=self.node,
                plugins=self._plugins,
                confines=self._confines,
            ),
            hooks=ContainerHooks(runtime),
            preparations=self._preparations(),
            probes=cast("World[str, LifeVerdicts]", self._probing.verdicts),
            told=cast("World[str, LifeTold]", told) if rules.status.ready_falls_first else None,
            sources=self._sources,
            journal=place.store,
            remembered=was.lives,
            policy=_policy(config),
            rules=rules.life,
            facts=facts,
        )
        sink = StatusFile(place.status, self._pod, self._is_shown if rules.vanishes else None, self._is_early)
        self._status = StatusManager(
            sink,
            self.lives.facts,
            observed=_observed,
            parts=[Part.of(self._probing.verdicts, with_verdicts)],
            journal=place.store,
            # A kubelet forgets what it told of a pod that it refused: it asks again.
            remembered={
                uid: one
                for uid, one in was.told.items()
                if rules.life.keeps_refusals or uid in self.lives.pods
            },
            told=told,
            options=TellingOptions(node_ips=[place.node_ip], says_next_try=not rules.vanishes),
            rules=rules.status,
        )
        collects = not rules.life.clears_away
        self._collector = Collector(runtime, self._watch, self.lives) if collects else None
        self._facts = self.lives.facts.watch(self._follow_facts)
        self._sink, self._said = sink, self._sources.pods.watch(self._follow_sources)
        self._heard = threading.Thread(target=self._when_heard, name="first look", daemon=True)
        self._over = threading.Event()
        # The sources have threads of their own beside their passes, so that they are started by themselves.
        self.group = Group(self._watch, self._volumes, self._cpusets.engine, self.lives, self._status)

    def start(self) -> None:
        """Go."""
        self._plugins.start()
        self._registrar.start()
        self._sources.start()
        self._probing.start()
        self.group.start()
        self._heard.start()
        if self._collector is not None:
            self._collector.start()

    def stop(self) -> None:
        """Start nothing more; containers run on."""
        self._over.set()
        if self._collector is not None:
            self._collector.stop()
        self.group.stop(5.0)
        self._probing.stop(5.0)
        self._sources.stop(5.0)
        self._registrar.stop()
        self._plugins.stop()

    # What follows what.

    def _when_heard(self) -> None:
        """Once it is known what runs, and which pods there should be: the tree, and who is no more."""
        while self._watch.heard().listing == 0 and not self._over.wait(0.02):
            pass
        self._cgroups.settle()
        while not self.lives.is_ready() and not self._over.wait(0.05):
            pass
        self._volumes.pods_changed()
        for uid in self.lives.facts.snapshot() if self._rules.vanishes else ():
            if not self._has(uid):
                self._sink.vanish(uid)
        self._status.heard()
        self._probing.keep_only(self.lives.wanted.snapshot().keys())

    def _running(self) -> Collection[str] | None:
        return None if self._watch.heard().listing == 0 else tuple(self._watch.seen.snapshot())

    def _follow_facts(self) -> None:
        """Probes and cpusets follow what pods do."""
        for uid in self._facts.take():
            facts = self.lives.facts.get(uid)
            if facts is None:
                self._probing.remove(uid)
                self._folders.remove(uid)
                continue
            self._probing.put(facts.pod, facts.life)
            if facts.life is LifeState.TERMINATING:
                self.node.mark_ending(uid)
            report = facts.known.report if facts.known and self._confines else None
            for one in report.containers if report else ():
                if one.record.state is RunState.RUNNING:
                    owner = Owner(uid, one.record.name)
                    mems = confinement_of(self.node.snapshot, owner).mems
                    self._cpusets.add(one.record.id, owner, mems=mems)
                else:
                    self._cpusets.remove(one.record.id)

    def _follow_sources(self) -> None:
        for uid in self._said.take():
            if self._rules.vanishes and not self._has(uid):
                self._sink.vanish(uid)

    def _is_shown(self, uid: str) -> bool:
        """Whether a kubelet tells of a pod: not of one that waits for its predecessor."""
        facts = self.lives.facts.get(uid)
        return self._has(uid) and (facts is None or facts.life is not LifeState.WAITING)

    def _is_early(self, uid: str, status: PodStatus) -> bool:
        """Whether a kubelet has not let a pod in yet, or refused it: it tells nothing else of it."""
        record = self.lives.pods.get(uid)
        if not self._rules.vanishes or record is None:
            return False
        if record.ending is not None and record.ending.kind is EndingKind.REFUSED:
            return status.phase is not PodPhase.FAILED
        return record.life is LifeState.SYNCING and "admission" not in record.edition_ready

    def _has(self, uid: str) -> bool:
        """Whether a source has a pod now."""
        return uid in self._sources.pods

    def _pod(self, uid: str) -> Pod | None:
        facts = self.lives.facts.get(uid)
        return self._sources.pods.get(uid) if facts is None else facts.pod

    # How things are made.

    def _preparations(self) -> list[Preparation]:
        volumes = VolumePreparer(self._volumes)
        return [
            Preparation(
                name="admission",
                why="nothing is made for a pod that may not come in",
                by=Admission(self.node, self._cpusets, self._make_room, allocates_first=self._rules.vanishes),
            ),
            Preparation(
                name="folders",
                why="volumes lie in the pod's own directory",
                by=self._folders,
            ),
            Preparation(name="cgroups", why="whatever is started for a pod is limited", by=self._cgroups),
            Preparation(
                name="volumes",
                why="containers are made with their mounts",
                by=volumes,
                wakes=cast("World[str, object]", volumes.mounted),
            ),
            Preparation(
                name="devices",
                why="plugins have to allocate before a container is made",
                by=Devices(self._plugins),
            ),
        ]

    def _make_room(self, uid: str) -> None:
        ending = Ending(
            kind=EndingKind.EVICTED,
            reason="Preempting",
            message="Preempted in order to admit critical pod",
            disruption="TerminationByKubelet",
        )
        self.lives.end(uid, ending)

    def _devices(self, root: Path) -> tuple[DevicePlugins, PluginRegistrar]:
        plugins = DevicePlugins(self.node.allocator(DeviceAllocator), directory=root / "device-plugins")
        self.node.advise_with(DeviceAdvisor(plugins))
        sockets = root / "plugins_registry"
        return plugins, PluginRegistrar(sockets, {"DevicePlugin": plugins}, watcher=_watcher(sockets))

    def _volume_manager(self, root: Path) -> VolumeManager:
        safe = SafeRoot(str(root))
        mounter = WatchedMounter(safe, LinuxMounter(safe), LinuxMountTable())
        manager = VolumeManager(
            [EmptyDir(safe, mounter, keeps_folders=self._rules.vanishes), HostPath()],
            pods=BegunPods(lambda: getattr(self, "lives", None)),
            executor=ThreadExecutor("volumes"),
            leftovers=PodsDirectory(safe, mounter),
            mounts=mounter,
        )
        manager.reconstruct()
        return manager


def _node(built: Built, store: Store) -> NodeAllocator:
    node = NodeAllocator(built.empty, store, view=built.view, chain=built.chain, kubelet_files=["cpu"])
    report = node.start()
    if not report.is_clean:
        print(report, flush=True)
        node.accept()
    return node


def _sources(config: KubeletConfig, name: str, rules: SourceRules) -> dict[str, Source]:
    found: dict[str, Source] = {}
    if config.static_pod_path:
        late_s = seconds(config.file_check_frequency)  # a kubelet notices when it lists the folder
        found["file"] = FolderSource(
            config.static_pod_path,
            node_name=name,
            unreadable_s=late_s,
            is_lenient=not rules.keeps_unreadable,
            rules=rules,
        )
    if config.static_pod_url:
        found["http"] = HttpSource(config.static_pod_url, node_name=name)
    return found


def _wakers(config: KubeletConfig) -> dict[str, Watcher]:
    waker = _watcher(Path(config.static_pod_path), below=False) if config.static_pod_path else None
    return {} if waker is None else {"file": waker}


def _watcher(folder: Path, *, below: bool = True) -> Watcher | None:
    """The kernel tells of changes where its extra is installed; else a look from time to time does."""
    try:
        return InotifyWatcher(str(folder), below=below)
    except ImportError as error:
        print(f"{folder} is only looked at from time to time: {error}", flush=True)
        return None


def _image(images: Images, id_: str) -> ImageFacts:
    found = [one for one in images.images() if one.id == id_]
    return ImageFacts(id=id_, user=found[0].user, username=found[0].username) if found else ImageFacts(id=id_)


def _policy(config: KubeletConfig) -> LifePolicy:
    cap_s = seconds(config.crash_loop_back_off.max_container_restart_period)
    most = 1 if config.serialize_image_pulls else config.max_parallel_image_pulls
    return LifePolicy(
        restarts=RestartBackOff(base_s=min(10.0, cap_s), cap_s=cap_s),
        call_s=seconds(config.runtime_request_timeout),
        pulls_at_once=most,
    )


def _observed(facts: PodFacts) -> Observed | None:
    """What is told of a pod, with what its runtime said when it was looked at."""
    observed = observed_of(facts)
    return observed if observed is None or facts.known is None else with_runtime(observed, facts.known)
