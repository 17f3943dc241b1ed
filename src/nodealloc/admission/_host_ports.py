"""Are the ports of the node free that the pod takes for itself."""

from __future__ import annotations

from collections.abc import Iterable

from nodealloc._typed import typed
from nodealloc.admission._rules import Rules
from nodealloc.admission._verdicts import ADMITTED
from nodealloc.podfacts import HostPort, NodeView, PodOnNode, host_ports_of
from nodealloc.podspec import Pod
from nodealloc.verdicts import Admitted, NotYet, Refused

__all__ = ["host_ports"]


@typed
def host_ports(pod: Pod, view: NodeView, /, *, rules: Rules) -> Admitted | Refused | NotYet:
    """Whether no other pod takes a host port that this one takes; an ending one makes it *not yet*.

    Source: Kubernetes ``scheduler/framework/plugins/nodeports``; waiting for
    pods that end is ours.
    """
    wanted = _wanted(pod, sidecars=rules.counts_sidecar_ports)
    if not wanted:
        return ADMITTED
    ending: tuple[PodOnNode, HostPort] | None = None
    for one in view.pods.values():
        taken = _taken(one, rules)
        found = _clash(wanted, taken) if taken else None
        if found is None:
            continue
        if not one.state.is_ending:
            return Refused(
                reason="NodePorts",
                message="Predicate NodePorts failed: "
                "node(s) didn't have free ports for the requested pod ports",
                figures={"port": found.port, "transport": found.transport.value, "holder": one.pod.full_name},
            )
        ending = ending or (one, found)
    if ending is None:
        return ADMITTED
    holder, port = ending
    who = holder.pod.full_name
    return NotYet(
        blocker=who,
        message=f"{who} still holds host port {port.port}/{port.transport.value}, and is ending",
    )


_LAST: list[tuple[Pod, bool, frozenset[HostPort]]] = []
"""The pod that was asked about last: one pod is asked about on thousands of nodes."""


def _wanted(pod: Pod, *, sidecars: bool) -> frozenset[HostPort]:
    last = _LAST[-1] if _LAST else None
    if last is not None and last[0] is pod and last[1] is sidecars:
        return last[2]
    found = host_ports_of(pod, sidecars=sidecars)
    # One item, replaced in one step, so that threads at worst work something out again.
    _LAST[:] = [(pod, sidecars, found)]
    return found


def _taken(one: PodOnNode, rules: Rules) -> frozenset[HostPort]:
    if rules.counts_sidecar_ports or not one.host_ports:
        return one.host_ports
    return one.host_ports - (host_ports_of(one.pod) - host_ports_of(one.pod, sidecars=False))


def _clash(wanted: Iterable[HostPort], taken: frozenset[HostPort]) -> HostPort | None:
    for port in wanted:
        for other in taken:
            if (
                port.port == other.port
                and port.transport is other.transport
                and (port.address is None or other.address is None or port.address == other.address)
            ):
                return port
    return None
