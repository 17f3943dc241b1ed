"""`python -m tests.stories [options] FILE…`: what a kubelet was seen to do, done again and compared.

Each story plays in namespaces of its own, with a containerd of its own, several
at a time. A line tells what became of each; the last line is
`N passed, M failed, K skipped`.

Exit status: 0 when none failed, 1 when some did, 75 when no runtime can be had.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import attrs

from tests.cri.__main__ import _UNSHARE, CACHE, COMPILED, NOT_HERE, _check_namespaces
from tests.cri.folders import mount_points
from tests.cri.packages import Unavailable, fetch
from tests.stories.compare import differences
from tests.stories.machine import FOLDERS
from tests.stories.play import AGENT, play
from tests.stories.rows import Story, read, reason_to_skip

ROOT = Path(__file__).parent.parent.parent
CGROUPS = f"nodealloc-stories-{os.getpid()}"
SHOWN = 8
NUMBERS = itertools.count()
VECTORS = ROOT / "tests" / "vectors"
FILES = (VECTORS / "kubelet_stories.jsonl.gz", VECTORS / "kubelet_api_stories.jsonl.gz")
SHORT = (
    *("restart-never-two", "init-fails-never", "sidecar-startup-fails", "prestop-fast", "oom-child"),
    *("edit-annotation-uid", "host-namespaces", "qos-three", "containers-12", "image-invalid-name"),
    *("api-refused", "api-delete-grace"),
)
"""A tenth of all, of each kind a short one."""


@attrs.frozen
class Outcome:
    """What became of a story."""

    story: Story
    word: str
    lines: tuple[str, ...]
    took_s: float


def main() -> int:
    """Read, skip, play, compare, tell."""
    parser = argparse.ArgumentParser(prog="python -m tests.stories", description=__doc__)
    parser.add_argument(
        "files",
        nargs="*",
        type=Path,
        help="stories, one JSON document a line, gzip or not (default: those that were recorded for this)",
    )
    parser.add_argument("--names", help="only these, separated by commas")
    parser.add_argument("--short", action="store_true", help=f"only {', '.join(SHORT)}")
    parser.add_argument("--most", type=int, help="only so many of those that are not skipped, spread evenly")
    parser.add_argument("--at-a-time", type=int, default=2 * (os.cpu_count() or 1), metavar="N")
    parser.add_argument(
        "--tries", type=int, default=1, metavar="N", help="play what failed again, one at a time, so often"
    )
    parser.add_argument(
        "--agent", default=AGENT, help="how the agent is called; {python}, {config}, {status}, {ip}"
    )
    parser.add_argument("--keep", type=Path, help="folder for what was seen, a file for each story")
    parser.add_argument("--all-lines", action="store_true", help="show every difference")
    parser.add_argument("--inside", nargs=5, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.inside:
        row, out, root, folder, cgroup = chosen.inside
        return play(Path(row), Path(out), Path(root), Path(folder), cgroup=cgroup, agent=chosen.agent)
    stories = [story for file in chosen.files or FILES for story in read(file)]
    names = chosen.names.split(",") if chosen.names else SHORT if chosen.short else None
    if names is not None:
        stories = [one for one in stories if one.name in names]
    return tell(stories, chosen)


def tell(stories: Sequence[Story], chosen: argparse.Namespace) -> int:
    """Play those that can be played; their outcomes, as they come."""
    skipped = {one.name: reason for one in stories if (reason := reason_to_skip(one))}
    for name, reason in skipped.items():
        print(f"skipped {name}: needs {reason}")
    playable = [one for one in stories if one.name not in skipped]
    if chosen.most is not None and len(playable) > chosen.most:
        playable = [playable[place * len(playable) // chosen.most] for place in range(chosen.most)]
    try:
        _check_namespaces()
        root = fetch(CACHE, "1.7", network=True)
    except Unavailable as reason:
        print(f"stories: not played: {reason}")
        return NOT_HERE
    if chosen.keep:
        chosen.keep.mkdir(parents=True, exist_ok=True)
    failed: list[Outcome] = []
    with mount_points(FOLDERS):
        # The longest first, so that none of them is what everybody waits for at the end.
        playable.sort(key=lambda one: -one.end)
        with concurrent.futures.ThreadPoolExecutor(chosen.at_a_time) as pool:
            for done in concurrent.futures.as_completed(
                [pool.submit(outcome, one, root, chosen) for one in playable]
            ):
                result = done.result()
                failed += [result] if result.word == "FAILED" else []
                show(result, chosen)
        for number in range(2, chosen.tries + 1):
            # Alone, so that it has the machine for itself.
            again = [outcome(one.story, root, chosen) for one in failed]
            for result in again:
                show(result, chosen, f" at try {number}")
            failed = [one for one in again if one.word == "FAILED"]
    print(f"{len(playable) - len(failed)} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed else 0


def show(result: Outcome, chosen: argparse.Namespace, at: str = "") -> None:
    """Say what became of a story, and what differs."""
    print(f"{result.word} {result.story.name}{at} ({result.took_s:.0f} s)", flush=True)
    for line in result.lines if chosen.all_lines else result.lines[:SHOWN]:
        print(f"    {line}", flush=True)


def outcome(story: Story, root: Path, chosen: argparse.Namespace) -> Outcome:
    """Play one story in namespaces of its own, and compare."""
    began_s = time.monotonic()
    cgroup = f"{CGROUPS}-{next(NUMBERS)}"
    with tempfile.TemporaryDirectory(prefix="story-") as folder:
        row, out, place = Path(folder, "row.json"), Path(folder, "seen.json"), Path(folder, "m")
        row.write_text(json.dumps(story.row))
        place.mkdir()
        words = ["--agent", chosen.agent, "--inside", *map(str, (row, out, root, place, cgroup))]
        command = [*_UNSHARE, sys.executable, "-m", "tests.stories", *words]
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env={**os.environ, **COMPILED},
                check=False,
                timeout=story.end + 180,
                capture_output=True,
                text=True,
            )
        except subprocess.TimeoutExpired:
            done = subprocess.CompletedProcess(command, 124, "", "it took too long")
        finally:
            _remove_cgroups(cgroup)
        took_s = time.monotonic() - began_s
        if not out.exists():
            return Outcome(story, "FAILED", (f"not played: {(done.stderr or done.stdout)[-1500:]}",), took_s)
        seen = json.loads(out.read_text())
    if chosen.keep:
        (chosen.keep / f"{story.name}.json").write_text(json.dumps(seen, indent=1))
    if "fault" in seen:
        return Outcome(
            story, "FAILED", (f"not played: {seen['fault']}", str(seen.get("log"))[-1500:]), took_s
        )
    faults = [*seen["faults"]]
    if seen["agent"] and not story.seen.get("agent"):
        faults.append(f"the agent did not start: {str(seen['log'])[-1500:]}")
    found = (*faults, *differences(story.seen, seen, story.end))
    return Outcome(story, "FAILED" if found else "passed", found, took_s)


def _remove_cgroups(name: str) -> None:
    for top in Path("/sys/fs/cgroup").glob(f"*/{name}"):
        below = sorted((Path(at) for at, _, _ in os.walk(top)), key=lambda one: len(one.parts), reverse=True)
        for folder in below:
            for _ in range(50):
                try:
                    folder.rmdir()
                    break
                except OSError:
                    time.sleep(0.02)


if __name__ == "__main__":
    sys.exit(main())
