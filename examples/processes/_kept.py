"""What stands on disk of each sandbox and container; every file is whole, or not there."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import stat
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar

import attrs
import cattrs
from cattrs.errors import BaseValidationError

from nodealloc.errors import DecodeError, Fault
from nodealloc.podfacts import Exited, ExitUnknown
from nodealloc.runtime import Exit

__all__ = [
    "LISTENS",
    "SOCKET",
    "Box",
    "Ended",
    "Files",
    "Made",
    "Started",
    "boot_id",
    "has_executed",
    "make_log_folder",
    "open_log",
    "start_ticks",
    "stat_fields",
    "variables",
]

SOCKET = "keeper.sock"
"""Where the keeper answers, below the folder."""

LISTENS: Final = b"ready\n"
"""What a keeper says first to who started it; anything else is what stands in its way."""

_KINDS: Final = ("sandboxes", "containers", "images")
_NOT_NOW: Final = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO)

_FORK_NO_EXEC: Final = 0x40
"""Flag of a process, as in `linux/sched.h`."""

T = TypeVar("T")


@attrs.frozen(kw_only=True)
class Box:
    """A sandbox.

    Attributes:
        id: Its id.
        uid: Its pod's, as `namespace` and `name` are.
        namespace: See `uid`.
        name: See `uid`.
        attempt: Counts the sandboxes of the pod.
        created_unix_s: When it was made.
        boot: Boot that it belongs to; with another one it is ready no more.
        parent: Cgroup of its containers.
        is_owner: Whether that cgroup goes with it.
        host_network: Whether it was asked for the machine's network, which it has in any case.
        stopped: Whether it was stopped.
        handler: As it was asked for.
        labels: As it was made with.
        annotations: As it was made with.
    """

    id: str
    uid: str
    namespace: str
    name: str
    attempt: int
    created_unix_s: float
    boot: str
    parent: str
    is_owner: bool
    host_network: bool
    stopped: bool = False
    handler: str = ""
    labels: dict[str, str]
    annotations: dict[str, str]


@attrs.frozen(kw_only=True)
class Made:
    """A container: who it is, and all that is needed to start it.

    Attributes:
        id: Its id.
        sandbox: That of its sandbox.
        name: As the pod names it.
        attempt: Counts its instances.
        created_unix_s: When it was made.
        image: As the pod names it.
        image_id: As it was asked for.
        definition: Fingerprint of what it was made from.
        labels: As it was made with.
        annotations: As it was made with.
        cgroup: Where its processes live.
        argv: Program and arguments.
        env: The whole environment.
        folder: Working directory.
        user: User id, None for the keeper's own.
        group: Group id, likewise.
        groups: Further group ids.
        cpus: CPUs to run on where no cgroup confines, in order.
        oom_score_adj: None to leave it.
        log: File of its output, "" for none.
        uid: Its pod's; "" where an older agent made it.
    """

    id: str
    sandbox: str
    name: str
    attempt: int
    created_unix_s: float
    image: str
    image_id: str
    definition: str
    labels: dict[str, str]
    annotations: dict[str, str]
    cgroup: str
    argv: list[str]
    env: dict[str, str]
    folder: str
    user: int | None
    group: int | None
    groups: list[int]
    cpus: list[int]
    oom_score_adj: int | None
    log: str
    uid: str = ""


@attrs.frozen(kw_only=True)
class Started:
    """The process of a container that was started.

    Attributes:
        pid: Of its first process, which leads a session.
        ticks: Start time of that process, against reuse of the number.
        boot: Boot that both belong to.
        unix_s: When it was started.
        uid: Its pod's, for where nothing else can be read; "" where an older keeper started it.
    """

    pid: int
    ticks: int
    boot: str
    unix_s: float
    uid: str = ""

    @property
    def is_alive(self) -> bool:
        """Whether that very process still runs."""
        return self.boot == boot_id() and start_ticks(self.pid) == self.ticks


@attrs.frozen(kw_only=True)
class Ended:
    """How a container ended.

    Attributes:
        code: Exit status, 128 and the signal for a signal; None where nobody saw it.
        signal: The signal that ended it, if one did.
        reason: One word.
        message: For people.
        unix_s: When it ended; None where nobody knows.
    """

    code: int | None
    signal: int | None = None
    reason: str
    message: str = ""
    unix_s: float | None = None

    @property
    def exit(self) -> Exit:
        """The same as the runtime's value."""
        return ExitUnknown() if self.code is None else Exited(code=self.code, signal=self.signal)


