"""What an agent has in place of a machine's own time, threads and parts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import attrs

from nodealloc.devices.plugins import DevicePlugins
from nodealloc.dsw_asw import Clock, Driven, Executor, Moment
from nodealloc.node import NodeAllocator
from nodealloc.podfacts import PodSource
from nodealloc.podlife import HookRunner
from nodealloc.podstatus import Sink
from nodealloc.volumes import VolumeManager

__all__ = ["Stage"]


@attrs.frozen(kw_only=True)
class Stage:
    """Whose time and threads an agent lives on, and what it has in place of a machine's own parts.

    Attributes:
        executor: Runs calls, none of which may last: nobody follows the runtime's events; None for threads.
        clock: Time; None for the machine's.
        now: This moment, as it is stored.
        unix_s: The wall clock.
        hooks: Runs hooks; None for commands by the runtime, and requests over HTTP.
        volumes: From the pods that are here to who mounts their volumes; None for this machine's.
        plugins: From the node to who talks to device plugins, and what drives it; None for
            plugins behind sockets.
        sink: Is told of pods; None for the file of the place.
    """

    executor: Executor | None = None
    clock: Clock | None = None
    now: Callable[[], Moment] = Moment.now
    unix_s: Callable[[], float] = time.time
    hooks: HookRunner | None = None
    volumes: Callable[[PodSource], VolumeManager] | None = None
    plugins: Callable[[NodeAllocator], tuple[DevicePlugins, Sequence[Driven]]] | None = None
    sink: Sink | None = None
