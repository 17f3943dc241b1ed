"""What may go: each departure from the kubelet both ways, on its recorded rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import attrs
import pytest

from nodealloc.errors import RetryableError
from nodealloc.podfacts import PodIdentity
from nodealloc.runtime import (
    KUBELET,
    ContainerGcPolicy,
    ContainerRecord,
    Disk,
    ImageGcPolicy,
    ImageRecord,
    ImageUse,
    Rules,
    RunState,
    SandboxRecord,
    containers_to_drop,
    plan_container_gc,
    plan_image_gc,
    plan_log_gc,
    plan_sandbox_gc,
    plan_unused_images,
    sweep,
)
from nodealloc.runtime._image_gc import seen_images
from nodealloc.testing.conformance import Row, read_rows
from nodealloc.testing.conformance import _runtime as replayer

WEB = PodIdentity(uid="web", namespace="default", name="web")
RUNNING, EXITED, CREATED, UNKNOWN = RunState.RUNNING, RunState.EXITED, RunState.CREATED, RunState.UNKNOWN
GIB = 1 << 30


@pytest.fixture(scope="module")
def rows(request: pytest.FixtureRequest) -> Mapping[tuple[str, str], Row]:
    """Recorded rows by kind and id."""
    folder = Path(__file__).parents[2] / "vectors"
    kinds = ("container_gc", "pod_container_deletor", "image_gc")
    return {(kind, str(row["id"])): row for kind in kinds for row in read_rows(folder / f"{kind}.jsonl.gz")}


@pytest.mark.parametrize(
    ("rule", "kind", "row"),
    [
        ("ages_from_detection", "image_gc", "ig-38"),
        ("ages_from_detection", "image_gc", "ig-90"),
        ("starts_exactly", "image_gc", "ig-31"),
        ("starts_exactly", "image_gc", "ig-64"),
    ],
)
def test_each_rule_is_what_tells_the_two_apart(
    rule: str,
    kind: str,
    row: str,
    rows: Mapping[tuple[str, str], Row],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the kubelet's rules the row is met; with this one turned right it is not."""
    answer = getattr(replayer, kind)
    expected, got = answer(rows[kind, row], {})
    assert expected == got
    monkeypatch.setattr(replayer, "KUBELET", attrs.evolve(KUBELET, **{rule: True}))
    expected, got = answer(rows[kind, row], {})
    assert expected != got


def test_an_exit_that_is_not_stored_keeps_its_record(rows: Mapping[tuple[str, str], Row]) -> None:
    """The kubelet removes it all the same; we withhold it, and say so."""
    row = rows["container_gc", "cg-0"]
    containers = [replayer._container(one) for one in cast("list[Row]", row["containers"])]
    ended = cast("list[str]", row["content_may_be_removed"])
    policy = ContainerGcPolicy(min_age_s=60.0)
    now_s = replayer._NOW_S
    theirs = plan_container_gc(
        containers, policy, now_s=now_s, ended=ended, stored=frozenset(), rules=KUBELET
    )
    ours = plan_container_gc(containers, policy, now_s=now_s, ended=ended, stored=frozenset())
    dead = {one.id for one in containers if one.state is EXITED}
    assert dead & set(theirs.remove)
    assert not dead & set(ours.remove)
    assert set(ours.withheld) >= dead & set(theirs.remove)
    stored = plan_container_gc(containers, policy, now_s=now_s, ended=ended, stored=dead)
    assert set(stored.remove) == set(theirs.remove)
    row = rows["pod_container_deletor", "cd-0"]
    pod = [replayer._container(one) for one in cast("list[Row]", row["containers"])]
    for rules, going in ((Rules(), ("id4",)), (KUBELET, ("id4", "id1", "id5", "id3"))):
        assert containers_to_drop(pod, keep=0, remove_all=True, stored={"id4"}, rules=rules) == going


def container(name: str, age_s: float, state: RunState = EXITED) -> ContainerRecord:
    """An instance of `app`, made so long before 1000."""
    return ContainerRecord(
        id=name, pod=WEB, name="app", sandbox_id="s", state=state, created_unix_s=1000.0 - age_s
    )


def test_what_could_not_be_removed_still_counts() -> None:
    """The limit is met by another one; the kubelet counts the stuck one as gone."""
    dead = [container("old", 30.0), container("mid", 20.0), container("new", 10.0)]
    policy = ContainerGcPolicy(most_per_container=2)
    ours = plan_container_gc(dead, policy, now_s=1000.0, stuck=["old"])
    theirs = plan_container_gc(dead, policy, now_s=1000.0, stuck=["old"], rules=KUBELET)
    assert (ours.remove, theirs.remove) == (("mid",), ("old",))


def test_dead_containers_that_are_young_or_run_stay() -> None:
    """And one whose state nobody knows is stopped before it goes."""
    there = [container("run", 500.0, RUNNING), container("young", 5.0), container("lost", 90.0, UNKNOWN)]
    plan = plan_container_gc(
        there, ContainerGcPolicy(min_age_s=60.0, most_per_container=0), now_s=1000.0, ended=["web"]
    )
    assert (plan.remove, set(plan.stop_first)) == (("lost",), {"lost"})
    with pytest.raises(ValueError, match="most is -1"):
        ContainerGcPolicy(most=-1)


