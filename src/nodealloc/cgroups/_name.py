"""Values only: names of cgroups, and the two ways in which a node spells them."""

from __future__ import annotations

import enum
import functools
from typing import Final

from nodealloc import _attrs as attrs
from nodealloc._arguments import check
from nodealloc._typed import typed, typed_fields, typed_methods
from nodealloc.errors import ConfigurationError, DecodeError, Fault

__all__ = ["CgroupName", "Spelling"]

MAX_PART_BYTES: Final = 255
"""Longest file name that Linux takes; a longer one fails in `mkdir`."""

_SLICE: Final = ".slice"
_KERNEL_PREFIXES: Final = frozenset(
    {"blkio", "cgroup", "cpu", "cpuacct", "cpuset", "devices", "freezer", "hugetlb", "io", "irq"}
    | {"memory", "misc", "net_cls", "net_prio", "perf_event", "pids", "rdma"}
)
_KERNEL_FILES: Final = frozenset({"tasks", "notify_on_release", "release_agent"})


class Spelling(enum.Enum):
    """How names stand in the file system, by the kubelet's names for its drivers."""

    CGROUPFS = "cgroupfs"
    SYSTEMD = "systemd"


@functools.lru_cache(maxsize=4096)  # nearly all names share their first parts
def _part_fault(part: str) -> str:
    """What is wrong with one part of a name, with the remedy, or ""."""
    if not part:
        return "is empty; leave it out"
    if "/" in part:
        return "has a separator '/'; give each level as a part of its own"
    if "_" in part:
        return "has an underscore, which systemd's spelling needs for '-'; write '-'"
    if part.startswith("."):
        return "starts with a dot; the file system keeps '.' and '..' for itself and hides the rest"
    if not part.isprintable() or " " in part:
        return "has blanks or control characters; use letters, digits, '-' and '.'"
    if len(part.encode()) > MAX_PART_BYTES:
        return f"has {len(part.encode())} bytes; {MAX_PART_BYTES} is the most that a file name may have"
    first, dot, _ = part.partition(".")
    if part in _KERNEL_FILES or (dot and first in _KERNEL_PREFIXES):
        return "is reserved for the kernel's own control files; choose another name"
    return ""


def _checked(
    _instance: CgroupName, _attribute: attrs.Attribute[tuple[str, ...]], parts: tuple[str, ...]
) -> None:
    for index, part in enumerate(parts):
        if fault := _part_fault(part):
            raise ConfigurationError(f"cgroup name: part {index} {part!r} {fault}")


def _no_text(_instance: object, _attribute: object, parts: object) -> None:
    remedy = "a tuple of parts; CgroupName.of('a', 'b') and CgroupName.parse('/a/b') make one"
    check("CgroupName", parts, tuple, remedy)


@typed_methods
@typed_fields
@attrs.frozen(order=True, cache_hash=True)
class CgroupName:
    """Place in the cgroup tree, however the node spells it.

    Attributes:
        parts: From below the root to the cgroup; empty for the root itself. Any
            character that can be seen but `/` and `_` may stand in one.

    Source: kubelet ``cm/cgroup_manager_linux.go``; refusing dots and the
    kernel's own file names is ours.
    """

    parts: tuple[str, ...] = attrs.field(default=(), validator=[_no_text, _checked])

    @classmethod
    def of(cls, *parts: str) -> CgroupName:
        """The name with these parts; raises `ConfigurationError` that names a bad one."""
        return cls(parts)

    @classmethod
    @typed
    def parse(cls, text: str, /, spelling: Spelling = Spelling.CGROUPFS) -> CgroupName:
        """Read a path below the cgroup root, or a slice's name in systemd's spelling.

        Raises:
            DecodeError: A part is empty or bad, or a slice does not stand below
                the slices that its name says.
        """
        stripped = text.removeprefix("/").removesuffix("/")
        parts = stripped.split("/") if stripped else []
        try:
            return cls(tuple(parts) if spelling is Spelling.CGROUPFS else _from_slices(parts))
        except ValueError as error:
            raise DecodeError(f"cgroup {text!r}", [Fault("$", str(error))]) from None

    def child(self, part: str, /) -> CgroupName:
        """The cgroup one level below."""
        return CgroupName((*self.parts, part))

    @property
    def parent(self) -> CgroupName:
        """The cgroup one level above; the root's is the root."""
        return _above(self.parts[:-1])

    def is_below(self, other: CgroupName, /) -> bool:
        """Whether this cgroup stands anywhere below `other`."""
        depth = len(other.parts)
        return len(self.parts) > depth and self.parts[:depth] == other.parts

    def path(self, spelling: Spelling = Spelling.CGROUPFS) -> str:
        """Path from the cgroup root: `/a/b`, or `/a.slice/a-b.slice`.

        Raises:
            ConfigurationError: systemd has no spelling for a part that ends in `.slice`,
                or its slice would be longer than a file name may be.
        """
        if spelling is Spelling.CGROUPFS:
            return "/" + "/".join(self.parts)
        return "/" + "/".join(self._slices())

    @property
    def unit(self) -> str:
        """Name of the systemd slice alone: `a-b.slice`; `-.slice` for the root."""
        return self._slices()[-1] if self.parts else "-.slice"

    def _slices(self) -> list[str]:
        slices: list[str] = []
        prefix = ""
        for part in self.parts:
            if part.endswith(_SLICE):
                raise ConfigurationError(
                    f"cgroup name: part {part!r} is a slice already; write {part[:-6]!r}"
                )
            prefix += ("-" if prefix else "") + part.replace("-", "_")
            slices.append(prefix + _SLICE)
        if slices and len(slices[-1].encode()) > MAX_PART_BYTES:
            raise ConfigurationError(
                f"cgroup name: the slice of {self.path()} has {len(slices[-1].encode())} bytes; "
                f"{MAX_PART_BYTES} is the most; use shorter or fewer parts"
            )
        return slices

    def __str__(self) -> str:
        """The path in the plain spelling, for messages."""
        return self.path()


@functools.lru_cache(maxsize=1024)  # a thousand pods ask for the same three
def _above(parts: tuple[str, ...]) -> CgroupName:
    return CgroupName(parts)


def _from_slices(units: list[str]) -> tuple[str, ...]:
    """Parts of the last slice; the ones before it, if given, have to be its parents."""
    if not units or units == ["-.slice"]:
        return ()
    if not units[-1].endswith(_SLICE):
        raise ConfigurationError(f"{units[-1]!r} is no slice; systemd's spelling ends in {_SLICE!r}")
    escaped = units[-1].removesuffix(_SLICE).split("-")
    if len(units) > 1:
        expected = ["-".join(escaped[: depth + 1]) + _SLICE for depth in range(len(escaped))]
        if units != expected:
            raise ConfigurationError(f"slice {units[-1]!r} belongs at {'/' + '/'.join(expected)!r}")
    return tuple(part.replace("_", "-") for part in escaped)
