"""The one question of a start to the runtime, asked so that nobody waits for one that hangs."""

from __future__ import annotations

import threading

from nodealloc.errors import RetryableError
from nodealloc.node._ports import Runtime

__all__ = ["FirstAnswer"]


class _Question:
    """One call, under way or answered."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.error: BaseException | None = None


class FirstAnswer:
    """Whether a runtime can say what runs.

    The call is made by a thread of its own, one at a time. Whoever begins it
    waits a moment; whoever comes while it is under way does not.

    Args:
        runtime: To ask.
        patience_s: How long that moment is.
    """

    def __init__(self, runtime: Runtime, *, patience_s: float) -> None:
        self._runtime = runtime
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._question: _Question | None = None

    def get(self) -> None:
        """Return when the runtime has answered.

        Raises:
            RetryableError: It cannot tell, or has been asked and is silent.
        """
        with self._lock:
            question, begins = self._question, self._question is None
            if question is None:
                question = self._question = _Question()
        if begins:
            self._begin(question)
            question.done.wait(self._patience_s)
        if not question.done.is_set():
            raise RetryableError("it was asked and is silent", after_s=max(self._patience_s, 1.0))
        self._forget(question)
        if question.error is not None:
            raise question.error

    def _begin(self, question: _Question) -> None:
        thread = threading.Thread(
            target=self._ask, args=(question,), name="a node asks its runtime", daemon=True
        )
        try:
            thread.start()
        except BaseException:
            self._forget(question)
            raise

    def _ask(self, question: _Question) -> None:
        try:
            self._runtime.running()
        except BaseException as error:  # noqa: BLE001 - whoever waits for the answer gets it
            question.error = error
        finally:
            question.done.set()

    def _forget(self, question: _Question) -> None:
        with self._lock:
            if self._question is question:
                self._question = None
