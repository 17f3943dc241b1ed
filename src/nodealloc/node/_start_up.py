"""How far a node's start has come: the store is written and the runtime asked by the engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from nodealloc.dsw_asw import Cancel, Done, Outcome, Plan, Reconciler, Step, ThreadExecutor, View, World
from nodealloc.errors import RetryableError, UncertainError
from nodealloc.node._life import NODE_LIFE, NodeEvent, NodeState
from nodealloc.node._loading import StartReport
from nodealloc.node._ports import Runtime
from nodealloc.verdicts import NotYet

__all__ = ["StartUp", "not_yet"]

_NODE: Final = "node"
_WRITE, _ASK = "write", "ask"
_E = NodeEvent

_AWAITED: Final[Mapping[NodeState, str]] = {
    NodeState.NEW: "start() has not been called",
    NodeState.CLEAN: "the start-up has not been written",
    NodeState.REPORTED: "the start-up report has not been accepted",
    NodeState.ACCEPTED: "the runtime has not said what runs",
}
"""What has to happen before anything new is admitted, as a caller reads it."""
_BLOCKER: Final[Mapping[NodeState, str]] = {NodeState.CLEAN: "store", NodeState.ACCEPTED: "runtime"}
_EVENT: Final[Mapping[str, NodeEvent]] = {_WRITE: _E.WRITTEN, _ASK: _E.ANSWERED}


class _Domain:
    """A `Domain`: wanted is what was loaded, there is how far the start has come."""

    def __init__(self, write: Callable[[], None], runtime: Runtime | None) -> None:
        self._write = write
        self._runtime = runtime

    def plan(self, view: View[str, StartReport, NodeState, None], /) -> Plan[NodeState, None]:
        """The next event that this can bring about; a report that is not clean waits for somebody."""
        if view.want is None:
            return Plan()
        state = view.have or NODE_LIFE.start
        if state is NODE_LIFE.start:
            event = _E.LOADED_CLEAN if view.want.is_clean else _E.LOADED_CHANGED
            return Plan(have=NODE_LIFE.after(state, event))
        if state is NodeState.REPORTED:
            return Plan()
        if NODE_LIFE.takes(state, _E.WRITTEN):
            return Plan(steps=[Step(scope=(_NODE,), verb=_WRITE, detail=None)])
        if NODE_LIFE.takes(state, _E.ANSWERED):
            if self._runtime is None:
                return Plan(have=NODE_LIFE.after(state, _E.ANSWERED))
            return Plan(steps=[Step(scope=(_NODE,), verb=_ASK, detail=None)])
        return Plan()

    def perform(self, step: Step[None], _cancel: Cancel, /) -> None:
        """Write, or ask; what the answer is matters to nobody here."""
        if step.verb == _WRITE:
            self._write()
        elif self._runtime is not None:
            self._runtime.running()

    def settled(
        self, have: NodeState | None, step: Step[None], outcome: Outcome[None], /
    ) -> NodeState | None:
        """How far it has come after a step."""
        if have is None or not isinstance(outcome, Done):
            return have
        return NODE_LIFE.after(have, _EVENT[step.verb])


class StartUp:
    """A start, which admissions hurry on. Thread-safe.

    Args:
        write: Writes what was loaded; may be repeated.
        runtime: Is asked once what runs, by an operation of its own.
        patience_s: How long whoever has it asked waits for the answer.

    Attributes:
        engine: Does it; started, it goes on without admissions.
    """

    def __init__(self, write: Callable[[], None], runtime: Runtime | None, *, patience_s: float) -> None:
        self._patience_s = patience_s
        self._loaded: World[str, StartReport] = World("loaded nodes")
        self._state: World[str, NodeState] = World("started nodes")
        self._is_awaited = False
        self.is_ready = False
        self.engine: Reconciler[str, StartReport, NodeState] = Reconciler(
            _Domain(write, runtime),
            desired=self._loaded,
            actual=self._state,
            executor=ThreadExecutor("a node starts"),
            name="node start",
        )

    @property
    def state(self) -> NodeState:
        """How far it has come."""
        return self._state.get(_NODE) or NODE_LIFE.start

    def begin(self, report: StartReport, /) -> None:
        """It was loaded: goes on, where nobody has to look, until only the runtime is waited for."""
        self._loaded.put(_NODE, report, by="load")
        self._go_on(None)
        self.is_ready = self.state is NodeState.READY

    def written(self) -> None:
        """Somebody accepted the report, and it is written."""
        self._state.alter(
            _NODE, lambda state: NODE_LIFE.after(state or NODE_LIFE.start, _E.WRITTEN), by="accept"
        )
        self.engine.run_until_quiet()
        self.is_ready = self.state is NodeState.READY

    def waiting(self) -> NotYet | None:
        """What has to happen before anything new is admitted; None when the node is ready.

        Tries anew what has failed. Whoever comes first after the runtime was asked
        waits a moment for its answer; whoever comes later does not.

        Raises:
            Exception: What the runtime raised that is no `RetryableError`.
        """
        if self.is_ready:
            return None
        if not self.engine.unsettled(_NODE):
            self._is_awaited = False
            self.engine.retry_now(_NODE)
        waits, self._is_awaited = not self._is_awaited, True
        self._go_on(self._patience_s if waits else 0.0)
        state = self.state
        self.is_ready = state is NodeState.READY
        if self.is_ready:
            return None
        for failure in self.engine.failures(_NODE):
            if not isinstance(failure.error, RetryableError | UncertainError):
                raise failure.error
            said = str(failure.error)
            message = said if failure.verb == _WRITE else f"{_AWAITED[state]}: {said}"
            return not_yet(_BLOCKER[state], message, failure.error.after_s)
        if self.engine.unsettled(_NODE):
            silent = f"{_AWAITED[state]}: it was asked and is silent"
            return not_yet(_BLOCKER[state], silent, max(self._patience_s, 1.0))
        return not_yet("node", _AWAITED[state], 1.0)

    def _go_on(self, patience_s: float | None) -> None:
        """Make passes until nothing runs: so long for the runtime, as long as it takes for the store."""
        self.engine.run_until_quiet()
        began_s, passes = time.monotonic(), self.engine.passes_made
        # What has ended and is not settled yet counts, too: the state does not say what came of it.
        while self.engine.unsettled(_NODE):
            if self.state is NodeState.CLEAN:
                left_s = None
            elif patience_s is None:
                return
            else:
                left_s = began_s + patience_s - time.monotonic()
                if left_s <= 0:
                    return
            # Another caller, or who drives the engine, may make the pass that is waited for.
            self.engine.wait_for_pass(passes, left_s)
            self.engine.run_until_quiet()
            passes = self.engine.passes_made


def not_yet(blocker: str, message: str, after_s: float, /) -> NotYet:
    """What has to happen first, in words."""
    return NotYet(blocker=blocker, message=message or f"the {blocker} is busy", after_s=after_s)
