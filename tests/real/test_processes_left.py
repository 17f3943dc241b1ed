"""What an agent of the example that was killed, or whose disk is full, leaves in its folder."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from examples.processes._kept import start_ticks
from nodealloc.cgroups import CgroupName, detect
from nodealloc.runtime import RunState, RuntimeRefusedError
from tests.real.processes import Node, app, box, ended, node, report, started, until

__all__ = ["node"]


def test_what_a_killed_agent_had_half_written_goes_with_the_next(node: Node) -> None:
    """Files beside those that they were to become, and folders that were to go, were kept for ever."""
    first = node.runtime()
    made = started(first, app())
    first.close()
    node.open.remove(first)
    for path in ("sandboxes/.a.1", "sandboxes/.gone-a", "images/.b.2", "containers/.gone-c/made"):
        (node.folder / path).parent.mkdir(exist_ok=True)
        (node.folder / path).write_text("{")
    (node.folder / "images/.odd").symlink_to("/")
    later = node.runtime()
    assert [
        str(one) for kind in ("sandboxes", "images", "containers") for one in hidden(node.folder / kind)
    ] == []
    assert report(later, made).record.state is RunState.RUNNING


def hidden(folder: Path) -> list[Path]:
    """Names with a dot at start."""
    return [one for one in folder.iterdir() if one.name.startswith(".")]


def test_what_the_disk_refuses_is_refused_in_the_runtimes_words(node: Node, tmp_path: Path) -> None:
    """A file in place of a folder, or no room: it was an OSError, which tells nobody what was asked."""
    runtime = node.runtime()
    (tmp_path / "logs").write_text("")
    with pytest.raises(RuntimeRefusedError, match="logs"):
        runtime.run_sandbox(box(log_directory=str(tmp_path / "logs/pod")))
    assert runtime.listing().pods == {}
    (node.folder / "images").rmdir()
    (node.folder / "images").write_text("")
    with pytest.raises(RuntimeRefusedError, match="images"):
        runtime.pull_image("busybox")
    (node.folder / "images").unlink()
    (node.folder / "images").mkdir()
    assert runtime.pull_image("busybox")


def test_nobody_else_reads_what_containers_are_given(node: Node) -> None:
    """Their environments stand on disk, and hold what others on the machine are not to see."""
    runtime = node.runtime()
    made = started(runtime, app(env={"PASSWORD": "secret"}))
    file = node.folder / "containers" / made / "made"
    assert "secret" in file.read_text()
    assert oct(file.stat().st_mode & 0o777) == "0o600"


def test_whoever_has_a_session_of_another_boots_number_lives(node: Node) -> None:
    """Daemons often outlive who leads their session: they were taken for what a container left behind."""
    first = node.runtime()
    made = started(first, app())
    first.stop_container(made, 0.0)
    folder = node.folder / "containers" / made
    if first.confines:  # a reboot leaves none
        detect(node.tree).remove(CgroupName.parse(json.loads((folder / "made").read_text())["cgroup"]))
    first.close()
    node.open.remove(first)
    until(lambda: not (node.folder / "keeper.sock").exists())  # it leaves when nobody needs it
    words = ["sh", "-c", "sleep 1000 >&- & echo $!"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True) as leader:
        daemon = int(leader.communicate()[0])
    (folder / "ended").unlink()
    kept = json.loads((folder / "started").read_text())
    (folder / "started").write_text(json.dumps({**kept, "boot": "another", "pid": leader.pid}))
    held = os.pidfd_open(daemon)
    try:
        node.runtime()
        assert os.getsid(daemon) == leader.pid
        assert start_ticks(daemon) > 0, "it was ended"
    finally:
        signal.pidfd_send_signal(held, signal.SIGKILL)
        os.close(held)


@pytest.mark.parametrize("target", ["", "/dev/null", "gone"])
def test_what_stands_in_place_of_the_folder_of_logs_is_named(node: Node, tmp_path: Path, target: str) -> None:
    """A link to nowhere was told as `File exists`; one to a folder, such as another disk's, is followed."""
    runtime = node.runtime()
    logs = tmp_path / "logs"
    if target:
        logs.symlink_to(target)
    else:
        logs.write_text("")
    where = box(log_directory=str(logs / "pod"))
    said = f"{logs} is a link to {target}, which is no folder" if target else f"{logs} is no folder"
    with pytest.raises(RuntimeRefusedError, match=re.escape(f"{said}; move it away")):
        runtime.run_sandbox(where)
    logs.unlink()
    (tmp_path / "disk").mkdir()
    logs.symlink_to(tmp_path / "disk")
    ended(runtime, started(runtime, app("echo", "here", log_path="app.log"), where))
    assert (tmp_path / "disk/pod/app.log").read_text() == "here\n"
