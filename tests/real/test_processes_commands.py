"""Commands in the example's containers: what cannot be run, and what is left when their agent is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from examples.processes import _commands as commands
from examples.processes._fence import Fence
from examples.processes._kept import Files, Made
from nodealloc.runtime import CommandResult, LinuxResources, RuntimeRefusedError, Security
from tests.real.processes import Node, app, node, runs, sleeps, started, until

__all__ = ["node"]

ASKS = """
import sys
from pathlib import Path
from examples.processes import ProcessRuntime
runtime = ProcessRuntime(Path(sys.argv[1]), cgroup=sys.argv[2], tree=sys.argv[3])
runtime.run_command(sys.argv[4], ("sh", "-c", "sleep $0 & sleep $1", *sys.argv[5:]), 1000.0)
"""


def test_a_command_that_dies_before_it_runs_says_how(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one whose container ends as it begins, or has no memory left: it told of a broken pipe."""
    runtime = node.runtime()
    made = started(runtime, app())
    real = commands._begin

    def begin(*given: object) -> subprocess.Popen[bytes]:
        process = real(*given)  # type: ignore[arg-type]
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        return process

    monkeypatch.setattr(commands, "_begin", begin)
    fence = Fence(driver=None)
    kept = Files(node.folder).read(Made, "containers", made, "made")
    assert kept is not None
    with pytest.raises(RuntimeRefusedError, match="ended by SIGKILL before it ran"):
        commands.run(fence, kept, ("true",), 10.0)


def test_a_program_is_looked_for_from_where_its_container_stands(node: Node, tmp_path: Path) -> None:
    """A path without a leading slash means that of the container's working directory."""
    script = tmp_path / "bin/check"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\necho well\n")
    script.chmod(0o755)
    runtime = node.runtime()
    made = started(runtime, app(working_dir=str(tmp_path)))
    assert runtime.run_command(made, ("./bin/check",), 10.0) == CommandResult(code=0, output=b"well\n")
    with pytest.raises(RuntimeRefusedError, match="no program"):
        runtime.run_command(made, ("./bin/none",), 10.0)
    with pytest.raises(RuntimeRefusedError, match="null byte"):
        runtime.run_command(made, ("echo", "a\0b"), 10.0)


def test_the_kernel_ends_a_command_for_memory_as_soon_as_its_container(node: Node) -> None:
    """It has the container's `oom_score_adj`; it had the agent's, which is ended last of all."""
    runtime = node.runtime()
    made = started(runtime, app(resources=LinuxResources(oom_score_adj=987)))
    said = runtime.run_command(made, ("cat", "/proc/self/oom_score_adj"), 10.0)
    assert said == CommandResult(code=0, output=b"987\n")


def test_commands_of_an_agent_that_was_killed_do_not_run_on(node: Node) -> None:
    """Nobody waits for them any more; probes of each agent that was killed piled up in their container."""
    runtime = node.runtime()
    made = started(runtime, app())
    stays, *goes = sleeps(), sleeps(), sleeps()
    said = runtime.run_command(made, ("sh", "-c", f"setsid {stays} >/dev/null 2>&1 & echo $!"), 10.0)
    words = (str(node.folder), node.cgroup, node.tree, made, *(one.split()[1] for one in goes))
    within = {**os.environ, "PYTHONPATH": os.pathsep.join(one or os.curdir for one in sys.path)}
    with subprocess.Popen([sys.executable, "-c", ASKS, *words], env=within) as agent:
        until(lambda: all(map(runs, goes)))
        agent.kill()
    runtime.close()
    later = node.runtime()
    until(lambda: not any(map(runs, goes)))
    assert later.run_command(made, ("true",), 10.0) == CommandResult(code=0)
    assert runs(stays)  # what a command left behind as it ended is the container's
    os.kill(int(said.output), signal.SIGKILL)


THREADS = """
import os, sys, threading
from pathlib import Path
import examples.agent
import grpc
from examples.processes import _commands as commands
from examples.processes._fence import Fence
from examples.processes._kept import Files, Made
channels = [grpc.insecure_channel(f"unix://{sys.argv[1]}/none-{n}.sock") for n in range(3)]
for one in channels:
    one.subscribe(lambda state: None, try_to_connect=True)
made = Files(Path(sys.argv[1])).read(Made, "containers", sys.argv[2], "made")
def ask():
    for _ in range(50):
        try:
            said = commands.run(Fence(driver=None), made, ("true",), 60.0).code
        except Exception as error:
            said = error
        os.write(1, f"{said}\\n".encode())
threads = [threading.Thread(target=ask) for _ in range(4)]
for one in threads:
    one.start()
for one in threads:
    one.join()
os._exit(0)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("user", [0, 65534])
def test_no_command_dies_of_what_other_threads_do(node: Node, user: int) -> None:
    """What gRPC does in a child that is forked for a user ended one in thirty before it ran."""
    runtime = node.runtime()
    made = started(runtime, app(security=Security(user=user)))
    within = {**os.environ, "PYTHONPATH": os.pathsep.join(one or os.curdir for one in sys.path)}
    for name in ("GRPC_ENABLE_FORK_SUPPORT", "GRPC_VERBOSITY"):  # set where the agent was imported here
        within.pop(name, None)
    words = (sys.executable, "-c", THREADS, str(node.folder), made)
    said = subprocess.run(words, env=within, capture_output=True, text=True, check=True).stdout
    assert said.split("\n") == ["0"] * 200 + [""]
