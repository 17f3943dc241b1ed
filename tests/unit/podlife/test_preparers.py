"""Preparers over other packages: cgroups, folders and volumes of pods."""

from __future__ import annotations

import errno
import math
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import attrs
import pytest

from nodealloc.cgroups import (
    CgroupBusyError,
    CgroupFs,
    CgroupName,
    LimitRefusedError,
    Limits,
    QosTree,
    TreeOptions,
    TreeReport,
    pod_name,
    stand_in,
)
from nodealloc.dsw_asw import InlineExecutor, ThreadExecutor
from nodealloc.errors import ConfigurationError
from nodealloc.podfacts import PodLife
from nodealloc.podlife import PodRunOptions, Preparation, Provided
from nodealloc.podlife.preparers import BegunPods, CgroupPreparer, FolderPreparer, VolumePreparer
from nodealloc.podspec import Container, Pod, Volume, VolumeUse, resources
from nodealloc.testing.cgroups import FakeCgroups
from nodealloc.testing.dsw_asw import ManualCancel, VirtualClock
from nodealloc.testing.podfacts import FakePods
from nodealloc.testing.podlife import FakePreparer
from nodealloc.testing.volumes import FakeClaims, FakeHost, FakeMounter, claiming_pod
from nodealloc.verdicts import Admitted, NotYet
from nodealloc.volumes import OutsideRootError, SafeRoot, VolumeManager, VolumeSpec
from nodealloc.volumes._model import ActualVolume, PodMount
from nodealloc.volumes._states import MountState
from nodealloc.volumes.plugins import EmptyDir
from tests.deep_tree import deepened
from tests.unit.podlife_node import Node
from tests.unit.podlife_node import pod as a_pod

NOW = ManualCancel()
APP = Container(name="app", image="busybox", requests=resources({"cpu": "100m"}))
WEB = Pod(uid="web", name="web", containers=(APP,))


@attrs.define
class Tree:
    """A tree of cgroups in files, and what is said to run."""

    folder: Path
    running: tuple[str, ...] | None = ()
    options: TreeOptions = TreeOptions(root=CgroupName.parse("/kubepods"))
    driver: CgroupFs = attrs.field(default=attrs.Factory(lambda tree: stand_in(tree.folder), takes_self=True))

    def preparer(self, *pods: Pod, follows: bool = True) -> CgroupPreparer:
        """One that knows some pods from before."""
        return CgroupPreparer(QosTree(self.driver, self.options), pods, lambda: self.running, follows=follows)

    def has(self, pod: Pod) -> bool:
        """Whether a pod's cgroup is there."""
        return self.driver.exists(pod_name(self.options.root, pod))


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """An empty one."""
    return Tree(tmp_path)


def test_a_pod_gets_a_cgroup_and_its_containers_are_made_below_it(tree: Tree) -> None:
    """It is there when the answer says so, and gone when it was taken back."""
    cgroups = tree.preparer()
    answer = cgroups.make_ready(WEB, NOW)
    assert isinstance(answer, Provided)
    assert isinstance(answer.value, PodRunOptions)
    assert answer.value.cgroup_parent == pod_name(tree.options.root, WEB).path()
    assert tree.has(WEB)
    assert cgroups.take_back(WEB, NOW) is None
    assert not tree.has(WEB)


def test_who_asked_while_a_round_failed_is_served_by_one_of_his_own(tree: Tree) -> None:
    """That round was made for him as well, and it did nothing."""
    other, answers = attrs.evolve(WEB, uid="other", name="other"), list[object]()
    waiting = threading.Thread(target=lambda: answers.append(cgroups.make_ready(other, NOW)))

    def running() -> tuple[str, ...]:
        if waiting.ident is None:
            waiting.start()
            while cgroups._asked < 2:
                time.sleep(0.001)
        return ()

    class FailsOnce(QosTree):
        failed = False

        def reconcile(self, *given: Any, **more: Any) -> TreeReport:
            """See `QosTree.reconcile`."""
            if not self.failed:
                self.failed = True
                raise OSError(errno.EMFILE, "Too many open files")
            return super().reconcile(*given, **more)

    cgroups = CgroupPreparer(FailsOnce(tree.driver, tree.options), [], running)
    with pytest.raises(OSError, match="Too many open files"):
        cgroups.make_ready(WEB, NOW)
    waiting.join(20.0)
    assert isinstance(answers[0], Provided)
    assert tree.has(other)


