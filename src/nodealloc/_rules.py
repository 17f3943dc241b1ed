"""How a package says where it does otherwise than the kubelet: a field of its `Rules` for each difference.

A package declares one frozen class `Rules` and one value `KUBELET`::

    @attrs.frozen(kw_only=True)
    class Rules:
        keeps_grace: bool = attrs.field(default=True, metadata=recorded(False, "pod_workers 110"))

    KUBELET = as_recorded(Rules)

`Rules()` is what is right, `KUBELET` is as recorded, bug for bug. Nothing here
is a switch: whoever decides is handed a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol, TypeVar, cast

from nodealloc import _attrs as attrs
from nodealloc.errors import ConfigurationError

__all__ = ["Departure", "as_recorded", "departures", "recorded"]

_KEY: Final = "nodealloc.recorded"

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class _Maker(Protocol[R_co]):
    def __call__(self, **fields: object) -> R_co: ...


@attrs.frozen(kw_only=True)
class Departure:
    """One way in which a package is better than what was recorded.

    Attributes:
        name: Field of `Rules`.
        ours: Its value in `Rules()`.
        kubelet: Its value in `KUBELET`; never the same as `ours`.
        rows: Where it was recorded, as `KIND ID` of a row (`KIND ID[STEP]` of a step), at least one.
    """

    name: str
    ours: object
    kubelet: object
    rows: tuple[str, ...]

    def __attrs_post_init__(self) -> None:
        if self.ours == self.kubelet:
            raise ConfigurationError(
                f"rule {self.name}: {self.ours!r} both times; what does not differ is no rule"
            )
        if not self.rows:
            raise ConfigurationError(
                f"rule {self.name} names no row; say where the kubelet was seen to do so"
            )
        for row in self.rows:
            if len(row.split()) != 2:
                raise ConfigurationError(f"rule {self.name}: {row!r} names no row; write KIND ID")


def recorded(kubelet: object, /, *rows: str) -> Mapping[str, object]:
    """Metadata of a field of `Rules`.

    Args:
        kubelet: What the field is in `KUBELET`.
        rows: Rows in which the kubelet was seen to do so, each as `KIND ID`.
    """
    return {_KEY: (kubelet, rows)}


def departures(rules: type, /) -> tuple[Departure, ...]:
    """All differences that a class `Rules` declares, in its order.

    Raises:
        ConfigurationError: A field has no default, was declared without `recorded`, does
            not differ, or names no row.
    """
    fields = cast("tuple[attrs.Attribute[object], ...]", attrs.fields(rules))
    return tuple(_departure(field) for field in fields)


def _departure(field: attrs.Attribute[object]) -> Departure:
    absent = field.default is attrs.NOTHING or isinstance(field.default, attrs.Factory)  # type: ignore[arg-type]
    if absent or _KEY not in field.metadata:
        raise ConfigurationError(
            f"rule {field.name} needs a plain default, and metadata=recorded(…) with what the kubelet does"
        )
    kubelet, rows = cast("tuple[object, tuple[str, ...]]", field.metadata[_KEY])
    return Departure(name=field.name, ours=field.default, kubelet=kubelet, rows=rows)


def as_recorded(rules: type[R], /) -> R:
    """The `KUBELET` of a package: each field as the kubelet does it.

    Raises:
        ConfigurationError: As `departures` does; or a value that the field refuses.
    """
    return cast("_Maker[R]", rules)(**{one.name: one.kubelet for one in departures(rules)})
