"""How many CPUs a claim wants for itself, and how much of the shared pool besides."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from nodealloc import _attrs as attrs
from nodealloc._typed import typed_on_error
from nodealloc.podspec import Quantity

if TYPE_CHECKING:
    from nodealloc.cpuset._policy import StaticPolicy
    from nodealloc.topology import Claim

__all__ = ["CPU", "Demand", "demand_of", "exclusive_cpus_setting"]

CPU = "cpu"
"""The resource that this package gives out."""

_PREFIX = "exclusive-cpus.nodealloc/"
_ALL = "all"
_DIGITS = 9
"""Of the number in a setting; whoever wrote the pod may have written a megabyte."""


@attrs.frozen(kw_only=True)
class Demand:
    """What a claim wants of this package.

    Attributes:
        exclusive: Whole CPUs for itself alone; 0 for a claim that shares.
        shared_milli_cpu: What it wants of the shared pool besides.
        fault: What is wrong with its settings; "" when nothing is.
    """

    exclusive: int = 0
    shared_milli_cpu: int = 0
    fault: str = ""


@typed_on_error
def exclusive_cpus_setting(member: str, /) -> str:
    """The setting (for pods: the annotation) that asks for exclusive CPUs for one member.

    Its value is a number of CPUs, or `all` for the whole request. What the
    request has beyond that number comes from the shared pool. Read only where
    `StaticPolicy.per_container` is on.
    """
    return _PREFIX + member


def demand_of(policy: StaticPolicy, claim: Claim, /) -> Demand:
    """What a claim wants, by the kubelet's rule or by its own setting.

    Source: kubelet ``cm/cpumanager/policy_static.go``: a pod of class
    Guaranteed gets exclusive CPUs for each container that requests whole ones.
    The setting is ours.
    """
    if policy.per_container:
        setting = claim.settings.get(exclusive_cpus_setting(claim.owner.member))
        if setting is not None:
            return _demand_of_setting(claim, setting)
    amount = claim.amounts.get(CPU) if claim.exclusive else None
    if amount is None:
        return _NOTHING
    return _of_nanos(amount.nanos)


_NOTHING = Demand()


@lru_cache(maxsize=1024)
def _of_nanos(nanos: int) -> Demand:
    """Exclusive CPUs for a request of so many billionths."""
    amount = Quantity(nanos=nanos)
    # Both round up: 1.9999999 counts as whole, as it does there.
    is_whole = amount.value * 1000 == amount.milli_value
    return Demand(exclusive=amount.value) if is_whole and nanos > 0 else _NOTHING


def _demand_of_setting(claim: Claim, setting: str) -> Demand:
    amount = claim.amounts.get(CPU)
    requested = amount.milli_value if amount is not None else 0
    name = exclusive_cpus_setting(claim.owner.member)
    if setting != _ALL and not (setting.isascii() and setting.isdecimal() and len(setting) <= _DIGITS):
        return Demand(fault=f"setting {name} is {setting[:40]!r}; write a number of CPUs, or {_ALL}")
    exclusive = requested // 1000 if setting == _ALL else int(setting)
    if exclusive * 1000 > requested or (setting == _ALL and requested % 1000):
        return Demand(
            fault=f"setting {name} is {setting!r}, the request is {requested}m CPU; "
            "request whole CPUs, at least as many as shall be exclusive"
        )
    if exclusive == 0:
        return Demand()
    return Demand(exclusive=exclusive, shared_milli_cpu=requested - 1000 * exclusive)
