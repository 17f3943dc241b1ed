"""Parts of volumes on real mounts: what a container mounts stays inside, and nothing is left."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from nodealloc.volumes import OutsideRootError, SubPaths
from tests.real.volumes_node import Node, on, pod

pytestmark = [
    pytest.mark.real,
    pytest.mark.root,
    pytest.mark.forks,
    pytest.mark.usefixtures("as_root"),
]


def test_a_part_is_made_bound_and_taken_away(tmp_path: Path) -> None:
    """With the volume's own mode, once for each container, twice the same."""

    def test(node: Node) -> None:
        folder = node.run(pod("emptyDir", {}))
        parts = SubPaths(node.root, node.mounter)
        paths = [
            Path(parts.bind("pod", name, 0, volume="v", folder=folder, path="logs/app"))
            for name in ("a", "b", "a")
        ]
        assert str(paths[0]) == f"{node.root.path}/pods/pod/volume-subpaths/v/a/0"
        assert paths[2] == paths[0] != paths[1]
        assert stat.S_IMODE(paths[0].stat().st_mode) == 0o777
        Path(folder).chmod(0o3775)
        other = Path(parts.bind("pod", "a", 1, volume="v", folder=folder, path="more"))
        assert stat.S_IMODE(other.stat().st_mode) == 0o2775
        (paths[0] / "line").write_text("x")
        assert (paths[1] / "line").read_text() == "x"
        assert Path(folder, "logs/app/line").read_text() == "x"
        parts.clean("pod")
        parts.clean("pod")
        assert not paths[0].parent.exists()
        assert Path(folder, "logs/app/line").exists(), "what is in the volume stays"
        node.end("pod")

    on(tmp_path, test)


def test_a_key_is_bound_as_the_file_that_it_is(tmp_path: Path) -> None:
    """Through the links of its volume; the next instance has the new content, one that runs the old."""

    def test(node: Node) -> None:
        node.objects.put("settings", "1", mode="fast")
        folder = node.run(pod("configMap", {"name": "settings"}))
        parts = SubPaths(node.root, node.mounter)
        file = Path(parts.bind("pod", "a", 1, volume="v", folder=folder, path="mode"))
        with file.open() as runs:
            node.objects.put("settings", "2", mode="slow")
            node.manager.refresh("pod")
            node.settle()
            assert file.read_text() == "fast"
            assert parts.bind("pod", "a", 1, volume="v", folder=folder, path="mode") == str(file)
            assert (file.read_text(), runs.read()) == ("slow", "fast")
        parts.clean("pod")
        node.end("pod")

    on(tmp_path, test)


def test_a_directory_takes_the_place_of_a_file(tmp_path: Path) -> None:
    """What stood there for an earlier instance is another kind of thing by now."""

    def test(node: Node) -> None:
        folder = node.run(pod("emptyDir", {}))
        parts = SubPaths(node.root, node.mounter)
        Path(folder, "x").write_text("file")
        parts.bind("pod", "a", 0, volume="v", folder=folder, path="x")
        Path(folder, "x").unlink()
        assert Path(parts.bind("pod", "a", 0, volume="v", folder=folder, path="x")).is_dir()
        parts.clean("pod")
        node.end("pod")

    on(tmp_path, test)


def test_a_part_whose_making_was_cut_short_has_its_mode_in_the_next_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else nobody but the agent's user could write to it, for as long as the volume is there."""

    class KilledError(BaseException):
        """The agent is gone, between two calls."""

    def killed(*_args: object) -> None:
        raise KilledError

    def test(node: Node) -> None:
        folder = node.run(pod("emptyDir", {}))
        Path(folder).chmod(0o2775)
        parts = SubPaths(node.root, node.mounter)
        before = len([*Path("/proc/self/fd").iterdir()])
        with monkeypatch.context() as patch:
            patch.setattr(os, "chmod", killed)
            with pytest.raises(KilledError):
                parts.bind("pod", "a", 0, volume="v", folder=folder, path="logs/app")
        assert len([*Path("/proc/self/fd").iterdir()]) == before
        bound = Path(parts.bind("pod", "a", 0, volume="v", folder=folder, path="logs/app"))
        for one in (bound, Path(folder, "logs")):
            assert stat.S_IMODE(one.stat().st_mode) == 0o2775
        parts.clean("pod")
        node.end("pod")

    on(tmp_path, test)


@pytest.mark.parametrize("path", ["out", "in/../out", "loop", "..", "file/below"])
def test_no_part_leads_out_of_its_volume(tmp_path: Path, path: str) -> None:
    """A link of the pod's own, or dots; inside, links are followed."""

    def test(node: Node) -> None:
        folder = node.run(pod("emptyDir", {}))
        (tmp_path / "precious").mkdir()
        Path(folder, "out").symlink_to(tmp_path / "precious")
        Path(folder, "loop").symlink_to("loop")
        Path(folder, "deep").mkdir()
        Path(folder, "in").symlink_to("deep")
        Path(folder, "file").write_text("x")
        parts = SubPaths(node.root, node.mounter)
        with pytest.raises((OutsideRootError, OSError)):
            parts.bind("pod", "a", 0, volume="v", folder=folder, path=path)
        bound = parts.bind("pod", "a", 0, volume="v", folder=folder, path="in")
        assert Path(bound).samefile(f"{folder}/deep")
        parts.clean("pod")
        assert not list((tmp_path / "precious").iterdir())
        node.end("pod")

    on(tmp_path, test)


def test_a_part_of_the_node_is_bound_too(tmp_path: Path) -> None:
    """A `hostPath` lies anywhere."""

    def test(node: Node) -> None:
        host = node.base / "host"
        host.mkdir(mode=0o751)
        host.chmod(0o751)
        folder = node.run(pod("hostPath", {"path": str(host)}))
        parts = SubPaths(node.root, node.mounter)
        bound = Path(parts.bind("pod", "a", 0, volume="v", folder=folder, path="made"))
        assert stat.S_IMODE((host / "made").stat().st_mode) == 0o751
        assert bound.samefile(host / "made")
        parts.clean("pod")
        assert (host / "made").is_dir()
        node.end("pod")

    on(tmp_path, test)


def test_parts_that_an_earlier_life_left_go_with_their_pod(tmp_path: Path) -> None:
    """Of a pod that nobody remembers as well: a part held its volume's memory for ever."""

    def test(node: Node) -> None:
        folder = node.run(pod("emptyDir", {"medium": "Memory"}))
        SubPaths(node.root, node.mounter).bind("pod", "a", 0, volume="v", folder=folder, path="x")
        again = Node(node.base)
        again.manager.reconstruct()
        again.manager.pods_changed()
        again.settle()
        again.assert_clean()
        node.end("pod")

    on(tmp_path, test)
