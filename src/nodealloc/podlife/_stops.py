"""Pure functions: which containers are told to end now, which run their hook first, which wait for others."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from nodealloc import _attrs as attrs
from nodealloc._frozen import extended
from nodealloc.dsw_asw import Step
from nodealloc.podlife._details import Detail, Hook, HookKind, LifePolicy, StopContainer
from nodealloc.podlife._record import HookState, PodRecord
from nodealloc.podlife._rules import Rules
from nodealloc.podspec import Container, Pod
from nodealloc.runtime import ContainerRecord

__all__ = ["Due", "Stops", "containers_of", "left_to_end_s", "steps_to_stop"]


@attrs.frozen(kw_only=True)
class Due:
    """A container that has to end.

    Attributes:
        record: It.
        deadline_s: When it has ended.
        grace_s: How long it has in all.
        after: Names of those that have to be gone before it is told.
    """

    record: ContainerRecord
    deadline_s: float
    grace_s: float
    after: Collection[str] = ()


@attrs.frozen(kw_only=True)
class Stops:
    """What to do about containers that have to end.

    Attributes:
        record: The pod's, with hooks that were begun.
        steps: What to do now.
        again_at_s: When to look again; None where nothing depends on time.
    """

    record: PodRecord
    steps: tuple[Step[Detail], ...]
    again_at_s: float | None


def containers_of(pod: Pod, /) -> Mapping[str, Container]:
    """Every container of a pod by its name."""
    return {one.name: one for one in (*pod.all_containers, *pod.ephemeral_containers)}


def steps_to_stop(
    uid: str,
    record: PodRecord,
    due: Collection[Due],
    /,
    *,
    now_s: float,
    policy: LifePolicy,
    rules: Rules,
    doubtful: Collection[str] = (),
) -> Stops:
    """Run hooks, then stop containers in their order; stop all once only the kept part of the grace is left.

    Args:
        uid: Whose.
        record: What is remembered of the pod.
        due: Who has to end; all of them run.
        now_s: The present.
        policy: How much of a grace is kept for the container itself.
        rules: `keeps_deadline`.
        doubtful: Names of containers that may run besides: whoever waits for them waits.
    """
    # A kubelet keeps nothing of the grace, and gives that time on top of it.
    more_s = 0.0 if rules.keeps_deadline else policy.term_s
    named = containers_of(record.pod)
    running = {*(one.record.name for one in due), *doubtful}
    steps: list[Step[Detail]] = []
    moments: list[float] = []
    hooks = record.pre_stop
    for one in due:
        cid, name = one.record.id, one.record.name
        told_s = one.deadline_s - (policy.kept_s(one.grace_s) if rules.keeps_deadline else 0.0)
        container = named.get(name)
        hook = None if container is None or container.lifecycle is None else container.lifecycle.pre_stop
        if hook is not None and hooks.get(cid, HookState.WAITS) is HookState.WAITS and now_s < told_s:
            hooks = extended(hooks, cid, HookState.WAITS)
            steps.append(_hook(uid, name, cid, told_s))
            moments.append(told_s)
            continue
        if now_s < told_s and running & frozenset(one.after):
            moments.append(told_s)
            continue
        steps.append(_stop(uid, one, policy))
        late_s = one.deadline_s + more_s + policy.late_s
        if now_s < late_s:
            moments.append(late_s)
        elif rules.keeps_deadline:
            steps.append(_stop(uid, one, policy, kills=True))
    return Stops(
        record=record.but(pre_stop=hooks),
        steps=tuple(steps),
        again_at_s=min(moments, default=None),
    )


def left_to_end_s(detail: StopContainer, record: PodRecord | None, now_s: float) -> float:
    """How long a container has from now, as the call that asks it to end begins.

    A call that had to wait may begin after one for a shorter grace, and then leaves no more than that one.
    """
    if detail.kills:
        return 0.0
    until_s = detail.until_s
    if record is not None and record.deadline_s is not None:
        until_s = min(until_s, record.deadline_s)
    return max(0.0, until_s - now_s)


def _hook(uid: str, name: str, cid: str, until_s: float) -> Step[Detail]:
    detail = Hook(HookKind.PRE_STOP, name, cid, until_s)
    return Step(scope=("pod", uid, "hook", cid), verb="pre-stop", detail=detail, subject=cid)


def _stop(uid: str, due: Due, policy: LifePolicy, *, kills: bool = False) -> Step[Detail]:
    """One scope for each deadline, so that a shorter one does not wait for the call with a longer one."""
    cid = due.record.id
    detail = StopContainer(due.record.name, cid, due.deadline_s, kills, due.grace_s)
    return Step(
        scope=("pod", uid, "kill" if kills else "stop", cid, due.deadline_s),
        verb="kill" if kills else "stop",
        detail=detail,
        deadline_s=max(due.grace_s, 0.0) + policy.call_s,
        subject=cid,
    )
