"""A domain of one's own, remembered, that looks at another world, reconciled without threads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_type

import attrs

from nodealloc.dsw_asw import (
    Cancel,
    Cancelled,
    Domain,
    Done,
    Driven,
    Failed,
    Group,
    InlineExecutor,
    Near,
    Outcome,
    Plan,
    Reconciler,
    Remember,
    Running,
    Step,
    Summary,
    Uncertain,
    View,
    World,
)


@attrs.frozen
class Files:
    """Names to contents; a `Domain`. A file is written once its folder is there."""

    folders: Near[str, str, bool]

    def plan(self, view: View[str, str, str, str], /) -> Plan[str, str]:
        """One write where the two differ."""
        assert_type(view.want, str | None)
        assert_type(view.running, tuple[Running[str], ...])
        assert_type(view.of(self.folders), Mapping[str, bool])
        if view.want == view.have or not view.of(self.folders):
            return Plan()
        step = Step(scope=(view.key,), verb="write", detail=view.want or "")
        return Plan(steps=[step], again_at_s=view.now_s + 60.0)

    def perform(self, step: Step[str], cancel: Cancel, /) -> str | Failed[str] | Uncertain[str]:
        """Nothing slow."""
        assert_type(cancel.is_set(), bool)
        return step.detail

    def settled(self, have: str | None, step: Step[str], outcome: Outcome[str], /) -> str | None:
        """What was written is there."""
        match outcome:
            case Done():
                assert_type(outcome.result, str)
                return outcome.result
            case Failed() | Uncertain():
                assert_type(outcome.known, str | None)
                return have
            case Cancelled():
                assert_type(outcome.began_s, float | None)
                return have


class Rows:
    """A journal in memory."""

    def __init__(self) -> None:
        self.rows: dict[str, str | None] = {}

    def commit(self, changes: Mapping[str, str | None], /) -> None:
        """All at once."""
        self.rows.update(changes)


def rows(name: str, content: str | None) -> Mapping[str, str | None]:
    """One row a file."""
    return {name: content}


desired, actual, folders = World[str, str]("desired"), World[str, str]("actual"), World[str, bool]("folders")
near: Near[str, str, bool] = Near(folders, lambda name: [name.rpartition("/")[0]])
files: Domain[str, str, str, str, str] = Files(near)
journal = Rows()
reconciler = Reconciler(
    files,
    desired=desired,
    actual=actual,
    executor=InlineExecutor(),
    near=[near],
    remember=Remember[str, str, str](journal=journal, rows=rows),
)
driven: Driven = Group(reconciler)
desired.put("etc/motd", "hello")
assert_type(driven.run_until_quiet(), Summary)
assert actual.get("etc/motd") is None
assert_type(folders.replace({"etc": True}, since=folders.generation), tuple[str, ...])
assert_type(driven.run_until_quiet(), Summary)
record = actual.get("etc/motd")
assert record is not None
assert journal.rows == {"etc/motd": "hello"}


class Counted:
    """Counts looks: its steps need nothing, and bring nothing."""

    def plan(self, view: View[str, int, int, None], /) -> Plan[int, None]:
        """Once for each time that somebody wants."""
        steps = [Step(scope=(view.key,), verb="look", detail=None)] if view.want != view.have else []
        return Plan(steps=steps)

    def perform(self, step: Step[None], _cancel: Cancel, /) -> None:
        """Nothing to bring."""

    def settled(self, have: int | None, _step: Step[None], _outcome: Outcome[None], /) -> int | None:
        """Once more."""
        return (have or 0) + 1


counted: Domain[str, int, int] = Counted()
counts: Reconciler[str, int, int] = Reconciler(
    counted,
    desired=World[str, int]("looks wanted"),
    actual=World[str, int]("looks made"),
    executor=InlineExecutor(),
)
assert_type(counts, Reconciler[str, int, int, None, None])
