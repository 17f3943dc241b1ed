"""A source of one's own beside a folder, and what came of both."""

from __future__ import annotations

from typing import assert_type

from nodealloc.dsw_asw import Cancel
from nodealloc.podsources import KUBELET, MergedUpdates, PodSources, PodUpdate, Reading, Source, merge_update
from nodealloc.podspec import Container, Pod


class Watch:
    """Knows one pod."""

    def read(self, _cancel: Cancel, /) -> Reading:
        """All of them."""
        return Reading(pods=[Pod(uid="u", name="web", containers=(Container(name="app"),))])


watch: Source = Watch()
sources = PodSources({"api": watch}, rules=KUBELET)
while not sources.is_ready():
    sources.reconcile()
    sources.wait_for_work(1.0)
assert_type([record.value.name for record in sources.pods.snapshot().values()], list[str])
assert [record.value.name for record in sources.pods.snapshot().values()] == ["web"]
sources.stop()
came = merge_update(MergedUpdates(), PodUpdate(source="api"))
assert_type(came.merged, MergedUpdates)
assert came.merged.has_heard(["api"])
