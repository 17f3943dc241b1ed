"""Discovery of the machine that the tests run on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nodealloc.idset import CPUSet
from nodealloc.machine import discover

pytestmark = pytest.mark.real


def test_this_machine_is_discovered() -> None:
    """Online CPUs are those that the kernel counts, and this process runs on some of them."""
    if not Path("/sys/devices/system/cpu").is_dir():
        pytest.skip("no sysfs is mounted on /sys")
    machine = discover().machine
    assert len(machine.online) == os.sysconf("SC_NPROCESSORS_ONLN")
    assert CPUSet(os.sched_getaffinity(0)) <= machine.online


def test_this_machines_memory_is_discovered() -> None:
    """Some node has memory; how much, a balloon may change between two looks."""
    if not Path("/sys/devices/system/cpu").is_dir():
        pytest.skip("no sysfs is mounted on /sys")
    assert discover().machine.memory_bytes > 0