class OfV1(CgroupFs):
    """v1 takes no quota below that of a cgroup further down."""

    def apply(self, name: CgroupName, limits: Limits, /) -> None:
        """See `CgroupFs.apply`."""
        quota_us = limits.cpu_quota_us
        for child in self.children(name):
            below = self.read(child)
            if quota_us and below and quota_us < (below.cpu_quota_us or 0):
                path = f"/sys/fs/cgroup/cpu{name}/cpu.cfs_quota_us"
                raise LimitRefusedError(name, path, str(quota_us), errno.EINVAL)
        super().apply(name, limits)


def test_an_edit_that_lowers_a_quota_comes_in_before_its_containers_are_resized(tmp_path: Path) -> None:
    """v1 refuses the pod's until then: it is lowered when they have been, and all else at once."""
    made = stand_in(tmp_path, version=1)
    tree = Tree(tmp_path, driver=OfV1(made.layout, files=made._files))
    clock = VirtualClock()
    cgroups = CgroupPreparer(QosTree(tree.driver, tree.options, clock=clock), (), lambda: ())

    def asking(cpus: int) -> Pod:
        app = attrs.evolve(APP, requests=resources({"cpu": cpus}), limits=resources({"cpu": cpus}))
        return attrs.evolve(WEB, containers=(app,))

    name = pod_name(tree.options.root, WEB)
    for cpus, of_container, of_pod in ((2, 2, 2), (1, 2, 2), (1, 1, 1)):
        if tree.has(WEB):
            quota_us = of_container * 100_000
            tree.driver.apply(name.child("app"), Limits(cpu_quota_us=quota_us, cpu_period_us=100_000))
        clock.advance(60.0)
        assert isinstance(cgroups.make_ready(asking(cpus), NOW), Provided)
        found = tree.driver.read(name)
        assert found is not None
        assert (found.cpu_quota_us, found.cpu_shares) == (of_pod * 100_000, cpus * 1024)


@pytest.mark.parametrize("is_new_agent", [False, True])
def test_what_runs_goes_on_when_an_edit_changes_the_class_of_its_pod(tree: Tree, is_new_agent: bool) -> None:
    """Its cgroup of before stays, with the limits that the pod has now, until the pod goes."""
    cgroups = tree.preparer()
    assert isinstance(cgroups.make_ready(WEB, NOW), Provided)
    had = pod_name(tree.options.root, WEB)
    process = subprocess.Popen(["/bin/sleep", "100"])
    try:
        tree.driver.attach(had, process.pid)
        amounts = resources({"cpu": 2, "memory": "64Mi"})
        edited = attrs.evolve(WEB, containers=(attrs.evolve(APP, requests=amounts, limits=amounts),))
        tree.running = ("web",)
        cgroups = tree.preparer(WEB) if is_new_agent else cgroups
        answer = cgroups.make_ready(edited, NOW)
        assert isinstance(answer, Provided)
        assert isinstance(answer.value, PodRunOptions)
        assert answer.value.cgroup_parent == "/kubepods/podweb"
        assert process.poll() is None
        found = [tree.driver.read(name) for name in (had, CgroupName.parse("/kubepods/podweb"))]
        assert [one and one.memory_bytes for one in found] == [64 << 20, 64 << 20]
        assert isinstance(tree.preparer(edited).make_ready(edited, NOW), Provided)
        assert process.poll() is None
        assert cgroups.take_back(edited, NOW) is None
        assert process.wait(10.0) == -9
        assert [tree.has(one) for one in (WEB, edited)] == [False, False]
    finally:
        process.kill()
        process.wait()


def test_no_cgroup_is_touched_before_it_is_known_what_runs(tree: Tree) -> None:
    """A pod that nobody spoke of yet would be ended with its cgroup."""
    tree.running = None
    cgroups = tree.preparer()
    answer = cgroups.make_ready(WEB, NOW)
    assert isinstance(answer, NotYet)
    assert answer.blocker == "runtime"
    assert isinstance(cgroups.take_back(WEB, NOW), NotYet)
    assert not tree.has(WEB)


