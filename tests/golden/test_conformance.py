"""Every recorded decision, replayed by the public runner; and what the runner does with junk."""

from __future__ import annotations

import gzip
import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from nodealloc.errors import DecodeError
from nodealloc.testing.conformance import (
    KINDS,
    NoRoomError,
    Row,
    UnknownKindError,
    answer_for,
    files_of,
    kind_of,
    read_machines,
    read_rows,
    replay,
    replay_file,
)

RECORDED = {
    "admission": 200,
    "admit_predicates": 790,
    "apparmor_admit": 200,
    "cgroup": 1000,
    "checkpoint_files": 750,
    "container_gc": 200,
    "container_kill_grace": 200,
    "cpu_hints": 800,
    "cpuset": 816,
    "critical_preemption": 250,
    "device_hints": 800,
    "image_gc": 250,
    "memory_qos_swap": 300,
    "merge": 3000,
    "pleg": 400,
    "pod_actions": 1200,
    "pod_container_deletor": 150,
    "pod_phase_status": 800,
    "pod_qos": 500,
    "pod_source_updates": 200,
    "pod_workers": 250,
    "probe_worker": 400,
    "quantity": 440,
    "restart_backoff": 100,
    "sandbox_changed": 200,
    "status_merge": 300,
    "sysctl_allowlist": 300,
    "take_cpus": 2500,
    "termination_order": 100,
}
"""Kind to how many rows of it were recorded, 17,396 in all."""


@pytest.mark.parametrize("kind", sorted(RECORDED))
def test_every_recorded_decision_is_made_again(kind: str, vectors: Path) -> None:
    """All rows of a kind pass."""
    outcome = replay_file(vectors / f"{kind}.jsonl.gz")
    assert outcome.differences[:3] == ()
    assert outcome.passed == RECORDED[kind]


def test_every_kind_was_recorded(vectors: Path) -> None:
    """A new kind comes with its rows; what a package answers is counted above."""
    assert sorted(RECORDED) == sorted(kind for kind, module in KINDS.items() if module)
    there = {kind_of(path) for path in files_of(vectors) if path.name != "machines.jsonl.gz"}
    assert there == set(KINDS)


@pytest.mark.tree
def test_every_kind_stands_on_the_page() -> None:
    """The reference names all kinds, those that are answered with what a row says, and the machines."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "conformance.md").read_text(encoding="utf-8")
    rows = {line.split("`")[1] for line in page.splitlines() if line.startswith("| `")}
    assert rows == {*RECORDED, "machines"}
    assert [kind for kind in KINDS if f"`{kind}`" not in page] == []


@pytest.mark.parametrize("kind", sorted(kind for kind, module in KINDS.items() if module is None))
def test_a_kind_without_a_package_is_refused_by_name(kind: str) -> None:
    """Nothing stands in for an answer that is not there yet; a function of one's own can be checked."""
    with pytest.raises(NoRoomError, match=f"^{kind}: no package"):
        answer_for(kind)
    assert replay(kind, [{"id": 1}], lambda row, _: (row["id"], 1)).passed == 1


