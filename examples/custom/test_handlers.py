"""The handlers keep their promises, and those of every handler; a chain asks them."""

import attrs

from examples.custom.handlers import Licences, maintenance_window
from nodealloc.admission import chain_of
from nodealloc.podfacts import LifeState, NodeView, PodOnNode
from nodealloc.podspec import Container, Pod, resources
from nodealloc.testing.admission import check_admission_handler
from nodealloc.verdicts import Admitted, NotYet, Refused

NODE = NodeView(name="n1", allocatable=resources({"cpu": 8, "memory": "8Gi", "pods": 110}))


def licensed(name: str) -> Pod:
    """A pod that needs a licence."""
    return Pod(
        uid=name, name=name, containers=(Container(name="app"),), annotations={"example.com/licence": "cad"}
    )


def test_they_are_handlers() -> None:
    """Pure functions that answer with verdicts, on all sides of what they look at."""
    taken = NODE.with_pod(PodOnNode.of(licensed("a")))
    closed = attrs.evolve(NODE, labels={"example.com/maintenance": "tonight"})
    for handler in (Licences(1), maintenance_window):
        answers = check_admission_handler(handler, pods=[licensed("b")], views=[taken, closed])
        assert len({type(answer) for _, _, answer in answers}) == 2


def test_a_licence_is_counted_and_comes_back() -> None:
    """The second pod is refused, waits while the first one ends, and comes in when that has gone."""
    chain = chain_of(Licences(1), maintenance_window)
    taken = NODE.with_pod(PodOnNode.of(licensed("a")))
    refused = chain(licensed("b"), taken)
    assert isinstance(refused, Refused)
    assert refused.reason == "OutOfLicences"
    ending = NODE.with_pod(PodOnNode.of(licensed("a"), state=LifeState.TERMINATING))
    assert isinstance(chain(licensed("b"), ending), NotYet)
    assert isinstance(chain(licensed("b"), ending.without("a")), Admitted)
