"""A runtime that only remembers, and the checks of what a node calls.

>>> runtime = FakeRuntime()
>>> runtime.start(Owner("pod", "app"), "1")
>>> [one.container_id for one in runtime.running()]
['1']
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from nodealloc.checkpoint import JsonCheckpoint
from nodealloc.errors import RetryableError
from nodealloc.node import Advisor, KubeletFile, RunningContainer, Runtime, TellsRegranted
from nodealloc.testing._wording import in_words
from nodealloc.testing.abilities import filled
from nodealloc.topology import Allocator, Claim, Confines, Owner, Remembers, Snapshot, Workload

__all__ = [
    "FakeAdvisor",
    "FakeRuntime",
    "check_advisor",
    "check_kubelet_file",
    "check_regranted",
    "check_runtime",
]


class FakeRuntime:
    """A `Runtime` whose containers are entries of a dict. One thread at a time."""

    def __init__(self) -> None:
        self.containers: dict[str, Owner] = {}
        self.reachable = True

    def start(self, owner: Owner, container_id: str, /) -> None:
        """A container runs."""
        self.containers[container_id] = owner

    def stop(self, container_id: str, /) -> None:
        """A container has ended."""
        self.containers.pop(container_id, None)

    def running(self) -> Sequence[RunningContainer]:
        """See `Runtime.running`; raises `RetryableError` while `reachable` is off."""
        if not self.reachable:
            raise RetryableError("the runtime does not answer", after_s=2.0)
        return [RunningContainer(owner=owner, container_id=one) for one, owner in self.containers.items()]


class FakeAdvisor:
    """An `Advisor` that has so many answers to give, one a question.

    Attributes:
        answers: How many questions it still answers.
        asked: Every outcome that it was asked about.
    """

    def __init__(self, answers: int = 0) -> None:
        self.answers: int = answers
        self.asked: list[Snapshot] = []

    def ask(self, outcome: Snapshot, /) -> bool:
        """True as long as there are answers."""
        self.asked.append(outcome)
        self.answers -= 1
        return self.answers >= 0

    def settled(self, outcome: Snapshot, /) -> Snapshot:
        """The outcome as it is."""
        return outcome


@in_words
def check_advisor(advisor: Advisor, decide: Callable[[], Snapshot], /) -> None:
    """Hold an advisor to what the node relies on.

    Args:
        advisor: To check.
        decide: What a decision leads to now; called again after each answer.

    Raises:
        AssertionError: Says which promise is broken.
    """
    outcome = decide()
    settled = advisor.settled(outcome)
    assert advisor.settled(outcome) == settled, "settling answers differently the second time"
    assert advisor.settled(settled) == settled, "what is settled is settled"
    assert settled.admitted == outcome.admitted, "settling admits or releases somebody"
    assert settled.generation == outcome.generation, "settling is no change of its own"
    assert [one.name for one in settled.allocators] == [one.name for one in outcome.allocators], (
        "settling adds, drops or moves an allocator"
    )
    rounds = 0
    while advisor.ask(decide()):
        rounds += 1
        assert rounds < 64, "it wants the same decision made again for ever"


@in_words
def check_runtime(runtime: Runtime, start: Callable[[Owner], str], stop: Callable[[str], None], /) -> None:
    """Hold a runtime to what the node relies on: who is not listed has ended, and is released.

    Args:
        runtime: With nothing running.
        start: Starts a container for an owner that keeps running, and returns its id;
            called for two members of one workload, and for another workload.
        stop: Ends a container by its id.

    Raises:
        AssertionError: Says which promise is broken.
    """
    owner = Owner("check-runtime", "app")
    assert not list(runtime.running()), "give a runtime in which nothing runs"
    first = start(owner)
    assert list(runtime.running()) == [RunningContainer(owner=owner, container_id=first)], (
        "a running container is not listed"
    )
    assert list(runtime.running()) == list(runtime.running()), "two calls in a row differ"
    stop(first)
    assert not list(runtime.running()), "a container that has ended is still listed"
    second = start(owner)
    assert second != first, (
        f"container id {first} was given twice: a late end of the first would hit the second"
    )
    _check_several_run(runtime, start, stop, {second: owner})


def _check_several_run(
    runtime: Runtime, start: Callable[[Owner], str], stop: Callable[[str], None], runs: dict[str, Owner]
) -> None:
    """Each is listed for itself, beside a sibling and beside another workload, until it ends."""
    for owner in (Owner("check-runtime", "beside"), Owner("check-runtime-2", "app")):
        runs[start(owner)] = owner
        _check_all_run(runtime, runs)
    while runs:
        stop(next(iter(runs)))
        del runs[next(iter(runs))]
        _check_all_run(runtime, runs)


def _check_all_run(runtime: Runtime, runs: Mapping[str, Owner]) -> None:
    found = sorted((one.owner, one.container_id) for one in runtime.running())
    right = sorted((owner, one) for one, owner in runs.items())
    assert found == right, (
        f"{_named(right)} run, and listed are {_named(found)}: who is not listed counts as ended, and "
        "what it holds is given to others"
    )


def _named(containers: Sequence[tuple[Owner, str]]) -> str:
    return ", ".join(f"{owner.workload}/{owner.member} as {one}" for owner, one in containers) or "none"


@in_words
def check_kubelet_file(allocator: Allocator, asked: Sequence[Workload], /) -> None:
    """Hold an allocator to what handing a node to a kubelet, and taking it over, relies on.

    Args:
        allocator: Holds nothing, has the ability `KubeletFile`, and `Remembers`.
        asked: Workloads that fit it together, and of which one holds something.

    Raises:
        AssertionError: Says which promise is broken.
    """
    full = filled(allocator, asked)
    assert isinstance(full, KubeletFile), f"{allocator.name} keeps no file of the kubelet's"
    assert isinstance(allocator, KubeletFile), f"{allocator.name} keeps none while it holds nothing"
    assert isinstance(allocator, Remembers), f"{allocator.name} has no `remembered` and `restored`"
    assert full.kubelet_key() == allocator.kubelet_key(), "its file has another name now"
    file = full.to_kubelet()
    assert file is not None, "without another one to compare with there is a file"
    assert full.to_kubelet(full) in (None, file), "the same is written in other words"
    assert full.to_kubelet(allocator) == file, "what changed is written in other words"
    stored = type(file).unmarshal(file.marshal())
    stored.verify()
    said = allocator.from_kubelet(stored)
    holding = [one.key for one in asked if full.release(one.key) != full]
    assert sorted(said) == sorted(holding), f"{holding} hold something, the file says {sorted(said)}"
    for one in asked:
        members = [owner.member for owner in map(_owner, one.claims) if _holds(full, owner)]
        listed = list(said[one.key].members) if one.key in said else []
        assert sorted(listed) == sorted(members), f"{one.key}: {members} hold something, found {listed}"
    back = allocator.restored({key: one.grants for key, one in said.items()})
    assert not back.moved, f"on the same machine nothing moves: {back.moved}"
    assert not back.evicted, f"on the same machine nothing has to go: {back.evicted}"
    if isinstance(full, Confines) and isinstance(back.allocator, Confines):
        for owner in (owner for one in asked for owner in map(_owner, one.claims)):
            was, now = full.confinement(owner).exclusive, back.allocator.confinement(owner).exclusive
            assert now == was, f"{owner} has CPUs {was} of its own, and {now} by the file"
    again = filled(back.allocator, asked)
    assert again == back.allocator, "what a file says is granted anew"
    strange = JsonCheckpoint(kind="check", version=1, value={})
    assert not allocator.from_kubelet(strange), "another file says something"


@in_words
def check_regranted(before: Allocator, after: Allocator, asked: Sequence[Workload], /) -> None:
    """Hold an allocator to what remembering a change relies on: nobody is left out.

    Args:
        before: Has the ability `TellsRegranted`, and `Remembers`.
        after: What became of it.
        asked: Whose grants to compare; those of one have changed.

    Raises:
        AssertionError: Says which promise is broken.
    """
    assert isinstance(after, TellsRegranted), f"{after.name} has no `regranted`"
    assert isinstance(before, Remembers), f"{before.name} cannot be remembered"
    assert isinstance(after, Remembers), f"{after.name} cannot be remembered"
    changed = {one.key for one in asked if before.remembered(one.key) != after.remembered(one.key)}
    assert changed, "give a change that somebody notices"
    told = set(after.regranted(before))
    assert changed <= told, f"{sorted(changed - told)} hold something else, and nobody is told"


def _owner(claim: Claim) -> Owner:
    return claim.owner


def _holds(allocator: Allocator, owner: Owner) -> bool:
    return allocator.release(owner.workload, owner.member) != allocator
