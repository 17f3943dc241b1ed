"""How a fake runtime is, unless a test says otherwise."""

from __future__ import annotations

from typing import Final

from nodealloc.runtime import CgroupDriverKind, RuntimeCondition, RuntimeHealth

__all__ = ["WELL"]

WELL: Final = RuntimeHealth(
    conditions={"RuntimeReady": RuntimeCondition(holds=True), "NetworkReady": RuntimeCondition(holds=True)},
    name="fake",
    version="1",
    cgroup_driver=CgroupDriverKind.CGROUPFS,
    handlers=("",),
)
