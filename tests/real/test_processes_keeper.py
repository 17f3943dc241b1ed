"""The keeper of the example's containers: whatever stands in its way, it goes on, and knows each end."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from examples.processes import ProcessRuntime
from examples.processes._fence import Fence
from examples.processes._keeper import Keeper
from examples.processes._kept import SOCKET, Ended, Files, Started, stat_fields
from nodealloc.podfacts import Exited
from nodealloc.runtime import LinuxResources, RunState, RuntimeRefusedError, RuntimeUnavailableError
from tests.real.processes import (
    PATIENCE_S,
    Node,
    app,
    box,
    ended,
    needs_cgroups,
    node,
    process,
    report,
    started,
    until,
)

__all__ = ["node"]

WAITS = ("sh", "-c", "trap 'exit 6' TERM; touch $0; while :; do sleep 0.01; done")


def keepers(node: Node) -> list[int]:
    """Processes that keep containers in the folder of a node."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            said = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"examples.processes._keeper" in said and os.fsencode(node.folder) in said:
            found.append(int(path.parent.name))
    return found


def answers(node: Node) -> bool:
    """Whether a keeper listens."""
    folder = os.open(node.folder, os.O_PATH)
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(f"/proc/self/fd/{folder}/{SOCKET}")
            return True
    except OSError:
        return False
    finally:
        os.close(folder)


def waiting(runtime: ProcessRuntime, node: Node) -> str:
    """A container that leaves with 6 when it is asked to end."""
    sign = node.folder / f"up-{len(list(node.folder.iterdir()))}"
    made = started(runtime, app(*WAITS, str(sign)))
    until(sign.exists)
    return made


def made_only(runtime: ProcessRuntime, *command: str, **more: object) -> str:
    """A container that was made and not started."""
    where = box()
    return runtime.create_container(runtime.run_sandbox(where), app(*command, **more), where)


@pytest.mark.parametrize("name", ["made", "started"])
def test_a_file_that_cannot_be_read_does_not_end_the_keeper(node: Node, name: str) -> None:
    """The container is refused; how all others end is known, as the keeper is the one it was."""
    runtime = node.runtime()
    good, torn = waiting(runtime, node), made_only(runtime)
    (keeper,) = keepers(node)
    (node.folder / "containers" / torn / name).write_text("{")
    with pytest.raises(RuntimeRefusedError, match=r"keeper\.log"):
        runtime.start_container(torn)
    assert "cannot be read" in (node.folder / "keeper.log").read_text()
    assert keepers(node) == [keeper]
    runtime.stop_container(good, 10.0)
    assert report(runtime, good).exit == Exited(code=6)


def test_an_end_that_the_disk_does_not_take_is_told_later(node: Node) -> None:
    """While nothing can be written nothing is told to have ended; then each end is told, as it was."""
    runtime = node.runtime()
    first, second, late = waiting(runtime, node), waiting(runtime, node), made_only(runtime, "true")
    (keeper,) = keepers(node)
    _, hard = before = resource.prlimit(keeper, resource.RLIMIT_FSIZE)
    resource.prlimit(keeper, resource.RLIMIT_FSIZE, (0, hard))
    os.kill(process(node, first), signal.SIGTERM)
    pid = process(node, first)
    until(lambda: not stat_fields(pid))
    with pytest.raises(RuntimeRefusedError, match=r"keeper\.log"):
        runtime.start_container(late)
    assert report(runtime, first).record.state is RunState.RUNNING
    assert keepers(node) == [keeper]
    resource.prlimit(keeper, resource.RLIMIT_FSIZE, before)
    assert ended(runtime, first).exit == Exited(code=6)
    assert (ended(runtime, late).exit, report(runtime, late).reason) == (Exited(code=128), "StartError")
    runtime.stop_container(second, 10.0)
    assert report(runtime, second).exit == Exited(code=6)


