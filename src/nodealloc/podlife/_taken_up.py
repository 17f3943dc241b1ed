"""Pods as an agent that starts finds them: what only the runtime knows, and what a kubelet forgets. Pure.

Source: kubelet ``kubelet_pods.go``, ``pod_workers.go``, ``active_deadline.go``.
"""

from __future__ import annotations

from typing import Final

import attrs

from nodealloc.dsw_asw import Moment
from nodealloc.podfacts import LifeState
from nodealloc.podlife._record import PodRecord
from nodealloc.podspec import Container, Pod, is_static
from nodealloc.runtime import PodListing

__all__ = ["UNKNOWN_S", "as_a_kubelet_finds", "as_listed", "as_the_runtime_knows"]

UNKNOWN_S: Final = 1.0
"""How long a kubelet gives a pod that only the runtime knows."""


def as_a_kubelet_finds(record: PodRecord, now: Moment, /) -> PodRecord:
    """Without stops and hooks that were under way; what was decided of a static pod is decided anew.

    It is active from now on, and one that was ending goes on if its manifest is still there.

    Args:
        record: As it was remembered, of a pod that has not finished.
        now: This moment.
    """
    record = record.but(stopping={}, pre_stop={}, post_start={}, owed={})
    if record.life is LifeState.TERMINATING:
        record = record.but(grace_s=None, deadline_s=None, told_by_s=None)
    if not is_static(record.pod):
        return record
    record = record.but(noticed_s=now.monotonic_s, noticed_unix_s=now.unix_s)
    return record.but(life=LifeState.SYNCING, ending=None) if record.life.is_ending else record


def as_listed(listing: PodListing, /) -> Pod | None:
    """A pod that only the runtime knows; None where that has nothing of it, either."""
    owners = [one.pod for one in listing.sandboxes] + [one.pod for one in listing.containers]
    if not owners:
        return None
    names = dict.fromkeys(one.name for one in listing.containers)
    return Pod(
        uid=listing.uid,
        name=owners[0].name,
        namespace=owners[0].namespace,
        containers=tuple(Container(name=name) for name in names),
    )


def as_the_runtime_knows(pod: Pod, listing: PodListing | None = None, /) -> Pod:
    """Without hooks, without an order among its containers, and with those that its manifest has no more."""
    plain = {one.name: Container(name=one.name, image=one.image) for one in pod.all_containers}
    for one in () if listing is None else listing.containers:
        plain.setdefault(one.name, Container(name=one.name))
    return attrs.evolve(pod, init_containers=(), containers=tuple(plain.values()), ephemeral_containers=())
