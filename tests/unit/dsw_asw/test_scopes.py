"""Nested scopes."""

from __future__ import annotations

import itertools

import pytest

from nodealloc.dsw_asw import Step, StepScope
from nodealloc.dsw_asw._scopes import Blocked, Scopes, touch


def test_a_scope_excludes_what_is_around_and_inside_it() -> None:
    """A volume excludes its pods; two pods of it do not exclude each other."""
    scopes = Scopes()
    assert scopes.take(("volume", "pod-1"))
    assert scopes.take(("volume", "pod-2"))
    assert not scopes.take(("volume",))
    assert not scopes.take(("volume", "pod-1", "file"))
    assert scopes.take(("other",))
    scopes.release(("volume", "pod-1"))
    assert not scopes.take(("volume",))
    scopes.release(("volume", "pod-2"))
    scopes.release(("volume", "pod-2"))
    assert scopes.take(("volume",))
    assert not scopes.is_free(("volume", "pod-1"))
    assert len(scopes) == 2


def test_an_end_calls_who_waits_for_its_scope_and_nobody_else() -> None:
    """Around it, the same, inside it; once each, and nothing of those that started is kept."""
    parts = ("pod", "a", "b")
    scopes: list[StepScope] = [one for size in (1, 2, 3) for one in itertools.product(parts, repeat=size)]
    for opened in scopes:
        blocked = Blocked[StepScope]()
        for one in scopes:
            blocked.add(one, one)
        called = blocked.opened(opened)
        assert len(called) == len(set(called))
        assert set(called) == {one for one in scopes if touch(one, opened)}
        for one in scopes:
            blocked.started(one, one)
        assert not blocked.opened(opened)
        assert not blocked.after(scopes, lambda _: True)
        assert not len(blocked)


def test_of_those_who_wait_for_one_scope_the_first_is_called() -> None:
    """It keeps its place until it starts; where it does not want the scope any more, the next is called."""
    blocked = Blocked[str]()
    for key in ("first", "second", "third"):
        blocked.add(("disk",), key)
    assert blocked.opened(("disk",)) == ["first"]
    assert blocked.after({"somebody"}, lambda _: True) == []
    assert blocked.after({"first"}, lambda _: False) == []  # another one was quicker
    blocked.add(("disk",), "first")
    assert blocked.opened(("disk",)) == ["first"]
    blocked.started(("disk",), "first")
    assert blocked.after({"first"}, lambda _: False) == []
    assert blocked.opened(("disk",)) == ["second"]
    assert blocked.after({"second"}, lambda _: True) == ["third"]
    assert blocked.after({"third"}, lambda _: True) == []
    assert not len(blocked)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"scope": ()}, "a tuple of one part or more"),
        ({"scope": "volume"}, "a tuple of one part or more"),
        ({"deadline_s": 0.0}, "seconds beyond 0"),
        ({"deadline_s": float("nan")}, "seconds beyond 0"),
        ({"phase": "high"}, "a whole number"),
    ],
)
def test_a_step_that_makes_no_sense_is_refused(options: dict[str, object], says: str) -> None:
    """When it is made, with what would be right."""
    with pytest.raises(ValueError, match=says):
        Step(**{"scope": ("volume",), "verb": "mount", "detail": None, **options})  # type: ignore[arg-type]
