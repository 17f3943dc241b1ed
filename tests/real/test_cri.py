"""A real containerd: whole lives, cpusets, limits, logs, exits, restarts. `nox -s cri` runs these."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import attrs
import pytest

from nodealloc.cgroups import (
    CgroupName,
    Limits,
    PodOptions,
    QosTree,
    TreeOptions,
    detect,
    pod_name,
)
from nodealloc.cpuset import CPUSet
from nodealloc.cri import CriCpusetWriter, CriDeadlines, CriRuntime, LogLine, follow_log, read_log
from nodealloc.dsw_asw import ThreadExecutor
from nodealloc.errors import NodeallocError
from nodealloc.podfacts import Exited, ExitUnknown, PodIdentity
from nodealloc.podspec import Container, ExecAction, Pod, resources
from nodealloc.probes import ExecProber, Question, Reply, ReplyKind
from nodealloc.runtime import (
    CommandResult,
    CommandTimedOutError,
    ContainerConfig,
    ContainerReport,
    HostDevice,
    HostMount,
    LinuxResources,
    NameReservedError,
    NoSuchRecordError,
    Pace,
    RunState,
    RuntimeRefusedError,
    RuntimeUnavailableError,
    RuntimeWatch,
    SandboxConfig,
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

pytestmark = [pytest.mark.cri]

VERSION = os.environ.get("NODEALLOC_CRI_VERSION", "")
if VERSION:
    from tests.cri.containerd import CDI_FOLDER, Containerd, running
    from tests.cri.images import registry
else:
    pytest.skip("needs a containerd of its own: nox -s cri", allow_module_level=True)

ROOT: Final = Path(os.environ["NODEALLOC_CRI_ROOT"])
FOLDER: Final = Path(os.environ["NODEALLOC_CRI_FOLDER"])
CGROUPS: Final = os.environ["NODEALLOC_CRI_CGROUPS"]
IMAGE: Final = "localhost/busybox:1"
SLEEP: Final = ("sleep", "1000")
NUMBERS = itertools.count()
PATIENCE_S: Final = float(os.environ.get("NODEALLOC_PATIENCE_S", "20"))


@pytest.fixture(scope="module")
def containerd() -> Iterator[Containerd]:
    """One daemon for all tests."""
    with running(ROOT, FOLDER / "containerd", VERSION) as one:
        yield one


@pytest.fixture
def runtime(containerd: Containerd) -> Iterator[CriRuntime]:
    """The adapter, with deadlines that a test can wait for; every pod is gone afterwards."""
    deadlines = CriDeadlines(look_s=PATIENCE_S, change_s=3 * PATIENCE_S, pull_s=3 * PATIENCE_S)
    one = CriRuntime(containerd.socket, deadlines=deadlines)
    yield one
    for pod in one.listing().pods.values():
        for sandbox in pod.sandboxes:
            one.stop_sandbox(sandbox.id)
            one.remove_sandbox(sandbox.id)
    one.close()


def box(name: str = "", **more: object) -> SandboxConfig:
    """A sandbox on the host's network, in a cgroup of these tests."""
    name = name or f"pod{next(NUMBERS)}"
    pod = PodIdentity(uid=f"{name}-{os.getpid()}", namespace="default", name=name)
    made = SandboxConfig(
        pod=pod,
        hostname=name,
        host_network=True,
        cgroup_parent=f"/{CGROUPS}/{pod.uid}",
        log_directory=str(FOLDER / "logs" / pod.uid),
    )
    return attrs.evolve(made, **more)  # type: ignore[arg-type]


def app(*command: str, **more: object) -> ContainerConfig:
    """A container that sleeps unless told otherwise."""
    made = ContainerConfig(name="app", image=IMAGE, command=command or SLEEP, log_path="app/0.log")
    return attrs.evolve(made, **more)  # type: ignore[arg-type]


def started(runtime: CriRuntime, config: ContainerConfig, sandbox: SandboxConfig | None = None) -> str:
    """A container that was started in a sandbox of its own; its id."""
    where = sandbox or box()
    made = runtime.create_container(runtime.run_sandbox(where), config, where)
    runtime.start_container(made)
    return made


def report(runtime: CriRuntime, container_id: str) -> ContainerReport:
    """The newest word on a container."""
    for uid in runtime.listing().pods:
        for one in runtime.inspect(uid).containers:
            if one.record.id == container_id:
                return one
    raise AssertionError(f"{container_id} is not there")


