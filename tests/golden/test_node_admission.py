"""What a node answers to the recorded pods: a kubelet's verdicts, from its own door."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from nodealloc.admission import MakingRoom
from nodealloc.checkpoint import MemoryStore
from nodealloc.node import FORMATS, NodeAllocator
from nodealloc.podspec import Json
from nodealloc.podspec._pod import pod_as_it_stands
from nodealloc.testing.conformance._chain import recorded_chain, recorded_view
from nodealloc.topology import NumaTopology, Snapshot
from nodealloc.verdicts import Refused

EMPTY = Snapshot(numa=NumaTopology(nodes=(0,)))


def rows(vectors: Path, kind: str) -> Iterator[dict[str, Json]]:
    """The recorded nodes that are known, each with its pod."""
    with gzip.open(vectors / f"{kind}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if not row.get("node_unknown"):
                yield row


@pytest.mark.parametrize("kind", ["admit_predicates", "critical_preemption"])
def test_a_node_answers_as_recorded(vectors: Path, kind: str) -> None:
    """Verdict, reason, message and victims, from a node with those pods on it.

    A kubelet lets a critical pod in before its victims have ended, and a node
    never does. What it remembers of claims it refuses itself: a resource that
    nobody serves, where the kubelet lets the pod in.
    """
    asked = 0
    for row in rows(vectors, kind):
        view, recorded = recorded_view(row), recorded_chain(row)
        chain = attrs.evolve(recorded, rules=attrs.evolve(recorded.rules, waits_for_victims=True))
        node = NodeAllocator(EMPTY, MemoryStore(FORMATS), view=view, chain=chain)
        node.start()
        pod = pod_as_it_stands(row["pod"])
        if not pod.containers:
            continue
        verdict = node.admit(pod)
        victims: list[str] = []
        if isinstance(verdict, MakingRoom):
            victims = [view.pods[uid].pod.name for uid in verdict.victims]
        refused = isinstance(verdict, Refused)
        got = {
            "admit": not refused,
            "reason": verdict.reason if isinstance(verdict, Refused) else "",
            "message": verdict.message if isinstance(verdict, Refused) else "",
            "preempted": victims,
        }
        if isinstance(verdict, Refused) and "nobody on this node serves" in verdict.message:
            continue
        assert isinstance(row["any_of"], list)
        assert got in row["any_of"], f"{row.get('id', row)}: {verdict}"
        asked += 1
    assert asked > 100
