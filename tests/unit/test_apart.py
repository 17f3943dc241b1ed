"""Tests that fork pass, skip and fail as others do."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from tests.apart import run_apart


def writes(path: Path) -> None:
    """Leave a trace of the process."""
    path.write_text(
        f"{os.getpid()} {len(list(Path('/proc/self/task').iterdir()))} {threading.active_count()}"
    )


def skips() -> None:
    """Skip."""
    pytest.skip("no such machine")


def fails(number: int) -> None:
    """Fail."""
    assert number == 2, "not two"


def dies() -> None:
    """End without a word."""
    os.kill(os.getpid(), signal.SIGKILL)


def test_it_runs_in_another_process_with_one_thread(tmp_path: Path) -> None:
    """Whatever runs here, nothing of it is in there."""
    run_apart(writes, {"path": tmp_path / "trace"})
    pid, tasks, threads = map(int, (tmp_path / "trace").read_text().split())
    assert pid != os.getpid()
    assert (tasks, threads) == (1, 1)


def test_a_skip_is_a_skip() -> None:
    """With its reason."""
    with pytest.raises(pytest.skip.Exception, match="no such machine"):
        run_apart(skips, {})


def test_a_failure_tells_of_the_values() -> None:
    """The message and the local names are in the report."""
    with pytest.raises(pytest.fail.Exception, match=r"(?s)number = 3.*not two"):
        run_apart(fails, {"number": 3})


def test_a_death_is_a_failure() -> None:
    """Nothing passes that did not say so."""
    with pytest.raises(pytest.fail.Exception, match="ended with -9 and without a word"):
        run_apart(dies, {})
