"""The life of a volume and of a mount: two tables, read by the code and drawn into the docs.

Whatever did not end well counts as *unknown*: it may have left something
behind, so it is either driven to a known state or taken down again.
"""

from __future__ import annotations

import enum

from nodealloc.dsw_asw import Transition, Transitions

__all__ = ["MOUNT_LIFE", "VOLUME_LIFE", "MountEvent", "MountState", "VolumeEvent", "VolumeState"]


class VolumeState(enum.Enum):
    """A volume on the node, all pods together."""

    DETACHED = "detached"
    MAYBE_ATTACHED = "maybe attached"
    ATTACHED = "attached"
    MAYBE_STAGED = "maybe staged"
    STAGED = "staged"


class VolumeEvent(enum.Enum):
    """What operations on a volume end with, and what is seen of it."""

    ATTACHED = "attach done"
    ATTACH_UNKNOWN = "attach unknown"
    STAGED = "stage done"
    STAGE_UNKNOWN = "stage unknown"
    UNSTAGED = "unstage done"
    UNSTAGE_UNKNOWN = "unstage unknown"
    DETACHED = "detach done"
    DETACH_UNKNOWN = "detach unknown"
    FOUND = "found at start"
    FOUND_UNSTAGED = "found, never staged"
    LOST = "stage lost"


class MountState(enum.Enum):
    """A volume for one pod."""

    ABSENT = "absent"
    MAYBE_MOUNTED = "maybe mounted"
    MOUNTED = "mounted"


class MountEvent(enum.Enum):
    """What operations on a pod's mount end with, and what is seen of it."""

    MOUNTED = "mount done"
    MOUNT_UNKNOWN = "mount unknown"
    UNMOUNTED = "unmount done"
    UNMOUNT_UNKNOWN = "unmount unknown"
    FOUND = "found at start"
    LOST = "mount lost"


_V, _VE = VolumeState, VolumeEvent

VOLUME_LIFE = Transitions(
    name="volume",
    start=_V.DETACHED,
    rows=(
        Transition(_V.DETACHED, _VE.ATTACHED, _V.ATTACHED),
        Transition(_V.DETACHED, _VE.ATTACH_UNKNOWN, _V.MAYBE_ATTACHED),
        Transition(_V.DETACHED, _VE.STAGED, _V.STAGED, "a volume that needs no attaching"),
        Transition(_V.DETACHED, _VE.STAGE_UNKNOWN, _V.MAYBE_STAGED, "the same"),
        Transition(_V.DETACHED, _VE.FOUND, _V.MAYBE_STAGED, "the worst case is assumed"),
        Transition(
            _V.DETACHED, _VE.FOUND_UNSTAGED, _V.MAYBE_ATTACHED, "the worst case of one without a stage"
        ),
        Transition(_V.MAYBE_ATTACHED, _VE.ATTACHED, _V.ATTACHED),
        Transition(_V.MAYBE_ATTACHED, _VE.DETACHED, _V.DETACHED),
        Transition(_V.ATTACHED, _VE.STAGED, _V.STAGED),
        Transition(_V.ATTACHED, _VE.STAGE_UNKNOWN, _V.MAYBE_STAGED),
        Transition(_V.ATTACHED, _VE.DETACHED, _V.DETACHED),
        Transition(_V.ATTACHED, _VE.DETACH_UNKNOWN, _V.MAYBE_ATTACHED),
        Transition(_V.MAYBE_STAGED, _VE.STAGED, _V.STAGED, "staged again before any pod gets it"),
        Transition(_V.MAYBE_STAGED, _VE.UNSTAGED, _V.ATTACHED),
        Transition(_V.STAGED, _VE.UNSTAGED, _V.ATTACHED),
        Transition(_V.STAGED, _VE.UNSTAGE_UNKNOWN, _V.MAYBE_STAGED),
        Transition(_V.STAGED, _VE.LOST, _V.MAYBE_STAGED, "somebody else took it off, or may have"),
    ),
)

_M, _ME = MountState, MountEvent

MOUNT_LIFE = Transitions(
    name="mount",
    start=_M.ABSENT,
    rows=(
        Transition(_M.ABSENT, _ME.MOUNTED, _M.MOUNTED),
        Transition(_M.ABSENT, _ME.MOUNT_UNKNOWN, _M.MAYBE_MOUNTED),
        Transition(_M.ABSENT, _ME.FOUND, _M.MAYBE_MOUNTED),
        Transition(_M.MAYBE_MOUNTED, _ME.MOUNTED, _M.MOUNTED),
        Transition(_M.MAYBE_MOUNTED, _ME.UNMOUNTED, _M.ABSENT),
        Transition(_M.MOUNTED, _ME.MOUNTED, _M.MOUNTED, "brought up to date"),
        Transition(_M.MOUNTED, _ME.MOUNT_UNKNOWN, _M.MAYBE_MOUNTED, "bringing it up to date went wrong"),
        Transition(_M.MOUNTED, _ME.UNMOUNTED, _M.ABSENT),
        Transition(_M.MOUNTED, _ME.UNMOUNT_UNKNOWN, _M.MAYBE_MOUNTED),
        Transition(_M.MOUNTED, _ME.LOST, _M.MAYBE_MOUNTED, "somebody else took it off, or may have"),
    ),
)
