"""`python -m examples.scheduler`: the ten best nodes for a pod, with reasons."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from examples.scheduler.fleet import fleet, guaranteed
from examples.scheduler.spread import WAYS, NoDaskError
from nodealloc.podspec import Pod
from nodealloc.topology import Policy, PolicyName


def count(text: str, *, least: int = 0) -> int:
    """A number of things."""
    number = int(text)
    if number < least:
        raise argparse.ArgumentTypeError(f"{text}: give {least} or more")
    return number


def arguments() -> argparse.ArgumentParser:
    """What the command takes."""
    parser = argparse.ArgumentParser(prog="python -m examples.scheduler", description=__doc__)
    parser.add_argument("--nodes", type=count, default=10_000, help="nodes in the fleet")
    parser.add_argument("--how", choices=sorted(WAYS), default="here", help="where to score them")
    parser.add_argument(
        "--workers", type=partial(count, least=1), default=2, help="processes of the pool or cluster"
    )
    parser.add_argument("--policy", choices=[name.value for name in PolicyName], default="restricted")
    parser.add_argument("--search-whole-pod", action="store_true", help="let early containers move aside")
    parser.add_argument("--top", type=count, default=10, help="nodes to print")
    parser.add_argument("--pod", type=Path, help="pod manifest as JSON; default: twice 6 CPUs")
    parser.add_argument(
        "--pods", type=partial(count, least=1), default=1, help="score so many copies of the pod in one go"
    )
    parser.add_argument("--seed", type=int, default=0, help="which fleet")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Score the fleet and print the best nodes; exit status 1 when none fits."""
    asked = arguments().parse_args(argv)
    policy = Policy(name=PolicyName(asked.policy), search=asked.search_whole_pod)
    try:
        pod = _pod(asked.pod)
    except (OSError, ValueError) as error:
        print(f"scheduler: {error}", file=sys.stderr)
        return 2
    candidates = list(fleet(asked.nodes, policy, seed=asked.seed))
    started = time.perf_counter()
    try:
        scores, *_ = WAYS[asked.how](candidates, [pod] * asked.pods, asked.top, asked.workers)
    except NoDaskError as error:
        print(f"scheduler: {error}", file=sys.stderr)
        return 2
    took_s = time.perf_counter() - started
    for place, score in enumerate(scores.best, start=1):
        print(f"{place:>3}. {score.node}  {score.points:7.2f}  {score.reason}")
    refused = ", ".join(f"{count} {reason}" for reason, count in scores.refused.most_common())
    print(f"{scores.fitting} of {asked.nodes} nodes fit; refused: {refused or 'none'}")
    told = f"{asked.pods} pods, {asked.how}" if asked.pods > 1 else asked.how
    print(f"{asked.nodes * asked.pods / took_s:,.0f} nodes a second ({told}, {took_s:.2f} s)")
    return 0 if scores.fitting else 1


def _pod(path: Path | None) -> Pod:
    if path is None:
        return guaranteed("new", (6, 8), (6, 8))
    return Pod.from_manifest(json.loads(path.read_text(encoding="utf-8")), source=str(path))


if __name__ == "__main__":
    sys.exit(main())
