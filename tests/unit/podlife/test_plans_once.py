"""What a plan of a pod wrote is no reason for another plan of it: that would be the same."""

from __future__ import annotations

import attrs
import pytest

from nodealloc.dsw_asw import KEEP, Plan
from nodealloc.podlife import Ending, EndingKind, PodRecord
from nodealloc.podlife._details import Detail
from nodealloc.podlife._domain import Lives, PodView
from nodealloc.podspec import Container, RestartPolicy
from tests.unit.podlife_node import pod
from tests.unit.podstatus.test_with_lives import TellingNode

APP = Container(name="app", image="busybox")
FIRST = Container(name="first", image="busybox")


@pytest.fixture
def intents(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Plans again at once with what a plan wrote; the state of life in each record that one wrote."""
    found: list[str] = []
    plan = Lives.plan

    def planned_twice(self: Lives, view: PodView) -> Plan[PodRecord, Detail]:
        once = plan(self, view)
        if isinstance(once.have, PodRecord) and once.have != view.have:
            found.append(once.have.life.value)
            again = plan(self, attrs.evolve(view, have=once.have))
            if again.have is KEEP or again.have == once.have:
                again = attrs.evolve(again, have=once.have)
            assert again == once
        return once

    monkeypatch.setattr(Lives, "plan", planned_twice)
    return found


def test_a_pod_that_starts_crashes_changes_and_ends(intents: list[str]) -> None:
    """From its first container to the last of its records, with an agent that ends in between."""
    node = TellingNode()
    node.heard()
    node.lives.put(pod(init_containers=(FIRST,), containers=(APP,)))
    node.after(1.0)
    node.exit("first", 0)
    node.after(3.0)
    assert node.running() == ["app#0"]
    node.exit("app", 1)
    node.after(30.0)
    assert node.running() == ["app#1"]
    edited = attrs.evolve(APP, image="another")
    node.lives.put(pod(init_containers=(FIRST,), containers=(edited,)))
    node.after(60.0)
    node.lives.end("u", Ending(kind=EndingKind.EVICTED, reason="Evicted", message="low on memory"))
    node.lives.remove("u")
    node.after(60.0)
    assert node.lives.facts.get("u") is None
    assert {"syncing", "terminating", "finished"} <= set(intents)


def test_a_pod_of_which_nothing_will_run_again(intents: list[str]) -> None:
    """It ends by itself: until when others may hear of that is written at once, too."""
    node = TellingNode()
    node.heard()
    node.lives.put(pod(containers=(APP,), policy=RestartPolicy.NEVER))
    node.after(3.0)
    node.exit("app", 0)
    node.after(30.0)
    assert "terminating" in intents
    assert node.phases()[-1] == "Succeeded"
