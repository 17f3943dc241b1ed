"""The domain of verdicts: what was heard becomes what is remembered."""

from __future__ import annotations

from typing import TypeVar

from nodealloc.dsw_asw import Cancel, Near, Outcome, Plan, Step, View
from nodealloc.probes._asks import Heards, ProbedPod, stands
from nodealloc.probes._ports import ReportedPod
from nodealloc.probes._verdicts import PodVerdicts

__all__ = ["Verdicts"]

Seen = TypeVar("Seen", bound=ReportedPod)


class Verdicts:
    """Rules of the engine: a verdict is remembered before anybody is told. There is nothing to perform."""

    def __init__(self, reports: Near[str, str, Seen], heard: Near[str, str, Heards]) -> None:
        self._reports, self._heard = reports, heard

    def plan(self, view: View[str, ProbedPod, PodVerdicts, None], /) -> Plan[PodVerdicts, None]:
        """The verdicts that stand now; of a pod that nobody asks there is no record."""
        if view.want is None:
            return Plan(have=None)
        known = view.of(self._reports).get(view.key)
        heard = view.of(self._heard).get(view.key, {})
        after = stands(view.key, view.want, known, view.have, heard)
        return Plan(have=after if view.have is not None or after.by_container else None)

    def perform(self, step: Step[None], _cancel: Cancel, /) -> None:
        """There is nothing to do; raises `RuntimeError`."""
        raise RuntimeError(f"{step.verb}: verdicts are derived, and nothing is done for them")

    def settled(
        self, have: PodVerdicts | None, step: Step[None], outcome: Outcome[None], /
    ) -> PodVerdicts | None:
        """Never called either."""
        del step, outcome
        return have
