"""A runtime that only remembers, and the checks that runtimes and keepers can be held to.

>>> runtime = FakeRuntime()
>>> runtime.start(Owner("pod", "app"), "1")
>>> [one.container_id for one in runtime.running()]
['1']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from nodealloc.checkpoint import JsonCheckpoint
from nodealloc.errors import RetryableError
from nodealloc.node import Advisor, Keeper, Running, Runtime
from nodealloc.podspec import Json
from nodealloc.topology import Admitted, Allocator, Owner, Snapshot, Workload, admit, release

__all__ = ["FakeAdvisor", "FakeRuntime", "check_advisor", "check_keeper", "check_runtime"]


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

    def running(self) -> Sequence[Running]:
        """See `Runtime.running`; raises `RetryableError` while `reachable` is off."""
        if not self.reachable:
            raise RetryableError("the runtime does not answer", after_s=2.0)
        return [Running(owner=owner, container_id=one) for one, owner in self.containers.items()]


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


def check_runtime(runtime: Runtime, start: Callable[[Owner], str], stop: Callable[[str], None], /) -> None:
    """Hold a runtime to what the node relies on.

    Args:
        runtime: With nothing running.
        start: Starts a container for an owner that keeps running, and returns its id.
        stop: Ends a container by its id.

    Raises:
        AssertionError: Says which promise is broken.
    """
    owner = Owner("check-runtime", "app")
    assert not list(runtime.running()), "give a runtime in which nothing runs"
    first = start(owner)
    assert list(runtime.running()) == [Running(owner=owner, container_id=first)], (
        "a running container is not listed"
    )
    assert list(runtime.running()) == list(runtime.running()), "two calls in a row differ"
    stop(first)
    assert not list(runtime.running()), "a container that has ended is still listed"
    second = start(owner)
    assert second != first, (
        f"container id {first} was given twice: a late end of the first would hit the second"
    )
    stop(second)


def check_keeper(keeper: Keeper, empty: Snapshot, name: str, workloads: Iterable[Workload], /) -> None:
    """Hold a keeper to what the node relies on: what is kept comes back.

    Args:
        keeper: Of the allocator.
        empty: A node with nothing held.
        name: Of the allocator.
        workloads: Some that fit the node together.

    Raises:
        AssertionError: Says which promise is broken.
    """
    snapshot, keys = empty, list[str]()
    for workload in workloads:
        verdict = admit(snapshot, workload)
        assert isinstance(verdict, Admitted), f"give workloads that fit together: {verdict}"
        snapshot = verdict.snapshot
        keys.append(workload.key)
    full, fresh = _named(snapshot, name), _named(empty, name)
    grants = _kept(keeper, full, keys)
    holding = [key for key in keys if full.release(key) != full]
    assert list(grants) == holding, f"{holding} hold something, {list(grants)} are kept"
    stored = JsonCheckpoint(kind="check", version=1, value=grants)
    again = JsonCheckpoint.unmarshal(stored.marshal()).value
    assert isinstance(again, Mapping), "a mapping was stored"
    restored = keeper.restore(fresh, again)
    assert not restored.evicted, f"on the same machine nothing has to go: {restored.evicted}"
    assert not restored.moved, f"on the same machine nothing moves: {restored.moved}"
    assert _kept(keeper, restored.allocator, keys) == grants, "what came back is kept in other words"
    assert _kept(keeper, fresh, keys) == {}, "restoring changed the fresh allocator"
    for key in keys:
        snapshot = release(snapshot, key)
        assert keeper.grants(_named(snapshot, name), key) is None, f"{key} holds nothing and is still kept"
    assert keeper.grants(fresh, "nobody") is None, "an unknown workload holds something"
    files = keeper.files(full)
    for key, file in files.items():
        assert key, "a kubelet file has no name"
        type(file).unmarshal(file.marshal()).verify()
    assert keeper.files(full, fresh).items() <= files.items(), "what changed is written in other words"


def _kept(keeper: Keeper, allocator: Allocator, keys: Sequence[str]) -> dict[str, Json]:
    grants = {key: keeper.grants(allocator, key) for key in keys}
    return {key: one for key, one in grants.items() if one is not None}


def _named(snapshot: Snapshot, name: str) -> Allocator:
    return next(one for one in snapshot.allocators if one.name == name)