def test_junk_on_the_line_ends_nothing(node: Node) -> None:
    """Whoever writes to the keeper's socket gets no answer that makes sense, and others theirs."""
    runtime = node.runtime()
    good = waiting(runtime, node)
    (keeper,) = keepers(node)
    folder = os.open(node.folder, os.O_PATH)
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(f"/proc/self/fd/{folder}/{SOCKET}")
        line.sendall(b"start \xff\xfe\nstart a\0b\nstart\n\nstart ../images\n")
        until(lambda: line.recv(65536))
    os.close(folder)
    runtime.stop_container(good, 10.0)
    assert report(runtime, good).exit == Exited(code=6)
    assert keepers(node) == [keeper]


def test_what_cannot_be_told_makes_no_second_keeper(node: Node, tmp_path: Path) -> None:
    """A child whose words have no bytes in UTF-8 told them to nobody, and went on as another keeper."""
    runtime = node.runtime()
    logs = tmp_path / "logs"
    logs.mkdir()
    os.mkfifo(os.fsencode(logs) + b"/\xff.log")
    reader = os.open(os.fsencode(logs) + b"/\xff.log", os.O_RDONLY | os.O_NONBLOCK)
    where = box(log_directory=str(logs))
    with pytest.raises(RuntimeRefusedError, match="no file to write a log to"):
        started(runtime, app(log_path="\udcff.log"), where)
    os.close(reader)
    assert len(keepers(node)) == 1


def test_why_nothing_starts_is_told_and_not_that_nobody_listens(node: Node, tmp_path: Path) -> None:
    """What a child finds before it is let go is told, and it counts as never started."""
    runtime = node.runtime()
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/0.log").symlink_to("/dev/null")
    where = box(log_directory=str(tmp_path / "logs"))
    made = runtime.create_container(runtime.run_sandbox(where), app(log_path="0.log"), where)
    for _ in range(2):
        with pytest.raises(RuntimeRefusedError, match=os.strerror(40)):
            runtime.start_container(made)
    assert not (node.folder / "containers" / made / "started").exists()
    nowhere = made_only(runtime, "true", working_dir="/no/such/folder")
    with pytest.raises(RuntimeRefusedError, match="working directory /no/such/folder"):
        runtime.start_container(nowhere)
    nothing = made_only(runtime, command=())
    with pytest.raises(RuntimeRefusedError, match="no command specified"):
        runtime.start_container(nothing)


class Deadly(Fence):
    """Ends who joins, as the kernel does for whom there is no memory."""

    def join(self, name: str, pid: int, /) -> None:
        """Move nobody in."""
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def test_a_child_that_dies_at_its_gate_says_how(node: Node) -> None:
    """It told of a broken pipe, and its process was written down with no start time, as nobody's."""
    runtime = node.runtime()
    made = made_only(runtime)
    keeper = Keeper(Files(node.folder), Deadly(driver=None))
    assert keeper.start(made) == f"failed {made}"
    kept = Files(node.folder)
    assert kept.read(Started, "containers", made, "started") is None
    told = kept.read(Ended, "containers", made, "ended")
    assert told is not None
    assert told.message == "sleep: its process was ended by SIGKILL before it became the command"


@needs_cgroups
def test_a_limit_of_memory_that_is_too_low_is_named(node: Node) -> None:
    """Whether the kernel ends the process before it is the command or after is chance; both say memory."""
    if node.tree != "/sys/fs/cgroup":
        pytest.skip("only a cgroup limits memory")
    runtime = node.runtime()
    for _ in range(10):
        made = made_only(runtime, resources=LinuxResources(memory_bytes=4096))
        try:
            runtime.start_container(made)
        except RuntimeRefusedError as error:
            assert "out of memory: its limit is too low" in str(error)  # noqa: PT017 - one of two
        else:
            assert ended(runtime, made).reason == "OOMKilled"


def test_no_signal_is_ignored_or_blocked_in_a_container(node: Node) -> None:
    """Python ignores some, and so does what is started in a background."""
    kept = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGHUP)}
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        runtime = node.runtime()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for number, handler in kept.items():
            signal.signal(number, handler)
    made = started(runtime, app())
    status = Path(f"/proc/{process(node, made)}/status").read_text()
    found = dict(line.split(":\t") for line in status.splitlines() if line.startswith("Sig"))
    assert {name: int(found[name], 16) for name in ("SigBlk", "SigIgn")} == {"SigBlk": 0, "SigIgn": 0}