def eventually(what: Callable[[], object], within_s: float = 20.0) -> None:
    """Wait for something to come true."""
    ends_s = time.monotonic() + within_s
    while not what():
        assert time.monotonic() < ends_s, "it did not come true"
        time.sleep(0.02)


def ended(runtime: CriRuntime, container_id: str) -> ContainerReport:
    """Its report once it has ended."""
    eventually(lambda: report(runtime, container_id).record.state is RunState.EXITED)
    return report(runtime, container_id)


def output(runtime: CriRuntime, container_id: str) -> bytes:
    """What it wrote."""
    return b"".join(one.text + b"\n" for one in read_log(report(runtime, container_id).log_path))


def test_it_keeps_every_promise(runtime: CriRuntime) -> None:
    """Sandboxes, containers and looks, by the same checks as the fake."""
    words, notes = {"app": "web"}, {"note": "kept"}
    check_sandboxes(runtime, box(attempt=2, labels=words, annotations=notes))
    config = app(definition="5eed", labels=words, annotations=notes)
    ends = {code: app("sh", "-c", f"exit {code}") for code in (0, 3)}
    check_containers(runtime, box(), config, grace_s=0.0, ends=ends)
    check_looks(runtime, [box(), box()])


def test_images_come_from_a_registry(runtime: CriRuntime, containerd: Containerd) -> None:
    """Pulled by name, held by id, let go of."""
    with registry(containerd.busybox) as name:
        containerd.trust(name.partition("/")[0])
        check_images(runtime, name)
    assert IMAGE in {name for one in runtime.images() for name in one.names}
    with pytest.raises(RuntimeRefusedError) as caught:
        runtime.pull_image("localhost:1/nothing:1")
    assert caught.value.call == "PullImage"


def test_commands_run_in_a_container(runtime: CriRuntime) -> None:
    """Output, errors and exit codes; a missing program is refused; time is kept."""
    made = started(runtime, app())
    check_command_runner(
        runtime,
        made,
        {
            ("echo", "hello"): CommandResult(code=0, output=b"hello\n"),
            ("sh", "-c", "echo no >&2; exit 7"): CommandResult(code=7, errors=b"no\n"),
        },
    )
    with pytest.raises(RuntimeRefusedError):
        runtime.run_command(made, ["no-such-program"], 5.0)
    began_s = time.monotonic()
    with pytest.raises(CommandTimedOutError):
        runtime.run_command(made, ["sleep", "30"], 1.0)
    assert time.monotonic() - began_s < 10.0


def test_a_command_as_a_probe_is_gone_after_its_time(
    runtime: CriRuntime, record_property: Callable[[str, object], None]
) -> None:
    """It ends; what forked away from it lives on, one for each time, until the container ends."""
    made = started(runtime, app())
    prober = ExecProber(runtime)

    def asked(*command: str, timeout_s: float = 10.0) -> Reply:
        action = ExecAction(command=command)
        return prober.probe(Question(action=action, container_id=made, timeout_s=timeout_s))

    def left() -> list[str]:
        # The daemon's processes are seen from here; one that has ended has no words of its own left.
        found = []
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                found.append(file.read_bytes().replace(b"\0", b" ").decode())
        return [line for line in found if line.startswith("sleep 887")]

    assert asked("true").kind is ReplyKind.SUCCESS
    assert asked("sh", "-c", "exit 4").kind is ReplyKind.FAILURE
    assert asked("no-such-program").kind is ReplyKind.REFUSED
    for _ in range(3):
        reply = asked("sleep", "8871", timeout_s=1.0)
        assert (reply.kind, "has not ended" in reply.message) == (ReplyKind.FAILURE, True)
    eventually(lambda: not left())
    for count in (1, 2):
        reply = asked("sh", "-c", "sleep 8872 & exec sleep 8873", timeout_s=1.0)
        assert (
            reply.message
            == "the command has not ended after 1 s; 1 of its processes live on in the container"
        )
        eventually(lambda: not [line for line in left() if "8873" in line])
        record_property("survivors", len(left()))
        assert len(left()) == count
        assert dict(runtime.survivors()) == {made: count}
    reply = asked("sh", "-c", "setsid sleep 8874 & sleep 8875 & exec sleep 8873", timeout_s=1.0)
    assert "; 2 of its processes live on" in reply.message
    assert dict(runtime.survivors()) == {made: len(left())} == {made: 4}
    runtime.stop_container(made, 0.0)
    eventually(lambda: not left())
    assert dict(runtime.survivors()) == {}


