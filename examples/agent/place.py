"""What an agent stands on: the machine's parts, whose time it lives on, and what it has in their place."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from nodealloc.cgroups import TreeDriver
from nodealloc.checkpoint import Store
from nodealloc.cpuset import CpusetWriter
from nodealloc.devices.plugins import DevicePlugins
from nodealloc.dirwatch import Watcher
from nodealloc.dsw_asw import Clock, Driven, Executor, Moment
from nodealloc.node import NodeAllocator
from nodealloc.podfacts import PodSource
from nodealloc.podlife import HookRunner, NodeSettings
from nodealloc.podsources import Source
from nodealloc.podstatus import Sink
from nodealloc.runtime import WholeRuntime
from nodealloc.volumes import VolumeManager
from nodealloc.volumes.plugins import PodObjects

__all__ = ["MACHINE", "Place", "Stage"]


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
        say: Is told what sources cannot read, what pods wait for or fail at, of hooks and probes that fail,
            and that the runtime does not answer, line by line; None for nobody.
    """

    executor: Executor | None = None
    clock: Clock | None = None
    now: Callable[[], Moment] = Moment.now
    unix_s: Callable[[], float] = time.time
    hooks: HookRunner | None = None
    volumes: Callable[[PodSource], VolumeManager] | None = None
    plugins: Callable[[NodeAllocator], tuple[DevicePlugins, Sequence[Driven]]] | None = None
    sink: Sink | None = None
    say: Callable[[str], object] | None = None


@attrs.frozen(kw_only=True)
class Place:
    """What the agent stands on.

    Attributes:
        runtime: Runs containers.
        cpusets: Confines them.
        driver: Of the cgroups.
        store: Remembers.
        root: Holds `pods` and the plugins' sockets.
        settings: What all pods get.
        fresh: Says that anew, of which name servers and hosts count; None where they stay.
        node_ip: Of the node.
        status: File of what pods are told to be.
        links: Folder of links to logs; None for none.
        others: Sources beside those of the configuration, by name: an API server's is `api`.
        wakers: Of those, who says when to read them.
        objects: Config maps, secrets and tokens of an API server.
        scheme: How the runtime is called where ids of containers are told (`containerd://…`).
    """

    runtime: WholeRuntime
    cpusets: CpusetWriter
    driver: TreeDriver
    store: Store
    root: Path
    settings: NodeSettings
    node_ip: str
    status: Path
    fresh: Callable[[], NodeSettings] | None = None
    links: Path | None = None
    others: Mapping[str, Source] = attrs.field(factory=dict[str, Source])
    wakers: Mapping[str, Watcher] = attrs.field(factory=dict[str, Watcher])
    objects: PodObjects = PodObjects()
    scheme: str = "containerd"


MACHINE: Final = Stage(say=lambda line: print(line, file=sys.stderr, flush=True))
