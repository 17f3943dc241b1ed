"""Volumes of pods, by a plugin in memory."""

from __future__ import annotations

from typing import assert_type

from nodealloc.dsw_asw import InlineExecutor
from nodealloc.podfacts import PodSource
from nodealloc.testing.podfacts import FakePods
from nodealloc.testing.volumes import FakeClaims, FakeHost, claiming_pod
from nodealloc.volumes import ClaimResolver, Plugin, VolumeManager

host, pods = FakeHost(), FakePods()
plugins: list[Plugin] = [host]
source: PodSource = pods
claims: ClaimResolver = FakeClaims({"data": host.disk("disk-1")})
manager = VolumeManager(plugins, pods=source, claims=claims, executor=InlineExecutor())
pods.put(claiming_pod("u", "data"))
manager.pod_changed("u")
while manager.has_work:
    manager.reconcile()
assert_type(manager.volumes_of("u")[0].path, str)
assert host.mounted() == {"u": {"example.com/disk/disk-1"}}