def test_a_whole_life_of_a_pod(runtime: CriRuntime) -> None:
    """Made, run, ended by itself, looked at, removed: the watch keeps the end when the record is gone."""
    watch = RuntimeWatch(runtime, executor=ThreadExecutor("cri"), pace=Pace(period_s=0.2))
    where = box()
    with watch:
        made = started(runtime, app("sh", "-c", "sleep 0.3; exit 3"), where)
        eventually(lambda: made in watch.stored())
        known = watch.pods.get(where.pod.uid)
        assert known is not None
        end = known.ends[made]
        assert (end.exit, end.name, end.reason) == (Exited(code=3), "app", "Error")
        assert end.started_unix_s is not None
        assert end.finished_unix_s is not None
        assert 0.2 < end.finished_unix_s - end.started_unix_s < 10.0
        runtime.remove_container(made)
        seen = watch.seen
        eventually(lambda: (pod := seen.get(where.pod.uid)) is not None and made not in pod.marks)
        again = watch.pods.get(where.pod.uid)
        assert again is not None
        assert again.ends[made] == end
        eventually(lambda: watch.heard().health is not None)
        health = watch.heard().health
        assert health is not None
        assert (health.name, health.is_ready) == ("containerd", True)


def test_nothing_is_made_or_started_in_a_sandbox_that_was_stopped(runtime: CriRuntime) -> None:
    """The fake runtime refuses it as this one does."""
    where = box()
    sandbox = runtime.run_sandbox(where)
    made = runtime.create_container(sandbox, app("sleep", "60"), where)
    runtime.stop_sandbox(sandbox)
    with pytest.raises(RuntimeRefusedError):
        runtime.start_container(made)
    with pytest.raises(NoSuchRecordError):
        runtime.create_container(sandbox, app("sleep", "60", name="other"), where)
    (found,) = runtime.inspect(where.pod.uid).containers
    assert (found.record.state, found.exit, found.reason) == (RunState.EXITED, Exited(code=128), "StartError")


def affinity(runtime: CriRuntime, container_id: str) -> CPUSet:
    """Where a new process of the container may run, as the kernel says it to that process."""
    text = runtime.run_command(container_id, ["grep", "Cpus_allowed_list", "/proc/self/status"], 10.0)
    return CPUSet.parse(text.output.decode().split()[1])


def cgroup_file(uid: str, container_id: str, name: str) -> str:
    """A file of the container's cgroup, in whatever hierarchy has it."""
    found = sorted(Path("/sys/fs/cgroup").glob(f"*/{CGROUPS}/{uid}/{container_id}/{name}"))
    found += sorted(Path("/sys/fs/cgroup").glob(f"{CGROUPS}/{uid}/{container_id}/{name}"))
    assert found, f"no cgroup of {container_id} has {name}"
    return found[0].read_text().strip()


def test_cpusets_at_creation_and_by_update(runtime: CriRuntime) -> None:
    """The cgroup's file and the affinity of the container agree; the writer passes its check."""
    online = sorted(os.sched_getaffinity(0))
    if len(online) < 2:
        pytest.skip(f"one CPU alone: {online}")
    first, second = CPUSet.of(online[0]), CPUSet.of(online[1])
    where = box()
    made = started(runtime, app(resources=LinuxResources(cpus=first)), where)
    assert affinity(runtime, made) == first
    assert cgroup_file(where.pod.uid, made, "cpuset.cpus") == str(first)
    writer = CriCpusetWriter(runtime)
    assert writer.read(made)[0] == first
    writer.write(made, second, None)
    assert affinity(runtime, made) == second
    assert cgroup_file(where.pod.uid, made, "cpuset.cpus") == str(second)
    check_cpuset_writer(writer, made, [first, second, first | second], absent="no-such-container")


