"""The part of an API server in stories: what it keeps, what it shows, when a pod is gone from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nodealloc.testing.dsw_asw import ManualCancel
from tests.stories.api import ApiServer
from tests.stories.joined import ApiFile
from tests.stories.seen import Told

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {
        "containers": [{"name": "a", "image": "one"}, {"name": "b", "image": "one"}],
        "terminationGracePeriodSeconds": 5,
        "nodeName": "n1",
    },
}


NOW = [0.0]


@pytest.fixture
def server(tmp_path: Path) -> ApiServer:
    """One without pods, on a clock that stands still."""
    NOW[0] = 0.0
    return ApiServer(tmp_path / "pods.json", lambda _: NOW[0])


def there(server: ApiServer) -> list[dict[str, Any]]:
    """The pods as an agent reads them."""
    found: list[dict[str, Any]] = json.loads(server.file.read_text())
    return found


def told(server: ApiServer, phase: str) -> bool:
    """The agent says of the only pod in which phase it is."""
    (pod,) = there(server)
    line = Told(at=1.0, uid=pod["metadata"]["uid"], name="default/p", status={"phase": phase})
    return server.take(line)


def phases(server: ApiServer) -> list[object]:
    """What a client saw."""
    return [None if one.status is None else one.status["phase"] for one in server.told]


def test_a_deleted_pod_goes_when_its_node_has_finished_with_it(server: ApiServer) -> None:
    """It carries when, and how long it has; the shorter of two graces counts."""
    server.create(POD)
    assert told(server, "Running")
    server.delete("p", None)
    server.delete("p", 9)
    (pod,) = there(server)
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 5
    assert pod["metadata"]["deletionTimestamp"]
    server.finished(pod["metadata"]["uid"])
    assert there(server)
    assert told(server, "Succeeded")
    assert there(server) == []
    assert phases(server) == ["Running", "Succeeded", None]


@pytest.mark.parametrize(("phase", "grace_s"), [("Running", 0), ("Failed", None)])
def test_what_has_no_grace_or_has_ended_goes_at_once(
    server: ApiServer, phase: str, grace_s: int | None
) -> None:
    """Nobody waits for the node."""
    server.create(POD)
    told(server, phase)
    server.delete("p", grace_s)
    assert there(server) == []


def test_a_patch_changes_the_entry_of_that_name(server: ApiServer) -> None:
    """What it does not name stays; a condition that somebody writes is seen at once."""
    server.create(POD)
    server.patch("p", {"spec": {"containers": [{"name": "a", "image": "two"}]}})
    server.patch("p", {"status": {"conditions": [{"type": "open", "status": "True"}]}})
    (pod,) = there(server)
    assert [one["image"] for one in pod["spec"]["containers"]] == ["two", "one"]
    assert pod["status"]["conditions"] == [{"type": "open", "status": "True"}]
    assert phases(server) == ["Pending"]


@pytest.mark.parametrize(("waits_s", "seen"), [(10.0, ["Running"]), (0.0, ["Failed"])])
def test_while_it_is_away_nothing_is_seen_and_the_newest_afterwards(
    server: ApiServer, waits_s: float, seen: list[str]
) -> None:
    """Its pods stay as they were for whoever reads them; who told it something tries again after a time."""
    server.create(POD)
    source = ApiFile(server.file)
    (pod,) = source.read(ManualCancel()).pods
    uid = pod.uid
    server.go_away()
    with pytest.raises(OSError, match=str(server.file)):
        source.read(ManualCancel())
    for phase in ("Pending", "Running"):
        assert server.take(Told(at=1.0, uid=uid, name="default/p", status={"phase": phase}))
    assert phases(server) == []
    server.come_back()
    server.hear()
    assert phases(server) == []
    NOW[0] += waits_s
    server.hear()
    if not waits_s:
        assert server.take(Told(at=1.0, uid=uid, name="default/p", status={"phase": "Failed"}))
    assert phases(server) == seen
    assert source.read(ManualCancel()).pods[0].uid == uid


def test_other_pods_are_none_of_its(server: ApiServer) -> None:
    """A static pod has no object here."""
    assert not server.take(Told(at=1.0, uid="static", name="default/s", status={"phase": "Running"}))
