"""Editions over restarts and over many names: no uid comes twice, and the record stays small."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nodealloc.checkpoint import JsonCheckpoint
from nodealloc.errors import DecodeError
from nodealloc.podsources import KUBELET, Editions, editions_from_checkpoint, editions_to_checkpoint
from nodealloc.podsources._editions import PodForms
from nodealloc.podspec import Container, Json, Pod


def pod(name: str) -> Pod:
    """A static pod, with the uid that its name gives it."""
    return Pod(uid=f"uid-{name}", name=name, containers=(Container(name="app"),))


def lived() -> Editions:
    """One that is there for the second time, one that ended, one that is gone."""
    editions = Editions().read([pod("a"), pod("b"), pod("c")])[0]
    editions = editions.read([pod("b")])[0].read([pod("a"), pod("b")])[0]
    return editions.ended("default/b")


def test_editions_come_back_from_a_checkpoint_as_they_were() -> None:
    """So do the uids of the pods that are read by them, through bytes."""
    checkpoint = JsonCheckpoint.unmarshal(editions_to_checkpoint(lived()).marshal())
    again = editions_from_checkpoint(checkpoint)
    assert again == lived()
    assert again.read([pod("a"), pod("c")]) == lived().read([pod("a"), pod("c")])


def _kind(value: Json) -> JsonCheckpoint:
    return JsonCheckpoint(kind="pod editions", version=1, value=value)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda: JsonCheckpoint(kind="pod editions", version=2, value={}), "expected pod editions version 1"),
        (lambda: _kind([1]), "expected a mapping"),
        (lambda: _kind({"least": -1}), r"\$\.least"),
        (lambda: _kind({"by_name": {"a": {"number": True}}}), r"\$\.by_name\['a'\]\.number"),
        (lambda: _kind({"by_name": {"a": {"is_there": 1}}}), r"\$\.by_name\['a'\]\.is_there"),
        (lambda: _kind({"by_name": {"a": {"content": 1}}}), r"\$\.by_name\['a'\]\.content"),
        (lambda: _kind({"by_name": {"a": {"colour": "red"}}}), "colour"),
    ],
)
def test_what_is_no_record_of_editions_says_where(made: Callable[[], JsonCheckpoint], told: str) -> None:
    """Another version, another shape, other values."""
    with pytest.raises(DecodeError, match=told):
        editions_from_checkpoint(made())


def test_names_that_went_are_forgotten_and_no_uid_comes_twice() -> None:
    """A thousand names are kept; what comes later runs under a uid that nobody had."""
    editions, uids = Editions(), set[str]()
    for number in range(1500):
        editions, (told,) = editions.read([pod(f"p{number}")])
        assert told.uid not in uids
        uids.add(told.uid)
        assert len(editions.by_name) <= 1001
    assert editions.least > 0
    for name in ("p1", "p1400", "p1499", "new"):
        editions, (told,) = editions.read([pod(name)])
        assert told.uid not in uids
        uids.add(told.uid)
        assert editions.read([pod(name)])[1][0].uid == told.uid
    assert editions_from_checkpoint(editions_to_checkpoint(editions)) == editions


def test_forgetting_changes_no_uid_where_the_kubelet_never_changes_one() -> None:
    """As recorded, a pod that is put back has the uid that it had."""
    editions = Editions()
    for number in range(1100):
        editions, _ = editions.read([pod(f"p{number}")], rules=KUBELET)
    _, (told,) = editions.read([pod("p0")], rules=KUBELET)
    _, (first,) = Editions().read([pod("p0")], rules=KUBELET)
    assert told == first


def test_a_pod_that_is_read_again_as_it_was_costs_nothing() -> None:
    """The same object comes to the same object, until it has a predecessor or is another one."""
    forms, web = PodForms(), pod("web")
    editions, (first,) = Editions().read([web], forms=forms)
    assert editions.read([web], forms=forms)[1][0] is first
    (alike,) = editions.read([pod("web")], forms=forms)[1]
    assert alike == first
    assert alike is not first
    away = editions.read([], forms=forms)[0]
    (later,) = away.read([web], forms=forms)[1]
    assert later.uid != first.uid
    assert later == away.read([web])[1][0]


@pytest.mark.parametrize("is_ending", [lambda _uid: True, None], ids=["it has ended", "after a restart"])
def test_of_two_of_a_name_the_one_that_is_known_stays_in_whatever_order(
    is_ending: Callable[[str], bool] | None,
) -> None:
    """A source that names the other one first does not make the known one another pod, which runs again."""
    known = pod("web")
    other = Pod(uid="other", name="web", containers=(Container(name="other"),))
    editions, _ = Editions().read([known, other])
    editions, first = editions.read([other, known], is_ending=is_ending)
    editions, again = editions.read([known, other], is_ending=is_ending)
    assert [one.uid for one in first] == [one.uid for one in again] == ["uid-web", "other"]