def test_cpus_that_change_before_the_start_hold_from_the_first_instruction(runtime: CriRuntime) -> None:
    """A container that was made for others runs on these."""
    online = sorted(os.sched_getaffinity(0))
    if len(online) < 2:
        pytest.skip(f"one CPU alone: {online}")
    first, second = CPUSet.of(online[0]), CPUSet.of(online[1])
    where = box()
    made = runtime.create_container(
        runtime.run_sandbox(where), app(resources=LinuxResources(cpus=first)), where
    )
    runtime.update_container(made, LinuxResources(cpus=second))
    runtime.start_container(made)
    assert affinity(runtime, made) == second
    assert cgroup_file(where.pod.uid, made, "cpuset.cpus") == str(second)


def test_a_container_that_was_never_confined_is_read_from_its_process(runtime: CriRuntime) -> None:
    """The runtime has no note of it."""
    assert CriCpusetWriter(runtime).read(started(runtime, app()))[0] == CPUSet(os.sched_getaffinity(0))


def test_limits_at_creation_and_by_update(runtime: CriRuntime) -> None:
    """What is not named in an update stays."""
    where = box()
    wanted = LinuxResources(
        cpu_shares=512, cpu_quota_us=50_000, cpu_period_us=100_000, memory_bytes=64 << 20, oom_score_adj=500
    )
    made = started(runtime, app(resources=wanted), where)
    uid = where.pod.uid
    assert cgroup_file(uid, made, "cpu.shares") == "512"
    assert cgroup_file(uid, made, "cpu.cfs_quota_us") == "50000"
    assert cgroup_file(uid, made, "memory.limit_in_bytes") == str(64 << 20)
    score = runtime.run_command(made, ["cat", "/proc/1/oom_score_adj"], 10.0).output
    assert int(score) >= 500
    runtime.update_container(made, LinuxResources(memory_bytes=96 << 20))
    assert cgroup_file(uid, made, "memory.limit_in_bytes") == str(96 << 20)
    assert cgroup_file(uid, made, "cpu.shares") == "512"
    assert cgroup_file(uid, made, "cpu.cfs_quota_us") == "50000"


def test_our_own_tree_is_the_parent(runtime: CriRuntime) -> None:
    """The pod's cgroup is made, limited and taken away by `nodealloc.cgroups`; the runtime's lie below it."""
    driver = detect()
    driver.apply(CgroupName.of(CGROUPS), Limits())
    root = CgroupName.of(CGROUPS, f"tree-{next(NUMBERS)}-{os.getpid()}")
    tree = QosTree(driver, TreeOptions(root=root, pods=PodOptions(pids=64)))
    amounts = resources({"cpu": "500m", "memory": "64Mi"})
    pod = Pod(
        uid=f"tree-{os.getpid()}",
        name="tree",
        containers=(Container(name="app", image=IMAGE, requests=amounts, limits=amounts),),
    )
    assert tree.reconcile([pod]).is_settled
    name = pod_name(root, pod)
    where = box(pod=PodIdentity.of(pod), cgroup_parent=name.path())
    made = started(runtime, app(), where)
    (inside,) = driver.pids(name.child(made))
    words = Path(f"/proc/{inside}/cmdline")  # the runtime's own until it has become the command
    eventually(lambda: words.read_bytes().decode().split("\0")[-3:-1] == list(SLEEP))
    mine = driver.read(name)
    assert mine is not None
    assert (mine.memory_bytes, mine.pids) == (64 << 20, 64)
    eat = "x=$(dd if=/dev/zero bs=1M count=200 2>/dev/null | tr '\\0' x); echo ${#x}"
    greedy = runtime.create_container(
        runtime.listing().pods[pod.uid].sandboxes[0].id,
        app("sh", "-c", eat, name="greedy", log_path="greedy/0.log"),
        where,
    )
    runtime.start_container(greedy)
    assert ended(runtime, greedy).exit != Exited(code=0), "the pod's limit, not the container's, holds"
    assert driver.kill(name) == ()
    ended(runtime, made)
    for sandbox in runtime.listing().pods[pod.uid].sandboxes:
        runtime.stop_sandbox(sandbox.id)
        runtime.remove_sandbox(sandbox.id)
    assert tree.reconcile([]).is_settled
    assert not driver.exists(name)


