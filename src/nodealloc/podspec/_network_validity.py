"""What an API server checks of the names and addresses of a pod, and of the ports that it takes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from nodealloc.errors import Fault
from nodealloc.podspec._checks import ip_address, subdomain

if TYPE_CHECKING:
    from nodealloc.podspec._fields import PodFields
    from nodealloc.podspec._model import Container
    from nodealloc.podspec._network import PodDnsConfig

__all__ = ["network_faults", "port_faults"]

_LONGEST: Final = 2048
"""Characters of all search domains, with blanks between them."""
_SEARCH: Final = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*", re.ASCII
)


def network_faults(pod: PodFields, /) -> Iterator[Fault]:
    """What is wrong with lines of /etc/hosts and resolv.conf, and with ports of the node.

    Source: Kubernetes ``pkg/apis/core/validation``.
    """
    for index, alias in enumerate(pod.host_aliases):
        for name in alias.hostnames:
            if what := subdomain(name):
                yield Fault(f"$.spec.hostAliases[{index}].hostnames", what)
    if pod.dns_config is not None:
        yield from _resolver("$.spec.dnsConfig", pod.dns_config)
    yield from _host_ports("$.spec.containers", pod.containers)
    for index, one in enumerate(pod.containers if pod.host_network else ()):
        yield from _own_ports(f"$.spec.containers[{index}].ports", one)
    for index, one in enumerate(pod.init_containers):
        # They run one after the other, so that two of them may take the same port.
        if len(one.ports) > 1:
            yield from _host_ports(f"$.spec.initContainers[{index}].ports", (one,))


def _resolver(path: str, found: PodDnsConfig) -> Iterator[Fault]:
    for index, server in enumerate(found.nameservers):
        if what := ip_address(server or "nothing"):
            yield Fault(f"{path}.nameservers[{index}]", what)
    for index, domain in enumerate(found.searches):
        if domain != "." and not _SEARCH.fullmatch(domain.removesuffix(".")):
            what = (
                f"{domain[:80]!r} is no domain; write lower-case letters, digits, '-', '_', '.' between parts"
            )
            yield Fault(f"{path}.searches[{index}]", what)
    length = len(" ".join(found.searches))
    if length > _LONGEST:
        what = f"they have {length} characters together, {_LONGEST} is the limit; leave some out"
        yield Fault(f"{path}.searches", what)


def _host_ports(path: str, containers: Sequence[Container]) -> Iterator[Fault]:
    ports = Counter(
        (port.host_ip, port.host_port, port.protocol)
        for container in containers
        for port in container.ports
        if port.host_port
    )
    for (_, number, protocol), count in ports.items():
        if count > 1:
            yield Fault(path, f"host port {number}/{protocol} is wanted {count} times")


def _own_ports(path: str, one: Container) -> Iterator[Fault]:
    for index, port in enumerate(one.ports):
        if port.host_port not in {0, port.container_port}:
            what = f"{port.host_port} is not {port.container_port}, which it is on the node's own network"
            yield Fault(f"{path}[{index}].hostPort", what)


def port_faults(where: str, one: Container, /) -> Iterator[Fault]:
    """Names that two ports of a container have.

    Source: Kubernetes ``pkg/apis/core/validation``.
    """
    for name, count in Counter(port.name for port in one.ports if port.name).items():
        if count > 1:
            yield Fault(f"{where}.ports", f"port name {name} stands here {count} times; once is enough")
