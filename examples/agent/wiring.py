"""Sources, admission, the life of pods, probes and status, wired to one runtime and one store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Self

import attrs

from examples.agent.build import node_of, sources_of, volumes_of, watcher_of
from examples.agent.stage import Stage
from nodealloc.admission import Rules as AdmissionRules
from nodealloc.agent import (
    AdmissionPreparer,
    Agent,
    Beside,
    ConfinedRuntime,
    DevicePreparer,
    GrantedConfiguration,
    RecordCollection,
    Remembered,
    StaticPodSink,
)
from nodealloc.cgroups import CgroupFs, QosTree
from nodealloc.checkpoint import Store
from nodealloc.cpuset import CpuAllocator, CpusetReconciler, CpusetWriter
from nodealloc.cri import last_output
from nodealloc.devices import DeviceAllocator
from nodealloc.devices.plugins import DeviceAdvisor, DevicePlugins
from nodealloc.dirwatch import Watcher
from nodealloc.dsw_asw import Driven, ThreadExecutor, World
from nodealloc.kubeconfig import KubeletConfig, NodePlan, life_policy
from nodealloc.node import NodeAllocator
from nodealloc.pluginreg import PluginRegistrar
from nodealloc.podlife import (
    ContainerHooks,
    ImageFacts,
    LastWords,
    LoggedRuntime,
    NodeConfiguration,
    NodeSettings,
    PodFacts,
    PodFiles,
    PodLives,
    Preparation,
)
from nodealloc.podlife import Rules as LifeRules
from nodealloc.podlife.preparers import BegunPods, CgroupPreparer, FolderPreparer, VolumePreparer
from nodealloc.podsources import PodSources, Source
from nodealloc.podsources import Rules as SourceRules
from nodealloc.podspec import Pod
from nodealloc.podstatus import (
    JsonLinesSink,
    Observed,
    Part,
    Sink,
    StatusManager,
    TellingOptions,
    Told,
    observed_of,
    with_runtime,
    with_source,
    with_verdicts,
)
from nodealloc.podstatus import Rules as StatusRules
from nodealloc.probes import ProbeOptions, Probers, Probing
from nodealloc.probes import Rules as ProbeRules
from nodealloc.probes.health import GrpcProber
from nodealloc.runtime import Pace, RuntimeWatch, WholeRuntime
from nodealloc.volumes import VolumeManager

__all__ = ["Place", "Rulebook", "wire"]


@attrs.frozen(kw_only=True)
class Rulebook:
    """Whose rules hold, package by package.

    Attributes:
        standalone: Whether pods are told of and collected as by a kubelet without an API server.
    """

    admission: AdmissionRules = AdmissionRules()
    life: LifeRules = LifeRules()
    sources: SourceRules = SourceRules()
    status: StatusRules = StatusRules()
    probes: ProbeRules = ProbeRules()
    standalone: bool = False


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
        others: Sources beside those of the configuration, by name: an API server's is `api`.
        wakers: Of those, who says when to read them.
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
    others: Mapping[str, Source] = attrs.field(factory=dict[str, Source])
    wakers: Mapping[str, Watcher] = attrs.field(factory=dict[str, Watcher])


_MACHINE = Stage()


def wire(
    config: KubeletConfig, plan: NodePlan, place: Place, rules: Rulebook, stage: Stage = _MACHINE
) -> Agent:
    """Everything that runs the pods of a configuration's sources, ready to start.

    With the executor of a stage all that has threads of its own is a member of the group instead.
    """
    was, held = Remembered.read(place.store, now=stage.now()), _Held.of(config, plan, place, stage)
    runtime = LoggedRuntime(place.runtime, links=place.links)
    watch = _watch(runtime, place, rules, was, stage)
    sources = sources_of(
        config,
        plan.view.name,
        place.store,
        was,
        rules.sources,
        others=place.others,
        wakers=place.wakers,
        executor=stage.executor,
        clock=stage.clock,
    )
    facts: World[str, PodFacts] = World("facts of pods")
    probing = _probing(runtime, place, (rules, stage), was, facts)
    begun = BegunPods()
    volumes = (
        volumes_of(place.root, begun, keeps_folders=rules.standalone)
        if stage.volumes is None
        else stage.volumes(begun)
    )
    cgroups = _cgroups(plan, place, rules, was, watch)
    folders = FolderPreparer(place.root / "pods", lambda uid: uid in sources.pods)
    confined = ConfinedRuntime(runtime, node=held.node, cpusets=held.cpusets, watch=watch)
    admission = AdmissionPreparer(
        held.node,
        confined=confined,
        end=lambda uid, why: lives.end(uid, why),  # noqa: PLW0108 - they are made of it, below
    )
    told: World[str, Told] = World("told")
    lives = PodLives(
        confined,
        watch=watch,
        configuring=_configuring(runtime, place, held),
        hooks=ContainerHooks(runtime) if stage.hooks is None else stage.hooks,
        preparations=_preparations(admission, folders, cgroups, volumes, held.plugins),
        probes=probing.verdicts,
        told=told if rules.status.ready_falls_first else None,
        sources=sources,
        journal=place.store,
        remembered=was.lives,
        policy=life_policy(config),
        rules=rules.life,
        facts=facts,
        now=stage.now,
        executor=stage.executor,
        clock=stage.clock,
    )
    begun.follow(lives)
    sink = _sink(place, rules, lives, sources, stage)
    status = StatusManager(
        sink,
        facts,
        observed=_observed,
        parts=[Part.of(probing.verdicts, with_verdicts), Part.of(sources.pods, with_source)],
        journal=place.store,
        remembered=was.told_of(lives, rules.life),
        told=told,
        options=TellingOptions(node_ips=[place.node_ip], says_next_try=not rules.standalone),
        rules=rules.status,
        unix_s=stage.unix_s,
        executor=stage.executor,
        clock=stage.clock,
    )
    collects = [] if rules.life.clears_away else [_collection(runtime, watch, lives, stage)]
    by_hand = stage.executor is not None
    return Agent(
        watch,
        *collects,
        *((sources, probing, *held.drives_plugins) if by_hand else ()),
        lives=lives,
        probing=probing,
        status=status,
        node=held.node,
        cpusets=held.cpusets if held.confines else None,
        volumes=volumes,
        # They have threads of their own beside their passes, so that they are started by themselves.
        beside=() if by_hand else (*held.beside, sources, probing),
        once_known={
            "cgroups": cgroups.settle,
            **({"static pods": sink.heard} if isinstance(sink, StaticPodSink) else {}),
        },
        gone=folders.remove,
        executor=stage.executor,
        clock=stage.clock,
    )


@attrs.frozen(kw_only=True)
class _Held:
    """What pods hold, and who confines them to it.

    Attributes:
        beside: What is started and stopped with the agent.
        drives_plugins: What is driven with it instead, where it is driven by hand.
        confines: Whether CPUs are given out.
    """

    node: NodeAllocator
    cpusets: CpusetReconciler
    plugins: DevicePlugins
    beside: Sequence[Beside]
    drives_plugins: Sequence[Driven]
    confines: bool

    @classmethod
    def of(cls, config: KubeletConfig, plan: NodePlan, place: Place, stage: Stage) -> Self:
        node = node_of(plan, place.store)
        beside: Sequence[Beside] = ()
        drives: Sequence[Driven] = ()
        if stage.plugins is None:
            plugins = DevicePlugins(node.allocator(DeviceAllocator), directory=place.root / "device-plugins")
            node.advise_with(DeviceAdvisor(plugins))
            sockets = place.root / "plugins_registry"
            beside = (
                plugins,
                PluginRegistrar(sockets, {"DevicePlugin": plugins}, watcher=watcher_of(sockets)),
            )
        else:
            plugins, drives = stage.plugins(node)
        return cls(
            node=node,
            cpusets=CpusetReconciler(
                place.cpusets,
                executor=ThreadExecutor("cpusets") if stage.executor is None else stage.executor,
                allocator=node.snapshot[CpuAllocator],
                recheck_s=config.cpu_manager_reconcile_period_s,
                clock=stage.clock,
            ),
            plugins=plugins,
            beside=beside,
            drives_plugins=drives,
            confines=config.cpu_manager_policy != "none",
        )


def _watch(
    runtime: LoggedRuntime, place: Place, rules: Rulebook, was: Remembered, stage: Stage
) -> RuntimeWatch:
    hears = rules.life.tells_meanwhile
    return RuntimeWatch(
        LastWords(runtime, place.settings, output=last_output),
        events=runtime if hears and stage.executor is None else None,
        journal=place.store,
        known=was.known,
        pace=Pace(period_s=5.0, gap_s=0.02, rest_times=10.0)
        if hears
        else Pace(is_steady=True, rest_times=10.0),
        executor=stage.executor,
        clock=stage.clock,
    )


def _collection(
    runtime: LoggedRuntime, watch: RuntimeWatch, lives: PodLives, stage: Stage
) -> RecordCollection:
    return RecordCollection(
        runtime, watch=watch, lives=lives, executor=stage.executor, clock=stage.clock, unix_s=stage.unix_s
    )


def _probing(
    runtime: LoggedRuntime,
    place: Place,
    by: tuple[Rulebook, Stage],
    was: Remembered,
    facts: World[str, PodFacts],
) -> Probing[PodFacts]:
    rules, stage = by
    return Probing(
        Probers.real(commands=runtime, grpc=GrpcProber()),
        reports=facts,
        journal=place.store,
        remembered=was.verdicts,
        options=ProbeOptions(node_ip=place.node_ip),
        rules=rules.probes,
        unix_s=stage.unix_s,
        executor=stage.executor,
        clock=stage.clock,
    )


def _cgroups(
    plan: NodePlan, place: Place, rules: Rulebook, was: Remembered, watch: RuntimeWatch
) -> CgroupPreparer:
    return CgroupPreparer(
        QosTree(place.driver, plan.tree),
        [one.pod for one in was.lives.values() if "cgroups" in one.made],
        lambda: None if watch.heard().listing == 0 else tuple(watch.seen.snapshot()),
        follows=not rules.standalone,
    )


def _configuring(runtime: LoggedRuntime, place: Place, held: _Held) -> GrantedConfiguration:
    whole = NodeConfiguration(
        place.settings,
        image=partial(ImageFacts.of, runtime),
        files=PodFiles(),
        host_ips=(place.node_ip,),
    )
    return GrantedConfiguration(whole=whole, node=held.node, plugins=held.plugins, confines=held.confines)


def _preparations(
    admission: AdmissionPreparer,
    folders: FolderPreparer,
    cgroups: CgroupPreparer,
    volumes: VolumeManager,
    plugins: DevicePlugins,
) -> Sequence[Preparation]:
    mounted = VolumePreparer(volumes)
    return [
        Preparation(
            name="admission",
            why="nothing is made for a pod that may not come in",
            by=admission,
            wakes=admission.room,
        ),
        Preparation(name="folders", why="volumes lie in the pod's own directory", by=folders),
        Preparation(name="cgroups", why="whatever is started for a pod is limited", by=cgroups),
        Preparation(
            name="volumes",
            why="containers are made with their mounts",
            by=mounted,
            wakes=mounted.mounted,
        ),
        Preparation(
            name="devices",
            why="plugins have to allocate before a container is made",
            by=DevicePreparer(plugins),
        ),
    ]


def _sink(place: Place, rules: Rulebook, lives: PodLives, sources: PodSources, stage: Stage) -> Sink:
    def pod(uid: str) -> Pod | None:
        facts = lives.facts.get(uid)
        return sources.pods.get(uid) if facts is None else facts.pod

    told = JsonLinesSink(place.status, pod) if stage.sink is None else stage.sink
    return StaticPodSink(told, lives, sources, clock=stage.clock) if rules.standalone else told


def _observed(facts: PodFacts) -> Observed | None:
    """What is told of a pod, with what its runtime said when it was looked at."""
    observed = observed_of(facts)
    return observed if observed is None or facts.known is None else with_runtime(observed, facts.known)
