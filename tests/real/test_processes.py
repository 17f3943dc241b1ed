"""The example's process runtime: the checks of every runtime, and what only processes can do to it."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import attrs
import pytest

from examples.processes import ProcessCpusets
from examples.processes import _commands as commands
from examples.processes._kept import SOCKET, Ended, Files, Started, boot_id, start_ticks
from examples.processes._line import KeeperLine
from nodealloc.errors import NodeallocError
from nodealloc.idset import CPUSet
from nodealloc.podfacts import Exited, ExitUnknown
from nodealloc.runtime import (
    CommandResult,
    CommandTimedOutError,
    HostMount,
    LinuxResources,
    RunState,
    RuntimeRefusedError,
    Security,
)
from nodealloc.testing.cpuset import check_cpuset_writer
from nodealloc.testing.dsw_asw import ManualCancel
from nodealloc.testing.runtime import (
    check_command_runner,
    check_containers,
    check_event_feed,
    check_images,
    check_looks,
    check_sandboxes,
)
from tests.real.processes import (
    NUMBERS,
    PATIENCE_S,
    Node,
    app,
    box,
    ended,
    needs_cgroups,
    node,
    process,
    report,
    runs,
    sleeps,
    started,
    until,
)

__all__ = ["node"]


def test_it_keeps_the_promises_of_every_runtime(node: Node) -> None:
    """What the fake and containerd are held to, processes are held to as well."""
    runtime = node.runtime()
    check_sandboxes(runtime, box(annotations={"x": "y"}))
    ends = {code: app("sh", "-c", f"exit {code}") for code in (0, 3)}
    check_containers(runtime, box(), app(labels={"c": "d"}), ends=ends)
    check_looks(runtime, [box(), box()])
    check_images(runtime, "registry.example/busybox:1")
    check_command_runner(
        runtime,
        started(runtime, app()),
        {
            ("true",): CommandResult(code=0),
            ("sh", "-c", "echo a; echo b >&2; exit 3"): CommandResult(code=3, output=b"a\n", errors=b"b\n"),
        },
    )
    cancel = ManualCancel()
    check_event_feed(runtime, lambda: runtime.run_sandbox(box()), cancel, cancel.set)


def test_it_says_what_holds_processes(node: Node) -> None:
    """`Confined` holds with cgroups, and has the reason where they are refused."""
    told = node.runtime().health().conditions["Confined"]
    assert told.holds == (node.tree == "/sys/fs/cgroup")
    assert told.holds or "no such directory" in told.message


def test_an_exit_is_seen_at_once_and_as_it_was(node: Node) -> None:
    """Exit codes and signals come back, with the word that other runtimes use."""
    runtime = node.runtime()
    good = ended(runtime, started(runtime, app("true")))
    assert (good.exit, good.reason) == (Exited(code=0), "Completed")
    bad = ended(runtime, started(runtime, app("sh", "-c", "exit 7")))
    assert (bad.exit, bad.reason) == (Exited(code=7), "Error")
    killed = ended(runtime, started(runtime, app("sh", "-c", "kill -9 $$")))
    assert killed.exit == Exited(code=137, signal=9)
    assert killed.started_unix_s is not None
    assert killed.finished_unix_s is not None
    assert killed.finished_unix_s >= killed.started_unix_s


def test_what_cannot_be_started_has_ended(node: Node) -> None:
    """A missing program is refused by name, and its container has exited with 128, StartError."""
    runtime = node.runtime()
    where = box()
    made = runtime.create_container(runtime.run_sandbox(where), app("/no/such/program"), where)
    with pytest.raises(RuntimeRefusedError, match="/no/such/program"):
        runtime.start_container(made)
    told = report(runtime, made)
    assert (told.exit, told.reason) == (Exited(code=128), "StartError")


def test_the_grace_is_kept_and_then_ended(node: Node) -> None:
    """TERM is enough for one that obeys; one that does not is killed after its grace."""
    runtime = node.runtime()
    obeys = started(runtime, app("sh", "-c", "trap 'exit 5' TERM; while :; do sleep 0.01; done"))
    time.sleep(0.2)  # until the shell has set its trap
    runtime.stop_container(obeys, 10.0)
    assert report(runtime, obeys).exit == Exited(code=5)
    deaf = started(runtime, app("sh", "-c", "trap '' TERM; while :; do sleep 0.01; done"))
    time.sleep(0.2)
    began_s = time.monotonic()
    runtime.stop_container(deaf, 0.5)
    assert time.monotonic() - began_s >= 0.5
    assert report(runtime, deaf).exit == Exited(code=137, signal=9)


def test_children_end_with_their_container(node: Node) -> None:
    """When the first process has ended, by itself or by force, nothing of its session runs on."""
    runtime = node.runtime()
    left, inner, outer = sleeps(), sleeps(), sleeps()
    ended(runtime, started(runtime, app("sh", "-c", f"{left} & exit 0")))
    assert not runs(left)
    made = started(runtime, app("sh", "-c", f"{inner} & {outer}"))
    until(lambda: runs(inner))
    runtime.stop_container(made, 0.0)
    assert not runs(inner)
    assert not runs(outer)


@needs_cgroups
def test_who_leaves_the_session_ends_too(node: Node) -> None:
    """A process that made a session of its own and lost its parent ends with its container."""
    if node.tree != "/sys/fs/cgroup":
        pytest.skip("only a cgroup holds those that leave their session")
    runtime = node.runtime()
    apart, within = sleeps(), sleeps()
    made = started(runtime, app("sh", "-c", f"(setsid {apart} &) ; {within}"))
    until(lambda: runs(apart) and runs(within))
    runtime.stop_container(made, 0.0)
    assert not runs(apart)


def test_a_command_that_takes_too_long_leaves_nothing(node: Node) -> None:
    """After a time-out neither the command runs nor what it started; the container does."""
    runtime = node.runtime()
    made, inner, outer = started(runtime, app()), sleeps(), sleeps()
    with pytest.raises(CommandTimedOutError):
        runtime.run_command(made, ("sh", "-c", f"{inner} & {outer}"), 0.3)
    assert not runs(inner)
    assert not runs(outer)
    assert report(runtime, made).record.state is RunState.RUNNING


def test_what_a_command_leaves_behind_cannot_hold_it_up(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has ended with its first process, however much others go on writing."""
    runtime = node.runtime()
    made = started(runtime, app())
    monkeypatch.setattr(commands, "_take", lambda _pipe, _text: True)
    done: list[CommandResult] = []
    script = "sleep 0.1; cat /dev/zero & exit 3"
    asked = threading.Thread(
        target=lambda: done.append(runtime.run_command(made, ("sh", "-c", script), 5.0)), daemon=True
    )
    asked.start()
    asked.join(PATIENCE_S)
    assert [one.code for one in done] == [3]


