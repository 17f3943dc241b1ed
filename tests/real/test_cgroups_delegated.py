"""A cgroup v2 subtree that is delegated to an ordinary user."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodealloc.cgroups import CgroupFs, CgroupName, Limits, detect

pytestmark = [pytest.mark.vm, pytest.mark.real]

NOBODY = 65534
PROGRAM = """
import os, sys
from nodealloc.cgroups import *
root = sys.argv[1]
os.setgroups([]); os.setgid(65534); os.setuid(65534)
driver = detect(root)
assert driver.layout.kind == "v2", driver.layout
assert check_requirements(driver.layout, sys.argv[2].split(",")) == (), check_requirements(driver.layout)
name = CgroupName.of("mine")
driver.apply(name, Limits(pids=20, memory_bytes=32 << 20))
print(driver.read(name).pids)
try:
    detect().apply(CgroupName.of("not-mine"), Limits())
except ReadOnlyError as error:
    print(error)
print(*check_requirements(detect().layout), sep="\\n")
driver.remove(name)
"""


@pytest.fixture
def delegated() -> Iterator[tuple[CgroupFs, str]]:
    """A subtree that belongs to nobody, with controllers handed down."""
    driver, name = detect(), CgroupName.of(f"nodealloc-delegated-{os.getpid()}")
    driver.apply(name, Limits())
    path = driver.layout.directory(driver.layout.mounts[0], name)
    for each in (path, *(f"{path}/cgroup.{file}" for file in ("procs", "subtree_control", "threads"))):
        os.chown(each, NOBODY, NOBODY)
    yield driver, path
    driver.kill(name)
    driver.remove(name)


def test_ordinary_user_works_in_its_subtree_only(delegated: tuple[CgroupFs, str]) -> None:
    """Inside the subtree all works as for root; outside, the refusal and the check say so."""
    driver, path = delegated
    offered = Path(path, "cgroup.controllers").read_text().split()
    assert set(driver.layout.mounts[0].controllers) <= set(offered)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, path, "cpu,memory,pids"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    limit, refused, *shortfalls = done.stdout.splitlines()
    assert limit == "20"
    assert "may not be written" in refused
    assert any("may not be written by user 65534" in line for line in shortfalls)