def test_on_cgroup_v2_alone(runtime: CriRuntime) -> None:
    """Huge pages and files that no field names are written as asked; CPUs by update; an end is told."""
    if not Path("/sys/fs/cgroup/cgroup.controllers").exists():
        pytest.skip("no cgroup v2 alone; the virtual machine has it")
    where = box()
    wanted = LinuxResources(
        cpu_shares=512,
        memory_bytes=64 << 20,
        hugepages_bytes={"2MB": 4 << 20},
        unified={"memory.high": str(48 << 20)},
    )
    made = started(runtime, app(resources=wanted), where)
    uid = where.pod.uid
    assert cgroup_file(uid, made, "memory.max") == str(64 << 20)
    assert cgroup_file(uid, made, "memory.high") == str(48 << 20)
    assert cgroup_file(uid, made, "hugetlb.2MB.max") == str(4 << 20)
    assert cgroup_file(uid, made, "cpu.weight") == "20"
    runtime.update_container(made, LinuxResources(cpus=CPUSet.of(1)))
    assert cgroup_file(uid, made, "cpuset.cpus") == "1"
    runtime.stop_container(made, 0.0)
    assert report(runtime, made).exit == Exited(code=137)


def test_mounts_devices_variables_and_users(runtime: CriRuntime, tmp_path: Path) -> None:
    """Seen from inside, with their rights."""
    (tmp_path / "there").write_text("from outside")
    config = app(
        mounts=(
            HostMount(host_path=str(tmp_path), container_path="/rw"),
            HostMount(host_path=str(tmp_path), container_path="/ro", read_only=True),
        ),
        devices=(HostDevice(host_path="/dev/null", container_path="/dev/mine", permissions="rw"),),
        env={"WORD": "said"},
        security=Security(user=65534, group=65534, groups=(7,), read_only_root=True),
    )
    made = started(runtime, config)

    def say(command: str) -> bytes:
        return runtime.run_command(made, ["sh", "-c", command], 10.0).output

    tmp_path.chmod(0o777)
    assert say("cat /ro/there") == b"from outside"
    assert say("echo $WORD") == b"said\n"
    assert say("touch /rw/made && echo yes") == b"yes\n"
    assert say("touch /ro/made || touch /made || echo no") == b"no\n"
    assert say("stat -c %F /dev/mine") == b"character special file\n"
    assert say("id -u; id -G") == b"65534\n65534 7\n"
    assert (tmp_path / "made").exists()


def test_cdi_devices(runtime: CriRuntime, containerd: Containerd) -> None:
    """What their specification says is in the container; an unknown one is refused."""
    if VERSION == "1.6":
        pytest.skip("containerd 1.6 ignores CDI without a word")
    spec = {
        "cdiVersion": "0.6.0",
        "kind": "example.com/gpu",
        "devices": [{"name": "g0", "containerEdits": {"env": ["GPU=g0"]}}],
    }
    (containerd.folder / CDI_FOLDER / "gpu.json").write_text(json.dumps(spec))
    made = started(runtime, app(cdi_devices=("example.com/gpu=g0",)))
    assert runtime.run_command(made, ["sh", "-c", "echo $GPU"], 10.0).output == b"g0\n"
    with pytest.raises((RuntimeRefusedError, NoSuchRecordError)):
        started(runtime, app(cdi_devices=("example.com/gpu=g9",)))


def test_logs_are_read_and_followed(runtime: CriRuntime) -> None:
    """Both streams with their times; lines that come later; long lines in parts."""
    script = (
        "echo out; echo err >&2; while [ ! -e /tmp/go ]; do sleep 0.1; done; "
        "yes x | tr -d '\\n' | head -c 40000"
    )
    made = started(runtime, app("sh", "-c", script))
    path = report(runtime, made).log_path
    eventually(lambda: Path(path).exists() and len(list(read_log(path))) == 2)
    lines = {one.stream: one for one in read_log(path)}
    assert (lines["stdout"].text, lines["stderr"].text) == (b"out", b"err")
    assert abs((lines["stdout"].unix_s or 0.0) - time.time()) < 60.0
    cancel, got = ManualCancel(), list[LogLine]()
    thread = threading.Thread(target=lambda: got.extend(follow_log(path, cancel)), daemon=True)
    thread.start()
    runtime.run_command(made, ["touch", "/tmp/go"], 10.0)
    ended(runtime, made)
    eventually(lambda: sum(len(one.text) for one in read_log(path)) >= 40_000)
    cancel.set()
    thread.join(10.0)
    assert got == list(read_log(path))
    assert any(one.is_partial for one in got)


