"""The kernel's table of mounts, read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from nodealloc import _attrs as attrs
from nodealloc._typed import typed, typed_fields
from nodealloc.errors import DecodeError, Fault

__all__ = ["Mount", "parse_line", "parse_mountinfo", "read_mountinfo"]

_OCTAL = re.compile(r"\\([0-7]{3})")


@typed_fields
@attrs.frozen(kw_only=True)
class Mount:
    """One line of mountinfo.

    Attributes:
        id: Unique among present mounts; used again after an unmount.
        parent: `id` of the mount that it stands in.
        device: `major:minor` of its file system.
        root: Directory of the file system that forms the root of this mount.
        target: Mount point, as this process sees it.
        options: Of this mount, such as `rw` and `relatime`.
        fstype: Type of file system.
        source: Device, or what the file system calls its source.
        super_options: Of the file system, such as `size=1024k`.

    Source: proc_pid_mountinfo(5).
    """

    id: int
    parent: int
    device: str
    root: str
    target: str
    options: tuple[str, ...] = ()
    fstype: str = ""
    source: str = ""
    super_options: tuple[str, ...] = ()

    @property
    def read_only(self) -> bool:
        """Whether this mount refuses writing, whatever its file system does."""
        return "ro" in self.options


def read_mountinfo(path: str = "/proc/self/mountinfo", /) -> str:
    """The table's text. Names are bytes to the kernel: those that are no UTF-8 come as surrogates."""
    return Path(path).read_bytes().decode("utf-8", "surrogateescape")


class _Lines:
    """The lines of the table that was read last: whoever reads it reads nearly all of it for another time.

    However long it is, and no line of one that is gone is kept. Thread-safe.
    """

    def __init__(self) -> None:
        self.known: dict[str, Mount] = {}

    def mounts(self, text: str) -> list[Mount]:
        """Each line of a table as a mount; raises `DecodeError` for those that are none."""
        before, known = self.known, dict[str, Mount]()
        mounts: list[Mount] = []
        faults: list[Fault] = []
        # Only a newline ends a line: the kernel escapes it in names, and no other separator.
        for number, line in enumerate(text.split("\n"), 1):
            if not line:
                continue
            mount = before.get(line) or parse_line(line)
            if mount is None:
                faults.append(Fault(f"line {number}", f"not a mount: {line[:80]!r}"))
            else:
                known[line] = mount
                mounts.append(mount)
        if faults:
            raise DecodeError("mountinfo", faults)
        self.known = known
        return mounts


_LINES: Final = _Lines()


@typed
def parse_mountinfo(text: str, /) -> list[Mount]:
    """Read `/proc/self/mountinfo`; raises `DecodeError` listing each line that does not fit."""
    return _LINES.mounts(text)


def parse_line(line: str, /) -> Mount | None:
    """One line of the table, without its newline; None for what is no mount."""
    # Optional fields stand between the sixth field and a lone hyphen.
    before, hyphen, after = line.partition(" - ")
    # Only the last field can hold blanks: some file systems print options of theirs as they are.
    front, back = before.split(" "), after.split(" ", 2)
    if not hyphen or len(front) < 6 or len(back) != 3 or not (front[0].isdecimal() and front[1].isdecimal()):
        return None
    return Mount(
        id=int(front[0]),
        parent=int(front[1]),
        device=front[2],
        root=_unescape(front[3]),
        target=_unescape(front[4]),
        options=tuple(front[5].split(",")),
        fstype=_unescape(back[0]),
        source=_unescape(back[1]),
        super_options=tuple(_unescape(back[2]).split(",")),
    )


def _unescape(text: str) -> str:
    r"""`\040` is a space; bytes beyond ASCII arrive as surrogates and stay so."""
    if "\\" not in text:
        return text
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), text)
