"""Starting a program inside a cgroup, so that its first instruction is confined already."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nodealloc.cgroups._name import CgroupName
    from nodealloc.cgroups._ports import ProcessDriver

__all__ = ["launch"]

_GATE: Final = 'read -r _ || exit 125; exec "$@" </dev/null'
"""Waits for one line; without it (the starter died) ends with 125 and runs nothing."""


def launch(
    driver: ProcessDriver,
    name: CgroupName,
    command: Sequence[str],
    /,
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    stdout: int | IO[bytes] | None = None,
    stderr: int | IO[bytes] | None = None,
    oom_score_adj: int | None = None,
    before_start: Callable[[int], None] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a command inside a cgroup.

    A shell is started that waits at a gate; it is moved into the cgroup while
    it waits; then the gate opens and it becomes the command, under the same
    process id. The command never runs outside. If this program dies meanwhile,
    the gate closes and the command never runs at all. Its standard input is
    empty; it leads a session of its own.

    Args:
        driver: Who moves the process.
        name: A cgroup that exists; on v2 one without children.
        command: Program and arguments; the program is looked for in PATH.
        env: Environment, or None for this program's own.
        cwd: Working directory.
        stdout: As for `subprocess.Popen`.
        stderr: As for `subprocess.Popen`.
        oom_score_adj: Who is killed first when memory runs out, -1000 to 1000;
            lowering it needs privilege.
        before_start: Called with the process id while the process waits.

    Returns:
        The process; end and reap it as any other.

    Raises:
        CgroupAbsentError: The cgroup does not exist. Nothing is left running
            after this or any other error.
    """
    if not command:
        raise ValueError("command is empty; give a program and its arguments")
    process = subprocess.Popen(  # noqa: S603 - running what the caller asks for is the point
        ["/bin/sh", "-c", _GATE, "sh", *command],
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=stderr,
        env=env,
        cwd=cwd,
        start_new_session=True,
    )
    gate = process.stdin
    assert gate is not None  # noqa: S101 - for the type checker: it is a pipe
    try:
        driver.attach(name, process.pid)
        if oom_score_adj is not None:
            Path(f"/proc/{process.pid}/oom_score_adj").write_text(str(oom_score_adj))
        if before_start is not None:
            before_start(process.pid)
        gate.write(b"\n")
        gate.flush()
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        gate.close()
    process.stdin = None
    return process
