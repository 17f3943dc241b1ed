"""A chain with a handler of one's own, asked about a pod on a node."""

from __future__ import annotations

from typing import assert_type

from nodealloc.admission import KUBELET, Chain, Handler, Rules, chain_of
from nodealloc.podfacts import NodeView
from nodealloc.podspec import Container, Pod, resources
from nodealloc.verdicts import Admitted, NotYet, Refused, Verdict


def licensed(pod: Pod, view: NodeView) -> Verdict:
    """Two pods of the product a node."""
    there = sum(one.pod.namespace == pod.namespace for one in view.pods.values())
    if there < 2:
        return Admitted()
    return Refused(
        reason="OutOfLicences", message="2 licences are in use; wait for one", figures={"there": there}
    )


handler: Handler = licensed
rules: Rules = KUBELET
chain: Chain = chain_of(handler)
as_recorded = chain_of(licensed, rules=rules)
assert_type(as_recorded, Chain)
node = NodeView(name="n1", allocatable=resources({"cpu": 4, "memory": "8Gi", "pods": 110}))
answer = chain(
    Pod(uid="u", name="web", containers=(Container(name="app", requests=resources({"cpu": 1})),)), node
)
assert_type(answer, Verdict)
if isinstance(answer, NotYet):
    assert_type(answer.after_s, float)
assert isinstance(answer, Admitted)
