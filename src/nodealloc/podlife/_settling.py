"""Pure functions: what is remembered of a pod after a step."""

from __future__ import annotations

from nodealloc import _attrs as attrs
from nodealloc._error_words import error_words
from nodealloc._frozen import extended, reduced
from nodealloc.dsw_asw import Cancelled, Done, Failed, Outcome, Step, Uncertain
from nodealloc.podfacts import PodIdentity
from nodealloc.podlife._details import (
    Acted,
    BeginAgain,
    Detail,
    Forget,
    Hook,
    HookKind,
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
)
from nodealloc.podlife._ending import asked_to_end
from nodealloc.podlife._forms import made_ready
from nodealloc.podlife._grace import kill_grace_s
from nodealloc.podlife._look import Look, StartFailure
from nodealloc.podlife._plan import StopReason
from nodealloc.podlife._record import (
    Begun,
    Ending,
    EndingKind,
    HookState,
    Ours,
    PodRecord,
    Stopping,
)
from nodealloc.podlife._rules import Rules
from nodealloc.podlife._stops import containers_of
from nodealloc.podlife._taken_up import UNKNOWN_S
from nodealloc.runtime import ContainerRecord, ContainerReport, RunState, SandboxRecord, SandboxReport
from nodealloc.verdicts import NotYet

__all__ = ["settle"]


def settle(
    have: PodRecord, step: Step[Detail], outcome: Outcome[Acted], /, *, rules: Rules, awaited: int
) -> PodRecord | None:
    """A pod's record after a step.

    Args:
        have: The record before.
        step: Which.
        outcome: What came of it.
        rules: Where the kubelet is wrong.
        awaited: Number of the listing that was asked for when a call about the pod last
            came back; 0 where that one is known.
    """
    after = _settled(have, step, outcome, rules)
    if after is None or not isinstance(step.detail, _IN_DOUBT) or not _has_come_back(outcome):
        return after
    if after.doubt is None or isinstance(outcome, Cancelled):
        # Its time was over before it came back, or it stopped half way: that listing shows what it did.
        return after.but(doubt=max(awaited, after.doubt or 0))
    if have.doubt is not None and after.doubt < have.doubt:
        # Calls do not come back in the order in which they asked for their listings.
        return after.but(doubt=have.doubt)
    return after


def _has_come_back(outcome: Outcome[Acted]) -> bool:
    """Whether a call that a worker took up is over."""
    match outcome:
        case Uncertain(still_running=still_running):
            return not still_running
        case Failed(known=None):
            return False  # the engine's own word: nobody took it up
        case _:
            return outcome.began_s is not None


_IN_DOUBT = RunSandbox | Start | StopContainer | StopSandbox | Remove
"""Steps that change what a listing shows."""


def _settled(have: PodRecord, step: Step[Detail], outcome: Outcome[Acted], rules: Rules) -> PodRecord | None:
    match outcome:
        case Done(result=acted):
            return _done(have, step, acted, outcome.ended_s, rules)
        case Failed(known=known) | Uncertain(known=known):
            return _not_done(have, step, outcome, known)
        case Cancelled():
            return have


def _done(have: PodRecord, step: Step[Detail], acted: Acted, now_s: float, rules: Rules) -> PodRecord | None:
    detail = step.detail
    if acted.had_ended:
        have = _not_owed(have, detail)
    match detail:
        case MakeReady():
            return _made_ready(have, detail, acted, now_s, rules)
        case TakeBack():
            if acted.not_yet is not None:
                return have.but(waits_for=acted.not_yet)
            made = tuple(one for one in have.made if one != detail.name)
            return have.but(made=made, waits_for=None)
        case Pull() if not _is_of(detail, have):
            return have
        case Pull():
            have = have.failing(detail.container, None) if acted.id else have
            return have.but(images=extended(have.images, detail.container, acted.id))
        case RunSandbox():
            after = _with_sandbox(have, detail.attempt, acted)
            # What was removed with it is known to be gone by the next listing.
            return after.but(doubt=acted.listing) if detail.purges else after
        case Start():
            return _made(have, detail, acted) if detail.only_makes else _started(have, detail, acted)
        case Resize():
            resized = extended(have.resized, detail.container_id, detail.resources)
            return have.but(resized=resized)
        case Hook():
            return _hooked(have, detail, acted, now_s)
        case StopContainer():
            return _ended(have, detail.container_id, acted)
        case StopSandbox():
            after = _ended(have, detail.sandbox_id, acted)
            if rules.stops_ready:
                return after
            return after.but(stopped=extended(after.stopped, detail.sandbox_id, detail.sandbox_id))
        case Prune():
            for one in (*detail.containers, *detail.sandboxes):
                have = _ours(have, one, acted)
            return have
        case BeginAgain():
            return PodRecord(
                pod=detail.pod,
                edition=have.edition + 1,
                attempts=have.attempts,
                # Delays are remembered by uid, and its containers are still there.
                restarts=have.restarts,
                ended=have.ended,
                noticed_s=now_s,
                noticed_unix_s=detail.said_unix_s,
            )
        case Forget():
            return None
        case _:
            return have.but(doubt=acted.listing or have.doubt)


