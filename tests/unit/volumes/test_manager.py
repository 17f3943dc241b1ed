"""The volume manager against a host in memory, one behaviour each."""

from __future__ import annotations

import asyncio
import threading

import attrs
import pytest

from nodealloc.dsw_asw import Group, ThreadExecutor, UncertainError, WaitTimeoutError
from nodealloc.podfacts import PodLife, PodSighting
from nodealloc.podspec import Container, Pod, Volume, VolumeUse
from nodealloc.testing.dsw_asw import ManualExecutor, VirtualClock, check_transitions
from nodealloc.testing.podfacts import FakePods
from nodealloc.testing.volumes import FakeClaims, FakeHost, claiming_pod
from nodealloc.volumes import MOUNT_LIFE, VOLUME_LIFE, Use, VolumeManager, VolumeMode, VolumeSpec


class Node:
    """A manager on a fake host, with time and workers in the test's hand."""

    def __init__(self, host: FakeHost | None = None, *, threads: bool = False) -> None:
        self.host = FakeHost() if host is None else host
        self.pods = FakePods()
        self.claims = FakeClaims()
        self.executor = ManualExecutor()
        self.clock = VirtualClock()
        self.restart(threads=threads)

    def restart(self, *, threads: bool = False) -> None:
        """A new life of the program on the same host."""
        self.manager = VolumeManager(
            [self.host],
            pods=self.pods,
            executor=ThreadExecutor() if threads else self.executor,
            claims=self.claims,
            leftovers=self.host,
            clock=None if threads else self.clock,
        )

    def disk(self, name: str, size_bytes: int | None = None) -> str:
        """A disk with a claim of its name; returns its id."""
        self.claims.volumes[name] = self.host.disk(name, size_bytes)
        return self.claims.volumes[name].id

    def run(self, *claims: str, uid: str = "pod") -> None:
        """A pod that mounts claims arrives."""
        self.pods.put(claiming_pod(uid, *claims))
        self.manager.pod_changed(uid)

    def end(self, uid: str = "pod") -> None:
        """A pod is gone for good."""
        self.pods.sightings.pop(uid, None)
        self.manager.pod_changed(uid)

    def step(self) -> None:
        """Passes and operations, without letting time pass."""
        for _ in range(100):
            self.manager.reconcile()
            if not self.executor.run_all() and not self.manager.has_work:
                return

    def rest(self, seconds: float = 1000.0) -> None:
        """Everything, back-off waited out."""
        until = self.clock.monotonic_s() + seconds
        while self.clock.monotonic_s() < until:
            self.step()
            summary = self.manager.reconcile()
            if not summary.held_off or summary.next_due_s is None:
                return
            self.clock.advance(max(0.0, summary.next_due_s - self.clock.monotonic_s()))


@pytest.fixture
def node() -> Node:
    """A node with disks a and b."""
    node = Node()
    node.disk("a")
    node.disk("b")
    return node


def test_the_tables_are_whole() -> None:
    """Each state can be reached and left, each other event changes nothing."""
    assert check_transitions(VOLUME_LIFE) == 55
    assert check_transitions(MOUNT_LIFE) == 18


