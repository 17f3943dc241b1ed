"""Laws of admission, over fake allocators on invented nodes."""

from __future__ import annotations

import json
import pickle

import attrs
from hypothesis import given
from hypothesis import strategies as st

from nodealloc.testing.strategies.topology import policies, snapshots, workloads
from nodealloc.testing.topology import FakeAllocator, check_allocator
from nodealloc.topology import (
    Admitted,
    Policy,
    PolicyName,
    Refusal,
    Snapshot,
    Workload,
    admit,
    explain,
    release,
)

STRICT = st.sampled_from([PolicyName.SINGLE_NUMA_NODE, PolicyName.RESTRICTED])


@given(snapshots(), workloads())
def test_the_snapshot_stays_as_it_was(snapshot: Snapshot, asked: Workload) -> None:
    """Admission changes nothing and answers alike when asked again."""
    before = pickle.dumps(snapshot)
    assert admit(snapshot, asked) == admit(snapshot, asked)
    assert pickle.dumps(snapshot) == before


@given(snapshots(policy=policies(search=None)), workloads("one"), workloads("two"))
def test_release_restores(snapshot: Snapshot, first: Workload, second: Workload) -> None:
    """What came in and went leaves the same allocators, whatever was there before."""
    verdict = admit(snapshot, first)
    base = verdict.snapshot if isinstance(verdict, Admitted) else snapshot
    after = admit(base, second)
    if isinstance(after, Admitted):
        left = release(after.snapshot, second.key)
        assert (left.allocators, left.admitted) == (base.allocators, base.admitted)
        assert left.generation == base.generation + 2


@given(snapshots(), workloads())
def test_admitting_again_is_a_no_op(snapshot: Snapshot, asked: Workload) -> None:
    """The same answer, and the very snapshot that was asked."""
    verdict = admit(snapshot, asked)
    if isinstance(verdict, Admitted):
        again = admit(verdict.snapshot, asked)
        assert again == attrs.evolve(verdict, repeated=True)
        assert isinstance(again, Admitted)
        assert again.snapshot is verdict.snapshot


@given(snapshots(), workloads())
def test_every_refusal_explains_itself(snapshot: Snapshot, asked: Workload) -> None:
    """As fields, text and JSON; its short story is the same after pickling, without the evidence inside."""
    verdict = admit(snapshot, asked)
    if isinstance(verdict, Refusal):
        story = explain(verdict)
        assert json.loads(json.dumps(story.as_dict()))["reason"] == story.reason == verdict.reason
        assert story.members == tuple(claim.owner.member for claim in verdict.claims)
        copy = pickle.loads(pickle.dumps(verdict))  # noqa: S301
        assert copy == verdict
        assert hash(copy) == hash(verdict)
        assert str(copy) == str(verdict)
        assert json.loads(json.dumps(copy.as_dict())) == json.loads(json.dumps(verdict.as_dict()))


@given(st.data())
def test_the_search_finds_whatever_the_plain_way_finds(data: st.DataObject) -> None:
    """Where the kubelet's way admits, the search answers the same; it only admits more."""
    snapshot, asked = data.draw(snapshots()), data.draw(workloads())
    plain = admit(snapshot, asked)
    searching = attrs.evolve(snapshot, policy=attrs.evolve(snapshot.policy, search=True))
    found = admit(searching, asked)
    if isinstance(plain, Admitted):
        assert isinstance(found, Admitted)
        assert found.affinity == plain.affinity


@given(st.data(), STRICT)
def test_the_search_finds_an_assignment_if_there_is_one(data: st.DataObject, name: PolicyName) -> None:
    """For main members of one resource on one node each: exactly when the members pack into the nodes."""
    snapshot = data.draw(snapshots(policy=st.just(Policy(name=name, search=True))))
    units = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    (allocator, *_) = snapshot.allocators
    assert isinstance(allocator, FakeAllocator)
    narrow = [room for here in allocator.units.values() if (room := here.bit_count())]
    asked = make(allocator.name, units)
    plain = attrs.evolve(snapshot, scope=type(snapshot.scope)("container"), allocators=(allocator,))
    if not narrow or max(units) > max(narrow):
        return
    assert isinstance(admit(plain, asked), Admitted) == packs(units, narrow)


def make(resource: str, units: list[int]) -> Workload:
    """One main member for each amount."""
    from nodealloc.testing.topology import workload

    return workload("job", *({resource: amount} for amount in units))


def packs(units: list[int], rooms: list[int]) -> bool:
    """Whether the amounts fit into the rooms, none split; by trying everything."""
    if not units:
        return True
    return any(
        packs(units[1:], [*rooms[:place], room - units[0], *rooms[place + 1 :]])
        for place, room in enumerate(rooms)
        if room >= units[0]
    )


@given(snapshots(), workloads())
def test_the_fake_keeps_what_allocators_promise(snapshot: Snapshot, asked: Workload) -> None:
    """`FakeAllocator` passes the check that is meant for real ones."""
    for allocator in snapshot.allocators:
        check_allocator(allocator, asked, snapshot.numa)
