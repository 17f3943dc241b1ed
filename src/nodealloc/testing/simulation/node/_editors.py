"""Whoever edits pods of a simulated node while they run; all of it by lot."""

from __future__ import annotations

import random

import attrs

from nodealloc.podspec import (
    Container,
    Pod,
    Quantity,
    RestartPolicy,
    Volume,
    VolumeUse,
    effective_requests,
)
from nodealloc.testing.simulation.node._behaviour import IMAGE
from nodealloc.testing.simulation.node._edits import debugged, other_amounts, too_much, with_more
from nodealloc.testing.simulation.node._environment import API, FILE, Environment
from nodealloc.testing.simulation.node._pods import OWN, from_image
from nodealloc.testing.simulation.node._resources import RESOURCES

__all__ = ["Editors"]

_CORRECTS_S = 10.0
_NOBODYS = "nobodys"
"""A class of runtimes of which no node says who serves it."""
_RESIZED_TOO = 0.3
"""Of static pods whose manifest is edited so many ask for other amounts besides."""


class Editors:
    """They edit pods where they are: images, amounts, and manifests of static pods.

    Args:
        environment: Where they act.
        found: Uids of pods that somebody else ran before; they are left alone.
    """

    def __init__(self, environment: Environment, found: set[str]) -> None:
        self._environment = environment
        self._found = found
        self._images = 0
        self._debugs = 0
        self._edited = "", 0, 0.0

    def edit(self, rng: random.Random) -> None:
        """A container of a pod is to run from another image."""
        if uid := self._to_edit(rng):
            self._edit(uid, rng.randrange(len(self._environment.known[uid].containers)))

    def correct(self, _rng: random.Random) -> None:
        """What was edited a moment ago is edited once more."""
        uid, place, at_s = self._edited
        if self._is_wanted(uid) and self._environment.awake_s - at_s < _CORRECTS_S:
            self._edit(uid, place)

    def part_with(self, rng: random.Random) -> None:
        """A pod is edited, and asked to end in the same moment, so that one reading says both."""
        if uid := self._to_edit(rng):
            self._edit(uid, rng.randrange(len(self._environment.known[uid].containers)))
            self._environment.ask_to_end(uid, rng.choice((1, 3, 5)))

    def mend(self) -> None:
        """What is in a crash loop is to run from another image: it waits no longer."""
        uid, name = self._environment.looping or ("", "")
        if uid not in self._found and self._is_wanted(uid):
            names = [one.name for one in self._environment.known[uid].containers]
            self._edit(uid, names.index(name))

    def debug(self, rng: random.Random) -> None:
        """Somebody adds a container to a pod, to look at it from within."""
        if uid := self._to_edit(rng):
            self._debugs += 1
            self._environment.edit(
                debugged(self._environment.known[uid], name := f"debug-{self._debugs}"), name
            )

    def alter(self, rng: random.Random) -> None:
        """The manifest of a static pod is edited in place: another image, and a volume more or less."""
        uids = [uid for uid in self._environment.pods[FILE] if self._goes_on(uid)]
        if not uids:
            return
        pod = self._environment.known[uid := rng.choice(uids)]
        place = rng.randrange(len(pod.containers))
        self._images += 1
        image = f"{IMAGE.partition(':')[0]}:{self._images}"
        container = from_image(pod.containers[place], image)
        pod, container = _with_volume(pod, container, has_one=rng.random() < 0.5)
        containers = (*pod.containers[:place], container, *pod.containers[place + 1 :])
        pod = attrs.evolve(pod, containers=containers)
        if rng.random() < _RESIZED_TOO:
            pod = other_amounts(rng, pod, grows=self._environment.is_aligned)
        self._environment.reads.edited(FILE, uid, container.name, image)
        self._environment.edit(pod, f"{container.name} from {image}, {_asked(pod)}")

    def resize(self, rng: random.Random) -> None:
        """A pod is to have more of the node, or less."""
        uids = [uid for pods in self._environment.pods.values() for uid in pods if self._goes_on(uid)]
        if uids:
            pod = self._environment.known[rng.choice(uids)]
            pod = other_amounts(rng, pod, grows=self._environment.is_aligned)
            self._environment.edit(pod, _asked(pod))

    def ask_too_much(self) -> None:
        """Every pod that runs is to have more than there is: that waits until somebody asks for less."""
        for uid in [uid for pods in self._environment.pods.values() for uid in pods if self._goes_on(uid)]:
            pod = too_much(self._environment.known[uid])
            self._environment.edit(pod, _asked(pod))

    def misdirect(self) -> None:
        """Every pod that runs is to run in a class that nobody knows: no sandbox can be made for that."""
        for uid in [uid for pods in self._environment.pods.values() for uid in pods if self._goes_on(uid)]:
            pod = attrs.evolve(self._environment.known[uid], runtime_class_name=_NOBODYS)
            self._environment.edit(pod, f"in the class {_NOBODYS}")

    def redirect(self) -> None:
        """None of them is any more."""
        for uid in [uid for pods in self._environment.pods.values() for uid in pods]:
            if self._environment.known[uid].runtime_class_name == _NOBODYS and self._is_wanted(uid):
                pod = attrs.evolve(self._environment.known[uid], runtime_class_name="")
                self._environment.edit(pod, "in no class")

    def grow(self) -> None:
        """Every pod that shares CPUs and goes on is to have a part of those that nobody asks for."""
        environment, stay = self._environment, self._environment.staying()
        left = environment.room[0] - sum(effective_requests(one)["cpu"].milli_value for one in stay)
        pods = [one for one in stay if self._goes_on(one.uid) and not one.containers[0].limits]
        for pod in pods if left >= len(pods) else ():
            larger = with_more(pod, left // len(pods))
            environment.edit(larger, _asked(larger))

    def calm(self) -> None:
        """Whoever is to have more than it always had asks for that no more."""
        for uid in [uid for pods in self._environment.pods.values() for uid in pods]:
            if self._environment.forms.is_resized(uid) and self._is_wanted(uid):
                least = self._environment.forms.least(self._environment.known[uid])
                self._environment.edit(least, _asked(least))

    def _is_wanted(self, uid: str) -> bool:
        environment = self._environment
        return uid not in environment.deletions and any(uid in pods for pods in environment.pods.values())

    def _goes_on(self, uid: str) -> bool:
        """Whether a pod runs; a static one until somebody ends it: edited later it is another pod."""
        environment, pod = self._environment, self._environment.known[uid]
        lasts = pod.restart_policy is RestartPolicy.ALWAYS and pod.active_deadline_seconds is None
        return (
            self._is_wanted(uid)
            and uid not in self._found
            and not environment.has_twin(uid)
            and (lasts or uid not in environment.pods[FILE])
            and not any(one.requests.keys() & RESOURCES.keys() for one in pod.all_containers)
            and bool(environment.containers.running_of(uid))
            and not environment.is_over(uid)
        )

    def _to_edit(self, rng: random.Random) -> str:
        environment = self._environment
        uids = [
            uid
            for uid in environment.pods[API]
            if uid not in environment.deletions and uid not in self._found
        ]
        return rng.choice(uids) if uids else ""

    def _edit(self, uid: str, place: int) -> None:
        self._edited = uid, place, self._environment.awake_s
        pod = self._environment.known[uid]
        self._images += 1
        other = from_image(pod.containers[place], f"{IMAGE.partition(':')[0]}:{self._images}")
        containers = (*pod.containers[:place], other, *pod.containers[place + 1 :])
        source = FILE if uid in self._environment.pods[FILE] else API
        self._environment.reads.edited(source, uid, other.name, other.image)
        self._environment.edit(attrs.evolve(pod, containers=containers), f"{other.name} from {other.image}")


def _with_volume(pod: Pod, container: Container, *, has_one: bool) -> tuple[Pod, Container]:
    """The same with a volume of the pod's own in that container, or without."""
    uses = tuple(one for one in container.volumes if one.name != OWN)
    if has_one:
        uses = (*uses, VolumeUse(name=OWN, path=f"/{OWN}"))
        if OWN not in {one.name for one in pod.volumes}:
            pod = attrs.evolve(pod, volumes=(*pod.volumes, Volume(name=OWN, kind="emptyDir")))
    return pod, attrs.evolve(container, volumes=uses)


def _asked(pod: Pod) -> str:
    """What a pod asks for, in a line's place."""
    amounts = {one.name: {**one.requests} for one in pod.all_containers}
    return ", ".join(f"{name}: {_words(asked)}" for name, asked in amounts.items())


def _words(amounts: dict[str, Quantity]) -> str:
    return " ".join(f"{amount} {name}" for name, amount in amounts.items())