def test_a_command_sees_what_its_container_sees(node: Node) -> None:
    """Environment, folder and mounts, which are variables, are those of the container."""
    runtime = node.runtime()
    config = app(
        env={"COLOUR": "blue"},
        working_dir="/usr",
        mounts=(HostMount(host_path="/srv/data", container_path="/var/my-data"),),
    )
    made = started(runtime, config)
    said = runtime.run_command(made, ("sh", "-c", 'echo "$COLOUR $PWD $MOUNT_VAR_MY_DATA"'), 10.0)
    assert said == CommandResult(code=0, output=b"blue /usr /srv/data\n")
    with pytest.raises(RuntimeRefusedError, match="no program"):
        runtime.run_command(made, ("no-such-program",), 1.0)


@needs_cgroups
def test_a_container_from_a_time_without_cgroups_is_served(tmp_path: Path) -> None:
    """Once there were cgroups each command in it failed, as its probes', and it could not be ended."""
    node = Node(
        tmp_path / "state", str(tmp_path / "nothing"), f"nodealloc-test-{os.getpid()}-{next(NUMBERS)}"
    )
    before = node.runtime()
    made = started(before, app())
    before.close()
    node.tree = "/sys/fs/cgroup"
    later, inner, outer = node.runtime(), sleeps(), sleeps()
    try:
        assert later.run_command(made, ("sh", "-c", "echo well"), 10.0) == CommandResult(
            code=0, output=b"well\n"
        )
        with pytest.raises(CommandTimedOutError):
            later.run_command(made, ("sh", "-c", f"{inner} & {outer}"), 0.3)
        assert not runs(inner)
        assert report(later, made).record.state is RunState.RUNNING
    finally:
        for pod in later.listing().pods.values():
            later.remove_sandbox(pod.sandboxes[0].id)
        later.close()


