"""Three ways to notice that a config changed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nodealloc.testing.dsw_asw import VirtualClock
from nodealloc.volumes.plugins import ChangeStrategy, ConfigObject, ConfigStore
from nodealloc.volumes.plugins._objects import ObjectFiles


class Source:
    """One object, counted reads, and watchers."""

    def __init__(self) -> None:
        self.found: ConfigObject | None = ConfigObject(data={"a": b"1"}, version="1")
        self.reads = 0
        self.watchers: list[Callable[[], None]] = []

    def read(self, namespace: str, name: str, /) -> ConfigObject | None:
        """The object."""
        self.reads += 1
        return self.found

    def watch(self, namespace: str, name: str, on_change: Callable[[], None], /) -> Callable[[], None]:
        """Remember who watches."""
        self.watchers.append(on_change)
        return lambda: self.watchers.remove(on_change)


def test_get_reads_every_time() -> None:
    """Nothing is believed for longer than a call, nor kept: it may be a secret, and large."""
    source = Source()
    store = ConfigStore(source)
    store.read("n", "o")
    store.read("n", "o")
    assert source.reads == 2
    assert not store._known


def test_cache_believes_for_a_while() -> None:
    """What is older than its time is read again."""
    source, clock = Source(), VirtualClock()
    store = ConfigStore(source, ChangeStrategy.CACHE, ttl_s=60.0, clock=clock)
    store.read("n", "o")
    clock.advance(59.0)
    store.read("n", "o")
    assert source.reads == 1
    clock.advance(1.0)
    store.read("n", "o")
    assert source.reads == 2


def test_watch_reads_after_events_alone() -> None:
    """An event drops what is known and tells who cares; forgetting ends the watch."""
    source = Source()
    store = ConfigStore(source, ChangeStrategy.WATCH)
    told: list[tuple[str, str]] = []
    store.on_change = lambda namespace, name: told.append((namespace, name))
    store.read("n", "o")
    store.read("n", "o")
    assert (source.reads, len(source.watchers)) == (1, 1)
    source.found = ConfigObject(data={}, version="2")
    source.watchers[0]()
    found = store.read("n", "o")
    assert found is not None
    assert (found.version, told) == ("2", [("n", "o")])
    store.forget("n", "o")
    assert source.watchers == []


def test_an_immutable_object_is_read_once() -> None:
    """Whatever the strategy."""
    source = Source()
    source.found = ConfigObject(data={}, version="1", immutable=True)
    store = ConfigStore(source)
    store.read("n", "o")
    store.read("n", "o")
    assert source.reads == 1


def test_a_source_that_cannot_watch_is_refused() -> None:
    """Said when it is built, not when it is needed."""

    class Plain:
        def read(self, namespace: str, name: str, /) -> ConfigObject | None:
            return None

    with pytest.raises(ValueError, match="cannot watch"):
        ConfigStore(Plain(), ChangeStrategy.WATCH)


def test_a_change_while_it_is_read_is_not_lost() -> None:
    """What was read before the change is handed out once, and believed by nobody after it."""
    source = Source()
    store = ConfigStore(source, ChangeStrategy.WATCH)
    old, new = source.found, ConfigObject(data={"a": b"2"}, version="2")
    read = source.read

    def slow(namespace: str, name: str, /) -> ConfigObject | None:
        found = read(namespace, name)
        if source.found is old:
            source.found = new
            source.watchers[0]()
        return found

    source.read = slow  # type: ignore[method-assign]
    assert store.read("n", "o") == old
    assert store.read("n", "o") == new
    assert store.read("n", "o") == new
    assert source.reads == 2


def test_an_old_answer_that_comes_late_is_believed_by_nobody_after_it_was_forgotten() -> None:
    """It was read before a change; the next pod that uses the object has read the new content by then."""
    source = Source()
    store = ConfigStore(source, ChangeStrategy.WATCH)
    old, new = source.found, ConfigObject(data={"a": b"2"}, version="2")
    read = source.read

    def slow(namespace: str, name: str, /) -> ConfigObject | None:
        found = read(namespace, name)
        source.read = read  # type: ignore[method-assign]
        source.found = new
        source.watchers[0]()
        store.forget("n", "o")
        assert store.read("n", "o") == new  # another pod, which follows it from now on
        return found

    source.read = slow  # type: ignore[method-assign]
    assert store.read("n", "o") == old
    assert store.read("n", "o") == new


def test_what_is_forgotten_while_it_is_read_stays_forgotten() -> None:
    """Nobody uses it any more: nothing is kept of it, whatever the strategy, and nobody follows it."""
    for strategy in ChangeStrategy:
        source = Source()
        source.found = ConfigObject(data={"a": b"1"}, version="1", immutable=True)
        store = ConfigStore(source, strategy)
        read = source.read

        def forgetting(
            namespace: str,
            name: str,
            /,
            store: ConfigStore = store,
            read: Callable[[str, str], ConfigObject | None] = read,
        ) -> ConfigObject | None:
            found = read(namespace, name)
            store.forget(namespace, name)
            return found

        source.read = forgetting  # type: ignore[method-assign]
        store.read("n", "o")
        assert (store._known, source.watchers) == ({}, [])


def test_what_is_forgotten_as_its_watch_begins_is_watched_by_nobody() -> None:
    """Else nobody would ever end it."""

    class Late(Source):
        def watch(self, namespace: str, name: str, on_change: Callable[[], None], /) -> Callable[[], None]:
            stop = super().watch(namespace, name, on_change)
            store.forget(namespace, name)
            return stop

    source = Late()
    store = ConfigStore(source, ChangeStrategy.WATCH)
    assert store.read("n", "o") == source.found
    assert (store._known, source.watchers) == ({}, [])


def test_a_watch_that_does_not_end_well_keeps_no_other_from_ending(caplog: pytest.LogCaptureFixture) -> None:
    """A volume of two objects is gone: both are forgotten, and its pod is not kept for the error."""

    class Stuck(Source):
        def watch(self, namespace: str, name: str, on_change: Callable[[], None], /) -> Callable[[], None]:
            stop = super().watch(namespace, name, on_change)

            def stop_badly() -> None:
                stop()
                raise OSError("not now")

            return stop_badly

    source = Stuck()
    store = ConfigStore(source, ChangeStrategy.WATCH)
    files = ObjectFiles(store, "configMap", plugin="projected", on_changed=lambda _uid: None)
    for name in ("a", "b"):
        files.use("n", name, "uid", "volume")
        files.read("n", name, optional=False)
    assert len(source.watchers) == 2
    files.leave("uid", "volume")
    assert (source.watchers, store._known) == ([], {})
    assert caplog.text.count("OSError: not now") == 2
