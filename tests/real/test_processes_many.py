"""Many containers of the example at once: how they end holds up nobody who asks for something."""

from __future__ import annotations

import os
import selectors
import signal
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs
import pytest

from examples.processes import _keeper as keeping
from examples.processes._fence import Fence
from examples.processes._keeper import Keeper
from examples.processes._kept import Ended, Files, Made, Started, boot_id
from tests.real.processes import Node, app, ended, node, started

__all__ = ["node"]


@attrs.frozen(kw_only=True)
class Noted(Fence):
    """Ends nobody; notes for whom it was asked, and lets somebody ask the keeper meanwhile."""

    asks: socket.socket
    held: bool
    turns: list[list[str]] = attrs.field(factory=list[list[str]])

    def holds(self, name: str, /) -> bool:
        """As it was made."""
        return self.held

    def end(self, many: Mapping[str, Started], /) -> dict[str, frozenset[int]]:
        """The first time, somebody asks for a start, and for nothing more."""
        self.turns.append(list(many))
        if len(self.turns) == 1:
            self.asks.sendall(b"start new\n")
            self.asks.shutdown(socket.SHUT_WR)
        return {}


@pytest.fixture
def signals() -> Iterator[None]:
    """What a keeper does to the signals of its process does not last."""
    before = signal.getsignal(signal.SIGCHLD)
    yield
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, before)


def due(files: Files, name: str) -> tuple[Made, Started, Ended]:
    """A container that has just ended."""
    at = Started(pid=0, ticks=1, boot=boot_id(), unix_s=1.0)
    made = Made(
        id=name,
        sandbox="box",
        name=name,
        attempt=0,
        created_unix_s=1.0,
        image="",
        image_id="",
        definition="",
        labels={},
        annotations={},
        cgroup=f"/{name}",
        argv=["true"],
        env={},
        folder="",
        user=None,
        group=None,
        groups=[],
        cpus=[],
        oom_score_adj=None,
        log="",
    )
    files.write(made, "containers", name, "made")
    return made, at, Ended(code=0, reason="Completed", unix_s=2.0)


@pytest.mark.parametrize(
    ("held", "turns", "told"),
    [
        (True, [["/a"], ["/b"]], ["ended a", "failed new", "ended b"]),
        (False, [["/a", "/b"]], ["ended a", "ended b", "failed new"]),
    ],
)
@pytest.mark.usefixtures("signals")
def test_a_request_waits_for_one_turn_of_ends(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    held: bool,
    turns: list[list[str]],
    told: list[str],
) -> None:
    """One by one where each has a cgroup of its own; where one look at /proc serves all, all at once."""
    monkeypatch.setattr(keeping, "_LINGERS_S", 0)
    files = Files(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as asks:
        listener.bind(str(tmp_path / "s"))
        listener.listen(1)
        asks.connect(str(tmp_path / "s"))
        fence = Noted(driver=None, asks=asks, held=held)
        keeper = Keeper(files, fence, selectors.DefaultSelector())
        keeper.welcome(listener)
        keeper.due.update({name: due(files, name) for name in "ab"})
        keeper.run()
        asks.settimeout(10)
        with asks.makefile() as heard:
            assert heard.read().splitlines() == ["here", *told]
    assert fence.turns == turns


def test_all_sessions_are_ended_with_as_few_looks_as_one(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at /proc took longer the more there was to end, and there were as many as containers."""
    runtime = node.runtime()
    made = [started(runtime, app()) for _ in range(6)]
    files, fence, looks = Files(node.folder), Fence(driver=None), list[str]()
    look = os.listdir

    def noted(path: str) -> list[str]:
        looks.append(path)
        return look(path)

    def end(some: list[str]) -> int:
        at = [files.read(Started, "containers", one, "started") for one in some]
        monkeypatch.setattr(os, "listdir", noted)
        looks.clear()
        left = fence.end({name: one for name, one in zip(some, at, strict=True) if one is not None})
        monkeypatch.undo()
        assert not any(left.values())
        assert all(ended(runtime, one).exit for one in some)
        return len(looks)

    assert end(made[1:]) == end(made[:1]) > 0
