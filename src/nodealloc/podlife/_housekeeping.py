"""Pure functions: what is left of pods that nobody knows, what may go, and what holds the rest."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable

from nodealloc import _attrs as attrs
from nodealloc._typed import typed, typed_fields

__all__ = ["HeldRemnant", "Housekeeping", "Remnant", "RemnantKind", "plan_housekeeping"]


class RemnantKind(enum.Enum):
    """What a remnant is; each kind goes before the one behind it."""

    VOLUME = "volume"
    CGROUP = "cgroup"
    LOGS = "logs"
    FOLDER = "folder"
    """The pod's own directory, with what is in it."""


@typed_fields
@attrs.frozen(kw_only=True)
class Remnant:
    """Something on the node that carries a pod's uid.

    Attributes:
        uid: Whose it was.
        kind: What it is.
        where: Its path, or the name of a cgroup.
        mounts: Mount points at it or below it.
        processes: How many processes are in it.
    """

    uid: str
    kind: RemnantKind
    where: str
    mounts: tuple[str, ...] = ()
    processes: int = 0


@attrs.frozen(kw_only=True)
class HeldRemnant:
    """A remnant that stays for now.

    Attributes:
        remnant: It.
        why: What holds it, in words.
    """

    remnant: Remnant
    why: str


@attrs.frozen(kw_only=True)
class Housekeeping:
    """What may be removed, in this order, and what is held by what.

    Attributes:
        remove: Nobody knows their pods, and nothing is in the way.
        held: Nobody knows their pods, and something is.
    """

    remove: tuple[Remnant, ...] = ()
    held: tuple[HeldRemnant, ...] = ()


_ORDER = {kind: number for number, kind in enumerate(RemnantKind)}


@typed
def plan_housekeeping(found: Iterable[Remnant], known: Collection[str], /, *, is_ready: bool) -> Housekeeping:
    """What of pods that nobody knows may go.

    Nothing of a pod that is known is touched, whatever its state; nothing at
    all before every source was heard. A mount holds what it is in, for it may
    be somebody's data; a process holds its cgroup; what is left inside holds the
    pod's folder.

    Args:
        found: What is on the node, of any pod.
        known: Uids of pods that are wanted, or of which something is remembered.
        is_ready: Whether it is known which pods should be here.

    Source: ours; the kubelet's ``kubelet_volumes.go`` and ``pod_container_manager_linux.go`` clean the same.
    """
    orphans = sorted(
        (one for one in found if one.uid not in known), key=lambda one: (one.uid, _ORDER[one.kind], one.where)
    )
    remove: list[Remnant] = []
    held: list[HeldRemnant] = []
    stay: dict[str, str] = {}
    for one in orphans:
        why = _held_by(one, stay, is_ready=is_ready)
        if why:
            held.append(HeldRemnant(remnant=one, why=why))
            stay.setdefault(one.uid, f"{one.kind.value} {one.where} is still there")
        else:
            remove.append(one)
    return Housekeeping(remove=tuple(remove), held=tuple(held))


def _held_by(one: Remnant, stay: dict[str, str], *, is_ready: bool) -> str:
    if not is_ready:
        return "not every source of pods was heard yet"
    if one.mounts:
        first, *others = one.mounts
        more = f" and {len(others)} more" if others else ""
        return f"{first} is a mount point{more}; unmount it first"
    if one.processes:
        return f"{one.processes} processes are in it; end them first"
    return stay.get(one.uid, "") if one.kind is RemnantKind.FOLDER else ""
