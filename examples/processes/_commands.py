"""Commands in containers: within their cgroup, and with a time after which nothing of them is left."""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from examples.processes._fence import Fence, end_all
from examples.processes._kept import Made
from examples.processes._marks import COMMAND
from nodealloc.errors import NodeallocError
from nodealloc.runtime import CommandResult, CommandTimedOutError, RuntimeRefusedError

__all__ = ["run"]

_GATE = f'read -r _ || exit 125; export {COMMAND}=$$; exec "$@" </dev/null'
"""Waits for one line, so that the command's first instruction is in the cgroup already; then is marked."""
_MOST_BYTES = 16 << 20


def run(fence: Fence, made: Made, command: Sequence[str], timeout_s: float, /) -> CommandResult:
    """Run a command with a container's environment, rights and limits, to its end.

    Raises:
        CommandTimedOutError: It took longer; it was ended, with all that it started.
        RuntimeRefusedError: There is no such program, or it cannot be run in there.
    """
    until = time.monotonic() + timeout_s
    try:
        _check_there(made, command)
        with fence.part(made.cgroup) as join:
            process = _begin(made, command)
            try:
                join(process.pid)
                return _finish(process, made, until, timeout_s)
            except BrokenPipeError as error:
                raise RuntimeRefusedError("run_command", "FAILED", _death(fence, made, process)) from error
            except BaseException:
                process.kill()
                raise
            finally:
                _let_go(process, until)
    except (CommandTimedOutError, RuntimeRefusedError):
        raise
    except (OSError, ValueError, NodeallocError) as error:
        raise RuntimeRefusedError("run_command", "FAILED", str(error)) from error


def _check_there(made: Made, command: Sequence[str]) -> None:
    """Raise where there is no such program, as looked for from where the container stands."""
    program = command[0] if command else ""
    path = str(Path(made.folder or "/", program)) if "/" in program else program
    if shutil.which(path, path=made.env.get("PATH")) is None:
        raise RuntimeRefusedError("run_command", "NOT_FOUND", f"no program {program!r}")


def _death(fence: Fence, made: Made, process: subprocess.Popen[bytes]) -> str:
    """How a process went that nobody let run yet."""
    code = process.wait()
    how = f"ended by {signal.Signals(-code).name}" if code < 0 else f"left with {code}"
    why = "; its container has run out of memory" if fence.was_oom(made.cgroup) else ""
    return f"its process was {how} before it ran{why}"


def _begin(made: Made, command: Sequence[str]) -> subprocess.Popen[bytes]:
    """A process that waits at its gate, with all that the container's own has."""
    is_mine = _is_mine(made)
    process = subprocess.Popen(
        ["/bin/sh", "-c", _GATE, "sh", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=made.env,
        cwd=made.folder or "/",
        user=None if is_mine else made.user,
        group=None if is_mine else made.group,
        extra_groups=None if is_mine or (made.group is None and not made.groups) else made.groups,
        start_new_session=True,
    )
    if made.oom_score_adj is not None:
        with contextlib.suppress(OSError):  # lowering it may be refused; it is a wish
            Path(f"/proc/{process.pid}/oom_score_adj").write_text(str(made.oom_score_adj))
    return process


def _is_mine(made: Made) -> bool:
    """Whether a container runs as who we are.

    A child that has to become somebody else is forked, with a copy of all memory and
    with what libraries do in a forked child, such as starting threads; any other is not.
    """
    user, group = made.user, made.group
    is_user = user is None or (user, user) == (os.getuid(), os.geteuid())
    if group is None:
        return is_user and (not made.groups or {*made.groups} == {*os.getgroups()})
    is_group = (group, group) == (os.getgid(), os.getegid())
    return is_user and is_group and {*made.groups, group} == {*os.getgroups(), group}


def _finish(process: subprocess.Popen[bytes], made: Made, until: float, timeout_s: float) -> CommandResult:
    """Open the gate and read until the command has ended; what it left behind may go on writing unheard."""
    gate, out, errors = process.stdin, process.stdout, process.stderr
    if gate is None or out is None or errors is None:
        raise RuntimeRefusedError("run_command", "FAILED", "no pipes")
    os.write(gate.fileno(), b"\n")
    kept: dict[IO[bytes], bytearray] = {out: bytearray(), errors: bytearray()}
    with contextlib.ExitStack() as stack:
        ended = os.pidfd_open(process.pid)
        stack.callback(os.close, ended)
        events = stack.enter_context(selectors.DefaultSelector())
        events.register(ended, selectors.EVENT_READ, None)
        for pipe in kept:
            os.set_blocking(pipe.fileno(), False)
            events.register(pipe, selectors.EVENT_READ, pipe)
        running = True
        while running:
            left = until - time.monotonic()
            ready = events.select(max(0.0, left))
            if not ready and left <= 0:
                raise CommandTimedOutError(made.id, timeout_s)
            # Its last words are in the pipes when it has ended.
            for key, _ in sorted(ready, key=lambda one: one[0].data is None):
                if key.data is None:
                    running = False
                elif not _take(key.data, kept[key.data]):
                    events.unregister(key.fileobj)
        for pipe, text in kept.items():
            # As much as a pipe holds: what it started may write on for ever.
            for _ in range(2):
                _take(pipe, text)
    return CommandResult(code=_code(process.wait()), output=bytes(kept[out]), errors=bytes(kept[errors]))


def _take(pipe: IO[bytes], text: bytearray) -> bool:
    """Read what is there; whether there was anything."""
    try:
        data = os.read(pipe.fileno(), 65536)
    except BlockingIOError:
        return False
    text += data[: _MOST_BYTES - len(text)]
    return bool(data)


def _code(status: int) -> int:
    return status if status >= 0 else 128 - status


def _let_go(process: subprocess.Popen[bytes], until: float) -> None:
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    if process.returncode is None:
        end_all(lambda: frozenset({process.pid}) if process.poll() is None else frozenset())
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(1.0, until - time.monotonic()))
