"""What the shipped agent remembered, read at its start."""

from __future__ import annotations

from nodealloc.admission import Chain
from nodealloc.agent import AGENT_FORMATS, Remembered
from nodealloc.checkpoint import FileStore, StoreFailedError
from nodealloc.node import NodeAllocator
from nodealloc.testing.simulation._executor import Killed
from nodealloc.testing.simulation.node._ports import NodePorts
from nodealloc.topology import Snapshot

__all__ = ["opened"]


def opened(
    ports: NodePorts, empty: Snapshot, chain: Chain | None, /
) -> tuple[FileStore, NodeAllocator, Remembered]:
    """One store for all, who holds what, and what else was remembered.

    A disk that fails ends the process, which a service manager starts again.
    """
    try:
        store = FileStore(ports.disk, AGENT_FORMATS, files=ports.files)
        node = NodeAllocator(empty, store, chain=chain)
        if not node.start().is_clean:
            node.accept()
        return store, node, Remembered.read(store, now=ports.now())
    except StoreFailedError as error:
        ports.life.end()
        raise Killed from error
