"""The model of a kubelet's relisting: what is a change, who is inspected again, when it counts as stalled."""

from __future__ import annotations

from nodealloc.runtime import PodReport, RunState
from nodealloc.testing.conformance._pleg_model import ChangeKind, Pleg, changes_of, pleg_health, relist

RUNNING, EXITED, CREATED, UNKNOWN = RunState.RUNNING, RunState.EXITED, RunState.CREATED, RunState.UNKNOWN


def test_every_pair_of_states_has_its_changes() -> None:
    """None for a state that stays, which made and unknown are together; what is gone has died unless told."""
    states = (None, *RunState)
    for old in states:
        for new in states:
            before = {} if old is None else {"c": old}
            after = {} if new is None else {"c": new}
            kinds = [one.kind for one in changes_of(before, after)]
            if old is new or {old, new} == {CREATED, UNKNOWN}:
                assert kinds == []
            elif new is None:
                assert (ChangeKind.DIED in kinds) == (old is not EXITED)
                assert kinds[-1] is ChangeKind.REMOVED
            else:
                assert len(kinds) == 1


def test_a_change_is_told_once_its_pod_could_be_inspected() -> None:
    """Until then its report is unknown, and each listing inspects it anew."""
    failed = relist(Pleg(), {"web": {"c": RUNNING}}, lambda _: None, now_s=1.0)
    assert (failed.inspected, failed.changes) == (("web",), {})
    assert failed.pleg.reports == {"web": None}
    again = relist(failed.pleg, {"web": {"c": RUNNING}}, lambda uid: PodReport(uid=uid), now_s=2.0)
    assert again.inspected == ("web",)
    assert [one.kind for one in again.changes["web"]] == [ChangeKind.STARTED]
    idle = relist(again.pleg, {"web": {"c": RUNNING}}, lambda uid: PodReport(uid=uid), now_s=3.0)
    assert (idle.inspected, idle.changes, idle.pleg.heard_s) == ((), {}, 3.0)


def test_silence_is_told_with_its_length() -> None:
    """In the kubelet's words."""
    assert pleg_health(Pleg(), 5.0) == "pleg has yet to be successful"
    assert pleg_health(Pleg(heard_s=0.0), 180.0) == ""
    assert pleg_health(Pleg(heard_s=0.0), 3661.5) == (
        "pleg was last seen active 1h1m1.5s ago; threshold is 3m0s"
    )
