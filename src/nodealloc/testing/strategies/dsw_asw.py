"""Hypothesis strategies for the engine: scopes, back-off, outcomes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from hypothesis import strategies as st

from nodealloc.dsw_asw import BackOff, Cancelled, Done, Failed, Outcome, StepScope, Uncertain, UncertainError
from nodealloc.errors import RetryableError

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["back_offs", "outcomes", "scopes"]

R = TypeVar("R")


def scopes(*, max_depth: int = 3, names: str = "ab") -> SearchStrategy[StepScope]:
    """Scopes that often touch each other."""
    return st.lists(st.sampled_from(names), min_size=1, max_size=max_depth).map(tuple)


@st.composite
def back_offs(draw: st.DrawFn) -> BackOff:
    """Any back-off, those that never wait included."""
    initial_s = draw(st.floats(0, 10))
    return BackOff(initial_s=initial_s, factor=draw(st.floats(1, 4)), max_s=draw(st.floats(initial_s, 1000)))


def outcomes(results: SearchStrategy[R]) -> SearchStrategy[Outcome[R]]:
    """What may come of a step."""
    failed = st.sampled_from([OSError("no"), RetryableError("later")]).map(Failed[R])
    unknown = st.booleans().map(lambda running: Uncertain[R](UncertainError("timed out"), running))
    cancelled = st.builds(Cancelled, asked=st.booleans(), began_s=st.none() | st.floats(0, 10))
    return st.one_of(results.map(Done[R]), failed, unknown, cancelled)
