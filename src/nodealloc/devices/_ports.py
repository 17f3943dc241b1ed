"""Protocols that the shell calls: a plugin's connection, and the keeper of the allocator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from nodealloc.devices._allocator import DeviceAllocator
from nodealloc.devices._inventory import Device, PluginOptions
from nodealloc.devices._preferences import PreferenceQuestion

if TYPE_CHECKING:
    from nodealloc.dsw_asw import Cancel

__all__ = ["AllocatorKeeper", "Connect", "PluginCalls", "PluginConnection", "PluginWatch"]


class PluginWatch(Protocol):
    """What a plugin says of its own accord.

    Every method raises `PluginUnavailableError` when there is no answer and
    `PluginRefusedError` when the answer makes no sense.
    """

    def options(self) -> PluginOptions:
        """What the plugin wants to be asked; a plugin that does not know the call wants nothing."""
        ...

    def lists(self) -> Iterator[Sequence[Device]]:
        """Each full list of devices, as it comes; ends with an error, never quietly.

        Lists that came while the one before was in use are skipped but for the
        newest. Called once.
        """
        ...

    def close(self) -> None:
        """Let go: `lists` ends, calls under way fail. May be repeated."""
        ...


class PluginCalls(Protocol):
    """What a plugin is asked to do. Safe to call from several threads; errors as in `PluginWatch`."""

    def preferred(self, question: PreferenceQuestion, /) -> tuple[str, ...]:
        """Ids that go well together; may be fewer, others, or none."""
        ...

    def allocate(self, ids: Sequence[str], /, *, cancel: Cancel | None = None) -> bytes:
        """Give one container these devices; the answer's bytes, as `ContainerAllocateResponse`.

        May be repeated for the same devices. Raises `CancelledError` (of
        `concurrent.futures`) at once where it is asked to stop before there is
        an answer: what the plugin did by then is not known, as after any call
        without an answer.
        """
        ...

    def pre_start(self, ids: Sequence[str], /, *, cancel: Cancel | None = None) -> None:
        """Prepare these devices for a start of their container. May be repeated."""
        ...


class PluginConnection(PluginWatch, PluginCalls, Protocol):
    """Both directions."""


Connect = Callable[[str], PluginConnection]
"""From a socket's path to a connection. Returns at once: trouble shows in the first call."""


class AllocatorKeeper(Protocol):
    """Whoever holds the current allocator: a node's shell, or `DeviceLedger`."""

    def current(self) -> DeviceAllocator:
        """The allocator as it is now."""
        ...

    def alter(
        self, change: Callable[[DeviceAllocator], DeviceAllocator], /
    ) -> tuple[DeviceAllocator, DeviceAllocator]:
        """Replace it by what `change` makes of it; the values before and after.

        Nobody else changes it meanwhile. `change` is pure and may be called
        more than once. What has to survive a crash has been stored on return.
        """
        ...
