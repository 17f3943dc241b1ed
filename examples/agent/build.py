"""Single packages on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nodealloc.checkpoint import Store
from nodealloc.devices import DeviceAllocator
from nodealloc.devices.plugins import DeviceAdvisor, DevicePlugins
from nodealloc.dirwatch import InotifyWatcher, Watcher
from nodealloc.errors import ConfigurationError
from nodealloc.kubeconfig import NodePlan
from nodealloc.node import NodeAllocator
from nodealloc.pluginreg import PluginRegistrar

__all__ = ["device_plugins_of", "node_of", "watcher_of"]


def node_of(
    plan: NodePlan, store: Store, *, files: Sequence[str] = ("cpu",), admits_anew: bool = False
) -> NodeAllocator:
    """What is held, with all that was remembered; what is not clean is printed and taken as it is.

    Raises:
        ConfigurationError: A row or file is whole and makes no sense here, as one of a later release: what
            it grants would be given out twice. Nothing was changed.
    """
    node = NodeAllocator(
        plan.empty,
        store,
        view=plan.view,
        chain=plan.chain,
        kubelet_files=files,
        admits_anew=admits_anew,
    )
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
    """The kernel tells of changes where its extra is installed, and it can; else a look now and then does."""
    try:
        return InotifyWatcher(str(folder), below=below)
    except ImportError as error:
        why = str(error)
    except OSError as error:
        # The kernel has one word for both limits.
        why = f"{error}; raise fs.inotify.max_user_instances, or let it open more files (ulimit -n)"
    print(f"{folder} is only looked at from time to time: {why}", flush=True)
    return None