def test_ends_and_their_reasons(runtime: CriRuntime) -> None:
    """Exit codes, signals, a program that is not there: each is told as it was."""
    for command, code, reason in (
        (("true",), 0, "Completed"),
        (("sh", "-c", "exit 42"), 42, "Error"),
    ):
        end = ended(runtime, started(runtime, app(*command)))
        assert (end.exit, end.reason) == (Exited(code=code), reason)
    where = box()
    killed = started(runtime, app(), where)
    _kill_inside(where.pod.uid, killed)
    end = ended(runtime, killed)
    assert (end.exit, end.reason) == (Exited(code=137), "Error")
    where = box()
    made = runtime.create_container(runtime.run_sandbox(where), app("/no/such/program"), where)
    with pytest.raises((RuntimeRefusedError, NoSuchRecordError)):
        runtime.start_container(made)
    end = ended(runtime, made)
    assert (end.exit, end.reason) == (Exited(code=128), "StartError")


def test_a_container_gets_its_grace(runtime: CriRuntime) -> None:
    """TERM first; KILL when it does not listen."""
    polite = started(runtime, app("sh", "-c", "trap 'exit 5' TERM; while :; do sleep 0.05; done"))
    time.sleep(0.3)
    runtime.stop_container(polite, 20.0)
    assert report(runtime, polite).exit == Exited(code=5)
    deaf = started(runtime, app("sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"))
    time.sleep(0.3)
    began_s = time.monotonic()
    runtime.stop_container(deaf, 1.0)
    assert 0.9 < time.monotonic() - began_s < 15.0
    assert report(runtime, deaf).exit == Exited(code=137)


def test_the_kernels_oom_kill_is_told(runtime: CriRuntime) -> None:
    """By its reason, or by the cgroup's count where the runtime says no more than Error."""
    eat = "trap 'sleep 1' EXIT; x=$(dd if=/dev/zero bs=1M count=200 2>/dev/null | tr '\\0' x); echo ${#x}"
    where = box()
    made = started(runtime, app("sh", "-c", eat, resources=LinuxResources(memory_bytes=32 << 20)), where)
    kills = 0

    def over() -> bool:
        nonlocal kills
        try:
            words = cgroup_file(where.pod.uid, made, "memory.oom_control").split()
            kills = max(kills, int(words[words.index("oom_kill") + 1]))
        except (AssertionError, OSError, ValueError):
            pass
        return report(runtime, made).record.state is RunState.EXITED

    eventually(over)
    end = report(runtime, made)
    assert end.exit != Exited(code=0)
    assert end.reason == "OOMKilled" or kills > 0, f"{end.reason}, {kills} kills"


def test_a_name_that_is_taken(runtime: CriRuntime) -> None:
    """The same pod and attempt again is refused by that name, and what is there can be adopted."""
    where = box()
    first = runtime.run_sandbox(where)
    with pytest.raises(NameReservedError):
        runtime.run_sandbox(where)
    made = runtime.create_container(first, app(), where)
    with pytest.raises(NameReservedError):
        runtime.create_container(first, app(), where)
    assert set(runtime.listing().pods[where.pod.uid].marks) == {first, made}
    assert runtime.run_sandbox(attrs.evolve(where, attempt=1)) != first


def test_what_a_kubelet_started_is_its_pods(runtime: CriRuntime, containerd: Containerd) -> None:
    """Its labels and annotations name pod, container, attempt and definition; ours are the same words."""
    where = box()
    made = started(runtime, app(attempt=4, definition="c0ffee", grace_s=30), where)
    (record,) = [one for one in runtime.listing().pods[where.pod.uid].containers if one.id == made]
    assert record.labels["io.kubernetes.pod.uid"] == where.pod.uid
    assert record.labels["io.kubernetes.pod.name"] == where.pod.name
    assert record.labels["io.kubernetes.pod.namespace"] == "default"
    assert record.labels["io.kubernetes.container.name"] == "app"
    assert record.annotations["io.kubernetes.container.restartCount"] == "4"
    assert record.annotations["io.kubernetes.container.hash"] == "c0ffee"
    assert record.annotations["io.kubernetes.pod.terminationGracePeriod"] == "30"
    assert (record.pod, record.name, record.attempt, record.definition) == (where.pod, "app", 4, "c0ffee")
    containerd.ctr("run", "-d", "--net-host", IMAGE, "of-nobody", "sleep", "1000")
    try:
        assert all("of-nobody" not in pod.marks for pod in runtime.listing().pods.values())
    finally:
        containerd.ctr("task", "rm", "-f", "of-nobody")
        containerd.ctr("container", "rm", "of-nobody")