@pytest.mark.parametrize("limits", [{}, {"cpu": "1"}, {"cpu": "1", "memory": "64Mi"}])
@pytest.mark.parametrize("asks", [{}, {"cpu": "100m"}])
def test_the_cgroup_of_a_pod_that_runs_and_nobody_has_told_of_stays(
    tree: Tree, limits: dict[str, str], asks: dict[str, str]
) -> None:
    """As it is, whatever its class, until its source speaks, or it is taken back; one of nobody goes."""
    app = attrs.evolve(APP, requests=resources(asks), limits=resources(limits))
    web = attrs.evolve(WEB, containers=(app,))
    name = pod_name(tree.options.root, web)
    tree.preparer().make_ready(web, NOW)
    had = tree.driver.read(name)
    tree.running = ("web",)
    again = tree.preparer()
    again.settle()
    other = attrs.evolve(WEB, uid="other", name="other")
    again.make_ready(other, NOW)
    assert tree.driver.read(name) == had
    assert again.take_back(web, NOW) is None
    assert not tree.has(web)
    tree.preparer().make_ready(WEB, NOW)
    tree.running = ()
    tree.preparer().settle()
    assert not tree.has(WEB)


def test_an_edit_changes_the_cgroup_unless_it_is_left_as_it_was_made(tree: Tree) -> None:
    """A kubelet leaves it."""
    edited = attrs.evolve(WEB, containers=(attrs.evolve(APP, limits=resources({"cpu": "2"})),))
    for follows, quota in ((True, True), (False, False)):
        cgroups = tree.preparer(WEB, follows=follows)
        cgroups.make_ready(edited, NOW)
        limits = tree.driver.read(pod_name(tree.options.root, WEB))
        assert limits is not None
        assert (limits.cpu_quota_us is not None and limits.cpu_quota_us > 0) == quota
        cgroups.take_back(WEB, NOW)


