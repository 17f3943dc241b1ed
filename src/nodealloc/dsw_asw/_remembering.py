"""What a pass has to write down before it acts, and before anybody hears of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, TypeVar

from nodealloc import _attrs as attrs
from nodealloc.dsw_asw._ports import Journal
from nodealloc.dsw_asw._steps import Step

__all__ = ["Remember", "Rows", "commit_all", "remembering"]

K_contra = TypeVar("K_contra", bound=Hashable, contravariant=True)
H_contra = TypeVar("H_contra", contravariant=True)
Row = TypeVar("Row")


@attrs.frozen(kw_only=True)
class Remember(Generic[K_contra, H_contra, Row]):
    """How the records of an actual world outlive the process.

    Attributes:
        journal: Where rows are committed; reconcilers of one group that share it
            commit together, once a pass.
        rows: From a key and its record, None for a key that is gone, to the rows
            that change for it: name to value, None to forget one. Pure.
    """

    journal: Journal[Row]
    rows: Callable[[K_contra, H_contra | None], Mapping[str, Row | None]]


@attrs.frozen(eq=False)
class Rows:
    """What one reconciler has to write in this pass.

    Attributes:
        journal: Where.
        rows: Name to value; None forgets.
    """

    journal: Journal[object]
    rows: Mapping[str, object | None]


def commit_all(parts: Iterable[Rows], /) -> Mapping[int, Exception]:
    """Commit once for each journal; from the `id` of a journal that failed to its error."""
    merged: dict[int, tuple[Journal[object], dict[str, object | None]]] = {}
    for part in parts:
        merged.setdefault(id(part.journal), (part.journal, {}))[1].update(part.rows)
    failed: dict[int, Exception] = {}
    for name, (journal, rows) in merged.items():
        try:
            journal.commit(rows)
        except Exception as error:  # noqa: BLE001 - a full disk must not lose the other journals' rows
            failed[name] = error
    return failed


def remembering(key: Hashable, /) -> Step[object]:
    """What a fault of the journal is counted under."""
    return Step(scope=(key,), verb="remember", detail=None)
