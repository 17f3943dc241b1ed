"""What sources say, merged: by the kubelet's rules as recorded, by ours as is right."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest

from nodealloc.errors import ConfigurationError
from nodealloc.podsources import (
    KUBELET,
    Editions,
    MergedUpdates,
    Merging,
    PodUpdate,
    Rules,
    SourceOp,
    is_mirror_of,
    merge_update,
    mirror_of,
)
from nodealloc.podspec import Container, Pod, Toleration, is_mirror, is_static
from nodealloc.testing.conformance import Row, read_rows
from nodealloc.testing.conformance import _podsources as replayer


def a_pod(name: str = "web", uid: str = "u", image: str = "web:1", **more: object) -> Pod:
    """One container, one image."""
    pod = Pod(uid=uid, name=name, containers=(Container(name="app", image=image),))
    return attrs.evolve(pod, **more)  # type: ignore[arg-type]


def say(
    merged: MergedUpdates, op: SourceOp, *pods: Pod, rules: Rules | None = None, source: str = "file"
) -> Merging:
    """One message."""
    return merge_update(
        merged, PodUpdate(source=source, op=op, pods=pods), seen="now", rules=rules or Rules()
    )


def told(done: Merging) -> list[tuple[str, list[str]]]:
    """What has to be done, by uid."""
    return [(one.op.value, [pod.uid for pod in one.pods]) for one in done.changes]


@pytest.fixture(scope="module")
def rows() -> Mapping[str, Row]:
    """Recorded traces by id."""
    folder = Path(__file__).parents[2] / "vectors"
    return {str(row["id"]): row for row in read_rows(folder / "pod_source_updates.jsonl.gz")}


@pytest.mark.parametrize(
    ("rule", "row"),
    [
        ("keeps_known", "4"),
        ("keeps_known", "6"),
        ("keeps_deletion", "2"),
        ("hears_reconcile", "42"),
        ("hears_reconcile", "90"),
    ],
)
def test_each_rule_changes_the_rows_that_it_names(
    rule: str, row: str, rows: Mapping[str, Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the kubelet's rules the row passes; with this one of ours it does not."""
    expected, got = replayer.pod_source_updates(rows[row], {})
    assert expected == got
    monkeypatch.setattr(replayer, "KUBELET", attrs.evolve(KUBELET, **{rule: True}))
    expected, got = replayer.pod_source_updates(rows[row], {})
    assert expected != got


def test_a_source_is_heard_once_it_has_said_all() -> None:
    """A pod alone says nothing about the others; an empty listing says that there are none."""
    first = say(MergedUpdates(), SourceOp.ADD, a_pod())
    assert not first.merged.has_heard(["file"])
    heard = say(first.merged, SourceOp.SET, a_pod())
    assert told(heard) == [("add", [])]
    assert heard.merged.has_heard(["file"])
    assert not heard.merged.has_heard(["file", "api"])
    assert told(say(heard.merged, SourceOp.SET, a_pod())) == []


def test_one_source_takes_nothing_from_another() -> None:
    """A listing replaces the pods of its own source alone."""
    file = say(MergedUpdates(), SourceOp.SET, a_pod())
    both = say(file.merged, SourceOp.SET, a_pod("db", "d"), source="http")
    assert told(both) == [("add", ["d"])]
    assert set(say(both.merged, SourceOp.SET, source="http").merged.by_uid()) == {"u"}


def test_what_goes_is_told_before_what_comes() -> None:
    """A pod made anew under its old name: its predecessor goes first."""
    old = say(MergedUpdates(), SourceOp.SET, a_pod()).merged
    assert told(say(old, SourceOp.SET, a_pod(uid="v"))) == [("remove", ["u"]), ("add", ["v"])]


def test_the_known_one_of_two_twins_stays() -> None:
    """A second pod with the name of one that runs waits, is named, and comes in when the name is free."""
    known = say(MergedUpdates(), SourceOp.SET, a_pod(uid="v")).merged
    twins = say(known, SourceOp.SET, a_pod(uid="u"), a_pod(uid="v"))
    assert told(twins) == []
    (event,) = twins.events
    assert (event.pod.uid, event.reason) == ("u", "FailedValidation")
    assert "the name is that of pod v, which stays; rename one of them" in event.message
    assert [pod.uid for pod in twins.merged.twins["file"]] == ["u"]
    assert told(say(twins.merged, SourceOp.SET, a_pod(uid="u"))) == [("remove", ["v"]), ("add", ["u"])]
    theirs = say(known, SourceOp.SET, a_pod(uid="u"), a_pod(uid="v"), rules=KUBELET)
    assert told(theirs) == [("remove", ["v"]), ("add", ["u"])]


