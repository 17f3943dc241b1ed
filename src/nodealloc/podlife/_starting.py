"""Pure functions: sandboxes that are made, images that are fetched, containers that are started."""

from __future__ import annotations

from collections.abc import Collection

from nodealloc import _attrs as attrs
from nodealloc._frozen import extended, reduced
from nodealloc.dsw_asw import Step
from nodealloc.podlife._definitions import Definitions
from nodealloc.podlife._details import (
    Detail,
    Hook,
    HookKind,
    LifePolicy,
    Pull,
    Resize,
    RunSandbox,
    Start,
    StopSandbox,
)
from nodealloc.podlife._images import asked_name, pull_policy
from nodealloc.podlife._observed import Observed
from nodealloc.podlife._plan import PodPlan
from nodealloc.podlife._record import HookState, PodRecord, Starting
from nodealloc.podlife._restarts import without_old_definitions
from nodealloc.podlife._rules import Rules
from nodealloc.podlife._stops import containers_of
from nodealloc.podspec import Pod, PullPolicy, RestartPolicy
from nodealloc.runtime import RunState

__all__ = ["Turn", "in_new_sandbox", "resizes", "starts", "stop_sandbox"]


@attrs.frozen(kw_only=True)
class Turn:
    """What all decisions of one plan share.

    Attributes:
        uid: Which pod.
        observed: What is known of it.
        now_s: The present.
        policy: How patient to be.
        rules: Where the kubelet is wrong.
        tries_again: False between a kubelet's looks.
        parts: Its preparations, in their order.
        is_at_parts: Whether one of them is being made ready.
    """

    uid: str
    observed: Observed
    now_s: float
    policy: LifePolicy
    rules: Rules
    tries_again: bool = True
    parts: tuple[str, ...] = ()
    is_at_parts: bool = False


def in_new_sandbox(
    turn: Turn, record: PodRecord, plan: PodPlan
) -> tuple[PodRecord, tuple[Step[Detail], ...]]:
    """End the sandboxes that will not do, then make one, and look for images meanwhile.

    By a kubelet's rules they are looked for once it is there.
    """
    old = [one.record.id for one in turn.observed.report.sandboxes if one.record.is_ready]
    if old:
        return record, tuple(stop_sandbox(turn.uid, one, turn.policy) for one in old)
    taken = {one.record.attempt for one in turn.observed.report.sandboxes}
    attempt = max(plan.attempt, record.sandbox_attempt)
    if attempt in taken:
        attempt += 1
    purges: tuple[str, ...] = ()
    if not turn.rules.keeps_init_progress:
        record, purges = _without_init(turn, record)
    step: Step[Detail] = Step(
        scope=("pod", turn.uid, "sandbox"),
        verb="run sandbox",
        detail=RunSandbox(
            attempt,
            record.edition,
            tuple(one.record.id for one in turn.observed.report.sandboxes),
            purges,
        ),
        subject=(attempt, record.edition),
        deadline_s=turn.policy.call_s,
    )
    looks = () if record.look is not None else _looks(turn, record, plan)
    return record.but(sandbox_attempt=attempt), (step, *looks)


def _looks(turn: Turn, record: PodRecord, plan: PodPlan) -> tuple[Step[Detail], ...]:
    """Look for images of containers that start in the sandbox; what has to be fetched waits for that."""
    return tuple(_pull(turn, record, name) for name in plan.starts if not _fetches(record, name))


def _fetches(record: PodRecord, name: str) -> bool:
    """Whether an image is fetched next, since it was looked for, or is fetched however many there are."""
    return name in record.images or pull_policy(containers_of(record.pod)[name]) is PullPolicy.ALWAYS


def _without_init(turn: Turn, record: PodRecord) -> tuple[PodRecord, tuple[str, ...]]:
    """By a kubelet's rules init containers leave no record behind, and all but the first no count."""
    names = [one.name for one in record.pod.init_containers]
    gone = tuple(
        one.record.id
        for one in turn.observed.report.containers
        if one.record.name in names and one.record.state is RunState.EXITED
    )
    if not gone:
        return record, ()
    kept = {name: number for name, number in record.attempts.items() if name not in names[1:]}
    return record.but(attempts=kept), gone


