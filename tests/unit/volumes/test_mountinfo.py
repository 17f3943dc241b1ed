"""The kernel's table of mounts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodealloc import _mountinfo
from nodealloc._mountinfo import parse_line
from nodealloc.errors import DecodeError
from nodealloc.volumes import Mount, parse_mountinfo

LINE = (
    r"36 35 98:0 /mnt1 /mnt\0402\011\134 rw,noatime master:1 shared:2 - ext3 /dev/a\040b rw,errors=continue"
)


def test_escapes_and_optional_fields() -> None:
    """Spaces, tabs and backslashes are octal; any number of optional fields may stand before the hyphen."""
    mount = parse_mountinfo(LINE)[0]
    assert mount.target == "/mnt 2\t\\"
    assert mount.source == "/dev/a b"
    assert (mount.id, mount.parent, mount.device, mount.root) == (36, 35, "98:0", "/mnt1")
    assert mount.super_options == ("rw", "errors=continue")
    assert not mount.read_only
    assert parse_mountinfo("1 0 0:1 / / ro - tmpfs none rw\n")[0].read_only


def test_options_may_hold_blanks() -> None:
    """Some file systems print what they were given; the rest of the table is read all the same."""
    mount = parse_mountinfo(r"7 1 0:9 / /c rw - 9p drvfs rw,path=C:\Program Files\x;uid=0,trans=fd")[0]
    assert mount.super_options == ("rw", r"path=C:\Program Files\x;uid=0", "trans=fd")


def test_each_line_that_does_not_fit_is_named() -> None:
    """All faults at once, with their lines."""
    with pytest.raises(DecodeError) as caught:
        parse_mountinfo(f"{LINE}\nnonsense\n1 0 0:1 / / rw\nx 0 0:1 / / rw - a b c\n")
    assert [fault.path for fault in caught.value.faults] == ["line 2", "line 3", "line 4"]


def test_a_long_table_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the next one only what is new, however many lines there are; nothing is kept of what is gone."""
    read: list[str] = []

    def counted(line: str) -> Mount | None:
        read.append(line)
        return parse_line(line)

    lines = [f"{number} 1 0:1 / /{number} rw - tmpfs none rw" for number in range(10_000)]
    monkeypatch.setattr(_mountinfo, "parse_line", counted)
    first = parse_mountinfo("\n".join(lines))
    assert parse_mountinfo("\n".join([*lines, "10000 1 0:1 / /new rw - tmpfs none rw"]))[:-1] == first
    assert len(read) == 10_001
    parse_mountinfo(lines[0])
    assert list(_mountinfo._LINES.known) == lines[:1]


def test_the_table_of_this_process_is_read() -> None:
    """What the table is read from is mounted; below another root no line says "/"."""
    text = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    assert "/proc" in [mount.target for mount in parse_mountinfo(text)]


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1))
def test_any_name_survives(name: str) -> None:
    """What the kernel escapes comes back as it was."""
    escaped = name
    for character in "\\ \t\n#":
        escaped = escaped.replace(character, f"\\{ord(character):03o}") if character == "\\" else escaped
    for character in " \t\n#":
        escaped = escaped.replace(character, f"\\{ord(character):03o}")
    assert parse_mountinfo(f"1 0 0:1 / /{escaped} rw - tmpfs none rw")[0].target == f"/{name}"


@given(st.text())
def test_no_text_is_fatal(text: str) -> None:
    """Mounts or a `DecodeError`, nothing else."""
    try:
        mounts = parse_mountinfo(text)
    except DecodeError:
        return
    assert len(mounts) <= len(text.splitlines())
