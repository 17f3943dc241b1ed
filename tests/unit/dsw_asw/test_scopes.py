"""Nested scopes."""

from __future__ import annotations

import pytest

from nodealloc.dsw_asw import Step
from nodealloc.dsw_asw._scopes import Scopes


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
