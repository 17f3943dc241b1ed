"""Memory of one node and who holds it, as one value; plans and files are made from it."""

from __future__ import annotations

from nodealloc import _attrs as attrs
from nodealloc.memblocks._options import MemoryOptions, MemoryPolicy
from nodealloc.memblocks._state import MemoryState

__all__ = ["MemoryStock"]


@attrs.frozen(kw_only=True)
class MemoryStock:
    """A policy and its state: the fields of `MemoryAllocator`, which tells of each."""

    state: MemoryState
    options: MemoryOptions = MemoryOptions()
    policy: MemoryPolicy = MemoryPolicy.STATIC
