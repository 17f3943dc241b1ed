"""The scheduler example, on a small fleet."""

from __future__ import annotations

import importlib.util
import pickle
from pathlib import Path

import pytest

from examples.scheduler.__main__ import main
from examples.scheduler.fleet import fleet, guaranteed
from examples.scheduler.score import score_all
from examples.scheduler.spread import here, on_pool
from nodealloc.topology import Policy, PolicyName

ROOT = Path(__file__).parent.parent.parent
RESTRICTED = Policy(name=PolicyName.RESTRICTED)


def test_the_best_nodes_are_printed_with_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    """As many as asked for, then how many fit, then the speed."""
    assert main(["--nodes", "60", "--top", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert "app-0 on node" in lines[0]
    assert "of 60 nodes fit; refused:" in lines[3]
    assert "nodes a second" in lines[4]
    assert main(["--nodes", "60", "--top", "3", "--pods", "2"]) == 0
    again = capsys.readouterr().out.splitlines()
    assert again[:4] == lines[:4]
    assert "(2 pods, here" in again[4]


@pytest.mark.slow
@pytest.mark.tree
def test_the_page_shows_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """The command of the how-to page, and its lines but the last, which is about a machine."""
    page = (ROOT / "docs/how-to/score-a-fleet.md").read_text(encoding="utf-8")
    command, *shown = page.partition("```text\n$ ")[2].partition("\n```")[0].splitlines()
    assert main(command.split()[3:]) == 0
    assert capsys.readouterr().out.splitlines()[:-1] == shown[:-1]


def test_a_pod_that_fits_nowhere_is_status_1(capsys: pytest.CaptureFixture[str]) -> None:
    """Single-numa-node has no node for two containers that need more than there is."""
    pod = guaranteed("huge", (999, 1))
    candidates = list(fleet(20, RESTRICTED))
    assert score_all(candidates, pod, 10).fitting == 0
    assert main(["--nodes", "0"]) == 1
    assert "0 of 0 nodes fit" in capsys.readouterr().out


@pytest.mark.parametrize("options", [["--nodes", "-1"], ["--workers", "0"], ["--pod", "/nonexistent"]])
def test_bad_options_are_status_2(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Each is said in a line that names it."""
    try:
        status: object = main(options)
    except SystemExit as end:
        status = end.code
    assert status == 2
    assert options[1] in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.forks
def test_a_pool_answers_as_one_process_does() -> None:
    """The same function over the same snapshots, in other processes."""
    candidates = list(fleet(600, RESTRICTED))
    pods = [guaranteed("new", (6, 8), (6, 8)), guaranteed("other", (30, 8))]
    assert on_pool(candidates, pods, 10, 2) == here(candidates, pods, 10, 2)


def test_a_batch_pickles_small() -> None:
    """What nodes share is pickled once: under 1 KiB a node."""
    candidates = list(fleet(300, RESTRICTED))
    assert len(pickle.dumps(candidates)) / len(candidates) < 1024


@pytest.mark.skipif(importlib.util.find_spec("distributed") is not None, reason="Dask is installed")
def test_without_dask_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 2 and what to install."""
    assert main(["--nodes", "1", "--how", "dask"]) == 2
    assert "pip install distributed" in capsys.readouterr().err


def test_dask_answers_as_one_process_does() -> None:
    """On a LocalCluster, where Dask is installed."""
    pytest.importorskip("distributed", reason="dask.distributed is not installed")
    from examples.scheduler.spread import on_dask

    candidates = list(fleet(600, RESTRICTED))
    pods = [guaranteed("new", (6, 8), (6, 8)), guaranteed("other", (30, 8))]
    assert on_dask(candidates, pods, 10, 2) == here(candidates, pods, 10, 2)
