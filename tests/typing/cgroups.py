"""Limits written into a tree, by any driver."""

from __future__ import annotations

import tempfile
from typing import assert_type

from nodealloc.cgroups import CgroupDriver, CgroupName, Limits, stand_in
from nodealloc.testing.cgroups import FakeCgroups

with tempfile.TemporaryDirectory() as folder:
    drivers: list[CgroupDriver] = [stand_in(folder), FakeCgroups()]
    for driver in drivers:
        web = CgroupName.of("web")
        driver.apply(web, Limits(memory_bytes=64 << 20, pids=10))
        limits = driver.read(web)
        assert_type(limits, Limits | None)
        assert limits is not None
        assert limits.pids == 10
        driver.remove(web)
