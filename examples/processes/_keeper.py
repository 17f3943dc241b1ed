"""The keeper: starts containers, is their parent, and writes down how they end. One thread.

`python -m examples.processes._keeper FOLDER TREE ROOT`. Answers on
`FOLDER/keeper.sock`, in lines: `start ID` is answered with `started ID` or
`failed ID`; everybody who is connected hears `ended ID`. What lies behind a
line stands on disk before the line is written; an end that the disk does not
take yet is told once it does, by `ended ID`, also behind a `failed ID`.
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
import sys
import time
from collections.abc import Callable
from pathlib import Path

import attrs

from examples.processes._child import READY, become
from examples.processes._clients import Clients
from examples.processes._fence import Fence
from examples.processes._kept import (
    LISTENS,
    SOCKET,
    Ended,
    Files,
    Made,
    Started,
    boot_id,
    has_executed,
    start_ticks,
)
from nodealloc.cgroups import CgroupName, ProcessGoneError
from nodealloc.errors import DecodeError, NodeallocError

__all__ = ["main"]

_LOCK = "keeper.lock"
_NOT_STARTED = 128
"""Exit code of what could not be started, as container runtimes have it."""
_NOT_OURS = frozenset({errno.EISDIR, errno.ELOOP, errno.ENOTDIR, errno.EEXIST})
_LINGERS_S = 1.0
_REST_S = 0.1
"""After what failed, which may come up again at once."""
_PR_SET_CHILD_SUBREAPER = 36


@attrs.define
class Keeper:
    """All containers that run.

    Attributes:
        files: Where everything is written down.
        fence: How processes are held together.
        events: Everything that is waited for.
        children: Containers by the pid of their first process.
        clients: Who is connected.
        adopted: How many run that an earlier keeper started.
        due: Containers whose first process has ended, and what else they have not yet: each with how, by id.
        unwritten: How containers ended that the disk did not take yet, by id.
        files_limit: How many files containers may open, as it was before the keeper took more.
    """

    files: Files
    fence: Fence
    events: selectors.BaseSelector = attrs.field(factory=selectors.DefaultSelector)
    children: dict[int, tuple[Made, Started]] = attrs.field(factory=dict[int, tuple[Made, Started]])
    clients: Clients = attrs.field(
        default=attrs.Factory(lambda self: Clients(self.events, self.answer, _note), takes_self=True)
    )
    adopted: int = 0
    due: dict[str, tuple[Made, Started, Ended]] = attrs.field(
        factory=dict[str, tuple[Made, Started, Ended]], kw_only=True
    )
    unwritten: dict[str, Ended] = attrs.field(factory=dict[str, Ended], kw_only=True)
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
                _note(str(error))
                continue
            watch = _watch(started)
            if watch is None:
                self.due[name] = made, started, Ended(code=None, reason="Unknown")
                continue
            self.adopted += 1
            self.events.register(watch, selectors.EVENT_READ, self._lost(watch, made, started))
        while self.due:  # whoever reads once this keeper is there reads each end
            self.settle()

    def _lost(self, watch: int, made: Made, started: Started) -> Callable[[], None]:
        def ended() -> None:
            self.events.unregister(watch)
            os.close(watch)
            self.adopted -= 1
            self.due[made.id] = made, started, Ended(code=None, reason="Unknown", unix_s=time.time())

        return ended

    def start(self, name: str) -> str:
        """Start a container that was made; started twice, it runs once."""
        try:
            made = self.files.read(Made, "containers", name, "made")
            started = self.files.read(Started, "containers", name, "started")
        except (ValueError, DecodeError) as error:
            _note(str(error))
            return f"failed {name}"
        if made is None:
            _note(f"there is no container {name}")
        if made is None or name in self.unwritten:
            return f"failed {name}"
        if started is not None:
            return f"started {name}"
        try:
            self._start(made)
        except (OSError, ValueError, NodeallocError) as error:
            words = f"{made.argv[0]}: {error}" if made.argv else "no command specified"
            failed = Ended(code=_NOT_STARTED, reason="StartError", message=words, unix_s=time.time())
            self.write_end(name, failed)
            return f"failed {name}"
        return f"started {name}"

    def _start(self, made: Made) -> None:
        """Fork; the child waits until it is confined and written down, then becomes the command."""
        gate_read, gate = os.pipe()
        said, say = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(gate)
            become(made, gate_read, say, self.files_limit)
        os.close(gate_read)
        os.close(say)
        try:
            started = self._let_go(made, pid, gate, said)
        except BaseException as error:
            os.kill(pid, signal.SIGKILL)  # a child that was not waited for keeps its number
            _, status = os.waitpid(pid, 0)
            if isinstance(error, (_DiedError, BrokenPipeError, ProcessGoneError)):
                raise OSError(self._death(made, os.waitstatus_to_exitcode(status))) from error
            raise
        finally:
            os.close(gate)
            os.close(said)
        self.children[pid] = made, started

    def _let_go(self, made: Made, pid: int, gate: int, said: int) -> Started:
        """Confine the child, write it down, and open its gate."""
        if (first := os.read(said, 4096)) != READY:
            _raise(first)
            raise _DiedError
        self.fence.join(made.cgroup, pid)
        if (ticks := start_ticks(pid)) < 0:
            raise _DiedError
        started = Started(pid=pid, ticks=ticks, boot=boot_id(), unix_s=time.time(), uid=made.uid)
        self.files.write(started, "containers", made.id, "started")
        os.write(gate, b"\n")
        _raise(os.read(said, 4096))
        if not has_executed(pid):
            raise _DiedError
        return started

    def _death(self, made: Made, code: int) -> str:
        """How a child died that was not the command yet."""
        how = f"ended by {signal.Signals(-code).name}" if code < 0 else f"left with {code}"
        remedy = "; out of memory: its limit is too low" if self.fence.was_oom(made.cgroup) else ""
        return f"its process was {how} before it became the command{remedy}"

    def reap(self) -> None:
        """Collect all that has ended: containers, which are due then, and what they orphaned."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid in self.children:
                made, started = self.children.pop(pid)
                self.due[made.id] = made, started, self._how(os.waitstatus_to_exitcode(status))

    @staticmethod
    def _how(code: int) -> Ended:
        if code >= 0:
            return Ended(code=code, reason="Error" if code else "Completed", unix_s=time.time())
        return Ended(code=128 - code, signal=-code, reason="Error", unix_s=time.time())

    def _reasoned(self, made: Made, how: Ended) -> Ended:
        killed = how.signal == signal.SIGKILL and self.fence.was_oom(made.cgroup)
        return attrs.evolve(how, reason="OOMKilled") if killed else how

    def settle(self) -> None:
        """End all else of what is due, then tell it.

        Of one container, so that a request that came meanwhile waits no longer; of all that no
        cgroup holds, since one look at all processes serves any number of them.
        """
        names, words = [next(iter(self.due))], ""
        try:
            if not self.fence.holds(self.due[names[0]][0].cgroup):
                names = [name for name, (made, *_) in self.due.items() if not self.fence.holds(made.cgroup)]
            turn = [self.due[name] for name in names]
            left = self.fence.end({made.cgroup: started for made, started, _ in turn})
        except (OSError, NodeallocError) as error:
            left, words = {}, f"its other processes could not be ended: {error}"
        for name in names:
            made, _, how = self.due.pop(name)
            there = ", ".join(map(str, sorted(left.get(made.cgroup, ()))))
            message = f"not ended by SIGKILL yet: {there}" if there else words
            self.write_end(name, attrs.evolve(self._reasoned(made, how), message=message))

    def write_end(self, name: str, how: Ended) -> None:
        """Write down how a container ended, then tell it; where the disk does not take it now, later."""
        try:
            self.files.write(how, "containers", name, "ended")
        except (FileNotFoundError, NotADirectoryError):
            pass  # removed meanwhile
        except OSError as error:
            if name not in self.unwritten:
                _note(f"the end of container {name} is not written down yet: {error}")
            self.unwritten[name] = how
            return
        self.unwritten.pop(name, None)
        self.clients.tell(f"ended {name}")

    def answer(self, line: str) -> str:
        """What a line is answered with, "" for nothing."""
        word, _, name = line.partition(" ")
        return self.start(name) if word == "start" and "/" not in name else ""

    def run(self) -> None:
        """Until nothing runs and nobody is connected."""
        woken, wake = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(woken, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _heard)
        self.events.register(woken, selectors.EVENT_READ, lambda: os.read(woken, 4096))
        while True:
            idle = not (self.children or self.clients or self.adopted or self.due or self.unwritten)
            waits_s = _LINGERS_S if idle or self.unwritten else None
            ready = self.events.select(0 if self.due else waits_s)
            if idle and not ready:
                return
            for key, _ in ready:
                self._do(key.data)
            self.reap()
            if self.due:
                self.settle()
                continue
            for name, how in list(self.unwritten.items()):
                self.write_end(name, how)

    def _do(self, work: Callable[[], object]) -> None:
        """One thing that came up: what fails of it is noted, since all other containers go on."""
        try:
            work()
        except (OSError, ValueError, NodeallocError) as error:
            _note(repr(error))
            time.sleep(_REST_S)


