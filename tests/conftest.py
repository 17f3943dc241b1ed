"""What all tests share: where recorded facts stand, and what this machine allows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent.parent
VECTORS = ROOT / "tests" / "vectors"
CAPTURES = ROOT.parent / "shared" / "sysfs"


@pytest.fixture(scope="session")
def vectors() -> Path:
    """Folder of recorded decisions."""
    return VECTORS


@pytest.fixture(scope="session")
def captures() -> Path:
    """Folder of captured /sys trees; skips where nobody has put one."""
    if not CAPTURES.is_dir():
        pytest.skip("no captured machines: expected a folder shared/sysfs beside the clone")
    return CAPTURES


@pytest.fixture
def as_root() -> None:
    """Skip where the test does not run as root."""
    if os.geteuid() != 0:
        pytest.skip("needs root")


FORKING = {
    "test_checkpoint_kill",
    "test_checkpoint_sqlite_faults",
    "test_volumes_kill",
    "test_volumes_mounter",
    "test_volumes_plugins",
}
"""Files whose tests fork: in a process in which gRPC has threads, a child may crash."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what forks, so that it can be run apart from what uses gRPC."""
    for item in items:
        if item.path.stem in FORKING:
            item.add_marker("forks")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs the virtual machine, outside it."""
    if item.get_closest_marker("vm") is not None and os.environ.get("NODEALLOC_VM") != "1":
        pytest.skip("needs the virtual machine with four NUMA nodes and cgroup v2: nox -s vm")


settings.register_profile("quick", max_examples=25, deadline=None)
settings.register_profile("ci", max_examples=400, deadline=None)
settings.load_profile(os.environ.get("NODEALLOC_HYPOTHESIS", "quick"))