def test_events_where_there_are_any(runtime: CriRuntime) -> None:
    """A feed keeps its promises; a runtime without one says so."""
    cancel = ManualCancel()
    if VERSION == "1.6":
        with pytest.raises(RuntimeRefusedError):
            runtime.follow(lambda: None, cancel)
        return
    check_event_feed(runtime, lambda: started(runtime, app("true")), cancel, cancel.set)


def test_few_calls_of_a_kind_about_one_target(runtime: CriRuntime) -> None:
    """While a command runs four times, more than there are kinds of probes, a fifth is refused at once."""
    made = started(runtime, app())
    slow = [
        threading.Thread(target=lambda: runtime.run_command(made, ["sleep", "2"], 10.0), daemon=True)
        for _ in range(4)
    ]
    for one in slow:
        one.start()
    time.sleep(0.5)
    began_s = time.monotonic()
    with pytest.raises(RuntimeUnavailableError, match="one is under way"):
        runtime.run_command(made, ["sleep", "2"], 10.0)
    assert time.monotonic() - began_s < 0.5
    assert runtime.run_command(made, ["true"], 10.0).code == 0
    for one in slow:
        one.join(10.0)


def test_kill_minus_nine_under_twenty_pods(runtime: CriRuntime, containerd: Containerd) -> None:
    """All run on and are seen again; what ended meanwhile is unknown; new pods start."""
    wanted = [box() for _ in range(20)]
    with_ids = {one.pod.uid: started(runtime, app(), one) for one in wanted}
    gone_uid, gone = next(iter(with_ids.items()))
    watch = RuntimeWatch(runtime, executor=ThreadExecutor("cri"), pace=Pace(period_s=0.2, again_s=0.1))
    with watch:
        eventually(lambda: set(with_ids) <= {uid for uid in with_ids if uid in watch.pods})
        containerd.kill()
        with pytest.raises(NodeallocError):
            runtime.listing()
        eventually(lambda: watch.heard().failed_s is not None)
        _kill_inside(gone_uid, gone)
        time.sleep(0.3)
        containerd.launch()
        eventually(lambda: watch.heard().failed_s is None)
        eventually(lambda: gone in watch.stored())
        known = watch.pods.get(gone_uid)
        assert known is not None
        assert known.ends[gone].exit == ExitUnknown()
        pods = runtime.listing().pods
        running_on = {uid for uid, made in with_ids.items() if pods[uid].marks[made] is RunState.RUNNING}
        assert running_on == set(with_ids) - {gone_uid}
        assert watch.stored() & set(with_ids.values()) == {gone}
        assert report(runtime, started(runtime, app())).record.state is RunState.RUNNING


def _kill_inside(uid: str, container_id: str) -> None:
    for pid in cgroup_file(uid, container_id, "cgroup.procs").split():
        os.kill(int(pid), 9)


def test_not_initialized_yet_is_not_now(containerd: Containerd) -> None:
    """Asked from its first moment on, it is away, then not up, then there; never anything else."""
    containerd.kill()
    runtime = CriRuntime(containerd.socket)
    with pytest.raises(RuntimeUnavailableError):
        runtime.run_sandbox(box())
    containerd.launch()
    words: list[str] = []
    for _ in range(2000):
        try:
            runtime.listing()
            break
        except RuntimeUnavailableError as error:
            words.append(error.reason)
            time.sleep(0.002)
    assert words
    runtime.listing()
    runtime.close()


def test_what_is_not_there(runtime: CriRuntime) -> None:
    """Whatever a version answers: stop and remove are no error, start, update and exec are."""
    runtime.stop_container("no-such-container", 1.0)
    runtime.remove_container("no-such-container")
    runtime.stop_sandbox("no-such-sandbox")
    runtime.remove_sandbox("no-such-sandbox")
    runtime.remove_image("localhost/no-such-image:1")
    for call in (
        lambda: runtime.start_container("no-such-container"),
        lambda: runtime.update_container("no-such-container", LinuxResources(cpu_shares=2)),
        lambda: runtime.run_command("no-such-container", ["true"], 1.0),
    ):
        with pytest.raises(NoSuchRecordError):
            call()
