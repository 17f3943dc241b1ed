"""The tree manager, removal and drivers over stand-ins."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import attrs
import pytest

from nodealloc.allocatable import Reservation, ReservationError
from nodealloc.cgroups import (
    NO_LIMIT,
    CgroupAbsentError,
    CgroupMount,
    CgroupName,
    CgroupStats,
    ControllerMissingError,
    Enforce,
    Enforcement,
    Layout,
    LimitRefusedError,
    Limits,
    MemoryInUseError,
    NoSuchTreeError,
    PodOptions,
    QosTree,
    Spelling,
    TreeOptions,
    check_requirements,
    check_swap,
    detect,
    enforce_reservation,
    launch,
    pod_name,
    stand_in,
)
from nodealloc.cgroups._requirements import UnmetRequirement
from nodealloc.errors import ConfigurationError
from nodealloc.podspec import Container, Pod, Quantity
from nodealloc.testing.cgroups import (
    FakeCgroups,
    check_cgroup_driver,
    check_process_driver,
    check_tree_reader,
)
from nodealloc.testing.dsw_asw import VirtualClock

ROOT = CgroupName.of("kubepods")
MIB = 1 << 20


def pod(uid: str, cpu: str = "1", memory: str = "") -> Pod:
    """A pod with requests; guaranteed if it has memory."""
    amounts = {"cpu": Quantity.parse(cpu)} | ({"memory": Quantity.parse(memory)} if memory else {})
    limits = amounts if memory else {}
    return Pod(uid=uid, containers=(Container(name="app", requests=amounts, limits=limits),))


def test_a_tree_that_could_not_be_read_at_first_is_read_by_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same pods are no reason to do nothing then: cgroups of an earlier life go, and theirs come."""
    driver = stand_in(tmp_path)
    tree = QosTree(driver, TreeOptions(root=ROOT))
    tree.reconcile([pod("old"), pod("a")])
    tree = QosTree(driver, TreeOptions(root=ROOT))
    with monkeypatch.context() as broken:

        def children(_self: object, _name: CgroupName) -> tuple[CgroupName, ...]:
            raise OSError(errno.EIO, "Input/output error")

        broken.setattr(type(driver), "children", children)
        with pytest.raises(OSError, match="Input/output error"):
            tree.reconcile([pod("a"), pod("b")])
    report = tree.reconcile([pod("a"), pod("b")])
    assert driver.exists(pod_name(ROOT, pod("b")))
    assert not driver.exists(pod_name(ROOT, pod("old")))
    assert report.failed == {}


@pytest.mark.parametrize("spelling", Spelling)
@pytest.mark.parametrize("version", [1, 2])
def test_stand_in_keeps_the_promises(tmp_path: Path, version: int, spelling: Spelling) -> None:
    """A directory behaves as the kernel's files do, as far as the Protocols promise."""
    driver = stand_in(tmp_path, version=version, spelling=spelling)
    assert driver.layout.kind == f"v{version}"
    driver.apply(ROOT, Limits())
    check_cgroup_driver(driver, ROOT)
    check_process_driver(driver, ROOT)
    check_tree_reader(driver, ROOT)
    assert driver.children(ROOT) == ()
    assert driver.children(CgroupName()) == (ROOT,)
    assert detect(tmp_path).layout.stand_in


def test_fake_keeps_the_promises() -> None:
    """The fake is held to the same checks as the real drivers."""
    fake = FakeCgroups()
    fake.apply(ROOT, Limits())
    check_cgroup_driver(fake, ROOT)
    check_process_driver(fake, ROOT)
    check_tree_reader(fake, ROOT)


