"""Users who want critical pods, and who are patient; and a probe whose questions wait for a moment."""

from __future__ import annotations

import random

import pytest

from nodealloc import _attrs as attrs
from nodealloc.podspec import ExecAction, Pod, Probe, Quantity, effective_requests
from nodealloc.testing.simulation.node import Ran, What
from nodealloc.testing.simulation.node._clearing import EachIsForgotten
from nodealloc.testing.simulation.node._counting import ProbesKeepPace
from nodealloc.testing.simulation.node._environment import API, FILE
from nodealloc.testing.simulation.node._pods import LIVE, whole_pod
from nodealloc.testing.simulation.node._room_users import RoomUsers
from nodealloc.testing.simulation.node._users import Users
from tests.unit.node.simulated_scene import APP, Scene


def users_of(scene: Scene) -> Users:
    """Who acts there."""
    return Users(scene.environment, random.Random(1), device_pods=0.0, hooks=0.0)


def room_of(scene: Scene) -> RoomUsers:
    """Who wants all of it."""
    return RoomUsers(scene.environment, users_of(scene).next_number)


def cpus_of(pod: Pod) -> int:
    """What it asks for, in thousandths."""
    return effective_requests(pod)["cpu"].milli_value


def test_a_critical_pod_needs_the_room_of_some_of_the_others() -> None:
    """Two others take what is left of the node; a critical one needs half of that, a second all of it."""
    scene = Scene()
    users = room_of(scene)
    users.crowd()
    smaller, larger = scene.environment.pods[API].values()
    assert cpus_of(smaller) < cpus_of(larger) < scene.environment.room[0]
    assert users.press()
    critical, little = scene.environment.pods[FILE].values()
    left = scene.environment.room[0] - cpus_of(smaller) - cpus_of(larger)
    assert left + cpus_of(smaller) < cpus_of(critical) + cpus_of(little) <= left + cpus_of(larger)
    users.demand()
    assert [cpus_of(one) for one in scene.environment.pods[FILE].values()][2:] == [scene.environment.room[0]]
    users.go()
    assert not scene.environment.pods[FILE]
    assert len(scene.environment.pods[API]) == 2


def test_a_critical_pod_needs_the_room_of_any_one_of_the_others() -> None:
    """The smaller one is less important, and leaves enough."""
    scene = Scene()
    users = room_of(scene)
    assert not users.nudge()
    users.crowd()
    smaller, larger = scene.environment.pods[API].values()
    assert (smaller.priority or 0) < (larger.priority or 0)
    assert users.nudge()
    (critical,) = scene.environment.pods[FILE].values()
    left = scene.environment.room[0] - cpus_of(smaller) - cpus_of(larger)
    assert left < cpus_of(critical) <= left + cpus_of(smaller)


def test_nobody_presses_where_none_is_less_important() -> None:
    """Then a critical pod would come in, or be refused, without anybody's end."""
    scene = Scene()
    assert not room_of(scene).press()
    assert not scene.environment.known


def test_nobody_presses_where_more_is_asked_for_than_there_is() -> None:
    """Somebody waits already, and who would make room for whom is not known."""
    scene = Scene()
    amounts = {"cpu": Quantity.of(8), "memory": Quantity.of(1)}
    pod = Pod(uid="u", name="a", namespace="n", containers=(attrs.evolve(APP, requests=amounts),))
    scene.environment.want(API, pod)
    assert not room_of(scene).press()
    assert not scene.environment.pods[FILE]


@pytest.mark.parametrize(("uid", "is_hastened"), [("uid-14", False), ("uid-15", True)])
def test_some_pods_have_all_of_their_grace(uid: str, *, is_hastened: bool) -> None:
    """So that what comes a whole grace too late is seen of them."""
    scene = Scene()
    users = users_of(scene)
    amounts = {"cpu": Quantity.of(1), "memory": Quantity.of(1)}
    pod = Pod(uid=uid, name="a", namespace="n", containers=(attrs.evolve(APP, requests=amounts),))
    scene.environment.want(API, pod)
    scene.environment.ask_to_end(uid, 30)
    users.shorten(random.Random(1))
    assert (scene.environment.deletions[uid].grace_s < 30) is is_hastened


@pytest.mark.parametrize("asks", [True, False])
def test_whose_end_nobody_has_to_hear_of_may_go_unheard(*, asks: bool) -> None:
    """Of a pod of an earlier life, or where no agent asks to be held to that."""
    scene = Scene()
    checker = EachIsForgotten(scene.environment)
    scene.environment.events.listen(checker.heard)
    scene.wants()
    if asks:
        scene.environment.forgetting()
        scene.happens(What.KILLED)
    scene.environment.say_gone("u")
    checker.emptied()


def test_who_fills_a_node_has_had_all_of_it_for_its_init_container() -> None:
    """Whatever that had is there for the main one: there is no more."""
    pod = whole_pod("fill-0", cpus=3, memory_bytes=1 << 30, devices=2)
    assert [one.requests for one in pod.init_containers] == [pod.containers[0].requests]
    assert effective_requests(pod) == pod.containers[0].requests


def test_questions_that_wait_for_a_moment_keep_pace() -> None:
    """Each is asked a little after it is due, and the next one a period after that one was due."""
    scene = Scene()
    scene.environment.only_ends = True
    scene.environment.events.listen(ProbesKeepPace(scene.environment).heard)
    probe = Probe(exec=ExecAction(command=(LIVE,)), period_seconds=5)
    scene.wants(container=attrs.evolve(APP, liveness_probe=probe))
    made, begun_s = scene.runs(), scene.clock.awake_s
    for number in range(31):
        late_s = (0.0, 0.4, 0.8)[number % 3]
        scene.clock.advance(begun_s + 5.0 * number + late_s - scene.clock.awake_s)
        scene.happens(What.RAN, uid="u", name="app", id=made, value=Ran(LIVE, "0"))
