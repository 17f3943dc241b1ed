"""What an operator on a broken node sees."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nodealloc._cli import main
from nodealloc.checkpoint import (
    KUBELET_FORMATS,
    FileStore,
    Identity,
    JsonCheckpoint,
    Since,
    SqliteStore,
    inspect,
    row_key,
    stored_identity,
)


@pytest.fixture
def node(tmp_path: Path, vectors: Path) -> Path:
    """A kubelet's root directory with genuine state files and a file that is none."""
    root = tmp_path / "kubelet"
    (root / "device-plugins").mkdir(parents=True)
    for name in ("cpu_manager_state", "memory_manager_state"):
        (root / name).write_bytes((vectors / "state_files" / f"four-nodes.{name}").read_bytes())
    devices = (vectors / "state_files" / "four-nodes.kubelet_internal_checkpoint").read_bytes()
    (root / "device-plugins" / "kubelet_internal_checkpoint").write_bytes(devices)
    (root / "config.yaml").write_text("kind: KubeletConfiguration\n")
    return root


@pytest.mark.parametrize("action", [["show"], ["verify"], ["convert", "x"]])
def test_an_empty_path_is_none(action: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """It was the directory in which the process happens to be."""
    with pytest.raises(SystemExit) as ended:
        main(["checkpoint", *action, ""])
    assert ended.value.code == 2
    assert "a path is expected, found an empty text" in capsys.readouterr().err


def test_show_lists_what_everybody_holds(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Contents of all three files as one table."""
    assert main(["checkpoint", "show", str(node)]) == 0
    shown = capsys.readouterr().out
    rows = [line.split(None, 3) for line in shown.splitlines()]
    assert rows[0] == ["KEY", "OWNER", "RESOURCE", "VALUE"]
    assert ["cpu_manager_state", "g1/c", "cpu", "2-3"] in rows
    assert "128 MiB on nodes 1" in shown
    assert "A1 on node 1" in shown
    assert "config.yaml" not in shown


def test_verify_names_both_checksums(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong checksum is shown beside the right one, and the exit status is 1."""
    assert main(["checkpoint", "verify", str(node)]) == 0
    state = node / "cpu_manager_state"
    state.write_bytes(state.read_bytes().replace(b"2-3", b"2-4"))
    (node / "memory_manager_state").write_bytes(b"")
    assert main(["checkpoint", "verify", str(node)]) == 1
    shown = capsys.readouterr().out
    line = next(line for line in shown.splitlines() if "disagree" in line)
    assert "DAMAGED" in line
    assert "51798163" in line
    assert "3" in line.split()[3]
    assert line.split()[2] != line.split()[3]
    assert "nothing is stored @ character 0" in shown
    assert main(["checkpoint", "show", str(node)]) == 1
    assert "DAMAGED cpu" in capsys.readouterr().out


def test_verify_tells_what_has_no_checksum(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Checksum 0 is accepted, and said to be unchecked."""
    path = tmp_path / "cpu_manager_state.old"
    path.write_bytes(b'{"policyName":"none","defaultCpuSet":"0","checksum":0}')
    assert main(["checkpoint", "verify", str(path)]) == 0
    assert "unchecked" in capsys.readouterr().out


def test_strangers_beside_a_store_are_not_damage(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Only what the owner's formats name belongs to a store."""
    FileStore(node, KUBELET_FORMATS).close()
    assert main(["checkpoint", "verify", str(node)]) == 0
    assert "config.yaml" not in capsys.readouterr().out


@pytest.mark.parametrize("path", ["absent", "empty"])
def test_nothing_there_is_no_success(tmp_path: Path, path: str) -> None:
    """An absent path is bad input, an empty directory holds nothing."""
    (tmp_path / "empty").mkdir()
    assert main(["checkpoint", "verify", str(tmp_path / path)]) == (2 if path == "absent" else 1)


def test_convert_goes_round(node: Path, tmp_path: Path) -> None:
    """Kubelet to SQLite to files to kubelet gives the bytes of the beginning."""
    steps = [node, tmp_path / "state.db", tmp_path / "files", tmp_path / "back"]
    (tmp_path / "back").mkdir()
    for source, target, to in zip(steps, steps[1:], ("sqlite", "files", "kubelet"), strict=False):
        assert main(["checkpoint", "convert", str(source), str(target), "--to", to]) == 0
        assert main(["checkpoint", "verify", str(target)]) == 0
    assert stored_identity(node) is None
    for name in ("cpu_manager_state", "memory_manager_state", "device-plugins/kubelet_internal_checkpoint"):
        assert (tmp_path / "back" / name).read_bytes() == (node / name).read_bytes()


def test_a_file_that_is_too_large_is_not_read_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Looking at a folder took as much memory as the largest file in it has bytes."""
    file = tmp_path / "cpu_manager_state"
    with file.open("wb") as opened:
        opened.truncate(1 << 40)
    assert main(["checkpoint", "verify", str(tmp_path)]) == 1
    assert "unreadable: more than 256 MiB are no checkpoint" in capsys.readouterr().out
    (finding,) = inspect(file)
    assert not finding.is_good


def test_convert_keeps_who_wrote(tmp_path: Path) -> None:
    """A reboot, or another machine, between the last commit and the first start there is told as one."""
    formats = {"row.*": JsonCheckpoint.unmarshal}
    then = Identity(boot_id="1", machine="a")
    with FileStore(tmp_path / "files", formats, identity=then) as store:
        store.commit({"row.1": JsonCheckpoint(kind="row", version=1, value=1)})
    for source, target, to in (("files", "state.db", "sqlite"), ("state.db", "again", "files")):
        command = ["checkpoint", "convert", str(tmp_path / source), str(tmp_path / target), "--to", to]
        assert main(command) == 0
        assert stored_identity(tmp_path / target) == then
    later = Identity(boot_id="2", machine="a")
    with FileStore(tmp_path / "again", formats, identity=later) as store:
        assert store.read().since is Since.REBOOT
        assert store.read().writer == then
    (tmp_path / "again" / ".nodealloc.identity").write_bytes(b"torn")
    assert stored_identity(tmp_path / "again") is None


@pytest.mark.parametrize(("kind", "name"), [(FileStore, "files"), (SqliteStore, "state.db")])
def test_convert_refuses_a_store_that_an_agent_has(
    kind: type[FileStore | SqliteStore], name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would go on granting, and whoever opened the copy would grant the same again."""
    command = ["checkpoint", "convert", str(tmp_path / name), str(tmp_path / "copy")]
    with kind(tmp_path / name, {"row.*": JsonCheckpoint.unmarshal}) as store:
        store.commit({"row.1": JsonCheckpoint(kind="row", version=1, value=1)})
        assert main(command) == 2
        assert f"held by process {os.getpid()}; end it" in capsys.readouterr().err
        assert not (tmp_path / "copy").exists()
    assert main(command) == 0


def test_convert_refuses_damage_and_full_targets(node: Path, tmp_path: Path) -> None:
    """Nothing is overwritten, and nothing damaged is copied or left behind silently."""
    target = tmp_path / "files"
    (node / "cpu_manager_state").write_bytes(b"{}")
    assert main(["checkpoint", "convert", str(node), str(target)]) == 1
    assert not target.exists()
    assert main(["checkpoint", "convert", str(node), str(target), "--skip-damaged"]) == 0
    assert {finding.key for finding in inspect(target)} == set(KUBELET_FORMATS) - {"cpu_manager_state"}
    assert main(["checkpoint", "convert", str(node), str(target), "--skip-damaged"]) == 1


def test_convert_refuses_half_a_commit_whatever_is_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Some of its rows stand already and some do not: the copy would grant what nobody decided."""
    source, target = tmp_path / "files", tmp_path / "copy"
    with FileStore(source, {"row.*": JsonCheckpoint.unmarshal}) as store:
        store.commit({"row.1": JsonCheckpoint(kind="row", version=1, value=1)})
    command = ["checkpoint", "convert", str(source), str(target), "--skip-damaged"]
    (source / ".nodealloc.commit").write_bytes(b"")
    assert main(command) == 1
    assert "open the store once, or start its agent, and convert it then" in capsys.readouterr().err
    assert not target.exists()
    FileStore(source, {"row.*": JsonCheckpoint.unmarshal}).close()
    assert main(command) == 0


def test_rows_and_what_was_set_aside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Records are shown, control characters are not sent to the terminal, damage stays visible."""
    formats = {"pod.*": JsonCheckpoint.unmarshal}
    key = row_key("pod", "a/b")
    record = JsonCheckpoint(kind="pod", version=1, value={"name": "\x1b[31m", "cpus": "2-3"})
    for store, path in ((FileStore, tmp_path / "files"), (SqliteStore, tmp_path / "state.db")):
        with store(path, formats) as opened:
            opened.commit({key: record, "pod.b": record})
        assert main(["checkpoint", "show", str(path)]) == 0
        shown = capsys.readouterr().out
        assert "cpus      2-3" in shown
        assert "\x1b" not in shown
    (tmp_path / "files" / key).write_bytes(b"torn")
    FileStore(tmp_path / "files", formats).close()
    assert main(["checkpoint", "verify", str(tmp_path / "files")]) == 1
    assert "set aside" in capsys.readouterr().out


def test_a_terminal_without_unicode_shows_what_it_can(tmp_path: Path) -> None:
    """A value may hold any character; it is replaced, not refused."""
    store = FileStore(tmp_path, {"*": JsonCheckpoint.unmarshal})
    store.commit({"job": JsonCheckpoint(kind="job", version=1, value="ä→" * 200)})
    store.close()
    done = subprocess.run(
        [sys.executable, "-m", "nodealloc", "checkpoint", "show", str(tmp_path)],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b'"????' in done.stdout
