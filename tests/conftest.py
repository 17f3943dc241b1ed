"""What all tests share: where recorded facts stand, and what this machine allows."""

from __future__ import annotations

import inspect
import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.apart import run_apart

ROOT = Path(__file__).parent.parent
VECTORS = ROOT / "tests" / "vectors"
REAL = ROOT / "tests" / "real"
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


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that forks in a process of its own, in which gRPC never had threads."""
    if pyfuncitem.get_closest_marker("forks") is None:
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    run_apart(pyfuncitem.obj, {name: pyfuncitem.funcargs[name] for name in wanted})
    return True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Try a failed test of real parts once more, and say so: others use this machine as well."""
    for item in items:
        if item.get_closest_marker("real") is not None or REAL in item.path.parents:
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs the virtual machine, outside it."""
    if item.get_closest_marker("vm") is not None and os.environ.get("NODEALLOC_VM") != "1":
        pytest.skip("needs the virtual machine with four NUMA nodes and cgroup v2: nox -s vm")


settings.register_profile("quick", max_examples=25, deadline=None)
settings.register_profile("ci", max_examples=int(os.environ.get("NODEALLOC_EXAMPLES", "400")), deadline=None)
settings.load_profile(os.environ.get("NODEALLOC_HYPOTHESIS", "quick"))
