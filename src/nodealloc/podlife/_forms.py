"""Pure functions: the form of a pod that is acted upon, as what is said of it changes."""

from __future__ import annotations

from collections.abc import Mapping

from nodealloc.podlife._record import PodRecord
from nodealloc.podlife._stops import containers_of
from nodealloc.podlife._wanted import PodWanted
from nodealloc.podspec import Pod

__all__ = ["as_wanted"]


def as_wanted(record: PodRecord, want: PodWanted, /) -> PodRecord:
    """With the pod as it is now, and the pokes that nobody answered."""
    if record.pod is not want.pod and record.pod != want.pod:
        images = _still_wanted(record, want.pod)
        record = record.but(pod=want.pod, edition=record.edition + 1, definitions=None, images=images)
    if record.pokes != want.pokes:
        poked = [name for name, number in want.pokes.items() if record.pokes.get(name) != number]
        names = () if "" in poked else tuple(poked)
        record = record.but(pokes=want.pokes, restarts=record.restarts.poked(names))
    return record


def _still_wanted(record: PodRecord, pod: Pod) -> Mapping[str, str]:
    """Images that were got, without those of containers that are to run from another one now."""
    if not record.images:
        return record.images
    before, now = containers_of(record.pod), containers_of(pod)
    return {
        name: image
        for name, image in record.images.items()
        if name in before and name in now and before[name].image == now[name].image
    }
