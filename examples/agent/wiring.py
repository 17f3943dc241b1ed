"""Sources, admission, the life of pods, probes and status, wired to one runtime and one store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import cached_property, partial
from pathlib import Path

import attrs

from examples.agent.build import device_plugins_of, node_of, watcher_of
from examples.agent.place import MACHINE, Place, Stage
from examples.agent.saying import ProbeEvents, SaidHooks, Waits, say_outages
from examples.agent.state_file import check_state_files, link_state_files
from nodealloc.agent import (
    AdmissionPreparer,
    Agent,
    Beside,
    ConfinedRuntime,
    ContainerGc,
    GrantedConfiguration,
    Remembered,
    Rulebook,
    StaticPodSink,
    node_volumes,
    object_variables,
    preparations_of,
    remembering_editions,
)
from nodealloc.cgroups import QosTree
from nodealloc.cpuset import CpuAllocator, CpusetReconciler
from nodealloc.cri import last_output
from nodealloc.dsw_asw import Driven, Failure, Periodic, ThreadExecutor, World
from nodealloc.kubeconfig import KubeletConfig, NodePlan, life_policy, pod_sources
from nodealloc.node import NodeAllocator
from nodealloc.podlife import (
    ContainerHooks,
    Ending,
    HookRunner,
    ImageFacts,
    LoggedRuntime,
    NodeConfiguration,
    PodFacts,
    PodFiles,
    PodLives,
    SecretCredentials,
    TerminationMessages,
)
from nodealloc.podlife.preparers import BegunPods, CgroupPreparer, FolderPreparer
from nodealloc.podsources import PodSources
from nodealloc.podspec import Pod
from nodealloc.podstatus import (
    JsonLinesSink,
    Part,
    Sink,
    StatusManager,
    TellingOptions,
    Told,
    observed_of,
    with_source,
    with_verdicts,
)
from nodealloc.probes import ProbeOptions, Probers, Probing
from nodealloc.probes.health import GrpcProber
from nodealloc.runtime import Pace, RuntimeWatch
from nodealloc.volumes import VolumeManager

__all__ = ["wire"]


def wire(
    config: KubeletConfig, plan: NodePlan, place: Place, rules: Rulebook, stage: Stage = MACHINE
) -> Agent:
    """Everything that runs the pods of a configuration's sources, ready to start.

    With the executor of a stage all that has threads of its own is a member of the group instead.
    """
    return _Parts(config, plan, place, rules, stage).agent()


class _Parts:
    """The parts of an agent; each is made once, when the first other asks for it."""

    def __init__(
        self, config: KubeletConfig, plan: NodePlan, place: Place, rules: Rulebook, stage: Stage
    ) -> None:
        self.config, self.plan, self.place, self.rules, self.stage = config, plan, place, rules, stage
        self.was = Remembered.read(place.store, now=stage.now())
        self.variables = object_variables(place.objects)
        self.node = self._held()
        logs = Path(place.settings.logs_directory)
        self.runtime = LoggedRuntime(place.runtime, links=place.links, logs=logs)
        self.facts: World[str, PodFacts] = World("facts of pods")
        self.told: World[str, Told] = World("told")
        self.begun = BegunPods(is_let_in=self.node.holds)
        self.beside, self.driven = self._devices()

    def _held(self) -> NodeAllocator:
        """What is held, by an agent that may start as it is told to."""
        anew = self.rules.admits_anew
        if self.rules.starts_otherwise:
            return node_of(self.plan, self.place.store, admits_anew=anew)
        check_state_files(self.place.root, self.plan.empty)
        node = node_of(self.plan, self.place.store, files=("cpu", "memory"), admits_anew=anew)
        link_state_files(self.place.root)
        return node

    def agent(self) -> Agent:
        """All of them as one."""
        self.begun.follow(self.lives)
        once_known: dict[str, Callable[[], object]] = {
            "cgroups": self.cgroups.settle,
            "folders": lambda: self.folders.settle(self._known),
            "links of logs": self.runtime.settle,
        }
        if isinstance(self.sink, StaticPodSink):
            once_known["static pods"] = self.sink.heard
        by_hand = self.stage.executor is not None
        collects = () if self.rules.life.clears_away else (self._container_gc(),)
        return Agent(
            self.watch,
            *collects,
            *self._waits(),
            self.cgroups.rounds(executor=self.stage.executor, clock=self.stage.clock),
            *((self.sources, self.probing, *self.driven) if by_hand else ()),
            lives=self.lives,
            probing=self.probing,
            status=self.status,
            node=self.node,
            cpusets=self.cpusets if self.config.cpu_manager_policy != "none" else None,
            volumes=self.volumes,
            # They have threads of their own beside their passes, so that they are started by themselves.
            beside=() if by_hand else (*self.beside, self.sources, self.probing),
            once_known=once_known,
            gone=self._gone,
            waits_for_deleted=self.rules.waits_for_deleted,
            executor=self.stage.executor,
            clock=self.stage.clock,
        )

    def _waits(self) -> Iterator[Driven]:
        """Who says what pods wait for, where anybody is told."""
        stage = self.stage
        if stage.say is not None:
            waits = Waits(self.facts, self._failures, stage.say, self.watch.pods)
            yield Periodic(
                waits.look, every_s=2.0, first_s=2.0, executor=stage.executor, clock=stage.clock, name="waits"
            )

    def _failures(self, uid: str) -> tuple[Failure, ...]:
        return (*self.lives.failures(uid), *self.status.failures(uid))

    def _devices(self) -> tuple[tuple[Beside, ...], tuple[Driven, ...]]:
        """What talks to plugins: started with the agent, or driven with it where that is done by hand."""
        if self.stage.plugins is None:
            self.plugins, registrar = device_plugins_of(self.place.root, self.node)
            return (self.plugins, registrar), ()
        self.plugins, driven = self.stage.plugins(self.node)
        return (), tuple(driven)

    @cached_property
    def watch(self) -> RuntimeWatch:
        """What runs; by a kubelet's rules it is listed each second, and heard of by nothing else."""
        hears = self.rules.life.tells_meanwhile
        watch = RuntimeWatch(
            TerminationMessages(self.runtime, self.place.settings, output=last_output),
            events=self.runtime if hears and self.stage.executor is None else None,
            journal=self.place.store,
            known=self.was.known,
            # When the health is asked for, too: gRPC's threads stay awake for a while after each call.
            pace=Pace(period_s=5.0, is_steady=True, gap_s=0.02, rest_times=10.0)
            if hears
            else Pace(is_steady=True, rest_times=10.0),
            executor=self.stage.executor,
            clock=self.stage.clock,
        )
        if self.stage.say is not None:
            say_outages(watch, self.stage.say)
        return watch

    @cached_property
    def sources(self) -> PodSources:
        """Which pods there should be."""
        wakers, path = dict(self.place.wakers), self.config.static_pod_path
        if path and (waker := watcher_of(Path(path), below=False)) is not None:
            wakers["file"] = waker
        sources = pod_sources(
            self.config,
            node_name=self.plan.view.name,
            editions=self.was.editions,
            remember=remembering_editions(self.place.store),
            known=self.was.pods,
            others=self.place.others,
            wakers=wakers,
            rules=self.rules.sources,
            executor=self.stage.executor,
            clock=self.stage.clock,
        )
        if self.stage.say is not None:
            sources.tell_faults(self.stage.say)
        return sources

    @cached_property
    def probing(self) -> Probing[PodFacts]:
        """What containers answer."""
        return Probing(
            Probers.real(commands=self.runtime, grpc=GrpcProber()),
            reports=self.facts,
            journal=self.place.store,
            remembered=self.was.verdicts,
            on_event=None if self.stage.say is None else ProbeEvents(self.stage.say).told,
            options=ProbeOptions(node_ip=self.place.node_ip),
            rules=self.rules.probes,
            unix_s=self.stage.unix_s,
            executor=self.stage.executor,
            clock=self.stage.clock,
        )

    @cached_property
    def cpusets(self) -> CpusetReconciler:
        """Confines containers to what their pods hold."""
        return CpusetReconciler(
            self.place.cpusets,
            executor=ThreadExecutor("cpusets") if self.stage.executor is None else self.stage.executor,
            allocator=self.node.snapshot[CpuAllocator],
            recheck_s=self.config.cpu_manager_reconcile_period_s,
            clock=self.stage.clock,
        )

    @cached_property
    def volumes(self) -> VolumeManager:
        """Mounts what pods name."""
        if self.stage.volumes is not None:
            return self.stage.volumes(self.begun)
        place, standalone = self.place, self.rules.standalone
        amounts = place.settings.allocatable
        return node_volumes(place.root, self.begun, place.objects, allocatable=amounts, standalone=standalone)

    @cached_property
    def cgroups(self) -> CgroupPreparer:
        """Limits pods; what nobody knows any more goes once it is known what runs."""
        follows = not self.rules.standalone
        tree = QosTree(self.place.driver, self.plan.tree, clock=self.stage.clock, mends_pods=follows)
        return self.was.cgroups(tree, self.watch, follows=follows)

    @cached_property
    def folders(self) -> FolderPreparer:
        """Each pod's own directory."""
        sources = self.sources
        return FolderPreparer(self.place.root / "pods", lambda uid: uid in sources.pods)

    def _gone(self, uid: str) -> None:
        self.folders.remove(uid)
        # By a kubelet's rules they go with what is left of its containers.
        if self.rules.life.clears_away and uid not in self.lives.wanted:
            self.runtime.forget(uid)

    def _known(self) -> Collection[str]:
        worlds = self.sources.pods, self.lives.wanted, self.lives.pods, self.watch.seen
        return {uid for world in worlds for uid in world.snapshot()}

    @cached_property
    def lives(self) -> PodLives:
        """What runs and ends pods."""
        runtime, stage = self.runtime, self.stage
        confined = ConfinedRuntime(runtime, node=self.node, cpusets=self.cpusets, watch=self.watch)
        edits = self.rules.life.follows_edits
        admission = AdmissionPreparer(
            self.node,
            confined=confined,
            end=self._end,
            judges_edits=edits,
            may_leave=self.sources.may_leave,
        )
        return PodLives(
            confined,
            watch=self.watch,
            configuring=self._configuring(),
            hooks=self._hooks(),
            preparations=preparations_of(
                admission=admission,
                folders=self.folders,
                cgroups=self.cgroups,
                volumes=self.volumes,
                plugins=self.plugins,
                # Mounts of a machine's own take a few milliseconds; by hand nobody mounts meanwhile.
                mounting_s=0.05 if stage.executor is None else 0.0,
            ),
            credentials=None if self.variables is None else SecretCredentials(self.variables),
            probes=self.probing.verdicts,
            told=self.told if self.rules.status.ready_falls_first else None,
            sources=self.sources,
            journal=self.place.store,
            remembered=self.was.asking_again(admission.NAME) if self.rules.admits_anew else self.was.lives,
            policy=life_policy(self.config),
            rules=self.rules.life,
            facts=self.facts,
            now=stage.now,
            executor=stage.executor,
            clock=stage.clock,
        )

    def _hooks(self) -> HookRunner:
        stage = self.stage
        # A kubelet knows no address of a pod with the node's network.
        node_ip = "" if self.rules.standalone else self.place.node_ip
        hooks = ContainerHooks(self.runtime, node_ip=node_ip) if stage.hooks is None else stage.hooks
        return hooks if stage.say is None else SaidHooks(hooks, stage.say)

    def _end(self, uid: str, why: Ending) -> bool:
        return self.lives.end(uid, why)  # made later than who calls this

    @cached_property
    def sink(self) -> Sink:
        """Who is told."""

        def pod(uid: str) -> Pod | None:
            facts = self.lives.facts.get(uid)
            return self.sources.pods.get(uid) if facts is None else facts.pod

        told = self.stage.sink
        if told is None:
            told = JsonLinesSink(self.place.status, pod, unix_s=self.stage.unix_s)
        if not self.rules.standalone:
            return told
        return StaticPodSink(told, self.lives, self.sources, clock=self.stage.clock, again=self._tell_again)

    def _tell_again(self, uid: str) -> None:
        self.status.retry_now(uid)  # made later than who calls this

    def _configuring(self) -> GrantedConfiguration:
        image, host_ips = partial(ImageFacts.of, self.runtime), (self.place.node_ip,)
        whole = NodeConfiguration(
            attrs.evolve(self.place.settings, as_kubelet=self.rules.standalone),
            fresh=self.place.fresh,
            image=image,
            source=self.variables,
            files=PodFiles(),
            host_ips=host_ips,
            sub_paths=self.volumes.sub_paths,
        )
        confines = self.config.cpu_manager_policy != "none"
        return GrantedConfiguration(whole=whole, node=self.node, plugins=self.plugins, confines=confines)

    def _container_gc(self) -> ContainerGc:
        return ContainerGc(
            self.runtime,
            watch=self.watch,
            lives=self.lives,
            executor=self.stage.executor,
            clock=self.stage.clock,
            unix_s=self.stage.unix_s,
        )

    @cached_property
    def status(self) -> StatusManager[PodFacts]:
        """What pods are told to be."""
        alone = self.rules.standalone
        telling = TellingOptions(
            node_ips=[self.place.node_ip],
            runtime=self.place.scheme,
            says_next_try=not alone,
            gather_s=0.0 if alone else 1.0,
            settle_s=0.0 if alone else 0.02,
        )
        return StatusManager(
            self.sink,
            self.facts,
            observed=observed_of,
            parts=[Part.of(self.probing.verdicts, with_verdicts), Part.of(self.sources.pods, with_source)],
            journal=self.place.store,
            remembered=self.was.told_of(self.lives, self.rules.life),
            told=self.told,
            options=telling,
            rules=self.rules.status,
            unix_s=self.stage.unix_s,
            executor=self.stage.executor,
            clock=self.stage.clock,
        )