def test_commands_run_only_where_something_runs(node: Node) -> None:
    """A container that was only made, or has ended, takes no command."""
    runtime = node.runtime()
    where = box()
    made = runtime.create_container(runtime.run_sandbox(where), app(), where)
    with pytest.raises(RuntimeRefusedError, match="is created"):
        runtime.run_command(made, ("true",), 1.0)


def test_logs_hold_what_was_written(node: Node, tmp_path: Path) -> None:
    """Both streams stand in the log file, which the report names."""
    runtime = node.runtime()
    where = box(log_directory=str(tmp_path / "logs"))
    made = started(runtime, app("sh", "-c", "echo one; echo two >&2", log_path="app/0.log"), where)
    told = ended(runtime, made)
    assert told.log_path == str(tmp_path / "logs" / "app" / "0.log")
    assert Path(told.log_path).read_text() == "one\ntwo\n"


def test_what_stands_in_place_of_a_log_is_refused(node: Node, tmp_path: Path) -> None:
    """Nothing is written where a link leads, and a pipe holds up neither its container nor others."""
    runtime = node.runtime()
    logs, victim = tmp_path / "logs/app", tmp_path / "victim"
    logs.mkdir(parents=True)
    victim.touch()
    (logs / "0.log").symlink_to(victim)
    os.mkfifo(logs / "1.log")
    reader = os.open(logs / "1.log", os.O_RDONLY | os.O_NONBLOCK)
    os.mkfifo(logs / "2.log")
    for number in range(3):
        where = box(log_directory=str(tmp_path / "logs"))
        with pytest.raises(RuntimeRefusedError):
            started(runtime, app("echo", "words", log_path=f"app/{number}.log"), where)
    os.close(reader)
    assert victim.read_text() == ""
    assert ended(runtime, started(runtime, app("true"))).exit == Exited(code=0)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_container_runs_as_its_user(node: Node) -> None:
    """User and group are taken before the first instruction, for commands as well."""
    runtime = node.runtime()
    made = started(runtime, app(security=Security(user=65534, group=65534)))
    said = runtime.run_command(made, ("sh", "-c", "id -u; id -g"), 10.0)
    assert said.output == b"65534\n65534\n"
    status = Path(f"/proc/{process(node, made)}/status").read_text()
    assert "Uid:\t65534" in status


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_further_groups_need_no_group_of_their_own(node: Node) -> None:
    """`supplementalGroups` or `fsGroup` alone hold for the container and for commands in it."""
    runtime = node.runtime()
    made = started(runtime, app(security=Security(groups=(1234, 2345))))
    said = runtime.run_command(made, ("id", "-G"), 10.0)
    assert said.output.split()[1:] == [b"1234", b"2345"]
    assert "Groups:\t1234 2345" in Path(f"/proc/{process(node, made)}/status").read_text()


def test_cpus_are_kept_to(node: Node) -> None:
    """CPUs given when it is made hold from the first instruction, and those given later hold then."""
    mine = CPUSet(os.sched_getaffinity(0))
    if len(mine) < 2:
        pytest.skip("one CPU")
    first, second = CPUSet([min(mine)]), CPUSet([max(mine)])
    runtime = node.runtime()
    made = started(runtime, app(resources=LinuxResources(cpus=first)))
    pid = process(node, made)
    assert os.sched_getaffinity(pid) == set(first)
    runtime.update_container(made, LinuxResources(cpus=second))
    assert os.sched_getaffinity(pid) == set(second)


