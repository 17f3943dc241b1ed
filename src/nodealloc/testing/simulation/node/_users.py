"""Whoever acts on a simulated node from outside: users, and what befalls containers; all of it by lot."""

from __future__ import annotations

import random

from nodealloc.podfacts import PodIdentity
from nodealloc.podspec import ContainerPort, Pod, PullPolicy, RestartPolicy, effective_requests
from nodealloc.runtime import ContainerConfig, SandboxConfig
from nodealloc.testing.simulation.node._environment import API, FILE, Environment
from nodealloc.testing.simulation.node._guarantee import is_victim
from nodealloc.testing.simulation.node._pods import (
    asked_again,
    found_pod,
    last_pod,
    over_pod,
    random_pod,
)

__all__ = ["KNOWN_S", "MOST_PODS", "Users"]

MOST_PODS = 8
"""So many at most are wanted at a time."""
KNOWN_S = 3.0
"""So long after it has read that a pod is to go an agent has remembered that, whatever becomes of it."""
_ROLLS, _ROLLED_S = 0.25, 20
"""So often a pod is replaced where it could be, and so many seconds it has to end."""
_LEFT_S = 20
"""So many seconds a pod has to end that somebody asked for that before the agent came."""
_PATIENT = ("1", "4", "6", "9")
"""How uids end of pods whose end nobody hastens: what is late by their whole grace is seen of them."""
_NOTICED_S, _ASKED_S = 0.5, 3.0
"""So long after its deadline an agent that lives ends a pod for it, and has asked its containers to end."""
_IN_HOOK = 0.5
"""Of pods whose hook lasts so many are to end in it; of the others the container does."""
_WORTH_IT = 500
"""Thousandths of CPUs; a pod that takes less than that is not worth its time."""
_LITTLE = 100
"""Thousandths of CPUs of a pod that is there for something else."""


