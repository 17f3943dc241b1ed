"""Values only: what a cgroup may use, where `None` means "not asked for"."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, Protocol, TypeVar, cast

from nodealloc import _attrs as attrs
from nodealloc._arguments import check, wrong
from nodealloc._frozen import Frozen, freeze
from nodealloc._typed import typed_fields, typed_methods
from nodealloc.cgroups._convert import MAX_SHARES, MIN_QUOTA_US, MIN_SHARES, PAGE_BYTES, hugepage_name
from nodealloc.errors import ConfigurationError
from nodealloc.idset import CPUSet, NodeSet

__all__ = ["NO_LIMIT", "Limits"]

S = TypeVar("S", CPUSet, NodeSet)

NO_LIMIT: Final = -1
"""Asks for a limit to be lifted; `None` leaves it as it is."""

_LEAST: Final = {
    "cpu_quota_us": (MIN_QUOTA_US, "the least quota in microseconds that the kernel takes"),
    "memory_bytes": (PAGE_BYTES, "one page: nothing could run in less"),
    "memory_min_bytes": (0, "the least there is"),
    "memory_high_bytes": (0, "the least there is"),
    "swap_bytes": (0, "the least there is"),
    "pids": (1, "one process: nothing could start with fewer"),
}
_WITHIN: Final = {"cpu_shares": (MIN_SHARES, MAX_SHARES), "cpu_period_us": (1000, 1_000_000)}


def _amounts_fault(asked: Mapping[str, int]) -> str:
    """What the kernel would refuse or bend, with the remedy, or ""."""
    for name, amount in asked.items():
        least, why = _LEAST.get(name, (amount, ""))
        if amount != NO_LIMIT and amount < least:
            return (
                f"{name} {amount} is below {least}, {why}; ask for {least} or more, "
                f"{NO_LIMIT} for no limit, or None to leave it as it is"
            )
        low, high = _WITHIN.get(name, (amount, amount))
        if not low <= amount <= high:
            return f"{name} {amount} is outside {low} to {high}, which the kernel keeps; choose one within"
    if "cpu_period_us" in asked and "cpu_quota_us" not in asked:
        return "cpu_period_us without cpu_quota_us: the two are one setting; ask for both"
    return ""


def _hugepages_fault(limits: Mapping[int, int]) -> str:
    for size, amount in limits.items():
        hugepage_name(size)
        if amount != NO_LIMIT and amount < 0:
            return f"hugepage_bytes[{size}] {amount} is negative; use {NO_LIMIT} for no limit"
    return ""


_SETS: Final = frozenset({"cpus", "mems", "hugepage_bytes"})


def _cpus(cpus: CPUSet | str | None) -> CPUSet | None:
    return CPUSet.parse(cpus) if isinstance(cpus, str) else _optional("cpus", cpus, CPUSet)


def _mems(mems: NodeSet | str | None) -> NodeSet | None:
    return NodeSet.parse(mems) if isinstance(mems, str) else _optional("mems", mems, NodeSet)


def _optional(name: str, value: S | None, kind: type[S]) -> S | None:
    return None if value is None else check(f"Limits.{name}", value, kind, f"a {kind.__name__} or its text")


def _asked_of(limits: Limits) -> Mapping[str, object]:
    values = ((name, getattr(limits, name)) for name in _FIELDS)
    return Frozen((name, value) for name, value in values if value is not None and value != {})


@typed_methods
@typed_fields
@attrs.frozen(kw_only=True)
class Limits:
    """What is asked of one cgroup; everything left at None stays as somebody set it.

    Attributes:
        cpu_shares: Weight against siblings, 2 to 262144; 1024 is one CPU's worth.
        cpu_quota_us: CPU time a period in microseconds, at least 1000, or `NO_LIMIT`.
        cpu_period_us: The period, 1000 to 1000000; only together with a quota.
        memory_bytes: Hard limit, or `NO_LIMIT`; at least one page.
        memory_min_bytes: Never reclaimed up to here (cgroup v2).
        memory_high_bytes: Slowed down and reclaimed from here, or `NO_LIMIT` (cgroup v2).
        swap_bytes: Swap beyond memory, or `NO_LIMIT` (cgroup v2).
        pids: Most tasks, at least 1, or `NO_LIMIT`.
        cpus: CPUs to run on; never empty.
        mems: NUMA nodes to take memory from; never empty.
        hugepage_bytes: Page size in bytes to a limit in bytes, or `NO_LIMIT`.
    """

    cpu_shares: int | None = None
    cpu_quota_us: int | None = None
    cpu_period_us: int | None = None
    memory_bytes: int | None = None
    memory_min_bytes: int | None = None
    memory_high_bytes: int | None = None
    swap_bytes: int | None = None
    pids: int | None = None
    cpus: CPUSet | None = attrs.field(default=None, converter=_cpus)
    mems: NodeSet | None = attrs.field(default=None, converter=_mems)
    hugepage_bytes: Mapping[int, int] = attrs.field(factory=Frozen[int, int], validator=freeze)

    _asked: Mapping[str, object] = attrs.field(
        init=False, eq=False, repr=False, default=attrs.Factory(_asked_of, takes_self=True)
    )

    def __attrs_post_init__(self) -> None:
        amounts: dict[str, int] = {}
        for name, value in self._asked.items():
            if name not in _SETS:
                if type(value) is not int:
                    remedy = "a whole number; Quantity.parse(text).value reads 1Gi"
                    raise wrong(f"Limits.{name}", value, remedy)
                amounts[name] = value
            elif not value:
                raise ConfigurationError(
                    f"{name} is empty; processes need at least one, or pass None to leave it"
                )
        if fault := _amounts_fault(amounts) or _hugepages_fault(self.hugepage_bytes):
            raise ConfigurationError(f"limits: {fault}")

    @property
    def asked(self) -> Mapping[str, object]:
        """Fields that are asked for, by name, in the order above."""
        return self._asked

    def over(self, earlier: Limits, /) -> Limits:
        """What stands after asking for `earlier` and then for this."""
        if not (self and earlier):
            return self or earlier
        pages = {**earlier.hugepage_bytes, **self.hugepage_bytes}
        return _made({**earlier.asked, **self.asked, "hugepage_bytes": pages})

    def since(self, earlier: Limits, /) -> Limits:
        """The part of this that `earlier` did not ask for in the same way."""
        if not earlier:
            return self
        pages = {
            size: amount
            for size, amount in self.hugepage_bytes.items()
            if earlier.hugepage_bytes.get(size) != amount
        }
        before = earlier.asked
        changed = {name: value for name, value in self.asked.items() if before.get(name) != value}
        if "cpu_quota_us" in changed or "cpu_period_us" in changed:
            changed |= {
                name: self.asked[name] for name in ("cpu_quota_us", "cpu_period_us") if name in self.asked
            }
        return _made({**changed, "hugepage_bytes": pages})

    def only(self, names: Collection[str], /) -> Limits:
        """The part of this that these fields ask for; a period without its quota asks for nothing."""
        kept = {name: value for name, value in self.asked.items() if name in names}
        if "cpu_quota_us" not in kept:
            kept.pop("cpu_period_us", None)
        return _made(kept)

    def __bool__(self) -> bool:
        """Whether anything is asked for."""
        return bool(self._asked)


_FIELDS: Final = tuple(field.name for field in attrs.fields(Limits) if field.init)


class _Maker(Protocol):
    def __call__(self, **fields: object) -> Limits: ...


def _made(fields: Mapping[str, object]) -> Limits:
    """Limits from fields that came out of other limits."""
    return cast("_Maker", Limits)(**fields)