def test_the_limit_of_the_node_takes_the_oldest_of_all() -> None:
    """Each container keeps its share first."""
    there = [container(f"c{age}", age) for age in (10.0, 20.0, 30.0, 40.0)]
    policy = ContainerGcPolicy(most_per_container=None, most=1)
    assert plan_container_gc(there, policy, now_s=1000.0).remove == ("c40.0", "c30.0", "c20.0")


def test_a_sandbox_with_containers_or_a_pods_newest_stays() -> None:
    """An ended pod keeps none that is not ready and empty."""
    boxes = [
        SandboxRecord(id=f"s{age}", pod=WEB, is_ready=False, created_unix_s=1000.0 - age, attempt=9 - age)
        for age in (1, 2, 3)
    ]
    inside = [attrs.evolve(container("c", 1.0), sandbox_id="s3")]
    assert plan_sandbox_gc(boxes, inside) == ("s2",)
    assert plan_sandbox_gc(boxes, inside, ended=["web"]) == ("s2", "s1")
    assert plan_log_gc(["default_web_web", "odd"], ended=["web"]) == ("default_web_web",)


def image(name: str, size: int = GIB, first: float = 0.0, last: float | None = None) -> ImageUse:
    """An image of some size, with its times."""
    record = ImageRecord(id=name, names=(f"localhost/{name}:1",), size_bytes=size)
    return ImageUse(image=record, first_seen_s=first, last_used_s=last)


def test_an_image_that_an_admitted_pod_names_is_kept() -> None:
    """By id or by any of its names; the kubelet removes it before the pod's container is there."""
    images = [image("a"), image("b"), image("c")]
    full = Disk(capacity_bytes=10 * GIB, available_bytes=0)
    named = {"localhost/a:1", "b"}
    for rules, going in ((Rules(), ["c"]), (KUBELET, ["a", "b", "c"])):
        plan = plan_image_gc(images, full, ImageGcPolicy(), now_s=1e4, since_s=0.0, named=named, rules=rules)
        assert [one.image.id for one in plan.for_space] == going
        unused = plan_unused_images(images, ImageGcPolicy(), now_s=1e4, named=named, rules=rules)
        assert [one.image.id for one in unused.for_space] == going


def test_images_go_one_by_one_until_enough_is_free() -> None:
    """What fails is told and passed over; what is lacking is told in the kubelet's words."""
    images = [image("a", last=1.0), image("b", last=2.0), image("c", last=3.0)]
    disk = Disk(capacity_bytes=10 * GIB, available_bytes=GIB)
    plan = plan_image_gc(images, disk, ImageGcPolicy(), now_s=1e4, since_s=0.0)
    assert (plan.to_free_bytes, plan.found_bytes) == (GIB, 3 * GIB)
    assert sweep(plan, lambda _: None).removed == ("a",)

    def stuck(one: str) -> None:
        if one == "a":
            raise RetryableError("in use")

    done = sweep(plan, stuck)
    assert (done.removed, tuple(done.failed), done.lacking_bytes) == (("b",), ("a",), 0)
    short = sweep(attrs.evolve(plan, to_free_bytes=9 * GIB), lambda _: None)
    assert short.warning is not None
    assert (short.warning.reason, short.lacking_bytes) == ("FreeDiskSpaceFailed", 6 * GIB)
    assert (done.freed_bytes, short.freed_bytes) == (GIB, 3 * GIB)


def test_where_rounding_leaves_nothing_to_free_one_image_goes_all_the_same() -> None:
    """A kubelet looks at what is free after an image that went, never after one that did not."""
    images = [image("a", last=1.0), image("b", last=2.0), image("c", last=3.0)]
    disk = Disk(capacity_bytes=1000, available_bytes=159)
    policy = ImageGcPolicy(high_percent=85, low_percent=85)
    plan = plan_image_gc(images, disk, policy, now_s=1e4, since_s=0.0, rules=KUBELET)
    assert plan.to_free_bytes == 0

    def stuck(one: str) -> None:
        if one == "a":
            raise RetryableError("in use")

    assert sweep(plan, lambda _: None).removed == ("a",)
    assert sweep(plan, stuck).removed == ("b",)


def test_a_disk_that_nobody_knows_lets_old_images_go_alone() -> None:
    """Age needs no figures; no figures and a capacity of 0 are told apart."""
    policy = ImageGcPolicy(max_age_s=100.0)
    old, new = image("old", last=10.0), image("new", last=990.0)
    for disk, words in ((None, "nobody told"), (Disk(capacity_bytes=0, available_bytes=0), "capacity 0")):
        plan = plan_image_gc([new, old], disk, policy, now_s=1000.0, since_s=0.0)
        done = sweep(plan, lambda _: None)
        assert (done.removed, done.freed_bytes) == (("old",), 0)
        assert done.warning is not None
        assert words in done.warning.message


def test_what_is_remembered_of_images() -> None:
    """The first sighting stays, use is renewed, what is gone is forgotten."""
    listed = [ImageRecord(id="a"), ImageRecord(id="b")]
    first = seen_images({}, listed, used=["a"], now_s=1.0)
    second = seen_images(first, listed[:1], used=[], now_s=2.0)
    assert second == {"a": ImageUse(image=listed[0], first_seen_s=1.0, last_used_s=1.0)}


@pytest.mark.parametrize(("high", "low", "words"), [(101, 0, "high_percent"), (80, 90, "above")])
def test_thresholds_that_cannot_be_are_refused(high: int, low: int, words: str) -> None:
    """Beyond 100 percent, or the low one above the high one."""
    with pytest.raises(ValueError, match=words):
        ImageGcPolicy(high_percent=high, low_percent=low)
