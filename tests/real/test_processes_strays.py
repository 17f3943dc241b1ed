"""Processes of containers that nothing on disk tells of any more: never two of one container."""

from __future__ import annotations

import logging
import os
import resource
import shutil
import signal
from pathlib import Path

import attrs
import pytest

from examples.processes._kept import start_ticks, stat_fields
from nodealloc.runtime import RunState
from tests.real.processes import Node, app, node, process, report, runs, sleeps, started, until
from tests.real.test_processes_keeper import keepers

__all__ = ["node"]


def forgotten(node: Node, *path: str, is_keeper_killed: bool) -> None:
    """No runtime runs, and something of the folder is removed."""
    runtime = node.open.pop()
    runtime.close()
    if is_keeper_killed:
        for one in keepers(node):
            os.kill(one, signal.SIGKILL)
            until(lambda one=one: start_ticks(one) < 0)  # type: ignore[misc]
    gone = node.folder.joinpath(*path)
    if gone.is_dir():
        shutil.rmtree(gone)
    else:
        gone.unlink()


@pytest.mark.parametrize("is_keeper_killed", [False, True], ids=["kept", "orphaned"])
@pytest.mark.parametrize("what", ["all", "containers", "one", "started"])
def test_what_nobody_knows_any_more_is_ended(
    node: Node, caplog: pytest.LogCaptureFixture, what: str, is_keeper_killed: bool
) -> None:
    """Its pod would run a second time beside it; what others run, and what is known, goes on."""
    other = attrs.evolve(node, folder=node.folder.with_name("state-2"), open=[])
    elsewhere = started(other.runtime(), app())
    runtime = node.runtime()
    keeps, drops = sleeps(), sleeps()
    good = started(runtime, app())
    made = started(runtime, app("sh", "-c", f"env -i {drops} & exec {keeps}"))
    until(lambda: runs(keeps) and runs(drops))
    pid, goods = process(node, made), process(node, good)
    path = {"all": (), "containers": ("containers",), "one": ("containers", made)}
    forgotten(node, *path.get(what, ("containers", made, "started")), is_keeper_killed=is_keeper_killed)
    with caplog.at_level(logging.WARNING):
        later = node.runtime()
    is_one = what in {"one", "started"}
    assert not runs(keeps)
    assert not runs(drops)
    assert (start_ticks(goods) >= 0) is is_one
    (said,) = (one for one in caplog.messages if made in one)
    assert str(node.folder / "containers") in said
    assert str(pid) in said
    if is_one:
        assert report(later, good).record.state is RunState.RUNNING
    assert report(other.open[0], elsewhere).record.state is RunState.RUNNING
    other.open[0].stop_container(elsewhere, 0.0)
    other.open[0].close()


def test_what_nobody_knows_is_ended_though_few_files_may_be_open(node: Node) -> None:
    """Each process is held by a descriptor while it is ended: as many as can be had at a time."""
    runtime = node.runtime()
    words = sleeps()
    made = started(runtime, app("sh", "-c", f"for n in $(seq 60); do {words} & done; wait"))
    until(lambda: len(within(process(node, made))) == 61)
    pid = process(node, made)
    forgotten(node, is_keeper_killed=True)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    unused = [one for one in range(4096) if not Path(f"/proc/self/fd/{one}").exists()]
    resource.setrlimit(resource.RLIMIT_NOFILE, (unused[40], before[1]))
    try:
        node.runtime()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert within(pid) == frozenset()


def within(leader: int) -> frozenset[int]:
    """Live processes of a session."""
    found = {int(one.name): stat_fields(int(one.name)) for one in Path("/proc").glob("[0-9]*")}
    return frozenset(
        pid for pid, one in found.items() if one and one[0] not in "ZX" and int(one[3]) == leader
    )
