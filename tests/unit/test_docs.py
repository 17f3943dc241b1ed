"""The pages hang together: links lead somewhere, every public module has a place, drawings are up to date."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import attrs
import pytest

import nodealloc
from nodealloc.cgroups import CGROUP_LIFE
from nodealloc.cpuset import StaticOptions
from nodealloc.devices import DEVICE_LIFE, Deadlines
from nodealloc.dsw_asw import Transitions
from nodealloc.memblocks import MemoryOptions
from nodealloc.node import NODE_LIFE
from nodealloc.pluginreg import REGISTRATION_LIFE
from nodealloc.podlife import POD_LIFE
from nodealloc.volumes import MOUNT_LIFE, VOLUME_LIFE
from tests.drawn_tables import as_svg

pytestmark = pytest.mark.tree

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("**/*.md"), *ROOT.glob("*.md")])
MODULES = {
    module.name
    for module in pkgutil.walk_packages(nodealloc.__path__, "nodealloc.")
    if not any(part.startswith("_") for part in module.name.split("."))
}
TABLES = {
    "volume-life.svg": as_svg(VOLUME_LIFE),
    "mount-life.svg": as_svg(MOUNT_LIFE),
    "device-life.svg": as_svg(DEVICE_LIFE),
    "registration-life.svg": as_svg(REGISTRATION_LIFE),
    "node-life.svg": as_svg(NODE_LIFE),
    "cgroup-life.svg": as_svg(CGROUP_LIFE),
    "pod-life.svg": as_svg(POD_LIFE),
}


@cache
def prose(page: Path) -> str:
    """A page without its code."""
    text = re.sub(
        r"^(`{3,}|~{3,}).*?^\1`*$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    return re.sub(r"`[^`\n]*`", "", text)


@cache
def anchors(page: Path) -> frozenset[str]:
    """What can stand behind `#` in a link to a page."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#{1,6} +(.+?) *$", text, flags=re.MULTILINE)
    named = re.findall(r"^\(([\w-]+)\)=$", text, flags=re.MULTILINE)
    return frozenset([*map(slug, headings), *named])


def slug(heading: str) -> str:
    """A heading as a link names it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def links(page: Path) -> Iterator[str]:
    """Targets of links and pictures."""
    yield from re.findall(r"\]\(<?([^)\s>]+)>?[^)]*\)", prose(page))


def fault(page: Path, target: str) -> str:
    """Why a link leads nowhere; "" where it leads somewhere."""
    parts = urlsplit(target)
    if parts.scheme:
        sound = parts.scheme in {"http", "https"} and "." in parts.netloc and " " not in target
        return "" if sound or parts.scheme == "mailto" else "no address"
    there = (page.parent / parts.path).resolve() if parts.path else page
    if not there.exists():
        return f"no file {parts.path}"
    if not there.is_relative_to(ROOT):
        return "leads out of the tree"
    known = anchors(there) if there.suffix == ".md" and parts.fragment else {parts.fragment}
    return "" if parts.fragment in known else f"no heading #{parts.fragment}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Files and headings exist; addresses elsewhere are at least addresses."""
    assert [f"{target}: {why}" for target in links(page) if (why := fault(page, target))] == []


