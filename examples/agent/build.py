"""Single packages on this machine, and what an agent has in place of them elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import attrs

from nodealloc.checkpoint import Store
from nodealloc.devices import DeviceAllocator
from nodealloc.devices.plugins import DeviceAdvisor, DevicePlugins
from nodealloc.dirwatch import InotifyWatcher, Watcher
from nodealloc.dsw_asw import Clock, Driven, Executor, Moment
from nodealloc.errors import ConfigurationError
from nodealloc.kubeconfig import NodePlan
from nodealloc.node import NodeAllocator
from nodealloc.pluginreg import PluginRegistrar
from nodealloc.podfacts import PodSource
from nodealloc.podlife import HookRunner
from nodealloc.podstatus import Sink
from nodealloc.volumes import VolumeManager

__all__ = ["MACHINE", "Stage", "device_plugins_of", "node_of", "watcher_of"]


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


MACHINE: Final = Stage(say=lambda line: print(line, file=sys.stderr, flush=True))


def node_of(plan: NodePlan, store: Store) -> NodeAllocator:
    """What is held, with all that was remembered; what is not clean is printed and taken as it is.

    Raises:
        ConfigurationError: A row or file is whole and makes no sense here, as one of a later release: what
            it grants would be given out twice. Nothing was changed.
    """
    node = NodeAllocator(plan.empty, store, view=plan.view, chain=plan.chain, kubelet_files=["cpu"])
    report = node.start()
    whole = store.read().values
    unread = [f"{one.key}: {one.reason}" for one in report.damaged if one.key in whole]
    if unread:
        raise ConfigurationError("\n".join(unread))
    if not report.is_clean:
        print(report, flush=True)
        node.accept()
    return node


def device_plugins_of(root: Path, node: NodeAllocator) -> tuple[DevicePlugins, PluginRegistrar]:
    """Plugins that register themselves, or that a socket in `plugins_registry` is found of."""
    # Nobody but an administrator takes its socket away: it is looked at now and then.
    plugins = DevicePlugins(node.allocator(DeviceAllocator), directory=root / "device-plugins", look_s=5.0)
    node.advise_with(DeviceAdvisor(plugins))
    sockets = root / "plugins_registry"
    return plugins, PluginRegistrar(sockets, {"DevicePlugin": plugins}, watcher=watcher_of(sockets))


def watcher_of(folder: Path, *, below: bool = True) -> Watcher | None:
    """The kernel tells of changes where its extra is installed; else a look from time to time does."""
    try:
        return InotifyWatcher(str(folder), below=below)
    except ImportError as error:
        print(f"{folder} is only looked at from time to time: {error}", flush=True)
        return None
