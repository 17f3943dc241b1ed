"""IP addresses of pods and nodes, as they are told to whoever asks."""

from __future__ import annotations

import contextlib
import functools
import ipaddress

__all__ = ["ip_version", "told_addresses"]


@functools.lru_cache(maxsize=4096)
def ip_version(text: str, /) -> int:
    """4 or 6; the few addresses that a node has stand in every status.

    Raises:
        ValueError: It is no IP address.
    """
    return ipaddress.ip_address(text).version


@functools.lru_cache(maxsize=4096)
def told_addresses(found: tuple[str, ...], node_ips: tuple[str, ...], /) -> tuple[str, ...]:
    """One address of each family as it is usually written, the family of the node's first address first.

    What is no address is left out; one of IPv4 in the form of IPv6 is one of IPv4.

    Raises:
        ValueError: The node's first address is none.

    Source: kubelet ``kubelet_pods.go``.
    """
    first = ip_version(node_ips[0]) if node_ips else 4
    by_version: dict[int, str] = {}
    for text in found:
        with contextlib.suppress(ValueError):
            one = ipaddress.ip_address(text)
            plain = getattr(one, "ipv4_mapped", None) or one
            by_version.setdefault(plain.version, str(plain))
    return tuple(by_version[version] for version in (first, 10 - first) if version in by_version)