def _not_owed(have: PodRecord, detail: Detail) -> PodRecord:
    """Its policy says whether a container starts again that ended by itself before it was stopped."""
    if isinstance(detail, StopContainer | Hook) and have.owed.get(detail.container) == detail.container_id:
        return have.but(owed=reduced(have.owed, detail.container))
    return have


def _is_of(detail: Pull, have: PodRecord) -> bool:
    """Whether a container is still to run from the image that was looked for."""
    container = containers_of(have.pod).get(detail.container)
    return container is not None and container.image == detail.image


def _not_done(
    have: PodRecord, step: Step[Detail], outcome: Failed[Acted] | Uncertain[Acted], known: Acted | None
) -> PodRecord:
    detail = step.detail
    if isinstance(detail, MakeReady | TakeBack):
        words = error_words(outcome.error)
        name = detail.name if isinstance(detail, TakeBack) else detail.names[0]
        return have.but(waits_for=NotYet(blocker=name, message=words))
    if isinstance(detail, Hook | Prune | Resize):
        return have
    if isinstance(detail, StopContainer) and have.look is not None:
        have = _not_stopped(have, have.look, detail.container_id)
    if isinstance(detail, Pull | Start) and known is not None and known.failure is not None:
        have = have.failing(detail.container, known.failure)
        if have.look is not None and detail.container in have.images:
            # A kubelet looks for the image with each try.
            have = have.but(images=reduced(have.images, detail.container))
    if isinstance(detail, Pull) or (known is None and isinstance(outcome, Failed)):
        return have
    if isinstance(detail, Start) and isinstance(outcome, Uncertain) and known is not None and known.id:
        have = _begun(have, detail, known)
    # Nobody knows what it did: nothing is made before a listing that began after it.
    return have.but(doubt=None if known is None else known.listing)


def _not_stopped(have: PodRecord, look: Look, cid: str) -> PodRecord:
    """A kubelet's look is over with it, but for one whose hook failed: the next one finds that running."""
    stopping = have.stopping.get(cid)
    if stopping is None or have.life.is_ending:
        return have
    if stopping.reason is not StopReason.POST_START_HOOK:
        return have.but(look=attrs.evolve(look, unstopped=look.unstopped | {cid}))
    hooks = reduced(have.pre_stop, cid) if cid in have.pre_stop else have.pre_stop
    return have.but(stopping=reduced(have.stopping, cid), pre_stop=hooks)


def _made_ready(have: PodRecord, detail: MakeReady, acted: Acted, now_s: float, rules: Rules) -> PodRecord:
    if acted.ready:
        have = made_ready(have, detail.edition, acted.ready, acted.provided)
    if acted.refused is not None:
        # Of one that ran before, and does not come in any more, a kubelet knows what the runtime does.
        is_unknown = not rules.remembers_pods and have.sandbox_attempt >= 0
        refused = Ending(
            kind=EndingKind.REFUSED,
            reason=acted.refused.reason,
            message=acted.refused.message,
            grace_s=UNKNOWN_S if is_unknown else None,
        )
        untried = set(detail.names[len(acted.ready) + 1 :]) & set(detail.new)
        made = tuple(one for one in have.made if one not in untried)
        have = have.but(made=made, waits_for=None)
        return asked_to_end(have, (refused,), have.pod, now_s=now_s, rules=rules)
    return have.but(waits_for=acted.not_yet)


