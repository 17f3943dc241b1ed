"""What runs, as a watch of the container runtime sees it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence

from nodealloc._typed import typed
from nodealloc.errors import RetryableError
from nodealloc.node._ports import RunningContainer
from nodealloc.runtime import PodListing, RunState, RuntimeWatch
from nodealloc.topology import Owner

__all__ = ["WatchedRuntime"]


class WatchedRuntime:
    """A `Runtime` for a node, over a `RuntimeWatch` that is driven. Thread-safe.

    Each question waits for a listing that began after it: what is answered is
    no older than the question. A pod whose listing makes no sense counts as
    running, by its uid alone.

    Args:
        watch: Sees the runtime; started, or driven by a group.
        patience_s: How long a question waits for the listing, in seconds.
    """

    @typed
    def __init__(self, watch: RuntimeWatch, /, *, patience_s: float = 10.0) -> None:
        self._watch = watch
        self._patience_s = patience_s

    def running(self) -> Sequence[RunningContainer]:
        """See `Runtime.running`.

        Raises:
            RetryableError: The listing failed, or did not come in time.
        """
        changed = threading.Event()
        answers = self._watch.answers.watch(changed.set)
        try:
            number, ends_s = self._watch.hurry(), time.monotonic() + self._patience_s
            while not self._is_listed(number):
                if not changed.wait(max(0.0, ends_s - time.monotonic())):
                    silent = f"the runtime has not been listed within {self._patience_s:g} s"
                    raise RetryableError(silent, after_s=1.0)
                changed.clear()
        finally:
            answers.close()
        return [one for record in self._watch.seen.snapshot().values() for one in _of_pod(record.value)]

    def _is_listed(self, number: int) -> bool:
        answer = self._watch.listed()
        if answer.shown < number <= answer.number:
            raise RetryableError(f"the runtime cannot be listed: {answer.error}", after_s=1.0)
        return answer.shown >= number


def _of_pod(pod: PodListing) -> Iterator[RunningContainer]:
    for one in pod.containers:
        if one.state is not RunState.EXITED:
            yield RunningContainer(owner=Owner(pod.uid, one.name), container_id=one.id)
    if pod.is_spoilt:
        yield RunningContainer(owner=Owner(pod.uid, ""), container_id=pod.uid)
