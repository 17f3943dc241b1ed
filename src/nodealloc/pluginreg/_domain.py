"""The rules: from sightings to registrations, a step at a time; `plan` is pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from nodealloc.dsw_asw import Done, Failed, Outcome, Step, Uncertain, World
from nodealloc.errors import NodeallocError, PermanentError
from nodealloc.pluginreg._introduction import check_introduction
from nodealloc.pluginreg._life import REGISTRATION_LIFE, RegistrationEvent, RegistrationState
from nodealloc.pluginreg._ports import PluginHandler, PluginInfo, Registration
from nodealloc.pluginreg._sightings import Sighting

__all__ = ["Errand", "Known", "Registrations"]

_SHOWN = 100
"""Characters of a plugin's own words that are repeated to it; it may say a megabyte."""
IDENTIFY, REGISTER, DEREGISTER, FORGET = "identify", "register", "deregister", "forget"


@attrs.frozen(kw_only=True)
class Known:
    """What is known of a socket's plugin.

    Attributes:
        generation: Of the sighting that this speaks of.
        state: How far it has come.
        info: How it introduced itself.
        since_s: When it came into this state, on the engine's clock.
        note: What went wrong without undoing the state, or "".
        is_stale: Whether its handler failed it since it said who it is; it is
            asked anew before the next try.
    """

    generation: int
    state: RegistrationState
    info: PluginInfo
    since_s: float = 0.0
    note: str = ""
    is_stale: bool = False


@attrs.frozen(kw_only=True)
class Errand:
    """What a step needs: the socket, and who is meant.

    Attributes:
        path: The socket.
        generation: Of the sighting that it is done for.
        info: The plugin; None while nobody has asked.
        is_stale: Whether to ask who is there once more before anything is done.
    """

    path: str
    generation: int
    info: PluginInfo | None = None
    is_stale: bool = False


@attrs.frozen(kw_only=True)
class Answer:
    """What a step brought back: who is there, or a note about what went wrong on the side."""

    info: PluginInfo | None = None
    note: str = ""


