"""The remembered value: what one node is, by which policy it goes, and who has been let in."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol, TypeVar, cast, overload

from nodealloc import _attrs as attrs
from nodealloc._arguments import check, choice, is_other, wrong
from nodealloc._frozen import Frozen, frozen
from nodealloc._typed import typed_fields, typed_on_error
from nodealloc.errors import ConfigurationError
from nodealloc.idset import format_list
from nodealloc.topology._abilities import Accounts
from nodealloc.topology._errors import UnknownAllocatorError
from nodealloc.topology._hints import NumaTopology, TopologyHint
from nodealloc.topology._policy import Policy, Scope
from nodealloc.topology._ports import Allocator
from nodealloc.topology._serving import NATIVE

__all__ = ["Affinities", "Snapshot"]

Affinities = Mapping[str, TopologyHint]
"""Member of a workload to the hint that it was given."""

A = TypeVar("A")

_KUBELETS = Policy()
_CPU: Final = "cpu"
_MEMORY: Final = "memory"


class NumaMachine(Protocol):
    """A machine as far as a snapshot needs it, such as `nodealloc.machine.Machine`."""

    @property
    def nodes(self) -> Iterable[int]:
        """NUMA node ids, ascending."""
        ...

    @property
    def distances(self) -> Mapping[int, Mapping[int, int]] | None:
        """From each node to each node; None when unknown."""
        ...


class _Node(Protocol):
    """A NUMA node of a machine that tells what it has there, such as `nodealloc.machine.NumaNode`."""

    @property
    def id(self) -> int: ...

    @property
    def cpus(self) -> Iterable[int]: ...

    @property
    def memory_bytes(self) -> int: ...


def _policy(policy: object) -> Policy:
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, str):
        return Policy.parse(policy)
    raise wrong("Snapshot.policy", policy, "a Policy, or a kubelet's word such as single-numa-node")


def _listed(allocators: object) -> tuple[object, ...]:
    expected = "a tuple of allocators; one stands as (allocator,)"
    if is_other(allocators, Iterable):
        raise wrong("Snapshot.allocators", allocators, expected)
    return tuple(cast("Iterable[object]", allocators))


def _check_machine(allocator: Allocator, numa: NumaTopology, parts: Sequence[_Node]) -> None:
    """What an allocator gives out is on nodes of this machine, and on all of them, as far as it tells."""
    told: dict[str, set[int]] = {}
    for use in allocator.capacity() if isinstance(allocator, Accounts) else ():
        if use.node is None:
            continue
        if not numa.mask >> use.node & 1:
            raise ConfigurationError(
                f"allocator {allocator.name} has {use.resource} on NUMA node {use.node}, and the machine has "
                f"nodes {format_list(numa.mask)}: make the allocator from the same machine"
            )
        told.setdefault(use.resource, set()).add(use.node)
    for resource, nodes in told.items():
        missing = [one.id for one in parts if one.id not in nodes and _has(one, resource, nodes, parts)]
        if missing:
            raise ConfigurationError(
                f"allocator {allocator.name} knows {resource} on NUMA nodes {format_list(_mask(nodes))}, and "
                f"the machine has some on {format_list(_mask(missing))} too: make the allocator from the "
                "same machine"
            )


def _has(node: _Node, resource: str, told: Collection[int], parts: Sequence[_Node]) -> bool:
    """Whether a node has a resource of a machine's own, which no other node tells of."""
    if resource == _CPU:
        # A CPU may be local to several nodes, and is counted on one.
        counted = _mask(cpu for one in parts if one.id in told for cpu in one.cpus)
        return any(not counted >> cpu & 1 for cpu in node.cpus)
    return resource == _MEMORY and node.memory_bytes > 0


def _mask(ids: Iterable[int]) -> int:
    return sum({1 << one for one in ids})


