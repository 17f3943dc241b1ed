"""SIGKILL before every call that changes the machine, restart, converge.

A life of each plugin runs in a process of its own: the pod arrives, its
content changes or grows, the pod ends. The process is killed before its first
call that changes the machine, then in a new life before its second, and so on
until a life reaches its end. After each kill a new manager starts on what is
left, once with the pod still wanted and once without it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from nodealloc.podspec import Container, Json, Pod, Volume, VolumeUse
from nodealloc.testing.volumes import claiming_pod
from nodealloc.volumes import LinuxMountTable, VolumeMode
from tests.often import stride
from tests.real.volumes_namespace import in_namespace
from tests.real.volumes_node import Node, attached_loops, loop_devices, pod

pytestmark = [
    pytest.mark.real,
    pytest.mark.root,
    pytest.mark.forks,
    pytest.mark.usefixtures("as_root"),
]

_CHANGES = ("mkdir", "rmdir", "unlink", "symlink", "rename", "chmod", "fchmod", "ftruncate", "fsync")


def kill_before(point: int) -> None:
    """Kill this process before its `point`-th call that changes the machine; 1 is the first."""
    left = [point]

    def strike() -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def wrapped(call: Callable[..., object]) -> Callable[..., object]:
        def striking(*args: object, **options: object) -> object:
            strike()
            return call(*args, **options)

        return striking

    for name in _CHANGES:
        setattr(os, name, wrapped(getattr(os, name)))
    subprocess.run = wrapped(subprocess.run)  # type: ignore[assignment]
    libc = ctypes.CDLL(None, use_errno=True)

    class Striking:
        """The C library, with strikes."""

        def mount(self, *args: object) -> object:
            """Strike, then mount."""
            strike()
            return libc.mount(*args)

        def umount2(self, *args: object) -> object:
            """Strike, then unmount."""
            strike()
            return libc.umount2(*args)

    ctypes.CDLL = lambda *_args, **_options: Striking()  # type: ignore[assignment, misc]


def life(point: int, run: Callable[[], None]) -> bool:
    """Run a life to its end or to its death; whether it was killed."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            kill_before(point)
            run()
            status = 0
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status in (0, -signal.SIGKILL), f"a life ended with {status}"
    return status != 0


class Story:
    """What a life is made of: a pod, a change, and what has to hold after a restart."""

    def __init__(self, kind: str, spec: Mapping[str, Json]) -> None:
        self.kind = kind
        self.spec = spec

    def pod(self) -> Pod:
        """The pod."""
        return pod(self.kind, self.spec)

    def prepare(self, node: Node, *, later: bool = False) -> None:
        """What the node's claims and objects are, before or after the change."""
        node.objects.put("object", "2" if later else "1", a="new" if later else "old", b="same")

    def use(self, path: Path) -> None:
        """What the pod does with its volume."""
        (path / "scratch").write_text("x")

    def check(self, path: Path) -> None:
        """What the pod finds after a restart."""
        assert path.is_dir()

    def left(self) -> list[str]:
        """What is left on the machine beside mounts and files; to be nothing."""
        return []

    def live(self, base: Path) -> None:
        """A whole life."""
        node = Node(base)
        self.prepare(node)
        self.use(Path(node.run(self.pod())))
        self.prepare(node, later=True)
        node.manager.refresh("pod")
        node.settle()
        node.end("pod")

    def restart(self, base: Path, *, wanted: bool) -> None:
        """A new life on what an old one left: converges, twice mounts nothing, leaves nothing."""
        node = Node(base)
        self.prepare(node, later=True)
        if wanted:
            node.pods.put(self.pod())
        node.manager.reconstruct()
        node.manager.pods_changed()
        for _ in range(3):
            node.settle()
            node.clock.advance(130.0)
        if wanted:
            volume = node.manager.volumes_of("pod")[0]
            assert volume.mounted, volume
            targets = [one.target for one in LinuxMountTable().entries() if one.target.startswith(str(base))]
            assert len(targets) == len(set(targets)), f"mounted twice: {targets}"
            self.check(Path(volume.path))
            node.end("pod")
        node.assert_clean()
        assert self.left() == []


