"""Pure functions: how long a pod and its containers have to end, and who waits for whom."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from nodealloc._typed import typed
from nodealloc.podlife._rules import RIGHT, Rules
from nodealloc.podspec import Pod

__all__ = ["effective_grace_s", "kill_grace_s", "stop_timeout_s", "stops_after"]

_LEAST_S: Final = 2.0
"""What the kubelet gives at least to each container, whatever was asked."""


@typed
def effective_grace_s(
    before_s: float | None,
    /,
    *,
    own_s: float | None,
    deletion_s: float | None = None,
    override_s: float | None = None,
    rules: Rules = RIGHT,
) -> float:
    """How long a pod has to end, in seconds: the shortest that anybody ever asked for.

    Args:
        before_s: What was in force; None where nothing was.
        own_s: As the pod itself says; counts where nobody asked for less. None where it says nothing.
        deletion_s: As its deletion says; None where that says nothing.
        override_s: What somebody on the node asks for, such as an eviction.
        rules: `KUBELET` takes 0 for not set, and gives 1 s at least.

    Source: kubelet ``pod_workers.go``.
    """
    grace_s, is_asked = before_s, False
    for asked_s in (deletion_s, override_s):
        is_set = grace_s is not None and (rules.counts_zero_grace or grace_s != 0)
        if asked_s is not None and not (is_set and grace_s is not None and asked_s >= grace_s):
            grace_s, is_asked = asked_s, True
    if grace_s is None or (not rules.counts_zero_grace and grace_s == 0 and not is_asked):
        grace_s = own_s or 0.0
    return max(grace_s, 0.0 if rules.counts_zero_grace else 1.0)


def kill_grace_s(
    *, own_s: float | None, deletion_s: float | None = None, probe_s: float | None = None
) -> float:
    """How long one container has to end, in seconds, before anybody on the node asks for less.

    Args:
        own_s: As its pod says; None where it says nothing, which makes it 2 s.
        deletion_s: As the pod's deletion says, which comes first.
        probe_s: As the liveness or startup probe says that failed; None for another reason.

    Source: kubelet ``kuberuntime_container.go``.
    """
    if deletion_s is not None:
        return deletion_s
    if own_s is None:
        return _LEAST_S
    return own_s if probe_s is None else probe_s


@typed
def stop_timeout_s(grace_s: float, /, *spent_s: float, rules: Rules = RIGHT) -> float:
    """What is left for the container itself when hooks and waiting for others took their time, in seconds.

    Args:
        grace_s: All that it has.
        spent_s: What the hook took, then what waiting took.
        rules: `KUBELET` counts whole seconds only and gives 2 s at least, so
            that the whole takes longer than the grace.
    """
    if rules.keeps_deadline:
        return max(0.0, grace_s - sum(spent_s))
    return max(_LEAST_S, grace_s - sum(int(one) for one in spent_s))


@typed
def stops_after(
    pod: Pod, running: Collection[str], /, *, rules: Rules = RIGHT
) -> Mapping[str, frozenset[str]]:
    """From each container that runs to those that have to be gone before it is told to end.

    Main containers wait for nobody, a sidecar for all of them and for the
    sidecars behind it.

    Args:
        pod: Whose.
        running: Names of containers that run.
        rules: With `KUBELET` a sidecar waits for the next one only, so that one
            that does not run breaks the chain.

    Source: kubelet ``kuberuntime_termination_order.go``.
    """
    running = frozenset(running)
    mains = frozenset(one.name for one in pod.containers) & running
    after: dict[str, frozenset[str]] = dict.fromkeys(running, frozenset[str]())
    later: frozenset[str] = frozenset()
    for one in reversed([one for one in pod.init_containers if one.restartable]):
        if one.name in running:
            after[one.name] = mains | later
        if not rules.skips_stopped:
            later = frozenset({one.name}) & running
        elif one.name in running:
            later |= {one.name}
    return after
