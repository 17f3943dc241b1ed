"""What the keeper's child does between its fork and the command that it becomes."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
from pathlib import Path
from typing import NoReturn

from examples.processes._kept import Made, make_log_folder, open_log

__all__ = ["READY", "become"]

READY = b"."
"""Said by a child that waits at its gate; anything else is why it cannot become the command."""


def become(made: Made, gate: int, said: int, files_limit: tuple[int, int]) -> NoReturn:
    """Get ready, say so, wait at the gate, then be the command.

    Args:
        made: The container.
        gate: One byte comes out of it when the process is in its cgroup and written down.
        said: Where to say `READY`, and what fails: the number of the error, and words.
        files_limit: How many files the command may open.
    """
    try:
        os.setsid()
        _take_output(made.log)
        _take_signals()
        os.write(said, READY)
        if not os.read(gate, 1):
            os._exit(125)  # the keeper died before this was written down: nothing runs
        resource.setrlimit(resource.RLIMIT_NOFILE, files_limit)
        _take_rights(made)
        os.execvpe(made.argv[0], made.argv, made.env)  # noqa: S606 - running what is asked for is the point
    except BaseException as error:  # noqa: BLE001 - whatever it is, it has to be told
        number = error.errno if isinstance(error, OSError) and error.errno else errno.EINVAL
        words = f"{number} {getattr(error, 'strerror', None) or error}"
        with contextlib.suppress(OSError):
            os.write(said, words.encode(errors="replace"))
    finally:
        os._exit(127)  # whatever fails: it must not go on as a second keeper


def _take_output(path: str) -> None:
    quiet = os.open(os.devnull, os.O_RDWR)
    log = quiet
    if path:
        make_log_folder(Path(path).parent)
        log = open_log(path)
    for number, file in enumerate((quiet, log, log)):
        os.dup2(file, number)


def _take_signals() -> None:
    """None is ignored or blocked, whatever Python does and the agent was started with."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _take_rights(made: Made) -> None:
    if made.oom_score_adj is not None:
        with contextlib.suppress(OSError):  # lowering it may be refused; it is a wish
            Path("/proc/self/oom_score_adj").write_text(str(made.oom_score_adj))
    if made.cpus:
        os.sched_setaffinity(0, made.cpus)
    folder = made.folder or "/"
    try:
        os.chdir(folder)
    except OSError as error:
        raise OSError(error.errno, f"working directory {folder}: {error.strerror}") from error
    if made.group is not None or made.groups:
        os.setgroups(made.groups)
    if made.group is not None:
        os.setgid(made.group)
    if made.user is not None:
        os.setuid(made.user)