@pytest.mark.parametrize("mends", [True, False])
@pytest.mark.parametrize("version", [1, 2])
def test_other_options_over_a_restart_reach_pods_that_run_or_as_with_a_kubelet_only_new_ones(
    tmp_path: Path, version: int, mends: bool
) -> None:
    """It makes the cgroup of a pod once, and writes the classes' each minute."""
    driver = stand_in(tmp_path, version=version)
    old, new = (pod(uid, memory="8Mi") for uid in ("old", "new"))
    first = TreeOptions(root=ROOT, pods=PodOptions(pids=100), root_limits=Limits(pids=500))
    QosTree(driver, first).reconcile([old])
    then = TreeOptions(root=ROOT, pods=PodOptions(pids=200, cpu_quota=False), root_limits=Limits(pids=600))
    tree = QosTree(driver, then, mends_pods=mends)
    for _ in range(2):
        assert tree.reconcile([old, new]).failed == {}
        found = [driver.read(pod_name(ROOT, one)) for one in (old, new)]
        assert [one and one.pids for one in found] == [200 if mends else 100, 200]
        root = driver.read(ROOT)
        assert root is not None
        assert root.pids == 600
    assert tree.reconcile([new]).failed == {}
    assert driver.read(pod_name(ROOT, old)) is None
    tree.reconcile([new, old])
    again = driver.read(pod_name(ROOT, old))
    assert again is not None
    assert again.pids == 200


def test_one_pods_trouble_is_no_others() -> None:
    """A pod that can have no cgroup is refused by name, one that nobody knows keeps what it had."""
    fake = FakeCgroups()
    tree = QosTree(fake, TreeOptions())
    good, bad = tree.options.root.child("podgood"), tree.options.root.child("podbad")
    tree.reconcile([pod("bad", memory="8Mi")])
    for keeper in (tree, QosTree(fake, tree.options)):  # also after a restart, which has not seen it sound
        wanted = [pod("sla/sh", memory="8Mi"), pod("good", memory="8Mi")]
        report = keeper.reconcile(wanted, leave=["bad"])
        assert set(report.refused) == {"sla/sh"}
        assert "sla/sh" in str(report.refused["sla/sh"])
        assert not report.is_settled
        assert report.removals == ()
        assert fake.read(good) is not None
        left = fake.read(bad)
        assert left is not None
        assert left.memory_bytes == 8 * MIB
    report = tree.reconcile([pod("good", memory="8Mi")])
    assert report.is_settled
    assert fake.read(bad) is None


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("quota_us", [None, NO_LIMIT, 7000])
def test_a_cgroup_with_another_quota_is_taken_over(
    tmp_path: Path, version: int, quota_us: int | None
) -> None:
    """A kill between its making and its quota left it, or somebody changed it; the period is right."""
    driver = stand_in(tmp_path, version=version)
    name = ROOT.child("podhalf")
    driver.apply(ROOT, Limits())
    driver.apply(name, Limits(cpu_quota_us=quota_us))
    report = QosTree(driver, TreeOptions(root=ROOT)).reconcile([pod("half", cpu="2", memory="8Mi")])
    assert report.is_settled
    found = driver.read(name)
    assert found is not None
    assert (found.cpu_quota_us, found.cpu_period_us) == (200_000, 100_000)


def test_fake_says_what_it_lacks() -> None:
    """Unknown cgroups and senseless process ids are refused as elsewhere."""
    fake = FakeCgroups(running={5})
    with pytest.raises(CgroupAbsentError):
        fake.attach(ROOT, 5)
    with pytest.raises(CgroupAbsentError):
        fake.stats(ROOT)
    fake.apply(ROOT, Limits())
    fake.attach(ROOT, 5)
    with pytest.raises(ValueError, match="positive"):
        fake.attach(ROOT, 0)
    assert fake.kill(ROOT) == ()


def test_stand_in_runs_a_program(tmp_path: Path) -> None:
    """A program is launched, seen and ended through a stand-in."""
    driver = stand_in(tmp_path / "new")
    driver.apply(ROOT, Limits(pids=5))
    started: list[int] = []
    process = launch(driver, ROOT, ["sleep", "60"], before_start=started.append, oom_score_adj=1000)
    assert started == [process.pid]
    assert driver.pids(ROOT) == {process.pid}
    assert Path(f"/proc/{process.pid}/oom_score_adj").read_text().strip() == "1000"
    assert driver.kill(ROOT) == ()
    assert process.wait(5) == -9
    assert driver.stats(ROOT).memory_bytes == 0
    with pytest.raises(CgroupAbsentError):
        driver.stats(ROOT.child("x"))
    with pytest.raises(ValueError, match="positive"):
        driver.attach(ROOT, -1)


