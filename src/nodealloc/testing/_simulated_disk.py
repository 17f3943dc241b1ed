"""System calls that fail when told to, and a directory in memory that loses power."""

from __future__ import annotations

import errno
import itertools
import os
import random
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence

from typing_extensions import override

from nodealloc import _attrs as attrs
from nodealloc.checkpoint import Files

__all__ = ["FaultyFiles", "InjectedFault", "PowerCut", "SimulatedDisk"]


class PowerCut(BaseException):  # no error: nothing is left that could handle it
    """The machine lost power at this call."""


@attrs.frozen(kw_only=True)
class InjectedFault:
    """What happens to one call.

    Attributes:
        code: The error number that it fails with; 0 for none.
        happened: Whether the call had its effect all the same.
        taken: For a write: how many bytes it takes at most.
        cut: Whether power is lost before it.
    """

    code: int = 0
    happened: bool = False
    taken: int | None = None
    cut: bool = False


_NO_FAULT = InjectedFault()


class FaultyFiles(Files):
    """System calls that fail when told to.

    Args:
        inner: What really does it.
        fault: From the number of a call (1, 2, …) and its name to what happens to it.

    Attributes:
        log: The names of all calls so far.
    """

    def __init__(self, inner: Files, fault: Callable[[int, str], InjectedFault | None]) -> None:
        self._inner = inner
        self._fault = fault
        self._dark = False
        self.log: list[str] = []

    def _meet(self, name: str) -> InjectedFault:
        if self._dark:
            raise PowerCut
        self.log.append(name)
        fault = self._fault(len(self.log), name) or _NO_FAULT
        if fault.cut:
            self._dark = True
            raise PowerCut
        if fault.code and not fault.happened:
            raise OSError(fault.code, os.strerror(fault.code))
        return fault

    def _leave(self, fault: InjectedFault) -> None:
        if fault.code:
            raise OSError(fault.code, os.strerror(fault.code))

    @override
    def open(self, path: str, flags: int, mode: int = 0o600, *, dir_fd: int | None = None) -> int:
        """Open, or fail; a descriptor that is not handed out is closed."""
        fault = self._meet("open")
        descriptor = self._inner.open(path, flags, mode, dir_fd=dir_fd)
        if fault.code:
            self._inner.close(descriptor)
        self._leave(fault)
        return descriptor

    @override
    def stat(self, descriptor: int) -> os.stat_result:
        """Look at it, or fail."""
        fault = self._meet("stat")
        found = self._inner.stat(descriptor)
        self._leave(fault)
        return found

    @override
    def read(self, descriptor: int, size: int) -> bytes:
        """Read, or fail."""
        fault = self._meet("read")
        data = self._inner.read(descriptor, size)
        self._leave(fault)
        return data

    @override
    def write(self, descriptor: int, data: bytes | memoryview) -> int:
        """Write, perhaps less than asked, or fail."""
        fault = self._meet("write")
        written = self._inner.write(descriptor, memoryview(data)[: fault.taken])
        self._leave(fault)
        return written

    @override
    def begin_writing(self, descriptor: int) -> None:
        """Hint, or fail, which nobody minds."""
        fault = self._meet("begin_writing")
        self._inner.begin_writing(descriptor)
        self._leave(fault)

    @override
    def fsync(self, descriptor: int) -> None:
        """Flush, or fail."""
        fault = self._meet("fsync")
        self._inner.fsync(descriptor)
        self._leave(fault)

    @override
    def close(self, descriptor: int) -> None:
        """Close; Linux closes even when it reports an error."""
        fault = self._meet("close")
        self._inner.close(descriptor)
        self._leave(fault)

    @override
    def rename(self, source: str, target: str, *, dir_fd: int | None = None) -> None:
        """Rename, or fail."""
        fault = self._meet("rename")
        self._inner.rename(source, target, dir_fd=dir_fd)
        self._leave(fault)

    @override
    def unlink(self, path: str, *, dir_fd: int | None = None) -> None:
        """Unlink, or fail."""
        fault = self._meet("unlink")
        self._inner.unlink(path, dir_fd=dir_fd)
        self._leave(fault)

    @override
    def names(self, descriptor: int) -> Sequence[str]:
        """List, or fail."""
        fault = self._meet("names")
        names = self._inner.names(descriptor)
        self._leave(fault)
        return names

    @override
    def lock(self, descriptor: int, *, wait: bool) -> None:
        """Lock, or fail; the lock goes when its descriptor is closed."""
        fault = self._meet("lock")
        self._inner.lock(descriptor, wait=wait)
        self._leave(fault)


