"""One package at a time, as a configuration asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nodealloc.agent import Remembered, remembering_editions
from nodealloc.checkpoint import Store
from nodealloc.dirwatch import InotifyWatcher, Watcher
from nodealloc.dsw_asw import Clock, Executor, ThreadExecutor
from nodealloc.kubeconfig import KubeletConfig, NodePlan
from nodealloc.node import NodeAllocator
from nodealloc.podfacts import PodSource
from nodealloc.podsources import FolderSource, HttpSource, PodSources, Polling, Rules, Source
from nodealloc.volumes import (
    LinuxMounter,
    LinuxMountTable,
    PodsDirectory,
    SafeRoot,
    VolumeManager,
    WatchedMounter,
)
from nodealloc.volumes.plugins import EmptyDir, HostPath

__all__ = ["node_of", "sources_of", "volumes_of", "watcher_of"]


def node_of(plan: NodePlan, store: Store) -> NodeAllocator:
    """What is held, with all that was remembered; what is not clean is printed and taken as it is."""
    node = NodeAllocator(plan.empty, store, view=plan.view, chain=plan.chain, kubelet_files=["cpu"])
    report = node.start()
    if not report.is_clean:
        print(report, flush=True)
        node.accept()
    return node


def sources_of(
    config: KubeletConfig,
    name: str,
    store: Store,
    was: Remembered,
    rules: Rules,
    *,
    others: Mapping[str, Source],
    wakers: Mapping[str, Watcher],
    executor: Executor | None = None,
    clock: Clock | None = None,
) -> PodSources:
    """The folder and the address that pods come from, and what others bring."""
    found: dict[str, Source] = dict(others)
    period_s = config.file_check_frequency_s
    if config.static_pod_path:
        found["file"] = FolderSource(
            config.static_pod_path,
            node_name=name,
            unreadable_s=period_s,  # a kubelet notices when it lists the folder
            is_lenient=not rules.keeps_unreadable,
            rules=rules,
        )
    if config.static_pod_url:
        found["http"] = HttpSource(
            config.static_pod_url, node_name=name, headers=config.static_pod_url_header
        )
    waker = watcher_of(Path(config.static_pod_path), below=False) if config.static_pod_path else None
    return PodSources(
        found,
        wakers=dict(wakers) if waker is None else {"file": waker, **wakers},
        editions=was.editions,
        remember=remembering_editions(store),
        polling=Polling(period_s=period_s, periods={"http": config.http_check_frequency_s}),
        rules=rules,
        executor=executor,
        clock=clock,
    )


def watcher_of(folder: Path, *, below: bool = True) -> Watcher | None:
    """The kernel tells of changes where its extra is installed; else a look from time to time does."""
    try:
        return InotifyWatcher(str(folder), below=below)
    except ImportError as error:
        print(f"{folder} is only looked at from time to time: {error}", flush=True)
        return None


def volumes_of(root: Path, pods: PodSource, *, keeps_folders: bool) -> VolumeManager:
    """Volumes below a folder, those that an agent before mounted included."""
    safe = SafeRoot(str(root))
    mounter = WatchedMounter(safe, LinuxMounter(safe), LinuxMountTable())
    manager = VolumeManager(
        [EmptyDir(safe, mounter, keeps_folders=keeps_folders), HostPath()],
        pods=pods,
        executor=ThreadExecutor("volumes"),
        leftovers=PodsDirectory(safe, mounter),
        mounts=mounter,
    )
    manager.reconstruct()
    return manager