def test_launch_needs_a_command_and_a_cgroup(tmp_path: Path) -> None:
    """Nothing is started for an empty command or a text; a refused move ends what was started."""
    driver = stand_in(tmp_path)
    with pytest.raises(ValueError, match="empty"):
        launch(driver, ROOT, [])
    with pytest.raises(ValueError, match="expected a list or tuple of text"):
        launch(driver, ROOT, "true")
    with pytest.raises(ValueError, match="oom_score_adj 1001 is outside"):
        launch(driver, ROOT, ["true"], oom_score_adj=1001)
    with pytest.raises(CgroupAbsentError):
        launch(driver, ROOT, ["touch", str(tmp_path / "ran")])
    assert not (tmp_path / "ran").exists()


def test_gate_stays_shut_without_its_starter() -> None:
    """If the starter dies before it opens the gate, the command never runs."""
    from nodealloc.cgroups._launch import _GATE

    done = subprocess.run(
        ["/bin/sh", "-c", _GATE, "sh", "echo", "ran"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (125, b"")


def test_controller_that_is_not_handed_down_is_named(tmp_path: Path) -> None:
    """On v2 a child gets only what its ancestors have; the one that has not is named."""
    driver = stand_in(tmp_path)
    (tmp_path / "cgroup.controllers").write_text("cpu memory")
    with pytest.raises(ControllerMissingError, match="cpuset"):
        driver.apply(ROOT, Limits())


def test_missing_file_is_named(tmp_path: Path) -> None:
    """A limit whose control file is not there says which."""
    driver = stand_in(tmp_path)
    driver.apply(ROOT, Limits())
    (tmp_path / "kubepods" / "pids.max").unlink()
    with pytest.raises(LimitRefusedError, match=r"pids\.max.*no such control file"):
        driver.apply(ROOT, Limits(pids=5))


def test_nothing_is_mounted(tmp_path: Path) -> None:
    """A directory that is no tree is refused with what to do."""
    with pytest.raises(NoSuchTreeError, match="stand_in"):
        detect(tmp_path)
    with pytest.raises(NoSuchTreeError, match="no such directory"):
        detect("/sys/fs/cgroup/absent")


def test_round_writes_changes_only() -> None:
    """A pod that comes writes itself and its class; an idle round calls nobody."""
    driver = FakeCgroups()
    tree = QosTree(driver, TreeOptions())
    tree.reconcile([pod("a")])
    driver.calls.clear()
    assert tree.reconcile([pod("a")]).is_settled
    assert driver.calls == []
    report = tree.reconcile([pod("a"), pod("b")])
    burstable = ROOT.child("burstable")
    assert dict(report.applied) == {
        burstable: Limits(cpu_shares=2048),
        burstable.child("podb"): Limits(cpu_shares=1024),
    }


def test_outside_edits_stay_until_repair_is_asked_for() -> None:
    """What others changed is seen, left alone by rounds, and written again on request."""
    driver = FakeCgroups()
    tree = QosTree(driver, TreeOptions())
    tree.reconcile([pod("a")])
    burstable = ROOT.child("burstable")
    driver.apply(burstable, Limits(cpu_shares=7, pids=3))
    tree.reconcile([pod("a")])
    drifts = tree.observe()
    assert [str(drift) for drift in drifts] == ["/kubepods/burstable: cpu_shares is 7, asked for 1024"]
    tree.repair(drifts)
    assert set(tree.reconcile([pod("a")]).applied) == {burstable}
    found = driver.read(burstable)
    assert found is not None
    assert (found.cpu_shares, found.pids) == (1024, 3)
    driver.remove(burstable.child("poda"))
    assert [drift.found for drift in tree.observe()] == ["gone"]


def test_start_takes_over_what_is_right() -> None:
    """After a restart, only differences are written."""
    driver = FakeCgroups()
    QosTree(driver, TreeOptions()).reconcile([pod("a")])
    driver.apply(ROOT.child("besteffort"), Limits(cpu_shares=9))
    tree = QosTree(driver, TreeOptions())
    assert dict(tree.reconcile([pod("a")]).applied) == {ROOT.child("besteffort"): Limits(cpu_shares=2)}
    tree.repair(tree.observe())
    assert not tree.reconcile().applied


def test_what_an_observation_finds_is_brought_in_line() -> None:
    """A pod's cgroup that nobody wants goes; one that others took away when nobody wanted it is forgotten."""
    driver = FakeCgroups(running={7})
    tree = QosTree(driver, TreeOptions(), clock=VirtualClock())
    tree.reconcile([pod("a"), pod("b")])
    stuck, foreign = (ROOT.child("burstable").child(name) for name in ("podb", "podc"))
    driver.attach(stuck, 7)
    driver.unkillable = {7}
    assert not tree.reconcile([pod("a")]).is_settled
    driver.unkillable = set()
    driver.kill(stuck)
    driver.remove(stuck)
    driver.apply(foreign, Limits())
    assert tree.observe() == ()
    report = tree.reconcile()
    assert report.is_settled
    assert [removal.name for removal in report.removals] == [foreign]
    assert driver.read(foreign) is None


def test_another_root_is_another_tree() -> None:
    """Pods that run below the first one would be taken for nobody's."""
    tree = QosTree(FakeCgroups(), TreeOptions())
    tree.reconcile([pod("a")])
    tree.options = TreeOptions(root="/other")
    with pytest.raises(ConfigurationError, match="make another QosTree"):
        tree.follow([pod("a")])


def test_limit_that_is_not_wanted_any_more_is_lifted() -> None:
    """A memory limit that was asked for and is dropped does not stay behind."""
    driver = FakeCgroups()
    options = TreeOptions(memory_reserve_percent=100, allocatable_memory_bytes=100 * MIB)
    tree = QosTree(driver, options)
    tree.reconcile([])
    tree.options = TreeOptions()
    report = tree.reconcile([])
    assert report.applied[ROOT.child("burstable")].memory_bytes == NO_LIMIT
    assert not tree.reconcile([]).applied


def test_every_limit_of_the_root_is_lifted() -> None:
    """Swap and huge pages as well; CPUs and shares cannot be, since a cgroup always has some."""
    driver = FakeCgroups()
    limits = Limits(
        memory_bytes=MIB,
        memory_high_bytes=MIB,
        swap_bytes=MIB,
        pids=9,
        cpu_quota_us=5000,
        hugepage_bytes={2 * MIB: 4 * MIB, 1 << 30: NO_LIMIT},
    )
    tree = QosTree(driver, TreeOptions(root_limits=limits))
    tree.reconcile([])
    tree.options = TreeOptions()
    lifted = tree.reconcile([]).applied[ROOT]
    assert lifted == Limits(
        memory_bytes=NO_LIMIT,
        memory_high_bytes=NO_LIMIT,
        swap_bytes=NO_LIMIT,
        pids=NO_LIMIT,
        cpu_quota_us=NO_LIMIT,
        hugepage_bytes={2 * MIB: NO_LIMIT},
    )
    assert not tree.reconcile([]).applied


def test_a_cgroup_that_somebody_removed_is_made_with_all_its_limits() -> None:
    """Not with the one that changed alone."""
    driver = FakeCgroups()
    tree = QosTree(driver, TreeOptions(pods=PodOptions(pids=7)))
    tree.reconcile([pod("a")])
    name = ROOT.child("burstable").child("poda")
    driver.remove(name)
    applied = tree.reconcile([pod("a", cpu="2")]).applied[name]
    assert (applied.cpu_shares, applied.pids) == (2048, 7)


def test_a_class_that_somebody_removed_is_made_anew() -> None:
    """A pod that comes finds its parent missing; it is made, and then the pod, in one go."""
    driver = FakeCgroups()
    tree = QosTree(driver, TreeOptions())
    tree.reconcile([pod("a", cpu="0")])
    driver.remove(ROOT.child("besteffort"))
    report = tree.reconcile([pod("a", cpu="0"), pod("b", cpu="0")])
    assert report.is_settled
    assert set(report.applied) == {
        ROOT.child("besteffort"),
        ROOT.child("besteffort").child("poda"),
        ROOT.child("besteffort").child("podb"),
    }
    assert tree.observe() == ()


def test_memory_limit_never_goes_below_what_is_used() -> None:
    """A class is held where it is; a pod's limit waits, and the report says why."""
    driver = FakeCgroups()
    options = TreeOptions(memory_reserve_percent=100, allocatable_memory_bytes=100 * MIB)
    clock = VirtualClock()
    tree = QosTree(driver, options, clock=clock)
    tree.reconcile([pod("g", memory="50Mi")])
    guaranteed, burstable = ROOT.child("podg"), ROOT.child("burstable")
    for name in (guaranteed, burstable):
        driver.usage[name] = CgroupStats(memory_bytes=45 * MIB)
    report = tree.reconcile([pod("g", memory="40Mi"), pod("h", memory="40Mi")])
    assert isinstance(report.failed[guaranteed], MemoryInUseError)
    assert report.applied[burstable].memory_bytes == 45 * MIB
    assert not report.is_settled
    driver.usage.clear()
    assert not tree.reconcile().applied, "tried again at once"
    clock.advance(10.0)
    report = tree.reconcile([pod("g", memory="40Mi"), pod("h", memory="40Mi")])
    assert report.applied[guaranteed].memory_bytes == 40 * MIB
    assert report.applied[burstable].memory_bytes == 20 * MIB
    assert report.is_settled


def test_failed_pods_do_not_stop_the_others() -> None:
    """A pod that cannot be set up is reported; the next one is set up."""

    class Picky(FakeCgroups):
        """Refuses one pod."""

        def apply(self, name: CgroupName, limits: Limits, /) -> None:
            """Refuse pod a."""
            if name.parts[-1] == "poda":
                raise LimitRefusedError(name, "cpu.weight", "1", 22)
            super().apply(name, limits)

    driver = Picky()
    report = QosTree(driver, TreeOptions()).reconcile([pod("a"), pod("b")])
    assert [name.parts[-1] for name in report.failed] == ["poda"]
    assert driver.read(ROOT.child("burstable").child("podb")) is not None


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        (Layout(mounts=()), "cpu: no hierarchy with it is mounted; mount -t cgroup -o cpu"),
        (
            Layout(mounts=(CgroupMount(path="/nowhere", version=2, controllers=()),)),
            "cpu: it is not in /nowhere/cgroup.controllers",
        ),
        (
            Layout(mounts=(CgroupMount(path="/proc", version=1, controllers=("cpu",), read_only=True),)),
            "cpu: /proc is mounted read-only; mount -o remount,rw /proc",
        ),
    ],
)
def test_shortfalls_are_in_words(layout: Layout, words: str) -> None:
    """What is missing, what was found, what to do."""
    (shortfall, *_) = check_requirements(layout, ["cpu"])
    assert str(shortfall).startswith(words)


