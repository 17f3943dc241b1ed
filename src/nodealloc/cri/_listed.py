"""Listings one after the other: what did not change since the last one is not read again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Self

from nodealloc import _attrs as attrs
from nodealloc.cri import _codec as codec
from nodealloc.runtime import ContainerRecord, Listing, PodListing, SandboxRecord

__all__ = ["Listed"]


@attrs.frozen(kw_only=True, eq=False)
class Listed:
    """What the last listing had; nothing of a record but its state changes in its life.

    Attributes:
        boxes: Sandboxes by id.
        runs: Containers by id.
        pods: By uid.
    """

    boxes: Mapping[str, SandboxRecord] = attrs.field(factory=dict[str, SandboxRecord])
    runs: Mapping[str, ContainerRecord] = attrs.field(factory=dict[str, ContainerRecord])
    pods: Mapping[str, PodListing] = attrs.field(factory=dict[str, PodListing])

    def read(self, boxes: bytes, runs: bytes, /, *, now_unix_s: float) -> tuple[Self, Listing]:
        """The next one.

        Args:
            boxes: The answer to `ListPodSandbox`.
            runs: The answer to `ListContainers`.
            now_unix_s: The present.
        """
        sandboxes, odd = codec.decode_sandboxes(boxes, self.boxes)
        containers, odd_runs = codec.decode_containers(runs, self.runs)
        by_box, by_run = {one.id: one for one in sandboxes}, {one.id: one for one in containers}
        is_odd = odd or odd_runs or len({*by_box, *by_run}) != len(sandboxes) + len(containers)
        if is_odd:
            listing = Listing.of(sandboxes, containers, oddities=(*odd, *odd_runs), now_unix_s=now_unix_s)
        else:
            listing = Listing(pods=self._by_pod(sandboxes, containers, now_unix_s))
        return type(self)(boxes=by_box, runs=by_run, pods=listing.pods), listing

    def _by_pod(
        self, sandboxes: Iterable[SandboxRecord], containers: Iterable[ContainerRecord], now_unix_s: float
    ) -> dict[str, PodListing]:
        """The listing of each pod: the very same as before where its records are."""
        found: dict[str, tuple[list[SandboxRecord], list[ContainerRecord]]] = {}
        for box in sandboxes:
            found.setdefault(box.pod.uid, ([], []))[0].append(box)
        for run in containers:
            found.setdefault(run.pod.uid, ([], []))[1].append(run)
        pods: dict[str, PodListing] = {}
        for uid, (boxes, runs) in found.items():
            before = self.pods.get(uid)
            if before is None or before.oddities or not _are(before, boxes, runs):
                pods |= Listing.of(boxes, runs, now_unix_s=now_unix_s).pods
            else:
                pods[uid] = before
        return pods


def _are(before: PodListing, boxes: list[SandboxRecord], runs: list[ContainerRecord]) -> bool:
    """Whether a pod's listing has these very records."""
    old, new = (*before.sandboxes, *before.containers), (*boxes, *runs)
    same_count = len(boxes) == len(before.sandboxes) and len(old) == len(new)
    return same_count and all(one is other for one, other in zip(old, new, strict=True))