def test_a_pod_that_can_have_no_cgroup_waits_with_the_reason(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel does not take its limits."""
    mine, apply = pod_name(tree.options.root, WEB), CgroupFs.apply

    def refuse(driver: CgroupFs, name: CgroupName, limits: Limits) -> object:
        if name == mine:
            raise CgroupBusyError(name, ())
        return apply(driver, name, limits)

    cgroups = tree.preparer()
    with monkeypatch.context() as patched:
        patched.setattr(CgroupFs, "apply", refuse)
        answer = cgroups.make_ready(WEB, NOW)
    assert isinstance(answer, NotYet)
    assert answer.blocker == "cgroups"
    assert str(mine) in answer.message


def test_a_pod_waits_where_there_is_nothing_for_its_cgroup_to_stand_in(tree: Tree) -> None:
    """Its containers would run in no cgroup of its own; as soon as somebody makes it the pod goes on."""
    tree.options = TreeOptions(root=CgroupName.parse("/nodes/kubepods"))
    cgroups = tree.preparer()
    answer = cgroups.make_ready(WEB, NOW)
    assert isinstance(answer, NotYet)
    assert (answer.blocker, "/nodes does not exist" in answer.message) == ("cgroups", True)
    assert not tree.has(WEB)
    tree.driver.apply(CgroupName.parse("/nodes"), Limits())
    later = tree.preparer()
    assert isinstance(later.make_ready(WEB, NOW), Provided)
    assert tree.has(WEB)


def test_a_cgroup_that_cannot_be_removed_is_waited_for(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is still in there is being ended."""
    cgroups = tree.preparer()
    cgroups.make_ready(WEB, NOW)
    monkeypatch.setattr(CgroupFs, "remove", _busy)
    answer = cgroups.take_back(WEB, NOW)
    assert isinstance(answer, NotYet)
    assert answer.blocker == "cgroups"


@pytest.mark.parametrize("fails", ["a write to the class", "a removal"])
def test_what_failed_is_tried_again_each_minute_and_not_with_the_next_pod(fails: str) -> None:
    """A class kept the shares of pods that were gone, and the cgroup of an earlier life stayed, for good."""
    clock, driver = VirtualClock(), Failing(running=())
    burstable = CgroupName.of("kubepods", "burstable")
    for name in (burstable.parent, burstable, burstable.child("podold")):
        driver.apply(name, Limits())
    tree = QosTree(driver, TreeOptions(), clock=clock)
    cgroups = CgroupPreparer(tree, (), lambda: ())
    rounds = cgroups.rounds(executor=InlineExecutor(), clock=clock)
    driver.refuses = burstable if fails == "a write to the class" else burstable.child("podold")
    cgroups.make_ready(WEB, NOW)
    rounds.run_until_quiet()
    driver.refuses = None
    clock.advance(61.0)
    rounds.run_until_quiet()
    assert driver.tree[burstable].cpu_shares == driver.tree[burstable.child("podweb")].cpu_shares
    assert burstable.child("podold") not in driver.tree


def test_a_cgroup_that_was_made_and_not_limited_goes_with_its_pod() -> None:
    """Nobody knew that it was there, and it stayed until the next start of the agent."""
    driver, web = HalfWritten(running=()), CgroupName.of("kubepods", "burstable", "podweb")
    cgroups = CgroupPreparer(QosTree(driver, TreeOptions(), clock=VirtualClock()), (), lambda: ())
    assert isinstance(cgroups.make_ready(WEB, NOW), NotYet)
    assert web in driver.tree
    assert cgroups.take_back(WEB, NOW) is None
    assert web not in driver.tree


def test_a_class_that_was_made_and_not_prepared_holds_its_pods_back() -> None:
    """It asks for no limit, so that it passed for done, and pods came in whose cgroups were not there."""
    driver = Failing(running=())
    driver.refuses, web = CgroupName.of("kubepods"), CgroupName.of("kubepods", "burstable", "podweb")
    driver.half = True
    clock = VirtualClock()
    cgroups = CgroupPreparer(QosTree(driver, TreeOptions(), clock=clock), (), lambda: ())
    for _ in range(2):
        answer = cgroups.make_ready(WEB, NOW)
        assert isinstance(answer, NotYet)
        assert answer.blocker == "cgroups"
    driver.refuses = None
    clock.advance(60.0)
    assert isinstance(cgroups.make_ready(WEB, NOW), Provided)
    assert web in driver.tree


class HalfWritten(FakeCgroups):
    """Pods' cgroups are made, and take no limit."""

    def apply(self, name: CgroupName, limits: Limits, /) -> None:
        """Refused once it is there."""
        if not name.parts[-1].startswith("pod"):
            super().apply(name, limits)
            return
        super().apply(name, Limits())
        raise LimitRefusedError(name, f"{name.path()}/cpu.weight", "1", errno.EBUSY)


class Failing(FakeCgroups):
    """One cgroup is neither written nor removed."""

    refuses: CgroupName | None = None
    half = False

    def apply(self, name: CgroupName, limits: Limits, /) -> None:
        """Refused for that one, once it is there where that is by halves."""
        if name == self.refuses:
            if self.half:
                super().apply(name, Limits())
            raise LimitRefusedError(name, f"{name.path()}/cpu.weight", "1", errno.EBUSY)
        super().apply(name, limits)

    def remove(self, name: CgroupName, /) -> None:
        """Likewise."""
        if name == self.refuses:
            raise CgroupBusyError(name, ())
        super().remove(name)


def _busy(_driver: CgroupFs, name: CgroupName) -> None:
    raise CgroupBusyError(name, ())


def test_a_folder_stays_while_anybody_needs_it(tmp_path: Path) -> None:
    """A source that has the pod, or a mount in it."""
    mounted: list[str] = []
    wanted = {"web"}
    line = f"30 20 0:30 / {tmp_path}/web/volumes/a rw - tmpfs tmpfs rw\n"
    folders = FolderPreparer(tmp_path, wanted.__contains__, mountinfo=lambda: "".join(mounted))
    assert folders.make_ready(WEB, NOW) == Admitted()
    assert (tmp_path / "web" / "volumes").is_dir()
    assert folders.take_back(WEB, NOW) is None
    assert (tmp_path / "web").is_dir()
    mounted.append(line)
    answer = folders.take_back(WEB, NOW)
    assert isinstance(answer, NotYet)
    assert f"{tmp_path}/web/volumes/a" in answer.message
    wanted.clear()
    folders.remove("web")
    assert (tmp_path / "web").is_dir()
    mounted.clear()
    assert folders.take_back(WEB, NOW) is None
    assert not (tmp_path / "web").exists()


def test_folders_of_pods_that_nobody_knows_go_unless_something_is_in_them(tmp_path: Path) -> None:
    """An agent was killed before it removed them; who comes in meanwhile is known by then."""
    pods = tmp_path / "pods"
    for uid in ("gone", "known", "mounted", "comes"):
        (pods / uid / "volumes" / "empty-dir").mkdir(parents=True)
    (pods / "keeps" / "volumes" / "empty-dir" / "data").mkdir(parents=True)
    (pods / "file").write_text("1")
    (tmp_path / "link").symlink_to(pods)
    mounts = f"30 20 0:30 / {pods}/mounted rw - tmpfs tmpfs rw\n"
    folders = FolderPreparer(tmp_path / "link", "comes".__eq__, mountinfo=lambda: mounts)
    folders.settle(lambda: {"known"})
    assert sorted(one.name for one in pods.iterdir()) == ["comes", "file", "keeps", "known", "mounted"]
    answer = folders.take_back(attrs.evolve(WEB, uid="mounted"), NOW)
    assert isinstance(answer, NotYet)
    assert f"{pods}/mounted" in answer.message
    FolderPreparer(tmp_path / "none", "comes".__eq__, mountinfo=str).settle(set)


def test_a_folder_is_one_below_the_others_and_goes_however_deep_it_is(tmp_path: Path) -> None:
    """A uid that leads elsewhere makes nothing there and removes nothing; links in a folder go as links."""
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "data").write_text("1")
    folders = FolderPreparer(tmp_path / "pods", lambda _uid: False, mountinfo=str)
    with pytest.raises(OutsideRootError):
        folders.make_ready(attrs.evolve(WEB, uid="../kept"), NOW)
    folders.remove("../kept")
    assert [one.name for one in (tmp_path / "kept").iterdir()] == ["data"]
    folders.make_ready(WEB, NOW)
    (tmp_path / "pods" / "web" / "volumes" / "link").symlink_to(tmp_path / "kept")
    with deepened(tmp_path / "pods" / "web", 1_100):
        assert folders.take_back(WEB, NOW) is None
        assert list((tmp_path / "pods").iterdir()) == []
    assert (tmp_path / "kept" / "data").read_text() == "1"


