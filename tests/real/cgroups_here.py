"""The cgroups of this machine, with a root of our own, of which nothing stays."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from nodealloc.cgroups import (
    CgroupFs,
    CgroupName,
    Limits,
    NoSuchTreeError,
    Spelling,
    check_requirements,
    detect,
)
from nodealloc.cgroups._files import KernelFiles

__all__ = ["driver_here", "own_root", "switches_as_before"]

_numbers = itertools.count()


def driver_here(spelling: Spelling = Spelling.CGROUPFS) -> CgroupFs:
    """The driver of this machine; skips the test where pods cannot be confined."""
    try:
        driver = detect(spelling=spelling)
    except NoSuchTreeError as error:
        pytest.skip(str(error))
    if shortfalls := check_requirements(driver.layout):
        pytest.skip("; ".join(map(str, shortfalls)))
    return driver


@contextlib.contextmanager
def switches_as_before() -> Generator[None]:
    """Controllers that are switched on at the root of v2 are as before when the last tests end."""
    switches = Path("/sys/fs/cgroup/unified/cgroup.subtree_control")
    if os.geteuid() != 0 or not switches.exists():
        yield
        return
    with Path(tempfile.gettempdir(), "nodealloc-test-cgroups.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        if not lock.read():
            lock.write(f"before: {switches.read_text()}")
            lock.flush()
        fcntl.flock(lock, fcntl.LOCK_SH)
        yield
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            lock.seek(0)
            before = lock.read().split()[1:]
            for controller in set(switches.read_text().split()) - set(before):
                with contextlib.suppress(OSError):  # somebody else has come to need it
                    KernelFiles().write(str(switches), f"-{controller}")
            Path(lock.name).unlink(missing_ok=True)


@contextlib.contextmanager
def own_root(driver: CgroupFs) -> Generator[CgroupName]:
    """A root of our own beside everybody else's, of which nothing stays."""
    name = CgroupName.of(f"nodealloc-test-{os.getpid()}-{next(_numbers)}")
    driver.apply(name, Limits())
    try:
        yield name
    finally:
        assert driver.kill(name) == ()
        driver.remove(name)
        assert not any(Path(driver.layout.directory(mount, name)).exists() for mount in driver.layout.mounts)
