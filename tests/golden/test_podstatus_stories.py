"""What a real kubelet told of its pods follows from what it told of their containers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from nodealloc.errors import DecodeError
from nodealloc.podfacts import (
    ConditionStatus,
    ContainerRunning,
    ContainerState,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    Exited,
    PodCondition,
    PodPhase,
)
from nodealloc.podspec import Pod
from nodealloc.podstatus import KUBELET
from nodealloc.podstatus._conditions import conditions_of
from nodealloc.podstatus._phase import phase_of
from nodealloc.testing.conformance import read_rows

_CONDITION = re.compile(r"([^=]+)=(\w+)(?:\((\w+)(?:: (.*))?\))?", re.DOTALL)
OURS = {"Initialized", "Ready", "ContainersReady"}


def container(name: str, row: dict[str, object]) -> ContainerStatus:
    """One container as a story has it."""
    last = row.get("last")
    return ContainerStatus(
        name=name,
        state=state(row),
        last_state=state(last) if isinstance(last, dict) else None,
        ready=bool(row.get("ready")),
        started=bool(row.get("started")),
    )


def state(row: dict[str, object]) -> ContainerState:
    """What it does, or how it ended."""
    reason = str(row.get("reason") or "")
    if row.get("state") == "waiting":
        return ContainerWaiting(reason=reason)
    if row.get("state") == "running":
        return ContainerRunning()
    code = row.get("exit_code")
    return ContainerTerminated(exit=Exited(code=code if isinstance(code, int) else 0), reason=reason)


def told(text: str) -> PodCondition:
    """A condition as a story writes it."""
    found = _CONDITION.fullmatch(text)
    assert found is not None, text
    type_, status, reason, message = found.groups()
    return PodCondition(
        type=type_, status=ConditionStatus(status), reason=reason or "", message=message or ""
    )


def manifests(row: Mapping[str, object]) -> dict[str, Pod]:
    """The pods of a story that have one manifest, by the name that they are told by."""
    found: dict[str, list[Pod]] = {}
    steps = row["steps"]
    assert isinstance(steps, list)
    for step in steps:
        document = step.get("manifest")
        if isinstance(document, dict) and document.get("kind") == "Pod":
            try:
                pod = Pod.from_manifest(document, unread=lambda _: None)
            except DecodeError:
                continue
            suffix = "" if step["do"] == "api_create" else "-n1"
            found.setdefault(pod.name + suffix, []).append(pod)
    return {name: pods[0] for name, pods in found.items() if len(pods) == 1}


def states(vectors: Path) -> Iterator[tuple[Pod, dict[str, dict[str, object]], dict[str, object]]]:
    """Every state that a kubelet told of a pod with one manifest."""
    for kind in ("kubelet_stories", "kubelet_api_stories"):
        for row in read_rows(vectors / f"{kind}.jsonl.gz"):
            pods = manifests(row)
            seen = row["seen"]
            assert isinstance(seen, dict)
            for name, pod in seen.get("pods", {}).items():
                for one in pod.get("states", ()):
                    if (
                        name in pods
                        and one.get("conditions")
                        and names(pods[name])
                        == {
                            *one.get("init", ()),
                            *one["containers"],
                        }
                    ):
                        yield pods[name], one, one


def names(pod: Pod) -> set[str]:
    """Of its init and main containers; an edition that came as bytes may have others."""
    return {one.name for one in pod.all_containers}


def statuses(one: dict[str, dict[str, object]]) -> list[ContainerStatus]:
    """Init containers, then the others."""
    found = []
    for kind in ("init", "containers"):
        for name, row in one.get(kind, {}).items():
            assert isinstance(row, dict)
            found.append(container(name, row))
    return found


def test_conditions_follow_from_containers(vectors: Path) -> None:
    """Type, status, reason and message of each, in the order in which a kubelet tells them.

    Left out are states in which the kubelet decides phase and conditions at two
    moments: a pod that has failed and runs, one that runs and is completed.
    """
    compared: Counter[str] = Counter()
    for pod, one, whole in states(vectors):
        conditions = whole["conditions"]
        assert isinstance(conditions, list)
        expected = [told(text) for text in conditions]
        mine = statuses(one)
        phase = PodPhase(whole["phase"])
        if phase.is_terminal and any(isinstance(each.state, ContainerRunning) for each in mine):
            continue
        if not phase.is_terminal and any(each.reason in {"PodFailed", "PodCompleted"} for each in expected):
            continue
        others = [each for each in expected if each.type not in OURS]
        got = conditions_of(pod, mine, phase, report=None, others=others)
        wanted = [each for each in expected if each.type in OURS]
        assert [each for each in got if each.type in OURS] == wanted, whole
        compared[phase.value] += 1
    assert compared.total() >= 400, compared


def test_a_phase_that_is_not_terminal_follows_from_containers(vectors: Path) -> None:
    """Pending and running are what the containers of that moment make of it."""
    compared: Counter[str] = Counter()
    for pod, one, whole in states(vectors):
        if whole["phase"] in {"Pending", "Running"} and not whole.get("deleting"):
            got = phase_of(pod, statuses(one), rules=KUBELET)
            if got is PodPhase.SUCCEEDED or got is PodPhase.FAILED:
                continue  # it is held back until nothing of the pod runs
            assert got.value == whole["phase"], whole
            compared[got.value] += 1
    assert min(compared["Pending"], compared["Running"]) >= 100, compared
