"""What keeps the packages in order: layers, public names, light imports."""

from __future__ import annotations

import ast
import graphlib
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib import metadata
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
def test_imports_only_go_to_lower_layers() -> None:
    """The import contracts of `pyproject.toml` hold."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.tree
def test_the_table_of_layers_is_the_contract() -> None:
    """The page and `pyproject.toml` name the same public packages in the same order of layers."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if one["type"] == "layers")
    held = [{name.strip().removeprefix("nodealloc.") for name in layer.split("|")} for layer in layers]
    packages = {module.name for module in pkgutil.iter_modules(nodealloc.__path__) if module.name[0] != "_"}
    assert set.union(*held) >= packages, "a package that no contract holds"
    page = (ROOT / "docs" / "explanation" / "house.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| (\d) \| `(\w+)` \|", page, flags=re.MULTILINE)
    assert {name for _, name in told} == packages
    number = {name: int(layer) for layer, name in told}
    levels = [{number[name] for name in layer & packages} for layer in held if layer & packages]
    assert {len(level) for level in levels} == {1}, "one layer of the contract, two numbers on the page"
    order = [level.pop() for level in levels]
    assert order == sorted(order, reverse=True)
    assert [layer for layer in set(order) if order.count(layer) > 1] == [0], (
        "errors alone has a layer below 0"
    )


def test_the_version_is_the_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looked up when somebody asks; a source tree that was not installed has none."""
    assert nodealloc.__version__ == metadata.version("nodealloc")

    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert nodealloc.__version__ == "0+source"
    assert not hasattr(nodealloc, "version")


def test_the_first_screen_names_every_package() -> None:
    """Whoever opens the package finds each of its packages in the table, or in the words below it."""
    shown = set(re.findall(r"`(\w+)`", nodealloc.__doc__ or ""))
    packages = {module.name for module in pkgutil.iter_modules(nodealloc.__path__) if module.name[0] != "_"}
    assert packages - shown == set()


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
WITH_GRPC = {"agent", "cri", "pluginreg", "testing"}
WITHOUT_GRPC = sorted(
    module.name
    for module in pkgutil.iter_modules(nodealloc.__path__)
    if module.name[0] != "_" and module.name not in WITH_GRPC
)


@pytest.mark.parametrize("package", WITHOUT_GRPC)
def test_packages_load_nothing_heavy(package: str) -> None:
    """Neither gRPC nor protobuf, and below also no cattrs, come with what does not need them."""
    heavy = ("grpc", "google.protobuf", "cattrs" if package in LIGHT else "grpc")
    code = f"import sys, nodealloc.{package}; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_scheduler_loads_no_module_that_it_may_never_use() -> None:
    """What hashes, makes uids, writes JSON or looks for alike words comes with its first use."""
    late = ("_hashlib", "hashlib", "json", "uuid", "difflib")
    code = (
        "import sys; before = set(sys.modules); import nodealloc.topology; "
        f"print([name for name in {late} if name in sys.modules.keys() - before])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def imported_by(path: Path, modules: Mapping[str, Path]) -> set[str]:
    """Modules of ours that a file names, wherever it imports them, also for its types alone."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            found |= {name if name in modules else node.module for name in names}
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & modules.keys()


@pytest.mark.tree
def test_files_do_not_import_each_other_in_a_circle() -> None:
    """Neither at the top, nor inside a function, nor for types: what two files need stands in a third."""
    root = ROOT / "src" / "nodealloc"
    modules = {
        ".".join(("nodealloc", *path.relative_to(root).with_suffix("").parts)).removesuffix(".__init__"): path
        for path in root.rglob("*.py")
        if "_proto" not in path.parts
    }
    graph = {name: imported_by(path, modules) for name, path in modules.items()}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(f"a circle: {' -> '.join(error.args[1])}")


@pytest.mark.tree
def test_classes_are_declared_by_our_attrs() -> None:
    """Whose methods are written late; one file that forgets it costs every import."""
    own = ROOT / "src" / "nodealloc"
    declares = re.compile(r"^\s*@attrs\.(define|frozen|mutable)", re.MULTILINE)
    plainly = [
        path for path in own.rglob("*.py") if re.search("^import attrs$", path.read_text(), re.MULTILINE)
    ]
    assert [path for path in plainly if declares.search(path.read_text())] == []


OF_EACH_PACKAGE = {
    "KUBELET": "the rules of this package as the kubelet has them",
    "Rules": "where this package does otherwise than the kubelet",
}
"""Name to why several packages may export it for things of their own."""


def test_no_name_is_two_things() -> None:
    """What two packages export under one name is one thing, or a role that each of them has."""
    things: dict[str, dict[int, str]] = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            things.setdefault(name, {})[id(getattr(module, name))] = package
    doubled = {name: sorted(found.values()) for name, found in things.items() if len(found) > 1}
    assert sorted(doubled) == sorted(OF_EACH_PACKAGE), doubled
