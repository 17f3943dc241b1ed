"""Where pods come from besides `put`: what sources say, and what only the runtime knows."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Protocol

from nodealloc.dsw_asw import Cancel, Done, Near, Outcome, Plan, Step, View
from nodealloc.podlife._rules import RIGHT, Rules
from nodealloc.podlife._wanted import PodWanted
from nodealloc.podsources import PodSources
from nodealloc.podspec import Pod, is_mirror
from nodealloc.runtime import PodListing

__all__ = ["Following", "Orphans", "Taking"]

_log = logging.getLogger("nodealloc.podlife")


class Taking(Protocol):
    """Takes pods as their sources say them."""

    def put(self, pod: Pod, /) -> None:
        """It is to be here."""
        ...

    def remove(self, uid: str, /) -> bool:
        """No source has it any more."""
        ...

    def heard(self) -> None:
        """Every source was heard."""
        ...

    def is_ending(self, uid: str, /) -> bool:
        """Whether a pod has to end, or has ended."""
        ...


class Following:
    """Tells on what changes in sources, on the thread that changed it, and tells them which pods have ended.

    Args:
        sources: Where pods come from; mirror pods only stand for others, and are left out.
        taking: Is told.
    """

    def __init__(self, sources: PodSources, taking: Taking) -> None:
        self._sources, self._taking = sources, taking
        self._lock = threading.Lock()
        self._was_ready = False
        self._due: dict[str, None] = {}
        sources.learn_ends(taking.is_ending)
        self._pods = sources.pods.watch(self._changed)
        self._answers = sources.answers.watch(self._answered)
        self._changed()

    def close(self) -> None:
        """Follow no longer."""
        self._pods.close()
        self._answers.close()

    def _changed(self) -> None:
        # One at a time, so that what was said first is told first.
        with self._lock:
            self._due.update(dict.fromkeys(self._pods.take()))
            for uid in tuple(self._due):
                try:
                    self._tell(uid)
                    del self._due[uid]
                except Exception:  # noqa: BLE001 - nobody else tells of the other pods
                    _log.exception("telling of pod %s raised; it is told with a source's next answer", uid)
        self._hear()

    def _tell(self, uid: str) -> None:
        pod = self._sources.pods.get(uid)
        if pod is None:
            self._taking.remove(uid)
        elif not is_mirror(pod):
            self._taking.put(pod)

    def _answered(self) -> None:
        if self._due:
            self._changed()
        else:
            self._hear()

    def _hear(self) -> None:
        """Of whom is not told yet would count as a pod that no source has, and end."""
        if not self._was_ready and not self._due and self._sources.is_ready():
            self._was_ready = True
            self._taking.heard()


class Orphans:
    """A `Domain`: pods that the runtime has and nobody wants are taken up, so that they end.

    Args:
        adopt: Takes one up.
        wanted: Who is wanted.
        heard: Whether every source was heard; nothing is done before.
        rules: `clears_away`: one of which nothing runs is taken up as well.
    """

    def __init__(
        self,
        adopt: Callable[[PodListing], None],
        wanted: Near[str, str, PodWanted],
        heard: Near[str, str, int],
        rules: Rules = RIGHT,
    ) -> None:
        self._adopt, self._wanted, self._heard, self._rules = adopt, wanted, heard, rules

    def plan(self, view: View[str, PodListing, bool, PodListing], /) -> Plan[bool, PodListing]:
        """Take up what is listed and not wanted."""
        listing = view.want
        if listing is None:
            return Plan(have=None)
        if view.of(self._wanted) or not view.of(self._heard):
            return Plan()
        if not self._rules.clears_away and not _lives(listing):
            return Plan()
        step = Step(scope=("orphan", view.key), verb="take up", detail=listing, may_change_nothing=True)
        return Plan(steps=[step])

    def perform(self, step: Step[PodListing], _cancel: Cancel, /) -> None:
        """Take it up."""
        self._adopt(step.detail)

    def settled(self, have: bool | None, _step: Step[PodListing], outcome: Outcome[None], /) -> bool | None:
        """It was taken up once."""
        return True if isinstance(outcome, Done) else have


def _lives(listing: PodListing) -> bool:
    """Whether anything of a pod runs, or may."""
    return any(one.is_ready for one in listing.sandboxes) or any(
        one.state.may_run for one in listing.containers
    )