def test_a_pod_that_ends_while_another_thread_looks_at_it_gives_its_volumes_back(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever had asked before wrote its older word last: volumes of a pod that was no more stayed."""
    node.run("a")
    node.rest()
    assert node.manager.holds("pod")
    plain = FakePods.get

    def get(pods: FakePods, uid: str, /) -> PodSighting | None:
        found = plain(pods, uid)
        if found is not None:
            node.end(uid)  # on another thread, between the answer and what is made of it
        return found

    monkeypatch.setattr(FakePods, "get", get)
    node.manager.pods_changed()
    node.rest()
    assert not node.manager.holds("pod")


def test_a_pod_gets_its_volumes_and_gives_them_back(node: Node) -> None:
    """Attach, stage, mount; then the reverse, and nothing is left."""
    node.run("a")
    node.rest()
    assert node.host.calls == [
        "attach example.com/disk/a",
        "stage example.com/disk/a",
        "mount example.com/disk/a pod",
    ]
    volume = node.manager.volumes_of("pod")[0]
    assert (volume.mounted, volume.device_path, volume.error) == (True, "/dev/a", "")
    assert node.manager.volumes_in_use() == {"example.com/disk/a"}
    node.end()
    node.rest()
    assert [call.split()[0] for call in node.host.calls[3:]] == ["unmount", "unstage", "detach"]
    assert not len(node.manager.actual)
    assert not node.manager.volumes_in_use()


def test_a_container_for_debugging_has_its_volumes(node: Node) -> None:
    """Also those that no other one uses."""
    pod = claiming_pod("pod", "a", "b")
    (app,) = pod.containers
    debug = attrs.evolve(app, name="debug", volumes=app.volumes[1:])
    bare = attrs.evolve(app, volumes=app.volumes[:1])
    for extra, mounted in ((), ["a"]), ((debug,), ["a", "b"]):
        node.pods.put(attrs.evolve(pod, containers=(bare,), ephemeral_containers=extra))
        node.manager.pod_changed("pod")
        node.rest()
        assert [one.name for one in node.manager.volumes_of("pod") if one.mounted] == mounted


def test_a_container_for_debugging_has_devices(node: Node) -> None:
    """Also of a volume that no other one uses; a mount of it is refused, as everywhere."""
    node.claims.volumes["a"] = attrs.evolve(node.claims.volumes["a"], mode=VolumeMode.BLOCK)
    pod = claiming_pod("pod", "a")
    (app,) = pod.containers
    (use,) = app.volumes
    bare = attrs.evolve(app, volumes=())
    for block in (False, True):
        debug = attrs.evolve(app, name="debug", volumes=(attrs.evolve(use, block=block),))
        node.pods.put(attrs.evolve(pod, containers=(bare,), ephemeral_containers=(debug,)))
        node.manager.pod_changed("pod")
        node.rest()
        (found,) = node.manager.volumes_of("pod")
        assert (found.mounted, "use volumeDevices" in found.error) == (block, not block)


def test_volumes_are_given_back_in_their_order(node: Node) -> None:
    """Ids are texts, which each process hashes in its own way: nothing hangs on that."""
    names = [f"disk-{number}" for number in range(12)]
    for name in names:
        node.disk(name)
    node.run(*names)
    node.rest()
    node.host.calls.clear()
    node.end()
    node.rest()
    undone = [call.split() for call in node.host.calls]
    assert [id_.rpartition("/")[2] for verb, id_, *_ in undone if verb == "unmount"] == names


def test_a_mount_under_way_is_held(node: Node) -> None:
    """A pod that ends while its first mount hangs holds its volume until that is taken off again."""
    node.run("a")
    while not any("mount" in str(one.verb) for one in node.manager.running()):
        node.manager.reconcile()
        if not any("mount" in str(one.verb) for one in node.manager.running()):
            node.executor.run_all()
    node.end()
    node.manager.reconcile()
    assert not any("pod" in one.value.mounts for one in node.manager.actual.snapshot().values())
    assert node.manager.holds("pod")
    node.rest()
    assert not node.host.mounts
    assert not node.manager.holds("pod")


def test_a_hundred_pods_share_one_volume(node: Node) -> None:
    """One attach, one stage, a hundred mounts side by side; the last pod takes it down."""
    for number in range(100):
        node.run("a", uid=f"pod-{number}")
    node.rest()
    assert sum(call.startswith("attach") for call in node.host.calls) == 1
    assert sum(call.startswith("stage") for call in node.host.calls) == 1
    assert len(node.host.mounts) == 100
    for number in range(99):
        node.end(f"pod-{number}")
    node.rest()
    assert "example.com/disk/a" in node.host.staged
    node.end("pod-99")
    node.rest()
    assert not node.host.attached


def test_what_frees_comes_before_what_takes(node: Node) -> None:
    """Within a pass, unmounts start before mounts, and taking down comes last."""
    node.run("a", uid="old")
    node.rest()
    node.host.calls.clear()
    node.end("old")
    node.run("a", uid="new")
    node.rest()
    assert [call.split()[0] for call in node.host.calls] == ["unmount", "mount"]


def test_a_pod_of_unknown_life_keeps_its_mounts(node: Node) -> None:
    """Neither unknown nor a source that is not ready takes anything away."""
    node.run("a")
    node.rest()
    node.pods.put(claiming_pod("pod", "a"), PodLife.UNKNOWN)
    node.manager.pod_changed("pod")
    node.rest()
    node.pods.sightings.clear()
    node.pods.ready = False
    node.manager.pods_changed()
    node.rest()
    assert len(node.host.mounts) == 1
    node.pods.ready = True
    node.manager.pods_changed()
    node.rest()
    assert not node.host.mounts


def test_a_pod_added_again_under_its_uid_gets_a_fresh_mount(node: Node) -> None:
    """The old one's mount is taken off first, even when both changes come together."""
    node.run("a")
    node.rest()
    node.host.calls.clear()
    node.end()
    node.manager.reconcile()
    node.executor.run_all()
    node.run("a")
    node.rest()
    assert [call.split()[0] for call in node.host.calls] in (
        ["unmount", "mount"],
        ["unmount", "unstage", "stage", "mount"],
        ["unmount", "unstage", "detach", "attach", "stage", "mount"],
    )


def test_back_off_dies_with_its_pod(node: Node) -> None:
    """A pod that comes again is mounted at once, whatever the old one suffered."""

    def fault(name: str) -> None:
        if name.startswith("before mount"):
            raise OSError("no")

    node.host.fault = fault
    node.run("a")
    for _ in range(8):
        node.step()
        node.clock.advance(130.0)
    node.end()
    node.host.fault = lambda _name: None
    node.rest()
    node.run("a")
    node.step()
    assert node.host.mounts


def test_an_uncertain_stage_is_repeated_before_any_mount(node: Node) -> None:
    """A time-out is neither done nor undone: staged again, then published."""
    tries: list[str] = []

    def fault(name: str) -> None:
        if name == "after stage example.com/disk/a" and not tries:
            tries.append(name)
            raise UncertainError("timed out")

    node.host.fault = fault
    node.run("a")
    node.rest()
    verbs = [call.split()[0] for call in node.host.calls]
    assert verbs == ["attach", "stage", "stage", "mount"]


def test_an_uncertain_stage_of_a_gone_pod_is_undone(node: Node) -> None:
    """What may be there is taken down."""

    def fault(name: str) -> None:
        if name.startswith("after stage"):
            raise UncertainError("timed out")

    node.host.fault = fault
    node.run("a")
    node.step()
    node.end()
    node.rest()
    assert not node.host.staged
    assert not node.host.attached
    assert not len(node.manager.actual)


def test_a_failed_mount_leaves_nothing_behind(node: Node) -> None:
    """A failure after the call has done its work is found by the unmount that follows."""

    def fault(name: str) -> None:
        if name.startswith("after mount"):
            raise OSError("lost the answer")

    node.host.fault = fault
    node.run("a")
    node.step()
    node.end()
    node.rest()
    assert not node.host.mounts
    assert not node.host.attached


def test_a_pod_that_cannot_have_a_volume_keeps_it_from_no_growth(node: Node) -> None:
    """Others that share it have what they wait for."""
    node.disk("c", 10)
    node.run("c")
    node.rest()

    def fault(name: str) -> None:
        if name == "before mount example.com/disk/c other":
            raise OSError("something is in its place")

    node.host.fault = fault
    node.run("c", uid="other")
    node.rest()
    node.disk("c", 20)
    node.manager.refresh("pod")
    node.rest()
    assert not node.manager.volumes_of("other")[0].mounted
    assert node.manager.volumes_of("pod")[0].size_bytes == 20


def test_growth_reaches_the_volume_and_shrinking_is_refused(node: Node) -> None:
    """A larger claim is expanded while mounted; a smaller one is named, and nothing shrinks."""
    node.disk("c", 10)
    node.run("c")
    node.rest()
    node.disk("c", 20)
    node.manager.refresh("pod")
    node.rest()
    assert node.host.sizes["example.com/disk/c"] == 20
    assert node.manager.volumes_of("pod")[0].size_bytes == 20
    node.disk("c", 5)
    node.manager.refresh("pod")
    node.step()
    assert "volumes only grow" in node.manager.volumes_of("pod")[0].error
    assert node.host.sizes["example.com/disk/c"] == 20


def test_faults_of_one_pod_are_its_own(node: Node) -> None:
    """Undefined, doubled, unbound, unknown kind, wrong mode: named a volume each; other pods go on."""
    claim = {"claimName": "a"}
    bad = Pod(
        uid="bad",
        name="bad",
        volumes=(
            Volume(name="twice", kind="persistentVolumeClaim", spec=claim),
            Volume(name="twice", kind="persistentVolumeClaim", spec=claim),
            Volume(name="unbound", kind="persistentVolumeClaim", spec={"claimName": "none"}),
            Volume(name="odd", kind="floppy"),
            Volume(name="raw", kind="persistentVolumeClaim", spec=claim),
            Volume(name="both", kind="persistentVolumeClaim", spec=claim),
            Volume(name="fine", kind="persistentVolumeClaim", spec={"claimName": "b"}),
        ),
        containers=(
            Container(
                name="c",
                volumes=(
                    *(
                        VolumeUse(name=name, path=f"/{name}")
                        for name in ("absent", "twice", "unbound", "odd", "both", "fine")
                    ),
                    VolumeUse(name="raw", path="/dev/raw", block=True),
                    VolumeUse(name="both", path="/dev/both", block=True),
                ),
            ),
        ),
    )
    node.pods.put(bad)
    node.manager.pod_changed("bad")
    node.run("a", uid="good")
    node.step()
    errors = {one.name: one.error for one in node.manager.volumes_of("bad")}
    assert "does not define it" in errors["absent"]
    assert "2 volumes have this name" in errors["twice"]
    assert "not bound" in errors["unbound"]
    assert "no plugin serves 'floppy'" in errors["odd"]
    assert "use volumeMounts" in errors["raw"]
    assert "use it one way" in errors["both"]
    assert errors["fine"] == ""
    assert node.host.mounted() == {"bad": {"example.com/disk/b"}, "good": {"example.com/disk/a"}}


def test_a_volume_that_fails_later_keeps_its_mount(node: Node) -> None:
    """A claim that cannot be looked up any more takes nothing from a running pod."""
    node.run("a")
    node.rest()
    del node.claims.volumes["a"]
    node.manager.refresh("pod")
    node.step()
    assert node.host.mounts
    node.disk("a")
    node.rest()
    assert node.manager.volumes_of("pod")[0].error == ""


def test_who_knows_of_a_change_is_not_held_off_by_failures_before_it(node: Node) -> None:
    """However long the back-off has become."""
    node.run("late")
    for _ in range(8):
        node.step()
        node.clock.advance(130.0)
    node.step()
    node.disk("late")
    node.manager.refresh("pod")
    node.step()
    assert node.host.mounts


def test_one_slow_claim_delays_no_other_pod() -> None:
    """A look-up that hangs is that pod's alone."""
    node = Node(threads=True)
    node.disk("a")
    go_on = threading.Event()

    def before(uid: str) -> None:
        if uid == "slow":
            go_on.wait(10)

    node.claims.before = before
    with node.manager:
        node.run("a", uid="slow")
        node.run("a", uid="quick")
        node.manager.wait_for_attach_and_mount("quick", timeout_s=10.0)
        assert "slow" not in node.host.mounted()
        go_on.set()
        asyncio.run(node.manager.wait_for_attach_and_mount_async("slow", timeout_s=10.0))
        node.end("quick")
        node.manager.wait_for_unmount("quick", timeout_s=10.0)
    assert set(node.host.mounted()) == {"slow"}


def test_a_wait_says_what_is_missing(node: Node) -> None:
    """Unknown pod, unresolved claim, failing mount: each in words, with the last error."""
    with pytest.raises(WaitTimeoutError, match="not known, or has ended"):
        node.manager.wait_for_attach_and_mount("nobody", timeout_s=0.0)
    node.run("nothing")
    node.step()
    with pytest.raises(WaitTimeoutError, match="claim default/nothing: it is not bound"):
        node.manager.wait_for_attach_and_mount("pod", timeout_s=0.0)

    def fault(name: str) -> None:
        if name.startswith("before attach"):
            raise OSError("controller on fire")

    node.host.fault = fault
    node.run("a", uid="other")
    node.step()
    with pytest.raises(WaitTimeoutError, match=r"absent for pod other.*controller on fire"):
        node.manager.wait_for_attach_and_mount("other", timeout_s=0.0)


def test_restart_keeps_what_is_wanted_and_cleans_what_is_not(node: Node) -> None:
    """Nothing is touched before the pods are known; then orphans go, wanted mounts stay."""
    node.run("a", uid="keeps")
    node.run("a", "b", uid="goes")
    node.rest()
    node.host.calls.clear()
    node.pods.ready = False
    del node.pods.sightings["goes"]
    node.restart()
    assert len(node.manager.reconstruct()) == 5
    node.manager.pods_changed()
    node.rest()
    assert not any(call.startswith(("unmount", "unstage", "detach")) for call in node.host.calls)
    node.pods.ready = True
    node.manager.pods_changed()
    node.rest()
    assert node.host.mounted() == {"keeps": {"example.com/disk/a"}}
    assert node.host.attached == {"example.com/disk/a"}


@pytest.mark.parametrize("restarts", [False, True])
def test_a_volume_that_an_edit_took_out_stays_until_the_pod_has_ended(node: Node, *, restarts: bool) -> None:
    """A container that was made before the edit may run on it."""
    node.run("a", "b")
    node.rest()
    if restarts:
        node.restart()
        node.manager.reconstruct()
    node.run("a")
    node.manager.pods_changed()
    node.rest()
    assert node.host.mounted() == {"pod": {"example.com/disk/a", "example.com/disk/b"}}
    node.end()
    node.rest()
    assert (node.host.mounted(), node.host.attached) == ({}, set())


def test_restart_with_an_unreachable_claim_unmounts_nothing(node: Node) -> None:
    """A pod whose volumes cannot be resolved keeps what was found for it, until they can."""
    node.run("a")
    node.rest()
    del node.claims.volumes["a"]
    node.host.calls.clear()
    node.restart()
    node.manager.reconstruct()
    node.manager.pods_changed()
    node.rest(400.0)
    assert node.host.calls == []
    node.disk("a")
    node.rest()
    assert not any(call.startswith(("unmount", "unstage", "detach")) for call in node.host.calls)
    assert node.manager.volumes_of("pod")[0].mounted


def test_a_controller_attaches_only_what_is_reported_in_use(node: Node) -> None:
    """With a verifier nothing is attached here, and nothing is built on what may be detached."""

    class Controller:
        paths: dict[str, str] = {}  # noqa: RUF012 - one test's

        def attached(self, volume: str, /) -> str | None:
            return self.paths.get(volume)

    controller = Controller()
    manager = VolumeManager(
        [node.host],
        pods=node.pods,
        executor=node.executor,
        claims=node.claims,
        verifier=controller,
        clock=node.clock,
    )
    node.manager = manager
    node.run("a")
    node.step()
    assert "not reported in use" in manager.volumes_of("pod")[0].error
    manager.mark_reported_in_use(manager.volumes_in_use())
    node.step()
    assert "not attached to this node yet" in manager.volumes_of("pod")[0].error
    controller.paths["example.com/disk/a"] = "/dev/a"
    node.host.attached.add("example.com/disk/a")
    node.rest()
    assert manager.volumes_of("pod")[0].mounted
    node.end()
    node.rest()
    assert not any(call.startswith(("attach", "detach")) for call in node.host.calls)


def test_a_doubted_mount_is_made_sure_of(node: Node) -> None:
    """Stage and mount are asked for again; nothing is taken off; a pod that nobody knows is no error."""
    node.run("a")
    node.rest()
    node.host.calls.clear()
    node.host.mounts.clear()
    node.host.staged.clear()
    node.manager.observe("nobody")
    node.manager.observe("pod")
    assert not node.manager.volumes_of("pod")[0].mounted
    node.rest()
    assert [call.split()[0] for call in node.host.calls] == ["stage", "mount"]
    assert node.manager.volumes_of("pod")[0].mounted


def test_a_path_that_its_plugin_cannot_tell_is_that_volumes_error(node: Node) -> None:
    """Who asks for a pod's volumes is told, and gets the others."""
    node.run("a", "b")
    node.rest()
    path = node.host.path

    def broken(spec: VolumeSpec, use: Use, /) -> str:
        if spec.name == "a":
            raise KeyError(spec.name)
        return path(spec, use)

    node.host.path = broken  # type: ignore[method-assign]
    first, second = node.manager.volumes_of("pod")
    assert (first.mounted, first.path, first.error) == (False, "", "path: the plugin raised KeyError('a')")
    assert (second.mounted, second.path) == (True, "/pods/pod/b")


def test_idle_is_idle(node: Node) -> None:
    """Nothing to do: no work, no call, an empty pass."""
    node.run("a")
    node.rest()
    calls = len(node.host.calls)
    assert not node.manager.has_work
    assert node.manager.reconcile().is_idle
    node.manager.pods_changed()
    assert node.manager.reconcile().is_idle
    assert len(node.host.calls) == calls


def test_listeners_hear_of_pods_and_of_volumes_and_can_leave(node: Node) -> None:
    """What an event loop hangs its wake-up on; a due time tells when it need not wait for one."""
    heard: list[int] = []
    leave = node.manager.add_listener(lambda: heard.append(1))
    node.run("a")
    assert heard
    node.rest()
    assert node.manager.seconds_to_next() is not None
    heard.clear()
    node.manager.refresh("pod")
    assert heard == [1]
    node.manager.reconcile()
    leave()
    node.end()
    assert heard == [1]


def test_passes_may_be_made_by_several_threads_at_once() -> None:
    """A group that it is a member of makes them, and whoever waits for mounts: each pod has what it wants."""
    node = Node(threads=True)
    node.disk("a")
    ends = threading.Event()

    def passes() -> None:
        while not ends.is_set():
            node.manager.wait_for_work(0.01)
            node.manager.reconcile()

    others = [threading.Thread(target=passes) for _ in range(3)]
    with Group(node.manager) as group:
        for one in others:
            one.start()
        for number in range(60):
            node.run("a", uid=f"pod-{number}")
            if number % 2:
                node.end(f"pod-{number}")
        for number in range(0, 60, 2):
            node.manager.wait_for_attach_and_mount(f"pod-{number}", 30.0)
        for number in range(1, 60, 2):
            node.manager.wait_for_unmount(f"pod-{number}", 30.0)
        ends.set()
        for one in others:
            one.join()
        group.run_until_quiet()
        (volume,) = node.manager.desired.snapshot().values()
        assert sorted(volume.value.uses) == sorted(f"pod-{number}" for number in range(0, 60, 2))


def test_groups_of_volumes_reach_the_pod(node: Node) -> None:
    """A volume with a group asks its pods to be in it."""
    import attrs

    node.claims.volumes["a"] = attrs.evolve(node.claims.volumes["a"], gid=2000)
    node.run("a", "b")
    node.rest()
    assert node.manager.supplemental_groups("pod") == (2000,)
    assert node.manager.supplemental_groups("nobody") == ()


@pytest.mark.parametrize("name", ["", ".", "..", "my~plugin", "nul\0"])
def test_a_plugin_name_that_makes_no_directory_is_refused(name: str) -> None:
    """After a restart, volumes below `my~plugin` would be those of `my/plugin`, which nobody wants."""
    with pytest.raises(ValueError, match="makes no directory"):
        VolumeManager([FakeHost(name)], pods=FakePods(), executor=ManualExecutor())


def test_two_plugins_of_one_name_or_kind_are_refused() -> None:
    """Which of them would serve is nobody's guess."""
    for second, reason in (
        (FakeHost(), "two plugins"),
        (FakeHost("other", kinds=["disk"]), "both serve 'disk'"),
    ):
        with pytest.raises(ValueError, match=reason):
            VolumeManager([FakeHost(kinds=["disk"]), second], pods=FakePods(), executor=ManualExecutor())
