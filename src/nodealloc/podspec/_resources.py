"""Requests and limits of one container: reading, checking, defaulting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from nodealloc._reading import as_shown, short, under
from nodealloc._typed import typed_on_error
from nodealloc.errors import DecodeError
from nodealloc.podspec._amounts import Resources
from nodealloc.podspec._names import is_extended_resource, is_prefixed
from nodealloc.podspec._quantity import Quantity

__all__ = ["amounts_of", "page_bytes", "read_resources"]

HUGEPAGES: Final = "hugepages-"
_NATIVE: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_LARGEST: Final = 2**63 - 1
_TOO_MUCH: Final = f"more than any machine has ({_LARGEST} at most)"
_BEYOND: Final = 10**40
"""Billionths; no amount that is taken comes near."""
_PLENTY: Final = 10**24
"""Billionths: of CPUs, too, this is far below the largest amount."""

Fail = Callable[[str, str], None]


@typed_on_error
def page_bytes(resource: str, /) -> int | None:
    """Page size in bytes of `hugepages-2Mi`; None for another resource or a bad size."""
    if not resource.startswith(HUGEPAGES):
        return None
    try:
        size = Quantity.parse(resource.removeprefix(HUGEPAGES))
    except DecodeError:
        return None
    return size.value if size.is_whole and size.value > 0 else None


def read_resources(
    requests: Mapping[str, object], limits: Mapping[str, object], path: str, fail: Fail, /
) -> tuple[Resources, Resources]:
    """Requests, completed from the limits, and limits; faults go to `fail(path, reason)`.

    Source: Kubernetes ``pkg/apis/core/validation`` and ``pkg/apis/core/v1/defaults``.
    """
    most = amounts_of(limits, f"{path}.limits", fail)
    asked = {**most, **amounts_of(requests, f"{path}.requests", fail)}
    for name, amount in asked.items():
        limit = most.get(name)
        if limit is not None and amount > limit:
            fail(
                under(f"{path}.requests", name),
                f"the request {amount} is above the limit {limit}; lower it or raise the limit",
            )
        elif limit != amount and name not in _NATIVE and _is_whole(name):
            told = "no limit" if limit is None else f"the limit {limit}"
            fail(
                under(f"{path}.requests", name),
                f"{name} cannot be overcommitted: request {amount} beside {told}; set both alike",
            )
    if any(name.startswith(HUGEPAGES) for name in asked) and not asked.keys() & {"cpu", "memory"}:
        fail(path, "huge pages need a request of cpu or memory beside them")
    return asked, most


def amounts_of(items: Mapping[str, object], path: str, fail: Fail) -> dict[str, Quantity]:
    amounts: dict[str, Quantity] = {}
    for name, item in items.items():
        if name in _NATIVE and type(item) is str and (plain := _plain(item)):
            amounts[name] = plain
            continue
        here = under(path, name)
        reason = _name_fault(name)
        if reason:
            fail(here, reason)
            continue
        if not isinstance(item, str | int | float) or isinstance(item, bool):
            fail(here, f"expected a quantity such as 500m or 2Gi, found {type(item).__name__}")
            continue
        try:
            amount = Quantity.of(item)
        except DecodeError as error:
            fail(here, error.faults[0].reason + f", found {as_shown(item)}")
            continue
        reason = _amount_fault(name, amount, item)
        if reason:
            fail(here, reason)
        else:
            amounts[name] = amount
    return amounts


def _plain(text: str) -> Quantity | None:
    """An amount that is right whatever it is of, as nearly all are: looked at no closer."""
    try:
        amount = Quantity.parse(text)
    except DecodeError:
        return None
    return amount if 0 < amount.nanos < _PLENTY else None


def _is_whole(name: str) -> bool:
    """Whether it is given out in whole ones, as many as the limit says; names of kubernetes.io are not."""
    return name.startswith(HUGEPAGES) or is_extended_resource(name)


def _name_fault(name: str) -> str:
    if name in _NATIVE or page_bytes(name):
        return ""
    if name.startswith(HUGEPAGES):
        return f"{short(name)} names no page size; write hugepages-2Mi or hugepages-1Gi"
    if is_extended_resource(name) or ("kubernetes.io/" in name and is_prefixed(name)):
        return ""
    known = ", ".join(sorted(_NATIVE))
    return (
        f"unknown resource {short(name)}; known: {known}, hugepages-SIZE, and names such as example.com/gpu"
    )


def _amount_fault(name: str, amount: Quantity, item: object) -> str:
    if not -_BEYOND < amount.nanos < _BEYOND:
        # As it was written: `1e500` takes as long to write out as a thousand other amounts.
        shown = as_shown(item).strip("'")
        sign = "negative; an amount is 0 or more" if amount.nanos < 0 else _TOO_MUCH
        return f"{shown} is {sign}"
    if amount.nanos < 0:
        return f"{amount} is negative; an amount is 0 or more"
    if amount.value > _LARGEST or (name == "cpu" and amount.milli_value > _LARGEST):
        return f"{amount} is {_TOO_MUCH}"
    page = page_bytes(name)
    if page and amount.nanos % (page * 10**9):
        return f"{amount} is no multiple of the page size {page}"
    if name not in _NATIVE and _is_whole(name) and not amount.is_whole:
        return f"{amount} is no whole number; {name} is counted in whole ones"
    return ""
