"""Values only: how much of which resource, however it was written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from nodealloc._arguments import check
from nodealloc._frozen import Frozen
from nodealloc._reading import as_shown
from nodealloc.errors import ConfigurationError, DecodeError, Fault
from nodealloc.podspec._quantity import Quantity

__all__ = ["Amounts", "Resources", "resources"]

Resources: TypeAlias = Mapping[str, Quantity]
"""Resource name (`cpu`, `memory`, `hugepages-2Mi`, `example.com/gpu`) to amount.

Read-only: values are shared between pods, claims and snapshots.
"""


class Amounts(Frozen[str, Quantity]):
    """Amounts that have been looked at: none is negative, and nobody changes them."""

    __slots__ = ()

    def __reduce__(self) -> tuple[type[Amounts], tuple[dict[str, Quantity]]]:
        return Amounts, (dict(self),)


def resources(amounts: Mapping[str, Quantity | str | float], /) -> Resources:
    """Amounts by resource, from quantities, texts and numbers: `{"cpu": 2, "memory": "1Gi"}`.

    Raises:
        ConfigurationError: No mapping, or an amount below 0.
        DecodeError: Something that is no amount; each is named with its resource.
    """
    if isinstance(amounts, Amounts):
        return amounts
    check("amounts", amounts, Mapping, "a mapping of resource name to amount")
    try:
        found = {name: Quantity.of(amount) for name, amount in amounts.items()}
    except DecodeError:
        raise _none(amounts) from None
    for name, amount in found.items():
        if amount.nanos < 0:
            raise ConfigurationError(f"{name}: {amount} is asked for; ask for 0 or more")
    return Amounts(found)


def _none(amounts: Mapping[str, Quantity | str | float]) -> DecodeError:
    """Of several amounts, those that are none, each with the name of its resource."""
    faults: list[Fault] = []
    source = ""
    for name, amount in amounts.items():
        try:
            Quantity.of(amount)
        except DecodeError as error:
            source = error.source if not faults else "amounts"
            faults.append(Fault(f"$.{name}", f"{error.faults[0].reason}, found {as_shown(amount)}"))
    return DecodeError(source, faults)