def test_an_unknown_kind_is_refused_with_the_list() -> None:
    """Neither a replay nor a search for its function goes on with a kind that was never recorded."""
    for call in (lambda: replay("take_cpu", [], lambda *_: (1, 1)), lambda: answer_for("take_cpu")):
        with pytest.raises(UnknownKindError, match=r"did you mean take_cpus\? The kinds are .*quantity"):
            call()
    with pytest.raises(UnknownKindError, match=r"rows; The kinds"):
        answer_for("")


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Call the public command."""
    command = [sys.executable, "-m", "nodealloc.testing.conformance", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command_counts_and_shows_differences(tmp_path: Path) -> None:
    """A wrong row is counted, shown as input, expected and got, and ends in status 1."""
    rows = [
        {"in": "1", "error": False, "canonical": "1", "value": 1, "milli_value": 1000},
        {"in": "1", "error": True},
    ]
    path = tmp_path / "quantity.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run(path, "--show", "1")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0] == "quantity: 1 passed, 1 failed"
    assert lines[-1] == "1 passed, 1 failed"
    assert any(line.strip().startswith("expected: ") for line in lines)


def test_the_command_passes_recorded_files(vectors: Path) -> None:
    """Plain success is status 0, and the machines beside need no naming."""
    done = run(vectors / "quantity.jsonl.gz", vectors / "machines.jsonl.gz")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "440 passed, 0 failed")


def test_machines_may_lie_elsewhere(tmp_path: Path, vectors: Path) -> None:
    """The command is told where; in Python they are an argument."""
    machines = read_machines(vectors / "machines.jsonl.gz")
    row = next(read_rows(vectors / "take_cpus.jsonl.gz"))
    assert replay("take_cpus", [row], answer_for("take_cpus"), machines).passed == 1
    path = tmp_path / "take_cpus.jsonl"
    path.write_text(json.dumps(row))
    assert run(path).returncode == 1
    assert run(path, "--machines", vectors / "machines.jsonl.gz").returncode == 0


def test_a_machine_without_a_name_is_said(tmp_path: Path, vectors: Path) -> None:
    """With its line; the command goes on, and ends with its counts."""
    path = tmp_path / "machines.jsonl"
    path.write_text('{"name": "small"}\n{"cpus": []}\n')
    done = run(vectors / "take_cpus.jsonl.gz", vectors / "quantity.jsonl.gz", "--machines", path)
    assert (done.returncode, done.stdout) == (1, "0 passed, 0 failed\n")
    assert done.stderr.splitlines() == [
        *[f"{path}: a machine without a name @ line 2"] * 2,
        "2 paths were not replayed",
    ]


def test_a_machine_that_no_file_has_is_said(vectors: Path) -> None:
    """Each row that speaks of it says where machines are to be named."""
    row = next(read_rows(vectors / "take_cpus.jsonl.gz"))
    (difference,) = replay("take_cpus", [row], answer_for("take_cpus")).differences
    assert difference.got == (
        f"LookupError: no machine {row['machine']!r} was read; name the file that has it (--machines)"
    )


def test_kinds_without_a_package_are_skipped_by_name(vectors: Path) -> None:
    """One line says so, and what was skipped counts neither as passed nor as failed."""
    done = run(
        vectors / "eviction_trace_2.jsonl.gz", vectors / "shutdown.jsonl.gz", vectors / "quantity.jsonl.gz"
    )
    assert done.stdout.splitlines() == [
        "eviction_trace_2: skipped, no package answers rows of the kind eviction_trace yet",
        "shutdown: skipped, no package answers rows of the kind shutdown yet",
        "quantity: 440 passed, 0 failed",
        "440 passed, 0 failed",
    ]
    assert (done.returncode, done.stderr) == (0, "")


def test_a_directory_stands_for_its_files(tmp_path: Path) -> None:
    """All files of rows in it are replayed in the order of names; files of other kinds are told."""
    row = {"in": "1", "error": False, "canonical": "1", "value": 1, "milli_value": 1000}
    for name in ("quantity_2.jsonl", "quantity_1.jsonl", "weather.jsonl"):
        (tmp_path / name).write_text(json.dumps(row))
    (tmp_path / "README.md").write_text("no rows")
    done = run(tmp_path)
    assert done.stdout.splitlines() == [
        "quantity_1: 1 passed, 0 failed",
        "quantity_2: 1 passed, 0 failed",
        "2 passed, 0 failed",
    ]
    assert done.returncode == 1
    assert str(tmp_path / "weather.jsonl") in done.stderr


def test_a_directory_without_rows_is_said(tmp_path: Path) -> None:
    """An empty directory is no success, and in Python a directory is no file."""
    done = run(tmp_path)
    assert (done.returncode, done.stdout) == (1, "0 passed, 0 failed\n")
    assert "holds no recorded rows" in done.stderr
    with pytest.raises(DecodeError, match="is a directory"):
        replay_file(tmp_path)


@pytest.mark.parametrize("name", ["quantity.jsonl", "quantity.jsonl.gz"])
def test_a_file_without_rows_is_said(tmp_path: Path, name: str) -> None:
    """One that was cut off as it was fetched is no success either: nothing of it was compared."""
    (tmp_path / name).write_bytes(b"")
    done = run(tmp_path / name)
    assert (done.returncode, done.stdout) == (1, "0 passed, 0 failed\n")
    assert "holds no rows" in done.stderr


def test_an_unknown_kind_is_said_and_fails(tmp_path: Path) -> None:
    """A file whose name says no kind is status 1, and the kinds are listed; so is what is absent."""
    weather = tmp_path / "weather.jsonl"
    done = run(weather)
    assert (done.returncode, "nothing is there" in done.stderr) == (1, True)
    weather.touch()
    done = run(weather)
    assert (done.returncode, "quantity" in done.stderr) == (1, True)


@pytest.mark.parametrize("content", [b"{", b"[1]\n", b"\xff\xfe", b"[" * 100_000])
def test_junk_is_named_with_its_line(tmp_path: Path, content: bytes) -> None:
    """A line that is no JSON object is named with its number."""
    path = tmp_path / "merge.jsonl"
    path.write_bytes(content)
    with pytest.raises(DecodeError, match="line 1"):
        list(read_rows(path))


def test_a_broken_archive_is_named(tmp_path: Path) -> None:
    """A cut gzip file and an absent one are errors that name the file."""
    path = tmp_path / "merge.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"a": 1}\n' * 1000)[:-20])
    for broken in (path, tmp_path / "absent.jsonl"):
        with pytest.raises(DecodeError, match="cannot be read"):
            list(read_rows(broken))


def test_a_port_that_raises_differs() -> None:
    """An error of the port under test is its answer, and the replay goes on."""

    def port(row: Row, _machines: object) -> tuple[int, int]:
        if not row["n"]:
            raise LookupError("nothing is there")
        return 1, 1

    outcome = replay("merge", [{"n": 0}, {"n": 1}], port)
    assert (outcome.passed, outcome.differences[0].got) == (1, "LookupError: nothing is there")


def test_the_kind_is_the_name_before_the_suffix() -> None:
    """Plain and gzip files say their kind alike."""
    assert kind_of(Path("a/take_cpus.jsonl")) == kind_of(Path("take_cpus.jsonl.gz")) == "take_cpus"
    assert kind_of(Path("merge.of-today.jsonl")) == "merge"


def test_a_number_at_the_end_of_a_name_is_no_part_of_the_kind() -> None:
    """Files that were cut into parts are of one kind; a name that is not of rows has none."""
    assert kind_of(Path("eviction_trace_1.jsonl.gz")) == kind_of(Path("eviction_trace_12.jsonl"))
    for other in ("quantity.json", "1.jsonl", "eviction_trace_1b.jsonl", "quantity"):
        with pytest.raises(DecodeError, match="no kind of recorded rows"):
            kind_of(Path(other))


EXPECTED = frozenset(
    {"want", "calls", "requeued", "woken", "notified", "known_pods", "mirror_terminating", "cached"}
    | {"signalled", "synced", "api", "events", "inspected", "cache", "healthy", "notifications"}
)
"""What rows expect, by its name; so are `pods` by uid, while a list of them is an input."""
ZEROS = frozenset({"attempt", "restart_count", "created_at"})


def says_nothing(name: str, value: Any) -> bool:
    """Whether an input is not set, false, without elements, or none of what is counted."""
    if value is False:
        return name not in {"started", "ready"}
    return value is None or (value == [] and name != "container_statuses") or (value == 0 and name in ZEROS)


def stripped(value: Any, name: str = "") -> Any:
    """A row without inputs that say nothing."""
    if name in EXPECTED or (name == "pods" and isinstance(value, dict)):
        return value
    if isinstance(value, list):
        return [stripped(one) for one in value]
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value).items()
        return {
            key: stripped(one, key) for key, one in fields if key in EXPECTED or not says_nothing(key, one)
        }
    return value


@pytest.mark.parametrize(
    "kind",
    [
        "container_kill_grace",
        "pleg",
        "pod_actions",
        "pod_phase_status",
        "pod_source_updates",
        "pod_workers",
        "probe_worker",
        "restart_backoff",
        "sandbox_changed",
        "status_merge",
        "termination_order",
    ],
)
def test_a_field_that_is_absent_says_nothing(kind: str, vectors: Path) -> None:
    """As their description has it: rows that leave out what is empty are answered alike."""
    rows = list(itertools.islice(read_rows(vectors / f"{kind}.jsonl.gz"), 40))
    assert replay(kind, [stripped(row) for row in rows], answer_for(kind)).differences == ()


def test_a_pod_of_which_nothing_is_known_has_no_phase(vectors: Path) -> None:
    """A probe waits for what is known, whatever stands beside it in the row."""
    rows = (one for one in read_rows(vectors / "probe_worker.jsonl.gz"))
    ticks = next(
        one for row in rows for one in cast("list[Any]", row["ticks"]) if not one.get("pod_status_known")
    )
    probe = {"period": 1, "success_threshold": 1, "failure_threshold": 3}
    pod: dict[str, Any] = {"uid": "u", "name": "p", "namespace": "n", "restart_policy": "Always"}
    pod["containers"] = [{"name": "app", "liveness_probe": probe}]
    row: dict[str, Any] = {"id": 0, "pod": pod, "container": "app", "probe": "liveness"}
    row["ticks"] = [{**ticks, "phase": "Failed", "want": {**ticks["want"], "goes_on": True}}]
    assert replay("probe_worker", [row], answer_for("probe_worker")).differences == ()


def test_images_that_cannot_be_listed_are_an_error() -> None:
    """Nothing is removed then, and nothing told; what the policy is refused for comes first."""
    row: dict[str, Any] = {"id": "ig", "op": "collect", "list_fails": True, "min_age": 0, "max_age": 0}
    row |= {
        "images": [],
        "high_threshold_percent": 85,
        "low_threshold_percent": 80,
        "capacity": 1,
        "available": 0,
    }
    fails: dict[str, Any] = {"removed": [], "events": [], "error": True}
    rows = [
        {**row, **fails, "stage": "run"},
        {**row, "low_threshold_percent": 90, "error": True, "stage": "configure"},
    ]
    assert replay("image_gc", rows, answer_for("image_gc")).differences == ()


def test_what_a_container_waited_for_others_is_counted_in_tenths_of_a_second() -> None:
    """From 1.3 s to 2.3 s one whole second goes by, though the two differ by less in binary."""
    hook = {"name": "app-0", "pre_stop_seconds": 2.3}
    sidecar = {"name": "side-0", "pre_stop_seconds": 1.3, "restartable": True}
    pod = {"uid": "u", "name": "p", "namespace": "n", "containers": [hook], "init_containers": [sidecar]}
    told = {"at": 2.3, "timeout": 2, "killed": False}
    row: dict[str, Any] = {
        "pod": {**pod, "termination_grace_seconds": 4},
        "running": ["app-0", "side-0"],
        "exit_seconds": {"app-0": 0, "side-0": 1.3},
        "want": {
            "stops": [
                {**told, "name": "app-0", "stopped_at": 2.3},
                {**told, "name": "side-0", "stopped_at": 3.6},
            ],
            "sandbox_stopped_at": 3.6,
        },
    }
    assert replay("termination_order", [row], answer_for("termination_order")).differences == ()


def test_a_row_without_what_its_kind_is_about_passes_nowhere() -> None:
    """Junk is no decision that was answered as recorded."""
    passed = {
        kind
        for kind, module in KINDS.items()
        if module is not None and replay(kind, [{"id": 0}], answer_for(kind)).passed
    }
    assert passed == set()
