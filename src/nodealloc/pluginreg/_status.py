"""Values only: how every socket is doing, for people."""

from __future__ import annotations

from collections.abc import Sequence

from nodealloc import _attrs as attrs
from nodealloc._error_words import error_words
from nodealloc.dsw_asw import Failure
from nodealloc.pluginreg._domain import Known
from nodealloc.pluginreg._life import RegistrationState
from nodealloc.pluginreg._sightings import Sighting

__all__ = ["RegistrationStatus", "left_out_at", "status_of"]

_SHOWN = 100
"""Characters of a plugin's own words that are shown; it may say a megabyte."""


@attrs.frozen(kw_only=True)
class RegistrationStatus:
    """One socket and its plugin.

    Attributes:
        path: The socket.
        seen: Whether it is there now.
        generation: Of the sighting; of the registered one when it is gone.
        state: How far it has come.
        type: As the plugin says, or "".
        name: As the plugin says, or "".
        endpoint: Where the plugin listens, or "".
        versions: As the plugin says.
        for_s: Seconds in this state; None while nobody has answered.
        error: What went wrong last, or "".
        tries: How often in a row.
    """

    path: str
    seen: bool
    generation: int
    state: RegistrationState
    type: str = ""
    name: str = ""
    endpoint: str = ""
    versions: tuple[str, ...] = ()
    for_s: float | None = None
    error: str = ""
    tries: int = 0

    def __str__(self) -> str:
        """One line: what it is, how far it has come, what is wrong."""
        who = "nobody has answered"
        if self.state is not RegistrationState.UNKNOWN:
            who = f"{self.type[:_SHOWN] or 'no type'} {self.name[:_SHOWN] or 'without name'}"
        age = "" if self.for_s is None else f" for {self.for_s:.0f} s"
        wrong = (
            f"; {self.error} ({self.tries} tries)" if self.tries else f"; {self.error}" if self.error else ""
        )
        return f"{self.path}: {who}, {self.state.value}{age}{wrong}"


def status_of(
    path: str,
    sighting: Sighting | None,
    known: Known | None,
    failures: Sequence[Failure],
    /,
    *,
    now_s: float,
) -> RegistrationStatus:
    """The view of one socket from its two records and its failures."""
    last = failures[-1] if failures else None
    error = "" if last is None else error_words(last.error)
    if known is None:
        return RegistrationStatus(
            path=path,
            seen=sighting is not None,
            generation=0 if sighting is None else sighting.generation,
            state=RegistrationState.UNKNOWN,
            error=error,
            tries=0 if last is None else last.tries,
        )
    return RegistrationStatus(
        path=path,
        seen=sighting is not None,
        generation=known.generation,
        state=known.state,
        type=known.info.type,
        name=known.info.name,
        endpoint=known.info.endpoint,
        versions=known.info.versions,
        for_s=now_s - known.since_s,
        error=error or known.note,
        tries=0 if last is None else last.tries,
    )


def left_out_at(path: str, most: int, /) -> RegistrationStatus:
    """The view of a socket that nobody looks after, for there are too many."""
    return RegistrationStatus(
        path=path,
        seen=True,
        generation=0,
        state=RegistrationState.UNKNOWN,
        error=f"left out: {most} sockets are looked after at most; remove those of dead plugins",
    )
