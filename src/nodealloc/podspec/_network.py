"""Values only: ports, names and name servers of a pod."""

from __future__ import annotations

from nodealloc import _attrs as attrs
from nodealloc._typed import typed_fields
from nodealloc._wire import wire
from nodealloc.podspec._checks import ip_address, maybe, one_of, port, port_name, whole_port

__all__ = ["ContainerPort", "DnsOption", "HostAlias", "PodDnsConfig"]


@typed_fields
@attrs.frozen(kw_only=True)
class ContainerPort:
    """A port on which a container listens.

    Attributes:
        container_port: In the pod, 1 to 65535.
        host_port: On the node; 0 for none.
        host_ip: Which of the node's addresses; "" for all.
        protocol: `TCP`, `UDP` or `SCTP`.
        name: For probes; "" for none.
    """

    container_port: int = attrs.field(default=0, metadata=wire(required=True, check=whole_port))
    host_port: int = attrs.field(default=0, metadata=wire(check=port))
    host_ip: str = attrs.field(default="", metadata=wire("hostIP", check=ip_address))
    protocol: str = attrs.field(default="TCP", metadata=wire(check=one_of("TCP", "UDP", "SCTP"), unset=""))
    name: str = attrs.field(default="", metadata=wire(check=maybe(port_name)))


@typed_fields
@attrs.frozen(kw_only=True)
class DnsOption:
    """One option of a resolver.

    Attributes:
        name: As resolv.conf has it.
        value: None for an option without one.
    """

    name: str = attrs.field(default="", metadata=wire(required=True))
    value: str | None = None


@attrs.frozen(kw_only=True)
class PodDnsConfig:
    """What is added to a pod's resolv.conf.

    Attributes:
        nameservers: IP addresses.
        searches: Domains.
        options: Of the resolver.
    """

    nameservers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[DnsOption, ...] = ()


@attrs.frozen(kw_only=True)
class HostAlias:
    """A line of a pod's /etc/hosts.

    Attributes:
        ip: Address.
        hostnames: That lead to it.
    """

    ip: str = attrs.field(default="", metadata=wire(required=True, check=ip_address))
    hostnames: tuple[str, ...] = ()
