"""What an API server checks of how a scheduler is to spread pods; a node carries it along."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, cast

from nodealloc._raw_parts import Fields, items_of, text_of
from nodealloc.errors import Fault
from nodealloc.podspec._names import is_qualified
from nodealloc.podspec._selector_validity import keys_of, label_key_faults, selector_faults

if TYPE_CHECKING:
    from nodealloc.podspec._fields import PodFields

__all__ = ["spread_faults"]

_SPREAD: Final = "spec.topologySpreadConstraints"
_OTHERWISE: Final = ("DoNotSchedule", "ScheduleAnyway")


def spread_faults(pod: PodFields, /) -> Iterator[Fault]:
    """What is wrong with the constraints on how a scheduler spreads pods.

    Source: Kubernetes v1.32 ``pkg/apis/core/validation``.
    """
    found = pod.carried.get(_SPREAD)
    if found is not None and not isinstance(found, list | tuple):
        yield Fault(f"$.{_SPREAD}", "is no list")
    pairs: Counter[tuple[object, object]] = Counter()
    for index, one in enumerate(items_of(found)):
        where = f"$.{_SPREAD}[{index}]"
        if not isinstance(one, Mapping):
            yield Fault(where, "is no mapping")
            continue
        fields = cast("Fields", one)
        yield from _of_constraint(where, fields)
        yield from _of_labels(where, fields)
        pairs[str(fields.get("topologyKey")), str(fields.get("whenUnsatisfiable"))] += 1
    for (key, otherwise), count in pairs.items():
        if count > 1:
            yield Fault(f"$.{_SPREAD}", f"{key} with {otherwise} is there {count} times")


def _of_constraint(where: str, fields: Fields) -> Iterator[Fault]:
    if not _is_positive(fields.get("maxSkew")):
        yield Fault(f"{where}.maxSkew", "a whole number of at least 1 is needed")
    key, otherwise = fields.get("topologyKey"), fields.get("whenUnsatisfiable")
    if not isinstance(key, str) or not is_qualified(key):
        yield Fault(f"{where}.topologyKey", "a key of a label is needed: name or domain/name")
    if otherwise not in _OTHERWISE:
        yield Fault(f"{where}.whenUnsatisfiable", f"expected one of {', '.join(_OTHERWISE)}")
    least = fields.get("minDomains")
    if least is not None and not (_is_positive(least) and otherwise == _OTHERWISE[0]):
        yield Fault(f"{where}.minDomains", f"a whole number of at least 1, and only with {_OTHERWISE[0]}")
    for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if fields.get(name) not in (None, "Honor", "Ignore"):
            yield Fault(f"{where}.{name}", "expected one of Honor, Ignore")


def _of_labels(where: str, fields: Fields) -> Iterator[Fault]:
    selector, keys = fields.get("labelSelector"), fields.get("matchLabelKeys")
    yield from selector_faults(f"{where}.labelSelector", selector)
    yield from label_key_faults(f"{where}.matchLabelKeys", keys, selector)
    asked = keys_of(selector)
    for index, one in enumerate(map(text_of, items_of(keys))):
        if one in asked:
            what = f"{one[:80]!r} stands in labelSelector too; leave it out here or there"
            yield Fault(f"{where}.matchLabelKeys[{index}]", what)


def _is_positive(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