def test_a_pod_is_asked_again_for_its_own_mounts_that_are_there(tmp_path: Path) -> None:
    """Not for one that may be there, nor for one of another pod in the same volume; again when it changes."""
    root, mounter = SafeRoot(str(tmp_path)), FakeMounter(str(tmp_path))
    manager = VolumeManager([EmptyDir(root, mounter)], pods=BegunPods(), executor=InlineExecutor())
    volumes = VolumePreparer(manager)
    spec = VolumeSpec(plugin="a plugin", name="shared")
    seen: list[dict[str, object]] = []

    def put(**mounts: PodMount) -> None:
        manager.actual.put(spec.id, ActualVolume(spec=spec, mounts=mounts), by="a test")
        seen.append({uid: one.value for uid, one in volumes.mounted.snapshot().items()})

    maybe, there = PodMount(state=MountState.MAYBE_MOUNTED), PodMount(state=MountState.MOUNTED)
    put(a=maybe)
    put(a=there)
    put(a=there, b=maybe)
    put(a=there, b=there)
    put(a=attrs.evolve(there, revision="2"), b=there)
    assert seen == [{}, {"a": 1}, {"a": 1}, {"a": 1, "b": 2}, {"a": 3, "b": 2}]


def test_volumes_are_handed_on_once_they_are_mounted(tmp_path: Path) -> None:
    """A refused pod has none, one that runs has all, and the rest waits for them to go."""
    root, mounter = SafeRoot(str(tmp_path)), FakeMounter(str(tmp_path))
    pods = BegunPods()
    manager = VolumeManager([EmptyDir(root, mounter)], pods=pods, executor=InlineExecutor())
    volumes = VolumePreparer(manager)
    assert (list(pods.uids()), pods.get("u"), pods.is_ready()) == ([], None, False)
    node = Node(preparations=[Preparation(name="volumes", why="a test", by=volumes)])
    pods.follow(node.lives)
    node.lives.heard()
    scratch = Volume(name="scratch", kind="emptyDir")
    missing = Volume(name="other", kind="emptyDir")
    uses = (VolumeUse(name="scratch", path="/scratch"),)
    node.lives.put(
        attrs.evolve(a_pod(), volumes=(scratch, missing), containers=(attrs.evolve(APP, volumes=uses),))
    )
    before = dict(volumes.mounted.snapshot())
    for _ in range(10):
        node.after(1)
        manager.reconcile()
    assert node.running() == ["app#0"]
    assert list(pods.uids()) == ["u"]
    assert dict(volumes.mounted.snapshot()) != before
    (options,) = node.lives.pods.snapshot()["u"].value.provided.values()
    assert isinstance(options, PodRunOptions)
    assert Path(options.everywhere.volumes["scratch"]).is_dir()
    node.lives.remove("u")
    for _ in range(10):
        node.after(1)
        manager.reconcile()
    assert manager.actual.snapshot() == {}
    assert dict(volumes.mounted.snapshot()) == {}


