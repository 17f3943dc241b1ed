"""A fake and a check for whoever tells which pods are on a node.

>>> pods = FakePods()
>>> pods.put(Pod(uid="web"))
>>> check_pod_source(pods, "web")
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from nodealloc import _attrs as attrs
from nodealloc.podfacts import PodLife, PodSighting, PodSource
from nodealloc.podspec import Pod
from nodealloc.testing._wording import in_words

__all__ = ["FakePods", "check_pod_source"]


@attrs.define
class FakePods:
    """A `PodSource` that a test fills."""

    sightings: dict[str, PodSighting] = attrs.field(factory=dict[str, PodSighting])
    ready: bool = True

    def put(self, pod: Pod, life: PodLife = PodLife.WANTED, /) -> None:
        """A pod is there."""
        self.sightings[pod.uid] = PodSighting(pod, life)

    def uids(self) -> Iterable[str]:
        """Every pod that was put."""
        return tuple(self.sightings)

    def get(self, uid: str, /) -> PodSighting | None:
        """What was put."""
        return self.sightings.get(uid)

    def is_ready(self) -> bool:
        """As the test says."""
        return self.ready


@in_words
def check_pod_source(source: PodSource, uid: str, /, expected: Collection[str] | None = None) -> None:
    """Hold a `PodSource` that is ready to its promises.

    Args:
        source: To check.
        uid: Of a pod that it knows.
        expected: Uids of all pods that it knows; None where nobody can say. Without them a
            source that lists some of its pods passes.
    """
    assert source.is_ready(), "give a source that knows every pod by now"
    listed = set(source.uids())
    assert uid in listed, f"{uid} is known and not listed"
    right = listed if expected is None else set(expected)
    assert listed == right, f"it knows {sorted(right)}, and lists {sorted(listed)}"
    assert set(source.uids()) == listed, f"{len(listed)} are listed, and others when it is asked again"
    for one in source.uids():
        sighting = source.get(one)
        assert sighting is not None, f"{one} is listed and not known"
        assert sighting.pod.uid == one, f"asked for {one}, got {sighting.pod.uid}"
        assert source.get(one) == sighting, f"{one}: asking again gives another answer"
    assert source.get("no such pod") is None, "an unknown pod has ended: None"
