"""SIGKILL at calls of a runtime and a store, with real processes: the next agent goes on from there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from tests.real.podlife_killed import Life, calls_of, check_all, check_ran, many_moments, moments

Choose = Callable[[int, int], list[tuple[int, bool]]]

pytestmark = [pytest.mark.real]


def killed(folder: Path, choose: Choose, every: int) -> list[Life]:
    """At every so many calls, before and after."""
    count = calls_of(Life(folder=folder / "whole"))
    assert count > 20, "the story is too short to be one"
    return [
        Life(folder=folder / f"{at}{'late' if late else ''}", at=at, late=late)
        for at, late in choose(count, every)
    ]


@pytest.mark.parametrize(
    ("ran", "undone"),
    [
        (["app#0", "app#1", "setup#0", "side#0"], []),
        (["app#0", "app#0", "setup#0", "side#0"], []),
        (["app#0", "app#0", "setup#0", "side#0"], ["app#0"]),
        (["app#1", "setup#0", "side#0"], []),
        (["app#0", "app#2", "setup#0", "side#0"], ["app#0"]),
        (["app#0", "setup#0"], []),
    ],
)
def test_a_second_instance_needs_a_start_that_was_undone(ran: list[str], undone: list[str]) -> None:
    """The law that is held against what ran refuses what is no such start."""
    check_ran(["app#0", "app#1", "setup#0", "side#0"], ["app#0"])
    check_ran(["app#1", "setup#0", "side#0"], ["app#0"])
    with pytest.raises(AssertionError):
        check_ran(ran, undone)


def test_killed_now_and_then_each_container_ran_once(tmp_path: Path) -> None:
    """No init container runs again, no attempt starts twice, no grace begins anew, and nothing is left."""
    check_all(killed(tmp_path, moments, 13))


@pytest.mark.slow
@pytest.mark.skipif("CI" in os.environ, reason="minutes: a plain run of the tests has it")
def test_killed_at_many_calls_each_container_ran_once(tmp_path: Path) -> None:
    """At every fourth one, and in `nox -s kills` at every one."""
    lives = killed(tmp_path, many_moments, 4)
    check_all(lives)
    print(f"killed at {len(lives)} moments")


@pytest.mark.vm
@pytest.mark.slow
@pytest.mark.skipif(not Path("/sys/fs/cgroup/cgroup.controllers").exists(), reason="needs cgroup v2 alone")
def test_on_cgroup_v2_nothing_of_a_pod_is_left_whoever_left_its_session(tmp_path: Path) -> None:
    """The agent is killed on the way up, while the pod runs, and on the way down."""
    cgroups = f"nodealloc-life-{os.getpid()}"
    whole = Life(folder=tmp_path / "whole", cgroups=cgroups)
    count = calls_of(whole)
    check_all([attrs.evolve(whole, folder=tmp_path / str(at), uid=f"u{at}", at=at) for at in (8, count - 12)])
    top = Path("/sys/fs/cgroup") / cgroups
    left = [one for one in top.rglob("cgroup.procs") if one.read_text().strip()] if top.exists() else []
    assert left == [], "processes of pods that are gone run on"
