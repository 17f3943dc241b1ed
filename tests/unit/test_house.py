"""What keeps the house in order: floors, public names, light imports."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import nodealloc

ROOT = Path(__file__).parent.parent.parent
PACKAGES = sorted(
    module.name
    for module in pkgutil.walk_packages(nodealloc.__path__, "nodealloc.")
    if not any(part.startswith("_") for part in module.name.split("."))
)


@pytest.mark.parametrize("name", PACKAGES)
def test_public_names_are_sorted_and_resolve(name: str) -> None:
    """`__all__` is there, in order, without doubles, and each name exists."""
    module = importlib.import_module(name)
    listed = list(module.__all__)
    assert listed == sorted(
        set(listed), key=lambda one: (0 if one.isupper() else 1 if one[0].isupper() else 2, one)
    )
    assert [name for name in listed if not hasattr(module, name)] == []


@pytest.mark.tree
def test_arrows_only_go_to_lower_floors() -> None:
    """The import contracts of `pyproject.toml` hold."""
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


LIGHT = ["idset", "errors", "podspec", "machine", "topology", "cgroups", "dsw_asw"]
WITHOUT_GRPC = [*LIGHT, "checkpoint", "cpuset", "memblocks", "volumes", "node"]


@pytest.mark.parametrize("package", WITHOUT_GRPC)
def test_packages_load_nothing_heavy(package: str) -> None:
    """Neither gRPC nor protobuf, and below also no cattrs, come with what does not need them."""
    heavy = ("grpc", "google.protobuf", "cattrs" if package in LIGHT else "grpc")
    code = f"import sys, nodealloc.{package}; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
