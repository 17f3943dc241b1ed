"""Asks containers to end; of each that was asked it is known whether it may have heard of that."""

from __future__ import annotations

import contextlib
import math

from nodealloc.dsw_asw import Clock, UncertainError
from nodealloc.errors import NodeallocError
from nodealloc.podlife._details import Hook, LifePolicy, StopContainer
from nodealloc.podlife._rules import Rules
from nodealloc.podlife._stops import left_to_end_s
from nodealloc.podlife._worlds import Worlds
from nodealloc.runtime import Containers, NoSuchRecordError, RunState, RuntimeWatch

__all__ = ["StopCalls"]


class StopCalls:
    """Calls a runtime to end containers; used from any worker, for one container by one at a time.

    Args:
        runtime: Ends them.
        watch: Tells whether they run.
        worlds: What is remembered of pods.
        clock: Time for deadlines.
        policy: How much time is kept for a container that has not heard of its end.
        rules: `keeps_deadline`, `tells_meanwhile`.
    """

    def __init__(
        self,
        runtime: Containers,
        watch: RuntimeWatch,
        worlds: Worlds,
        clock: Clock,
        *,
        policy: LifePolicy,
        rules: Rules,
    ) -> None:
        self._runtime = runtime
        self._watch = watch
        self._worlds = worlds
        self._clock = clock
        self._policy = policy
        self._rules = rules
        self._may_have_heard: dict[tuple[str, str], bool] = {}
        self._had_ended: dict[tuple[str, str], bool] = {}

    def had_ended(self, uid: str, detail: StopContainer | Hook, /) -> bool:
        """Whether a container that is stopped to start again had ended by itself before it heard of that.

        Asked once of each, before its hook or before it is told; False where the runtime does not answer.

        Args:
            uid: Of its pod.
            detail: Which.
        """
        record, cid = self._worlds.pods.get(uid), detail.container_id
        key = uid, cid
        is_owed = record is not None and record.owed_here.get(detail.container) == cid
        if not is_owed or not self._rules.tells_meanwhile:
            return False
        if key not in self._had_ended:
            self._had_ended[key] = False
            is_over = self._is_over(uid, cid)
            # Another call with less time may have told it meanwhile, and come back.
            if key in self._had_ended and key not in self._may_have_heard:
                self._had_ended[key] = is_over
        had_ended = self._had_ended.get(key, False)
        if had_ended and isinstance(detail, StopContainer):
            self._had_ended[key] = False  # if listings go on showing that it runs, it is told
        return had_ended

    def _is_over(self, uid: str, cid: str) -> bool:
        try:
            report = self._watch.ask(uid)
        except NodeallocError:
            return False
        return any(one.record.id == cid and one.record.state is RunState.EXITED for one in report.containers)

    def is_again(self, uid: str, detail: StopContainer, /) -> bool:
        """Whether a kubelet begins anew to stop a container, with its hook: its last call failed."""
        is_new = self._may_have_heard.get((uid, detail.container_id), True)
        return not (is_new or detail.kills or self._rules.keeps_deadline)

    def stop(self, uid: str, detail: StopContainer, used_s: float = 0.0, /) -> None:
        """Ask a container to end in the time that it has left, which nobody gives it twice.

        Args:
            uid: Of its pod.
            detail: Which, and by when.
            used_s: How much of its grace its hook took just now, in seconds.

        Raises:
            Exception: What the runtime raises, but for a container that is gone.
        """
        keeps, cid = self._rules.keeps_deadline, detail.container_id
        key = uid, cid
        left_s = left_to_end_s(detail, self._worlds.pods.get(uid), self._clock.monotonic_s())
        before = self._may_have_heard.get(key)
        if before is False:
            # It has not heard of its end yet: it gets what is kept for that, by a kubelet all of the grace.
            left_s = max(left_s, self._policy.kept_s(detail.grace_s) if keeps else detail.grace_s - used_s)
        if not keeps and not detail.kills:
            left_s = max(float(math.ceil(left_s)), self._policy.term_s)
        self._may_have_heard[key] = True
        try:
            with contextlib.suppress(NoSuchRecordError):
                self._runtime.stop_container(cid, left_s)
        except Exception as error:
            # Another call may be under way since before it, with more time; a kubelet does not ask.
            if not keeps or not (before or isinstance(error, UncertainError)):
                self._may_have_heard[key] = False
            raise
        self._may_have_heard.pop(key, None)
        self._had_ended.pop(key, None)

    def forget(self, uid: str, /) -> None:
        """Nothing of a pod is left that could be stopped."""
        for known in (self._may_have_heard, self._had_ended):
            for key in [one for one in list(known) if one[0] == uid]:
                known.pop(key, None)