def test_a_volume_that_cannot_be_taken_down_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With why: its pod waited for something that was still mounted, and nothing said for which."""
    root, mounter = SafeRoot(str(tmp_path)), FakeMounter(str(tmp_path))
    pods = BegunPods()
    manager = VolumeManager([EmptyDir(root, mounter)], pods=pods, executor=InlineExecutor())
    volumes = VolumePreparer(manager)
    node = Node(preparations=[Preparation(name="volumes", why="a test", by=volumes)])
    pods.follow(node.lives)
    node.lives.heard()
    app = attrs.evolve(APP, volumes=(VolumeUse(name="data", path="/data"),))
    node.lives.put(attrs.evolve(a_pod(), volumes=(Volume(name="data", kind="emptyDir"),), containers=(app,)))

    def settles() -> str:
        for _ in range(5):
            node.after(1)
            manager.reconcile()
        waits = node.lives.facts.snapshot()["u"].value.waits_for
        return "" if waits is None else waits.message

    assert settles() == ""

    def busy(_self: object, _spec: object, _use: object) -> None:
        raise OSError("data/in is mounted")

    monkeypatch.setattr(EmptyDir, "unmount", busy)
    node.lives.remove("u")
    assert settles() == "still mounted: data (unmount: data/in is mounted (1 try))"


def test_what_may_only_be_read_is_handed_on_with_its_volumes() -> None:
    """Whoever resolved it says so, or the pod."""
    host, pods, claims = FakeHost(), FakePods(), FakeClaims()
    for name in ("a", "b", "c"):
        claims.volumes[name] = attrs.evolve(host.disk(name), read_only=name == "a")
    of = claiming_pod("u", "a", "b", "c")
    asked = attrs.evolve(of.volumes[1], spec={**of.volumes[1].spec, "readOnly": True})
    web = attrs.evolve(of, volumes=(of.volumes[0], asked, of.volumes[2]))
    pods.put(web)
    with VolumeManager([host], pods=pods, claims=claims, executor=ThreadExecutor("mounts")) as manager:
        given = VolumePreparer(manager, patience_s=60.0).make_ready(web, NOW)
    assert isinstance(given, Provided)
    assert isinstance(given.value, PodRunOptions)
    assert given.value.everywhere.read_only_volumes == {"a", "b"}


def with_scratch() -> tuple[Pod, FakePods]:
    """A pod whose container uses an empty directory, and a source that has it."""
    uses = (VolumeUse(name="scratch", path="/scratch"),)
    volumes = (Volume(name="scratch", kind="emptyDir"),)
    web = attrs.evolve(a_pod(), volumes=volumes, containers=(attrs.evolve(APP, volumes=uses),))
    pods = FakePods()
    pods.put(web)
    return web, pods


class SlowEmptyDir(EmptyDir):
    """One whose mounts wait until a test lets them go on."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.free = threading.Event()

    def mount(self, *what: Any, **more: Any) -> Any:
        """See `EmptyDir.mount`."""
        assert self.free.wait(10.0)
        return super().mount(*what, **more)


