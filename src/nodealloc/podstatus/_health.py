"""Decide which containers have started and are ready, from what probes have said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nodealloc import _attrs as attrs
from nodealloc.podfacts import ContainerStatus
from nodealloc.podspec import Container, Probe
from nodealloc.podstatus._containers import ContainerStatuses, init_has_succeeded, runs
from nodealloc.podstatus._observed import Health
from nodealloc.podstatus._rules import Rules

__all__ = ["with_health"]

_NOTHING = Health()


@attrs.frozen
class _Asked:
    """What is known of one pod's probes."""

    health: Mapping[str, Health]
    previous: Mapping[str, ContainerStatus]
    rules: Rules
    are_probed: bool


def with_health(
    told: ContainerStatuses,
    containers: Mapping[str, Container],
    health: Mapping[str, Health],
    rules: Rules,
    /,
    *,
    previous: Sequence[ContainerStatus] = (),
    are_probed: bool = True,
) -> ContainerStatuses:
    """The same statuses with what follows from probes; ephemeral containers have none.

    Args:
        told: Statuses of a pod's containers.
        containers: What they are, by name.
        health: Verdicts, by the runtime's id.
        rules: Whose.
        previous: What was told last.
        are_probed: Whether somebody probes the pod by now; only a kubelet's answer depends on it.

    Source: kubelet ``prober_manager.go``.
    """
    asked = _Asked(health, {one.name: one for one in previous}, rules, are_probed)
    return attrs.evolve(
        told,
        init=tuple(_init(one, containers[one.name], asked) for one in told.init),
        main=tuple(_main(one, containers[one.name], asked) for one in told.main),
    )


def _init(status: ContainerStatus, container: Container, asked: _Asked) -> ContainerStatus:
    if container.restartable:
        return _main(status, container, asked)
    ready = status.ready or init_has_succeeded(status.state, asked.rules)
    return _with(status, started=_started(status, container, asked), ready=ready)


def _main(status: ContainerStatus, container: Container, asked: _Asked) -> ContainerStatus:
    started = _started(status, container, asked)
    if not started:
        ready = status.ready and not asked.rules.running_is_ready
        return _with(status, started=started, ready=ready)
    verdict, before = _verdicts(status, asked)
    if verdict.readiness is None and asked.rules.keeps_health and before is not None and before.ready:
        return _with(status, started=True, ready=True)
    ready = verdict.readiness is True or not _has(container.readiness_probe, asked)
    return _with(status, started=True, ready=ready)


def _with(status: ContainerStatus, *, started: bool, ready: bool) -> ContainerStatus:
    is_same = status.started is started and status.ready is ready
    return status if is_same else attrs.evolve(status, started=started, ready=ready)


def _started(status: ContainerStatus, container: Container, asked: _Asked) -> bool:
    if not runs(status):
        return False
    verdict, before = _verdicts(status, asked)
    if verdict.startup is not None:
        return verdict.startup
    if not _has(container.startup_probe, asked):
        return True
    return asked.rules.keeps_health and before is not None and before.started is True


def _verdicts(status: ContainerStatus, asked: _Asked) -> tuple[Health, ContainerStatus | None]:
    """On this instance; and what was told of the same instance before."""
    full = status.container_id or ""
    before = asked.previous.get(status.name)
    is_same = before is not None and before.container_id == full and runs(before)
    return asked.health.get(full.partition("://")[2], _NOTHING), before if is_same else None


def _has(probe: Probe | None, asked: _Asked) -> bool:
    return probe is not None and (asked.rules.asks_spec or asked.are_probed)