class Config(Story):
    """A config map or a secret: old content or new, never some of each."""

    def use(self, path: Path) -> None:
        """Containers only read."""
        assert (path / "a").read_text() == "old"

    def check(self, path: Path) -> None:
        """The newest content, and nothing beside it."""
        assert (path / "a").read_text() == "new"
        assert {one.name for one in path.iterdir() if not one.name.startswith("..")} == {"a", "b"}
        assert len([one for one in path.iterdir() if one.name.startswith("..")]) == 2


class Block(Story):
    """A local image: what the pod wrote is there for ever, and no loop device is left."""

    def __init__(self, image: Path, mode: VolumeMode) -> None:
        super().__init__("persistentVolumeClaim", {})
        self.image = image
        self.mode = mode
        self.witness = image.with_suffix(".written")

    def pod(self) -> Pod:
        """A pod with the claim, as a mount or a device."""
        if self.mode is VolumeMode.FILESYSTEM:
            return claiming_pod("pod", "disk")
        return Pod(
            uid="pod",
            volumes=(Volume(name="disk", kind="persistentVolumeClaim", spec={"claimName": "disk"}),),
            containers=(Container(name="c", volumes=(VolumeUse(name="disk", path="/dev/x", block=True),)),),
        )

    def prepare(self, node: Node, *, later: bool = False) -> None:
        """The disk, larger later."""
        size = (6 if later else 4) << 20
        node.claims.volumes["disk"] = node.local.volume(
            "disk", str(self.image), size_bytes=size, mode=self.mode
        )

    def use(self, path: Path) -> None:
        """Write, and leave a witness once it is on the disk."""
        if self.mode is VolumeMode.BLOCK:
            path.open("r+b").write(b"precious")
        else:
            (path / "precious").write_text("data")
        os.sync()
        self.witness.touch()

    def check(self, path: Path) -> None:
        """What was witnessed is there."""
        if not self.witness.exists():
            return
        if self.mode is VolumeMode.BLOCK:
            with path.open("rb") as device:
                assert device.read(8) == b"precious"
        else:
            assert (path / "precious").read_text() == "data"

    def left(self) -> list[str]:
        """Loop devices."""
        return attached_loops(self.image)


def kill_everywhere(tmp_path: Path, make: Callable[[Path], Story], name: str) -> None:
    """Kill a story before each of its calls, and restart with and without the pod."""

    def child() -> None:
        point, killed = 1, True
        while killed:
            for wanted in (True, False):
                base = tmp_path / f"{point}-{wanted}"
                base.mkdir()
                story = make(base)

                def run(base: Path = base, story: Story = story) -> None:
                    story.live(base)

                killed = life(point, run)
                try:
                    story.restart(base, wanted=wanted)
                except BaseException as error:
                    raise AssertionError(f"{name}: killed before call {point}, wanted {wanted}") from error
            point += stride()
        assert point > 6, f"{name}: only {point} points; is anything struck?"
        (tmp_path / "points").write_text(str((point - 1) // stride() - 1))

    in_namespace(child)
    print(f"{name}: {(tmp_path / 'points').read_text()} points, each with the pod wanted and not")


@pytest.mark.parametrize("medium", ["", "Memory"])
def test_empty_dir_survives_every_kill(tmp_path: Path, medium: str) -> None:
    """Directory or tmpfs: no orphan, no second mount."""
    kill_everywhere(tmp_path, lambda _: Story("emptyDir", {"medium": medium}), f"emptyDir {medium}")


def test_host_path_survives_every_kill(tmp_path: Path) -> None:
    """What was made stays; nothing else was done."""

    def make(base: Path) -> Story:
        return Story("hostPath", {"path": str(base / "host/deep/er"), "type": "DirectoryOrCreate"})

    kill_everywhere(tmp_path, make, "hostPath")


def test_config_map_survives_every_kill(tmp_path: Path) -> None:
    """Old content or new, never some of each; nothing half written is left."""
    kill_everywhere(tmp_path, lambda _: Config("configMap", {"name": "object"}), "configMap")


def test_secret_survives_every_kill(tmp_path: Path) -> None:
    """The same in memory."""
    kill_everywhere(tmp_path, lambda _: Config("secret", {"secretName": "object"}), "secret")


@pytest.mark.slow
@pytest.mark.parametrize("mode", list(VolumeMode))
def test_local_block_survives_every_kill(tmp_path: Path, mode: VolumeMode) -> None:
    """No data lost, no loop device left, no file system made twice."""
    loop_devices()
    kill_everywhere(tmp_path, lambda base: Block(base / "disk.img", mode), f"local_block {mode.value}")
