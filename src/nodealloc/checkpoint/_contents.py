"""Values only: what a store holds, what was damaged, and who wrote it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TypeVar

from nodealloc import _attrs as attrs
from nodealloc._frozen import freeze
from nodealloc._typed import typed, typed_fields, typed_methods
from nodealloc.checkpoint._remembered import Checkpoint

__all__ = ["Contents", "Damaged", "Identity", "Since"]

T = TypeVar("T")


@typed_fields
@attrs.frozen(kw_only=True)
class Identity:
    """Which boot of which machine.

    Attributes:
        boot_id: Changes with every boot of the kernel.
        machine: Changes with the hardware; any text that does.
    """

    boot_id: str
    machine: str


class Since(enum.Enum):
    """What happened between the last commit and now."""

    NEW = "new"
    """Nobody wrote here, or whoever did left no identity (the kubelet)."""
    RESTART = "restart"
    """The process restarted; containers, mounts and cgroups may all still be there."""
    REBOOT = "reboot"
    """The machine booted: nothing runs that did."""
    OTHER_MACHINE = "other machine"
    """The disk came from elsewhere: CPUs, memory and devices may differ."""

    @classmethod
    @typed
    def between(cls, writer: Identity | None, now: Identity | None) -> Since:
        """What lies between the identity that was stored and today's."""
        if writer is None or now is None:
            return cls.NEW
        if writer.machine != now.machine:
            return cls.OTHER_MACHINE
        return cls.RESTART if writer.boot_id == now.boot_id else cls.REBOOT


@attrs.frozen(kw_only=True)
class Damaged:
    """A key whose bytes cannot be believed.

    Attributes:
        key: The key; `*` when the whole store was unreadable.
        reason: What is wrong with the bytes.
        kept_as: Where the bytes are now: a path, or a row of the store.
    """

    key: str
    reason: str
    kept_as: str


@typed_methods
@attrs.frozen(kw_only=True)
class Contents:
    """All that a store remembers, every key of it verified.

    Attributes:
        values: Key to checkpoint; holds no key that is damaged.
        damaged: Keys that were stored and are lost. While there are any, an
            agent rebuilds from what runs and grants nothing; committing a key
            (or forgetting it) takes it off this list.
        since: What happened since the last commit.
        writer: Who made the last commit; None when that is not known.
    """

    values: Mapping[str, Checkpoint] = attrs.field(factory=dict[str, Checkpoint], validator=freeze)
    damaged: tuple[Damaged, ...] = ()
    since: Since = Since.NEW
    writer: Identity | None = None

    @property
    def is_whole(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damaged

    def get(self, key: str, kind: type[T], /) -> T | None:
        """The checkpoint under a key, None where there is none; raises `TypeError` for another kind."""
        value = self.values.get(key)
        if value is None or isinstance(value, kind):
            return value
        raise TypeError(
            f"key {key!r} holds a {type(value).__name__}, not a {kind.__name__}: mend the formats"
        )

    def rows(self, prefix: str, kind: type[T], /) -> Mapping[str, T]:
        """All checkpoints whose key begins with `prefix`, by key; raises `TypeError` for another kind."""
        found: dict[str, T] = {}
        for key in self.values:
            if key.startswith(prefix):
                value = self.get(key, kind)
                if value is not None:
                    found[key] = value
        return found
