"""The termination messages of ended containers come with their exits."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from nodealloc.cri import last_output
from nodealloc.podfacts import Exited
from nodealloc.podlife import (
    ImageFacts,
    NodeSettings,
    PodFiles,
    TerminationMessages,
    container_config,
    sandbox_config,
)
from nodealloc.podspec import Container, MessagePolicy, Pod
from nodealloc.runtime import Exit, Looks, PodListing, PodReport
from nodealloc.testing.runtime import FakeContainerRuntime

VECTORS = Path(__file__).parents[2] / "vectors"
LINE = b"2026-01-02T03:04:05.000000001Z stdout %s %s\n"
LOG = b"".join(LINE % part for part in ((b"P", b"o"), (b"F", b"ne"), (b"F", b"two")))


class Logging(FakeContainerRuntime):
    """A runtime that says where logs are."""

    def inspect(self, uid: str, listed: PodListing | None = None, /) -> PodReport:
        """With a log for each container."""
        report = super().inspect(uid, listed)
        logged = (attrs.evolve(one, log_path="/log") for one in report.containers)
        return attrs.evolve(report, containers=tuple(logged))


def told(
    folder: Path,
    how: Exit,
    *,
    policy: MessagePolicy = MessagePolicy.FILE,
    leave: Callable[[Path], object] = lambda file: file.write_bytes(b""),
    log: bytes | None = None,
) -> str:
    """The message of a container that left this and ended so."""
    node = NodeSettings(name="n1", memory_capacity_bytes=1 << 30, pods_directory=str(folder / "pods"))
    app = Container(name="app", image="busybox", termination_message_policy=policy)
    pod = Pod(uid="u", name="web", containers=(app,))
    runtime = Logging()
    image = ImageFacts(id=next(iter(runtime.image_store)))
    config = container_config(pod, app, attempt=0, image=image, node=node)
    box = sandbox_config(pod, attempt=0, node=node)
    made = runtime.create_container(runtime.run_sandbox(box), config, box)
    PodFiles().make(pod, app, 0, node=node, hosts="")
    leave(Path(config.mounts[-1].host_path))
    runtime.start_container(made)
    runtime.exit(made, how)
    (folder / "log").write_bytes(log or b"")
    words: Looks = TerminationMessages(
        runtime, node, output=lambda path: last_output(f"{folder}{path}") if log else b""
    )
    (one,) = words.inspect("u").containers
    assert one.exit == how
    return one.message


def story(name: str) -> str:
    """The message that users of a recorded story saw."""
    with gzip.open(VECTORS / "kubelet_stories.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    states = next(row for row in rows if row["id"] == 84)["seen"]["pods"][name]["states"]
    ends = [one for state in states for one in state["containers"].values() if one["state"] == "terminated"]
    return next(str(one["message"]) for one in ends if one.get("message"))


@pytest.mark.parametrize("code", [0, 1])
def test_words_in_the_file_are_told_as_recorded(tmp_path: Path, code: int) -> None:
    """Whatever the exit."""
    said = told(tmp_path, Exited(code=code), leave=lambda file: file.write_bytes(b"done\n"))
    assert said == story("file-n1")


def test_output_stands_in_after_a_failure_as_recorded(tmp_path: Path) -> None:
    """For those that ask for it and left no words; partial lines are put together."""
    asks, bad = MessagePolicy.FALLBACK_TO_LOGS_ON_ERROR, Exited(code=2)
    assert told(tmp_path, bad, policy=asks, log=LOG) == story("fallback-n1")
    assert told(tmp_path, Exited(code=0), policy=asks, log=LOG) == ""
    assert told(tmp_path, bad, policy=asks, log=LOG, leave=lambda file: file.write_bytes(b"mine")) == "mine"
    (tmp_path / "pods" / "u" / "containers" / "app" / "0").unlink()
    assert told(tmp_path, bad, log=LOG) == ""


def test_words_that_cannot_be_read_say_so(tmp_path: Path) -> None:
    """A link in place of the file leads nowhere, and the exit is told all the same."""

    def swap(file: Path) -> None:
        file.unlink()
        file.symlink_to("/etc/passwd")

    assert told(tmp_path, Exited(code=1), leave=swap).startswith("its termination message cannot be read")


def test_a_file_that_is_gone_leaves_no_words(tmp_path: Path) -> None:
    """The pod's folder was cleared away, or another program ran the container."""
    assert told(tmp_path, Exited(code=1), leave=Path.unlink) == ""


def test_the_end_of_a_long_log_is_read(tmp_path: Path) -> None:
    """Whole lines of it, whatever its size; without a log there is no output."""
    path = tmp_path / "log"
    assert last_output(path) == b""
    path.write_bytes(b"".join(LINE % (b"F", b"%06d" % number) for number in range(10_000)))
    found = last_output(path).splitlines()
    assert len(found) > 80
    assert found == [b"%06d" % number for number in range(10_000 - len(found), 10_000)]
