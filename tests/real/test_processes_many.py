"""Many containers of the example at once: how they end holds up nobody who asks for something."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import attrs
import pytest

from examples.processes import _keeper as keeping
from examples.processes._clients import Clients
from examples.processes._fence import Fence
from examples.processes._keeper import Keeper
from examples.processes._kept import SOCKET, Ended, Files, Made, Started, boot_id
from nodealloc.podfacts import Exited
from tests.real.processes import PATIENCE_S, Node, app, ended, node, started

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
        keeper.clients.welcome(listener.accept()[0])
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


def talk(answer: Callable[[str], str]) -> tuple[Clients, selectors.BaseSelector, socket.socket, list[str]]:
    """One who is connected, the other end, and what is noted."""
    near, far = socket.socketpair()
    events, notes = selectors.DefaultSelector(), list[str]()
    clients = Clients(events, answer, notes.append)
    clients.welcome(near)
    return clients, events, far, notes


def serve(events: selectors.BaseSelector) -> None:
    """All that there is to do now."""
    for key, _ in events.select(0):
        key.data()


def test_whoever_reads_late_reads_all_and_holds_nobody_up() -> None:
    """The keeper waited ten seconds for one who did not read, and everybody for the keeper."""
    clients, events, far, notes = talk(lambda line: line)
    words = [f"ended {number:032x}" for number in range(5000)]
    for one in words:
        clients.tell(one)
    assert len(clients) == 1
    far.setblocking(False)
    said = b""
    while said.count(b"\n") <= len(words):
        said += far.recv(65536)
        serve(events)
    assert said.decode().splitlines() == ["here", *words]
    assert (notes, [key.events for key in events.get_map().values()]) == ([], [selectors.EVENT_READ])
    far.close()
    serve(events)
    assert not clients


def test_whoever_never_reads_is_let_go() -> None:
    """What waits for it has a bound, whether it is told or has asked."""
    clients, events, far, notes = talk(lambda line: line)
    while clients:
        clients.tell("x" * 4095)
    (note,) = notes
    assert "does not listen" in note
    assert 1 << 20 < int(note.split()[-2]) <= (1 << 20) + 4096
    assert not events.get_map()
    far.close()


@pytest.mark.parametrize("more", [b"", b"\n"])
def test_a_line_without_an_end_has_a_bound(node: Node, more: bytes) -> None:
    """It grew for as long as somebody wrote; a line that ends, however long, is none that anybody means."""
    runtime = node.runtime()
    with open_line(node) as line:
        line.settimeout(PATIENCE_S)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(100):
                line.sendall(b"x" * 10_000 + more)
            line.sendall(b"\nstart ab\n")
        heard = b""
        with contextlib.suppress(ConnectionResetError):
            while not heard.endswith(b"ab\n") and (part := line.recv(4096)):
                heard += part
    assert heard == (b"here\nfailed ab\n" if more else b"here\n")
    assert ended(runtime, started(runtime, app("true"))).exit == Exited(code=0)
    assert ("no end" in (node.folder / "keeper.log").read_text()) == (not more)


@contextlib.contextmanager
def open_line(node: Node) -> Iterator[socket.socket]:
    """A connection to the keeper, past the runtime."""
    folder = os.open(node.folder, os.O_PATH)
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(f"/proc/self/fd/{folder}/{SOCKET}")
        os.close(folder)
        yield line
