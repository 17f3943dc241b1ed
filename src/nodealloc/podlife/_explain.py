"""A plan in words: a line for each container, and one for the sandbox where it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodealloc._typed import typed
from nodealloc.podfacts import Exited

if TYPE_CHECKING:
    from nodealloc.podlife._plan import ContainerStep, PodPlan

__all__ = ["explain_plan"]


@typed
def explain_plan(plan: PodPlan, /) -> tuple[str, ...]:
    """Say why each container of a pod is started, stopped or left, in the order of the plan's steps.

    Before them, where it is so, that the pod ends and that it gets a sandbox.
    """
    lines: list[str] = []
    if plan.makes_sandbox:
        lines.append(f"sandbox: attempt {plan.attempt} is made, {plan.sandbox_why}")
    elif plan.ends:
        lines.append("pod: all that lives of it is stopped")
    return (*lines, *map(_line, plan.steps))


def _line(step: ContainerStep) -> str:
    return f"{step.part.value} {step.name}: {_verb(step)}, {step.why.value}{_exit(step)}{_waits(step)}"


def _verb(step: ContainerStep) -> str:
    if step.stop is not None:
        return "stopped and started anew" if step.start else "stopped"
    if step.start:
        return "started"
    return "given other resources" if step.resize else "left"


def _exit(step: ContainerStep) -> str:
    if step.exit is None:
        return ""
    code = f"status {step.exit.code}" if isinstance(step.exit, Exited) else "an end that nobody saw"
    return f" ({code})"


def _waits(step: ContainerStep) -> str:
    if step.held is None:
        return ""
    until = "" if step.held.until_s is None else f" until {step.held.until_s:g} s"
    return f"; {step.held.reason} holds it{until}"