class Registrations:
    """A `Domain` of `nodealloc.dsw_asw`: sockets that were seen, plugins that are registered.

    Args:
        actual: Where outcomes are written.
        client: Talks to registration sockets.
        handlers: Type to handler; read at each step, so that one may be added.
        now_s: The engine's clock.
        identify_s: Deadline for finding out who is there.
        handle_s: Deadline for a handler; past it the registration is uncertain.
    """

    def __init__(
        self,
        actual: World[str, Known],
        client: Registration,
        handlers: Mapping[str, PluginHandler],
        *,
        now_s: Callable[[], float],
        identify_s: float = 20.0,
        handle_s: float = 60.0,
    ) -> None:
        self._actual = actual
        self._client = client
        self._handlers = handlers
        self._now_s = now_s
        self._identify_s = identify_s
        self._handle_s = handle_s

    def plan(self, key: str, desired: Sighting | None, actual: Known | None, /) -> Sequence[Step[Errand]]:
        """The next step: let go of what is not wanted, then ask who is there, then register.

        Steps for one plugin name share a scope, whatever socket they come from:
        its handler sees them one at a time. Source: kubelet
        ``pluginmanager/reconciler``, which orders by socket alone.
        """
        wanted = None if desired is None else desired.generation
        if actual is not None and actual.generation != wanted:
            verb = FORGET if actual.state is RegistrationState.IDENTIFIED else DEREGISTER
            return [self._handled(key, actual, verb, phase=0)]
        if desired is None:
            return []
        if actual is None:
            return [self._asked(key, desired.generation)]
        if actual.state is RegistrationState.IDENTIFIED:
            return [self._handled(key, actual, REGISTER, phase=2)]
        if actual.state is RegistrationState.UNCERTAIN:
            return [self._handled(key, actual, DEREGISTER, phase=0)]
        return []

    def perform(self, step: Step[Errand], /) -> Answer:
        """Talk to the plugin and to its handler."""
        errand = step.detail
        if step.verb == IDENTIFY:
            return Answer(info=self._client.info(errand.path))
        if errand.info is None or step.verb == FORGET:
            return Answer()
        handler = self._handlers.get(errand.info.type)
        if step.verb == DEREGISTER:
            if handler is not None:
                self._let_go(errand.path, errand.info, handler)
            return Answer()
        # Who failed once may have died since, and its socket file stays: nobody is taken by an old word.
        if errand.is_stale and (said := self._client.info(errand.path)) != errand.info:
            return Answer(info=said)
        try:
            self._take(errand.info, handler)
        except Exception as error:
            self._told(errand.path, str(error) or type(error).__name__)
            raise
        return Answer(note=self._told(errand.path, ""))

    def settle(self, step: Step[Errand], outcome: Outcome[Answer], /) -> None:
        """Write what came of it; a late end of an older sighting changes nothing."""
        errand = step.detail
        if isinstance(outcome, Done):
            if outcome.result.info is not None:
                self._met(errand, outcome.result.info)
            elif step.verb == REGISTER:
                self._moved(errand, RegistrationEvent.ACCEPTED, outcome.result.note)
            else:
                self._moved(errand, RegistrationEvent.WITHDRAWN)
        elif isinstance(outcome, Failed) and step.verb == REGISTER:
            self._doubted(errand)
        elif isinstance(outcome, Uncertain) and step.verb != IDENTIFY:
            self._moved(errand, RegistrationEvent.OVERDUE, str(outcome.error))

    def _take(self, info: PluginInfo, handler: PluginHandler | None) -> None:
        check_introduction(info)
        if handler is None:
            known = ", ".join(sorted(self._handlers)) or "none"
            raise PermanentError(
                f"plugin type {info.type[:_SHOWN]!r} has no handler here; there are: {known}"
            )
        handler.validate(info.name, info.endpoint, info.versions)
        handler.register(info.name, info.endpoint, info.versions)

    def _let_go(self, path: str, info: PluginInfo, handler: PluginHandler) -> None:
        """Deregister, unless another socket's plugin is registered by the same name and endpoint.

        The handler knows both as one, which stays as the other one says it is.
        Nobody comes between: steps for one name share a scope.
        """
        heirs = [
            record.value.info
            for other, record in sorted(self._actual.snapshot().items())
            if other != path
            and record.value.state is RegistrationState.REGISTERED
            and attrs.evolve(record.value.info, versions=info.versions) == info
        ]
        if not heirs:
            handler.deregister(info.name, info.endpoint)
        elif info not in heirs:
            self._take(heirs[0], handler)

    def _told(self, path: str, error: str) -> str:
        """Tell the plugin; what comes of that is a note and undoes nothing."""
        try:
            self._client.notify(path, error)
        except NodeallocError as failure:
            return f"could not be told: {failure}"
        return ""

    def _met(self, errand: Errand, info: PluginInfo) -> None:
        after = REGISTRATION_LIFE.after(RegistrationState.UNKNOWN, RegistrationEvent.ANSWERED)
        met = Known(generation=errand.generation, state=after, info=info, since_s=self._now_s())

        def changed(before: Known | None) -> Known:
            renewed = before is not None and before.generation == errand.generation and before.is_stale
            return met if before is None or renewed else before

        self._actual.alter(errand.path, changed, by=IDENTIFY)

    def _doubted(self, errand: Errand) -> None:
        """Its handler has failed it; what it said of itself may be old at the next try."""

        def changed(before: Known | None) -> Known | None:
            if before is None or before.generation != errand.generation or before.is_stale:
                return before
            return attrs.evolve(before, is_stale=True)

        self._actual.alter(errand.path, changed, by=REGISTER)

    def _moved(self, errand: Errand, event: RegistrationEvent, note: str = "") -> None:
        now_s = self._now_s()

        def changed(before: Known | None) -> Known | None:
            if before is None or before.generation != errand.generation:
                return before
            if not REGISTRATION_LIFE.takes(before.state, event):
                return before
            state = REGISTRATION_LIFE.after(before.state, event)
            if state is RegistrationState.UNKNOWN:
                return None
            return attrs.evolve(before, state=state, since_s=now_s, note=note, is_stale=False)

        self._actual.alter(errand.path, changed, by=event.value)

    def _asked(self, path: str, generation: int) -> Step[Errand]:
        return Step(
            scope=("socket", path),
            verb=IDENTIFY,
            detail=Errand(path=path, generation=generation),
            phase=1,
            deadline_s=self._identify_s,
            subject=generation,
        )

    def _handled(self, path: str, known: Known, verb: str, *, phase: int) -> Step[Errand]:
        return Step(
            scope=("plugin", known.info.type, known.info.name),
            verb=verb,
            detail=Errand(path=path, generation=known.generation, info=known.info, is_stale=known.is_stale),
            phase=phase,
            deadline_s=self._handle_s,
            subject=(path, known.generation),
        )
