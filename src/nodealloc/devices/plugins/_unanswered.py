"""Plugins that registered on `kubelet.sock` and did not answer: looked at until they listen, then called."""

from __future__ import annotations

import logging
from collections.abc import Callable

from nodealloc import _attrs as attrs
from nodealloc import _sockets
from nodealloc.devices.plugins._callbacks import PluginRegistration
from nodealloc.dsw_asw import (
    BackOff,
    Cancel,
    Clock,
    Done,
    Executor,
    Failed,
    Outcome,
    Plan,
    Reconciler,
    Step,
    View,
    World,
)
from nodealloc.errors import NodeallocError

__all__ = ["CALL", "LOOK", "Looked", "UnansweredPlugins", "Waiting", "is_served"]

_log = logging.getLogger("nodealloc.devices")
_BACK_OFF = BackOff(initial_s=1.0, max_s=60.0)
LOOK, CALL = "look", "call back"


@attrs.frozen(kw_only=True)
class Waiting:
    """One who may still come.

    Attributes:
        registration: How it registered.
        until_s: When it is forgotten, on the engine's clock.
    """

    registration: PluginRegistration
    until_s: float


@attrs.frozen(kw_only=True)
class Looked:
    """What the last look at one brought.

    Attributes:
        waiting: Whom it was for.
        listens: Whether somebody listens there, and has not failed to answer since.
        at_s: When, on the engine's clock.
    """

    waiting: Waiting
    listens: bool
    at_s: float


def is_served(path: str, /) -> bool:
    """Whether somebody listens on a socket."""
    found = _sockets.pin(path)
    if found is None:
        return False
    try:
        return found.is_served()
    finally:
        found.release()


class _Domain:
    """A `Domain`: wanted are plugins that did not answer, there is what is known of them."""

    def __init__(
        self,
        waiting: World[str, Waiting],
        take_on: Callable[[PluginRegistration], None],
        listens: Callable[[str], bool],
        look_s: float,
    ) -> None:
        self._waiting = waiting
        self._take_on = take_on
        self._listens = listens
        self._look_s = look_s

    def plan(self, view: View[str, Waiting, Looked, Waiting], /) -> Plan[Looked, Waiting]:
        """Look now and then whether it listens; call it once it does, until its time is over."""
        want, have = view.want, view.have
        if want is None or view.now_s >= want.until_s:
            return Plan(have=None)
        known = have if have is not None and have.waiting == want else None
        if known is not None and not known.listens and view.now_s < known.at_s + self._look_s:
            return Plan(again_at_s=min(known.at_s + self._look_s, want.until_s))
        verb = CALL if known is not None and known.listens else LOOK
        step = Step(scope=("unanswered", view.key), verb=verb, detail=want, subject=want)
        return Plan(steps=[step], again_at_s=want.until_s)

    def perform(self, step: Step[Waiting], _cancel: Cancel, /) -> bool:
        """Whether somebody listens; or call back who does."""
        waiting = step.detail
        registration = waiting.registration
        if step.verb == LOOK:
            return self._listens(registration.path)
        try:
            self._take_on(registration)
        except NodeallocError as error:
            _log.info("%s: it listens now and cannot be taken on: %s", registration.path, error)
            raise
        self._waiting.alter(
            registration.resource, lambda newest: None if newest == waiting else newest, by="taken on"
        )
        _log.info("%s: %s began to listen after it had registered", registration.path, registration.resource)
        return True

    def settled(self, have: Looked | None, step: Step[Waiting], outcome: Outcome[bool], /) -> Looked | None:
        """What is known after a look, or a call."""
        match outcome:
            case Done() if step.verb == CALL:
                return None
            case Done(result=listens):
                return Looked(waiting=step.detail, listens=listens, at_s=outcome.ended_s)
            case Failed() if step.verb == CALL:
                return Looked(waiting=step.detail, listens=False, at_s=outcome.ended_s)
            case _:
                return have


class UnansweredPlugins:
    """The newest of each resource. Thread-safe.

    Args:
        take_on: Calls one back; raises `NodeallocError` where it still does not answer.
        executor: Runs looks and calls.
        clock: Time.
        most: How many are kept; the one whose time is over first makes room for a new one.
        keep_s: How long each is kept.
        look_s: Between two looks at one that does not listen.
        listens: From a socket's path to whether somebody listens there.

    Attributes:
        engine: Tries them.
    """

    def __init__(
        self,
        take_on: Callable[[PluginRegistration], None],
        executor: Executor,
        clock: Clock,
        *,
        most: int,
        keep_s: float,
        look_s: float,
        listens: Callable[[str], bool] = is_served,
    ) -> None:
        self._clock = clock
        self._most = most
        self._keep_s = keep_s
        self._waiting: World[str, Waiting] = World("late device plugins")
        self.engine: Reconciler[str, Waiting, Looked, Waiting, bool] = Reconciler(
            _Domain(self._waiting, take_on, listens, look_s),
            desired=self._waiting,
            actual=World("looks at late device plugins"),
            executor=executor,
            clock=clock,
            back_off=_BACK_OFF,
            name="late device plugins",
        )

    def add(self, registration: PluginRegistration, /) -> None:
        """It did not answer now."""
        now_s = self._clock.monotonic_s()
        others = {
            resource: record.value.until_s
            for resource, record in self._waiting.snapshot().items()
            if resource != registration.resource
        }
        by_age = sorted(others, key=lambda resource: others[resource])
        too_many = max(0, len(others) - self._most + 1)
        for resource in by_age:
            if others[resource] <= now_s or resource in by_age[:too_many]:
                self._waiting.drop(resource, by="room")
        waiting = Waiting(registration=registration, until_s=now_s + self._keep_s)
        self._waiting.put(registration.resource, waiting, by="registration")

    def forget(self, resource: str, /) -> None:
        """Somebody serves the resource."""
        self._waiting.drop(resource, by="served")
