"""Laws of reading manifests, sound and broken."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given

from nodealloc.errors import DecodeError
from nodealloc.podspec import Json, Pod, effective_requests
from nodealloc.testing.strategies.podspec import BrokenManifest, broken_manifests, manifests, pods
from nodealloc.topology import ClaimKind, workload_of


@given(manifests())
def test_a_sound_manifest_is_read_whole(manifest: Mapping[str, Json]) -> None:
    """Every container and volume is there, and reading twice gives equal pods."""
    pod = Pod.from_manifest(manifest)
    spec = manifest["spec"]
    assert isinstance(spec, Mapping)
    for key, found in (
        ("containers", pod.containers),
        ("initContainers", pod.init_containers),
        ("volumes", pod.volumes),
    ):
        listed = spec.get(key, [])
        assert isinstance(listed, list)
        assert len(found) == len(listed)
    assert Pod.from_manifest(manifest) == pod


@given(broken_manifests())
def test_a_broken_manifest_is_refused_where_it_is_broken(broken: BrokenManifest) -> None:
    """The error names the path of the fault and nothing that is sound."""
    with pytest.raises(DecodeError) as caught:
        Pod.from_manifest(broken.manifest)
    assert broken.path in {fault.path for fault in caught.value.faults}
    assert all(fault.path.startswith(broken.path) for fault in caught.value.faults)


@given(pods(name="web"))
def test_a_pod_asks_at_least_what_each_container_asks(pod: Pod) -> None:
    """The effective request covers every container; claims come in the order of the containers."""
    effective = effective_requests(pod)
    for container in pod.all_containers:
        for resource, amount in container.requests.items():
            assert effective[resource] >= amount
    claims = workload_of(pod).claims
    assert [claim.owner.member for claim in claims] == [one.name for one in pod.all_containers]
    kinds = [claim.kind for claim in claims]
    assert kinds.count(ClaimKind.SIDECAR) == sum(one.restartable for one in pod.init_containers)
