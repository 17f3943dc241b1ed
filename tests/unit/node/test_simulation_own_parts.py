"""Parts of one's own in a simulated node, by one fixture: policies, allocators, handlers, preparers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs
import pytest

from nodealloc.admission import chain_of
from nodealloc.cpuset import CpuAllocator
from nodealloc.dsw_asw import Cancel
from nodealloc.idset import CPUSet
from nodealloc.machine import Machine
from nodealloc.memblocks import MemoryAllocator
from nodealloc.podfacts import NodeView
from nodealloc.podlife import Preparation
from nodealloc.podspec import Json, Pod
from nodealloc.testing.simulation import ViolationError
from nodealloc.testing.simulation.node import agent_with
from nodealloc.topology import (
    Allocator,
    Claim,
    ComparisonContext,
    Confinement,
    Hints,
    Holding,
    Owner,
    Policy,
    Rank,
    ResourceUse,
    Restored,
    Shortfall,
    TopologyHint,
)
from nodealloc.verdicts import Admitted, NotYet, Refused

if TYPE_CHECKING:
    from nodealloc.testing.pytest_plugin import Simulates

__all__ = ["pytest_plugins"]

pytest_plugins = ["nodealloc.testing.pytest_plugin"]


@attrs.frozen
class OwnMemory:
    """An allocator of one's own: memory as the library gives it out, by another class.

    Attributes:
        inner: Who holds what.
        forgets: Whether it grants as though nobody held anything.
        asked: Is added to with each claim.
    """

    inner: MemoryAllocator
    forgets: bool
    asked: list[str] = attrs.field(eq=False, repr=False)

    @property
    def name(self) -> str:
        return self.inner.name

    def serves(self, resource: str, /) -> bool:
        return resource == "memory"

    def hints(self, claims: Sequence[Claim], /) -> Hints:
        return self._free().hints(claims)

    def allocate(self, claim: Claim, affinity: TopologyHint, /) -> OwnMemory | Shortfall:
        self.asked.append(claim.owner.member)
        answer = self._free().allocate(claim, affinity)
        return answer if isinstance(answer, Shortfall) else attrs.evolve(self, inner=answer)

    def release(self, workload: str, member: str | None = None, /) -> OwnMemory:
        return attrs.evolve(self, inner=self.inner.release(workload, member))

    def confinement(self, owner: Owner, /) -> Confinement:
        return self.inner.confinement(owner)

    def remembered(self, workload: str, /) -> Json:
        return self.inner.remembered(workload)

    def restored(self, grants: Mapping[str, Json], /) -> Restored:
        found = self.inner.restored(grants)
        assert isinstance(found.allocator, MemoryAllocator)
        return attrs.evolve(found, allocator=attrs.evolve(self, inner=found.allocator))

    def _free(self) -> MemoryAllocator:
        if not self.forgets:
            return self.inner
        free = self.inner
        for workload in self.inner.state.grants:
            free = free.release(workload)
        return free


@attrs.frozen
class AccountedMemory(OwnMemory):
    """The same, and it says what there is: else nobody counts what those ask for who have none alone."""

    def holdings(self) -> Sequence[Holding]:
        return self.inner.holdings()

    def capacity(self) -> Sequence[ResourceUse]:
        return self.inner.capacity()


def with_own_memory(asked: list[str], *, forgets: bool) -> Callable[[Machine], Sequence[Allocator]]:
    """From the machine to allocators, one of them ours."""

    def made(machine: Machine) -> Sequence[Allocator]:
        kind = OwnMemory if forgets else AccountedMemory
        own = kind(MemoryAllocator.of(machine), forgets, asked)
        return CpuAllocator.of(machine, reserved=CPUSet.of(0)), own

    return made


def test_an_allocator_of_ones_own(simulate: Simulates) -> None:
    """It gives out memory in a node that is killed now and then, and no guarantee is broken."""
    asked: list[str] = []
    tally = simulate(agent_with(allocators=with_own_memory(asked, forgets=False)), seeds=[1])
    assert tally.violations == 0
    assert asked


@pytest.mark.slow
def test_an_allocator_that_forgets_is_found(simulate: Simulates) -> None:
    """It grants the same bytes again; the violation names the seed, and tells what led there."""
    wiring = agent_with(allocators=with_own_memory([], forgets=True))
    with pytest.raises(ViolationError, match=r"seed \d+") as found:
        simulate(wiring, seeds=range(0, 360, 12))
    assert found.value.story


@attrs.frozen
class Highest:
    """A comparison of one's own: of equally narrow candidates the one with the highest node."""

    asked: list[int] = attrs.field(eq=False, repr=False)

    def rank(self, candidate: TopologyHint, _scene: ComparisonContext, /) -> Rank:
        mask = candidate.affinity or 0
        self.asked.append(mask)
        return mask.bit_count(), -mask


def test_a_policy_of_ones_own(simulate: Simulates) -> None:
    """What is best is said by a comparison of one's own, and a node goes by it."""
    asked: list[int] = []
    policy = attrs.evolve(Policy.parse("best-effort"), comparison=Highest(asked))
    assert simulate(agent_with(policy=policy), seeds=[0]).violations == 0
    assert asked


def test_a_handler_of_ones_own(simulate: Simulates) -> None:
    """Pods with many containers are refused, and told why; nothing of them ever runs."""
    asked: list[str] = []

    def few_containers(pod: Pod, _view: NodeView, /) -> Admitted | Refused | NotYet:
        asked.append(pod.uid)
        if len(pod.all_containers) > 3:
            return Refused(reason="TooManyContainers", message=f"{pod.name} has more than three")
        return Admitted()

    tally = simulate(agent_with(chain=chain_of(few_containers)), seeds=[0])
    assert tally.operations > 0
    assert asked


@attrs.define
class Addresses:
    """A preparer of one's own: an address for each pod; it may forget to take one back."""

    most: int
    held: dict[str, int] = attrs.field(factory=dict[str, int])

    def make_ready(self, pod: Pod, _cancel: Cancel, /) -> Admitted | NotYet:
        free = set(range(self.most)) - set(self.held.values())
        if pod.uid not in self.held and not free:
            return NotYet(blocker="addresses", message=f"all {self.most} are given out", after_s=1.0)
        self.held.setdefault(pod.uid, min(free, default=0))
        return Admitted()

    def take_back(self, pod: Pod, _cancel: Cancel, /) -> None:
        self.held.pop(pod.uid, None)


class Leaking(Addresses):
    def take_back(self, pod: Pod, _cancel: Cancel, /) -> None:
        """It takes nothing back."""


def test_a_preparer_of_ones_own(simulate: Simulates) -> None:
    """Each pod has an address, and the last one gave it back."""
    addresses = Addresses(most=20)
    preparation = Preparation(name="address", why="nobody talks to a pod without one", by=addresses)
    tally = simulate(agent_with(preparations=[preparation]), seeds=[0])
    assert tally.operations > 0
    assert all(uid.startswith("fill-") for uid in addresses.held)


@pytest.mark.slow
def test_a_preparer_that_leaks_is_found(simulate: Simulates) -> None:
    """Its addresses run out, and a pod waits for ever."""
    preparation = Preparation(name="address", why="nobody talks to a pod without one", by=Leaking(most=3))
    with pytest.raises(ViolationError, match=r"not quiet|waits for \d+ s"):
        simulate(agent_with(preparations=[preparation]), seeds=[0])