def test_cpus_that_change_before_the_start_hold_from_the_first_instruction(node: Node) -> None:
    """A container that was made for others, and started by a later process, runs on these."""
    mine = CPUSet(os.sched_getaffinity(0))
    if len(mine) < 2:
        pytest.skip("one CPU")
    first, second = CPUSet([min(mine)]), CPUSet([max(mine)])
    runtime = node.runtime()
    where = box()
    config = app(resources=LinuxResources(cpus=first))
    made = runtime.create_container(runtime.run_sandbox(where), config, where)
    runtime.update_container(made, LinuxResources(cpus=second))
    node.runtime().start_container(made)
    assert os.sched_getaffinity(process(node, made)) == set(second)


def test_cpusets_are_written_as_by_any_writer(node: Node) -> None:
    """The writer over processes keeps the promises of every writer of cpusets."""
    mine = sorted(os.sched_getaffinity(0))
    if len(mine) < 2:
        pytest.skip("one CPU")
    runtime = node.runtime()
    made = started(runtime, app())
    choices = [CPUSet([mine[0]]), CPUSet(mine[:2]), CPUSet([mine[1]])]
    check_cpuset_writer(ProcessCpusets(runtime), made, choices, absent="no-such-container")


AGENT = """
import sys, time
from pathlib import Path
from examples.processes import ProcessRuntime
from nodealloc.podfacts import PodIdentity
from nodealloc.runtime import ContainerConfig, SandboxConfig
runtime = ProcessRuntime(Path(sys.argv[1]), cgroup=sys.argv[2], tree=sys.argv[3])
where = SandboxConfig(pod=PodIdentity(uid="u", namespace="default", name="p"))
box = runtime.run_sandbox(where)
for name, command in (("runs", "sleep 1084"), ("ends", "while [ ! -e $0/end ]; do sleep 0.01; done; exit 6")):
    config = ContainerConfig(name=name, image="i", command=("sh", "-c", command, sys.argv[1]))
    made = runtime.create_container(box, config, where)
    runtime.start_container(made)
    print(made, flush=True)
time.sleep(1000)
"""


def _killed_agent(node: Node) -> tuple[str, str]:
    """An agent in a process of its own that started two containers and was killed; their ids."""
    agent = subprocess.Popen(
        [sys.executable, "-c", AGENT, str(node.folder), node.cgroup, node.tree],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(one or os.curdir for one in sys.path)},
    )
    assert agent.stdout is not None
    with agent:
        ids = agent.stdout.readline().strip(), agent.stdout.readline().strip()
        agent.kill()
    assert all(ids)
    return ids


def test_containers_outlive_an_agent_that_is_killed(node: Node) -> None:
    """After SIGKILL the same processes run; what ended meanwhile has its exit code; both can be stopped."""
    runs_on, ends = _killed_agent(node)
    pid = process(node, runs_on)
    (node.folder / "end").touch()
    until((node.folder / "containers" / ends / "ended").exists)
    runtime = node.runtime()
    assert report(runtime, ends).exit == Exited(code=6)
    assert report(runtime, runs_on).record.state is RunState.RUNNING
    assert process(node, runs_on) == pid
    runtime.stop_container(runs_on, 5.0)
    assert report(runtime, runs_on).exit == Exited(code=143, signal=15)


def test_containers_outlive_their_keeper(node: Node) -> None:
    """A keeper that is killed takes no container with it; how these end nobody can say, as is said."""
    runtime = node.runtime()
    stays = sleeps()
    made = started(runtime, app("sh", "-c", stays))
    pid = process(node, made)
    keeper = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(keeper, signal.SIGKILL)
    other = ""
    ends_s = time.monotonic() + PATIENCE_S
    while not other:  # the next keeper is started by the line that broke
        try:
            other = started(runtime, app("true"))
        except NodeallocError:
            assert time.monotonic() < ends_s
            time.sleep(0.05)
    assert report(runtime, made).record.state is RunState.RUNNING
    assert ended(runtime, other).exit == Exited(code=0)
    runtime.stop_container(made, 5.0)
    assert report(runtime, made).exit == ExitUnknown()
    assert not runs(stays)


