"""Performs the steps of pods' lives: calls the runtime and the preparers."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError

import attrs

from nodealloc._error_words import error_words
from nodealloc.dsw_asw import Cancel, Clock, Done, Failed, Step, Uncertain
from nodealloc.podlife._answers import CheckedConfigures, heard_of_hook, made_id, prepared, taken_back
from nodealloc.podlife._configuration import SandboxConfigError
from nodealloc.podlife._definitions import needs_new_sandbox, unlimited
from nodealloc.podlife._details import (
    Acted,
    BeginAgain,
    Detail,
    Forget,
    GiveUpName,
    Hook,
    HookKind,
    LifePolicy,
    MakeReady,
    Prune,
    Pull,
    Remove,
    Resize,
    RunSandbox,
    Start,
    StopContainer,
    StopSandbox,
    TakeBack,
    uid_of,
)
from nodealloc.podlife._failing import CannotStartError, not_done
from nodealloc.podlife._heeding import NotHeededError, asked_again
from nodealloc.podlife._images import CredentialSource, FailedPulls, ImageFetcher
from nodealloc.podlife._in_order import InOrder
from nodealloc.podlife._listings import Listings, seen_within_s
from nodealloc.podlife._look import StartFailure, later
from nodealloc.podlife._ports import Configures, HookCall, HookRunner, PodRuntime, Preparation, Provided
from nodealloc.podlife._pull_calls import PullCalls
from nodealloc.podlife._record import PodRecord
from nodealloc.podlife._rules import Rules
from nodealloc.podlife._stop_calls import StopCalls
from nodealloc.podlife._stops import containers_of
from nodealloc.podlife._wanted import PodWanted
from nodealloc.podlife._worlds import Worlds
from nodealloc.podspec import Container, Pod, is_static
from nodealloc.runtime import NameReservedError, NoSuchRecordError, PodKnown, PodReport, RuntimeWatch
from nodealloc.verdicts import Admitted, NotYet, Refused

__all__ = ["Performer"]

_log = logging.getLogger("nodealloc.podlife")


class Performer:
    """Does one step at a time; called from any worker.

    Args:
        runtime: What runs containers.
        watch: Looks at it.
        listings: Are hurried after each call.
        configuring: Says what sandboxes and containers are made from.
        hooks: Runs hooks.
        preparations: Who makes parts ready.
        worlds: What is kept of pods; a pod that is forgotten is dropped from those that are wanted.
        clock: Time for deadlines.
        policy: How patient to be.
        rules: `tells_meanwhile`, `follows_edits`, and what pulls and stops go by.
        credentials: As whom images are fetched; None for as nobody.
        in_order: Who waits for pods that came before; None where nobody does.
    """

    def __init__(
        self,
        runtime: PodRuntime,
        watch: RuntimeWatch,
        listings: Listings,
        *,
        configuring: Configures,
        hooks: HookRunner,
        preparations: Sequence[Preparation],
        worlds: Worlds,
        clock: Clock,
        policy: LifePolicy,
        rules: Rules,
        credentials: CredentialSource | None = None,
        in_order: InOrder | None = None,
    ) -> None:
        self._runtime = runtime
        self._watch = watch
        self._listings = listings
        self._configuring = CheckedConfigures(configuring)
        self._hooks = hooks
        self._parts = {one.name: one.by for one in preparations}
        self._worlds = worlds
        self._clock = clock
        self._policy = policy
        self._rules = rules
        self._in_order = in_order
        self._pulls = PullCalls(
            ImageFetcher(runtime, at_once=policy.pulls_at_once, credentials=credentials),
            FailedPulls(policy.pulls),
            configuring=self._configuring,
            clock=clock,
            rules=rules,
        )
        self._stops = StopCalls(runtime, watch, worlds, clock, policy=policy, rules=rules)

    def perform(
        self, step: Step[Detail], cancel: Cancel, /
    ) -> Acted | Done[Acted] | Failed[Acted] | Uncertain[Acted]:
        """Do a step; whatever goes wrong, the next listing is one that began after it."""
        try:
            return self._done(uid_of(step), step, cancel)
        finally:
            if uid_of(step) not in self._worlds.wanted:
                self._let_go(uid_of(step))  # it came back when its pod was forgotten

    def _done(
        self, uid: str, step: Step[Detail], cancel: Cancel
    ) -> Acted | Done[Acted] | Failed[Acted] | Uncertain[Acted]:
        for one in asked_again(self._worlds.pods.get(uid), step.detail):
            _log.warning("pod %s: %s", uid, NotHeededError(one))
        try:
            acted = self._perform(uid, step.detail, cancel)
        except CancelledError:
            self._listings.hurry(uid)
            raise
        except CannotStartError as error:
            known = Acted(listing=self._listings.hurry(uid), id=error.made, failure=error.failure)
            again_after_s = error.again_after_s
            if error.failure.until_s is None and not self._rules.tells_meanwhile:
                again_after_s = 0.0  # a kubelet tries again whenever it looks
            return not_done(error.error, known, again_after_s)
        except Exception as error:  # noqa: BLE001 - whatever went wrong, it is tried again after a back-off
            return not_done(error, Acted(listing=self._listings.hurry(uid)), self._again_after_s(step.detail))
        if acted.not_yet is not None:
            return Done(acted, again_after_s=acted.not_yet.after_s)
        if acted.listing is not None:
            within_s = seen_within_s(step.detail, self._worlds.pods.get(uid), self._rules)
            acted = attrs.evolve(acted, listing=self._listings.hurry(uid, within_s))
        return acted

    def _again_after_s(self, detail: Detail) -> float | None:
        """How long a call that failed rests by a kubelet's rules, which looks then; None for a back-off."""
        is_late = isinstance(detail, RunSandbox | StopContainer | StopSandbox)
        return later(0.0) if is_late and not self._rules.tells_meanwhile else None

    def awaited(self, uid: str, /) -> int:
        """Number of the listing that shows what the last call about a pod did; 0 where it is known."""
        return self._listings.awaited(uid)

    def _perform(self, uid: str, detail: Detail, cancel: Cancel) -> Acted:
        match detail:
            case MakeReady():
                return self._make_ready(detail, cancel)
            case TakeBack():
                waits = self._parts[detail.name].take_back(detail.pod, cancel)
                return Acted(not_yet=taken_back(detail.name, waits))
            case Pull():
                return self._pull(self._record(uid), detail, cancel)
            case RunSandbox():
                return self._run_sandbox(self._record(uid), detail, cancel)
            case Start():
                return self._start(self._record(uid), detail, cancel)
            case Resize():
                return self._resize(self._record(uid), detail)
            case Hook(kind=HookKind.PRE_STOP) if self._stops.had_ended(uid, detail):
                return Acted(had_ended=True)
            case Hook():
                return self._hook(self._record(uid), detail, cancel)
            case StopContainer() if self._stops.had_ended(uid, detail):
                return Acted(listing=0, had_ended=True)
            case StopContainer():
                self._stops.stop(uid, detail, self._hook_again_s(uid, detail, cancel))
            case StopSandbox():
                with contextlib.suppress(NoSuchRecordError):
                    self._runtime.stop_sandbox(detail.sandbox_id)
            case Remove() | Prune():
                self._remove(detail)
            case GiveUpName():
                self._give_up(uid, detail.full_name)
                return Acted()
            case BeginAgain():
                self._begin_again(uid, detail)
                return Acted()
            case Forget():
                self._forget(uid, detail)
                return Acted()
        return Acted(listing=0)

    def _record(self, uid: str) -> PodRecord:
        record = self._worlds.pods.get(uid)
        if record is None:
            raise CancelledError
        return record

    def _report(self, uid: str) -> PodReport:
        known = self._watch.pods.get(uid) or PodKnown(uid=uid)
        return known.report or PodReport(uid=uid)

    def _addressed(self, pod: Pod, sandbox_id: str = "") -> PodReport:
        """With the pod's address, which a sandbox that was made just now is asked for.

        Raises as `Looks.inspect` does: nothing goes on without it.
        """
        report = self._report(pod.uid)
        boxes = [one for one in report.sandboxes if one.record.is_ready and sandbox_id in ("", one.record.id)]
        if pod.host_network or any(one.ips for one in boxes):
            return report
        return self._watch.ask(pod.uid)

    def _make_ready(self, detail: MakeReady, cancel: Cancel) -> Acted:
        ready: list[str] = []
        provided: dict[str, object] = {}
        for name in detail.names:
            try:
                answer = self._prepared(name, detail.pod, cancel)
            except Exception:
                if not ready:
                    raise
                break  # the first of the next step, whose failure it is then
            if isinstance(answer, NotYet):
                return Acted(ready=tuple(ready), provided=provided, not_yet=answer)
            if isinstance(answer, Refused):
                return Acted(ready=tuple(ready), provided=provided, refused=answer)
            ready.append(name)
            if isinstance(answer, Provided):
                provided[name] = answer.value
            if cancel.is_set():
                break
        else:
            if (waits := self._unmakeable(detail, provided)) is not None:
                provided.pop(ready.pop(), None)  # it is asked again, and this with it
                return Acted(ready=tuple(ready), provided=provided, not_yet=waits)
        return Acted(ready=tuple(ready), provided=provided)

    def _prepared(self, name: str, pod: Pod, cancel: Cancel) -> Admitted | Provided | NotYet | Refused:
        if self._in_order is None or name != self._in_order.part:
            return prepared(name, self._parts[name].make_ready(pod, cancel))
        with self._in_order.turn(pod.uid):
            return prepared(name, self._parts[name].make_ready(pod, cancel))

    def _unmakeable(self, detail: MakeReady, provided: Mapping[str, object]) -> NotYet | None:
        """Why the form that comes would get no sandbox: what runs is not ended for it."""
        record, pod = self._worlds.pods.get(detail.pod.uid), detail.pod
        coming = None if record is None else record.coming
        if record is None or coming is None or coming.edition != detail.edition:
            return None
        if not self._rules.follows_edits or not needs_new_sandbox(record.pod, pod):
            return None
        try:
            self._configuring.sandbox(pod, max(0, record.sandbox_attempt), {**coming.provided, **provided})
        except SandboxConfigError as error:
            words = f"as it was edited it gets none: {error}; what runs goes on as it is"
            return NotYet(blocker="sandbox", message=words, after_s=self._policy.again_s)
        return None

    def _pull(self, record: PodRecord, detail: Pull, cancel: Cancel) -> Acted:
        return self._pulls.pull(record, _container(record, detail.container), detail, cancel)

    def _run_sandbox(self, record: PodRecord, detail: RunSandbox, cancel: Cancel) -> Acted:
        config = self._configuring.sandbox(record.pod, detail.attempt, record.provided)
        for one in detail.before:
            with contextlib.suppress(NoSuchRecordError):
                self._runtime.stop_sandbox(one)
        for one in detail.purges:
            with contextlib.suppress(NoSuchRecordError):
                self._runtime.remove_container(one)
        if cancel.is_set():
            raise CancelledError
        return Acted(listing=0, id=made_id("run_sandbox", self._runtime.run_sandbox(config)))

    def _start(self, record: PodRecord, detail: Start, cancel: Cancel) -> Acted:
        """Make it, unless it was made, and start it."""
        made = detail.container_id or self._create(record, detail, cancel)
        if detail.only_makes:
            return Acted(listing=0, id=made)
        if cancel.is_set():
            raise CancelledError
        try:
            self._runtime.start_container(made)
        except Exception as error:
            raise CannotStartError("RunContainerError", error, made=made) from error
        return Acted(listing=0, id=made)

    def _create(self, record: PodRecord, detail: Start, cancel: Cancel) -> str:
        container = _container(record, detail.container)
        image = record.images.get(detail.container, "")
        report = self._addressed(record.pod, detail.sandbox_id)
        try:
            config = self._configuring.container(record, container, detail.attempt, image, report, cancel)
            sandbox = self._configuring.sandbox(record.pod, max(record.sandbox_attempt, 0), record.provided)
        except CancelledError:
            raise
        except Exception as error:
            raise CannotStartError("CreateContainerConfigError", error) from error
        if cancel.is_set():
            raise CancelledError
        try:
            made = self._runtime.create_container(detail.sandbox_id, config, sandbox)
            return made_id("create_container", made)
        except Exception as error:
            if isinstance(error, NameReservedError) and self._rules.tells_meanwhile:
                raise  # made by a call whose answer was lost: the listing shows it
            raise CannotStartError("CreateContainerError", error) from error

    def _resize(self, record: PodRecord, detail: Resize) -> Acted:
        resources = self._configuring.resources(record, _container(record, detail.container))
        self._runtime.update_container(detail.container_id, unlimited(resources, detail.freed))
        return Acted()

    def _hook(self, record: PodRecord, detail: Hook, cancel: Cancel) -> Acted:
        container = _container(record, detail.container)
        lifecycle = container.lifecycle
        is_post = detail.kind is HookKind.POST_START
        handler = None if lifecycle is None else lifecycle.post_start if is_post else lifecycle.pre_stop
        if handler is None:
            return Acted()
        left_s = self._policy.hook_s
        if detail.until_s is not None:
            left_s = max(0.0, detail.until_s - self._clock.monotonic_s())
        call = HookCall(
            pod=record.pod,
            container=container,
            container_id=detail.container_id,
            handler=handler,
            timeout_s=left_s,
            report=self._report(record.pod.uid) if handler.http_get is None else self._addressed(record.pod),
        )
        try:
            said = heard_of_hook(self._hooks.run_hook(call, cancel))
        except CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - a hook that cannot run has failed
            said = error_words(error)
        reason = "FailedPostStartHook" if is_post else "FailedPreStopHook"
        return Acted(failure=StartFailure(reason=reason, message=said) if said else None)

    def _hook_again_s(self, uid: str, detail: StopContainer, cancel: Cancel) -> int:
        """Run its hook before a stop that is tried again, as a kubelet does; the whole seconds that took."""
        if detail.grace_s <= 0 or not self._stops.is_again(uid, detail):
            return 0
        began_s, cid = self._clock.monotonic_s(), detail.container_id
        hook = Hook(HookKind.PRE_STOP, detail.container, cid, began_s + detail.grace_s)
        self._hook(self._record(uid), hook, cancel)
        return int(self._clock.monotonic_s() - began_s)

    def _remove(self, detail: Remove | Prune) -> None:
        for one in detail.containers:
            with contextlib.suppress(NoSuchRecordError):
                self._runtime.remove_container(one)
        for one in detail.sandboxes:
            with contextlib.suppress(NoSuchRecordError):
                self._runtime.remove_sandbox(one)

    def _give_up(self, uid: str, full_name: str) -> None:
        def without(line: tuple[str, ...] | None) -> tuple[str, ...] | None:
            return tuple(one for one in line or () if one != uid) or None

        self._worlds.lines.alter(full_name, without, by="finished")

    def _begin_again(self, uid: str, detail: BeginAgain) -> None:
        def again(want: PodWanted | None) -> PodWanted | None:
            if want is None or want.again is None:
                return want
            return PodWanted(pod=want.again, said_unix_s=detail.said_unix_s, is_said=want.is_said)

        self._pulls.forget(uid)
        if is_static(detail.pod):
            self._worlds.lines.alter(
                detail.pod.full_name,
                lambda line: (*(one for one in line or () if one != uid), uid),
                by="again",
            )
        self._worlds.wanted.alter(uid, again, by="again")

    def _forget(self, uid: str, detail: Forget) -> None:
        self._give_up(uid, detail.full_name)
        self._let_go(uid)
        self._watch.forget(uid)
        self._worlds.wanted.drop(uid, by="forgotten")

    def _let_go(self, uid: str) -> None:
        self._pulls.forget(uid)
        self._stops.forget(uid)
        self._listings.forget(uid)


def _container(record: PodRecord, name: str) -> Container:
    container = containers_of(record.pod).get(name)
    if container is None:
        raise CancelledError
    return container
