"""Writers of cpusets on this machine's cgroups and processes, and a job that is confined by them."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodealloc.checkpoint import MemoryStore
from nodealloc.cpuset import (
    AffinityWriter,
    CgroupV1Writer,
    CgroupV2Writer,
    CpuAllocator,
    CPUSet,
    CpusetBusyError,
    CpusetReconciler,
    CpusetWriteError,
    StaticPolicy,
    TargetGoneError,
    process_target,
)
from nodealloc.dsw_asw import InlineExecutor
from nodealloc.errors import NodeallocError
from nodealloc.idset import NodeSet
from nodealloc.machine import discover
from nodealloc.memblocks import MemoryAllocator
from nodealloc.node import FORMATS, NodeAllocator
from nodealloc.podspec import Container, Pod, Quantity, resources
from nodealloc.testing.cpuset import check_cpuset_writer
from nodealloc.testing.dsw_asw import VirtualClock
from nodealloc.topology import Claim, Owner, Placed, Snapshot, TopologyHint

pytestmark = pytest.mark.real

V1 = Path("/sys/fs/cgroup/cpuset")
V2 = Path("/sys/fs/cgroup")
ONLINE = CPUSet.parse(Path("/sys/devices/system/cpu/online").read_text().strip())
_numbers = itertools.count()


@contextlib.contextmanager
def _directory(parent: Path) -> Iterator[Path]:
    """A cgroup of our own, emptied and removed afterwards, children first."""
    path = parent / f"nodealloc-cpuset-{os.getpid()}-{next(_numbers)}"
    path.mkdir()
    try:
        yield path
    finally:
        for below in sorted(path.glob("**/"), key=lambda one: len(one.parts), reverse=True):
            for pid in (below / "cgroup.procs").read_text().split():
                os.kill(int(pid), signal.SIGKILL)
            _until_empty(below)
            below.rmdir()


def _until_empty(path: Path) -> None:
    for _ in range(200):
        if not (path / "cgroup.procs").read_text().strip():
            return
        time.sleep(0.02)


@pytest.fixture
def v1(as_root: None) -> Iterator[tuple[CgroupV1Writer, Path]]:
    """A cgroup of version 1 that has CPUs and memory nodes."""
    if not (V1 / "cpuset.cpus").exists():
        pytest.skip(f"no cpuset hierarchy of version 1 at {V1}")
    with _directory(V1) as path:
        (path / "cpuset.mems").write_text("0")
        (path / "cpuset.cpus").write_text(str(ONLINE))
        yield CgroupV1Writer(), path


@pytest.fixture
def v2(as_root: None) -> Iterator[tuple[CgroupV2Writer, Path]]:
    """A cgroup of version 2 with the cpuset controller."""
    mounted = V2 if (V2 / "cgroup.controllers").exists() else V2 / "unified"
    controllers = mounted / "cgroup.controllers"
    if not controllers.exists():
        pytest.skip("no cgroup hierarchy of version 2 is mounted")
    offered = controllers.read_text().split()
    if "cpuset" not in offered:
        pytest.skip(f"the hierarchy at {mounted} has no cpuset controller, only {' '.join(offered)}")
    control = mounted / "cgroup.subtree_control"
    delegated = "cpuset" in control.read_text().split()
    control.write_text("+cpuset")
    with _directory(mounted) as path:
        yield CgroupV2Writer(mounted), path
    if not delegated:
        with contextlib.suppress(OSError):  # somebody else has come to need it
            control.write_text("-cpuset")


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[str]]:
    """A process with eight threads, and one more each time a line is written to it."""
    code = (
        "import sys, threading, time\n"
        "def sleep(): time.sleep(600)\n"
        "def more(): threading.Thread(target=sleep, daemon=True).start()\n"
        "for _ in range(7): more()\n"
        "print('up', flush=True)\n"
        "for _ in sys.stdin: more(); print('more', flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        yield process
        process.kill()


def _two_sets() -> list[CPUSet]:
    if len(ONLINE) < 2:
        pytest.skip("needs two CPUs")
    first, second, *_ = ONLINE
    return [CPUSet.of(first), CPUSet.of(second), CPUSet.of(first, second)]


def _threads(pid: int) -> set[CPUSet]:
    return {CPUSet(os.sched_getaffinity(int(entry.name))) for entry in Path(f"/proc/{pid}/task").iterdir()}


def test_version_1_keeps_a_writers_promises(v1: tuple[CgroupV1Writer, Path]) -> None:
    """What is written reads back; an absent cgroup is gone; an empty set is refused."""
    writer, path = v1
    check_cpuset_writer(writer, path.name, _two_sets(), absent="no-such-cgroup", mems=NodeSet.of(0))


def test_version_2_keeps_a_writers_promises(v2: tuple[CgroupV2Writer, Path]) -> None:
    """The same on version 2."""
    writer, path = v2
    check_cpuset_writer(writer, path.name, _two_sets(), absent="no-such-cgroup", mems=NodeSet.of(0))


def test_affinity_keeps_a_writers_promises(sleeper: subprocess.Popen[str]) -> None:
    """The same on a process and all its threads."""
    check_cpuset_writer(AffinityWriter(), process_target(sleeper.pid), _two_sets(), absent="999999999")
    assert _threads(sleeper.pid) == {_two_sets()[-1]}


def test_threads_inherit_what_their_process_was_confined_to(sleeper: subprocess.Popen[str]) -> None:
    """Threads that start afterwards run on the same CPUs; one that strays shows as drift."""
    first, second, _ = _two_sets()
    writer, target = AffinityWriter(), process_target(sleeper.pid)
    writer.write(target, first, None)
    assert sleeper.stdin is not None
    assert sleeper.stdout is not None
    sleeper.stdin.write("more\n")
    sleeper.stdin.flush()
    sleeper.stdout.readline()
    assert _threads(sleeper.pid) == {first}
    stray = max(int(entry.name) for entry in Path(f"/proc/{sleeper.pid}/task").iterdir())
    os.sched_setaffinity(stray, second)
    assert writer.read(target) == (CPUSet(), None)


def test_a_number_that_another_process_got_is_gone(sleeper: subprocess.Popen[str]) -> None:
    """A target says when its process started, so that its successor is left alone."""
    later = f"{sleeper.pid}@1"
    with pytest.raises(TargetGoneError):
        AffinityWriter().write(later, ONLINE, None)
    with pytest.raises(TargetGoneError):
        process_target(999999999)


def test_affinity_says_what_it_cannot_do(sleeper: subprocess.Popen[str]) -> None:
    """Memory nodes, CPUs that are not there, and targets that are no process."""
    writer, target = AffinityWriter(), process_target(sleeper.pid)
    with pytest.raises(CpusetWriteError, match="use a cgroup"):
        writer.write(target, ONLINE, NodeSet.of(0))
    with pytest.raises(CpusetWriteError, match="none of these CPUs is online"):
        writer.write(target, CPUSet.of(4000), None)
    with pytest.raises(CpusetWriteError, match="expected PID"):
        writer.read("web")


def test_affinity_of_somebody_else_is_refused(as_root: None, sleeper: subprocess.Popen[str]) -> None:
    """Without privileges another user's process is out of reach, and the error says so."""
    code = (
        "import os, sys\n"
        "from nodealloc.cpuset import AffinityWriter, CPUSet, CpusetWriteError\n"
        "os.setuid(65534)\n"
        "try: AffinityWriter().write(sys.argv[1], CPUSet.of(0), None)\n"
        "except CpusetWriteError as error: print(error)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, str(sleeper.pid)], capture_output=True, text=True, check=False
    )
    assert "permission denied" in found.stdout, found.stderr


