"""Worlds: generations, dirty sets, snapshots, threads."""

from __future__ import annotations

import threading

import pytest

from nodealloc.dsw_asw import Change, World
from nodealloc.errors import ConfigurationError


def test_an_equal_value_changes_nothing() -> None:
    """Saying a thing again gives no generation and no dirty key."""
    world: World[str, tuple[int, ...]] = World("w")
    first = world.put("a", (1, 2), by="one")
    dirty = world.watch()
    dirty.take()
    assert world.put("a", tuple([1, 2]), by="two") == first  # noqa: C409 - another object, not another value
    assert not dirty.take()


def test_a_key_added_again_has_a_new_generation() -> None:
    """The same uid removed and added is somebody else."""
    world: World[str, int] = World("w")
    first = world.put("uid", 1).generation
    assert world.drop("uid")
    assert not world.drop("uid")
    assert world.put("uid", 1).generation > first


def test_a_watch_merges_changes_and_names_their_authors() -> None:
    """Many changes are one entry with everyone who made them."""
    world: World[str, int] = World("w")
    dirty = world.watch()
    world.put("a", 1, by="populator")
    world.put("a", 2, by="resize")
    world.drop("a", by="populator")
    assert len(dirty) == 1
    assert dict(dirty.take()) == {"a": Change(3, ("populator", "resize"), removed=True)}


def test_watches_do_not_take_from_each_other() -> None:
    """Each reader has a dirty set of its own; a closed one collects nothing; a new one has all keys."""
    world: World[str, int] = World("w")
    one, other = world.watch(), world.watch()
    world.put("a", 1)
    assert "a" in one.take()
    other.close()
    other.close()
    world.put("b", 1)
    assert list(other.take()) == ["a"]
    assert set(world.watch().take()) == {"a", "b"}


def test_a_watch_of_some_keys_leaves_out_all_others() -> None:
    """They wake nobody; a key that begins to count does so from the next change on."""
    world: World[str, int] = World("w")
    world.put("a", 1)
    counts = {"a": None}
    calls: list[str] = []
    some, every = (
        world.watch(lambda: calls.append("some"), of=counts),
        world.watch(lambda: calls.append("all")),
    )
    assert (list(some.take()), list(every.take())) == (["a"], ["a"])
    world.put("b", 1)
    assert (calls, list(some.take())) == (["all"], [])
    counts["b"] = None
    world.put("b", 2)
    world.drop("a")
    world.replace({"c": 1})
    assert calls == ["all", "some", "all", "some", "all", "all", "some"]
    assert list(some.take()) == ["b", "a"]
    assert list(every.take()) == ["b", "a", "c"]


def test_a_snapshot_does_not_change() -> None:
    """Readers keep what they saw, whatever is written afterwards."""
    world: World[int, int] = World("w")
    for key in range(1000):
        world.put(key, key)
    before = world.snapshot()
    for key in range(0, 1000, 2):
        world.drop(key)
    world.put(1, -1)
    assert len(before) == 1000
    assert sorted(before) == list(range(1000))
    assert before[1].value == 1
    assert len(world) == 500
    assert world.snapshot()[1].value == -1
    assert 0 not in world.snapshot()


def test_none_is_no_value() -> None:
    """None is how a function drops a key, so nobody can put it."""
    world: World[str, int | None] = World("w")
    with pytest.raises(ValueError, match="drop the key"):
        world.put("a", None)


def test_no_change_is_lost_between_threads() -> None:
    """Read-modify-write from eight threads adds up, and every key is dirty."""
    world: World[int, int] = World("w")
    dirty = world.watch()

    def work() -> None:
        for turn in range(200):
            world.alter(turn % 7, lambda value: (value or 0) + 1)
            world.snapshot()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(record.value for record in world.snapshot().values()) == 1600
    assert set(dirty.take()) == set(range(7))
    assert world.generation == 1600


def test_keys_come_in_the_order_in_which_they_were_put() -> None:
    """In snapshots, in new watches and among what a listing has no more: the same in each process."""
    world: World[str, int] = World("any")
    names = [f"pod-{number * 7919 % 100}" for number in range(100)]
    for name in names:
        world.put(name, 1)
    world.put(names[0], 2)
    order = [*names[1:], names[0]]
    assert list(world.snapshot()) == order
    assert list(world.watch().take()) == order
    assert list(world.replace({"new": 1, order[3]: 1})) == ["new", *order[:3], *order[4:]]


def test_none_is_no_value_and_takes_none_away() -> None:
    """Refused before anything is changed: nothing is dropped for it, and nobody woken."""
    world: World[str, int | None] = World("desired")
    world.put("db", 2)
    watch = world.watch()
    watch.take()
    with pytest.raises(ConfigurationError, match="None is no value for 'db'"):
        world.put("db", None)
    assert (world.get("db"), dict(watch.take())) == (2, {})


def test_a_listing_without_a_value_is_refused_whole() -> None:
    """It had been a `KeyError` in the middle for an absent key, with others written and nobody told."""
    world: World[str, int] = World("w")
    world.put("a", 1)
    before = world.generation
    with pytest.raises(ConfigurationError, match="w: None is no value for 'b'; leave the key out"):
        world.replace({"a": 2, "b": None})  # type: ignore[dict-item]
    assert (dict(world.snapshot().items())["a"].value, world.generation) == (1, before)


def test_a_remembered_world_takes_no_listing() -> None:
    """One engine alone writes it, or what it says is not durable."""
    world: World[str, int] = World("w")
    write = world.remembered_by("engine")
    write("a", 1, "engine")
    with pytest.raises(ConfigurationError, match="w is remembered by engine, which alone writes it"):
        world.replace({"b": 1})
    assert world.get("a") == 1
