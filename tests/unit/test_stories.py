"""Comparing what an agent did with what was recorded of a kubelet: what is exact, and what is not."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cri.folders import mount_points
from tests.stories import seen
from tests.stories.__main__ import SHORT
from tests.stories.compare import align, differences
from tests.stories.rows import read, reason_to_skip
from tests.stories.values import Item

VECTORS = Path(__file__).parent.parent / "vectors"
STORIES = read(VECTORS / "kubelet_stories.jsonl.gz")
API_STORIES = read(VECTORS / "kubelet_api_stories.jsonl.gz")
BY_NAME = {one.name: one for one in (*STORIES, *API_STORIES)}


def test_every_story_is_as_it_was_recorded() -> None:
    """The recording itself passes, row by row: nothing that is compared depends on the form of ours."""
    for story in (*STORIES, *API_STORIES):
        assert differences(story.seen, story.seen, story.end) == (), story.name


def changed(name: str, change: Callable[[Any], object]) -> tuple[str, ...]:
    """What is said of a story after a change to what was seen."""
    story = BY_NAME[name]
    ours = copy.deepcopy(dict(story.seen))
    change(ours)
    return differences(story.seen, ours, story.end)


def _pod(ours: Any) -> Any:
    return ours["pods"]["p-n1"]["tracks"]


def _rights(ours: Any) -> Any:
    return ours["container_config"]["g-n1/a@0"]["linux"]["security_context"]


CHANGES: dict[str, tuple[str, Callable[[Any], object], str]] = {
    "a phase is another": (
        "restart-never-two",
        lambda ours: _pod(ours)["phase"]["seq"][2].__setitem__(1, "Succeeded"),
        "pod p-n1, phase, after 2 equal",
    ),
    "a phase is missing": (
        "restart-never-two",
        lambda ours: _pod(ours)["phase"]["seq"].pop(2),
        "pod p-n1, phase",
    ),
    "readiness flaps": (
        "readiness-exec-late-then-lost",
        lambda ours: _pod(ours)["condition Ready"]["seq"].extend([[[30, 30], "True"]]),
        "pod p-n1, condition Ready",
    ),
    "a restart is not counted": (
        "liveness-exec-kill",
        lambda ours: _pod(ours)["container a"]["seq"][-1][1].update(restarts=0),
        "pod p-n1, container a",
    ),
    "a pod is not told of": ("qos-three", lambda ours: ours["pods"].pop("e-n1"), "pod e-n1"),
    "a container starts twice": (
        "restart-never-two",
        lambda ours: ours["runtime"]["p-n1"]["order"].insert(2, [[1, 1], "a@1 started"]),
        "order of p-n1",
    ),
    "an exit code is another": (
        "restart-never-two",
        lambda ours: ours["runtime"]["p-n1"]["order"][4].__setitem__(1, "b@0 ended 1 Error"),
        "order of p-n1",
    ),
    "a grace is shorter": (
        "sidecar-prestop",
        lambda ours: ours["calls"]["p-n1"][7].update(timeout=4),
        "calls for p-n1",
    ),
    "a call is missing": (
        "sidecar-prestop",
        lambda ours: ours["calls"]["p-n1"].pop(7),
        "calls for p-n1",
    ),
    "limits are others": (
        "qos-three",
        lambda ours: ours["container_config"]["g-n1/a@0"]["linux"]["resources"].update(cpu_shares=2),
        "container_config of g-n1/a@0, linux.resources.cpu_shares",
    ),
    "a container runs as nobody said": (
        "qos-three",
        lambda ours: _rights(ours).pop("run_as_user"),
        "container_config of g-n1/a@0, linux.security_context.run_as_user",
    ),
    "a profile is another": (
        "qos-three",
        lambda ours: _rights(ours)["seccomp"].update(profile_type=0),
        "container_config of g-n1/a@0, linux.security_context.seccomp",
    ),
    "a path is not masked": (
        "qos-three",
        lambda ours: _rights(ours)["masked_paths"].pop(),
        "container_config of g-n1/a@0, linux.security_context.masked_paths",
    ),
    "a mount is missing": (
        "qos-three",
        lambda ours: ours["container_config"]["g-n1/a@0"]["mounts"].pop(),
        "container_config of g-n1/a@0, mounts",
    ),
    "the sandbox's cgroup is another": (
        "qos-three",
        lambda ours: ours["sandbox_config"]["g-n1@0"]["linux"].update(cgroup_parent="/elsewhere"),
        "sandbox_config of g-n1@0, linux.cgroup_parent",
    ),
    "a cpuset is not written": (
        "cpus-exclusive",
        lambda ours: ours["cgroups"]["s-n1/a@0"].pop(1),
        "cgroup s-n1/a@0",
    ),
    "a dead container of a pod that goes on is left": (
        "liveness-exec-kill",
        lambda ours: ours["end"]["containers"].append(["p-n1", "a", 7, "exited"]),
        "at the end, containers",
    ),
    "something is left": (
        "restart-never-two",
        lambda ours: ours["end"]["pod_cgroups"].append("kubepods/besteffort/pod<uid>"),
        "at the end, pod_cgroups",
    ),
    "a log is gone": (
        "readiness-exec-late-then-lost",
        lambda ours: ours["end"]["log_files"].pop(),
        "at the end, log_files",
    ),
    "the agent starts all the same": (
        "config-soft-without-grace",
        lambda ours: ours.update(agent=[[[0, 0], "answers"]]),
        "agent:",
    ),
    "a command of the story fails": (
        "emptydir-memory-size",
        lambda ours: ours["steps"][0].update(result=1),
        "steps:",
    ),
}


@pytest.mark.parametrize("what", sorted(CHANGES))
def test_a_changed_row_fails(what: str) -> None:
    """Each kind of change to what was seen is told by where it is."""
    name, change, where = CHANGES[what]
    found = changed(name, change)
    assert any(one.startswith(where) for one in found), found


def _ends_turned(order: list[Any]) -> list[Any]:
    """The same with all ends of containers, which are of one moment, in another order."""
    ends = [one for one in order if " ended " in one[1]]
    assert len(ends) > 1
    turned = iter([[ends[0][0], one[1]] for one in reversed(ends)])
    return [next(turned) if " ended " in one[1] else one for one in order]


LEFT_OUT: dict[str, tuple[str, Callable[[Any], object]]] = {
    "times": (
        "restart-never-two",
        lambda ours: [one.__setitem__(0, [one[0][0] + 0.5] * 2) for one in ours["runtime"]["p-n1"]["order"]],
    ),
    "events": ("restart-never-two", lambda ours: ours.pop("events")),
    "counters": ("restart-never-two", lambda ours: ours["end"].pop("metrics")),
    "the machine's size": (
        "qos-three",
        lambda ours: ours["cgroups"]["kubepods"][0].update(memory_limit=1, pids_max="9"),
    ),
    "when the dead containers of an ended pod go": (
        "restart-never-two",
        lambda ours: ours["end"].update(containers=[], sandboxes=[], log_files=[], log_links=[]),
    ),
    "the order of ends of one moment": (
        "containers-12",
        lambda ours: ours["runtime"]["p-n1"].update(order=_ends_turned(ours["runtime"]["p-n1"]["order"])),
    ),
}


@pytest.mark.parametrize("what", sorted(LEFT_OUT))
def test_what_is_not_exact_is_not_compared(what: str) -> None:
    """Times, events, counters, sizes and the order within a moment may differ."""
    name, change = LEFT_OUT[what]
    assert changed(name, change) == ()


def items(*pairs: tuple[float, str]) -> list[Item]:
    """States with their times."""
    return [Item(*one) for one in pairs]


def test_a_state_of_a_moment_may_be_missed() -> None:
    """What lasted a second or less may be seen by one side alone; what lasted longer may not."""
    theirs = items((0, "Pending"), (0.5, "Running"), (20, "Failed"))
    assert align(theirs, items((0, "Running"), (20, "Failed")), 40)
    assert align(theirs, items((0, "Pending"), (0.2, "Odd"), (0.4, "Running"), (20, "Failed")), 40)
    assert not align(theirs, items((0, "Pending"), (0.5, "Running"), (9, "Odd"), (20, "Failed")), 40)
    assert not align(theirs, items((0, "Pending"), (20, "Failed")), 40)


def test_a_flicker_between_two_equal_states_is_no_third_state() -> None:
    """A state that comes back after one that was missed counts once."""
    theirs = items((0, "A"), (10, "B"), (10.5, "A"))
    assert align(theirs, items((0, "A")), 40)
    assert align(items((0, "A")), theirs, 40)


def test_the_last_seconds_are_nobodys() -> None:
    """What comes just before watching ends may be on one side alone."""
    assert align(items((0, "A"), (38, "B")), items((0, "A")), 40)
    assert not align(items((0, "A"), (30, "B")), items((0, "A")), 40)


def test_ours_may_go_on_only_where_restarts_are_delayed() -> None:
    """A restart that comes on time, where the recorded one came late, puts ours ahead."""
    theirs, ours = items((0, "A")), items((0, "A"), (20, "B"))
    assert align(theirs, ours, 40, goes_on=True)
    assert not align(theirs, ours, 40)
    assert not align(ours, theirs, 40, goes_on=True)


def test_theirs_may_go_on_where_restarts_are_delayed() -> None:
    """In the time by which a look comes later by lot; before that it has to be seen."""
    late, ours = items((0, "A"), (25, "B")), items((0, "A"))
    assert align(late, ours, 40, goes_on=True)
    assert not align(late, ours, 40)
    assert not align(late, items((0, "A"), (30, "C")), 40, goes_on=True)


def test_the_cgroup_of_a_container_of_a_moment_may_be_missed() -> None:
    """It is looked at every half a second: one that lived for less than a second may be on one side alone."""

    def seen_for(lived_s: float) -> dict[str, Any]:
        order = [[1.0, "a@0 started"], [1.0 + lived_s, "a@0 ended 0 Completed"]]
        return {"runtime": {"p": {"order": order}}, "cgroups": {"p/a@0": [{"at": 1.0, "cpu_shares": 2}]}}

    for lived_s, misses in ((0.4, 0), (5.0, 1)):
        ours = seen_for(lived_s)
        assert len(differences({**ours, "cgroups": {}}, ours, 40)) == misses
        assert len(differences(ours, {**ours, "cgroups": {}}, 40)) == misses


def test_the_directory_of_a_volumes_content_has_any_name() -> None:
    """A time in the recording, a digest here; what is in it, and the link to it, have to be the same."""

    def left(*names: str) -> dict[str, Any]:
        return {"end": {"pod_dirs": [f"<uid>/volumes/kubernetes.io~configmap/d/{one}" for one in names]}}

    theirs = left("..<date>/k", "..data@", "k")
    assert differences(theirs, left("..3f1c/k", "..data@", "k"), 40) == ()
    for names in (("..3f1c/other", "..data@", "k"), ("..3f1c/k", "k"), ("..3f1c/k", "..data@", "k@")):
        assert len(differences(theirs, left(*names), 40)) == 1


def test_rooms_to_come_are_named() -> None:
    """What needs a room that is not there says which; at most 25 of those without an API server."""
    skipped = {one.name: reason for one in STORIES if (reason := reason_to_skip(one))}
    assert len(skipped) <= 25
    assert "eviction" in skipped["memory-pressure-soft"]
    assert "shutdown" in skipped["shutdown-static"]
    theirs = {one.name: reason for one in API_STORIES if (reason := reason_to_skip(one))}
    assert len(API_STORIES) - len(theirs) == 13
    assert "mirror" in theirs["api-mirror-pod"]


def test_a_tenth_plays_in_ci() -> None:
    """Twelve of 122 that can be played, each for half a minute at most."""
    assert len(SHORT) * 10 >= len(STORIES) + len(SHORT)
    for name in SHORT:
        assert not reason_to_skip(BY_NAME[name]), name
        assert BY_NAME[name].end <= 30, name


def test_the_second_pod_of_a_name_is_told_apart() -> None:
    """Names are given in the order of first sight, and the default namespace is left out."""
    names = seen.Names()
    told = [names.see(uid, full) for uid, full in (("u1", "default/p"), ("u2", "default/p"), ("u3", "x/p"))]
    assert told == ["p", "p#2", "x/p"]
    assert names.see("u2", "default/p") == "p#2"


def test_a_status_becomes_tracks() -> None:
    """Phase with its reason, conditions, containers; null from the moment that nothing is told any more."""
    status = {
        "phase": "Failed",
        "reason": "Evicted",
        "conditions": [{"type": "Ready", "status": "False", "reason": "PodFailed"}],
        "containerStatuses": [
            {
                "name": "a",
                "state": {"terminated": {"exitCode": 0, "reason": "Completed"}},
                "restartCount": 2,
                "ready": False,
                "started": False,
            }
        ],
    }
    lines = [
        seen.Told(at=1.0, uid="u", name="default/p", status=status),
        seen.Told(at=2.0, uid="u", name="default/p", status=status),
        seen.Told(at=3.0, uid="u", name="default/p", status=None),
    ]
    made: Any = seen.pods(lines, seen.Names())
    tracks = made["p"]["tracks"]
    assert tracks["phase"]["seq"] == [[1.0, "Failed(Evicted)"], [3.0, None]]
    assert tracks["condition Ready"]["seq"][0] == [1.0, "False(PodFailed)"]
    assert tracks["container a"]["seq"][0][1] == {
        "state": "terminated",
        "reason": "Completed",
        "exit_code": 0,
        "restarts": 2,
        "ready": False,
        "started": False,
    }


def _made(method: str, request: dict[str, object], answer: str = "") -> seen.Call:
    return seen.Call(at=0.0, method=method, request=request, answer=answer, error="")


def test_calls_are_told_by_pod() -> None:
    """Ids are turned into the names of containers, attempts and pods that they stand for."""
    names = seen.Names()
    names.see("u", "default/p")
    made = [
        _made("RunPodSandbox", {"config": {"metadata": {"uid": "u", "name": "p"}}}, "box"),
        _made("CreateContainer", {"pod_sandbox_id": "box", "config": {"metadata": {"name": "a"}}}, "run"),
        _made("StopContainer", {"container_id": "run", "timeout": 7}),
        _made("StopPodSandbox", {"pod_sandbox_id": "box"}),
    ]
    assert seen.calls(made, names)["p"] == [
        {"at": 0.0, "call": "RunPodSandbox", "attempt": 0},
        {"at": 0.0, "call": "CreateContainer", "container": "a", "attempt": 0},
        {"at": 0.0, "call": "StopContainer", "container": "a", "attempt": 0, "timeout": 7},
        {"at": 0.0, "call": "StopPodSandbox", "attempt": 0},
    ]


def test_configurations_lose_what_differs_from_run_to_run() -> None:
    """Uids, ids, hashes and random names become words; a later attempt shows only if something changed."""
    names = seen.Names(places={"/root-of-tests/": "/CGROUPROOT/"})
    names.see("uid-1", "default/p")
    box: dict[str, object] = {
        "config": {"metadata": {"uid": "uid-1"}, "linux": {"cgroup_parent": "/root-of-tests/poduid-1"}}
    }

    def run(attempt: int, image: str) -> dict[str, object]:
        config = {
            "metadata": {"name": "a", "attempt": attempt},
            "image": {"image": "sha256:1", "user_specified_image": image},
            "annotations": {
                "io.kubernetes.container.hash": "1",
                "io.kubernetes.container.restartCount": str(attempt),
            },
            "mounts": [{"host_path": "/pods/uid-1/containers/a/0af3"}],
            "log_path": f"a/{attempt}.log",
        }
        return {"pod_sandbox_id": "box", "config": config}

    made = [
        _made("RunPodSandbox", box, "box"),
        _made("CreateContainer", run(0, "i:1"), "c0"),
        _made("CreateContainer", run(1, "i:1"), "c1"),
        _made("CreateContainer", run(2, "i:2"), "c2"),
    ]
    runs, boxes = seen.configs(made, names)
    assert boxes["p@0"] == {"metadata": {}, "linux": {"cgroup_parent": "/CGROUPROOT/pod<uid>"}}
    assert sorted(runs) == ["p/a@0", "p/a@2"]
    first = json.loads(json.dumps(runs["p/a@0"]))
    assert first["image"] == "i:1"
    assert first["mounts"] == [{"host_path": "/pods/<uid>/containers/a/<n>"}]
    assert first["annotations"] == {"io.kubernetes.container.restartCount": "0"}


def _told(at: float, *containers: str, phase: str = "Running") -> seen.Told:
    """A line of a status file."""
    runs = [{"name": one, "state": {"running": {}}} for one in containers]
    return seen.Told(
        at=at,
        uid="u",
        name="default/p",
        status={"phase": phase, "containerStatuses": runs} if phase else None,
    )


def test_a_container_that_its_pod_has_no_more_keeps_its_last_word() -> None:
    """As in the recording; of a pod without containers, or of one that is gone, nothing stands."""
    tracks = {
        "edited": [_told(0, "a"), _told(1, "b")],
        "refused": [_told(0, "a"), _told(1, phase="Failed")],
        "gone": [_told(0, "a"), _told(1, phase="")],
    }
    last = {}
    for name, lines in tracks.items():
        pod: Any = seen.pods(lines, seen.Names())["p"]
        last[name] = pod["tracks"]["container a"]["seq"][-1][1]
    assert last["edited"]["state"] == "running"
    assert (last["refused"], last["gone"]) == (None, None)


def test_a_stop_that_was_given_up_was_asked_for() -> None:
    """The runtime goes on with it when the agent is killed: it counts, with its time."""
    made = [
        seen.Call(
            at=0, method="RunPodSandbox", request={"config": {"metadata": {"uid": "u"}}}, answer="s", error=""
        ),
        seen.Call(
            at=0,
            method="CreateContainer",
            request={"pod_sandbox_id": "s", "config": {"metadata": {"name": "a"}}},
            answer="c",
            error="",
        ),
        seen.Call(
            at=1,
            method="StopContainer",
            request={"container_id": "c", "timeout": 14},
            answer="",
            error="canceled",
        ),
    ]
    stop: Any = seen.calls(made, seen.Names(by_uid={"u": "p"}))["p"]
    assert stop[-1] == {"at": 1, "call": "StopContainer", "container": "a", "attempt": 0, "timeout": 14}


def test_folders_that_a_run_beside_mounts_on_stay_until_it_ends(tmp_path: Path) -> None:
    """Removing one takes away what another namespace has mounted there; what was there before stays."""
    old, new = tmp_path / "old", tmp_path / "a" / "new"
    old.mkdir()
    lock = tmp_path / "lock"
    first, second = (mount_points([old, new], lock=lock) for _ in range(2))
    first.__enter__()
    second.__enter__()
    assert new.is_dir()
    first.__exit__(None, None, None)
    assert new.is_dir()
    second.__exit__(None, None, None)
    assert (old.is_dir(), new.exists()) == (True, False)
    with mount_points([new], lock=lock):
        assert new.is_dir()
    assert not new.exists()