def test_occupied_top_is_named(tmp_path: Path) -> None:
    """A v2 subtree whose top holds processes is found before anything is tried."""
    (tmp_path / "cgroup.type").write_text("domain")
    (tmp_path / "cgroup.procs").write_text("1\n")
    (tmp_path / "cgroup.subtree_control").write_text("pids")
    layout = Layout(
        mounts=(CgroupMount(path=str(tmp_path), version=2, controllers=("cpu", "memory", "pids")),)
    )
    (shortfall,) = check_requirements(layout, ["cpu", "pids"])
    assert (shortfall.what, "holds processes itself" in shortfall.reason) == ("cpu", True)
    (tmp_path / "cgroup.procs").write_text("")
    assert check_requirements(layout, ["cpu", "pids"]) == ()


def test_reservation_is_enforced_on_what_exists() -> None:
    """All is checked first; a cgroup that is not there is named, and none is written."""
    driver = FakeCgroups()
    kube, system = CgroupName.of("kube"), CgroupName.of("system")
    reservation = Reservation(
        kube_reserved={"memory": Quantity.of("1Gi")},
        system_reserved={"cpu": Quantity.of(1), "memory": Quantity.of("1Gi")},
    )
    enforcement = Enforcement(
        levels=frozenset({Enforce.KUBE_RESERVED, Enforce.SYSTEM_RESERVED_COMPRESSIBLE}),
        kube_cgroup=kube,
        system_cgroup=system,
    )
    capacity = {"cpu": Quantity.of(4), "memory": Quantity.of("8Gi")}
    driver.apply(kube, Limits())
    with pytest.raises(CgroupAbsentError, match="/system"):
        enforce_reservation(driver, capacity, reservation, enforcement)
    assert driver.read(kube) == Limits()
    driver.apply(system, Limits())
    enforce_reservation(driver, capacity, reservation, enforcement)
    assert driver.read(kube) == Limits(memory_bytes=1 << 30)
    assert driver.read(system) == Limits(cpu_shares=1024)
    small = {"cpu": Quantity.of(4), "memory": Quantity.of("1Mi")}
    with pytest.raises(ReservationError, match="of 1Mi"):
        enforce_reservation(driver, small, reservation, enforcement)
    with pytest.raises(ReservationError, match="without a cgroup"):
        enforce_reservation(driver, capacity, reservation, attrs.evolve(enforcement, kube_cgroup=None))