def test_a_broken_link_would_be_found() -> None:
    """The check can fail: a file, a heading and an address that do not exist."""
    page = DOCS / "index.md"
    assert fault(page, "no-such-page.md")
    assert fault(page, "tutorial/index.md#no-such-heading")
    assert fault(page, "https://nowhere")
    assert fault(page, "../../etc/passwd")
    assert not fault(page, "tutorial/index.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_are_shown_as_code(page: Path) -> None:
    """Outside of a block `>>>` would be shown as a quotation in a quotation in a quotation."""
    assert not re.findall(r"^>>>.*", prose(page), flags=re.MULTILINE)


def test_every_page_of_docs_is_reached() -> None:
    """Each folder has an index that takes all of its pages in."""
    for folder in {page.parent for page in DOCS.glob("**/*.md")}:
        index = (folder / "index.md").read_text(encoding="utf-8")
        for page in folder.glob("*.md"):
            assert page.name == "index.md" or ":glob:" in index or page.stem in index, (
                f"{page} is not reached"
            )


def test_every_public_module_has_one_place_in_the_reference() -> None:
    """`automodule` lists what `__all__` lists; constants are added by the pages' settings."""
    shown = [
        name
        for page in (DOCS / "reference").glob("*.md")
        for name in re.findall(
            r"^\.\. automodule:: ([\w.]+)$", page.read_text(encoding="utf-8"), re.MULTILINE
        )
    ]
    assert sorted(shown) == sorted(MODULES)


def test_what_is_loaded_late_is_in_the_reference_too() -> None:
    """Names that a package finds by `__getattr__` are invisible to `automodule`, so pages name them."""
    pages = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
    for name in sorted(MODULES):
        module = importlib.import_module(name)
        late = [one for one in module.__all__ if one not in vars(module)]
        for one in late:
            kind = "autoclass" if isinstance(getattr(module, one), type) else "autofunction"
            assert f".. {kind}:: {name}.{one}\n" in pages


def test_files_that_are_named_are_there() -> None:
    """Whoever is sent to a file of the sources finds it: what was renamed is renamed on the pages, too."""
    there = {path.name for path in (ROOT / "src").rglob("*.py")}
    named = {
        name
        for page in PAGES
        if page.name != "CHANGELOG.md"
        for name in re.findall(r"`(?:[\w/]+/)?(_\w+\.py)`", page.read_text(encoding="utf-8"))
    }
    assert named - there == set()


@pytest.mark.parametrize("name", sorted(TABLES))
def test_drawings_match_their_tables(name: str) -> None:
    """A table that changed without its picture is found here; write `as_svg` of it to the file."""
    assert (DOCS / "reference" / name).read_text(encoding="utf-8") == TABLES[name]


def test_every_table_is_drawn() -> None:
    """A new table of transitions needs a picture that a page shows."""
    tables = {
        id(one): f"{name}.{key}"
        for name in MODULES
        for key, one in vars(importlib.import_module(name)).items()
        if isinstance(one, Transitions)
    }
    tables_drawn = (VOLUME_LIFE, MOUNT_LIFE, DEVICE_LIFE, CGROUP_LIFE, REGISTRATION_LIFE, NODE_LIFE, POD_LIFE)
    drawn = {id(one) for one in tables_drawn}
    assert {name for number, name in tables.items() if number not in drawn} == set()
    pages = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
    assert [name for name in TABLES if f"({name})" not in pages] == []


def rows() -> Iterator[str]:
    """What the options page says stands in our packages."""
    text = (DOCS / "reference" / "options.md").read_text(encoding="utf-8")
    yield from re.findall(r"^\| [^|]+ \| `([\w.()]+)` \|", text, re.MULTILINE)


def found(name: str) -> bool:
    """Whether a dotted name exists: of a module, of a class, a field, or a parameter in brackets."""
    path, _, parameter = name.rstrip(")").partition("(")
    one: object = nodealloc
    for part in path.split("."):
        if part in getattr(one, "__annotations__", ()) or part in getattr(one, "__attrs_attrs__", ()):
            return not parameter
        if inspect.ismodule(one) and f"{one.__name__}.{part}" in MODULES:
            one = importlib.import_module(f"{one.__name__}.{part}")
        elif hasattr(one, part):
            one = getattr(one, part)
        else:
            return False
    return not parameter or (callable(one) and parameter in inspect.signature(one).parameters)


def test_the_page_of_options_names_what_there_is() -> None:
    """A renamed option is found here, and so is an option of the static policy that the page forgot."""
    named = list(rows())
    assert len(named) > 50
    assert [name for name in named if not found(name)] == []
    for options, package in (
        (StaticOptions, "cpuset"),
        (MemoryOptions, "memblocks"),
        (Deadlines, "devices"),
    ):
        fields = {f"{package}.{options.__name__}.{field.name}" for field in attrs.fields(options)}
        assert fields <= set(named), fields - set(named)


def test_a_wrong_option_would_be_found() -> None:
    """The check can fail: at a class, at a field, at a parameter."""
    assert not found("cpuset.NoPolicy")
    assert not found("cpuset.StaticOptions.no_such_option")
    assert not found("memblocks.MemoryAllocator.of(no_such_parameter)")
