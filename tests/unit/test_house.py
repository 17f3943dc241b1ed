"""What keeps the house in order: floors, public names, light imports."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
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


def undocumented(name: str) -> Iterator[str]:
    """Public names of a module, and public methods of its classes, that say nothing."""
    module = importlib.import_module(name)
    if not inspect.getdoc(module):
        yield name
    for exported in module.__all__:
        one: object = getattr(module, exported)
        if not (inspect.isclass(one) or inspect.isfunction(one)):
            continue
        if not one.__module__.startswith("nodealloc"):
            continue
        if not (one.__doc__ or "").strip():
            yield f"{name}.{exported}"
        for key, value in vars(one).items() if inspect.isclass(one) else ():
            made = value.fget if isinstance(value, property) else inspect.unwrap(value)
            made = getattr(made, "__func__", made)
            if key[0] != "_" and inspect.isfunction(made) and not (made.__doc__ or "").strip():
                yield f"{name}.{exported}.{key}"


@pytest.mark.parametrize("name", PACKAGES)
def test_public_names_say_what_they_are(name: str) -> None:
    """Every public module, class, function and method has a docstring of its own."""
    assert list(undocumented(name)) == []


@pytest.mark.tree
def test_arrows_only_go_to_lower_floors() -> None:
    """The import contracts of `pyproject.toml` hold."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


LIGHT = [
    "idset",
    "errors",
    "verdicts",
    "podspec",
    "allocatable",
    "podfacts",
    "machine",
    "topology",
    "cgroups",
    "dsw_asw",
]
WITHOUT_GRPC = [*LIGHT, "checkpoint", "cpuset", "memblocks", "volumes", "node"]


@pytest.mark.parametrize("package", WITHOUT_GRPC)
def test_packages_load_nothing_heavy(package: str) -> None:
    """Neither gRPC nor protobuf, and below also no cattrs, come with what does not need them."""
    heavy = ("grpc", "google.protobuf", "cattrs" if package in LIGHT else "grpc")
    code = f"import sys, nodealloc.{package}; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