def test_nothing_of_another_boot_runs(node: Node) -> None:
    """After a reboot sandboxes are not ready and containers have ended, nobody knows how."""
    first = node.runtime()
    made = started(first, app())
    pid = process(node, made)
    first.stop_container(made, 0.0)
    first.close()
    node.open.remove(first)
    folder = node.folder / "containers" / made
    (folder / "ended").unlink()
    at = json.loads((folder / "started").read_text())
    (folder / "started").write_text(json.dumps({**at, "boot": "another", "pid": os.getpid()}))
    for path in (node.folder / "sandboxes").iterdir():
        path.write_text(json.dumps({**json.loads(path.read_text()), "boot": "another"}))
    until(lambda: not (node.folder / "keeper.sock").exists())  # it leaves when nobody needs it
    runtime = node.runtime()
    assert report(runtime, made).exit == ExitUnknown()
    runtime.stop_container(made, 0.0)  # and does not end us, who have its number
    (pod,) = runtime.listing().pods.values()
    assert not pod.sandboxes[0].is_ready
    assert pid != os.getpid()


def test_what_cannot_be_read_harms_itself_alone(node: Node) -> None:
    """A torn file is an oddity of the listing, or an unknown end; all else is there."""
    first = node.runtime()
    good, torn, lost = started(first, app()), started(first, app()), started(first, app())
    first.stop_container(torn, 0.0)
    first.stop_container(lost, 0.0)
    first.close()
    node.open.remove(first)
    (node.folder / "containers" / torn / "ended").write_text('{"code": ')
    (node.folder / "containers" / lost / "made").write_text("")
    runtime = node.runtime()
    assert report(runtime, good).record.state is RunState.RUNNING
    assert report(runtime, torn).exit == ExitUnknown()
    assert [lost in one.what for one in runtime.listing().oddities] == [True]


@pytest.mark.parametrize("junk", ["", "{", "[" * 90_000, None, "pipe", "folder"])
@pytest.mark.parametrize("name", ["started", "ended"])
def test_what_may_run_is_not_taken_for_ended(node: Node, name: str, junk: str | None) -> None:
    """Whatever stands in place of a file: what runs is seen, or its pod is not to be acted upon."""
    first = node.runtime()
    stays = sleeps()
    good, made = started(first, app()), started(first, app(*stays.split()))
    first.close()
    node.open.remove(first)
    path = node.folder / "containers" / made / name
    kept = path.read_bytes() if path.exists() else b""
    path.unlink(missing_ok=True)
    if junk == "pipe":
        os.mkfifo(path)
    elif junk == "folder":
        (path / "more").mkdir(parents=True)
    elif junk is None:
        path.symlink_to("/dev/zero")
    else:
        path.write_text(junk)
    runtime = node.runtime()
    listed = runtime.listing().pods
    is_odd = {uid: one.is_spoilt for uid, one in listed.items()}
    where = report(runtime, made).record
    assert report(runtime, good).record.state is RunState.RUNNING
    assert is_odd.pop(where.pod.uid) is (name == "started")
    assert not any(is_odd.values())
    if name == "started":
        path.rename(path.with_name(".odd"))
        path.write_bytes(kept)
        runtime.close()
        node.open.remove(runtime)
        runtime = node.runtime()
    assert report(runtime, made).record.state is RunState.RUNNING
    runtime.stop_container(made, 0.0)  # its keeper lives, and writes how it ended
    assert report(runtime, made).exit == Exited(code=137, signal=9)
    assert not runs(stays)