class _DiedError(Exception):
    """A child died before it became the command."""


def _note(words: str) -> None:
    with contextlib.suppress(OSError):  # the log may be on the disk that takes nothing
        print(f"keeper: {words}", file=sys.stderr, flush=True)


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


def main(folder: str, tree: str, root: str) -> int:
    """Hold the lock, take over what runs, say `ready` or what stands in the way, and keep."""
    os.chdir(folder)
    try:
        return _keep(tree, root)
    except OSError as error:
        if error.filename is not None and error.errno in _NOT_OURS:
            with contextlib.suppress(OSError):
                os.write(1, f"{Path(folder, error.filename)}: {error.strerror}; move it away\n".encode())
        raise


def _keep(tree: str, root: str) -> int:
    lock = os.open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
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
        keeper.events.register(
            listener, selectors.EVENT_READ, lambda: keeper.clients.welcome(listener.accept()[0])
        )
        keeper.adopt()
        with contextlib.suppress(BrokenPipeError):  # whoever started it was killed; the next one finds it
            os.write(1, LISTENS)
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        keeper.run()
        Path(SOCKET).unlink(missing_ok=True)
    return 0


def _become_subreaper() -> None:
    """Orphans of containers come to this process, which reaps them; else they go to the first process."""
    import ctypes  # noqa: PLC0415 - only here, and only in this process

    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
