"""Are the ports of the node free that the pod takes for itself."""

from __future__ import annotations

from collections.abc import Iterable

from nodealloc._typed import typed
from nodealloc.admission._rules import Rules
from nodealloc.admission._verdicts import ADMITTED
from nodealloc.podfacts import HostPort, NodeView, PodOnNode, host_ports_of
from nodealloc.podfacts._view import host_port_of, host_ports_wanted
from nodealloc.podspec import ContainerPort, Pod
from nodealloc.verdicts import Admitted, NotYet, Refused

__all__ = ["host_ports"]


@typed
def host_ports(pod: Pod, view: NodeView, /, *, rules: Rules) -> Admitted | Refused | NotYet:
    """Whether no other pod takes a host port that this one takes; an ending one makes it *not yet*.

    Args:
        pod: Who wants to come in.
        view: The node, with everybody who is in.
        rules: `counts_sidecar_ports`: whether ports of sidecars count.

    Source: Kubernetes ``scheduler/framework/plugins/nodeports``; waiting for
    pods that end is ours.
    """
    wanted = host_ports_wanted(pod, sidecars=rules.counts_sidecar_ports)
    if not wanted:
        return ADMITTED
    ending: tuple[PodOnNode, HostPort] | None = None
    for one in view.pods.values():
        found = _clash(wanted, _taken(one, rules)) if one.host_ports else None
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


def _taken(one: PodOnNode, rules: Rules) -> frozenset[HostPort]:
    if rules.counts_sidecar_ports or not any(each.ports for each in one.pod.init_containers):
        return one.host_ports
    return one.host_ports - (host_ports_of(one.pod) - host_ports_of(one.pod, sidecars=False))


def _clash(wanted: Iterable[ContainerPort], taken: frozenset[HostPort]) -> HostPort | None:
    """The first of the ports that a pod wants, in its own order, which another one has."""
    numbers = {one.port for one in taken}
    for port in wanted:
        if port.host_port in numbers:
            asked = host_port_of(port)
            for other in taken:
                if (
                    asked.port == other.port
                    and asked.transport is other.transport
                    and (asked.address is None or other.address is None or asked.address == other.address)
                ):
                    return asked
    return None
