"""What can be wrong in what callers and providers hand over; each names the culprit."""

from __future__ import annotations

from nodealloc.errors import ConfigurationError, PermanentError
from nodealloc.idset import format_list

__all__ = [
    "DistanceError",
    "HintError",
    "MaskOutsideError",
    "NoEvidenceError",
    "ProviderError",
    "TooManyNodesError",
    "UnknownAllocatorError",
    "UnknownOptionError",
    "UnknownPolicyError",
    "WorkLimitError",
]


class UnknownPolicyError(ConfigurationError):
    """A topology policy or scope that does not exist.

    Attributes:
        name: What was asked for.
        known: What could have been asked for.
    """

    name: str
    known: tuple[str, ...]

    def __init__(self, name: str, known: tuple[str, ...], what: str = "topology policy") -> None:
        self.name, self.known = name, known
        self.what: str = what
        super().__init__(name, known, what)

    def __str__(self) -> str:
        """What was unknown, and the choices."""
        return f"unknown {self.what} {self.name!r}; choose one of {', '.join(self.known)}"


class UnknownAllocatorError(PermanentError, KeyError):
    """A snapshot was asked for an allocator that it has not, or has more than once.

    Attributes:
        wanted: The name, or the name of the class, that was asked for.
        found: How many answer to it: 0, or more than 1.
        known: What there is, as `cpu (CpuAllocator)`.
    """

    wanted: str
    found: int
    known: tuple[str, ...]

    def __init__(self, wanted: str, found: int, known: tuple[str, ...]) -> None:
        self.wanted, self.found, self.known = wanted, found, known
        super().__init__(wanted, found, known)

    def __str__(self) -> str:
        """What was asked for, and what there is."""
        there = ", ".join(self.known) or "none"
        if self.found:
            return f"{self.found} allocators are a {self.wanted}; ask by name, one of: {there}"
        return f"no allocator {self.wanted}; there are: {there}"


class NoEvidenceError(ConfigurationError):
    """A refusal was to be explained that has no evidence any more.

    Attributes:
        workload: Who was refused.
        reason: The refusal's reason.
    """

    workload: str
    reason: str

    def __init__(self, workload: str, reason: str) -> None:
        self.workload, self.reason = workload, reason
        super().__init__(workload, reason)

    def __str__(self) -> str:
        """What cannot be explained, and the two ways round it."""
        return (
            f"the refusal of {self.workload} ({self.reason}) was pickled or made by hand and has no evidence "
            "to explain: explain it before it is sent, or call admit again where the snapshot is"
        )


class UnknownOptionError(ConfigurationError):
    """A policy option that does not exist, or a value that it does not take.

    Attributes:
        name: The option.
        value: What it was set to.
        expected: What would be right.
    """

    name: str
    value: str
    expected: str

    def __init__(self, name: str, value: str, expected: str) -> None:
        self.name, self.value, self.expected = name, value, expected
        super().__init__(name, value, expected)

    def __str__(self) -> str:
        """The option, its value, and what would be right."""
        return f"topology policy option {self.name}={self.value!r}: expected {self.expected}"


class TooManyNodesError(ConfigurationError):
    """The machine has more NUMA nodes than `max-allowable-numa-nodes` lets pass.

    Attributes:
        nodes: How many it has.
        allowed: How many are allowed.
    """

    nodes: int
    allowed: int

    def __init__(self, nodes: int, allowed: int) -> None:
        self.nodes, self.allowed = nodes, allowed
        super().__init__(nodes, allowed)

    def __str__(self) -> str:
        """Both numbers and the way out."""
        return (
            f"{self.nodes} NUMA nodes, but max-allowable-numa-nodes is {self.allowed}; "
            "raise the option or leave it out (the merge here has no limit of its own)"
        )


class DistanceError(ConfigurationError):
    """NUMA distances that are missing, not square, or negative.

    Attributes:
        node: Row at fault; None when there are no distances at all.
        reason: What is wrong in it and what would be right.
    """

    node: int | None
    reason: str

    def __init__(self, node: int | None, reason: str) -> None:
        self.node, self.reason = node, reason
        super().__init__(node, reason)

    def __str__(self) -> str:
        """The row and the fault."""
        where = "NUMA distances" if self.node is None else f"NUMA distances from node {self.node}"
        return f"{where}: {self.reason}"


class HintError(ConfigurationError):
    """A hint provider answered with something that is no hint.

    Attributes:
        provider: Name of the provider, or its place as `provider 2`.
        resource: For which resource; "" when the answer as a whole is at fault.
        reason: What came and what would be right.
    """

    provider: str
    resource: str
    reason: str

    def __init__(self, provider: str, resource: str, reason: str) -> None:
        self.provider, self.resource, self.reason = provider, resource, reason
        super().__init__(provider, resource, reason)

    def __str__(self) -> str:
        """Provider, resource, fault."""
        about = f", resource {self.resource}" if self.resource else ""
        return f"{self.provider}{about}: {self.reason}"


class MaskOutsideError(HintError):
    """A hint names NUMA nodes that the machine does not have, or none at all.

    Attributes:
        mask: The mask at fault.
        machine: The mask of all nodes.
    """

    mask: int
    machine: int

    def __init__(self, provider: str, resource: str, mask: int, machine: int) -> None:
        self.mask, self.machine = mask, machine
        nodes = format_list(machine)
        if mask > 0:
            outside = format_list(mask & ~machine)
            reason = f"hint for NUMA nodes {format_list(mask)}, but {outside} are not among {nodes}"
        else:
            reason = f"hint with mask {mask}; use None for any node, or a subset of nodes {nodes}"
        super().__init__(provider, resource, reason)


class ProviderError(PermanentError):
    """An allocator raised, or answered with something that is no answer; nothing was changed.

    The exception that it raised, if any, is the `__cause__`.

    Attributes:
        provider: Its name.
        call: `hints`, `allocate` or `release`.
        resources: What was asked for, comma-separated.
        owner: `workload/member` that was asked for.
        reason: What came.
    """

    provider: str
    call: str
    resources: str
    owner: str
    reason: str

    def __init__(self, provider: str, call: str, resources: str, owner: str, reason: str) -> None:
        self.provider, self.call, self.resources = provider, call, resources
        self.owner, self.reason = owner, reason
        super().__init__(provider, call, resources, owner, reason)

    def __str__(self) -> str:
        """Who, on which call, for whom, and what came."""
        return (
            f"{self.provider}.{self.call} for {self.owner} ({self.resources or 'no resource'}): "
            f"{self.reason}; the snapshot is as it was"
        )


class WorkLimitError(PermanentError):
    """A search took more work than it may; nothing is proved and nothing was changed.

    Work is counted and not timed: the same question ends here on every machine.

    Attributes:
        units: How many units of work there were (`Policy.work_units`).
    """

    units: int

    def __init__(self, units: int) -> None:
        self.units = units
        super().__init__(units)

    def __str__(self) -> str:
        """How far it went and what helps."""
        return (
            f"given up after {self.units} units of work, with neither a placement nor a proof that there is "
            "none; raise Policy.work_units, or ask for whole nodes or fewer kinds of resources at a time"
        )
