"""The job launcher: several shells, one directory, processes that end as processes do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
SAY = "grep Cpus_allowed_list /proc/self/status | cut -f 2; read line"


def _start(state: Path, cpus: int) -> subprocess.Popen[str]:
    """A job that says which CPUs it has and lives until it is sent a line."""
    return subprocess.Popen(
        _command(state, "--cpus", str(cpus), "--policy", "restricted", "--", "sh", "-c", SAY),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def _command(state: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "examples.jobs", "--state", str(state), *arguments]


def _cpus(job: subprocess.Popen[str]) -> str:
    assert job.stdout is not None
    return job.stdout.readline().strip()


def _end(job: subprocess.Popen[str]) -> str:
    """Let it end by itself; what it said on standard error."""
    return job.communicate("done\n", timeout=60)[1]


@pytest.fixture
def online() -> int:
    """How many CPUs there are to give out."""
    count = len(os.sched_getaffinity(0))
    if count < 2:
        pytest.skip("needs two CPUs")
    if Path("/sys/devices/system/cpu/online").read_text().strip() != f"0-{count - 1}":
        pytest.skip("this process may not use all CPUs of the machine")
    return count


def test_jobs_that_start_together_never_share_a_cpu(tmp_path: Path, online: int) -> None:
    """Two launchers race for the directory; each gets its own, and a third is told what is missing."""
    first, second = _start(tmp_path, 1), _start(tmp_path, online - 1)
    held = {_cpus(first), _cpus(second)}
    assert "" not in held
    assert len(held) == 2
    third = _start(tmp_path, 1)
    assert _cpus(third) == ""
    assert "1 wanted" in _end(third)
    _end(first)
    _end(second)


def test_a_killed_job_gives_its_cpus_back(tmp_path: Path, online: int) -> None:
    """After SIGKILL nobody is left to clean up; the next launcher gets all CPUs."""
    job = _start(tmp_path, online)
    assert _cpus(job) == f"0-{online - 1}"
    job.send_signal(signal.SIGKILL)
    job.communicate()
    again = _start(tmp_path, online)
    assert _cpus(again) == f"0-{online - 1}"
    _end(again)


def test_the_picture_names_who_holds_what(tmp_path: Path, online: int) -> None:
    """`--show` draws the node with its jobs, without starting one."""
    job = _start(tmp_path, 1)
    _cpus(job)
    shown = subprocess.run(
        _command(tmp_path, "--show"), capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    assert f"A  {job.pid}@" in shown
    assert "shared pool" in shown
    _end(job)


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--cpus", "1.5", "--", "true"], 2, "whole CPUs"),
        (["--cpus", "0", "--", "true"], 2, "1 or more"),
        (["--reserved", "999", "--", "true"], 1, "jobs: reserved: 999 CPUs wanted"),
        ([], 2, "give a command after --, or --show"),
        (["--", "/nonexistent"], 1, "jobs: /nonexistent: no such command"),
    ],
)
def test_what_cannot_be_had_is_a_line(tmp_path: Path, arguments: list[str], status: int, words: str) -> None:
    """No traceback, and never the shared pool in the place of CPUs of one's own."""
    command = _command(tmp_path, *arguments)
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=60)
    assert done.returncode == status
    assert words in done.stderr.splitlines()[-1]
