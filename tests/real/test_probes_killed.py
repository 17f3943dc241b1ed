"""SIGKILL at questions and commits of an agent that probes: no readiness moves, either way."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import attrs
import pytest

from nodealloc.checkpoint import FileStore, rows_of
from nodealloc.probes import PROBE_ROWS, verdicts_from_checkpoint
from tests.real.probes_killed import FORMATS, UID, Life, all_lived, lived, seen_in

pytestmark = [pytest.mark.real]


def handler(codes: dict[str, int], name: str) -> type[BaseHTTPRequestHandler]:
    """Answers with the code that stands for a container."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(codes[name])
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Nothing."""

    return Handler


class Server(ThreadingHTTPServer):
    """Says nothing of who hangs up on it."""

    def handle_error(self, request: object, client_address: object) -> None:
        """Agents that are killed do."""


@attrs.frozen
class Servers:
    """One for each container; what they answer can be changed."""

    codes: dict[str, int]
    ports: Mapping[str, int]


@pytest.fixture
def servers() -> Iterator[Servers]:
    """One that is well, one that is not."""
    codes = {"well": 200, "unwell": 503}
    made = {name: Server(("127.0.0.1", 0), handler(codes, name)) for name in codes}
    for one in made.values():
        threading.Thread(target=one.serve_forever, daemon=True).start()
    yield Servers(codes, {name: one.server_port for name, one in made.items()})
    for one in made.values():
        one.shutdown()
        one.server_close()


def stored(life: Life) -> dict[str, bool]:
    """Readiness as the store has it."""
    with FileStore(life.folder / "store", FORMATS) as store:
        found = rows_of(PROBE_ROWS, store.read().values, verdicts_from_checkpoint)
    return dict(found[UID].ready) if UID in found else {}


def life_in(folder: Path, servers: Servers, *, at: int = 0, late: bool = False) -> Life:
    """In a folder of its own."""
    folder.mkdir()
    return Life(folder=folder, ports=servers.ports, at=at, late=late)


def test_killed_at_any_call_an_agent_moves_no_readiness(servers: Servers, tmp_path: Path) -> None:
    """What stood on disk is what the next one shows before it has asked; nobody ever sees the other."""
    truth = {"well": True, "unwell": False}
    first = [
        life_in(tmp_path / f"{at}{late:d}", servers, at=at, late=late)
        for late in (False, True)
        for at in (1, 2, 3, 4, 6, 8, 10, 12)
    ]
    codes = all_lived(first)
    assert set(codes) <= {0, -9}
    assert codes.count(-9) >= 8, "hardly anybody was killed"
    on_disk = [stored(one) for one in first]
    assert any(one != truth for one in on_disk), "nobody was killed before the verdicts stood"
    assert any(one == truth for one in on_disk), "nobody was killed behind them"
    assert all_lived([attrs.evolve(one, at=0) for one in first]) == [0] * len(first)
    for life, kept in zip(first, on_disk, strict=True):
        seen = seen_in(life)
        assert seen[-1] == truth
        for one in seen:
            assert one.items() <= truth.items(), f"killed at {life.at}: {one} was to be seen"
        # The next agent begins with what is on disk, and from then on nothing is unknown again.
        assert kept in seen
        known = [len(one) for one in seen[seen.index(kept) :]]
        assert not kept or min(known) >= len(kept), f"killed at {life.at}: a verdict was lost"


def test_who_changes_while_nobody_asks_is_seen_by_answers_alone(servers: Servers, tmp_path: Path) -> None:
    """The old verdicts stand until as many answers count; then both flip, once."""
    life = life_in(tmp_path / "one", servers, at=14)
    assert lived(attrs.evolve(life, answers=100)) == -9
    assert stored(life) == {"well": True, "unwell": False}
    before = len(seen_in(life))
    servers.codes.update(well=503, unwell=200)
    assert lived(attrs.evolve(life, at=0)) == 0
    seen = seen_in(life)[before:]
    assert seen[0] == {"well": True, "unwell": False}, "verdicts were forgotten"
    assert seen[-1] == {"well": False, "unwell": True}
    for name, new in (("well", False), ("unwell", True)):
        values = [one[name] for one in seen]
        assert values == sorted(values, reverse=not new), f"{name} went to and fro"
