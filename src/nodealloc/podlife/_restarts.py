"""When a container that ended may start again: a policy, and what is remembered for it.

Source: kubelet ``kuberuntime_manager.go`` and client-go ``flowcontrol/backoff.go``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from nodealloc import _attrs as attrs
from nodealloc._arguments import within
from nodealloc._frozen import Frozen, freeze
from nodealloc._typed import typed, typed_fields, typed_methods
from nodealloc._units import duration_text
from nodealloc.errors import ConfigurationError
from nodealloc.podfacts import EventKind, Exited, PodEvent, PodIdentity
from nodealloc.podlife._plan import Held
from nodealloc.runtime import Exit

__all__ = [
    "ExitRule",
    "RestartAnswer",
    "RestartBackOff",
    "RestartEntry",
    "Restarts",
    "back_off_event",
    "back_off_held",
    "without_old_definitions",
]

_FACTOR: Final = 2.0


@typed_fields
@attrs.frozen(kw_only=True)
class ExitRule:
    """Another delay after some exits.

    Attributes:
        codes: Exit statuses, 0 to 255, at least one. An exit that nobody knows matches no rule.
        base_s: Delay after the first restart, in seconds.
        cap_s: Longest delay, in seconds; 0 starts at once, always.

    Raises:
        ConfigurationError: No codes, codes that no process has, or a cap below the base.
    """

    codes: frozenset[int]
    base_s: float = attrs.field(validator=within(0, finite=True))
    cap_s: float = attrs.field(validator=within(0))

    def __attrs_post_init__(self) -> None:
        if not self.codes or not all(0 <= one <= 255 for one in self.codes):
            raise ConfigurationError(
                f"ExitRule: codes {sorted(self.codes)}; name at least one exit status, each from 0 to 255"
            )
        _check_order("ExitRule", self.base_s, self.cap_s)


@typed_methods
@typed_fields
@attrs.frozen(kw_only=True)
class RestartBackOff:
    """How long a container that ended waits before it starts again.

    The first end starts it at once; each further one doubles the delay, counted
    from the end, or from when it is seen where it came while nobody looked: its own time is one of a
    wall clock, which may have been set since.

    Attributes:
        base_s: Delay after the first restart, in seconds.
        cap_s: Longest delay, in seconds.
        reset_after_s: A container that ended so long after its last start, in
            seconds, begins anew.
        factor: From one delay to the next; 1 or more.
        exits: Other delays after some exits; each exit status is in one rule at most.

    Raises:
        ConfigurationError: A cap below the base, or an exit status in two rules.

    Source: the kubelet's figures: 10 s, 5 min, 10 min.
    """

    base_s: float = attrs.field(default=10.0, validator=within(0, finite=True))
    cap_s: float = attrs.field(default=300.0, validator=within(0))
    reset_after_s: float = attrs.field(default=600.0, validator=within(0))
    factor: float = attrs.field(default=_FACTOR, validator=within(1))
    exits: tuple[ExitRule, ...] = ()

    def __attrs_post_init__(self) -> None:
        _check_order("RestartBackOff", self.base_s, self.cap_s)
        named = Counter(code for rule in self.exits for code in rule.codes)
        if twice := sorted(code for code, count in named.items() if count > 1):
            raise ConfigurationError(
                f"RestartBackOff.exits: exit status {twice[0]} is in two rules; name it in one"
            )

    def _bounds(self, exit: Exit | None) -> tuple[float, float]:  # noqa: A002 - the field's word
        if isinstance(exit, Exited):
            for rule in self.exits:
                if exit.code in rule.codes:
                    return rule.base_s, rule.cap_s
        return self.base_s, self.cap_s

    def after(self, entry: RestartEntry | None, ended_s: float, exit: Exit | None = None, /) -> float:  # noqa: A002
        """Seconds that the start after the next end waits.

        Args:
            entry: Of the last start; None for none.
            ended_s: When the instance ended that is followed now.
            exit: How it did; None where that is not told.
        """
        base_s, cap_s = self._bounds(exit)
        if entry is None or self.is_over(entry, ended_s):
            return base_s
        return min(max(entry.delay_s * self.factor, base_s), cap_s)

    def waits(self, entry: RestartEntry | None, ended_s: float, exit: Exit | None = None, /) -> float:  # noqa: A002
        """Seconds from an end to the start that follows; 0 for at once."""
        if entry is None or self.is_over(entry, ended_s):
            return 0.0
        return min(entry.delay_s, self._bounds(exit)[1]) if self.exits else entry.delay_s

    def is_over(self, entry: RestartEntry, ended_s: float, /) -> bool:
        """Whether an end is so long after a start that what was before does not count."""
        return ended_s - entry.started_s > self.reset_after_s


def _check_order(name: str, base_s: float, cap_s: float) -> None:
    if cap_s < base_s:
        raise ConfigurationError(
            f"{name}: cap_s {cap_s:g} is below base_s {base_s:g}; the longest delay is at least the first"
        )


@attrs.frozen(kw_only=True)
class RestartEntry:
    """What is remembered of a container's last start.

    Attributes:
        delay_s: Seconds that the start after its next end waits.
        started_s: When it was, on the caller's clock.
    """

    delay_s: float = attrs.field(validator=within(0))
    started_s: float


@attrs.frozen(kw_only=True)
class RestartAnswer:
    """Whether a container may start now.

    Attributes:
        restarts: What is to be remembered; with a start, the start is in it.
        held_until_s: When it may; None for now.
        delay_s: Delay in force for it now, in seconds.
    """

    restarts: Restarts
    held_until_s: float | None
    delay_s: float


@attrs.frozen(kw_only=True)
class Restarts:
    """Back-off of one pod's containers: a value, to be stored with the pod.

    Attributes:
        entries: By container name and definition; another definition begins anew.
    """

    entries: Mapping[tuple[str, str], RestartEntry] = attrs.field(
        factory=Frozen[tuple[str, str], RestartEntry], validator=freeze
    )

    def asked(
        self,
        name: str,
        definition: str,
        policy: RestartBackOff,
        /,
        *,
        ended_s: float | None,
        now_s: float,
        exit: Exit | None = None,  # noqa: A002 - the field's word
    ) -> RestartAnswer:
        """Whether a container may start, and what is remembered when it does.

        Args:
            name: Of the container.
            definition: Fingerprint of what it is made from.
            policy: The delays.
            ended_s: When its last instance ended; None where it has none.
            now_s: The present, on the same clock.
            exit: How that instance ended; None where it has none.
        """
        key = (name, definition)
        entry = self.entries.get(key)
        if ended_s is None:
            return RestartAnswer(restarts=self, held_until_s=None, delay_s=entry.delay_s if entry else 0.0)
        waits_s = policy.waits(entry, ended_s, exit)
        if entry is not None and now_s - ended_s < waits_s:
            return RestartAnswer(restarts=self, held_until_s=ended_s + waits_s, delay_s=entry.delay_s)
        delay_s = policy.after(entry, ended_s, exit)
        made = RestartEntry(delay_s=delay_s, started_s=now_s)
        restarts = Restarts(entries={**self.entries, key: made})
        return RestartAnswer(restarts=restarts, held_until_s=None, delay_s=delay_s)

    def forgotten(self, now_s: float, policy: RestartBackOff, /) -> Restarts:
        """Without entries of starts so long ago that they cannot count any more."""
        kept = {key: one for key, one in self.entries.items() if not policy.is_over(one, now_s)}
        return self if len(kept) == len(self.entries) else Restarts(entries=kept)

    @typed
    def poked(self, names: Iterable[str] = (), /) -> Restarts:
        """With nothing held back of these containers, of all where none is named: they start now."""
        wanted = set(names)
        kept = {key: one for key, one in self.entries.items() if wanted and key[0] not in wanted}
        return Restarts(entries=kept)


def without_old_definitions(
    restarts: Restarts, name: str, policy: RestartBackOff, /, *, now_s: float
) -> Restarts:
    """Without what a container was made from so long ago that no end of it can count; others keep theirs."""
    kept = {
        key: one for key, one in restarts.entries.items() if key[0] != name or not policy.is_over(one, now_s)
    }
    return restarts if len(kept) == len(restarts.entries) else Restarts(entries=kept)


def back_off_held(pod: PodIdentity, name: str, delay_s: float, until_s: float, /) -> Held:
    """What is told of a container that waits for its back-off."""
    message = f"back-off {duration_text(delay_s)} restarting failed container={name} pod={_pod_text(pod)}"
    return Held(until_s=until_s, reason="CrashLoopBackOff", message=message)


def back_off_event(pod: PodIdentity, name: str, /) -> PodEvent:
    """The event that goes with it."""
    return PodEvent(
        pod=pod,
        kind=EventKind.WARNING,
        reason="BackOff",
        message=f"Back-off restarting failed container {name} in pod {_pod_text(pod)}",
        container=name,
    )


def _pod_text(pod: PodIdentity) -> str:
    return f"{pod.name}_{pod.namespace}({pod.uid})"
