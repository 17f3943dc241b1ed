"""What an API server refuses of resolvers, ports of the node, and words of a security context."""

from __future__ import annotations

from typing import Any

import pytest

from nodealloc.errors import DecodeError
from nodealloc.podspec import Pod, api_faults

LONG = ".".join(["a" * 63] * 3)
PORT = {"containerPort": 80, "hostPort": 8080}


def _pod(**spec: Any) -> Pod:
    """A pod of one container."""
    whole = {"containers": [{"name": "app", "image": "i"}], **spec}
    return Pod.from_manifest({"metadata": {"name": "web"}, "spec": whole})


def _faults(**spec: Any) -> list[str]:
    return [one.path.removeprefix("$.spec.") for one in api_faults(_pod(**spec))]


@pytest.mark.parametrize(
    ("config", "where"),
    [
        ({"searches": ["a.example", "b_c.", "."]}, None),
        ({"searches": ["A"]}, "searches[0]"),
        ({"searches": ["a", ""]}, "searches[1]"),
        ({"searches": ["a.."]}, "searches[0]"),
        ({"searches": ["a" * 254]}, "searches[0]"),
        ({"searches": [LONG] * 10 + ["a" * 127]}, None),
        ({"searches": [LONG] * 10 + ["a" * 129]}, "searches"),
        ({"nameservers": ["fe80::1", "192.0.2.1"]}, None),
        ({"nameservers": ["fe80::1%eth0"]}, "nameservers[0]"),
    ],
)
def test_a_resolver_is_held_to_what_it_can_read(config: dict[str, Any], where: str | None) -> None:
    """2048 characters of search domains in all; addresses have no zone."""
    assert _faults(dnsConfig=config) == ([] if where is None else [f"dnsConfig.{where}"])


def test_an_alias_has_no_zone() -> None:
    """The fault is the reader's."""
    assert _faults(hostAliases=[{"ip": "fe80::1"}]) == []
    with pytest.raises(DecodeError, match=r"has a zone.*hostAliases\[0\]\.ip"):
        _pod(hostAliases=[{"ip": "fe80::1%eth0"}])


def test_init_containers_take_ports_one_after_the_other() -> None:
    """One of them takes each port once; the next one may take it too."""
    first, second = ({"name": name, "image": "i", "ports": [PORT]} for name in ("first", "second"))
    assert _faults(initContainers=[first, second]) == []
    both = {"name": "first", "image": "i", "ports": [PORT, {**PORT, "containerPort": 81}]}
    assert _faults(initContainers=[second, both]) == ["initContainers[1].ports"]


@pytest.mark.parametrize(
    ("context", "where"),
    [
        ({"supplementalGroupsPolicy": "Strict"}, None),
        ({"supplementalGroupsPolicy": "Both"}, "supplementalGroupsPolicy"),
        ({"supplementalGroupsPolicy": ""}, "supplementalGroupsPolicy"),
        ({"seLinuxChangePolicy": "MountOption"}, None),
        ({"seLinuxChangePolicy": "Never"}, "seLinuxChangePolicy"),
        ({"fsGroupChangePolicy": "OnRootMismatch"}, None),
        ({"fsGroupChangePolicy": ""}, "fsGroupChangePolicy"),
        ({"sysctls": [{"name": "a" * 253, "value": "1"}]}, None),
        ({"sysctls": [{"name": "a" * 254, "value": "1"}]}, "sysctls[0].name"),
        ({"sysctls": [{"name": "a.b", "value": "1"}, {"name": "a/b", "value": "1"}]}, None),
        ({"appArmorProfile": {"type": "Localhost", "localhostProfile": "a" * 4095}}, None),
        (
            {"appArmorProfile": {"type": "Localhost", "localhostProfile": "a" * 4096}},
            "appArmorProfile.localhostProfile",
        ),
        (
            {"appArmorProfile": {"type": "Localhost", "localhostProfile": "a "}},
            "appArmorProfile.localhostProfile",
        ),
    ],
)
def test_words_and_names_of_a_security_context(context: dict[str, Any], where: str | None) -> None:
    """Each refused one beside its nearest right neighbour."""
    assert _faults(securityContext=context) == ([] if where is None else [f"securityContext.{where}"])


def test_a_profile_of_a_container_is_looked_at_too() -> None:
    """As that of its pod."""
    context = {"appArmorProfile": {"type": "Localhost", "localhostProfile": " a"}}
    found = _faults(containers=[{"name": "app", "image": "i", "securityContext": context}])
    assert found == ["containers[0].securityContext.appArmorProfile.localhostProfile"]


@pytest.mark.parametrize(
    ("overhead", "where"),
    [
        ({"cpu": "1", "hugepages-2Mi": "2Mi"}, []),
        ({"memory": "1Gi", "hugepages-2Mi": "2Mi"}, []),
        ({"example.com/gpu": "1"}, []),
        ({"hugepages-2Mi": "2Mi"}, ["overhead"]),
    ],
)
def test_an_overhead_of_huge_pages_is_one_of_cpu_or_memory_too(
    overhead: dict[str, str], where: list[str]
) -> None:
    """As what a container asks for."""
    assert _faults(overhead=overhead) == where


def test_only_containers_that_stay_have_the_ports_of_their_node() -> None:
    """On the node's own network; what an init container says there is looked at by nobody."""
    first = {"name": "first", "image": "i", "ports": [PORT]}
    assert _faults(hostNetwork=True, initContainers=[first]) == []
    assert _faults(hostNetwork=True, containers=[first]) == ["containers[0].ports[0].hostPort"]
    assert _faults(hostNetwork=True, containers=[{**first, "ports": [{**PORT, "hostPort": 80}]}]) == []