def test_the_kernels_refusals_have_words(v1: tuple[CgroupV1Writer, Path]) -> None:
    """Absent nodes and CPUs, no subset of the parent, a wider child, an occupied cgroup."""
    writer, path = v1
    first, second, both = _two_sets()
    name = path.name
    with pytest.raises(CpusetWriteError, match="online"):
        writer.write(name, both, NodeSet.of(63))
    with pytest.raises(CpusetWriteError) as caught:
        writer.write(name, CPUSet.of(60000), None)
    assert caught.value.errno is not None
    child = path / "child"
    child.mkdir()
    writer.write(f"{name}/child", both, NodeSet.of(0))
    with pytest.raises(CpusetBusyError, match="narrow that first"):
        writer.write(name, first, None)
    writer.write(f"{name}/child", first, None)
    writer.write(name, first, None)
    with pytest.raises(CpusetWriteError, match="no subset of the parent"):
        writer.write(f"{name}/child", second, None)
    assert writer.read(f"{name}/child")[0] == first
    with pytest.raises(CpusetWriteError, match="no cgroup below"):
        writer.read("../escape")


def test_a_cgroup_without_the_controller_is_named(as_root: None) -> None:
    """On a hierarchy without cpusets the error says what to switch on."""
    if not (V2 / "unified" / "cgroup.procs").exists():
        pytest.skip("no hierarchy of version 2 beside one of version 1")
    with _directory(V2 / "unified") as path, pytest.raises(NodeallocError, match="enable the cpuset"):
        CgroupV2Writer(V2 / "unified").read(path.name)


def test_a_confined_process_runs_where_it_was_granted(
    v1: tuple[CgroupV1Writer, Path], sleeper: subprocess.Popen[str]
) -> None:
    """Grant, write, repair: the kernel's own view follows the allocator's."""
    writer, path = v1
    _two_sets()
    machine = discover("/sys").machine
    node = CpuAllocator.of(machine, reserved=1)
    job = Claim(owner=Owner("job", "main"), amounts={"cpu": Quantity.of(1)})
    granted = node.allocate(job, TopologyHint(None, preferred=True))
    assert isinstance(granted, CpuAllocator)
    (path / "cgroup.procs").write_text(str(sleeper.pid))
    keeper = CpusetReconciler(writer, executor=InlineExecutor(), allocator=granted)
    keeper.add(path.name, job.owner, mems=NodeSet.of(0))
    keeper.reconcile()
    assert _threads(sleeper.pid) == {granted.exclusive_of(job.owner)}
    (path / "cpuset.cpus").write_text(str(machine.online))
    keeper.observe()
    keeper.reconcile()
    assert _threads(sleeper.pid) == {granted.exclusive_of(job.owner)}
    keeper.follow(granted.release("job"))
    keeper.reconcile()
    assert _threads(sleeper.pid) == {machine.online}


