"""Taking over what runs: whose members run is named, and who does not run may run again."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from nodealloc.checkpoint import MemoryStore
from nodealloc.cpuset import CpuAllocator
from nodealloc.errors import ConfigurationError
from nodealloc.idset import CPUSet
from nodealloc.machine import machine_from_text
from nodealloc.node import FORMATS, Confinement, NodeAllocator
from nodealloc.podspec import Pod
from nodealloc.topology import Owner, Placed, Snapshot, Workload
from nodealloc.verdicts import Refused

MACHINE = machine_from_text("8 cores")
APP = {"app": Confinement(exclusive=CPUSet.parse("4-5"))}


def container(name: str, cpu: int) -> Mapping[str, object]:
    """One with CPUs of its own."""
    return {"name": name, "resources": {"limits": {"cpu": cpu, "memory": "1Mi"}}}


def pod(more: int = 2) -> Pod:
    """Two containers, and an init container before them."""
    spec = {
        "initContainers": [container("init", 4)],
        "containers": [container("app", 2), container("more", more)],
    }
    return Pod.from_manifest({"metadata": {"name": "web", "uid": "u"}, "spec": spec})


def started(store: MemoryStore | None = None) -> NodeAllocator:
    """A node of eight CPUs, one of them for the system."""
    allocators = (CpuAllocator.of(MACHINE, reserved=1),)
    store = MemoryStore(FORMATS) if store is None else store
    node = NodeAllocator(Snapshot.of(MACHINE, allocators=allocators), store)
    node.start()
    return node


def own(node: NodeAllocator, member: str) -> CPUSet:
    """What it has for itself."""
    return node.snapshot[CpuAllocator].exclusive_of(Owner("u", member))


@pytest.mark.parametrize(
    ("asked", "running", "words"),
    [
        (Workload(key="u", claims=()), APP, "workload 'u' has no claims: give one for each member"),
        (Workload(key="u", claims=()), {}, "workload 'u' has no claims"),
        (pod(), {"ap": Confinement()}, "'ap' is no member of workload 'u', which has 'init', 'app', 'more'"),
        (pod(), {}, "nothing of workload 'u' is said to run"),
    ],
    ids=["no claims", "nothing", "another name", "nothing that runs"],
)
def test_what_cannot_be_meant_is_not_adopted(
    asked: Pod | Workload, running: Mapping[str, Confinement], words: str
) -> None:
    """It was in from then on, held nothing, and no admission could give it anything."""
    node = started()
    before = node.snapshot
    with pytest.raises(ConfigurationError, match=words):
        node.adopt(asked, running)
    assert node.snapshot is before
    assert isinstance(node.admit(pod()), Placed)


def test_a_container_that_did_not_run_may_run_again() -> None:
    """Between two of its starts nothing runs: it is granted at the next admission, and its record lasts."""
    store = MemoryStore(FORMATS)
    node = started(store)
    node.adopt(pod(), APP)
    assert own(node, "app") == CPUSet.parse("4-5")
    assert not own(node, "more")
    answer = node.admit(pod())
    assert isinstance(answer, Placed)
    assert not answer.repeated
    assert own(node, "app") == CPUSet.parse("4-5")
    assert len(own(node, "more")) == 2
    assert not own(node, "init"), "its turn is over"
    assert node.before_start(Owner("u", "more"), "c").exclusive == own(node, "more")
    again = node.admit(pod())
    assert isinstance(again, Placed)
    assert again.repeated
    later = started(MemoryStore(FORMATS, data=store.data()))
    assert later.snapshot[CpuAllocator] == node.snapshot[CpuAllocator]


def test_what_does_not_fit_beside_what_was_adopted_is_refused() -> None:
    """And what runs stays."""
    node = started()
    node.adopt(pod(more=6), APP)
    assert isinstance(node.admit(pod(more=6)), Refused)
    assert own(node, "app") == CPUSet.parse("4-5")
