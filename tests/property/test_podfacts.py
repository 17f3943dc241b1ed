"""Laws of a node's view."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodealloc.podfacts import NodeView, PodOnNode, PodsOnNode
from nodealloc.podspec import Pod, Quantity

AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory", "example.com/gpu"]), st.integers(0, 1 << 40).map(Quantity.of)
)
PODS = st.builds(
    lambda uid, requests: PodOnNode(pod=Pod(uid=str(uid)), requests=requests), st.integers(0, 9), AMOUNTS
)


@given(st.lists(PODS | st.integers(0, 9)), st.integers(0, 400))
def test_a_view_that_grew_is_the_one_made_at_once(changes: list[PodOnNode | int], crowd: int) -> None:
    """Pods that come, change and go one by one leave the view that they make together; sums are exact."""
    others = [PodOnNode(pod=Pod(uid=f"other-{n}"), requests={"cpu": Quantity.of(n)}) for n in range(crowd)]
    view = NodeView(name="n", pods=PodsOnNode(others))
    there = {one.pod.uid: one for one in others}
    for change in changes:
        if isinstance(change, PodOnNode):
            view, there[change.pod.uid] = view.with_pod(change), change
        else:
            view = view.without(str(change))
            there.pop(str(change), None)
    whole = NodeView(name="n", pods=PodsOnNode(there.values()))
    assert view == whole
    assert list(view.pods) == list(whole.pods)
    assert view.pods.requested == whole.pods.requested
    for name in ("cpu", "memory", "example.com/gpu"):
        total = sum(one.requests[name].value for one in there.values() if name in one.requests)
        assert view.pods.requested.get(name, Quantity()).value == total