def test_stand_in_lacks_nothing(tmp_path: Path) -> None:
    """A stand-in meets the requirements, unless it may not be written."""
    driver = stand_in(tmp_path)
    assert check_requirements(driver.layout) == ()
    closed = attrs.evolve(driver.layout, mounts=(attrs.evolve(driver.layout.mounts[0], path="/proc/1"),))
    if os.geteuid() != 0:
        assert "may not be written" in str(check_requirements(closed)[0])


def test_swap_is_named() -> None:
    """Swap that is on is named with its devices."""
    assert check_swap("Filename Type Size Used Priority\n") is None
    found = check_swap("Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n")
    assert isinstance(found, UnmetRequirement)
    assert "/dev/sda2" in str(found)


def test_a_cgroup_that_a_crash_left_half_made_is_completed(tmp_path: Path) -> None:
    """A v1 pod cgroup that stands in one hierarchy only is made whole, with its limits."""
    driver = stand_in(tmp_path, version=1)
    driver.apply(CgroupName.of("kubepods"), Limits())
    half = tmp_path / "cpu" / "kubepods" / "podu1"
    half.mkdir()
    limited = {"limits": {"cpu": 1, "memory": "64Mi"}}
    spec = {"containers": [{"name": "c", "resources": limited}]}
    pod = Pod.from_manifest({"metadata": {"name": "p", "uid": "u1"}, "spec": spec})
    report = QosTree(driver, TreeOptions()).reconcile([pod])
    assert report.is_settled, report.failed
    found = driver.read(CgroupName.of("kubepods", "podu1"))
    assert found is not None
    assert found.memory_bytes == 64 << 20


@pytest.mark.parametrize("text", ["", "3", "x" * 100])
def test_a_stand_in_with_another_mark_is_refused_or_made_anew(text: str, tmp_path: Path) -> None:
    """A mark that was cut off as it was written made a tree of version 1 of it; another one too."""
    stand_in(tmp_path)
    mark = tmp_path / ".cgroup-stand-in"
    mark.write_text(text)
    if text:
        with pytest.raises(ConfigurationError, match=r"\.cgroup-stand-in: expected 1 or 2"):
            stand_in(tmp_path)
    else:
        assert stand_in(tmp_path).layout.kind == "v2"
        assert mark.read_text() == "2"


@pytest.mark.parametrize("kind", ["pipe", "endless"])
def test_a_mark_that_is_no_file_is_refused_at_once(kind: str, tmp_path: Path) -> None:
    """A pipe was waited for without end, and a device without end took all memory."""
    mark = tmp_path / ".cgroup-stand-in"
    if kind == "pipe":
        os.mkfifo(mark)
    else:
        mark.symlink_to("/dev/zero")
    with pytest.raises(OSError, match=r"no regular file: .*/\.cgroup-stand-in"):
        stand_in(tmp_path)
