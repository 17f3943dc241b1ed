"""The example agent, without a machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import ClassVar
from unittest.mock import MagicMock

import attrs

from examples.agent.agent import Agent
from nodealloc.podspec import Pod
from nodealloc.testing.topology import FakeAllocator
from nodealloc.topology import Availability, Claim, NumaTopology, Policy, Snapshot, admit


@attrs.frozen(kw_only=True)
class Watched(FakeAllocator):
    """Counts how often it is asked what is free, which only explaining does."""

    asked: ClassVar[Counter[str]] = Counter()

    def availability(self, claims: Sequence[Claim], /) -> Sequence[Availability]:
        """Counted."""
        self.asked["availability"] += 1
        return FakeAllocator.availability(self, claims)


def test_a_pod_that_is_refused_in_every_round_is_explained_once() -> None:
    """Only what is said is put into words; the long story is said, once."""
    cpus = Watched(name="cpu", units={0: 15})
    empty = Snapshot(numa=NumaTopology(nodes=(0,)), policy=Policy.parse("restricted"), allocators=(cpus,))
    said: list[str] = []
    node, idle = MagicMock(), MagicMock()
    node.allocator.records = {}
    node.allocator.admit = partial(admit, empty)
    idle.processes.return_value = []
    agent = Agent(
        machine=MagicMock(),
        node=node,
        place=MagicMock(),
        runtime=idle,
        cpusets=MagicMock(),
        tree=MagicMock(),
        volumes=MagicMock(),
        say=said.append,
    )
    container = {"name": "c", "resources": {"limits": {"cpu": 9, "memory": "1Gi"}}}
    pod = Pod.from_manifest({"metadata": {"name": "huge", "uid": "u"}, "spec": {"containers": [container]}})
    agent.round({"u": pod})
    once = Watched.asked["availability"]
    assert once > 0
    for _ in range(3):
        agent.round({"u": pod})
    assert Watched.asked["availability"] == once
    (words,) = said
    assert words.startswith(
        "pod default/huge does not come in\n  u/c: TopologyAffinityError under restricted"
    )
    assert "cpu (cpu): 9 wanted; free: 4 on node 0" in words
