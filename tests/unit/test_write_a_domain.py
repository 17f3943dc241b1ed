"""The domains of the page "Write a domain", as they stand there, in longer lives than a page can show."""

from __future__ import annotations

import ast
import doctest
import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nodealloc.dsw_asw import Near, Reconciler, View, World
from nodealloc.testing.dsw_asw import ManualExecutor, VirtualClock, check_plan, run_to_rest

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "write-a-domain.md"
pytestmark = pytest.mark.tree


@pytest.fixture(scope="module")
def page() -> SimpleNamespace:
    """What the page defines."""
    examples = doctest.DocTestParser().get_doctest(PAGE.read_text(encoding="utf-8"), {}, "page", str(PAGE), 0)
    runner = doctest.DocTestRunner(verbose=False)
    assert runner.run(examples, clear_globs=False).failed == 0
    return SimpleNamespace(**examples.globs)


class Desk:
    """A reconciler of one of the page's domains."""

    def __init__(self, domain: Any, **options: Any) -> None:
        self.domain = domain
        self.desired: World[str, Any] = World("desired")
        self.actual: World[str, Any] = World("actual")
        self.clock, self.executor = VirtualClock(), ManualExecutor()
        self.reconciler: Reconciler[str, Any, Any, Any, Any] = Reconciler(
            domain,
            desired=self.desired,
            actual=self.actual,
            executor=self.executor,
            clock=self.clock,
            resync_s=None,
            **options,
        )

    def have(self, key: str) -> Any:
        """A record."""
        return self.actual.get(key)

    def after(self, seconds: float) -> None:
        """Let time pass, and everything happen that is due."""
        self.clock.advance(seconds)
        run_to_rest(self.reconciler, self.executor, self.clock)


def test_the_page_s_domains_are_short(page: SimpleNamespace) -> None:
    """Ten to forty lines each, as the page promises by being one."""
    blocks = [one for one in ast.walk(ast.parse(_code())) if isinstance(one, ast.ClassDef)]
    lines = {one.name: (one.end_lineno or 0) - one.lineno + 1 for one in blocks}
    assert set(lines) == {"Health", "Probes", "Run", "Restarts", "Relist", "Pods", "Pulls"}
    assert all(count <= 40 for count in lines.values()), lines
    assert page.Probes


def _code() -> str:
    return "".join(
        one.source for one in doctest.DocTestParser().get_examples(PAGE.read_text(encoding="utf-8"))
    )


def test_a_probe_asks_once_a_period_for_a_day(page: SimpleNamespace) -> None:
    """8,640 answers, well and not, are as many calls, no failure, no call too early."""
    asked: list[float] = []
    desk: Desk

    def answers(_address: str) -> bool:
        asked.append(desk.clock.monotonic_s())
        return len(asked) % 7 > 3

    desk = Desk(page.Probes(answers))
    desk.desired.put("web", "10.0.0.7")
    check_plan(desk.domain, View(key="web", want="10.0.0.7", now_s=3.0))
    desk.after(0)
    for _ in range(8_639):
        desk.after(10)
    assert asked == [10.0 * number for number in range(8_640)]
    assert desk.reconciler.failures("web") == ()
    desk.desired.drop("web")
    desk.after(10)
    assert len(desk.actual) == 0
    assert desk.reconciler.seconds_to_next() is None


def test_a_probe_that_is_asked_again_by_another_wish_begins_at_once(page: SimpleNamespace) -> None:
    """Another address is no reason to wait for the period."""
    asked: list[str] = []

    def answers(address: str) -> bool:
        asked.append(address)
        return True

    desk = Desk(page.Probes(answers))
    for address in ("one", "two"):
        desk.desired.put("web", address)
        desk.after(1)
    assert asked == ["one", "two"]


def test_a_crash_loop_waits_five_minutes_at_most_and_outlives_its_program(page: SimpleNamespace) -> None:
    """The wait is in the record: the next program, at the same clock, starts at the same moment."""
    exits: World[str, int] = World("exits")
    near: Near[str, str, int] = Near(exits, lambda name: [name])
    starts: list[float] = []
    desk: Desk
    desk = Desk(page.Restarts(near, lambda _: starts.append(desk.clock.monotonic_s())), near=[near])
    desk.desired.put("job", "image")
    desk.after(0)
    for count in range(1, 9):
        exits.put("job", count)
        desk.after(0)
        desk.after(desk.have("job").next_s - desk.clock.monotonic_s())
    waits = [later - before for before, later in itertools.pairwise(starts)]
    assert waits == [10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0, 300.0]
    exits.put("job", 9)
    desk.after(0)
    heir: Desk
    heir = Desk(page.Restarts(near, lambda _: starts.append(heir.clock.monotonic_s())), near=[near])
    heir.clock.advance(desk.clock.monotonic_s())
    heir.actual.put("job", desk.actual.get("job"))
    heir.desired.put("job", "image")
    heir.after(299)
    assert len(starts) == 9
    heir.after(1)
    assert starts[-1] - starts[-2] == 300.0


def test_a_start_that_fails_is_tried_again_by_the_engine(page: SimpleNamespace) -> None:
    """The domain says nothing of it: the back-off is the engine's, the count of starts is not touched."""
    tries: list[int] = []

    def start(_name: str) -> None:
        tries.append(1)
        if len(tries) < 3:
            raise OSError("no image")

    exits: World[str, int] = World("exits")
    near: Near[str, str, int] = Near(exits, lambda name: [name])
    desk = Desk(page.Restarts(near, start), near=[near])
    desk.desired.put("job", "image")
    desk.after(0)
    assert (len(tries), desk.have("job").starts) == (3, 1)


def test_a_relist_takes_nothing_back_that_was_written_meanwhile(page: SimpleNamespace) -> None:
    """An event that came while the listing was under way is newer than the listing."""
    seen: World[str, str] = World("seen")

    def listing() -> dict[str, str]:
        seen.put("pod", "exited", by="event")
        return {"pod": "running", "other": "running"}

    desk = Desk(page.Relist(seen, listing))
    desk.desired.put("cri", "socket")
    desk.after(0)
    assert (seen.get("pod"), seen.get("other")) == ("exited", "running")
    assert desk.actual.get("cri") == "listed"


def test_a_pull_that_is_wanted_again_begins_again(page: SimpleNamespace) -> None:
    """Ended in the middle and wished for once more: the same pod, another pull, all of it."""
    fetched: list[str] = []
    desk: Desk

    def fetch(layer: str) -> None:
        fetched.append(layer)
        if len(fetched) == 2:
            desk.desired.drop("web")
            desk.reconciler.reconcile()

    desk = Desk(page.Pulls(fetch))
    desk.desired.put("web", ("1", "2", "3"))
    desk.after(0)
    assert fetched == ["1", "2"]
    assert len(desk.actual) == 0
    desk.desired.put("web", ("1", "2", "3"))
    desk.after(0)
    assert fetched == ["1", "2", "1", "2", "3"]
    assert desk.actual.get("web") == "pulled"
