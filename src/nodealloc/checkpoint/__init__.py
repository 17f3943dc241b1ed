"""What was decided before the crash: stores, transactions, the kubelet's formats."""

from nodealloc.checkpoint._ports import Checkpoint, Store

__all__ = ["Checkpoint", "Store"]
