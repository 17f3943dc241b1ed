"""What can be done to a volume, which event tells that it was, and the next thing to do by the table."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Mapping
from functools import cache

from nodealloc.volumes._states import VOLUME_LIFE, MountEvent, VolumeEvent, VolumeState

__all__ = ["MOUNT_EVENTS", "VOLUME_EVENTS", "Verb", "towards"]


class Verb(enum.Enum):
    """What can be done to a volume."""

    UNMOUNT = "unmount"
    ATTACH = "attach"
    STAGE = "stage"
    MOUNT = "mount"
    EXPAND = "expand"
    UNSTAGE = "unstage"
    DETACH = "detach"


VOLUME_EVENTS: Mapping[Verb, tuple[VolumeEvent, VolumeEvent]] = {
    Verb.ATTACH: (VolumeEvent.ATTACHED, VolumeEvent.ATTACH_UNKNOWN),
    Verb.STAGE: (VolumeEvent.STAGED, VolumeEvent.STAGE_UNKNOWN),
    Verb.UNSTAGE: (VolumeEvent.UNSTAGED, VolumeEvent.UNSTAGE_UNKNOWN),
    Verb.DETACH: (VolumeEvent.DETACHED, VolumeEvent.DETACH_UNKNOWN),
}
"""Event of a verb that was done, and of one that may have been."""

MOUNT_EVENTS: Mapping[Verb, tuple[MountEvent, MountEvent]] = {
    Verb.MOUNT: (MountEvent.MOUNTED, MountEvent.MOUNT_UNKNOWN),
    Verb.UNMOUNT: (MountEvent.UNMOUNTED, MountEvent.UNMOUNT_UNKNOWN),
}
"""The same for a pod's mount."""


@cache
def towards(state: VolumeState, goal: frozenset[VolumeState], verbs: tuple[Verb, ...], /) -> Verb | None:
    """The first of the fewest verbs that lead from a state to one of the goal, by `VOLUME_LIFE`.

    None where it is there already, and where no verb leads there.
    """
    queue: deque[tuple[VolumeState, Verb | None]] = deque([(state, None)])
    seen = {state}
    while queue:
        at, first = queue.popleft()
        if at in goal:
            return first
        for verb in verbs:
            done, _ = VOLUME_EVENTS[verb]
            after = VOLUME_LIFE.after(at, done)
            if after not in seen:
                seen.add(after)
                queue.append((after, first or verb))
    return None