def _ours(
    have: PodRecord, id_: str, acted: Acted, report: SandboxReport | ContainerReport | None = None
) -> PodRecord:
    mine = Ours(number=acted.listing or 0, report=report)
    return have.but(ours=extended(have.ours, id_, mine))


def _with_sandbox(have: PodRecord, attempt: int, acted: Acted) -> PodRecord:
    record = SandboxRecord(id=acted.id, pod=PodIdentity.of(have.pod), attempt=attempt)
    report = SandboxReport(record=record, uses_host_network=have.pod.host_network)
    return _ours(have, acted.id, acted, report)


def _begun(have: PodRecord, detail: Start, acted: Acted) -> PodRecord:
    begun = Begun(container_id=acted.id, attempt=detail.attempt)
    return have.but(begun=extended(have.begun, detail.container, begun))


def _as_ours(have: PodRecord, detail: Start, acted: Acted, state: RunState) -> PodRecord:
    container = containers_of(have.pod).get(detail.container)
    record = ContainerRecord(
        id=acted.id,
        pod=PodIdentity.of(have.pod),
        name=detail.container,
        sandbox_id=detail.sandbox_id,
        attempt=detail.attempt,
        state=state,
        image="" if container is None else container.image,
    )
    after = _ours(have, acted.id, acted, ContainerReport(record=record))
    return after.failing(detail.container, None)


def _made(have: PodRecord, detail: Start, acted: Acted) -> PodRecord:
    """It is remembered before it starts: whoever comes back and does not find it does not run it again."""
    return _begun(_as_ours(have, detail, acted, RunState.CREATED), detail, acted)


def _started(have: PodRecord, detail: Start, acted: Acted) -> PodRecord:
    name = detail.container
    container = containers_of(have.pod).get(name)
    after = _begun(_as_ours(have, detail, acted, RunState.RUNNING), detail, acted)
    begun = after.starting.get(name)
    # It may have been edited while it started: what is to be made then has its number already.
    is_this = begun is not None and begun.attempt <= detail.attempt
    starting = reduced(after.starting, name) if is_this else after.starting
    images = reduced(after.images, name) if name in after.images else after.images
    hooks = after.post_start
    if (
        container is not None
        and container.lifecycle is not None
        and container.lifecycle.post_start is not None
        and acted.id not in hooks
    ):
        hooks = extended(hooks, acted.id, HookState.WAITS)
    look = after.look
    if look is not None and look.tried.get(name) == detail.attempt:
        look = attrs.evolve(look, started=look.started | {name})
    return after.but(starting=starting, images=images, post_start=hooks, look=look)


def _hooked(have: PodRecord, detail: Hook, acted: Acted, now_s: float) -> PodRecord:
    """A container whose post-start hook failed is stopped; what a pre-stop hook comes to changes nothing."""
    cid, name = detail.container_id, detail.container
    state = HookState.DONE if acted.failure is None else HookState.FAILED
    if detail.kind is HookKind.PRE_STOP:
        return have.but(pre_stop=extended(have.pre_stop, cid, state))
    after = have.but(post_start=extended(have.post_start, cid, state))
    if acted.failure is None or have.life.is_ending:
        return after  # a pod that ends called it off, and asks the container to end in its turn
    after = after.failing(name, StartFailure(reason="PostStartHookError", message=acted.failure.message))
    if cid in after.stopping:
        return after  # it ends already, and has no more time for another reason
    grace_s = kill_grace_s(own_s=have.pod.termination_grace_period_seconds)
    stopping = Stopping(
        name=name,
        deadline_s=now_s + grace_s,
        grace_s=grace_s,
        reason=StopReason.POST_START_HOOK,
        message=acted.failure.message,
    )
    return after.but(stopping=extended(after.stopping, cid, stopping))


def _ended(have: PodRecord, id_: str, acted: Acted) -> PodRecord:
    """Nothing is made until the next listing has shown how it ended."""
    return _ours(have, id_, acted).but(doubt=acted.listing)
