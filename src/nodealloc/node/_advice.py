"""Admissions that an advisor is asked about before they are final, such as which devices a plugin prefers."""

from __future__ import annotations

from typing import Final

import attrs

from nodealloc.node._admission import NodeAdmission
from nodealloc.node._asked import Asked
from nodealloc.node._decisions import Decisions, Verdict
from nodealloc.node._holdings import Change, Held, Holdings
from nodealloc.node._ports import Advisor
from nodealloc.topology import Placed, Snapshot

__all__ = ["Advice"]

_ROUNDS: Final = 8
"""Questions that answers lead to are asked in turn, so often at the most."""


class Advice:
    """Admits, and has an advisor asked about what is new in that; it is asked while nobody is kept out.

    Args:
        admission: Whether somebody may come in.
        decisions: What a verdict changes.
        holdings: What is held; changed here.

    Attributes:
        advisor: Who is asked; None for nobody.
    """

    def __init__(self, admission: NodeAdmission, decisions: Decisions, holdings: Holdings) -> None:
        self._admission = admission
        self._decisions = decisions
        self._holdings = holdings
        self.advisor: Advisor | None = None

    def admit(self, asked: Asked, /) -> Verdict:
        """Whether it may come in; remembered when it may.

        Raises:
            ProviderError: An allocator raised, or answered with nonsense.
            RetryableError: The store could not be written; nothing changed.
        """
        for _ in range(_ROUNDS if self.advisor else 0):
            answer = self._holdings.settle(
                lambda held: self._advised(held, asked), lambda held: self._unadvised(held, asked)
            )
            if answer is not None:
                return answer
        return self._holdings.settle(lambda held: self._unadvised(held, asked))

    def _advised(self, held: Held, asked: Asked) -> tuple[Verdict | None, Change | None]:
        """The answer, or None where the advisor said something that was not known: decide again."""
        verdict = self._admission.admitted(held, asked)
        if isinstance(verdict, Placed) and not verdict.repeated and self._has_news(verdict.snapshot):
            return None, None
        return self._settled(held, asked, verdict)

    def _has_news(self, snapshot: Snapshot) -> bool:
        return self.advisor is not None and self.advisor.ask(snapshot)

    def _unadvised(self, held: Held, asked: Asked) -> tuple[Verdict, Change | None]:
        """The same with what the advisor has said so far; waits for nobody."""
        return self._settled(held, asked, self._admission.admitted(held, asked))

    def _settled(self, held: Held, asked: Asked, verdict: Verdict) -> tuple[Verdict, Change | None]:
        if self.advisor is not None and isinstance(verdict, Placed) and not verdict.repeated:
            verdict = attrs.evolve(verdict, snapshot=self.advisor.settled(verdict.snapshot))
        return self._decisions.placed(held, asked, verdict)
