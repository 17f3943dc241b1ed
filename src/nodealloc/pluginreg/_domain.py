"""The rules: from sightings to registrations, a step at a time; `plan` is pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future

from nodealloc import _attrs as attrs
from nodealloc._error_words import error_words
from nodealloc._futures import then
from nodealloc._typed import typed
from nodealloc.dsw_asw import Cancel, Done, Executor, Failed, Outcome, Plan, Step, Uncertain, View, World
from nodealloc.errors import NodeallocError, PermanentError
from nodealloc.pluginreg._life import REGISTRATION_LIFE, RegistrationEvent, RegistrationState
from nodealloc.pluginreg._plugin_info import check_plugin_info
from nodealloc.pluginreg._ports import AsyncRegistration, PluginHandler, PluginInfo, Registration
from nodealloc.pluginreg._sightings import Sighting

__all__ = ["Known", "Registrations", "Task"]

_SHOWN = 100
"""Characters of a plugin's own words that are repeated to it; it may say a megabyte."""
IDENTIFY, REGISTER, DEREGISTER = "identify", "register", "deregister"


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
class Task:
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
class Result:
    """What a step brought back: who is there, or a note about what went wrong on the side."""

    info: PluginInfo | None = None
    note: str = ""


class Registrations:
    """A `Domain` of `nodealloc.dsw_asw`: sockets that were seen, plugins that are registered.

    Args:
        actual: What is registered from other sockets; read, never written.
        client: Talks to registration sockets.
        handlers: Type to handler; read at each step, so that one may be added.
        identify_s: Deadline for finding out who is there.
        handle_s: Deadline for a handler; past it the registration is uncertain.
        executor: Where handlers go on after an `AsyncRegistration` has answered; None
            to have such a call wait for the answer.
    """

    @typed
    def __init__(
        self,
        actual: World[str, Known],
        client: Registration,
        handlers: Mapping[str, PluginHandler],
        *,
        identify_s: float = 20.0,
        handle_s: float = 60.0,
        executor: Executor | None = None,
    ) -> None:
        self._executor = executor
        self._actual = actual
        self._client = client
        self._handlers = handlers
        self._identify_s = identify_s
        self._handle_s = handle_s

    def plan(self, view: View[str, Sighting, Known, Task], /) -> Plan[Known, Task]:
        """The next step: let go of what is not wanted, then ask who is there, then register.

        Steps for one plugin name share a scope, whatever socket they come from:
        its handler sees them one at a time. Source: kubelet
        ``pluginmanager/reconciler``, which orders by socket alone. Asking who is
        there comes last: a crowd that never answers is asked again and again, and
        whoever has answered does not wait behind it.
        """
        path, desired, actual = view.key, view.want, view.have
        wanted = None if desired is None else desired.generation
        if actual is not None and actual.generation != wanted:
            if actual.state is not RegistrationState.IDENTIFIED:
                return Plan(steps=[self._handled(path, actual, DEREGISTER, phase=0)])
            # No handler has it, unless one is just taking it: that has to be let go afterwards.
            return Plan() if view.running else Plan(have=None)
        if desired is None:
            return Plan()
        if actual is None:
            return Plan(steps=[self._asked(path, desired.generation)])
        if actual.state is RegistrationState.IDENTIFIED:
            return Plan(steps=[self._handled(path, actual, REGISTER, phase=1)])
        if actual.state is RegistrationState.UNCERTAIN:
            return Plan(steps=[self._handled(path, actual, DEREGISTER, phase=0)])
        return Plan()

    def perform(self, step: Step[Task], _cancel: Cancel, /) -> Result | Future[Result]:
        """Talk to the plugin and to its handler."""
        task = step.detail
        if step.verb == IDENTIFY:
            if isinstance(self._client, AsyncRegistration):
                return then(self._client.info_later(task.path), lambda asked: Result(info=asked.result()))
            return Result(info=self._client.info(task.path))
        if task.info is None:
            return Result()
        handler = self._handlers.get(task.info.type)
        if step.verb == DEREGISTER:
            if handler is not None:
                self._let_go(task.path, task.info, handler)
            return Result()
        # Who failed once may have died since, and its socket file stays: nobody is taken by an old word.
        if task.is_stale and isinstance(self._client, AsyncRegistration) and self._executor is not None:
            submit = self._executor.submit
            asked = self._client.info_later(task.path)
            return then(asked, lambda said: _flat(submit(self._register, task, said.result())))
        return self._register(task, self._client.info(task.path) if task.is_stale else task.info)

    def _register(self, task: Task, said: PluginInfo) -> Result | Future[Result]:
        """Have its handler take a plugin that is still who it was, and tell it so."""
        if said != task.info:
            return Result(info=said)
        try:
            self._take(said, self._handlers.get(said.type))
        except Exception as error:  # noqa: BLE001 - a handler's trouble is told, and raised after that
            return self._tell(task.path, error_words(error), error)
        return self._tell(task.path, "", None)

    def settled(self, have: Known | None, step: Step[Task], outcome: Outcome[Result], /) -> Known | None:
        """What is known after a step; a late end of an older sighting changes nothing."""
        task = step.detail
        match outcome:
            case Done(result=Result(info=PluginInfo() as info)):
                return _met(have, task, info, outcome.ended_s)
            case Done(result=answer) if step.verb == REGISTER:
                return _moved(have, task, RegistrationEvent.ACCEPTED, outcome.ended_s, answer.note)
            case Done():
                return _moved(have, task, RegistrationEvent.WITHDRAWN, outcome.ended_s)
            case Failed() if step.verb == REGISTER:
                return _doubted(have, task)
            case Uncertain() if step.verb != IDENTIFY:
                error = str(outcome.error)
                return _moved(have, task, RegistrationEvent.OVERDUE, outcome.ended_s, error)
            case _:
                return have

    def _take(self, info: PluginInfo, handler: PluginHandler | None) -> None:
        check_plugin_info(info)
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

    def _tell(self, path: str, words: str, error: Exception | None) -> Result | Future[Result]:
        """Tell the plugin what became of it, which undoes nothing when it fails; raise the error, if any."""

        def after(telling: Callable[[], None]) -> Result:
            note = ""
            try:
                telling()
            except NodeallocError as failure:
                note = f"could not be told: {failure}"
            if error is not None:
                raise error
            return Result(note=note)

        if isinstance(self._client, AsyncRegistration):
            return then(self._client.notify_later(path, words), lambda told: after(told.result))
        return after(lambda: self._client.notify(path, words))

    def _asked(self, path: str, generation: int) -> Step[Task]:
        return Step(
            scope=("socket", path),
            verb=IDENTIFY,
            detail=Task(path=path, generation=generation),
            phase=2,
            deadline_s=self._identify_s,
            subject=generation,
        )

    def _handled(self, path: str, known: Known, verb: str, *, phase: int) -> Step[Task]:
        return Step(
            scope=("plugin", known.info.type, known.info.name),
            verb=verb,
            detail=Task(path=path, generation=known.generation, info=known.info, is_stale=known.is_stale),
            phase=phase,
            deadline_s=self._handle_s,
            subject=(path, known.generation),
        )


def _flat(future: Future[Result | Future[Result]]) -> Future[Result]:
    return then(future, lambda done: done.result())


def _met(have: Known | None, task: Task, info: PluginInfo, now_s: float) -> Known:
    after = REGISTRATION_LIFE.after(RegistrationState.UNKNOWN, RegistrationEvent.ANSWERED)
    renewed = have is not None and have.generation == task.generation and have.is_stale
    if have is not None and not renewed:
        return have
    return Known(generation=task.generation, state=after, info=info, since_s=now_s)


def _doubted(have: Known | None, task: Task) -> Known | None:
    """Its handler has failed it; what it said of itself may be old at the next try."""
    if have is None or have.generation != task.generation or have.is_stale:
        return have
    return attrs.evolve(have, is_stale=True)


def _moved(
    have: Known | None, task: Task, event: RegistrationEvent, now_s: float, note: str = ""
) -> Known | None:
    if have is None or have.generation != task.generation:
        return have
    if not REGISTRATION_LIFE.takes(have.state, event):
        return have
    state = REGISTRATION_LIFE.after(have.state, event)
    if state is RegistrationState.UNKNOWN:
        return None
    return attrs.evolve(have, state=state, since_s=now_s, note=note, is_stale=False)