def test_a_pod_waits_for_mounts_that_take_no_longer_than_it_has_patience(tmp_path: Path) -> None:
    """With its own thread; who asks it to stop, and a mount that takes longer, end that."""
    root, mounter = SafeRoot(str(tmp_path)), FakeMounter(str(tmp_path))
    slow = SlowEmptyDir(root, mounter)
    web, pods = with_scratch()
    with VolumeManager([slow], pods=pods, executor=ThreadExecutor("mounts")) as manager:
        began_s = time.monotonic()
        waits = VolumePreparer(manager, patience_s=0.05).make_ready(web, NOW)
        assert isinstance(waits, NotYet)
        assert waits.message == "not mounted yet: scratch"
        assert 0.05 <= time.monotonic() - began_s < 5.0
        patient = VolumePreparer(manager, patience_s=60.0)
        cancelled = ManualCancel()
        cancelled.set()
        assert isinstance(patient.make_ready(web, cancelled), NotYet)
        threading.Timer(0.1, slow.free.set).start()
        assert isinstance(patient.make_ready(web, NOW), Provided)
    for wrong in (-1.0, math.inf):
        with pytest.raises(ConfigurationError, match="patience_s"):
            VolumePreparer(manager, patience_s=wrong)


def test_a_pod_with_patience_makes_the_passes_that_its_mounts_take(tmp_path: Path) -> None:
    """Whoever drives the manager may be gathering what happens, or be at something else."""
    root, mounter = SafeRoot(str(tmp_path)), FakeMounter(str(tmp_path))
    web, pods = with_scratch()
    manager = VolumeManager([EmptyDir(root, mounter)], pods=pods, executor=ThreadExecutor("mounts"))
    assert isinstance(VolumePreparer(manager).make_ready(web, NOW), NotYet)
    assert manager.has_work
    patient = VolumePreparer(manager, patience_s=60.0)
    assert isinstance(patient.make_ready(web, NOW), Provided)
    assert web.uid in patient.mounted
    pods.put(web, PodLife.ENDED)
    assert patient.take_back(web, NOW) is None
    assert not manager.holds(web.uid)
    assert web.uid not in patient.mounted
    manager.close(10.0)


def test_whoever_takes_volumes_back_hears_that_a_mount_went(tmp_path: Path) -> None:
    """As one that makes them ready hears that it came; of a pod that is gone nothing is kept."""
    root, mounter = SafeRoot(str(tmp_path)), FakeMounter(str(tmp_path))
    web, pods = with_scratch()
    manager = VolumeManager([EmptyDir(root, mounter)], pods=pods, executor=InlineExecutor())
    preparer = VolumePreparer(manager)
    preparer.make_ready(web, NOW)
    manager.run_until_quiet()
    mounted = preparer.mounted.get(web.uid)
    assert mounted is not None
    pods.put(web, PodLife.ENDED)
    assert isinstance(preparer.take_back(web, NOW), NotYet)
    manager.run_until_quiet()
    assert preparer.mounted.get(web.uid) not in {None, mounted}
    assert preparer.take_back(web, NOW) is None
    manager.run_until_quiet()
    assert web.uid not in preparer.mounted


def test_a_pod_that_waits_to_be_let_in_has_no_volumes() -> None:
    """Though all its parts are begun at once; one that came as far as its sandbox keeps what it has."""
    let_in: set[str] = set()
    pods = BegunPods(is_let_in=let_in.__contains__)
    waits = [True]
    door = FakePreparer(answer=lambda _: NotYet(blocker="room", message="full") if waits else Admitted())
    behind = FakePreparer()
    node = Node(
        preparations=[
            Preparation(name="admission", why="a test", by=door),
            Preparation(name="volumes", why="a test", by=behind),
        ]
    )
    pods.follow(node.lives)
    node.lives.heard()
    node.lives.put(a_pod())
    node.after(1)
    assert node.record().made == ("admission", "volumes")
    assert list(pods.uids()) == []
    let_in.add("u")
    assert list(pods.uids()) == ["u"]
    waits.clear()
    node.after(2)
    assert node.running() == ["app#0"]
    let_in.clear()
    assert list(pods.uids()) == ["u"]
