"""What pods of a simulated node are edited to be."""

from __future__ import annotations

import random

import attrs

from nodealloc.podspec import Container, Pod, Quantity
from nodealloc.testing.simulation.node._behaviour import IMAGE
from nodealloc.testing.simulation.node._pods import MEMORY, sized

__all__ = ["debugged", "other_amounts", "too_much", "with_more"]

_OTHERS = (("100m", "64Mi"), ("300m", "64Mi"), ("1900m", "6Gi"), ("2900m", "64Mi"))
"""CPUs and memory of who is edited to ask for more or less."""
_TOO_MANY_CPUS = 10_000


def debugged(pod: Pod, name: str) -> Pod:
    """The same with one container more, to look at it from within."""
    return attrs.evolve(
        pod, ephemeral_containers=(*pod.ephemeral_containers, Container(name=name, image=IMAGE))
    )


def other_amounts(rng: random.Random, pod: Pod, *, grows: bool) -> Pod:
    """The same with other amounts for one of its main containers, within its class of service.

    One with CPUs of its own may ask for one more (`grows`), which is not to be had in place.
    """
    place = rng.randrange(len(pod.containers))
    before = pod.containers[place]
    if before.limits:
        cpus = before.requests["cpu"].value
        made = sized(before.name, (rng.choice((cpus, cpus, cpus + grows)), rng.choice(MEMORY)))
    else:
        made = sized(before.name, rng.choice(_OTHERS))
    other = attrs.evolve(before, requests=made.requests, limits=made.limits)
    return attrs.evolve(pod, containers=(*pod.containers[:place], other, *pod.containers[place + 1 :]))


def too_much(pod: Pod) -> Pod:
    """The same with more CPUs for its first container than any machine has, within its class of service."""
    first = pod.containers[0]
    asked = {**first.requests, "cpu": Quantity.of(_TOO_MANY_CPUS)}
    other = attrs.evolve(first, requests=asked, limits=asked if first.limits else {})
    return attrs.evolve(pod, containers=(other, *pod.containers[1:]))


def with_more(pod: Pod, cpus_milli: int) -> Pod:
    """The same with so many thousandths of CPUs more for its first container, which shares them."""
    first = pod.containers[0]
    asked = Quantity.of(f"{first.requests['cpu'].milli_value + cpus_milli}m")
    other = attrs.evolve(first, requests={**first.requests, "cpu": asked})
    return attrs.evolve(pod, containers=(other, *pod.containers[1:]))
