"""What users of a kubelet would rather not have, seen not to happen: a whole agent on a folder of manifests.

The numbers are lines of docs/explanation/habits.md, which names the tests of single packages, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from nodealloc.podfacts import ConditionStatus, Exited, PodIdentity, PodPhase, PodStatus
from nodealloc.podsources import FolderSource, Source
from nodealloc.runtime import CommandResult, ContainerConfig, RunState, SandboxConfig
from tests.unit.agent.test_agent import Node

ROOT = Path(__file__).parents[3]
PROBE = {"exec": {"command": ["probe"]}, "periodSeconds": 1, "failureThreshold": 100}


def manifest(
    name: str = "p",
    *,
    spec: Mapping[str, object] | None = None,
    uid: str | None = None,
    labels: Mapping[str, str] | None = None,
    **container: object,
) -> dict[str, object]:
    """A pod of one container, unless its spec says otherwise."""
    metadata: dict[str, object] = {"name": name, "labels": dict(labels or {})}
    if uid is not None:
        metadata["uid"] = uid
    app: dict[str, object] = {"name": "app", "image": "busybox", **container}
    whole: dict[str, object] = {"containers": [app], "terminationGracePeriodSeconds": 5, **(spec or {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": whole}


class Folder(Node):
    """A node whose pods come from files."""

    def __init__(self, folder: Path) -> None:
        self.static = folder / "static"
        self.static.mkdir()
        super().__init__(folder / "store")

    def origins(self) -> dict[str, Source]:
        """The folder."""
        return {"file": FolderSource(self.static, settle_s=0.0, clock=self.clock)}

    def write(self, name: str = "p", *, file: str = "", **fields: Any) -> None:
        """A manifest, as a whole; see `manifest`."""
        aside = self.static / ".new"
        aside.write_text(json.dumps(manifest(name, **fields)))
        aside.rename(self.static / f"{file or name}.json")

    def rename(self, old: str, new: str) -> None:
        """One file under another name."""
        (self.static / old).rename(self.static / new)

    def runs(self) -> dict[str, str]:
        """`pod/container#attempt` of what runs, to its id."""
        return {
            f"{one.pod.name}/{one.name}#{one.attempt}": one.id
            for pod in self.runtime.listing().pods.values()
            for one in pod.containers
            if one.state is RunState.RUNNING
        }

    def started(self) -> int:
        """How many containers were started."""
        return sum(one.startswith("start_container") for one in self.runtime.calls)

    def told(self, since: int = 0) -> list[PodStatus]:
        """Statuses that were told of any pod."""
        return [status for _, status in self.sink.calls[since:] if status is not None]

    def ready(self, since: int = 0) -> set[bool]:
        """Whether pods were told to be ready."""
        return {_is_ready(status) for status in self.told(since)}


def _is_ready(status: PodStatus) -> bool:
    return any(one.type == "Ready" and one.status is ConditionStatus.TRUE for one in status.conditions)


@pytest.fixture
def node(tmp_path: Path) -> Folder:
    """An empty one."""
    return Folder(tmp_path)


def test_1_a_ready_pod_stays_ready_over_an_agents_restart(node: Folder) -> None:
    """With startup and readiness probes; nobody is told otherwise, whenever the agent is killed."""
    node.write(startupProbe=PROBE, readinessProbe=PROBE)
    node.after(5)
    assert _is_ready(node.told()[-1])
    for wait_s in (0.25, 1.0, 3.0):
        told = len(node.sink.calls)
        node.kill()
        node.after(wait_s)
        assert node.ready(told) <= {True}
    assert _is_ready(node.told()[-1])


def test_1_a_pod_that_was_never_ready_is_not_ready_over_an_agents_restart(node: Folder) -> None:
    """Its startup probe has not passed: not for a moment."""
    node.runtime.commands = lambda _id, _command: CommandResult(code=1)
    node.write(startupProbe=PROBE, readinessProbe=PROBE)
    node.after(5)
    for _ in range(3):
        node.kill()
        node.after(3)
    assert node.ready() == {False}


@pytest.mark.parametrize("text", ["", "{", '{"kind": "Pod"}', "a: [", json.dumps(manifest(image=""))])
def test_2_a_manifest_that_cannot_be_read_leaves_its_pod(node: Folder, text: str) -> None:
    """For as long as it is so; the file is named."""
    node.write()
    node.after(3)
    before = node.runs()
    assert before
    (node.static / "p.json").write_text(text)
    node.after(120)
    assert node.runs() == before
    assert "p.json" in _faults(node)


def test_2_who_is_away_for_a_moment_is_not_gone(node: Folder) -> None:
    """A file for 0.3 s, its folder for 2 s; a file under another name is the same pod."""
    node.write()
    node.after(3)
    before = node.runs()
    node.rename("p.json", ".p")
    node.after(0.3)
    node.rename(".p", "p.json")
    node.after(20)
    node.static.rename(node.static.with_name("away"))
    node.after(2)
    node.static.with_name("away").rename(node.static)
    node.after(20)
    node.rename("p.json", "q.json")
    node.after(20)
    assert node.runs() == before


def test_3_a_label_stops_nothing(node: Folder) -> None:
    """Of a static pod without a uid; who is told sees the same pod."""
    node.write()
    node.after(3)
    before, uids = node.runs(), set(node.sources.pods.snapshot())
    node.write(labels={"tier": "web"})
    node.after(20)
    assert node.runs() == before
    assert set(node.sources.pods.snapshot()) == uids


def test_3_every_edition_runs_at_once(node: Folder) -> None:
    """Edited twice: the one in the middle runs, too, and each within two seconds."""
    node.write()
    node.after(3)
    for number in (1, 2):
        node.write(env=[{"name": "EDITION", "value": str(number)}])
        node.after(2)
        assert (node.started(), len(node.runs())) == (1 + number, 1)


def test_3_a_finished_pod_that_is_put_back_runs_again(node: Folder) -> None:
    """Its file goes, and comes unchanged."""
    never = {"restartPolicy": "Never"}
    node.write(spec=never)
    node.after(3)
    (running,) = node.runs().values()
    node.runtime.exit(running, Exited(code=0))
    node.after(3)
    (node.static / "p.json").unlink()
    node.after(20)
    node.write(spec=never)
    node.after(5)
    assert len(node.runs()) == 1


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("uid", [None, "one"])
def test_3_a_finished_pod_that_is_edited_runs_again(
    node: Folder, uid: str | None, *, is_killed: bool
) -> None:
    """As another pod; unchanged it stays finished. Also after the agent that saw its end was killed."""
    never = {"restartPolicy": "Never"}
    node.write(uid=uid, spec=never)
    node.after(3)
    (running,) = node.runs().values()
    (before,) = node.sources.pods.snapshot()
    node.runtime.exit(running, Exited(code=0))
    node.after(3)
    if is_killed:
        node.kill()
    node.write(uid=uid, spec=never)
    node.after(20)
    assert (node.runs(), set(node.sources.pods.snapshot())) == ({}, {before})
    node.write(uid=uid, spec=never, env=[{"name": "EDITION", "value": "2"}])
    node.after(10)
    assert list(node.runs()) == ["p/app#0"]
    assert before not in node.sources.pods


def test_3_a_refused_pod_that_is_edited_is_asked_again(node: Folder) -> None:
    """It wanted more than the node has; with less it runs."""
    node.write(resources={"requests": {"cpu": "1000"}})
    node.after(5)
    assert (node.told()[-1].phase, node.runs()) == (PodPhase.FAILED, {})
    node.write(resources={"requests": {"cpu": "1"}})
    node.after(10)
    assert list(node.runs()) == ["p/app#0"]


def test_4_every_field_of_an_edit_takes_effect(node: Folder) -> None:
    """Environment, restart policy, and a container that was taken out, under one uid."""
    two = [{"name": "app", "image": "busybox"}, {"name": "side", "image": "busybox"}]
    node.write(uid="one", spec={"containers": two})
    node.after(3)
    assert set(node.runs()) == {"p/app#0", "p/side#0"}
    node.write(uid="one")
    node.after(8)
    assert len(node.runs()) == 1
    node.write(uid="one", env=[{"name": "A", "value": "1"}])
    node.after(8)
    (edited,) = node.runs()
    assert edited.endswith("/app#1")
    node.write(uid="one", env=[{"name": "A", "value": "1"}], spec={"restartPolicy": "Never"})
    node.after(3)
    node.runtime.exit(node.runs()[edited], Exited(code=1))
    node.after(60)
    assert node.runs() == {}
    assert node.told()[-1].phase is PodPhase.FAILED


def _cpu(node: Folder) -> str:
    (seen,) = node.held.view.pods.values()
    return str(seen.requests["cpu"])


@pytest.mark.parametrize("is_killed", [False, True])
def test_4_an_edit_of_resources_is_judged(node: Folder, *, is_killed: bool) -> None:
    """What the node lacks is waited for, and what runs keeps what it has; what there is counts at once."""
    node.write(uid="one", resources={"requests": {"cpu": "1"}, "limits": {"cpu": "2"}})
    node.after(3)
    (running,) = node.runs().values()
    had = node.runtime.limits(running)
    node.write(uid="one", resources={"requests": {"cpu": "100"}, "limits": {"cpu": "200"}})
    node.after(10)
    if is_killed:
        node.kill()
        node.after(10)
    assert (list(node.runs().values()), node.runtime.limits(running), _cpu(node)) == ([running], had, "1")
    waits = node.lives.facts.get("one")
    assert waits is not None
    assert "as it was edited it does not come in" in str(waits.waits_for)
    node.write(uid="one", resources={"requests": {"cpu": "2"}, "limits": {"cpu": "3"}})
    node.after(10)
    assert (list(node.runs().values()), _cpu(node)) == ([running], "2")
    assert node.runtime.limits(running).cpu_quota_us == 300_000
    node.write("other", resources={"requests": {"cpu": "2"}})
    node.after(5)
    assert list(node.runs()) == ["p/app#0"], "the edit counts when others are judged"


def test_4_what_ends_while_an_edit_waits_starts_again_as_it_was(node: Folder) -> None:
    """A resize that never fits would keep it down for ever."""
    node.write(uid="one", resources={"requests": {"cpu": "1"}})
    node.after(3)
    (running,) = node.runs().values()
    had = node.runtime.limits(running)
    node.write(uid="one", resources={"requests": {"cpu": "100"}})
    node.after(10)
    node.runtime.exit(running, Exited(code=1))
    node.after(20)
    (again,) = node.runs().values()
    assert (again != running, node.runtime.limits(again), _cpu(node)) == (True, had, "1")


def test_4_an_edit_from_shared_cpus_to_own_ones_waits(node: Folder) -> None:
    """A policy that does not resize moves nobody to CPUs of its own; nothing is granted in silence."""
    node.write(uid="one", resources={"requests": {"cpu": "500m"}})
    node.after(3)
    before = node.runs()
    exclusive = {"cpu": "2", "memory": "64Mi"}
    node.write(uid="one", resources={"requests": exclusive, "limits": exclusive})
    node.after(10)
    facts = node.lives.facts.get("one")
    assert facts is not None
    assert (node.runs(), _cpu(node)) == (before, "500m")
    assert "does not resize exclusive CPUs" in str(facts.waits_for)


def test_5_a_second_file_with_the_name_of_a_pod_takes_nothing(node: Folder) -> None:
    """The first runs on; the second comes when the first has gone."""
    node.write()
    node.after(3)
    before = node.runs()
    node.write(file="second", env=[{"name": "SECOND", "value": "1"}])
    node.after(30)
    assert (node.runs(), node.started()) == (before, 1)
    (node.static / "p.json").unlink()
    node.after(15)
    assert (len(node.runs()), node.started()) == (1, 2)


def test_6_what_nobody_asked_for_has_the_time_of_any_other_pod(node: Folder) -> None:
    """More than 2 s, and an agent that is killed meanwhile gives neither more nor less."""
    box = SandboxConfig(pod=PodIdentity(uid="x", namespace="default", name="old"), hostname="old")
    sandbox = node.runtime.run_sandbox(box)
    made = node.runtime.create_container(sandbox, ContainerConfig(name="app", image="busybox"), box)
    node.runtime.start_container(made)
    graces: list[float] = []
    stop = node.runtime.stop_container

    def noted(container_id: str, grace_s: float, /) -> None:
        graces.append(grace_s)
        stop(container_id, grace_s)

    node.runtime.stop_container = noted  # type: ignore[method-assign]
    node.after(5)
    assert node.runs() == {}
    assert [one > 2 for one in graces] == [True]


def test_19_a_pod_is_told_of_until_its_containers_have_ended(node: Folder) -> None:
    """While they are asked to end it is there, then in its last phase, then gone."""
    node.write()
    node.after(3)
    told, stop = len(node.sink.calls), node.runtime.stop_container
    before_end: list[list[PodStatus | None]] = []

    def noted(container_id: str, grace_s: float, /) -> None:
        before_end.append([status for _, status in node.sink.calls])
        stop(container_id, grace_s)

    node.runtime.stop_container = noted  # type: ignore[method-assign]
    (node.static / "p.json").unlink()
    node.after(15)
    assert [None in one for one in before_end] == [False]
    assert node.ready(told) == {False}
    last, gone = node.sink.calls[-2:]
    assert last[1] is not None
    assert (last[1].phase, gone[1]) == (PodPhase.FAILED, None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (json.dumps({**manifest("bad"), "spec": {"containers": [], "colour": "red"}}), "colour"),
        (json.dumps(manifest("Bad_Name")), "Bad_Name"),
        (json.dumps(manifest("a")) + "\n---\n" + json.dumps(manifest("b")), "2 documents"),
    ],
)
def test_19_what_a_manifest_says_wrongly_is_named(node: Folder, text: str, words: str) -> None:
    """Unknown fields, names that are none, several documents: with the file, and nothing of it runs."""
    (node.static / "bad.yaml").write_text(text)
    node.write("good")
    node.after(5)
    assert [one.partition("/")[0] for one in node.runs()] == ["good"]
    assert words in _faults(node)
    assert "bad.yaml" in _faults(node)


def _faults(node: Folder) -> str:
    answer = node.sources.answers.get("file")
    return "" if answer is None else str(answer.faults)


def test_each_line_of_the_page_names_tests_that_are_there() -> None:
    """A test that was renamed is a line that nothing proves."""
    page = (ROOT / "docs" / "explanation" / "habits.md").read_text()
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)
    assert len(named) > 30
    missing = [f"{file}::{name}" for file, name in named if f"def {name}(" not in (ROOT / file).read_text()]
    assert not missing
    lines = {int(number) for number in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    assert lines == set(range(1, 21))