def test_a_twin_that_is_said_by_itself_waits_as_well() -> None:
    """It comes in when the known one is removed; taken back before, it never comes."""
    known = say(MergedUpdates(), SourceOp.SET, a_pod(uid="v")).merged
    waiting = say(known, SourceOp.ADD, a_pod(uid="u"))
    assert told(waiting) == []
    freed = say(waiting.merged, SourceOp.REMOVE, a_pod(uid="v"))
    assert told(freed) == [("remove", ["v"]), ("add", ["u"])]
    assert not freed.merged.twins["file"]
    taken_back = say(waiting.merged, SourceOp.REMOVE, a_pod(uid="u"))
    assert told(taken_back) == []
    assert not taken_back.merged.twins["file"]
    assert told(say(known, SourceOp.ADD, a_pod(uid="u"), rules=KUBELET)) == [("add", ["u"])]


def test_two_pods_with_one_uid_are_named() -> None:
    """The uid belongs to the first; the second is told to take one of its own."""
    done = say(MergedUpdates(), SourceOp.SET, a_pod("web"), a_pod("db"))
    assert told(done) == [("add", ["u"])]
    assert "its uid u is that of default/web; give it one of its own" in done.events[0].message


def test_two_pods_with_one_uid_are_one_for_a_kubelet() -> None:
    """`keeps_known`: the second is another edition of the first, told under the name of that."""
    first, second = a_pod("web", image="web:1"), a_pod("db", image="db:1")
    known = say(MergedUpdates(), SourceOp.SET, first, rules=KUBELET).merged
    both = say(known, SourceOp.SET, first, second, rules=KUBELET)
    again = say(both.merged, SourceOp.SET, first, second, rules=KUBELET)
    for done, times in ((both, 1), (again, 2)):
        assert told(done) == [("update", ["u"] * times)]
        assert {(pod.name, pod.containers[0].image) for pod in done.changes[0].pods} == {("web", "db:1")}
    (added, updated) = say(MergedUpdates(), SourceOp.ADD, first, second, rules=KUBELET).changes
    assert [pod.containers[0].image for pod in (*added.pods, *updated.pods)] == ["db:1", "db:1"]
    alike = attrs.evolve(first, name="db")
    assert told(say(known, SourceOp.SET, first, alike, rules=KUBELET)) == []


def test_the_same_pod_twice_in_one_message_counts_once() -> None:
    """It is refused as its own twin and does not wait for itself."""
    done = say(MergedUpdates(), SourceOp.SET, a_pod(), a_pod())
    assert told(done) == [("add", ["u"])]
    assert len(done.events) == 1
    assert not done.merged.twins["file"]


def test_deletion_stands_and_its_grace_only_shrinks() -> None:
    """Longer grace, or no deletion at all, changes nothing; the kubelet takes what is said last."""
    going = a_pod(deletion_timestamp="t1", deletion_grace_period_seconds=30)
    longer = a_pod(deletion_timestamp="t2", deletion_grace_period_seconds=60)
    shorter = a_pod(deletion_timestamp="t0", deletion_grace_period_seconds=5)
    known = say(MergedUpdates(), SourceOp.SET, going).merged
    assert told(say(known, SourceOp.SET, longer)) == []
    assert told(say(known, SourceOp.SET, a_pod())) == []
    (change,) = say(known, SourceOp.SET, shorter).changes
    assert (change.op, change.pods[0].deletion_grace_period_seconds) == (SourceOp.DELETE, 5)
    assert told(say(known, SourceOp.SET, longer, rules=KUBELET)) == [("delete", ["u"])]
    assert told(say(known, SourceOp.SET, a_pod(), rules=KUBELET)) == [("update", ["u"])]


def test_a_status_that_is_sent_by_itself_is_told_on() -> None:
    """Of a pod that is known, where it differs; the kubelet drops it."""
    known = say(MergedUpdates(), SourceOp.SET, a_pod()).merged
    failed = a_pod(status={"phase": "Failed"})
    assert told(say(known, SourceOp.RECONCILE, failed, a_pod("x", "x"))) == [("reconcile", ["u"])]
    assert told(say(known, SourceOp.RECONCILE, a_pod())) == []
    assert told(say(known, SourceOp.RECONCILE, failed, rules=KUBELET)) == []