@typed_fields
@attrs.frozen(kw_only=True)
class Snapshot:
    """A node as admission sees it; a decision is a new snapshot.

    It pickles small: `numa` and `policy` are values that many snapshots share,
    and a pickle of several snapshots holds what they share once.

    Attributes:
        numa: The machine's NUMA nodes.
        policy: Which merged hints are let in; a kubelet's word such as
            `single-numa-node` stands for the policy without options.
        scope: Whether containers are aligned one by one or together.
        allocators: Who gives hints and allocates, in the order in which they
            are asked; their names differ.
        admitted: Workload key to the affinities of its members.
        generation: Grows by 1 with each change.
        elsewhere: Resources that another check answers for: a claim for one of
            them is let in also where no allocator serves it. Huge pages are
            always among them. Anything else that nobody serves is refused; `*` lets in
            whatever nobody serves, as a kubelet does.

    Raises:
        TooManyNodesError: More nodes than the policy's `max_nodes`.
        DistanceError: The policy needs distances that `numa` lacks.
        ConfigurationError: Two allocators have one name, or a field is of another kind.
    """

    numa: NumaTopology
    policy: Policy = Policy()
    scope: Scope = Scope.CONTAINER
    allocators: tuple[Allocator, ...] = ()
    admitted: Mapping[str, Affinities] = attrs.field(factory=Frozen[str, Affinities])
    generation: int = 0
    elsewhere: frozenset[str] = NATIVE

    def __attrs_post_init__(self) -> None:
        # One look at all of them: a snapshot is made for each admission.
        if self.scope.__class__ is not Scope or self.policy.__class__ is not Policy:
            object.__setattr__(self, "scope", choice(Scope, self.scope, "Snapshot.scope"))
            object.__setattr__(self, "policy", _policy(self.policy))
        if self.allocators.__class__ is not tuple or self.numa.__class__ is not NumaTopology:
            object.__setattr__(self, "allocators", _listed(self.allocators))
            check("Snapshot.numa", self.numa, NumaTopology, "a NumaTopology; Snapshot.of takes a machine")
        if self.admitted.__class__ is dict:
            object.__setattr__(self, "admitted", frozen(self.admitted))
        try:
            self._check_names()
        except AttributeError:
            raise wrong("Snapshot.allocators", self.allocators, "an allocator in each place") from None
        self.policy.check(self.numa)

    def _check_names(self) -> None:
        names = {allocator.name for allocator in self.allocators}
        if len(names) != len(self.allocators):
            listed = ", ".join(allocator.name for allocator in self.allocators)
            raise ConfigurationError(f"allocators {listed}: each needs a name of its own")

    @classmethod
    @typed_on_error
    def of(
        cls,
        machine: NumaMachine,
        /,
        *,
        policy: Policy = _KUBELETS,
        scope: Scope = Scope.CONTAINER,
        allocators: Iterable[Allocator] = (),
    ) -> Snapshot:
        """A node with nothing held, made from anything that has `nodes` and `distances`.

        A machine whose kernel names no NUMA nodes is one node, 0.

        Raises:
            TooManyNodesError: More nodes than the policy's `max_nodes`.
            DistanceError: The policy needs distances that the machine lacks.
            ConfigurationError: Two allocators have one name, or one gives out
                something on NUMA nodes that the machine has not, or CPUs or memory
                on fewer nodes than the machine has them.
        """
        nodes = tuple(machine.nodes)
        if nodes:
            numa = NumaTopology(nodes=nodes, distances=machine.distances or {})
        else:
            numa = NumaTopology(nodes=(0,))
        made = cls(numa=numa, policy=policy, scope=scope, allocators=tuple(allocators))
        parts = cast("Sequence[_Node]", getattr(machine, "numa_nodes", ()))
        for one in made.allocators:
            _check_machine(one, numa, parts)
        return made

    @overload
    def __getitem__(self, wanted: type[A], /) -> A: ...

    @overload
    def __getitem__(self, wanted: str, /) -> Allocator: ...

    def __getitem__(self, wanted: type[A] | str, /) -> A | Allocator:
        """The allocator of a class, or of a name.

        Raises:
            UnknownAllocatorError: There is none, or there are several of that
                class: ask by name then.
        """
        if isinstance(wanted, str):
            named = [one for one in self.allocators if one.name == wanted]
            if len(named) == 1:
                return named[0]
            raise UnknownAllocatorError(wanted, 0, self._listed())
        if is_other(wanted, type):
            raise wrong("Snapshot[...]", wanted, "an allocator's class, or its name")
        found = [one for one in self.allocators if isinstance(one, wanted)]
        if len(found) == 1:
            return found[0]
        raise UnknownAllocatorError(wanted.__name__, len(found), self._listed())

    def _listed(self) -> tuple[str, ...]:
        return tuple(f"{one.name} ({type(one).__name__})" for one in self.allocators)