def stop_sandbox(uid: str, sandbox_id: str, policy: LifePolicy) -> Step[Detail]:
    """End one sandbox."""
    return Step(
        scope=("pod", uid, "sandbox", sandbox_id),
        verb="stop sandbox",
        detail=StopSandbox(sandbox_id),
        subject=sandbox_id,
        deadline_s=policy.call_s,
    )


def starts(
    turn: Turn, record: PodRecord, plan: PodPlan, /, *, only: Collection[str] | None = None
) -> tuple[PodRecord, tuple[Step[Detail], ...]]:
    """Fetch images, run hooks of what has started, and start the first container of those to be started.

    Images are looked for side by side, and fetched as many at a time as the policy says; one image is
    fetched for one container after the other, on all the node, so that the first serves them all. A
    container whose image is being fetched for the first time keeps those
    behind it waiting, so that the manifest's order does not depend on whose image comes first. One that
    failed is tried again after its back-off and keeps nobody waiting meanwhile. At a kubelet's pace an image
    is looked for once those before it have started, with each try. With `only`, others than these wait.
    """
    hooks = _post_start(turn, record)
    steps: list[Step[Detail]] = list(hooks)
    is_free = not hooks
    for name in plan.starts:
        if only is not None and name not in only:
            continue
        if any(one.name == name for one in record.stopping.values()):
            continue
        if record.look is not None and not is_free:
            break
        if record.look is not None and name in record.look.started:
            continue
        made = _made(turn, record, name, plan.sandbox_id)
        record = _counted_try(turn, record, name, made)
        has_failed = name in record.failures
        if not made and not record.images.get(name):
            steps.append(_pull(turn, record, name))
            is_free = is_free and has_failed
        elif is_free:
            # At a kubelet's pace what failed is tried at the next look, before those behind it.
            is_free = has_failed and record.look is None
            record, step = _start(turn, record, name, made, plan.sandbox_id)
            steps.append(step)
    return record, tuple(steps)


def resizes(turn: Turn, record: PodRecord, plan: PodPlan) -> tuple[PodRecord, tuple[Step[Detail], ...]]:
    """Give containers that run the resources that they are to have now.

    That this was begun is remembered first: an edit that comes before anybody knows whether it was done
    may ask for what they had.
    """
    steps: list[Step[Detail]] = []
    resized = record.resized
    definitions = record.definitions or Definitions.of(record.pod)
    for one in plan.steps:
        newest = turn.observed.report.newest(one.name) if one.resize else None
        if newest is None:
            continue
        cid, resources = newest.record.id, definitions.resources[one.name]
        steps.append(
            Step(
                scope=("pod", turn.uid, "resize", cid),
                verb="resize",
                detail=Resize(one.name, cid, resources, definitions.freed(newest.record, record.resized)),
                subject=(cid, resources),
                deadline_s=turn.policy.call_s,
            )
        )
        unsure = definitions.resizing(newest.record, record.resized)
        if resized.get(cid) != unsure:
            resized = extended(resized, cid, unsure)
    return record if resized is record.resized else record.but(resized=resized), tuple(steps)


def _post_start(turn: Turn, record: PodRecord) -> tuple[Step[Detail], ...]:
    """While one of them runs, nothing else of the pod starts: so a proxy can hold the others back."""
    names = {one.record.id: one.record.name for one in turn.observed.report.containers}
    running = set(turn.observed.running)
    return tuple(
        Step(
            scope=("pod", turn.uid, "hook", cid),
            verb="post-start",
            detail=Hook(HookKind.POST_START, names[cid], cid),
            subject=cid,
        )
        for cid, state in record.post_start.items()
        if state is HookState.WAITS and cid in running and cid not in record.stopping
    )


def _made(turn: Turn, record: PodRecord, name: str, sandbox_id: str) -> str:
    """An instance that was made for this start and has not run; "" for none, and at a kubelet's pace."""
    newest = turn.observed.report.newest(name)
    if (
        newest is None
        or (record.look is not None and not turn.rules.keeps_starts)
        or newest.record.state is not RunState.CREATED
        or newest.record.sandbox_id != sandbox_id
    ):
        return ""
    if record.definitions is not None and record.definitions.differs(newest.record, compares_all=True):
        return ""
    return newest.record.id


