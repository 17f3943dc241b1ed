"""Laws of telling: any order, loss or doubling of what is heard ends in the same status."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence

import attrs
from hypothesis import given
from hypothesis import strategies as st

from nodealloc.podfacts import (
    ContainerRunning,
    ContainerStatus,
    Exited,
    LifeState,
    PodPhase,
    PodStatus,
    status_from_manifest,
    status_to_manifest,
)
from nodealloc.podspec import Container, Pod, Probe, RestartPolicy
from nodealloc.podstatus import Health, Observed, StartFailure, ToldEnding, told_from_checkpoint
from nodealloc.podstatus._codec import told_to_checkpoint
from nodealloc.runtime import PodKnown
from tests.golden.podstatus_told import Runs, Story, Teller

UID = "u"
MAIN = ("app", "log")
SIDECAR = "proxy"


@attrs.frozen
class Word:
    """What one source says of the pod: each says the newest in place of what it said before."""

    source: str
    value: object


class Life:
    """A pod that lives on a node that keeps to the rules; says what each source says on the way."""

    def __init__(self, policy: RestartPolicy) -> None:
        self.pod = Pod(
            uid=UID,
            name="web",
            restart_policy=policy,
            init_containers=(
                Container(name="setup", image="setup:1"),
                Container(name=SIDECAR, image=f"{SIDECAR}:1", restartable=True),
            ),
            containers=(
                Container(name="app", image="app:1", readiness_probe=Probe()),
                Container(name="log", image="log:1"),
            ),
        )
        story = Story()
        story.do_pod(UID, "web", policy.value, *(f"main:{name}" for name in MAIN))
        self.story = story
        self.model: Runs = story.teller.models[UID]
        self.observed = Observed(pod=self.pod)
        self.health: dict[str, Health] = {}
        self.now_s = 0.0
        self.words: list[Word] = [Word("pods", self.observed), Word("runs", self.model.known)]

    def say(self) -> None:
        """What is different now."""
        self.words.append(Word("runs", self.model.look()))
        self.words.append(Word("pods", self.observed))
        self.words.append(Word("health", dict(self.health)))

    def running(self) -> list[str]:
        """Names of what runs."""
        return [one.record.name for one in self.model.containers if one.exit is None]

    def may_start(self) -> list[str]:
        """Names of what the pod's policy lets begin now."""
        if self.observed.is_ending:
            return []
        found = []
        ended = {one.record.name: one.exit for one in self.model.containers if one.exit}
        lost = {end.name for id_, end in self.model.known.ends.items() if end.name not in ended}
        began = {one.record.name for one in self.model.containers} | lost
        if "setup" in self.running():
            return []
        if "setup" not in began:
            return ["setup"]
        if ended.get("setup") != Exited(code=0):
            return [] if "setup" in lost or self.pod.restart_policy is RestartPolicy.NEVER else ["setup"]
        if SIDECAR not in self.running():
            return [SIDECAR]
        for name in MAIN:
            exit_ = ended.get(name)
            if name not in began or (
                name not in self.running()
                and (
                    self.pod.restart_policy is RestartPolicy.ALWAYS
                    or (self.pod.restart_policy is RestartPolicy.ON_FAILURE and exit_ != Exited(code=0))
                )
            ):
                found.append(name)
        return found

    def start(self, which: int) -> None:
        """One that may begin runs."""
        if names := self.may_start():
            name = names[which % len(names)]
            self.model.start(name, self.now_s)
            failures = {key: one for key, one in self.observed.start_failures.items() if key != name}
            self.observed = attrs.evolve(self.observed, start_failures=failures)

    def exit(self, which: int, code: int) -> None:
        """One that runs ends."""
        if names := self.running():
            self.model.end(names[which % len(names)], Exited(code=code), self.now_s)

    def wait(self, which: int) -> None:
        """One that may begin cannot be started."""
        if names := self.may_start():
            failure = StartFailure(reason="CrashLoopBackOff", message="back-off 10s")
            failures = {**self.observed.start_failures, names[which % len(names)]: failure}
            self.observed = attrs.evolve(self.observed, start_failures=failures)

    def probe(self, *, passed: bool) -> None:
        """A verdict on what runs."""
        for one in self.model.containers:
            if one.record.name == "app" and one.exit is None:
                self.health[one.record.id] = Health(readiness=passed)

    def clear(self) -> None:
        """Records of what has ended are removed; how it ended is kept."""
        newest = {one.record.name: one.record.id for one in self.model.containers}
        self.model.containers = [
            one for one in self.model.containers if not one.exit or newest[one.record.name] == one.record.id
        ]

    def lose(self) -> None:
        """The record of one that runs is gone before anybody read how it ended."""
        for at, one in enumerate(self.model.containers):
            if one.exit is None and one.record.name in MAIN:
                del self.model.containers[at]
                return

    def end(self, *, evicted: bool) -> None:
        """It is decided that it ends."""
        if not self.observed.is_ending:
            ending = ToldEnding(reason="Evicted", message="m", disruption="TerminationByKubelet")
            self.observed = attrs.evolve(
                self.observed, life=LifeState.TERMINATING, ending=ending if evicted else None
            )

    def finish(self) -> None:
        """All of it has ended."""
        self.end(evicted=False)
        while self.running():
            self.exit(0, 0)
        self.say()
        self.observed = attrs.evolve(self.observed, life=LifeState.TERMINATED)


ACTS: Sequence[Callable[[Life, int], None]] = (
    *[Life.start] * 6,
    *[lambda life, which: life.exit(which, 0)] * 2,
    *[lambda life, which: life.exit(which, 1)] * 2,
    Life.wait,
    lambda life, _: life.probe(passed=True),
    lambda life, _: life.probe(passed=False),
    lambda life, _: life.clear(),
    lambda life, _: life.lose(),
    lambda life, which: life.end(evicted=which % 2 == 0) if which > 5 else None,
)