def _job(cpus: int) -> Pod:
    amounts = resources({"cpu": cpus, "memory": "64Mi"})
    return Pod(uid="job", name="job", containers=(Container(name="main", requests=amounts, limits=amounts),))


def test_a_resized_pod_runs_on_what_it_has_now(
    v1: tuple[CgroupV1Writer, Path], sleeper: subprocess.Popen[str]
) -> None:
    """Through the node's door: the process that runs gets a CPU more in its cgroup, and gives it back."""
    writer, path = v1
    _two_sets()
    machine = discover("/sys").machine
    policy = StaticPolicy.of(machine, reserved=0, resizable=True)
    empty = Snapshot.of(machine, allocators=[CpuAllocator(policy=policy), MemoryAllocator.of(machine)])
    node = NodeAllocator(empty, MemoryStore(FORMATS))
    node.start()
    assert isinstance(node.admit(_job(1)), Placed)
    owner = Owner("job", "main")
    granted = node.before_start(owner, "container")
    (path / "cgroup.procs").write_text(str(sleeper.pid))
    keeper = CpusetReconciler(writer, executor=InlineExecutor(), allocator=node.snapshot[CpuAllocator])
    keeper.add(path.name, owner, mems=granted.mems)
    keeper.reconcile()
    assert _threads(sleeper.pid) == {granted.exclusive}
    for cpus in (2, len(machine.online) + 1, 1):
        verdict = node.resize(_job(cpus))
        assert isinstance(verdict, Placed) == (cpus <= len(machine.online))
        keeper.follow(node.snapshot[CpuAllocator])
        keeper.reconcile()
        now = node.before_start(owner, "container")
        assert _threads(sleeper.pid) == {now.exclusive}
        assert CPUSet.parse((path / "cpuset.cpus").read_text().strip()) == now.exclusive
        assert len(now.exclusive) == min(cpus, 2)
    assert node.before_start(owner, "container") == granted


class CountingWriter:
    """Passes everything on, and counts what is tried."""

    def __init__(self, inner: CgroupV1Writer) -> None:
        self._inner = inner
        self.writes: dict[str, int] = {}

    def read(self, target: str, /) -> tuple[CPUSet, NodeSet | None]:
        """See `CpusetWriter.read`."""
        return self._inner.read(target)

    def write(self, target: str, cpus: CPUSet, mems: NodeSet | None, /) -> None:
        """See `CpusetWriter.write`."""
        self.writes[target] = self.writes.get(target, 0) + 1
        self._inner.write(target, cpus, mems)


def test_a_cgroup_that_stays_busy_keeps_no_other_waiting(v1: tuple[CgroupV1Writer, Path]) -> None:
    """The kernel refuses it for an hour, which is told; the rest is in line, and it is in the end."""
    inner, path = v1
    both = _two_sets()[-1]
    for name in ("busy", "busy/below", "free"):
        (path / name).mkdir()
        inner.write(f"{path.name}/{name}", both, NodeSet.of(0))
    busy, free = f"{path.name}/busy", f"{path.name}/free"
    machine = discover("/sys").machine
    job = Claim(owner=Owner("job", "main"), amounts={"cpu": Quantity.of(1)})
    granted = CpuAllocator.of(machine, reserved=1).allocate(job, TopologyHint(None, preferred=True))
    assert isinstance(granted, CpuAllocator)
    clock, writer = VirtualClock(), CountingWriter(inner)
    keeper = CpusetReconciler(writer, executor=InlineExecutor(), allocator=granted, clock=clock)
    keeper.add(busy, job.owner)
    keeper.add(free, Owner("other", "main"))
    for _ in range(3600):
        keeper.reconcile()
        clock.advance(1)
    assert "narrow that first" in str(keeper.failures(busy)[0])
    assert inner.read(busy)[0] == both
    assert (keeper.is_in_line(busy), keeper.is_in_line(free), keeper.failures(free)) == (False, True, ())
    assert inner.read(free)[0] == machine.online - granted.exclusive_of(job.owner)
    assert (writer.writes[free], 5 <= writer.writes[busy] <= 60) == (1, True)
    inner.write(f"{busy}/below", granted.exclusive_of(job.owner), None)
    for _ in range(600):
        keeper.reconcile()
        clock.advance(1)
    assert inner.read(busy)[0] == granted.exclusive_of(job.owner)
    assert (keeper.is_in_line(busy), keeper.failures(busy)) == (True, ())
