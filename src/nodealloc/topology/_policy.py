"""Values only: which merged hints are let in, under the kubelet's names and options."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from nodealloc import _attrs as attrs
from nodealloc._arguments import check, choice, whole
from nodealloc._reading import go_bool
from nodealloc._typed import typed_fields
from nodealloc.idset import MAX_ID
from nodealloc.topology._comparison import Comparison
from nodealloc.topology._errors import (
    DistanceError,
    TooManyNodesError,
    UnknownOptionError,
    UnknownPolicyError,
)
from nodealloc.topology._hints import NumaTopology

__all__ = ["KUBELET_MAX_NODES", "Policy", "PolicyName", "Scope"]

KUBELET_MAX_NODES = 8
"""The kubelet's default for, and smallest value of, `max-allowable-numa-nodes`."""

_PREFER_CLOSEST = "prefer-closest-numa-nodes"
_MAX_NODES = "max-allowable-numa-nodes"
_SEARCH = "search-whole-pod"


class PolicyName(enum.Enum):
    """The four policies by their kubelet names, weakest first."""

    NONE = "none"
    """No hints are asked for; every allocator takes what it likes."""
    BEST_EFFORT = "best-effort"
    """The best merged hint is used, preferred or not."""
    RESTRICTED = "restricted"
    """The best merged hint has to be preferred."""
    SINGLE_NUMA_NODE = "single-numa-node"
    """One node, or no preference at all."""

    @property
    def weaker(self) -> tuple[PolicyName, ...]:
        """Policies that ask for less, the strictest of them first."""
        names = tuple(PolicyName)
        return names[: names.index(self)][::-1]


class Scope(enum.Enum):
    """What is aligned together."""

    CONTAINER = "container"
    """Each container by itself, in the order in which they start."""
    POD = "pod"
    """All containers on the same nodes."""

    @classmethod
    def parse(cls, name: str, /) -> Scope:
        """The scope of that kubelet name; raises `UnknownPolicyError`."""
        try:
            return cls(name)
        except ValueError:
            raise UnknownPolicyError(name, tuple(one.value for one in cls), "topology scope") from None


# Members of an enumeration are slow to look up before Python 3.12.
_NONE = PolicyName.NONE
_NAMES = tuple(PolicyName)


def _name(name: PolicyName | str) -> PolicyName:
    return choice(PolicyName, name, "Policy.name")


@typed_fields
@attrs.frozen(kw_only=True)
class Policy:
    """A topology policy with its options.

    Attributes:
        name: Which of the four.
        prefer_closest: Among hints of equal width the nodes nearest to each
            other win (`prefer-closest-numa-nodes`); single-numa-node ignores it.
        max_nodes: Largest number of NUMA nodes that is accepted
            (`max-allowable-numa-nodes`); None is unlimited, the kubelet has 8.
        comparison: Ranks candidates in place of the kubelet's own comparison.
        search: Whether `admit` searches over the whole workload instead of
            settling each claim for good (`search-whole-pod`, ours).
        search_steps: After how many tried claims such a search gives up.
        work_units: After how much counted work one admission, or one merge,
            gives up (`WorkLimitError`, ours); a unit is about a microsecond.
        kind: Equal for policies that choose alike among the same lists of hints:
            0 for `none`, None with a `comparison`; computed.
    """

    name: PolicyName = attrs.field(default=PolicyName.NONE, converter=_name)
    prefer_closest: bool = False
    max_nodes: int | None = attrs.field(default=None, validator=attrs.validators.optional(whole(1)))
    comparison: Comparison | None = None
    search: bool = False
    search_steps: int = attrs.field(default=10_000, validator=whole(1))
    work_units: int = attrs.field(default=1_000_000, validator=whole(1))
    kind: int | None = attrs.field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        kind = (
            None if self.comparison is not None else 2 * _NAMES.index(self.name) + bool(self.prefer_closest)
        )
        object.__setattr__(self, "kind", 0 if self.name is _NONE else kind)

    @classmethod
    def parse(cls, name: str, options: Mapping[str, str] | None = None, /) -> Policy:
        """Policy from the words of a kubelet configuration.

        Args:
            name: `none`, `best-effort`, `restricted`, `single-numa-node`; "" is `none`.
            options: `prefer-closest-numa-nodes`, `max-allowable-numa-nodes`, and
                this library's own `search-whole-pod`.

        Raises:
            UnknownPolicyError: No such policy.
            UnknownOptionError: No such option, or a value that it does not take.

        Source: kubelet ``cm/topologymanager/policy_options.go``.
        """
        try:
            chosen = PolicyName(name or "none")
        except ValueError:
            raise UnknownPolicyError(name, tuple(one.value for one in PolicyName)) from None
        given = dict(check("topology policy options", options or {}, Mapping, "a mapping of option to value"))
        closest = _flag(_PREFER_CLOSEST, given.pop(_PREFER_CLOSEST, "false"))
        search = _flag(_SEARCH, given.pop(_SEARCH, "false"))
        limit = given.pop(_MAX_NODES, None)
        for option, value in given.items():
            known = f"one of the options {_PREFER_CLOSEST}, {_MAX_NODES}, {_SEARCH}"
            raise UnknownOptionError(option, value, known)
        return cls(
            name=chosen,
            prefer_closest=closest,
            max_nodes=None if limit is None else _max_nodes(limit),
            search=search,
        )

    def check(self, numa: NumaTopology, /) -> None:
        """Refuse a machine that this policy cannot serve.

        Raises:
            TooManyNodesError: More nodes than `max_nodes`.
            DistanceError: `prefer_closest` without distances.
        """
        if self.name is _NONE:
            return
        if self.max_nodes is not None and len(numa.nodes) > self.max_nodes:
            raise TooManyNodesError(len(numa.nodes), self.max_nodes)
        if self.prefer_closest and numa.nodes and not numa.distances:
            raise DistanceError(
                None, f"unknown, but {_PREFER_CLOSEST} compares them; give them or drop the option"
            )


def _flag(name: str, value: str) -> bool:
    flag = go_bool(value)
    if flag is None:
        raise UnknownOptionError(name, value, "true or false")
    return flag


def _max_nodes(value: str) -> int:
    digits = str(value)  # a configuration may have left out the quotes
    if digits.isascii() and digits.isdecimal() and len(digits) <= len(str(MAX_ID)):
        limit = int(digits)
        if limit >= KUBELET_MAX_NODES:
            return limit
    known = f"a whole number from {KUBELET_MAX_NODES}, with at most {len(str(MAX_ID))} digits"
    raise UnknownOptionError(_MAX_NODES, digits[:40], known)
