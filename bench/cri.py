"""Real containers: twenty pods beside a bare loop of the same calls, where a containerd can be had."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bench.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["figures"]

ROOT = Path(__file__).parent.parent


def figures() -> Iterator[Figure]:
    """None where there is no root, no namespace or no package; the reason is printed."""
    command = [sys.executable, "-m", "tests.cri", "--version", "1.7", "--pace"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        print(f"cri: not measured: {(done.stdout or done.stderr).strip().splitlines()[-1:]}")
        return
    found = json.loads(lines[-1])
    yield Figure(
        package="cri",
        name="20 pods, from admission until they are seen to run",
        value=found["ours_s"],
        unit="s",
    )
    yield Figure(
        package="cri",
        name="the same, over a bare loop of the same calls",
        value=found["ratio"],
        unit="×",
        at_most=1.2,
    )
