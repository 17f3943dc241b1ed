"""What an agent keeps of pods whose manifests it has not been able to read since it began."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import nodealloc.podsources._folder as folders
from nodealloc._plain_file import open_plain
from nodealloc.dsw_asw import Cancel
from nodealloc.podsources import KUBELET, Editions, FolderSource, PodSources, Reading, Rules
from nodealloc.podspec import Pod
from nodealloc.testing.dsw_asw import ManualCancel, ManualExecutor, VirtualClock, run_to_rest

YAML = """
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec: {containers: [{name: app, image: "web:1"}]}
"""


class Life:
    """One run of an agent over a folder, and what a store would keep of it."""

    def __init__(self, folder: Path, before: Life | None = None, *, rules: Rules | None = None) -> None:
        self.clock = VirtualClock()
        self._rules = Rules() if rules is None else rules
        self._executor = ManualExecutor()
        self.sources = PodSources(
            {"file": FolderSource(folder, settle_s=0.0, away_s=0.0, clock=self.clock, rules=self._rules)},
            editions={} if before is None else before.editions(),
            known={} if before is None else before.told(),
            rules=self._rules,
            executor=self._executor,
            clock=self.clock,
        )
        self.read()

    def read(self) -> None:
        """Read the folder once more."""
        self.clock.advance(1.0)
        self.sources.hurry("file")
        run_to_rest(self.sources, self._executor, self.clock)

    def editions(self) -> dict[str, Editions]:
        """What is remembered of each source."""
        return {name: one.value for name, one in self.sources.editions.snapshot().items()}

    def told(self) -> dict[str, Pod]:
        """Every pod by uid."""
        return {uid: one.value for uid, one in self.sources.pods.snapshot().items()}

    @property
    def pods(self) -> dict[str, str]:
        """Name of each pod to its uid."""
        return {pod.name: uid for uid, pod in self.told().items()}


def _junk(path: Path, _monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_text("kind: [", encoding="utf-8")


def _dangling(path: Path, _monkeypatch: pytest.MonkeyPatch) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def _failing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def fail(name: str, flags: int, *, dir_fd: int | None = None) -> int:
        if Path(name).name == path.name:
            raise OSError(5, "Input/output error", name)
        return real(name, flags, dir_fd=dir_fd)

    monkeypatch.setattr("nodealloc._plain_file.os.open", fail)


@pytest.mark.parametrize("spoil", [_junk, _dangling, _failing])
def test_a_manifest_that_cannot_be_read_keeps_its_pod_over_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Path, pytest.MonkeyPatch], None]
) -> None:
    """Its pod runs: nobody has taken it away, and other files say what they say."""
    web, other = tmp_path / "web.yaml", tmp_path / "other.yaml"
    web.write_text(YAML % "web", encoding="utf-8")
    first = Life(tmp_path)
    with monkeypatch.context() as spoilt:
        spoil(web, spoilt)
        other.write_text(YAML % "other", encoding="utf-8")
        second = Life(tmp_path, first)
        third = Life(tmp_path, second)
        assert second.sources.is_ready()
        assert second.pods.keys() == third.pods.keys() == {"web", "other"}
        assert third.pods["web"] == first.pods["web"]
    web.unlink()
    web.write_text(YAML % "web", encoding="utf-8")
    third.read()
    assert third.pods["web"] == first.pods["web"], "what is read again is the same pod"
    web.unlink()
    third.read()
    assert third.pods.keys() == {"other"}, "a file that is gone has no pod"


def test_a_file_that_never_gave_a_pod_keeps_none(tmp_path: Path) -> None:
    """A note among the manifests is no reason to keep what was taken away while no agent ran."""
    web = tmp_path / "web.yaml"
    web.write_text(YAML % "web", encoding="utf-8")
    (tmp_path / "README").write_text("Put manifests here.", encoding="utf-8")
    first = Life(tmp_path)
    web.unlink()
    assert Life(tmp_path, first).pods == {}


def test_for_a_kubelet_a_manifest_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    """It lists the folder when it starts, and the pod is not among what it finds."""
    web = tmp_path / "web.yaml"
    web.write_text(YAML % "web", encoding="utf-8")
    first = Life(tmp_path, rules=KUBELET)
    assert first.pods.keys() == {"web"}
    web.write_text("kind: [", encoding="utf-8")
    assert Life(tmp_path, first, rules=KUBELET).pods == {}


class Unread:
    """A source that could not read one of its rows."""

    def read(self, _cancel: Cancel, /) -> Reading:
        """No pods that it knows of."""
        return Reading(unread=frozenset({"row 7"}))


def test_a_source_of_ones_own_says_what_it_could_not_read() -> None:
    """Who stood there stays; where nobody knows the pod any more, nothing of it is told."""
    editions, (web,) = Editions().read([Pod(uid="1", name="web")], places={"default/web": "row 7"})
    again, told = editions.read([], unread={"row 7"})
    assert (again, told) == (editions, ())
    executor, clock = ManualExecutor(), VirtualClock()
    for known, pods in (({web.uid: web}, {web.uid}), ({}, set[str]())):
        sources = PodSources(
            {"queue": Unread()}, editions={"queue": editions}, known=known, executor=executor, clock=clock
        )
        run_to_rest(sources, executor, clock)
        assert sources.is_ready()
        assert sources.pods.snapshot().keys() == pods


def test_a_manifest_whose_file_does_not_close_well_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a file system whose server went while it was read: what was read of it counts, and all others."""
    closes = os.close

    def close(descriptor: int) -> None:
        link = Path(f"/proc/self/fd/{descriptor}")
        fails = link.is_symlink() and link.readlink().name == "b.yaml"
        closes(descriptor)
        if fails:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))

    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.yaml").write_text(YAML % name)
    folder = FolderSource(tmp_path, settle_s=0.0, clock=VirtualClock())
    with monkeypatch.context() as patched:
        patched.setattr(os, "close", close)
        reading = folder.read(ManualCancel())
    assert [pod.name for pod in reading.pods] == ["a", "b", "c"]
    assert reading.faults == ()


def test_a_file_that_goes_as_it_is_read_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It was listed and gone a moment later: nobody has a link to mend."""
    (tmp_path / "gone.yaml").write_text(YAML % "gone")
    (tmp_path / "link.yaml").symlink_to("nowhere")

    def goes(path: str) -> int:
        (tmp_path / "gone.yaml").unlink(missing_ok=True)
        return open_plain(path)

    with monkeypatch.context() as patched:
        patched.setattr(folders, "open_plain", goes)
        reading = FolderSource(tmp_path, settle_s=0.0).read(ManualCancel())
    assert {one.where: one.what for one in reading.faults} == {
        "gone.yaml": "it is away",
        "link.yaml": "cannot be read (No such file or directory); mend the link, or take it away",
    }
