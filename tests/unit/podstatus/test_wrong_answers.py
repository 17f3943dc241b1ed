"""Sinks, records and parts of others that are not what was promised: nothing counts as told by that."""

from __future__ import annotations

import errno
import math
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from nodealloc.dsw_asw import World
from nodealloc.errors import ConfigurationError
from nodealloc.podfacts import PodStatus
from nodealloc.podspec import Container, Pod
from nodealloc.podstatus import (
    CallSink,
    FolderSink,
    JsonLinesSink,
    Observed,
    Part,
    StatusManager,
    TellingOptions,
    Told,
)
from nodealloc.testing.dsw_asw import ManualExecutor, VirtualClock

WEB = Pod(uid="u", name="web", containers=(Container(name="app", image="web:1"),))


def failure(sink: Any, record: Any = None, **more: Any) -> str:
    """Why a pod was not told, after half a minute."""
    clock, executor = VirtualClock(), ManualExecutor()
    pods: World[str, Any] = World("pods")
    manager = StatusManager(sink, pods, executor=executor, clock=clock, unix_s=clock.monotonic_s, **more)
    pods.put("u", Observed(pod=WEB) if record is None else record)
    for _ in range(60):
        clock.advance(0.5)
        manager.run_until_quiet()
        executor.run_all()
        manager.run_until_quiet()
    return "; ".join(map(str, manager.failures("u")))


class AsyncSink:
    """One that would tell only when somebody awaits it."""

    async def told(self, uid: str, status: PodStatus, /) -> None:
        """Never begun."""

    async def gone(self, uid: str, /) -> None:
        """Never begun."""


async def later(*_: object) -> None:
    """Never begun."""


@pytest.mark.parametrize("sink", [AsyncSink(), CallSink(later)])
def test_a_sink_that_would_have_to_be_awaited_has_not_told(sink: Any) -> None:
    """Each status counted as told, and nobody had heard of any."""
    assert "has done its work when it returns, no `async` one, found a coroutine" in failure(sink)


def test_a_status_is_told_of_the_pod_that_it_is_of() -> None:
    """Of another one nothing is told, whoever mixed them up."""
    said: list[str] = []
    other = Observed(pod=Pod(uid="v", name="other", containers=WEB.containers))
    sink = CallSink(lambda uid, _status: said.append(uid))
    assert "pod u is of pod v; put each pod under its own uid" in failure(sink, other)
    assert "pod u is of pod v" in failure(sink, observed=lambda _: other)
    assert said == []


def test_what_a_part_makes_is_looked_at() -> None:
    """A function that forgot its `return` is told of as such."""
    world: World[str, int] = World("more")
    world.put("u", 1)
    part: Any = Part.of(world, lambda _observed, _one: None)  # type: ignore[arg-type, return-value]
    assert "what is known of pod u: expected an Observed" in failure(CallSink(print), parts=[part])


def test_who_is_there_is_said_by_uids() -> None:
    """Pods in their place would mean that all that is remembered has gone."""
    known: World[str, Observed] = World("pods")
    manager = StatusManager(CallSink(print), known, remembered={"u": Told(status=PodStatus())})
    pods: Any = [WEB]
    with pytest.raises(ConfigurationError, match="uids: expected several of text, found a Pod"):
        manager.heard(pods)


def test_a_sink_of_files_needs_a_folder_and_pods(tmp_path: Path) -> None:
    """What is in the way is named when the sink is made."""
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ConfigurationError, match=r"a file is at .*/file"):
            FolderSink(folder)
    nobody: Any = lambda _uid: "web"
    sink = JsonLinesSink(tmp_path / "lines", nobody)
    with pytest.raises(ConfigurationError, match="JsonLinesSink: pod of u: expected a Pod, or None"):
        sink.told("u", PodStatus())
    sink.close()


def test_what_waits_to_be_told_is_told_some_day() -> None:
    """No end of waiting is no time to wait."""
    with pytest.raises(ConfigurationError, match=r"TellingOptions\.gather_s: expected seconds that pass"):
        TellingOptions(gather_s=math.inf)


def test_a_folder_that_cannot_be_had_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a read-only disk, or with a folder in a file's place, the bare error of the system came."""
    (tmp_path / ".x.new").mkdir()
    with pytest.raises(ConfigurationError, match=r"/\.x\.new: Is a directory; name one that can be"):
        FolderSink(tmp_path)

    def fail(self: Path, **_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self))

    monkeypatch.setattr(Path, "mkdir", fail)
    with pytest.raises(ConfigurationError, match=r"/status: Read-only file system; name one"):
        FolderSink(tmp_path / "status")


def test_a_flush_that_fails_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system does not say of what."""
    sink = FolderSink(tmp_path)
    real = os.fsync

    def fail(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=str(tmp_path)) as caught:
        sink.told("u", PodStatus())
    assert caught.value.errno == errno.EIO
    with pytest.raises(OSError, match=str(tmp_path)):
        sink.gone("u")
