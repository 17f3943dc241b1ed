"""What is pod-shaped in admission: a pod as a workload of claims."""

from __future__ import annotations

from nodealloc._typed import trusting, typed_on_error
from nodealloc.errors import ConfigurationError
from nodealloc.podspec import Pod, QosClass
from nodealloc.topology._claims import Claim, ClaimKind, Owner, Workload

__all__ = ["workload_of"]

_KEPT = 8
"""Workloads that are kept: a scheduler asks many nodes about one pod, an agent asks again after a refusal.

More would keep pods that nobody else has any more, until they are thrown away while somebody waits.
"""

_recent: dict[int, tuple[Pod, Workload]] = {}
"""By the identity of the pod, which stands beside it so that nothing else can have the same."""


@typed_on_error
def workload_of(pod: Pod, /) -> Workload:
    """The claims of a pod's containers, in the order in which they start.

    Requests are what is claimed. Exclusive resources need QoS class Guaranteed.
    A container may reuse what the plain init containers before it held; a
    sidecar, which never ends, lends nothing.

    Raises:
        ConfigurationError: The pod has no container, or no uid.

    Source: kubelet ``cm/cpumanager/policy_static.go`` and
    ``cm/memorymanager/policy_static.go``.
    """
    known = _recent.get(id(pod))
    if known is not None:
        return known[1]
    made = _workload_of(pod)
    if len(_recent) >= _KEPT:
        _recent.clear()
    _recent[id(pod)] = pod, made
    return made


def _workload_of(pod: Pod) -> Workload:
    if not pod.containers:
        raise ConfigurationError(f"pod {pod.full_name} has no containers; a pod runs at least one")
    if not pod.uid:
        raise ConfigurationError(
            f"pod {pod.full_name} has no uid; give it one of its own, or the next one without "
            "would be taken for it"
        )
    exclusive, uid, settings = pod.qos is _GUARANTEED, pod.uid, pod.annotations
    claims: list[Claim] = []
    ended: tuple[str, ...] = ()
    before = len(pod.init_containers)
    for container in pod.init_containers + pod.containers if before else pod.containers:
        name, kind = container.name, _MAIN
        if len(claims) < before:
            kind = _SIDECAR if container.restartable else _INIT
        claims.append(
            _claim(
                owner=_owner(uid, name),
                amounts=container.requests,
                kind=kind,
                exclusive=exclusive,
                reuse=ended,
                settings=settings,
            )
        )
        if kind is _INIT:
            ended += (name,)
    if len(claims) > 1 and len({claim.owner.member for claim in claims}) != len(claims):
        return Workload(key=uid, claims=tuple(claims))  # says what is wrong
    return _workload(key=uid, claims=tuple(claims))


# All that claims have has been looked at as the pod's.
_claim, _owner, _workload = trusting(Claim), trusting(Owner), trusting(Workload)

# Members of an enumeration are slow to look up before Python 3.12.
_INIT, _SIDECAR, _MAIN = ClaimKind
_GUARANTEED = QosClass.GUARANTEED
