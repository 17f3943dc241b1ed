"""The file of lines, where its disk or what stands in its place is not as it should be."""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodealloc.podfacts import PodStatus
from nodealloc.podspec import Container, Pod
from nodealloc.podstatus import FolderSink, JsonLinesSink

POD = Pod(uid="u", name="n", containers=(Container(name="c"),))
ROOM_BYTES = 1000


@pytest.fixture
def little_room() -> Iterator[None]:
    """Files that cannot grow beyond a length, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM_BYTES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("little_room")
def test_what_was_not_told_is_not_written_later(tmp_path: Path) -> None:
    """Without room each line is an error and gone with it; one that was cut short spoils no other."""
    path = tmp_path / "lines"
    sink, told = JsonLinesSink(path, {"u": POD}.get), list[str]()

    def tell(word: str) -> bool:
        try:
            sink.told("u", PodStatus(message=word))
        except OSError:
            return False
        told.append(word)
        return True

    assert [tell(f"before {number}") for number in range(50)].count(True) in range(2, 20)
    os.truncate(path, path.read_bytes().index(b"}\n") + 10)  # the first line and a piece: there is room again
    del told[1:]
    assert tell("after")
    sink.close()
    lines = path.read_text().splitlines()
    found = [line for line in lines if line.endswith("}")]
    assert [json.loads(line)["status"]["message"] for line in found] == told
    assert len(lines) - len(found) <= 2


def test_a_pipe_that_nobody_reads_is_refused(tmp_path: Path) -> None:
    """Whoever starts is told so, and does not wait for a reader."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(OSError, match="No such device"):
        JsonLinesSink(path, {"u": POD}.get)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    sink = JsonLinesSink(path, {"u": POD}.get)
    sink.gone("u")
    sink.close()
    assert json.loads(os.read(reader, 4096))["status"] is None
    os.close(reader)


@pytest.mark.parametrize("how", ["moved", "removed", "replaced"])
def test_lines_go_where_the_path_leads(tmp_path: Path, how: str) -> None:
    """A file that was turned over is read by its path: nobody would find what goes on into the old one."""
    path, moved = tmp_path / "lines", tmp_path / "lines.1"
    sink = JsonLinesSink(path, {"u": POD}.get)
    sink.told("u", PodStatus(message="first"))
    before = path.read_bytes()
    if how == "removed":
        path.unlink()
    else:
        path.rename(moved)
    if how == "replaced":
        path.write_bytes(b'{"cut')
    sink.told("u", PodStatus(message="second"))
    sink.told("u", PodStatus(message="third"))
    sink.close()
    lines = [line for line in path.read_text().splitlines() if line and line != '{"cut']
    assert [json.loads(line)["status"]["message"] for line in lines] == ["second", "third"]
    assert how == "removed" or moved.read_bytes() == before


def test_a_file_that_cannot_be_made_anew_is_an_error_until_it_can(tmp_path: Path) -> None:
    """Whoever hears of it tells anew."""
    (tmp_path / "folder").mkdir()
    path = tmp_path / "folder" / "lines"
    sink = JsonLinesSink(path, {"u": POD}.get)
    (tmp_path / "folder").rename(tmp_path / "away")
    with pytest.raises(OSError, match=f"No such file or directory: '{path}'"):
        sink.told("u", PodStatus(message="lost"))
    (tmp_path / "away").rename(tmp_path / "folder")
    sink.told("u", PodStatus(message="told"))
    sink.close()
    assert json.loads(path.read_text())["status"]["message"] == "told"


def test_a_full_disk_is_told_with_the_file() -> None:
    """A bare `No space left on device` does not say whose."""
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        JsonLinesSink("/dev/full", {"u": POD}.get)


@pytest.mark.usefixtures("little_room")
def test_a_full_disk_is_told_with_the_file_of_a_folder(tmp_path: Path) -> None:
    """The pod's, not the one that would have taken its place."""
    sink = FolderSink(tmp_path)
    with pytest.raises(OSError, match=f"File too large: '{sink.path('u')}'"):
        sink.told("u", PodStatus(message="x" * ROOM_BYTES))
    assert list(tmp_path.iterdir()) == []
