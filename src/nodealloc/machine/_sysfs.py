"""Files of a sysfs tree as values; the only file here that reads anything."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from nodealloc import _attrs as attrs
from nodealloc._not_now import NOT_NOW
from nodealloc.errors import ConfigurationError, DecodeError
from nodealloc.idset import MAX_ID, bits, format_list, parse_list
from nodealloc.machine._errors import MachineUnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

__all__ = ["Note", "Notes", "Tree", "check_now", "parse_mask"]

_CHUNK = 1 << 16
_PAGE = 4096
"""The kernel hands out most files in pieces of whole pages; a shorter piece is the last."""
_MOST = 1 << 20
"""Bytes beyond which a file is none of the kernel's; a list of every other id has a quarter of them."""
_LARGEST = (1 << 63) - 1
_HEX_GROUP = 8


def parse_mask(text: str) -> int:
    """Read the Linux mask format: groups of 32 bits in hexadecimal, highest first.

    Raises:
        ConfigurationError: Junk, or an id above `MAX_ID`.

    Source: ``cpuset(7)``, "Mask format"; the kernel pads every group but the
    first to eight digits, a hand that edits a capture may not.
    """
    mask = int("".join(group.strip().rjust(_HEX_GROUP, "0") for group in text.split(",")), 16)
    if mask < 0 or mask.bit_length() > MAX_ID + 1:
        raise ConfigurationError(f"{text!r} is no mask of ids from 0 to {MAX_ID}")
    return mask


@attrs.frozen
class Note:
    """Something about a machine that could not be known, and what stands in for it.

    Attributes:
        where: File below the sysfs root; ids that share the note as a list,
            `devices/system/cpu/cpu{0-3}/topology/core_cpus`.
        what: What is wrong there, and what was assumed.
    """

    where: str
    what: str

    def __str__(self) -> str:
        """`where: what`."""
        return f"{self.where}: {self.what}"


class Notes:
    """Collects notes; the same remark about many CPUs becomes one. Not for several threads."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str], int] = {}

    def add(self, where: str, what: str, *, ids: int = 0) -> None:
        """Remark on a file; `{}` in `where` stands for the ids of the mask `ids`."""
        self._ids[where, what] = self._ids.get((where, what), 0) | ids

    def listed(self) -> tuple[Note, ...]:
        """All notes, in the order in which the first of each was made."""
        return tuple(
            Note(where.replace("{}", "{" + format_list(ids) + "}") if ids else where, what)
            for (where, what), ids in self._ids.items()
        )


def check_now(error: OSError, path: str) -> None:
    """Raise `MachineUnreadableError` for an error that says nothing of what stands at a path."""
    if error.errno in NOT_NOW:
        raise MachineUnreadableError(path, os.strerror(error.errno)) from error


class Tree:
    """A directory whose small files are read by relative path.

    Paths are opened from a descriptor of the directory, which is about a third
    faster than full paths where there are thousands of files. Use it in a
    `with`. Not for several threads. What is absent, or refuses, has no content;
    each method raises `MachineUnreadableError` where the system does not say.
    """

    def __init__(self, path: str) -> None:
        """Open `path`; raises `OSError` where that is no readable directory."""
        self.path = path
        self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def text(self, path: str) -> str | None:
        """Content up to the first NUL byte, stripped; None for a file that cannot be read, or has no end.

        The kernel's text ends at the first NUL: captures hold such a byte
        where the tool that took them wrote one too many.
        """
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=self._fd)
        except OSError as error:
            check_now(error, f"{self.path}/{path}")
            return None
        try:
            data = os.read(fd, _CHUNK)
            while data and len(data) % _PAGE == 0 and (more := os.read(fd, _CHUNK)):
                data += more
                if len(data) > _MOST:
                    return None
        except OSError as error:
            check_now(error, f"{self.path}/{path}")
            return None
        finally:
            os.close(fd)
        return data.partition(b"\0")[0].decode("ascii", "replace").strip()

    def names(self, path: str) -> list[str]:
        """Names in a directory; empty where it cannot be listed."""
        try:
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._fd)
        except OSError as error:
            check_now(error, f"{self.path}/{path}")
            return []
        try:
            return os.listdir(fd)  # noqa: PTH208 - Path takes no descriptor
        except OSError as error:
            check_now(error, f"{self.path}/{path}")
            return []
        finally:
            os.close(fd)

    def holds(self, path: str) -> bool:
        """Whether there is something at `path`; False for a link that leads nowhere."""
        try:
            os.stat(path, dir_fd=self._fd)
        except OSError as error:
            check_now(error, f"{self.path}/{path}")
            return False
        return True

    def leads_out(self, path: str) -> bool:
        """Whether what stands at `path` lies outside the tree, by a link on the way."""
        top = os.path.realpath(self.path)
        return os.path.commonpath([top, os.path.realpath(f"{top}/{path}")]) != top

    def strays(self, path: str, prefix: str) -> int:
        """Mask of the n for which `path` holds a link named `prefix` and n that leads out of the tree."""
        try:
            with os.scandir(f"{self.path}/{path}") as entries:
                links = [entry.name for entry in entries if entry.is_symlink()]
        except OSError as error:
            check_now(error, f"{self.path}/{path}")
            return 0
        return sum(
            1 << number
            for number in bits(_numbers(links, prefix))
            if self.leads_out(f"{path}/{prefix}{number}")
        )

    def ids(self, path: str, prefix: str) -> int:
        """Mask of the n for which `path` holds an entry named `prefix` and n."""
        return _numbers(self.names(path), prefix)

    def number(self, path: str) -> int | None:
        """A whole number of 64 bits; None for a file that is absent or holds none."""
        try:
            number = int(self.text(path) or "", 10)
        except ValueError:
            return None
        return number if abs(number) <= _LARGEST else None

    def mask(self, path: str) -> int | None:
        """A file in mask format; None for one that is absent, empty or junk."""
        text = self.text(path)
        if not text:
            return None
        try:
            return parse_mask(text)
        except ValueError:
            return None

    def list(self, path: str) -> int | None:
        """A file in list format, as a mask; an empty file is the empty set, None is junk or absence."""
        text = self.text(path)
        if text is None:
            return None
        try:
            return parse_list(text)
        except DecodeError:
            return None


def _numbers(names: Iterable[str], prefix: str) -> int:
    """Mask of the n for which `prefix` and n is one of the names."""
    mask = 0
    start = len(prefix)
    for name in names:
        digits = name[start:]
        if (
            name.startswith(prefix)
            and digits.isascii()
            and digits.isdigit()
            and (number := int(digits)) <= MAX_ID
        ):
            mask |= 1 << number
    return mask