def _pull(turn: Turn, record: PodRecord, name: str) -> Step[Detail]:
    """Look for its image, or pull it; pulls wait in their scope, so that none holds a thread meanwhile."""
    scope: tuple[str, ...] = ("pod", turn.uid, "image", name)
    image = containers_of(record.pod)[name].image
    fetches = _fetches(record, name)
    if fetches:
        scope = ("images",) if turn.policy.pulls_at_once == 1 else ("images", asked_name(image))
    return Step(
        scope=scope,
        verb="pull",
        detail=Pull(name, image, turn.uid, fetches),
        subject=(name, image),
        deadline_s=turn.policy.pull_s,
    )


def _start(
    turn: Turn, record: PodRecord, name: str, made: str, sandbox_id: str
) -> tuple[PodRecord, Step[Detail]]:
    attempt = _attempt(turn, record, name, made)
    wanted = Starting(attempt=attempt, sandbox_id=sandbox_id)
    if record.starting.get(name) != wanted:
        if record.look is None:
            record = _counted(turn, record, name)
        record = record.but(
            starting=extended(record.starting, name, wanted),
            attempts=extended(record.attempts, name, max(attempt, record.attempts.get(name, -1))),
            stopped=reduced(record.stopped, name) if name in record.stopped else record.stopped,
        )
    only_makes = not made and turn.rules.keeps_starts and _runs_once(record.pod, name)
    step: Step[Detail] = Step(
        scope=("pod", turn.uid, "start", name),
        verb="make" if only_makes else "start",
        detail=Start(name, attempt, sandbox_id, made, record.edition, only_makes),
        subject=(name, attempt, record.edition),
        deadline_s=turn.policy.call_s,
    )
    return record, step


def _counted_try(turn: Turn, record: PodRecord, name: str, made: str) -> PodRecord:
    """At a kubelet's pace each look that tries a start counts as one, whatever comes of it.

    It has its number from the beginning: what a listing shows meanwhile may be what it made itself.
    """
    look = record.look
    if look is None or name in look.tried:
        return record
    tried = extended(look.tried, name, _attempt(turn, record, name, made))
    return _counted(turn, record, name).but(look=attrs.evolve(look, tried=tried))


def _counted(turn: Turn, record: PodRecord, name: str) -> PodRecord:
    """With a start of a container that ended: the one after its next end waits for a delay."""
    definitions = record.definitions or Definitions.of(record.pod)
    end, policy = turn.observed.ends.get(name), turn.policy.restarts
    answer = record.restarts.asked(
        name,
        definitions.counted_by(name, compares_all=turn.rules.follows_edits),
        policy,
        ended_s=record.ended[name][1] if name in record.ended else None,
        now_s=turn.now_s,
        exit=None if end is None else end.exit,
    )
    restarts = without_old_definitions(answer.restarts, name, policy, now_s=turn.now_s)
    return record if restarts is record.restarts else record.but(restarts=restarts)


def _attempt(turn: Turn, record: PodRecord, name: str, made: str) -> int:
    """The number of the instance that starts: that of one that was made, or was about to be, or the next.

    By each look of a kubelet it is the one that the try began with.
    """
    if record.look is not None and name in record.look.tried:
        return record.look.tried[name]
    intent = record.starting.get(name)
    newest = turn.observed.report.newest(name)
    if made and newest is not None:
        return newest.record.attempt
    if intent is None:
        return record.attempts.get(name, -1) + 1
    # As far as is known it was never made: its number stands, also where its sandbox has gone meanwhile.
    attempt = intent.attempt
    if newest is not None:
        attempt = max(attempt, newest.record.attempt + 1)
    if name in turn.observed.ends:
        attempt = max(attempt, turn.observed.ends[name].attempt + 1)
    return attempt


def _runs_once(pod: Pod, name: str) -> bool:
    """Whether a second instance of a container must not run after a first one, however that ended."""
    if any(one.name == name for one in pod.ephemeral_containers):
        return True
    if pod.restart_policy is not RestartPolicy.NEVER:
        return False
    return not any(one.name == name and one.restartable for one in pod.init_containers)
