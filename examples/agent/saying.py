"""What the agent says by itself, line by line, beside what it tells of pods."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Final

import attrs

from nodealloc.dsw_asw import Cancel, Failure, World
from nodealloc.podfacts import LifeState, PodEvent
from nodealloc.podlife import HookCall, HookRunner, PodFacts
from nodealloc.runtime import PodKnown, RuntimeWatch

__all__ = ["ProbeEvents", "SaidHooks", "Waits", "say_outages"]

_TRIES: Final = re.compile(r" \(\d+ tr(y|ies)\)")
"""Counted by a step that fails again and again."""
_IDS: Final = re.compile(r"[0-9a-f]{32,}")
"""Of containers that a runtime made and threw away again."""
_REST_S: Final = 60.0
"""What comes of a probe again within this time repeats."""


def say_outages(watch: RuntimeWatch, say: Callable[[str], object]) -> None:
    """Say that the runtime does not answer, and why, when that begins or changes; and when it is over."""
    lock, told = threading.Lock(), ""

    def look() -> None:
        nonlocal told
        with lock:
            changes.take()
            error = watch.heard().error
            if error == told:
                return
            told = error
            after = "it is asked again until it answers; start it, or name another containerRuntimeEndpoint"
            say(f"runtime: {error}; {after}" if error else "runtime: it answers again")

    changes = watch.answers.watch(look)


class Waits:
    """Says what pods wait for, such as a volume that cannot be mounted, and which of their steps fail.

    Only what lasts for two looks, and what failed twice, since most pods wait a moment as they start or
    end. What their status tells, as of images and containers that cannot be had, is not said once more.

    Args:
        facts: Of pods.
        failures: From a uid to the steps that failed.
        say: Is told each line.
        watched: What is known of each pod's containers: what ended is not started again before that is.
    """

    def __init__(
        self,
        facts: World[str, PodFacts],
        failures: Callable[[str], Iterable[Failure]],
        say: Callable[[str], object],
        watched: World[str, PodKnown] | None = None,
    ) -> None:
        self._facts, self._failures, self._say, self._watched = facts, failures, say, watched
        self._seen: Container[tuple[str, str]] = ()
        self._said: dict[tuple[str, str], str] = {}

    def look(self, _turn: int = 0, /) -> None:
        """Look once."""
        facts = {uid: one.value for uid, one in self._facts.snapshot().items()}
        found = {(uid, kind): text for uid, one in facts.items() for kind, text in self._reasons(uid, one)}
        for key, text in found.items():
            if key in self._seen and _IDS.sub("", self._said.get(key, "")) != _IDS.sub("", text):
                self._said[key] = text
                self._say(f"pod {_name(facts[key[0]])} {text}")
        over = [key for key in self._said if key not in found]
        for key in over:
            del self._said[key]
        going_on = {uid for uid, _ in over} - {uid for uid, _ in self._said}
        for uid in sorted(going_on & facts.keys()):
            if facts[uid].life is LifeState.SYNCING:
                self._say(f"pod {_name(facts[uid])} goes on")
        self._seen = found.keys()

    def _reasons(self, uid: str, one: PodFacts) -> Iterator[tuple[str, str]]:
        if one.waits_for is not None:
            words = _TRIES.sub("", one.waits_for.message)
            yield one.waits_for.blocker, f"waits for {one.waits_for.blocker}: {words}"
        known = None if self._watched is None else self._watched.get(uid)
        if known is not None and known.fault:
            yield "", f"is left as it is while the runtime does not say how it is: {known.fault}"
        for failure in self._failures(uid):
            # What is not made ready yet is waited for, and of what is not started its status tells.
            is_told = failure.scope[2:] == ("parts",) or failure.verb in {"pull", "make", "start"}
            if failure.tries > 1 and not is_told:
                words = _TRIES.sub("", str(failure))
                yield failure.verb, f"cannot {words.replace('tell:', 'tell its status:', 1)}"


def _name(one: PodFacts) -> str:
    return f"{one.pod.namespace}/{one.pod.name}"


@attrs.frozen
class SaidHooks:
    """Hooks; those that fail are said: a status tells of a container that does not start, and not for long.

    Attributes:
        hooks: Runs them.
        say: Is told each line.
    """

    hooks: HookRunner
    say: Callable[[str], object]

    def run_hook(self, call: HookCall, cancel: Cancel, /) -> str:
        """See `HookRunner.run_hook`."""
        why = self.hooks.run_hook(call, cancel)
        if why:
            lifecycle = call.container.lifecycle
            is_post = lifecycle is not None and call.handler is lifecycle.post_start
            hook, then = ("post-start", ", so that it is stopped") if is_post else ("pre-stop", "")
            pod = f"{call.pod.namespace}/{call.pod.name}"
            self.say(f"pod {pod}: the {hook} hook of {call.container.name} failed{then}: {_line(why)}")
        return why


class ProbeEvents:
    """Says what comes of probes that do not pass, why a container is not ready or is started again.

    What repeats is said once, and once more when it comes back.

    Args:
        say: Is told each line.
        now_s: The time.
    """

    def __init__(self, say: Callable[[str], object], *, now_s: Callable[[], float] = time.monotonic) -> None:
        self._say, self._now_s = say, now_s
        self._last_s: dict[tuple[str, str | None, str], float] = {}

    def told(self, event: PodEvent) -> None:
        """Say it, unless it was said of this container a moment ago."""
        now_s = self._now_s()
        self._last_s = {key: at_s for key, at_s in self._last_s.items() if now_s - at_s <= _REST_S}
        what = _line(event.message)
        key = (event.pod.uid, event.container, _IDS.sub("", what))
        if key not in self._last_s:
            self._say(f"pod {event.pod.namespace}/{event.pod.name}: {event.container}: {what}")
        self._last_s[key] = now_s


def _line(text: str) -> str:
    return " ".join(text.split())
