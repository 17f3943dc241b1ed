"""Values only: CPUs and NUMA nodes, of which machines are made. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from nodealloc import _attrs as attrs
from nodealloc._arguments import field_of, wrong
from nodealloc._frozen import Frozen, freeze
from nodealloc._typed import typed_fields, typed_fields_on_error
from nodealloc.errors import ConfigurationError
from nodealloc.idset import CPUSet

__all__ = ["Cpu", "NumaNode"]


def _not_negative(instance: object, attribute: object, value: int) -> None:
    """An attrs validator: a count, an id or a size is 0 or more."""
    # Not `value < 0`, which what is no number (NaN) passes.
    if not value >= 0:
        raise wrong(field_of(instance, attribute), value, "0 or more")


def _check_pages(node: int, hugepages: Mapping[int, int]) -> None:
    """Page sizes are above 0, counts 0 or more."""
    for size, count in hugepages.items():
        if size <= 0 or count < 0:
            raise ConfigurationError(
                f"NUMA node {node}: {count} huge pages of {size} bytes; "
                "expected a size above 0 and a count of 0 or more"
            )


@typed_fields_on_error
@attrs.frozen(kw_only=True)
class Cpu:
    """One logical CPU that is online.

    Group ids are opaque: equal id means same group, and where a rule needs an
    order, groups go by ascending id.

    Attributes:
        id: As the kernel numbers it; 0-based, gaps allowed.
        core: Physical core, unique on the machine.
        socket: Package.
        numa_nodes: Local NUMA nodes, ascending; empty when the kernel names none.
        l3: Group of CPUs behind one last-level (uncore) cache, or None.
        die: Die inside the package, unique on the machine, or None.
        cluster: Cluster of cores inside the die, unique on the machine, or None.
        kind: Name of the core's kind on hybrid machines (`core`, `atom`), else "".
    """

    id: int = attrs.field(validator=_not_negative)
    core: int = attrs.field(validator=_not_negative)
    socket: int = attrs.field(validator=_not_negative)
    numa_nodes: tuple[int, ...] = ()
    l3: int | None = attrs.field(default=None, validator=attrs.validators.optional(_not_negative))
    die: int | None = attrs.field(default=None, validator=attrs.validators.optional(_not_negative))
    cluster: int | None = attrs.field(default=None, validator=attrs.validators.optional(_not_negative))
    kind: str = ""


@typed_fields
@attrs.frozen(kw_only=True)
class NumaNode:
    """One NUMA node; it may lack CPUs, memory or both.

    Attributes:
        id: As the kernel numbers it; 0-based, gaps allowed.
        cpus: Online CPUs that are local to it.
        memory_bytes: Memory in bytes, huge pages included; 0 for a node without.
        hugepages: Page size in bytes to number of pages in the pool.
    """

    id: int = attrs.field(validator=_not_negative)
    cpus: CPUSet = CPUSet()
    memory_bytes: int = attrs.field(default=0, validator=_not_negative)
    hugepages: Mapping[int, int] = attrs.field(factory=Frozen[int, int], validator=freeze, hash=False)

    def __attrs_post_init__(self) -> None:
        _check_pages(self.id, self.hugepages)
