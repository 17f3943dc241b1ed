"""What is kept of pods: worlds by uid, which several engines read and write."""

from __future__ import annotations

from typing import Final

from nodealloc import _attrs as attrs
from nodealloc.dsw_asw import World
from nodealloc.podfacts import LifeState
from nodealloc.podlife._facts import PodFacts
from nodealloc.podlife._record import PodRecord
from nodealloc.podlife._wanted import PodWanted
from nodealloc.podspec import is_static

__all__ = ["HEARD", "Worlds"]

HEARD: Final = "sources"
"""The one key of `Worlds.heard`."""


@attrs.frozen(kw_only=True, eq=False)
class Worlds:
    """What `PodLives` keeps of its pods.

    Attributes:
        wanted: What was said of each.
        pods: What is remembered of each.
        facts: What others need to know of each.
        lines: Full name to the static pods that want it, the one that has it first.
        heard: Whether every source was heard.
    """

    wanted: World[str, PodWanted] = attrs.field(factory=lambda: World("wanted pods"))
    pods: World[str, PodRecord] = attrs.field(factory=lambda: World("pods"))
    facts: World[str, PodFacts] = attrs.field(factory=lambda: World("facts of pods"))
    lines: World[str, tuple[str, ...]] = attrs.field(factory=lambda: World("names of static pods"))
    heard: World[str, int] = attrs.field(factory=lambda: World("heard"))

    def names_of(self, uid: str, /) -> tuple[str, ...]:
        """The name that a static pod waits for, or has."""
        want = self.wanted.get(uid)
        return (want.pod.full_name,) if want is not None and is_static(want.pod) else ()

    def line_up(self, uid: str, full_name: str, /) -> None:
        """A static pod wants a name: behind those that wanted it before, unless it has finished."""
        record = self.pods.get(uid)
        if record is not None and record.life is LifeState.FINISHED:
            return
        self.lines.alter(
            full_name, lambda line: line if uid in (line or ()) else (*(line or ()), uid), by="put"
        )