@pytest.mark.parametrize("is_gone", [False, True], ids=["torn", "gone"])
@pytest.mark.parametrize("kind", ["sandboxes", "containers"])
def test_a_pod_is_left_alone_while_one_of_it_cannot_be_seen(node: Node, kind: str, is_gone: bool) -> None:
    """What its file was spoilt of runs on; once it has ended, what cannot be read harms nobody."""
    first = node.runtime()
    good, made = started(first, app()), started(first, app("sleep", "1087"))
    where = report(first, made).record
    first.close()
    node.open.remove(first)
    path = node.folder / kind / (where.sandbox_id if kind == "sandboxes" else f"{made}/made")
    path.unlink()
    if not is_gone:
        path.write_text("{")
    runtime = node.runtime()
    assert report(runtime, good).record.state is RunState.RUNNING
    assert {uid for uid, one in runtime.listing().pods.items() if one.is_spoilt} == {where.pod.uid}
    os.kill(process(node, made), signal.SIGKILL)
    until(lambda: not any(one.is_spoilt for one in runtime.listing().pods.values()))


def test_an_image_that_cannot_be_read_is_none(node: Node) -> None:
    """It is pulled again; others are there."""
    runtime = node.runtime()
    good, torn, pipe = (runtime.pull_image(name) for name in ("good", "torn", "pipe"))
    (node.folder / "images" / torn).write_text("[1]")
    (node.folder / "images" / pipe).unlink()
    os.mkfifo(node.folder / "images" / pipe)
    assert [one.id for one in runtime.images()] == [good]
    assert runtime.pull_image("pipe") == pipe
    assert {one.id for one in runtime.images()} == {good, pipe}


def test_a_keeper_leaves_when_nobody_needs_it(node: Node) -> None:
    """With nothing running and nobody connected there is no process left behind."""
    runtime = node.runtime()
    made = started(runtime, app())
    keeper = int(Path(f"/proc/{process(node, made)}/stat").read_text().rpartition(")")[2].split()[1])
    for pod in runtime.listing().pods.values():
        runtime.remove_sandbox(pod.sandboxes[0].id)
    runtime.close()
    until(lambda: not Path(f"/proc/{keeper}").exists() or _is_zombie(keeper))


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_nobody_reads_what_runs_before_the_keeper_has_let_them_in(tmp_path: Path) -> None:
    """An end that came between a look at the disk and the keeper's welcome was told to nobody."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / SOCKET))
        listener.listen()
        made: list[KeeperLine] = []

        def connect() -> None:
            made.append(KeeperLine(tmp_path, "", "", lambda _: None, lambda: None))

        thread = threading.Thread(target=connect, daemon=True)
        thread.start()
        client, _ = listener.accept()
        with client:
            thread.join(0.3)
            assert not made, "it went on though the keeper had not welcomed it"
            client.sendall(b"here\n")
            thread.join(PATIENCE_S)
            assert made
            closing = threading.Thread(target=made[0].close, daemon=True)
            closing.start()
            assert client.recv(1) == b""
        closing.join(PATIENCE_S)


def test_what_a_full_disk_does_not_take_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process that tries has a file of its own, and there may be hundreds of tries."""
    files = Files(tmp_path)
    (tmp_path / "containers/a").mkdir()

    def full(path: Path, text: str) -> int:
        path.touch()
        raise OSError(errno.ENOSPC, f"no room for {len(text)}")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="no room"):
        files.write(Ended(code=1, reason="Error"), "containers", "a", "ended")
    assert list((tmp_path / "containers/a").iterdir()) == []


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_a_process_that_cannot_be_read_has_not_ended(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Whoever asks hears that nobody knows: a container that runs on would be started once more beside it."""
    started = Started(
        pid=os.getpid(), ticks=start_ticks(os.getpid()), boot=boot_id(), unix_s=time.time(), uid="u"
    )
    assert started.is_alive
    real = Path.read_text

    def fail(self: Path, *given: str, **more: str) -> str:
        if self.name == "stat":
            raise OSError(number, os.strerror(number), str(self))
        return real(self, *given, **more)

    with monkeypatch.context() as failing:
        failing.setattr(Path, "read_text", fail)
        with pytest.raises(OSError, match=os.strerror(number)):
            assert started.is_alive
    gone = attrs.evolve(started, pid=1 << 30)
    assert not gone.is_alive
