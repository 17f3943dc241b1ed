"""A domain of one's own, reconciled without threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_type

import attrs

from nodealloc.dsw_asw import Domain, Done, InlineExecutor, Outcome, Reconciler, Step, Summary, World


@attrs.define
class Files:
    """Names to contents; a `Domain`."""

    actual: World[str, str]

    def plan(self, key: str, desired: str | None, actual: str | None, /) -> Sequence[Step[str]]:
        """One write where the two differ."""
        return [] if desired == actual else [Step(scope=(key,), verb="write", detail=desired or "")]

    def perform(self, step: Step[str], /) -> str:
        """Nothing slow."""
        return step.detail

    def settle(self, step: Step[str], outcome: Outcome[str], /) -> None:
        """What was written is there."""
        if isinstance(outcome, Done):
            assert_type(outcome.result, str)
            self.actual.put(str(step.scope[0]), outcome.result)


desired, actual = World[str, str]("desired"), World[str, str]("actual")
files: Domain[str, str, str, str, str] = Files(actual)
reconciler = Reconciler(files, desired=desired, actual=actual, executor=InlineExecutor())
desired.put("motd", "hello")
assert_type(reconciler.run_until_quiet(), Summary)
record = actual.get("motd")
assert record is not None
