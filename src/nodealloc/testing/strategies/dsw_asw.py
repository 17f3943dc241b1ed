"""Hypothesis strategies for the engine: scopes, back-off, outcomes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from hypothesis import strategies as st

from nodealloc.dsw_asw import BackOff, Done, Failed, Outcome, Scope, Uncertain, UncertainError
from nodealloc.errors import RetryableError

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["back_offs", "outcomes", "scopes"]

R = TypeVar("R")


def scopes(*, max_depth: int = 3, names: str = "ab") -> SearchStrategy[Scope]:
    """Scopes that often touch each other."""
    return st.lists(st.sampled_from(names), min_size=1, max_size=max_depth).map(tuple)


def back_offs() -> SearchStrategy[BackOff]:
    """Any back-off, those that never wait included."""
    return st.builds(BackOff, initial_s=st.floats(0, 10), factor=st.floats(1, 4), max_s=st.floats(0, 1000))


def outcomes(results: SearchStrategy[R]) -> SearchStrategy[Outcome[R]]:
    """What may come of a step."""
    failed = st.sampled_from([OSError("no"), RetryableError("later")]).map(Failed[R])
    unknown = st.booleans().map(lambda running: Uncertain[R](UncertainError("timed out"), running))
    return st.one_of(results.map(Done[R]), failed, unknown)
