"""Block devices of this machine: loop devices, and the file systems on them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

from nodealloc.errors import PermanentError, RetryableError, UncertainError

__all__ = ["BlockTools", "Filesystems", "LinuxBlockTools", "LinuxFilesystems"]

_TIMEOUT_S: Final = 600.0
_PROBED: Final = 1 << 20
"""Bytes at the start of a device that have to be zero before it counts as empty."""


class BlockTools(Protocol):
    """Loop devices; every call may be repeated and may come from several threads."""

    def attach(self, image: str, /) -> str:
        """The loop device of an image file, the one it has already or a new one."""
        ...

    def detach(self, image: str, /) -> None:
        """Give back every loop device of an image; none is no error."""
        ...

    def refresh(self, device: str, /) -> int:
        """Let a loop device notice that its image grew; its size in bytes. Any device may be asked."""
        ...


class Filesystems(Protocol):
    """File systems on block devices."""

    def probe(self, device: str, /) -> str | None:
        """Its type; "" for something else that is not empty; None for certainly empty."""
        ...

    def make(self, device: str, fstype: str, /) -> None:
        """Make one; the caller knows that the device is empty."""
        ...

    def grow(self, device: str, mounted_at: str, /) -> bool:
        """Grow to the device's size, online where `mounted_at` is given.

        Returns:
            False when growing online is refused and has to wait for the next mount.
        """
        ...


class LinuxBlockTools:
    """`BlockTools` through losetup(8). Needs CAP_SYS_ADMIN."""

    def attach(self, image: str, /) -> str:
        """Find or make its loop device."""
        present = self._devices(image)
        if present:
            return present[0]
        return _run(["losetup", "--find", "--show", "--", image]).strip()

    def detach(self, image: str, /) -> None:
        """Give them back, those of an image that somebody deleted meanwhile as well."""
        present = self._devices(image) if Path(image).exists() else []
        for device in (*present, *_of_deleted(image)):
            _run(["losetup", "--detach", device])

    def refresh(self, device: str, /) -> int:
        """Read the image's size again."""
        if device.startswith("/dev/loop"):
            _run(["losetup", "--set-capacity", device])
        return _size(device)

    def _devices(self, image: str) -> list[str]:
        return _run(["losetup", "--associated", image, "--noheadings", "--output", "NAME"]).split()


class LinuxFilesystems:
    """`Filesystems` through blkid(8), mkfs(8), resize2fs(8) and xfs_growfs(8).

    Growing ext while it is mounted needs CAP_SYS_RESOURCE beside CAP_SYS_ADMIN;
    root in a container often lacks it, and growth waits for the next mount.
    """

    def probe(self, device: str, /) -> str | None:
        """Look for any signature, then for any byte."""
        status, out = _status(["blkid", "--probe", "--output", "export", device])
        if status == 2:
            return None if _is_zero(device) else ""
        if status != 0:
            # 8 is ambivalent: signatures of several kinds.
            return ""
        types = [line.removeprefix("TYPE=") for line in out.splitlines() if line.startswith("TYPE=")]
        return types[0] if types else ""

    def make(self, device: str, fstype: str, /) -> None:
        """Run mkfs of that type; of ext nothing is kept back for root, since pods are to have all of it.

        Source: Kubernetes v1.32 ``k8s.io/mount-utils``.
        """
        if shutil.which(f"mkfs.{fstype}") is None:
            raise PermanentError(f"mkfs.{fstype} is not on this node; install it, or use another fsType")
        options = ["-F", "-m", "0"] if fstype.startswith("ext") else ["-f"]
        with _alone(device) as lock:
            _run([f"mkfs.{fstype}", "-q", *options, device], lock)

    def grow(self, device: str, mounted_at: str, /) -> bool:
        """Grow ext2 to ext4 and xfs."""
        fstype = self.probe(device)
        if fstype == "xfs":
            return bool(mounted_at) and _status(["xfs_growfs", mounted_at])[0] == 0
        if fstype not in ("ext2", "ext3", "ext4"):
            raise PermanentError(f"{device} holds {fstype or 'no known file system'}; only ext and xfs grow")
        if mounted_at:
            return _status(["resize2fs", device])[0] == 0
        if _is_whole(device):
            return True
        # 1 says that errors were corrected; from 4 on they were not.
        with _alone(device) as lock:
            status, out = _status(["e2fsck", "-f", "-p", device], lock)
            if status >= 4:
                raise PermanentError(
                    f"{device} has errors that e2fsck will not mend by itself: {out.strip()}"
                )
            _run(["resize2fs", device], lock)
        return True


@contextlib.contextmanager
def _alone(device: str) -> Generator[int]:
    """A lock on a device that lives as long as this process *and* the tool it starts.

    A tool outlives an agent that is killed; the next life must not start a
    second one beside it. The lock's descriptor is inherited, so the lock is
    held until both are gone.
    """
    fd = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RetryableError(f"{device} is still being worked on by a tool of an earlier life") from None
        yield fd
    finally:
        os.close(fd)


def _of_deleted(image: str) -> Iterator[str]:
    """Loop devices of an image that stood at a path; losetup finds them by what stands there now."""
    was = f"{os.path.realpath(image)} (deleted)"
    for file in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):  # given back at this moment
            if os.fsdecode(file.read_bytes()).removesuffix("\n") == was:
                yield f"/dev/{file.parent.parent.name}"


def _size(device: str) -> int:
    fd = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.lseek(fd, 0, os.SEEK_END)
    finally:
        os.close(fd)


def _is_whole(device: str) -> bool:
    """Whether an ext file system fills its device, so that nothing need be checked and grown."""
    lines = _run(["dumpe2fs", "-h", device]).splitlines()
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    count, block = int(fields["Block count"]), int(fields["Block size"])
    return count >= _size(device) // block


def _is_zero(device: str) -> bool:
    with Path(device).open("rb") as file:
        return not any(file.read(_PROBED))


def _run(command: Sequence[str], *inherited: int) -> str:
    status, out = _status(command, *inherited)
    if status != 0:
        raise RetryableError(f"{' '.join(command)} ended with {status}: {out.strip()}")
    return out


def _status(command: Sequence[str], *inherited: int) -> tuple[int, str]:
    try:
        done = subprocess.run(  # noqa: S603 - a list, no shell
            command,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
            pass_fds=inherited,
            env={**os.environ, "LC_ALL": "C", "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"},
        )
    except FileNotFoundError as error:
        raise PermanentError(f"{command[0]} is not on this node; install it") from error
    except subprocess.TimeoutExpired as error:
        raise UncertainError(
            f"{' '.join(command)} took longer than {_TIMEOUT_S:g} s and was killed"
        ) from error
    return done.returncode, done.stdout if done.returncode == 0 else done.stdout + done.stderr
