"""A node of which nobody has said what it is called refuses no pod for a name that it invented."""

from __future__ import annotations

import attrs
import pytest

from nodealloc.checkpoint import MemoryStore
from nodealloc.cpuset import CpuAllocator
from nodealloc.machine import machine_from_text
from nodealloc.node import FORMATS, NodeAllocator
from nodealloc.podfacts import NodeView
from nodealloc.podspec import Pod, resources
from nodealloc.topology import Snapshot
from nodealloc.verdicts import Admitted, Refused

MACHINE = machine_from_text("4 cores, memory=8Gi")
EMPTY = Snapshot.of(MACHINE, allocators=[CpuAllocator.of(MACHINE, reserved=1)])


def started(view: NodeView | None = None) -> NodeAllocator:
    """A node that has read its store."""
    node = NodeAllocator(EMPTY, MemoryStore(FORMATS), view=view)
    node.start()
    return node


def pod(**spec: object) -> Pod:
    """With one container."""
    containers = [{"name": "app", "image": "app"}]
    return Pod.from_manifest({"metadata": {"name": "web"}, "spec": {"containers": containers, **spec}})


def bound_by_name(operator: str, name: str) -> Pod:
    """As a daemon set's are: to a node by its name."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": operator, "values": [name]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return pod(nodeName=name, affinity={"nodeAffinity": required})


@pytest.mark.parametrize("asked", [pod(nodeName="n1"), bound_by_name("In", "n1")])
def test_a_pod_for_a_node_comes_in_where_nobody_said_which_this_is(asked: Pod) -> None:
    """All pods of an API server, and static ones of a source with a node's name, say which node."""
    assert isinstance(started().admit(asked), Admitted)


def test_a_node_that_was_named_is_for_its_own_pods() -> None:
    """Also where it was named after its start."""
    view = NodeView(name="n2", allocatable=resources({"pods": 1}))
    for node in (started(view), started()):
        node.alter_view(lambda view: attrs.evolve(view, name="n2", is_named=True))
        for asked in (pod(nodeName="n1"), bound_by_name("In", "n1"), bound_by_name("NotIn", "n2")):
            answer = node.admit(asked)
            assert isinstance(answer, Refused)
            assert answer.reason in {"NodeName", "NodeAffinity"}
        assert isinstance(node.admit(bound_by_name("In", "n2")), Admitted)


def test_labels_are_asked_for_also_where_nobody_named_the_node() -> None:
    """Only its name is not judged."""
    terms = [
        {
            "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
            "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}],
        }
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    answer = started().admit(pod(affinity={"nodeAffinity": required}))
    assert isinstance(answer, Refused)
    assert answer.reason == "NodeAffinity"
