"""SIGKILL at calls of a runtime and a store, with real processes: the next agent goes on from there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.podlife_killed import Life, calls_of, check_all

pytestmark = [pytest.mark.real]


def killed(folder: Path, every: int) -> list[Life]:
    """At every so many calls, before and after."""
    count = calls_of(Life(folder=folder / "whole"))
    assert count > 20, "the story is too short to be one"
    return [
        Life(folder=folder / f"{at}{'late' if late else ''}", at=at, late=late)
        for late in (False, True)
        for at in range(1 + late * (every // 2), count + 1, every)
    ]


def test_killed_now_and_then_each_container_ran_once(tmp_path: Path) -> None:
    """No init container runs again, no attempt starts twice, no grace begins anew, and nothing is left."""
    check_all(killed(tmp_path, 13))


@pytest.mark.slow
def test_killed_at_every_fourth_call_each_container_ran_once(tmp_path: Path) -> None:
    """Of the lives between them; all of them are lived on a runtime in memory."""
    check_all(killed(tmp_path, 4))
