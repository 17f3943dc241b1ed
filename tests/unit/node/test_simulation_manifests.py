"""Static pods of a simulated node: a manifest that is put back word for word is another pod."""

from __future__ import annotations

import random

from nodealloc.podsources import Editions
from nodealloc.podspec import Container, Pod
from nodealloc.testing.simulation import SimulatedClock
from nodealloc.testing.simulation.node import Environment
from nodealloc.testing.simulation.node._environment import FILE

POD = Pod(uid="u", name="web", namespace="sim", containers=(Container(name="app", image="busybox"),))


def said(environment: Environment) -> tuple[Pod, ...]:
    """What the source of manifests says now."""
    reading, _was_heard = environment.reading(FILE)
    return tuple(reading.pods)


def test_what_is_put_back_is_said_as_before_and_runs_as_another_pod() -> None:
    """Under the uid that a source of pods makes of it, and so does whoever has its name later."""
    environment = Environment(SimulatedClock(), random.Random(1))
    environment.want(FILE, POD)
    editions, (first,) = Editions().read(said(environment))
    environment.let_go("u")
    editions, _ = editions.read(said(environment))
    environment.want(FILE, environment.manifests.put_back(environment.known["u"]))
    (again,) = said(environment)
    editions, (second,) = editions.read([again])
    assert again == POD
    assert said(environment)[0] is again
    assert [first.uid, *environment.pods[FILE]] == ["u", second.uid]
    assert environment.is_static(second.uid)
    environment.let_go(second.uid)
    environment.want(FILE, Pod(uid="v", name="web", namespace="sim", containers=POD.containers))
    editions, (third,) = editions.read(said(environment))
    assert third.uid in environment.pods[FILE]