def test_versions_and_marks_of_the_node_are_no_change() -> None:
    """A resource version that rises, and annotations that the node writes, change no pod."""
    known = say(MergedUpdates(), SourceOp.SET, a_pod(carried={"metadata.resourceVersion": "1"})).merged
    newer = a_pod(
        carried={"metadata.resourceVersion": "2"}, annotations={"kubernetes.io/config.seen": "later"}
    )
    assert told(say(known, SourceOp.SET, newer)) == []
    assert told(say(known, SourceOp.SET, a_pod(annotations={"note": "x"}))) == [("update", ["u"])]


def test_static_and_mirror_pods_are_told_apart() -> None:
    """A pod of a file is static; its mirror is of this edition alone; a pod of the API is neither."""
    static = say(MergedUpdates(), SourceOp.SET, a_pod()).merged.by_uid()["u"]
    assert (is_static(static), is_mirror(static)) == (True, False)
    mirror = mirror_of(static)
    assert is_mirror(mirror)
    assert not is_static(mirror)
    assert is_mirror_of(mirror, static)
    assert not is_mirror_of(mirror, attrs.evolve(static, uid="v"))
    assert not is_mirror_of(static, static)
    api = say(MergedUpdates(), SourceOp.SET, a_pod(), source="api").merged.by_uid()["u"]
    assert not is_static(api)
    with pytest.raises(ConfigurationError, match="default/web is not static"):
        mirror_of(api)


def test_an_api_server_takes_and_keeps_a_mirror() -> None:
    """It is its node's, as NodeRestriction asks, and no taint has it removed while its pod runs on."""
    owned = {"metadata.ownerReferences": [{"apiVersion": "v1", "kind": "Job", "name": "j", "uid": "j"}]}
    static = say(MergedUpdates(), SourceOp.SET, a_pod(node_name="n1", carried=owned)).merged.by_uid()["u"]
    mirror = mirror_of(static, node_uid="n")
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "n", "controller": True}
    assert mirror.carried["metadata.ownerReferences"] == [owner]
    assert mirror.tolerations == (Toleration(operator="Exists", effect="NoExecute"),)
    assert mirror_of(attrs.evolve(static, tolerations=mirror.tolerations)).tolerations == mirror.tolerations
    assert mirror_of(static).carried == static.carried
    with pytest.raises(ConfigurationError, match="of no node"):
        mirror_of(attrs.evolve(static, node_name=""), node_uid="n")


def test_nameless_pods_and_sources_are_refused() -> None:
    """Names are what twins are told by."""
    with pytest.raises(ConfigurationError, match="pod u has no name"):
        PodUpdate(source="file", pods=(Pod(uid="u"),))
    with pytest.raises(ConfigurationError, match="source without a name"):
        PodUpdate(source="")


def uids(*readings: tuple[Pod, ...], rules: Rules | None = None) -> list[str]:
    """The uid of the only pod in each listing that has one, in order."""
    editions, found = Editions(), list[str]()
    for pods in readings:
        editions, listed = editions.read(pods, rules=rules or Rules())
        found += [pod.uid for pod in listed]
    return found


def test_an_edit_keeps_the_uid_and_putting_back_does_not() -> None:
    """An edited file is the same pod; for the kubelet another one, and one put back the old one."""
    first, second = a_pod(), a_pod(image="web:2")
    one, edited, back = uids((first,), (second,), (), (second,))
    assert one == edited == "u"
    assert back not in {"u", ""}
    one, edited, back = uids((first,), (second,), (), (second,), rules=KUBELET)
    assert one != edited == back


def test_an_edit_of_a_pod_that_ended_makes_a_new_one() -> None:
    """Unchanged it stays ended; edited it runs; the kubelet keeps the uid that has ended."""
    editions, (pod,) = Editions().read((a_pod(),))
    ended = editions.ended(pod.full_name)
    assert ended.ended("default/other") == ended.ended(pod.full_name) == ended
    assert ended.read((a_pod(),))[1][0].uid == "u"
    assert ended.read((a_pod(image="web:2"),))[1][0].uid != "u"
