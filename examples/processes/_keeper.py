"""The keeper: starts containers, is their parent, and writes down how they end. One thread.

`python -m examples.processes._keeper FOLDER TREE ROOT`. Answers on
`FOLDER/keeper.sock`, in lines: `start ID` is answered with `started ID` or
`failed ID`; everybody who is connected hears `ended ID`. What lies behind a
line stands on disk before the line is written.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import selectors
import signal
import socket
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

import attrs

from examples.processes._fence import Fence
from examples.processes._kept import SOCKET, Ended, Files, Made, Started, boot_id, start_ticks
from nodealloc.cgroups import CgroupName
from nodealloc.errors import DecodeError, NodeallocError

__all__ = ["main"]

_LOCK = "keeper.lock"
_NOT_STARTED = 128
"""Exit code of what could not be started, as container runtimes have it."""
_LINGERS_S = 1.0
_PR_SET_CHILD_SUBREAPER = 36


@attrs.define
class Keeper:
    """All containers that run.

    Attributes:
        files: Where everything is written down.
        fence: How processes are held together.
        events: Everything that is waited for.
        children: Containers by the pid of their first process.
        clients: Who is connected, with what came of an unfinished line.
        adopted: How many run that an earlier keeper started.
        files_limit: How many files containers may open, as it was before the keeper took more.
    """

    files: Files
    fence: Fence
    events: selectors.BaseSelector = attrs.field(factory=selectors.DefaultSelector)
    children: dict[int, tuple[Made, Started]] = attrs.field(factory=dict[int, tuple[Made, Started]])
    clients: dict[socket.socket, bytes] = attrs.field(factory=dict[socket.socket, bytes])
    adopted: int = 0
    files_limit: tuple[int, int] = attrs.field(
        factory=lambda: resource.getrlimit(resource.RLIMIT_NOFILE), kw_only=True
    )

    def adopt(self) -> None:
        """What an earlier keeper started: watched by descriptor; nobody will know how it ends."""
        for name in list(self.files.names("containers")):
            place = ("containers", name)
            try:
                made = self.files.read(Made, *place, "made")
                started = self.files.read(Started, *place, "started")
                if made is None or started is None or self.files.read(Ended, *place, "ended") is not None:
                    continue
            except DecodeError as error:  # torn when the machine lost its power
                print(f"keeper: {error}", file=sys.stderr)
                continue
            watch = _watch(started)
            if watch is None:
                self.ended(made, started, Ended(code=None, reason="Unknown"))
                continue
            self.adopted += 1
            self.events.register(watch, selectors.EVENT_READ, self._lost(watch, made, started))

    def _lost(self, watch: int, made: Made, started: Started) -> Callable[[], None]:
        def ended() -> None:
            self.events.unregister(watch)
            os.close(watch)
            self.adopted -= 1
            self.ended(made, started, Ended(code=None, reason="Unknown", unix_s=time.time()))

        return ended

    def start(self, name: str) -> str:
        """Start a container that was made; started twice, it runs once."""
        made = self.files.read(Made, "containers", name, "made")
        if made is None:
            return f"failed {name}"
        if self.files.read(Started, "containers", name, "started") is not None:
            return f"started {name}"
        try:
            self._start(made)
        except (OSError, ValueError, NodeallocError) as error:
            words = f"{made.argv[0] if made.argv else 'no command'}: {error}"
            failed = Ended(code=_NOT_STARTED, reason="StartError", message=words, unix_s=time.time())
            self.files.write(failed, "containers", name, "ended")
            return f"failed {name}"
        return f"started {name}"

    def _start(self, made: Made) -> None:
        """Fork; the child waits until it is confined and written down, then becomes the command."""
        gate_read, gate = os.pipe()
        fault, fault_write = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(gate)
            become(made, gate_read, fault_write, self.files_limit)
        os.close(gate_read)
        os.close(fault_write)
        try:
            try:
                self.fence.join(made.cgroup, pid)
                started = Started(
                    pid=pid, ticks=start_ticks(pid), boot=boot_id(), unix_s=time.time(), uid=made.uid
                )
                self.files.write(started, "containers", made.id, "started")
                os.write(gate, b"\n")
            except BaseException:
                os.kill(pid, signal.SIGKILL)  # a child that was not waited for keeps its number
                raise
            finally:
                os.close(gate)
            _raise(os.read(fault, 4096))
        except BaseException:
            os.waitpid(pid, 0)
            raise
        finally:
            os.close(fault)
        self.children[pid] = made, started

    def reap(self) -> None:
        """Collect all that has ended: containers, and what they orphaned."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid in self.children:
                made, started = self.children.pop(pid)
                self.ended(made, started, self._how(made, os.waitstatus_to_exitcode(status)))

    def _how(self, made: Made, code: int) -> Ended:
        if code >= 0:
            return Ended(code=code, reason="Error" if code else "Completed", unix_s=time.time())
        killed = code == -signal.SIGKILL and self.fence.was_oom(made.cgroup)
        reason = "OOMKilled" if killed else "Error"
        return Ended(code=128 - code, signal=-code, reason=reason, unix_s=time.time())

    def ended(self, made: Made, started: Started, how: Ended) -> None:
        """The first process has ended: so does all else of its container; then it is told."""
        try:
            left = self.fence.end(made.cgroup, started.pid, started.ticks)
        except NodeallocError as error:
            how = attrs.evolve(how, message=f"its other processes could not be ended: {error}")
        else:
            if left:
                words = f"not ended by SIGKILL yet: {', '.join(map(str, sorted(left)))}"
                how = attrs.evolve(how, message=words)
        with contextlib.suppress(FileNotFoundError):  # removed meanwhile
            self.files.write(how, "containers", made.id, "ended")
        for client in list(self.clients):
            self.say(client, f"ended {made.id}")

    def say(self, client: socket.socket, line: str) -> None:
        """A line to one who is connected; whoever does not listen is let go."""
        try:
            client.sendall(f"{line}\n".encode())
        except OSError:
            self.leave(client)

    def leave(self, client: socket.socket) -> None:
        """Somebody is connected no more."""
        if self.clients.pop(client, None) is not None:
            self.events.unregister(client)
            client.close()

    def welcome(self, listener: socket.socket) -> None:
        """Somebody connects."""
        client, _ = listener.accept()
        client.settimeout(10.0)
        self.clients[client] = b""
        self.events.register(client, selectors.EVENT_READ, lambda: self.hear(client))
        self.say(client, "here")  # from now on it is told of each end

    def hear(self, client: socket.socket) -> None:
        """Somebody asks."""
        try:
            data = client.recv(65536)
        except OSError:
            data = b""
        if not data:
            self.leave(client)
            return
        *lines, self.clients[client] = (self.clients[client] + data).split(b"\n")
        for line in lines:
            word, _, name = line.decode().partition(" ")
            if word == "start" and "/" not in name:
                self.say(client, self.start(name))

    def run(self) -> None:
        """Until nothing runs and nobody is connected."""
        woken, wake = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(woken, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _heard)
        self.events.register(woken, selectors.EVENT_READ, lambda: os.read(woken, 4096))
        while True:
            idle = not (self.children or self.clients or self.adopted)
            ready = self.events.select(_LINGERS_S if idle else None)
            if idle and not ready:
                return
            for key, _ in ready:
                key.data()
            self.reap()


