"""Nested scopes."""

from __future__ import annotations

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
