"""In which forms each pod was wanted, one after the other: an agent may still go by an earlier one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from nodealloc.podspec import Container, Pod, Quantity
from nodealloc.runtime import LinuxResources

__all__ = ["Forms", "is_told"]

_LEAST, _MOST = 0, -1
"""Where amounts stand in their order."""
_SHARES = 1024
"""Weight of a whole CPU, as runtimes are told it."""
_PERIOD_US = 100_000
"""In which CPU time is counted where nothing else is said."""


class Forms:
    """The forms of pods that were edited in what they ask for, or in what they are made from."""

    def __init__(self) -> None:
        self._forms: dict[str, list[Pod]] = {}
        self._most: dict[str, Pod] = {}
        self._least: dict[str, Pod] = {}

    def wanted(self, pod: Pod) -> None:
        """Somebody wants it in this form from now on."""
        forms = self._forms.setdefault(pod.uid, [])
        forms.append(pod)
        if len(forms) > 1:
            self._most[pod.uid] = _with_amounts(pod, forms, _MOST)
            self._least[pod.uid] = _with_amounts(pod, forms, _LEAST)

    def of(self, uid: str) -> tuple[Pod, ...]:
        """All of them, the newest last."""
        return tuple(self._forms.get(uid, ()))

    def most(self, pod: Pod) -> Pod:
        """A pod that asks for as much as it ever did: so much it may hold."""
        return self._most.get(pod.uid, pod)

    def least(self, pod: Pod) -> Pod:
        """A pod that asks for no more than it always did."""
        return self._least.get(pod.uid, pod)

    def is_resized(self, uid: str) -> bool:
        """Whether it once asked for other amounts than now: the edit may wait, and hold up all of it."""
        forms = self._forms.get(uid, ())
        return len(forms) > 1 and any(_amounts(one) != _amounts(forms[-1]) for one in forms)

    def may_wait(self, uid: str) -> bool:
        """Whether it once asked for other amounts or volumes than now: it may go on in an older form."""
        forms = self.of(uid)
        return self.is_resized(uid) or any(_volumes(one) != _volumes(forms[-1]) for one in forms)

    def made_from(self, uid: str, name: str, image: str) -> Pod | None:
        """The newest form in which a container runs from this image; None for none."""
        for pod in reversed(self._forms.get(uid, ())):
            if any(one.name == name and one.image == image for one in pod.all_containers):
                return pod
        return None

    def given(self, uid: str, name: str, limits: LinuxResources) -> Mapping[str, Quantity]:
        """What a container asks for, by what its runtime was told of it, or less by now.

        One that is to have less is told so after others may have had the rest, and a request of
        memory without a limit no runtime is told of.
        """
        named = [each for pod in self._forms.get(uid, ()) for each in pod.all_containers if each.name == name]
        told = [at for at, one in enumerate(named) if is_told(one, limits)] or [0]
        given = [*[named[at] for at in told], *named[told[-1] :]] if named else []
        return _extreme([one.requests for one in given], _LEAST)


def is_told(container: Container, limits: LinuxResources) -> bool:
    """Whether its runtime was told that a container is to have just what it asks for."""
    memory, cpus = container.limits.get("memory"), container.limits.get("cpu")
    shares = container.requests["cpu"].milli_value * _SHARES // 1000
    quota_us = cpus.milli_value * (limits.cpu_period_us or _PERIOD_US) // 1000 if cpus else None
    return (
        shares == limits.cpu_shares
        and (memory.value if memory else None) == limits.memory_bytes
        and quota_us == limits.cpu_quota_us
    )


def _amounts(pod: Pod) -> Mapping[str, Mapping[str, Quantity]]:
    return {one.name: one.requests for one in pod.all_containers}


def _volumes(pod: Pod) -> frozenset[str]:
    return frozenset(use.name for one in pod.all_containers for use in one.volumes)


def _with_amounts(pod: Pod, forms: Iterable[Pod], at: int) -> Pod:
    """The same pod, each container with the least or the most that it ever asked for."""
    found: dict[str, list[Mapping[str, Quantity]]] = {}
    for form in forms:
        for name, amounts in _amounts(form).items():
            found.setdefault(name, []).append(amounts)

    def changed(container: Container) -> Container:
        amounts = _extreme(found[container.name], at)
        return attrs.evolve(container, requests=amounts, limits=amounts if container.limits else {})

    return attrs.evolve(
        pod,
        containers=tuple(map(changed, pod.containers)),
        init_containers=tuple(map(changed, pod.init_containers)),
    )


def _extreme(amounts: Iterable[Mapping[str, Quantity]], at: int) -> Mapping[str, Quantity]:
    every: dict[str, list[Quantity]] = {}
    for one in amounts:
        for name, amount in one.items():
            every.setdefault(name, []).append(amount)
    return {name: sorted(values, key=_nanos)[at] for name, values in every.items()}


def _nanos(amount: Quantity) -> int:
    return amount.nanos
