"""Mounts of this machine: mount(2) and umount2(2) through libc, and the kernel's table watched.

The system calls rather than mount(8): a target is named by an open descriptor
(``/proc/self/fd/N``), which another process could not see, and which nobody can
swap for a symbolic link between the check and the mount.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
from collections.abc import Generator, Sequence
from typing import Final

from nodealloc._mountinfo import Mount, parse_mountinfo, read_mountinfo
from nodealloc._typed import typed, typed_methods
from nodealloc.volumes._errors import MountBusyError, MountError, OutsideRootError
from nodealloc.volumes._paths import SafeRoot

__all__ = ["LinuxMountTable", "LinuxMounter"]

_FLAGS: Final = {
    "ro": 1,
    "nosuid": 2,
    "nodev": 4,
    "noexec": 8,
    "sync": 16,
    "remount": 32,
    "dirsync": 128,
    "nosymfollow": 256,
    "noatime": 1024,
    "nodiratime": 2048,
    "bind": 4096,
    "rbind": 4096 | 16384,
    "relatime": 1 << 21,
    "strictatime": 1 << 24,
    "lazytime": 1 << 25,
}
_UNDOES: Final = {
    "rw": "ro",
    "suid": "nosuid",
    "dev": "nodev",
    "exec": "noexec",
    "async": "sync",
    "symfollow": "nosymfollow",
    "atime": "noatime",
    "diratime": "nodiratime",
    "norelatime": "relatime",
    "nostrictatime": "strictatime",
    "nolazytime": "lazytime",
}
"""Words that take another one back, so that the last of both counts."""
_SAYS_NOTHING: Final = frozenset({"defaults", "_netdev", "nofail"})
_READ_ONLY, _REMOUNT, _BIND = _FLAGS["ro"], _FLAGS["remount"], _FLAGS["bind"]
_KEPT_BY_BIND: Final = _FLAGS["bind"] | 16384
_FORBIDS: Final = _FLAGS["nosuid"] | _FLAGS["nodev"] | _FLAGS["noexec"]
"""These are the same bits to mount(2) and to statvfs(3)."""
_MNT_DETACH, _UMOUNT_NOFOLLOW = 2, 8
_LONGEST_S: Final = 1e6
"""Of one wait; poll(2) knows milliseconds in 31 bits."""


@typed_methods
class LinuxMounter:
    """`Mounter` of this machine; needs CAP_SYS_ADMIN in its mount namespace. Thread-safe.

    Args:
        root: Every target is below it.
    """

    @typed
    def __init__(self, root: SafeRoot, /) -> None:
        self._root = root
        self._libc = ctypes.CDLL(None, use_errno=True)

    def mount(self, source: str, target: str, /, *, fstype: str = "", options: Sequence[str] = ()) -> None:
        """Mount on a target below the root, which exists."""
        flags, data = _flags(options)
        with self._opened(target, target, "make the target first") as fd:
            place = f"/proc/self/fd/{fd}"
            if flags & _BIND and not flags & _REMOUNT:
                with self._bound(source, target) as shown:
                    self._call(shown, place, "", flags & _KEPT_BY_BIND, "")
                if flags & ~_KEPT_BY_BIND:
                    self._restrict_bind(target, flags)
                return
            kept = _kept(fd) if flags & _BIND else 0
            self._call(source, place, fstype, flags | kept, data)

    def unmount(self, target: str, /, *, lazy: bool = False) -> None:
        """Take the topmost mount off; see `Mounter.unmount`."""
        # The parent is opened, not the target: a descriptor of a mount keeps it busy.
        with self._root.open_parent(target) as (parent, name):
            if parent < 0:
                return
            flags = _UMOUNT_NOFOLLOW | (_MNT_DETACH if lazy else 0)
            if self._libc.umount2(os.fsencode(f"/proc/self/fd/{parent}/{name}"), flags) == 0:
                return
            number = ctypes.get_errno()
            if number == errno.EINVAL and _is_link(parent, name):
                raise OutsideRootError(target, f"{name!r} is a symbolic link")
        if number == errno.ENOENT or (number == errno.EINVAL and not self.is_mounted(target)):
            return
        text = os.strerror(number)
        if number == errno.EINVAL:
            text = "it came with this mount namespace and is locked; unmount it where it was mounted"
        kind = MountBusyError if number == errno.EBUSY else MountError
        raise kind("unmount", target, number, text)

    def is_mounted(self, target: str, /) -> bool:
        """Whether the target is a mount point."""
        return self._root.is_mount_point(target)

    @contextlib.contextmanager
    def _opened(self, path: str, target: str, remedy: str) -> Generator[int]:
        with contextlib.ExitStack() as stack:
            try:
                fd = stack.enter_context(self._root.open_file(path))
            except FileNotFoundError as error:
                text = f"{os.strerror(errno.ENOENT)}; {remedy}"
                raise MountError("mount", target, errno.ENOENT, text) from error
            yield fd

    @contextlib.contextmanager
    def _bound(self, source: str, target: str) -> Generator[str]:
        """Where a bind comes from; below the root it is walked like a target."""
        if not source.startswith(f"{self._root.path}/"):
            yield source
            return
        with self._opened(source, target, f"source {source} is not there") as fd:
            yield f"/proc/self/fd/{fd}"

    def _restrict_bind(self, target: str, flags: int) -> None:
        # The kernel ignores every flag beside MS_BIND on the first call, so a read-only bind
        # is writable for an instant; a failure must not leave it so.
        try:
            with self._root.open_file(target) as fd:
                self._call("none", f"/proc/self/fd/{fd}", "", flags | _REMOUNT | _kept(fd), "")
        except BaseException:
            self.unmount(target, lazy=True)
            raise

    def _call(self, source: str, place: str, fstype: str, flags: int, data: str) -> None:
        status = self._libc.mount(
            os.fsencode(source),
            os.fsencode(place),
            os.fsencode(fstype) or None,
            ctypes.c_ulong(flags),
            os.fsencode(data) or None,
        )
        if status != 0:
            number = ctypes.get_errno()
            kind = MountBusyError if number == errno.EBUSY else MountError
            text = f"{os.strerror(number)}, source {_named(source)}"
            raise kind("mount", _named(place), number, text)


@typed_methods
class LinuxMountTable:
    """`MountTable` of this process's mount namespace; one thread may wait at a time.

    Args:
        path: The kernel's table; another one for the namespace of another process.
    """

    @typed
    def __init__(self, path: str = "/proc/self/mountinfo", /) -> None:
        self._path = path
        self._file = open(path, "rb")  # noqa: PTH123, SIM115 - held open: the kernel counts changes an open file

    def entries(self) -> Sequence[Mount]:
        """Every mount."""
        return parse_mountinfo(read_mountinfo(self._path))

    @typed
    def wait(self, timeout_s: float, /) -> bool:
        """Block until something was mounted or unmounted, or for `timeout_s`, some days at most."""
        poll = select.poll()
        poll.register(self._file, select.POLLPRI | select.POLLERR)
        return bool(poll.poll(min(timeout_s, _LONGEST_S) * 1000))

    def close(self) -> None:
        """Stop watching."""
        self._file.close()


def _named(place: str) -> str:
    """A path for messages; a descriptor by where it leads."""
    return os.readlink(place) if place.startswith("/proc/self/fd/") else place  # noqa: PTH115 - a str


def _kept(fd: int) -> int:
    """Flags of a bind that changing others of it would take off: what it forbids stays forbidden."""
    return os.fstatvfs(fd).f_flag & _FORBIDS


def _is_link(parent: int, name: str) -> bool:
    try:
        os.readlink(name, dir_fd=parent)
    except OSError:
        return False
    return True


def _flags(options: Sequence[str]) -> tuple[int, str]:
    flags, data = 0, list[str]()
    for option in options:
        if option in _FLAGS:
            flags |= _FLAGS[option]
        elif option in _UNDOES:
            flags &= ~_FLAGS[_UNDOES[option]]
        elif option not in _SAYS_NOTHING:
            data.append(option)
    return flags, ",".join(data)
