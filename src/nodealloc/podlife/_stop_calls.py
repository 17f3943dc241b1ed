"""Asks containers to end; of each that was asked it is known whether it may have heard of that."""

from __future__ import annotations

import contextlib
import math

from nodealloc.dsw_asw import Clock, UncertainError
from nodealloc.podlife._details import LifePolicy, StopContainer
from nodealloc.podlife._rules import Rules
from nodealloc.podlife._stops import left_to_end_s
from nodealloc.podlife._worlds import Worlds
from nodealloc.runtime import Containers, NoSuchRecordError

__all__ = ["StopCalls"]


class StopCalls:
    """Calls a runtime to end containers; used from any worker, for one container by one at a time.

    Args:
        runtime: Ends them.
        worlds: What is remembered of pods.
        clock: Time for deadlines.
        policy: How much time is kept for a container that has not heard of its end.
        rules: `keeps_deadline`.
    """

    def __init__(
        self, runtime: Containers, worlds: Worlds, clock: Clock, policy: LifePolicy, rules: Rules
    ) -> None:
        self._runtime = runtime
        self._worlds = worlds
        self._clock = clock
        self._policy = policy
        self._rules = rules
        self._may_have_heard: dict[str, bool] = {}

    def stop(self, uid: str, detail: StopContainer, /) -> None:
        """Ask a container to end in the time that it has left, which nobody gives it twice.

        Args:
            uid: Of its pod.
            detail: Which, and by when.

        Raises:
            Exception: What the runtime raises, but for a container that is gone.
        """
        keeps, cid = self._rules.keeps_deadline, detail.container_id
        left_s = left_to_end_s(detail, self._worlds.pods.get(uid), self._clock.monotonic_s())
        before = self._may_have_heard.get(cid)
        if before is False:
            # It has not heard of its end yet: it gets what is kept for that, by a kubelet all of the grace.
            left_s = max(left_s, self._policy.kept_s(detail.grace_s) if keeps else detail.grace_s)
        if not keeps and not detail.kills:
            left_s = max(float(math.ceil(left_s)), self._policy.term_s)
        self._may_have_heard[cid] = True
        try:
            with contextlib.suppress(NoSuchRecordError):
                self._runtime.stop_container(cid, left_s)
        except Exception as error:
            # Another call may be under way since before it, with more time; a kubelet does not ask.
            if not keeps or not (before or isinstance(error, UncertainError)):
                self._may_have_heard[cid] = False
            raise
        self._may_have_heard.pop(cid, None)