def lived(seed: int) -> list[Word]:
    """What the sources said of one pod, in the order in which it happened."""
    chance = random.Random(seed)
    life = Life(chance.choice([*RestartPolicy]))
    for _ in range(chance.randrange(40)):
        life.now_s += 1.0
        chance.choice(ACTS)(life, chance.randrange(7))
        life.say()
    if chance.random() < 0.5:
        life.finish()
        life.say()
    return life.words


seeds = st.integers(0, 2**32)
"""One seed is one life: a failure names it."""


class Heard:
    """A manager that hears words, in an order of its own."""

    def __init__(self) -> None:
        self.teller = Teller()

    def hear(self, word: Word) -> None:
        """One word."""
        if isinstance(word.value, Observed):
            self.teller.pods.put(UID, word.value)
        elif isinstance(word.value, PodKnown):
            self.teller.runs.put(UID, word.value)
        elif isinstance(word.value, dict):
            self.teller.health.put(UID, word.value)

    def last(self) -> PodStatus:
        """What was told last, without since when it is so."""
        self.teller.settle()
        return timeless(self.teller.sink.statuses[UID])


def timeless(status: PodStatus) -> PodStatus:
    """Without when things changed, and without ids of images: those of a record that went unseen are lost."""

    def bare(statuses: tuple[ContainerStatus, ...]) -> tuple[ContainerStatus, ...]:
        return tuple(attrs.evolve(one, image_id=None) for one in statuses)

    return attrs.evolve(
        status,
        conditions=tuple(attrs.evolve(one, last_transition_unix_s=None) for one in status.conditions),
        started_unix_s=None,
        init_containers=bare(status.init_containers),
        containers=bare(status.containers),
    )


def newest(words: Sequence[Word]) -> list[Word]:
    """The last word of each source."""
    return list({word.source: word for word in words}.values())


@given(seed=seeds)
def test_what_was_lost_on_the_way_does_not_matter(seed: int) -> None:
    """Hearing the last word of each source alone ends as hearing all of them."""
    words = lived(seed)
    whole, brief = Heard(), Heard()
    for word in words:
        whole.hear(word)
        whole.teller.settle()
    for word in newest(words):
        brief.hear(word)
    assert brief.last() == whole.last()


@given(seed=seeds)
def test_order_and_doubles_do_not_matter(seed: int) -> None:
    """Sources interleave as they like, are heard twice or not, and the agent is killed now and then."""
    words = lived(seed)
    whole, other, chance = Heard(), Heard(), random.Random(seed)
    for word in words:
        whole.hear(word)
        whole.teller.settle()
    queues = {source: [one for one in words if one.source == source] for source in ("pods", "runs", "health")}
    other.hear(queues["pods"].pop(0))
    while any(queues.values()):
        source = chance.choice([name for name, queue in queues.items() if queue])
        word = queues[source].pop(0)
        # Who says that all of it has ended has seen that in the runtime, where others can see it too.
        while isinstance(word.value, Observed) and word.value.is_over and queues["runs"]:
            other.hear(queues["runs"].pop(0))
        other.hear(word)
        match chance.choice(["settle", "twice", "unheard", "restart"]):
            case "settle":
                other.teller.settle()
            case "twice":
                other.teller.settle()
                other.hear(word)
                other.teller.settle()
            case "restart":
                other.teller.restart()
            case _:
                pass
    assert other.last() == whole.last()


@given(seed=seeds)
def test_what_is_told_is_a_path_that_can_be_walked(seed: int) -> None:
    """Phases go forward, an end stands, Ready falls with the decision, restart counts never fall."""
    words = lived(seed)
    heard = Heard()
    is_ending = False
    for word in words:
        heard.hear(word)
        heard.teller.settle()
        is_ending |= isinstance(word.value, Observed) and word.value.is_ending
        status = heard.teller.sink.statuses[UID]
        ready = status.condition("Ready")
        assert ready is not None
        assert not (is_ending and ready.status.value == "True")
    heard.teller.pods.drop(UID)
    heard.teller.settle()
    told = heard.teller.sink.of(UID)
    assert told[-1] is None
    assert None not in told[:-1]
    statuses = [one for one in told if one is not None]
    phases = [one.phase for one in statuses if one.phase is not None]
    order = [PodPhase.PENDING, PodPhase.RUNNING, PodPhase.SUCCEEDED, PodPhase.FAILED]
    assert phases == sorted(phases, key=order.index)
    assert len({one for one in phases if one.is_terminal}) == 1
    for before, after in itertools.pairwise(statuses):
        for one in after.all_containers:
            old = before.container(one.name)
            assert old is not None
            assert one.restart_count >= old.restart_count
    assert statuses[-1].phase in {PodPhase.SUCCEEDED, PodPhase.FAILED}
    assert not any(isinstance(one.state, ContainerRunning) for one in statuses[-1].all_containers)


@given(seed=seeds)
def test_what_is_told_survives_the_way_out_and_back(seed: int) -> None:
    """As JSON for others, and as a row of the journal."""
    words = lived(seed)
    heard = Heard()
    for word in words:
        heard.hear(word)
    status = heard.last()
    assert status_from_manifest(status_to_manifest(status)) == status
    told = heard.teller.manager.told.get(UID)
    assert told is not None
    # What it was decided from is said anew by whoever runs the pod.
    assert told_from_checkpoint(told_to_checkpoint(told)) == attrs.evolve(told, knows_end=False)
