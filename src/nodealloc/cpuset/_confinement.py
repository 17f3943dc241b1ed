"""Values only: what a container is to be confined to, and what it is known to be confined to."""

from __future__ import annotations

from nodealloc import _attrs as attrs
from nodealloc.cpuset._errors import TargetGoneError
from nodealloc.dsw_asw import Cancelled, Done, Failed, Outcome, Plan, Step, View
from nodealloc.idset import CPUSet, NodeSet
from nodealloc.topology import Owner

__all__ = [
    "Applied",
    "CpusetStep",
    "Wanted",
    "doubted",
    "is_in_line",
    "plan_confinement",
    "settled_confinement",
]


@attrs.frozen(kw_only=True)
class Wanted:
    """What is wanted for one container.

    Attributes:
        target: The container, in the writer's words.
        owner: Who it is, for the allocator.
        cpus: Where it may run; empty while there is nowhere, and never written then.
        mems: Memory nodes, or None to leave them alone.
    """

    target: str
    owner: Owner
    cpus: CPUSet
    mems: NodeSet | None = None


@attrs.frozen(kw_only=True)
class Applied:
    """What a container was last known to be confined to.

    Attributes:
        cpus: As the writer wrote or read it.
        mems: The same; None where they cannot be told.
        checked: False when somebody else may have changed it since.
        checked_s: When it was written or read, on the engine's clock.
    """

    cpus: CPUSet
    mems: NodeSet | None = None
    checked: bool = True
    checked_s: float = 0.0


CpusetStep = Step[Wanted]


def is_in_line(wanted: Wanted, applied: Applied | None, /) -> bool:
    """Whether a container is known to be where it should."""
    return (
        applied is not None
        and applied.checked
        and applied.cpus == wanted.cpus
        and wanted.mems in (None, applied.mems)
    )


def plan_confinement(
    view: View[str, Wanted, Applied, Wanted], /, *, deadline_s: float, recheck_s: float | None = None
) -> Plan[Applied, Wanted]:
    """The next step for one container: look, write, or nothing.

    What nobody knows is read before anything is written, so that a restart
    writes nothing to a container that is as it should be. A write that takes
    CPUs away starts before those that add some: a shared container leaves the
    CPUs that another one is about to have for itself.

    Args:
        view: What is wanted, what is known, and the time.
        deadline_s: After so long a call counts as hung.
        recheck_s: What is in line is read again so long after it was; None for never.
    """
    wanted, applied = view.want, view.have
    if wanted is None:
        return Plan(have=None)
    if applied is None or not applied.checked:
        return Plan(steps=(_step("read", wanted, phase=0, deadline_s=deadline_s),))
    if is_in_line(wanted, applied):
        due_s = None if recheck_s is None else applied.checked_s + recheck_s
        if due_s is None or view.now_s < due_s:
            return Plan(again_at_s=due_s)
        return Plan(steps=(_step("read", wanted, phase=0, deadline_s=deadline_s),))
    if not wanted.cpus:
        return Plan()
    phase = int(not wanted.cpus <= applied.cpus)
    return Plan(steps=(_step("write", wanted, phase=phase, deadline_s=deadline_s),))


def settled_confinement(
    applied: Applied | None, step: CpusetStep, outcome: Outcome[Applied], /
) -> Applied | None:
    """What is known of a container after a step; None where nobody knows."""
    match outcome:
        case Done():
            known = attrs.evolve(outcome.result, checked_s=outcome.ended_s)
            if known.mems is None and applied is not None and step.verb == "write":
                return attrs.evolve(known, mems=applied.mems)
            return known
        case Failed():
            if isinstance(outcome.error, TargetGoneError):
                return None
            if applied is None or step.verb != "write":
                return applied
            # A write that failed half-way has left the old set or the new one.
            return attrs.evolve(applied, cpus=applied.cpus | step.detail.cpus, checked=False)
        case Cancelled(began_s=None):
            return applied
        case _:
            return None


def doubted(applied: Applied | None, /) -> Applied | None:
    """The same, to be read again before it is believed."""
    return None if applied is None else attrs.evolve(applied, checked=False)


def _step(verb: str, wanted: Wanted, *, phase: int, deadline_s: float) -> CpusetStep:
    return Step(
        scope=(wanted.target,),
        verb=verb,
        detail=wanted,
        phase=phase,
        deadline_s=deadline_s,
        subject=(wanted.cpus, wanted.mems),
    )