class Users:
    """They want pods, send them away, and start things by hand.

    Args:
        environment: Where they act.
        rng: What is drawn from.
        device_pods: Of the pods so many ask for devices, from 0 to 1.
        hooks: Of main containers so many have a hook, from 0 to 1.

    Attributes:
        found: Uids of pods that somebody else ran here before.
    """

    def __init__(
        self, environment: Environment, rng: random.Random, *, device_pods: float, hooks: float
    ) -> None:
        self._environment = environment
        self._rng = rng
        self._device_pods = device_pods
        self._hooks = hooks
        self._number = 0
        self.found: set[str] = set()
        self._rolled = ""

    def begin(self) -> None:
        """Before the agent's first life somebody else had pods here, which run; one is to go."""
        for source in (API, FILE):
            self._number += 1
            self._run_before(source, f"uid-{self._number}")
        self._run_before(API, "uid-0")
        self._environment.ask_to_end("uid-0", _LEFT_S)
        self._number += 1
        over = over_pod(f"uid-{self._number}")
        self._environment.over.add(over.uid)
        self._environment.want(API, over)
        self.found.add(over.uid)
        self.intrude(self._rng)

    def _run_before(self, source: str, uid: str) -> None:
        """Somebody else runs a pod here, which a source has."""
        pod = found_pod(uid)
        self._environment.want(source, pod)
        self.found.add(uid)
        parent = f"/kubepods/burstable/pod{uid}"
        self._environment.cgroups.leave(parent)
        config = SandboxConfig(pod=PodIdentity.of(pod), hostname=pod.name, cgroup_parent=parent)
        made = self._environment.containers.run_sandbox(config)
        one = ContainerConfig(name=pod.containers[0].name, image=pod.containers[0].image)
        container_id = self._environment.containers.create_container(made, one, config)
        self._environment.containers.unseen.add(container_id)
        self._environment.containers.start_container(container_id)

    def add(self, rng: random.Random) -> None:
        """Somebody wants another pod."""
        if sum(map(len, self._environment.pods.values())) >= MOST_PODS:
            return
        source = FILE if rng.random() < 0.3 else API
        self._environment.want(source, self.another(rng, source))

    def roll(self, rng: random.Random) -> None:
        """Somebody asks a pod to end, and while it does wants another one, for all CPUs that are left.

        Where it has ports of the node the other one is to take those over, and little else.
        """
        environment = self._environment
        if self._rolled not in environment.pods[API]:
            runs = [
                uid for uid in environment.pods[API] if uid not in environment.deletions and self._runs(uid)
            ]
            runs = [uid for uid in runs if self._ports(uid)] or runs
            self._rolled = rng.choice(runs) if runs and rng.random() < _ROLLS else ""
            if self._rolled:
                environment.ask_to_end(self._rolled, _ROLLED_S)
        elif environment.awake_s - environment.reads.ends_s.get(self._rolled, environment.awake_s) > KNOWN_S:
            ports = self._ports(self._rolled)
            self._rolled = ""
            left = environment.room[0] - sum(
                effective_requests(environment.forms.most(pod))["cpu"].milli_value
                for pod in environment.staying()
            )
            if left >= _WORTH_IT:
                self._number += 1
                name, uid = f"pod-{self._number}", f"uid-{self._number}"
                cpus = f"{_LITTLE if ports else left}m"
                environment.want(API, last_pod(name, uid, cpus=cpus, ports=ports))

    def _ports(self, uid: str) -> tuple[ContainerPort, ...]:
        return self._environment.known[uid].containers[0].ports

    def _runs(self, uid: str) -> bool:
        return bool(self._environment.containers.running_of(uid))

    def delete(self, rng: random.Random) -> None:
        """Somebody asks for a pod to end; asked again, perhaps with a shorter grace."""
        uids = [(source, uid) for source, pods in self._environment.pods.items() for uid in pods]
        if not uids:
            return
        again = [one for one in uids if one[1] in self._environment.deletions]
        source, uid = rng.choice(again if again and rng.random() < 0.5 else uids)
        pod = self._environment.pods[source][uid]
        if source == FILE:
            grace_s = float(pod.termination_grace_period_seconds)
            self._environment.delete(uid, grace_s)
            self._environment.let_go(uid)
            return
        before = self._environment.deletions.get(uid)
        own = pod.termination_grace_period_seconds
        grace = rng.choice((1, 3, 10, 20, own, own))
        if before is not None and grace >= before.grace_s:
            return
        self._environment.ask_to_end(uid, grace)

    def shorten(self, rng: random.Random) -> None:
        """Somebody is impatient: a pod that ends is to end sooner."""
        ending = [
            uid
            for uid in self._environment.pods[API]
            if uid in self._environment.deletions
            and self._environment.deletions[uid].grace_s > 2
            and uid != self._rolled
            and not uid.endswith(_PATIENT)
        ]
        if ending:
            uid = rng.choice(ending)
            before_s = self._environment.deletions[uid].grace_s
            self._environment.ask_to_end(uid, int(rng.choice((1, before_s // 2, before_s - 1))))

    def hasten(self, rng: random.Random) -> None:
        """A pod that the node ends for a reason of its own is asked to end at once, too."""
        environment, overdue_s = self._environment, rng.choice((_NOTICED_S, _ASKED_S, _ASKED_S))
        ending = [
            uid
            for uid in environment.pods[API]
            if uid not in environment.deletions and self._is_ended(uid, overdue_s)
        ]
        if ending:
            environment.ask_to_end(rng.choice(ending), 1)

    def _is_ended(self, uid: str, overdue_s: float) -> bool:
        """Whether it was there for too long, or makes room, and has not gone yet."""
        told = self._environment.told.get(uid)
        return self._runs(uid) and (is_victim(told) or self._environment.overdue_s(uid) > overdue_s)

    def force(self, rng: random.Random) -> None:
        """Somebody takes a pod out of the API without waiting for its end."""
        if uids := list(self._environment.pods[API]):
            uid = rng.choice(uids)
            pod = self._environment.known[uid]
            if uid not in self._environment.deletions:
                self._environment.delete(uid, float(pod.termination_grace_period_seconds))
            self._environment.let_go(uid)

    def next_number(self) -> int:
        """For a pod that is not drawn by lot: no other has it."""
        self._number += 1
        return self._number

    def another(self, rng: random.Random, source: str, name: str = "") -> Pod:
        """A pod that somebody may want, under a name of its own or under this one."""
        self._number += 1
        name, uid = name or f"pod-{self._number}", f"uid-{self._number}"
        return random_pod(
            rng, name, uid, device_pods=self._device_pods, hooks=self._hooks, is_critical=source == FILE
        )

    def intrude(self, rng: random.Random) -> None:
        """Somebody starts a container by hand: in a pod that runs, or of a pod that nobody wants."""
        uids = [
            uid
            for uid in self._environment.known
            if uid not in self._environment.deletions and self._environment.containers.running_of(uid)
        ]
        self._number += 1
        if uids and rng.random() < 0.5:
            pod = PodIdentity.of(self._environment.known[rng.choice(uids)])
        else:
            uid = f"stray-{self._number}"
            pod = PodIdentity(uid=uid, name=uid, namespace="sim")
        self._environment.containers.intrude(pod, f"strange-{self._number}")

    def revive(self, rng: random.Random) -> None:
        """Somebody starts a container by hand in a pod that is over, and that its source keeps."""
        environment = self._environment
        over = [uid for uid in environment.pods[API] if environment.is_over(uid)]
        over = [uid for uid in over if uid not in environment.deletions]
        if over:
            self._number += 1
            pod = PodIdentity.of(environment.known[rng.choice(over)])
            environment.containers.intrude(pod, f"strange-{self._number}")

    def load(self, rng: random.Random) -> None:
        """Somebody puts an image on the node that is never fetched and that a pod waits for."""
        if missing := self._missing():
            self._environment.containers.load(rng.choice(missing))

    def _missing(self) -> list[str]:
        return [
            one.image
            for pods in self._environment.pods.values()
            for pod in pods.values()
            for one in pod.containers
            if one.image_pull_policy is PullPolicy.NEVER
            and not self._environment.containers.has_image(one.image)
        ]

    def sicken(self, rng: random.Random) -> None:
        """A container is unwell: it does not get ready, or is not alive; or one gets well again."""
        probed = self._probed()
        if not probed:
            return
        container_id, command = rng.choice(probed)
        unwell = self._environment.containers.unwell.get(container_id)
        if unwell:
            unwell.clear()
        else:
            self._environment.containers.sicken(container_id, command)

    def crash_one(self, rng: random.Random) -> None:
        """A container ends for reasons of its own."""
        if running := self._environment.containers.running:
            self._environment.containers.crash(rng.choice(running).record.id, rng.choice((0, 1, 7)))

    def end_in_hook(self, rng: random.Random, container_id: str) -> None:
        """A container ends by itself, or somebody asks its pod to end."""
        environment = self._environment
        uid = environment.containers.pod_of(container_id)
        if uid in environment.pods[API] and uid not in environment.deletions and rng.random() < _IN_HOOK:
            environment.ask_to_end(uid, environment.known[uid].termination_grace_period_seconds)
        elif container_id in environment.containers.running_of(uid):
            environment.containers.crash(container_id, 7)

    def crash_all(self) -> None:
        """Every container does."""
        for one in self._environment.containers.running:
            self._environment.containers.crash(one.record.id, 7)

    def begin_loop(self) -> None:
        """One container that runs ends now, and soon after each start: while nothing else happens."""
        for one in self._environment.containers.running:
            uid, name = one.record.pod.uid, one.record.name
            if any(
                self._may_loop(pods[uid], name) for pods in self._environment.pods.values() if uid in pods
            ):
                self._environment.looping = uid, name
                self._environment.containers.crash(one.record.id, 1)
                return

    def _may_loop(self, pod: Pod, name: str) -> bool:
        """Whether nothing but its back-off puts off that it starts again."""
        if pod.restart_policy is not RestartPolicy.ALWAYS or pod.active_deadline_seconds is not None:
            return False
        one = next((one for one in pod.containers if one.name == name), None)
        hook = None if one is None or one.lifecycle is None else one.lifecycle.post_start
        return one is not None and one.startup_probe is None and hook is None

    def end_loop(self) -> None:
        """It runs on once it has started again."""
        self._environment.looping = None

    def calm(self) -> None:
        """From now on nothing ends by itself, but init containers; who is unwell stays so."""
        self._environment.is_calm = True
        for image in self._missing():
            self._environment.containers.load(image)
        self._environment.plugins.calm()
        for place, (container_id, command) in enumerate(self._probed()):
            if place % 2 == 0:
                self._environment.containers.sicken(container_id, command)

    def empty(self) -> None:
        """Nobody wants any pod any more."""
        for source, pods in self._environment.pods.items():
            for uid, pod in [one for one in pods.items() if one[0] not in self._environment.deletions]:
                grace = pod.termination_grace_period_seconds
                self._environment.delete(uid, float(grace))
                if source == FILE:
                    self._environment.let_go(uid)
                    continue
                self._environment.mark(source, uid, grace)
            self._environment.changed(source)

    def _probed(self) -> list[tuple[str, str]]:
        """Containers that run, with what they are asked again and again."""
        return [
            (one.record.id, command)
            for one in self._environment.containers.running
            if one.record.pod.uid in self._environment.known
            for command in asked_again(self._environment.known[one.record.pod.uid], one.record.name)
        ]
