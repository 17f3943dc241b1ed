"""How far a pod's initialization has come, and what its init containers and sidecars need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from nodealloc.podfacts import Exited
from nodealloc.podlife._newest import Latest
from nodealloc.podlife._plan import StopReason, Why
from nodealloc.podspec import RestartPolicy
from nodealloc.runtime import RunState

if TYPE_CHECKING:
    from nodealloc.podlife._draft import Draft
    from nodealloc.podspec import Container

__all__ = ["NextInit", "next_plain", "walk_init"]

# A member of an enum costs a call at each use before Python 3.12, and these are used for every container.
_CREATED: Final = RunState.CREATED
_EXITED: Final = RunState.EXITED
_RUNNING: Final = RunState.RUNNING
_UNKNOWN: Final = RunState.UNKNOWN
_POLICY_NEVER: Final = RestartPolicy.NEVER

_SUCCEEDED: Final = Latest(_EXITED, Exited(code=0), "Completed", None)


class NextInit(NamedTuple):
    """Of a pod without sidecars: which init container is next, how it failed, whether all are done."""

    container: Container | None = None
    failed: Latest | None = None
    is_done: bool = False


def walk_init(draft: Draft, sandbox_id: str) -> bool:
    """Decide for init containers and sidecars; whether the main containers may be looked at."""
    if not draft.pod.init_containers:
        return True
    if draft.rules.keeps_init_progress:
        is_done = _Walk(draft, sandbox_id).walk()
    elif draft.has_sidecars:
        is_done = _Walk(draft, "").walk()
    else:
        is_done = _plain(draft)
    return is_done and not draft.ends


def next_plain(draft: Draft) -> NextInit:
    """The kubelet's answer for pods without sidecars.

    Source: kubelet ``kuberuntime_container.go``.
    """
    newest, inits = draft.newest, draft.pod.init_containers
    if not inits:
        return NextInit(is_done=True)
    for one in draft.pod.containers:
        latest = newest.get(one.name)
        if latest is not None and latest.state is _RUNNING:
            return NextInit(is_done=True)
    for one in reversed(inits):
        latest = newest.get(one.name)
        if latest is not None and latest.failed_init:
            return NextInit(one, latest)
    for index in range(len(inits) - 1, -1, -1):
        latest = newest.get(inits[index].name)
        if latest is not None and latest.state is _RUNNING:
            return NextInit()
        if latest is not None and latest.state is _EXITED:
            if index == len(inits) - 1:
                return NextInit(is_done=True)
            return NextInit(inits[index + 1])
    return NextInit(inits[0])


def _plain(draft: Draft) -> bool:
    found = next_plain(draft)
    if found.is_done:
        draft.reason_of(draft.pod.init_containers, Why.INITIALIZED)
        return True
    if found.container is None:
        draft.reason_of(draft.pod.init_containers, Why.INIT_RUNS)
        return False
    name, failed = found.container.name, found.failed
    if failed is None:
        draft.start(name, Why.NEVER_RAN)
    elif draft.pod.restart_policy is _POLICY_NEVER:
        draft.ends = True
        draft.why[name] = Why.FAILED
    elif failed.state is _UNKNOWN:
        draft.stop_unknown(name, failed, "Init container")
    else:
        draft.start(name, Why.FAILED)
    draft.reason_of(draft.pod.init_containers, Why.POD_ENDS if draft.ends else Why.WAITS_FOR_TURN)
    return False


class _Walk:
    """From the last init container to the first: the last one that has a record says how far it is.

    Those before it may have lost theirs. Source: kubelet ``kuberuntime_container.go``.
    """

    __slots__ = ("_draft", "_is_done", "_past", "_restarts", "_sandbox_id")

    def __init__(self, draft: Draft, sandbox_id: str) -> None:
        self._draft = draft
        self._sandbox_id = sandbox_id
        self._restarts = draft.pod.restart_policy is not _POLICY_NEVER
        self._is_done = any(self._shows_start(one) for one in draft.pod.containers)
        self._past = self._is_done

    def walk(self) -> bool:
        """Whether the pod is initialized."""
        draft = self._draft
        inits = draft.pod.init_containers
        for index in range(len(inits) - 1, -1, -1):
            one = inits[index]
            latest = self._latest(one)
            if latest is None:
                if self._past and one.restartable:
                    draft.start(one.name, Why.NEVER_RAN)
                else:
                    draft.why.setdefault(one.name, Why.INITIALIZED if self._past else Why.WAITS_FOR_TURN)
                continue
            if self._past and not one.restartable:
                draft.why[one.name] = Why.SUCCEEDED if latest.succeeded else Why.INITIALIZED
                continue
            self._look(index, one, latest)
            if draft.ends:
                draft.starting.difference_update(init.name for init in inits)
                draft.reason_of(inits, Why.POD_ENDS)
                return False
            self._past = True
        if not self._past:
            draft.start(inits[0].name, Why.NEVER_RAN)
        return self._is_done

    def _shows_start(self, main: Container) -> bool:
        """Whether a main container shows that initialization was over."""
        latest = self._draft.newest.get(main.name)
        if latest is None:
            return False
        if not self._sandbox_id:
            return latest.state is _CREATED or latest.state is _RUNNING
        return latest.report is not None and latest.report.record.sandbox_id == self._sandbox_id

    def _latest(self, one: Container) -> Latest | None:
        latest = self._draft.newest.get(one.name)
        if not self._sandbox_id:
            return latest
        if one.name in self._draft.seen.completed and not one.restartable:
            return _SUCCEEDED
        if latest is None:
            return None
        if latest.report is None:
            # A pod of policy Never has one sandbox: what ended in it and was forgotten is not repeated.
            return None if self._restarts or one.restartable else latest
        if latest.report.record.sandbox_id == self._sandbox_id:
            return latest
        if self._draft.rules.one_instance and latest.state.may_run:
            # Its start came back after its sandbox had to go: it ends before another one starts.
            self._draft.older = (*self._draft.older, latest.report)
        return None

    def _look(self, index: int, one: Container, latest: Latest) -> None:
        draft, name = self._draft, one.name
        if latest.state is _CREATED:
            draft.start(name, Why.CREATED)
        elif latest.state is _RUNNING:
            if one.restartable:
                self._running_sidecar(index, one, latest)
            else:
                draft.why[name] = Why.INIT_RUNS
        elif latest.state is _EXITED:
            self._exited(index, one, latest)
        elif one.restartable or self._restarts or draft.rules.one_instance:
            draft.stop_unknown(name, latest, "Init container")
        else:
            draft.ends = True
            draft.why[name] = Why.STATE_UNKNOWN

    def _running_sidecar(self, index: int, one: Container, latest: Latest) -> None:
        draft, name = self._draft, one.name
        if one.startup_probe is not None:
            started = draft.seen.started.get(latest.id)
            if started is not True:
                draft.why[name] = Why.STARTING
                if started is False:
                    self._again(
                        name,
                        latest,
                        Why.NOT_STARTED,
                        StopReason.STARTUP_PROBE,
                        f"Init container {name} failed startup probe",
                    )
                return
        draft.why[name] = Why.RUNS
        self._passed(index)
        if draft.is_changed(latest):
            message = f"Init container {name} definition changed"
            self._again(name, latest, Why.CHANGED, StopReason.NONE, message)
        elif one.liveness_probe is not None and draft.seen.alive.get(latest.id) is False:
            message = f"Init container {name} failed liveness probe"
            self._again(name, latest, Why.NOT_ALIVE, StopReason.LIVENESS_PROBE, message)

    def _again(self, name: str, latest: Latest, why: Why, reason: StopReason, message: str) -> None:
        self._draft.stop(name, latest, why, reason, message)
        self._draft.starting.add(name)

    def _exited(self, index: int, one: Container, latest: Latest) -> None:
        draft, name = self._draft, one.name
        if one.restartable:
            draft.start(name, Why.ENDED if latest.succeeded else Why.FAILED)
        elif not latest.failed_init:
            draft.why[name] = Why.SUCCEEDED
            self._passed(index)
        elif self._restarts:
            draft.start(name, Why.FAILED)
        else:
            draft.ends = True
            draft.why[name] = Why.FAILED

    def _passed(self, index: int) -> None:
        """What comes after an init container may start; only the first one found says so."""
        inits = self._draft.pod.init_containers
        if index == len(inits) - 1:
            self._is_done = True
        elif not self._past:
            self._draft.start(inits[index + 1].name, Why.NEVER_RAN)
