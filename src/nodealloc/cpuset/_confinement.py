"""Values only: what a container is to be confined to, and what it is known to be confined to."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from nodealloc.dsw_asw import Step
from nodealloc.idset import CPUSet, NodeSet
from nodealloc.topology import Owner

__all__ = ["Applied", "CpusetStep", "Wanted", "is_in_line", "plan_confinement"]


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
    """

    cpus: CPUSet
    mems: NodeSet | None = None
    checked: bool = True


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
    wanted: Wanted | None, applied: Applied | None, deadline_s: float, /
) -> Sequence[CpusetStep]:
    """The next step for one container: look, write, or nothing.

    What nobody knows is read before anything is written, so that a restart
    writes nothing to a container that is as it should be. A write that takes
    CPUs away starts before those that add some: a shared container leaves the
    CPUs that another one is about to have for itself.
    """
    if wanted is None or is_in_line(wanted, applied):
        return ()
    if applied is None or not applied.checked:
        return (_step("read", wanted, phase=0, deadline_s=deadline_s),)
    if not wanted.cpus:
        return ()
    return (_step("write", wanted, phase=int(not wanted.cpus <= applied.cpus), deadline_s=deadline_s),)


def _step(verb: str, wanted: Wanted, *, phase: int, deadline_s: float) -> CpusetStep:
    return Step(
        scope=(wanted.target,),
        verb=verb,
        detail=wanted,
        phase=phase,
        deadline_s=deadline_s,
        subject=(wanted.cpus, wanted.mems),
    )
