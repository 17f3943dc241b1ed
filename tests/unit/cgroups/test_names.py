"""Names: what is refused, and why."""

from __future__ import annotations

import pytest

from nodealloc.cgroups import CgroupName, Spelling, hugepage_name
from nodealloc.cgroups._convert import milli_cpu_to_quota_us, milli_cpu_to_shares
from nodealloc.errors import DecodeError


@pytest.mark.parametrize(
    ("part", "why"),
    [
        ("", "empty"),
        ("a/b", "separator"),
        ("a_b", "underscore"),
        (".", "dot"),
        ("..", "dot"),
        (".hidden", "dot"),
        ("a b", "blanks"),
        ("a\nb", "control"),
        ("x" * 256, "256 bytes"),
        ("cgroup.procs", "reserved"),
        ("memory.max", "reserved"),
        ("tasks", "reserved"),
    ],
)
def test_bad_part_is_named(part: str, why: str) -> None:
    """Each bad part is refused with its place, itself and what is wrong."""
    with pytest.raises(ValueError, match=r"part 1") as refused:
        CgroupName.of("good", part)
    assert repr(part) in str(refused.value)
    assert why in str(refused.value)


def test_names_move_up_and_down() -> None:
    """Child, parent, root and below."""
    name = CgroupName.of("a", "b")
    assert name.child("c").parent == name
    assert CgroupName().parent == CgroupName()
    assert name.is_below(CgroupName())
    assert not name.is_below(name)
    assert not name.is_below(CgroupName.of("b"))
    assert str(name) == "/a/b"
    assert CgroupName().unit == "-.slice"
    assert CgroupName().path(Spelling.SYSTEMD) == "/"


def test_systemd_spelling_nests_and_escapes() -> None:
    """Each slice repeats its parents; a dash inside a part becomes an underscore."""
    name = CgroupName.of("kubepods", "burstable", "pod12-34")
    assert name.path(Spelling.SYSTEMD) == (
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12_34.slice"
    )
    assert name.unit == "kubepods-burstable-pod12_34.slice"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("/kubepods.slice/other.slice", "belongs at"),
        ("/kubepods", "no slice"),
        ("/kubepods--a.slice", "empty"),
        ("//a.slice", "belongs at"),
    ],
)
def test_bad_slices_are_named(text: str, why: str) -> None:
    """A path that systemd would never make is refused."""
    with pytest.raises(DecodeError, match=why):
        CgroupName.parse(text, Spelling.SYSTEMD)


def test_bad_paths_are_named() -> None:
    """The plain spelling refuses an empty part in the middle."""
    with pytest.raises(DecodeError, match="empty"):
        CgroupName.parse("/a//b")
    assert CgroupName.parse("/") == CgroupName()
    assert CgroupName.parse("/system.slice") == CgroupName.of("system.slice")


def test_slices_that_systemd_cannot_spell() -> None:
    """A part that is a slice already, and a slice too long for a file name, are refused."""
    with pytest.raises(ValueError, match=r"write 'system'"):
        CgroupName.of("system.slice").path(Spelling.SYSTEMD)
    with pytest.raises(ValueError, match="255 is the most"):
        CgroupName.of("x" * 200, "y" * 100).path(Spelling.SYSTEMD)


def test_conversions_refuse_nonsense() -> None:
    """Negative CPU and odd page sizes are refused; the ends of the range are kept to."""
    with pytest.raises(ValueError, match="-1 milli-CPU"):
        milli_cpu_to_shares(-1)
    with pytest.raises(ValueError, match="-1 milli-CPU"):
        milli_cpu_to_quota_us(-1)
    assert (milli_cpu_to_shares(0), milli_cpu_to_shares(10**9)) == (2, 262144)
    assert (milli_cpu_to_quota_us(0), milli_cpu_to_quota_us(1)) == (0, 1000)
    assert milli_cpu_to_quota_us(500, period_us=20_000) == 10_000
    assert [hugepage_name(size) for size in (64 << 10, 2 << 20, 1 << 30)] == ["64KB", "2MB", "1GB"]
    for size in (0, 1000, (2 << 20) + 1):
        with pytest.raises(ValueError, match="no huge page size"):
            hugepage_name(size)


@pytest.mark.parametrize("part", ["é", "٣", "a\\b", "%2f", "$(id)", "a=b", ":", "user@1000.service", "a..b"])
def test_what_can_be_seen_may_stand_in_a_name(part: str) -> None:
    """Other programs made cgroups of such names; they are read, spelled and stay below the root."""
    name = CgroupName.of("kubepods", part)
    assert name.parts == ("kubepods", part)
    assert CgroupName.parse(str(name)) == name
