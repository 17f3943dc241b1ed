"""Whose name servers a pod asks, what its hosts file says, and what it is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from nodealloc import _attrs as attrs
from nodealloc._typed import typed
from nodealloc.podlife._configuration._errors import SandboxConfigError
from nodealloc.podspec import DnsOption, DnsPolicy, Pod
from nodealloc.runtime import DnsConfig

if TYPE_CHECKING:
    from nodealloc.podlife._configuration._node import NodeSettings

__all__ = ["PodDns", "hostname_of", "hosts_file", "pod_dns"]

_MOST_SERVERS: Final = 3
_MOST_SEARCHES: Final = 32
_MOST_SEARCH_CHARS: Final = 2048
_LONGEST_SEARCH: Final = 253
_LONGEST_HOSTNAME: Final = 63
_LONGEST_KERNEL_NAME: Final = 64
_CLUSTER_OPTIONS: Final = ("ndots:5",)
_LOOPBACK: Final = "127.0.0.1"


@attrs.frozen(kw_only=True)
class PodDns:
    """What a pod's resolv.conf says, and what did not fit into it.

    Attributes:
        config: What it says.
        left_out: Name servers and domains that are beyond what resolvers take, in their order.
        lacks_cluster_dns: The pod asks for the cluster's name servers, and the node knows none.
    """

    config: DnsConfig
    left_out: tuple[str, ...] = ()
    lacks_cluster_dns: bool = False


@typed
def pod_dns(pod: Pod, node: NodeSettings, /, *, host_ips: Sequence[str] = ()) -> PodDns:
    """Name servers, domains and options of a pod.

    The pod's `dnsConfig` is added to what its policy gives; resolvers take 3 name
    servers, 32 domains and 2,048 characters of them.

    Args:
        pod: Whose.
        node: Where it is.
        host_ips: The node's addresses: where it has no resolver, a pod asks itself by one of each.

    Source: kubelet ``network/dns/dns.go``.
    """
    base, lacks = _by_policy(pod, node, host_ips)
    added = pod.dns_config
    servers, searches, options = base.servers, base.searches, base.options
    if added is not None:
        servers = _once((*servers, *added.nameservers))
        searches = _once((*searches, *added.searches))
        options = _merged(options, added.options)
    fitting = _fitting(searches)
    left_out = (*servers[_MOST_SERVERS:], *(one for one in searches if one not in fitting))
    return PodDns(
        config=DnsConfig(servers=servers[:_MOST_SERVERS], searches=fitting, options=options),
        left_out=left_out,
        lacks_cluster_dns=lacks,
    )


def _by_policy(pod: Pod, node: NodeSettings, host_ips: Sequence[str]) -> tuple[DnsConfig, bool]:
    policy = pod.dns_policy
    host = node.resolver or _itself(host_ips)
    if policy is DnsPolicy.NONE:
        return DnsConfig(), False
    wants_cluster = policy is DnsPolicy.CLUSTER_FIRST_WITH_HOST_NET or (
        policy is DnsPolicy.CLUSTER_FIRST and not pod.host_network
    )
    if not wants_cluster or not node.cluster_dns:
        return host, wants_cluster
    searches: tuple[str, ...] = node.resolver.searches if node.resolver else ()
    if domain := node.cluster_domain:
        searches = _once((f"{pod.namespace}.svc.{domain}", f"svc.{domain}", domain, *searches))
    return DnsConfig(servers=node.cluster_dns, searches=searches, options=_CLUSTER_OPTIONS), False


def _itself(host_ips: Sequence[str]) -> DnsConfig:
    """A resolver that finds no names."""
    servers = tuple("::1" if ":" in one else _LOOPBACK for one in host_ips)
    return DnsConfig(servers=servers or (_LOOPBACK,), searches=(".",))


def _once(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))


def _merged(had: Sequence[str], added: Sequence[DnsOption]) -> tuple[str, ...]:
    options: dict[str, str] = {}
    for text in had:
        name, _, value = text.partition(":")
        options[name] = value
    for one in added:
        options[one.name] = one.value or ""
    return tuple(f"{name}:{value}" if value else name for name, value in options.items())


def _fitting(searches: Sequence[str]) -> tuple[str, ...]:
    kept = [one for one in searches[:_MOST_SEARCHES] if len(one) <= _LONGEST_SEARCH]
    while kept and len(" ".join(kept)) > _MOST_SEARCH_CHARS:
        kept.pop()
    return tuple(kept)


def hostname_of(pod: Pod, node: NodeSettings, /) -> str:
    """What the kernel calls a pod's machine.

    Raises:
        SandboxConfigError: The whole name is longer than the kernel's 64 characters.

    Source: kubelet ``kubelet_pods.go`` and ``util.go``.
    """
    if pod.host_network:
        return node.hostname or node.name
    host, domain = _names(pod, node)
    if not (domain and pod.set_hostname_as_fqdn):
        return host
    whole = f"{host}.{domain}"
    if len(whole) > _LONGEST_KERNEL_NAME:
        raise SandboxConfigError(
            f"host name {whole} has {len(whole)} characters, the kernel takes {_LONGEST_KERNEL_NAME}; "
            "shorten hostname or subdomain, or leave out setHostnameAsFQDN"
        )
    return whole


def _names(pod: Pod, node: NodeSettings) -> tuple[str, str]:
    """Host name and domain, "" where it has none."""
    host = pod.hostname or pod.name
    if len(host) > _LONGEST_HOSTNAME:
        host = host[:_LONGEST_HOSTNAME].rstrip("-.")
    if not pod.subdomain:
        return host, ""
    return host, f"{pod.subdomain}.{pod.namespace}.svc.{node.cluster_domain}"


def hosts_file(pod: Pod, pod_ips: Sequence[str], node: NodeSettings, /) -> str:
    """What a pod's hosts file says: the node's own for a pod with its network, else its own names.

    The pod's aliases stand at the end.

    Args:
        pod: Whose.
        pod_ips: Its addresses.
        node: Where it is.

    Source: kubelet ``kubelet_pods.go``.
    """
    if pod.host_network:
        text = node.hosts if node.hosts.endswith("\n") or not node.hosts else node.hosts + "\n"
    else:
        host, domain = _names(pod, node)
        names = f"{host}.{domain}\t{host}" if domain else host
        own = "".join(f"{ip}\t{names}\n" for ip in pod_ips)
        text = f"{_LOCAL}{own}"
    aliases = "".join("\t".join((one.ip, *one.hostnames)) + "\n" for one in pod.host_aliases if one.hostnames)
    return f"{_OF_NODE if pod.host_network else _OF_POD}{text}{_ALIASES if aliases else ''}{aliases}"


_OF_POD: Final = "# Kubernetes-managed hosts file.\n"
_OF_NODE: Final = "# Kubernetes-managed hosts file (host network).\n"
"""By which programs know the file."""
_ALIASES: Final = "\n# Entries added by HostAliases.\n"
_LOCAL: Final = """127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
"""