def _raise(said: bytes) -> None:
    """What a child said that could not become the command."""
    if said:
        number, _, words = said.decode(errors="replace").partition(" ")
        raise OSError(int(number), words or os.strerror(int(number)))


def _watch(started: Started) -> int | None:
    """A descriptor of that very process; None where it has ended."""
    try:
        watch = os.pidfd_open(started.pid)
    except ProcessLookupError:
        return None
    if started.is_alive:  # asked once it is held, so that the number is not another's
        return watch
    os.close(watch)
    return None


def _heard(_number: int, _frame: object) -> None:
    """The byte that the signal leaves in a pipe is enough."""


def become(made: Made, gate: int, fault: int, files_limit: tuple[int, int]) -> None:
    """In the child: wait at the gate, then be the command. Never returns."""
    try:
        os.setsid()
        quiet = os.open(os.devnull, os.O_RDWR)
        if made.log:
            Path(made.log).parent.mkdir(parents=True, exist_ok=True)
        log = _log(made.log) if made.log else quiet
        for number, file in enumerate((quiet, log, log)):
            os.dup2(file, number)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        if not os.read(gate, 1):
            os._exit(125)  # the keeper died before this was written down: nothing runs
        resource.setrlimit(resource.RLIMIT_NOFILE, files_limit)
        _take_rights(made)
        os.execvpe(made.argv[0], made.argv, made.env)  # noqa: S606 - running what is asked for is the point
    except BaseException as error:  # noqa: BLE001 - whatever it is, it has to be told
        number = error.errno if isinstance(error, OSError) and error.errno else errno.EINVAL
        os.write(fault, f"{number} {getattr(error, 'strerror', None) or error}".encode())
    os._exit(127)


def _log(path: str) -> int:
    """A file to append to; a link or a pipe in its place is refused, and waited for by nobody."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
    log = os.open(path, flags, 0o640)
    if not stat.S_ISREG(os.fstat(log).st_mode):
        raise OSError(errno.EINVAL, f"{path} is no file to write a log to")
    os.set_blocking(log, True)
    return log


def _take_rights(made: Made) -> None:
    if made.oom_score_adj is not None:
        with contextlib.suppress(OSError):  # lowering it may be refused; it is a wish
            Path("/proc/self/oom_score_adj").write_text(str(made.oom_score_adj))
    if made.cpus:
        os.sched_setaffinity(0, made.cpus)
    os.chdir(made.folder or "/")
    if made.group is not None:
        os.setgroups(made.groups)
        os.setgid(made.group)
    if made.user is not None:
        os.setuid(made.user)


def main(folder: str, tree: str, root: str) -> int:
    """Hold the lock, take over what runs, say `ready`, and keep."""
    os.chdir(folder)
    lock = os.open(_LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return 1
    _become_subreaper()
    keeper = Keeper(Files(Path.cwd()), Fence.find(tree, CgroupName.parse(root)))
    most = keeper.files_limit[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a descriptor for each that is taken over
    Path(SOCKET).unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(SOCKET)
        listener.listen(16)
        keeper.events.register(listener, selectors.EVENT_READ, lambda: keeper.welcome(listener))
        keeper.adopt()
        os.write(1, b"ready\n")
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        keeper.run()
        Path(SOCKET).unlink()
    return 0


def _become_subreaper() -> None:
    """Orphans of containers come to this process, which reaps them; else they go to the first process."""
    import ctypes  # noqa: PLC0415 - only here, and only in this process

    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
