"""What is still to do: desired and actual worlds, plans, operations, the loop."""

from nodealloc.dsw_asw._ports import Clock, Executor

__all__ = ["Clock", "Executor"]