class Files:
    """The folder of all that is kept: `sandboxes/ID`, `containers/ID/{made,started,ended}`, `images/NAME`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._converter = cattrs.Converter(forbid_extra_keys=True)
        for name in _KINDS:
            (folder / name).mkdir(parents=True, exist_ok=True)

    def read(self, kind: type[T], *path: str) -> T | None:
        """A value that was kept; None where there is none.

        Raises:
            DecodeError: It is there and cannot be read.
        """
        file = self.folder.joinpath(*path)
        try:
            return self._converter.structure(json.loads(_text(file)), kind)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, RecursionError, BaseValidationError) as error:
            raise DecodeError(str(file), [Fault("$", f"cannot be read: {error!r}")]) from error

    def write(self, value: Box | Made | Started | Ended, *path: str) -> None:
        """Keep a value: whole, or what was there before.

        Raises:
            FileNotFoundError: Of a container that is not there any more.
        """
        file = self.folder.joinpath(*path)
        if isinstance(value, Made):
            file.parent.mkdir(exist_ok=True)
        self._write(json.dumps(attrs.asdict(value)), file)

    def write_image(self, called: str, name: str) -> None:
        """Keep what an image was pulled as."""
        self._write(json.dumps(called), self.folder / "images" / name)

    def _write(self, text: str, file: Path) -> None:
        # The process and the thread: an agent, its keeper, and two pulls of one image may write at once.
        aside = file.with_name(f".{file.name}.{os.getpid()}.{threading.get_ident()}")
        try:
            aside.touch(mode=0o600)  # environments are written, with what is secret of them
            aside.write_text(text)
        except OSError:  # as on a full disk: each try has a name of its own
            with contextlib.suppress(OSError):
                aside.unlink(missing_ok=True)
            raise
        try:
            aside.replace(file)
        except IsADirectoryError:  # somebody's: what is kept here is ours
            shutil.rmtree(file)
            aside.replace(file)

    def tidy(self) -> None:
        """Remove what others, now dead, had half written or half removed; nobody else may write meanwhile."""
        for kind in _KINDS:
            for entry in list(os.scandir(self.folder / kind)):
                if entry.name.startswith("."):
                    _remove(Path(entry.path))

    def image(self, name: str) -> str | None:
        """What an image was pulled as; None for none, which is pulled again then."""
        try:
            called = json.loads(_text(self.folder / "images" / name))
        except (OSError, ValueError, RecursionError):
            return None
        return called if isinstance(called, str) else None

    def names(self, kind: str) -> Iterator[str]:
        """Ids of what is kept below a folder."""
        for entry in os.scandir(self.folder / kind):
            if not entry.name.startswith("."):
                yield entry.name

    def drop(self, *path: str) -> None:
        """Forget a sandbox, an image, or a container with all its files, at once, if it is there."""
        file = self.folder.joinpath(*path)
        gone = file.with_name(f".gone-{file.name}")
        with contextlib.suppress(FileNotFoundError):
            file.replace(gone)
        _remove(gone)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def _text(file: Path) -> str:
    """Of a regular file: anything else in its place is not waited for."""
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        # Before it becomes a file object: of a folder that fails, and leaves the descriptor open.
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError("no regular file")
        with open(descriptor, encoding="utf-8", closefd=False) as opened:
            return opened.read()
    finally:
        os.close(descriptor)


def open_log(path: str | Path) -> int:
    """A file to append to; a link or a pipe in its place is refused, and waited for by nobody."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
    log = os.open(path, flags, 0o640)
    if not stat.S_ISREG(os.fstat(log).st_mode):
        os.close(log)
        raise OSError(errno.EINVAL, f"{path} is no file to write a log to")
    os.set_blocking(log, True)
    return log


def make_log_folder(folder: Path, /) -> None:
    """Make it, and name what stands in its way.

    Raises:
        OSError: It cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        places = (one for one in [*reversed(folder.parents), folder] if os.path.lexists(one))
        if (odd := next((one for one in places if not one.is_dir()), None)) is None:
            raise
        words = f"a link to {odd.readlink()}, which is no folder" if odd.is_symlink() else "no folder"
        raise OSError(f"{odd} is {words}; move it away: logs go there") from error


def boot_id() -> str:
    """This boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def start_ticks(pid: int, /) -> int:
    """Start time of a live process; -1 for one that is gone or waits to be reaped."""
    fields = stat_fields(pid)
    return -1 if not fields or fields[0] in "ZX" else int(fields[19])


def has_executed(pid: int, /) -> bool:
    """Whether a child has become another program since its fork; True for one that is gone."""
    fields = stat_fields(pid)
    return not fields or not int(fields[6]) & _FORK_NO_EXEC


def stat_fields(pid: int, /) -> list[str]:
    """`/proc/PID/stat` from the state on; empty for a process that is gone, or may not be seen.

    Raises:
        OSError: Nobody knows, as where too many files are open: it may run, and none may start in its place.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError as error:
        if error.errno in _NOT_NOW:
            raise
        return []
    return text.rpartition(")")[2].split()


def variables(mounts: Mapping[str, str], /) -> dict[str, str]:
    """Variables that say where on the host the paths of a container are: `/var/data` is `MOUNT_VAR_DATA`."""
    return {
        "MOUNT_" + "".join(one if one.isalnum() else "_" for one in inside.strip("/").upper()): outside
        for inside, outside in mounts.items()
    }
