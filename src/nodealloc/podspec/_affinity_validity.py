"""What an API server checks of where a pod wants to be, and of the taints that it tolerates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from nodealloc._raw_parts import Fields, fields_of, items_of, text_of
from nodealloc.errors import Fault
from nodealloc.podspec._checks import label, label_key, label_value, subdomain
from nodealloc.podspec._placement import NodeSelectorOperator
from nodealloc.podspec._selector_validity import keys_of, label_key_faults, selector_faults

if TYPE_CHECKING:
    from nodealloc.podspec._fields import PodFields
    from nodealloc.podspec._placement import NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm

__all__ = ["affinity_faults", "toleration_faults"]

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_WHERE: Final = "$.spec.affinity"
_NAME: Final = "metadata.name"
_HEAVIEST: Final = 100


def toleration_faults(pod: PodFields, /) -> Iterator[Fault]:
    """What is wrong with the keys and values of tolerations.

    Source: Kubernetes v1.32 ``pkg/apis/core/validation``.
    """
    for index, one in enumerate(pod.tolerations):
        if one.key and (what := label_key(one.key)):
            yield Fault(f"$.spec.tolerations[{index}].key", what)
        if one.value and (what := label_value(one.value)):
            yield Fault(f"$.spec.tolerations[{index}].value", what)


def affinity_faults(pod: PodFields, /) -> Iterator[Fault]:
    """What is wrong with which nodes a pod wants, and which pods it wants near or far.

    Source: Kubernetes v1.32 ``pkg/apis/core/validation``.
    """
    found = pod.affinity
    if found is None:
        return
    if found.node_affinity is not None:
        yield from _of_nodes(f"{_WHERE}.nodeAffinity", found.node_affinity)
    for name, pods in (("podAffinity", found.pod_affinity), ("podAntiAffinity", found.pod_anti_affinity)):
        yield from _of_pods(f"{_WHERE}.{name}", fields_of(pods))


def _of_nodes(path: str, found: NodeAffinity) -> Iterator[Fault]:
    terms = found.required.node_selector_terms if found.required is not None else ()
    for index, term in enumerate(terms):
        yield from _term(f"{path}.{_REQUIRED}.nodeSelectorTerms[{index}]", term)
    for index, one in enumerate(found.preferred):
        yield from _term(f"{path}.{_PREFERRED}[{index}].preference", one.preference)


def _term(path: str, term: NodeSelectorTerm) -> Iterator[Fault]:
    for index, one in enumerate(term.match_expressions):
        if what := label_key(one.key):
            yield Fault(f"{path}.matchExpressions[{index}].key", what)
    for index, one in enumerate(term.match_fields):
        yield from _field(f"{path}.matchFields[{index}]", one)


def _field(path: str, one: NodeSelectorRequirement) -> Iterator[Fault]:
    if one.key != _NAME:
        yield Fault(f"{path}.key", f"{one.key[:80]!r} is no field to choose a node by; write {_NAME}")
    if one.operator not in {NodeSelectorOperator.IN, NodeSelectorOperator.NOT_IN}:
        yield Fault(f"{path}.operator", "a field is compared by In or NotIn alone; write one of them")
    elif len(one.values) != 1:
        yield Fault(f"{path}.values", f"exactly one value is needed, found {len(one.values)}")
    yield from _each(f"{path}.values", one.values, subdomain)


def _each(path: str, names: Iterable[object], check: Callable[[str], str]) -> Iterator[Fault]:
    for index, name in enumerate(names):
        if what := check(text_of(name)):
            yield Fault(f"{path}[{index}]", what)


def _of_pods(path: str, found: Fields) -> Iterator[Fault]:
    for index, term in enumerate(items_of(found.get(_REQUIRED))):
        yield from _near(f"{path}.{_REQUIRED}[{index}]", fields_of(term))
    for index, weighted in enumerate(items_of(found.get(_PREFERRED))):
        where, fields = f"{path}.{_PREFERRED}[{index}]", fields_of(weighted)
        weight = fields.get("weight")
        if type(weight) is not int or not 1 <= weight <= _HEAVIEST:
            yield Fault(f"{where}.weight", f"a whole number from 1 to {_HEAVIEST} is needed; write it")
        yield from _near(f"{where}.podAffinityTerm", fields_of(fields.get("podAffinityTerm")))


def _near(path: str, term: Fields) -> Iterator[Fault]:
    selector = term.get("labelSelector")
    yield from selector_faults(f"{path}.labelSelector", selector)
    yield from selector_faults(f"{path}.namespaceSelector", term.get("namespaceSelector"))
    yield from _each(f"{path}.namespaces", items_of(term.get("namespaces")), label)
    if what := label_key(text_of(term.get("topologyKey"))):
        yield Fault(f"{path}.topologyKey", what)
    same, other = term.get("matchLabelKeys"), term.get("mismatchLabelKeys")
    yield from label_key_faults(f"{path}.matchLabelKeys", same, selector)
    yield from label_key_faults(f"{path}.mismatchLabelKeys", other, selector)
    asked = keys_of(selector)
    for index, one in enumerate(map(text_of, items_of(same))):
        if asked[one] > 1:
            what = f"labelSelector asks for {one[:80]!r} {asked[one]} times; leave it out here or there"
            yield Fault(f"{path}.matchLabelKeys[{index}]", what)
        if one in items_of(other):
            what = f"{one[:80]!r} stands in mismatchLabelKeys too; leave it out of one"
            yield Fault(f"{path}.matchLabelKeys[{index}]", what)