@attrs.define(eq=False)
class _Inode:
    data: bytearray = attrs.field(factory=bytearray)
    flushed: bytes = b""
    is_flushed: bool = True


@attrs.frozen
class _Entry:
    """A change of the directory: `source` goes, `target` names the inode; either may be absent."""

    source: str | None
    target: str | None
    inode: _Inode


@attrs.define
class _Open:
    path: str
    inode: _Inode | None
    offset: int = 0


class SimulatedDisk(Files):
    """One directory in memory, with a memory of what was flushed.

    Stricter than any file system: data are safe only after fsync of the file,
    each change of the directory only after fsync of the directory, and what is
    not safe may be lost or kept in any combination.

    Args:
        files: Name to content, flushed.
        path: The directory.
        capacity_bytes: How much all files hold together before writes fail with
            ENOSPC; None for no end. May be changed at any time.
    """

    def __init__(
        self,
        files: Mapping[str, bytes] | None = None,
        *,
        path: str = "/simulated",
        capacity_bytes: int | None = None,
    ) -> None:
        self.path = path
        self.capacity_bytes = capacity_bytes
        self._visible = {
            f"{path}/{name}": _Inode(data=bytearray(data), flushed=data)
            for name, data in (files or {}).items()
        }
        self._durable = dict(self._visible)
        self._waiting: list[_Entry] = []
        self._open: dict[int, _Open] = {}
        self._locked: dict[int, _Inode] = {}
        self._next = 100

    def files(self) -> Mapping[str, bytes]:
        """Name to content as a process sees them now."""
        prefix = len(self.path) + 1
        return {path[prefix:]: bytes(inode.data) for path, inode in self._visible.items()}

    def after_kill(self) -> SimulatedDisk:
        """The disk that the next process sees after SIGKILL: everything, flushed or not."""
        return SimulatedDisk(self.files(), path=self.path, capacity_bytes=self.capacity_bytes)

    def after_power_cut(self, rng: random.Random) -> SimulatedDisk:
        """One of the disks that a power cut now may leave."""
        kept = [entry for entry in self._waiting if rng.random() < 0.5]
        return self._after(rng.sample(kept, len(kept)) if rng.random() < 0.5 else kept, rng)

    def outcomes(self, rng: random.Random, *, limit: int = 64) -> Iterator[SimulatedDisk]:
        """Disks that a power cut now may leave.

        All combinations of lost and kept directory changes while there are at
        most `limit`, otherwise as many at random; each with the unflushed data
        lost, kept, cut short, or as zeros of the right length, and with the
        changes that survive in random order once.
        """
        count = len(self._waiting)
        if 1 << count <= limit:
            kept = list(itertools.product((False, True), repeat=count))
        else:
            kept = [tuple(rng.random() < 0.5 for _ in range(count)) for _ in range(limit)]
        for choice in kept:
            chosen = [entry for entry, keep in zip(self._waiting, choice, strict=True) if keep]
            for order in (chosen, rng.sample(chosen, len(chosen))):
                yield self._after(order, rng)

    def _after(self, entries: Sequence[_Entry], rng: random.Random) -> SimulatedDisk:
        names = dict(self._durable)
        for entry in entries:
            if entry.source is not None and names.get(entry.source) is entry.inode:
                del names[entry.source]
            if entry.target is not None:
                names[entry.target] = entry.inode
        prefix = len(self.path) + 1
        content = {path[prefix:]: _survives(inode, rng) for path, inode in names.items()}
        return SimulatedDisk(content, path=self.path, capacity_bytes=self.capacity_bytes)

    @override
    def open(self, path: str, flags: int, mode: int = 0o600, *, dir_fd: int | None = None) -> int:
        """Open a file, or the directory itself."""
        del mode
        path = self._below(path, dir_fd)
        inode: _Inode | None = None
        if path != self.path:
            inode = self._visible.get(path)
            if inode is None:
                if not flags & os.O_CREAT:
                    raise FileNotFoundError(errno.ENOENT, "absent", path)
                inode = _Inode()
                self._visible[path] = inode
                self._waiting.append(_Entry(None, path, inode))
            elif flags & os.O_EXCL:
                raise FileExistsError(errno.EEXIST, "taken", path)
            elif flags & os.O_TRUNC:
                inode.data.clear()
                inode.is_flushed = False
        self._next += 1
        self._open[self._next] = _Open(path, inode)
        return self._next

    @override
    def stat(self, descriptor: int) -> os.stat_result:
        """A file or directory of this user's alone."""
        inode = self._open[descriptor].inode
        mode = stat.S_IFDIR | 0o700 if inode is None else stat.S_IFREG | 0o600
        size = 0 if inode is None else len(inode.data)
        return os.stat_result((mode, 0, 0, 1, os.geteuid(), os.getegid(), size, 0, 0, 0))

    @override
    def read(self, descriptor: int, size: int) -> bytes:
        """Read on."""
        held = self._open[descriptor]
        assert held.inode is not None
        data = bytes(held.inode.data[held.offset : held.offset + size])
        held.offset += len(data)
        return data

    @override
    def write(self, descriptor: int, data: bytes | memoryview) -> int:
        """Write on; not safe before `fsync`."""
        held = self._open[descriptor]
        assert held.inode is not None
        if self.capacity_bytes is not None:
            used = sum(len(inode.data) for inode in set(self._visible.values()) - {held.inode})
            room = self.capacity_bytes - used - held.offset
            if room <= 0 < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            data = data[:room]
        held.inode.data[held.offset : held.offset + len(data)] = data
        held.inode.is_flushed = False
        held.offset += len(data)
        return len(data)

    @override
    def begin_writing(self, descriptor: int) -> None:
        """Nothing is safe by a hint."""

    @override
    def fsync(self, descriptor: int) -> None:
        """Make a file's data, or the directory's entries, safe."""
        held = self._open[descriptor]
        if held.inode is None:
            self._durable = dict(self._visible)
            self._waiting.clear()
        else:
            held.inode.flushed = bytes(held.inode.data)
            held.inode.is_flushed = True

    @override
    def close(self, descriptor: int) -> None:
        """Forget the descriptor and its lock."""
        del self._open[descriptor]
        self._locked.pop(descriptor, None)

    @override
    def rename(self, source: str, target: str, *, dir_fd: int | None = None) -> None:
        """Rename at once for everybody; not safe before `fsync` of the directory."""
        source, target = self._below(source, dir_fd), self._below(target, dir_fd)
        inode = self._visible.pop(source, None)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, "absent", source)
        self._visible[target] = inode
        self._waiting.append(_Entry(source, target, inode))

    @override
    def unlink(self, path: str, *, dir_fd: int | None = None) -> None:
        """Remove at once for everybody; not safe before `fsync` of the directory."""
        path = self._below(path, dir_fd)
        inode = self._visible.pop(path, None)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, "absent", path)
        self._waiting.append(_Entry(path, None, inode))

    @override
    def names(self, descriptor: int) -> Sequence[str]:
        """All names."""
        path = self._open[descriptor].path
        return [name[len(path) + 1 :] for name in self._visible]

    def _below(self, path: str, dir_fd: int | None) -> str:
        return path if dir_fd is None else f"{self._open[dir_fd].path}/{path}"

    @override
    def lock(self, descriptor: int, *, wait: bool) -> None:
        """Lock a file; waiting for one's own lock would last for ever, so it fails."""
        del wait
        inode = self._open[descriptor].inode
        assert inode is not None
        if any(held is inode for held in self._locked.values()):
            raise BlockingIOError(errno.EWOULDBLOCK, "locked")
        self._locked[descriptor] = inode


def _survives(inode: _Inode, rng: random.Random) -> bytes:
    if inode.is_flushed:
        return inode.flushed
    data = bytes(inode.data)
    cut = rng.randrange(len(data) + 1)
    return rng.choice(
        (inode.flushed, data, data[:cut], bytes(len(data)), data[:cut] + bytes(len(data) - cut))
    )
