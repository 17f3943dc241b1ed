"""The one port that several packages call: which pods are on this node."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from nodealloc.podfacts._life import PodSighting

__all__ = ["PodSource"]


class PodSource(Protocol):
    """The pods of this node; quick, from memory. Called from any thread."""

    def uids(self) -> Iterable[str]:
        """Every pod that is known."""
        ...

    def get(self, uid: str, /) -> PodSighting | None:
        """A pod; None promises that it has ended, once the source is ready."""
        ...

    def is_ready(self) -> bool:
        """Whether every pod of this node is known by now; until then nothing is taken away."""
        ...
