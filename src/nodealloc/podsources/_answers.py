"""What came of reading sources, and lines that tell of what could not be read."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from nodealloc import _attrs as attrs
from nodealloc._error_words import on_one_line
from nodealloc.dsw_asw import World
from nodealloc.podfacts import PodEvent
from nodealloc.podsources._ports import SourceFault

__all__ = ["FaultLines", "SourceAnswer"]

_log = logging.getLogger("nodealloc.podsources")


@attrs.frozen(kw_only=True)
class SourceAnswer:
    """What came of reading one source.

    Attributes:
        number: Of the hurry that was answered; a higher one is still to be.
        count: Answers so far.
        tried_s: When the last try ended, on the engine's clock.
        due_s: When it is read again.
        faults: What could not be read in the last answer.
        gone: Where faults were that went in the last answer with what had them, such as a file.
        events: Pods of the last answer that were refused.
        error: Why there was no answer at the last try; "" where there was one.
    """

    number: int = 0
    count: int = 0
    tried_s: float = 0.0
    due_s: float = 0.0
    faults: tuple[SourceFault, ...] = ()
    gone: tuple[str, ...] = ()
    events: tuple[PodEvent, ...] = ()
    error: str = ""


class FaultLines:
    """Tells what is wrong with sources, on the threads that read: when a fault appears, changes, and is gone.

    Args:
        answers: What came of reading each source.
        tell: Is told each line.
    """

    def __init__(self, answers: World[str, SourceAnswer], tell: Callable[[str], object], /) -> None:
        self._answers, self._tell = answers, tell
        self._told: dict[str, Mapping[str, str]] = {}
        self._lock = threading.Lock()
        self._changed = answers.watch(self._look)
        self._look()

    def _look(self) -> None:
        # Held while lines are told, so that none comes after one that is newer.
        with self._lock:
            for source in self._changed.take():
                answer = self._answers.get(source)
                before, now = self._told.get(source, {}), _faults(source, answer)
                self._told[source] = now
                gone = {on_one_line(where) for where in (() if answer is None else answer.gone)}
                over = {where: "it is gone" if where in gone else "no fault any more" for where in before}
                lines = [f"{where}: {what}" for where, what in now.items() if before.get(where) != what]
                lines += [f"{where}: {what}" for where, what in over.items() if where not in now]
                for line in lines:
                    try:
                        self._tell(line)
                    except Exception:  # noqa: BLE001 - whoever is told has a fault of its own
                        _log.exception("a fault of source %s could not be told: %s", source, line)


def _faults(source: str, answer: SourceAnswer | None) -> Mapping[str, str]:
    """What is wrong, by where."""
    if answer is None:
        return {}
    found: dict[str, list[str]] = {}
    for one in answer.faults:
        found.setdefault(one.where, []).append(one.what)
    for event in answer.events:
        named = f"{event.pod.namespace}/{event.pod.name} ({event.pod.uid}) of source {source}"
        found.setdefault(f"pod {named}", []).append(event.message)
    if answer.error:
        found[f"source {source}"] = [answer.error]
    return {
        on_one_line(where): on_one_line(" ".join("; ".join(what).split())) for where, what in found.items()
    }