def test_a_folder_in_place_of_a_file_costs_no_descriptor(tmp_path: Path) -> None:
    """It is looked at again with each change of its container."""
    files = Files(tmp_path)
    (tmp_path / "images/folder").mkdir()
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - the names alone
    for _ in range(3):
        assert files.image("folder") is None
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_an_end_makes_nothing_anew_of_what_was_removed(tmp_path: Path) -> None:
    """A folder that holds an end and nothing else is no container, and nobody would remove it."""
    files = Files(tmp_path)
    with pytest.raises(FileNotFoundError):
        files.write(Ended(code=1, reason="Error"), "containers", "a", "ended")
    assert list(files.names("containers")) == []


@pytest.mark.parametrize("junk", ["folder", "pipe", "link"])
def test_a_keeper_that_cannot_be_started_is_waited_for(node: Node, junk: str) -> None:
    """Whatever stands in place of its log: that is said, and once it is away all goes on."""
    runtime = node.runtime()
    made = waiting(runtime, node)
    (keeper,) = keepers(node)
    log = node.folder / "keeper.log"
    log.unlink()
    if junk == "folder":
        log.mkdir()
    elif junk == "pipe":
        os.mkfifo(log)
    else:
        log.symlink_to("/dev/null")
    os.kill(keeper, signal.SIGKILL)
    until(lambda: not stat_fields(keeper) or stat_fields(keeper)[0] == "Z")
    with pytest.raises(RuntimeUnavailableError, match=r"keeper\.log"):
        ProcessRuntime(node.folder, cgroup=node.cgroup, tree=node.tree)
    if junk == "folder":
        log.rmdir()
    else:
        log.unlink()
    until(lambda: keepers(node) not in ([], [keeper]))
    runtime.stop_container(made, 10.0)
    assert report(runtime, made).record.state is RunState.EXITED


@pytest.mark.parametrize("name", ["keeper.lock", "keeper.sock"])
def test_what_stands_in_the_keepers_way_is_named(node: Node, name: str) -> None:
    """With what to do; and a link in its place is not followed to make a file elsewhere."""
    node.folder.mkdir()
    place, words = node.folder / name, rf"{name}: Is a directory; move it away"
    place.mkdir()
    with pytest.raises(RuntimeUnavailableError, match=words):
        ProcessRuntime(node.folder, cgroup=node.cgroup, tree=node.tree)
    place.rmdir()
    if name == "keeper.lock":
        place.symlink_to(node.folder.parent / "elsewhere")
        with pytest.raises(RuntimeUnavailableError, match=rf"{name}: Too many levels .*; move it away"):
            ProcessRuntime(node.folder, cgroup=node.cgroup, tree=node.tree)
        assert not (node.folder.parent / "elsewhere").exists()
        place.unlink()
    node.runtime()


def test_a_keeper_outlives_who_was_killed_as_it_started(node: Node) -> None:
    """It says that it is ready to nobody, and keeps what runs: the next one need not begin with none."""
    runtime = node.runtime()
    made = waiting(runtime, node)
    (keeper,) = keepers(node)
    runtime.close()
    os.kill(keeper, signal.SIGKILL)
    until(lambda: not stat_fields(keeper) or stat_fields(keeper)[0] == "Z")
    reads, writes = os.pipe()
    os.close(reads)
    words = (sys.executable, "-m", "examples.processes._keeper", str(node.folder), node.tree, node.cgroup)
    within = {**os.environ, "PYTHONPATH": os.pathsep.join(one or os.curdir for one in sys.path)}
    with subprocess.Popen(words, stdout=writes, stderr=subprocess.PIPE, env=within) as other:
        os.close(writes)
        until(lambda: other.poll() is not None or answers(node))
        later = node.runtime()
        later.stop_container(made, 10.0)
        for pod in later.listing().pods.values():
            later.remove_sandbox(pod.sandboxes[0].id)
        later.close()
        assert other.wait(PATIENCE_S) == 0
