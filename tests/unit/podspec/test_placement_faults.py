"""What an API server refuses of affinity, of tolerations, and of how pods are to be spread."""

from __future__ import annotations

from typing import Any

import pytest

from nodealloc.podspec import Pod, api_faults

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}


def _faults(**spec: Any) -> list[str]:
    """Where a pod with these fields has faults."""
    app = {"name": "app", "image": "i"}
    pod = Pod.from_manifest({"metadata": {"name": "web"}, "spec": {"containers": [app], **spec}})
    return [one.path.removeprefix("$.spec.") for one in api_faults(pod)]


def _asked(**fields: Any) -> dict[str, Any]:
    """A requirement; `key`, `operator` and `values` as given."""
    return {"key": "a", "operator": "Exists", **fields}


@pytest.mark.parametrize(
    ("term", "where"),
    [
        ({"matchExpressions": [_asked(key="a b")]}, "matchExpressions[0].key"),
        ({"matchExpressions": [_asked(key="a/b", operator="In", values=["x y"])]}, None),
        ({"matchExpressions": [_asked(), _asked(key="a_B.c", operator="Gt", values=["1"])]}, None),
        ({"matchFields": [_asked(key="metadata.uid", operator="In", values=["a"])]}, "matchFields[0].key"),
        ({"matchFields": [_asked(key="metadata.name")]}, "matchFields[0].operator"),
        (
            {"matchFields": [_asked(key="metadata.name", operator="In", values=["a", "b"])]},
            "matchFields[0].values",
        ),
        (
            {"matchFields": [_asked(key="metadata.name", operator="In", values=["A b"])]},
            "matchFields[0].values[0]",
        ),
        ({"matchFields": [_asked(key="metadata.name", operator="NotIn", values=["node-1"])]}, None),
        ({}, None),
    ],
)
def test_a_term_about_nodes_names_what_nodes_have(term: dict[str, Any], where: str | None) -> None:
    """In a term that has to hold as in one that is liked; which values labels have is not looked at."""
    required = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}
    preferred = {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": term}]}}
    at = f"affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0]"
    assert _faults(affinity=required) == ([] if where is None else [f"{at}.{where}"])
    at = f"affinity.nodeAffinity.{PREFERRED}[0].preference"
    assert _faults(affinity=preferred) == ([] if where is None else [f"{at}.{where}"])


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({}, None),
        ({"topologyKey": ""}, "topologyKey"),
        ({"topologyKey": "a b"}, "topologyKey"),
        ({"namespaces": ["x", "A b"]}, "namespaces[1]"),
        ({"namespaces": ["x"], "namespaceSelector": {}}, None),
        ({"namespaceSelector": {"matchLabels": {"a b": "c"}}}, "namespaceSelector.matchLabels.a b"),
        ({"labelSelector": 5}, "labelSelector"),
        ({"labelSelector": {"matchLabels": {"a": "b c"}}}, "labelSelector.matchLabels.a"),
        ({"labelSelector": {"matchLabels": {"a": 5}}}, "labelSelector.matchLabels.a"),
        (
            {"labelSelector": {"matchExpressions": [_asked(key="")]}},
            "labelSelector.matchExpressions[0].key",
        ),
        (
            {"labelSelector": {"matchExpressions": [_asked(operator="Gt", values=["1"])]}},
            "labelSelector.matchExpressions[0].operator",
        ),
        (
            {"labelSelector": {"matchExpressions": [_asked(operator="In")]}},
            "labelSelector.matchExpressions[0].values",
        ),
        (
            {"labelSelector": {"matchExpressions": [_asked(values=["x"])]}},
            "labelSelector.matchExpressions[0].values",
        ),
        (
            {"labelSelector": {"matchExpressions": [_asked(operator="NotIn", values=["x", "y z"])]}},
            "labelSelector.matchExpressions[0].values[1]",
        ),
        ({"labelSelector": {"matchExpressions": [_asked(operator="NotIn", values=["x", ""])]}}, None),
        ({"labelSelector": None}, None),
        ({"labelSelector": None, "matchLabelKeys": ["x"]}, "matchLabelKeys"),
        ({"labelSelector": None, "mismatchLabelKeys": ["x"]}, "mismatchLabelKeys"),
        ({"matchLabelKeys": ["x"], "mismatchLabelKeys": ["y"]}, None),
        ({"matchLabelKeys": ["x y"]}, "matchLabelKeys[0]"),
        ({"mismatchLabelKeys": ["x y"]}, "mismatchLabelKeys[0]"),
        ({"matchLabelKeys": ["x"], "mismatchLabelKeys": ["x"]}, "matchLabelKeys[0]"),
        ({"matchLabelKeys": ["a"]}, None),
        (
            {
                "labelSelector": {"matchLabels": {"a": "b"}, "matchExpressions": [_asked()]},
                "matchLabelKeys": ["a"],
            },
            "matchLabelKeys[0]",
        ),
    ],
)
def test_a_term_about_pods_is_held_to_its_form(kind: str, fields: dict[str, Any], where: str | None) -> None:
    """Near or far, in a term that has to hold as in one that is liked."""
    term = {**TERM, **fields}
    at = f"affinity.{kind}.{REQUIRED}[0]"
    assert _faults(affinity={kind: {REQUIRED: [term]}}) == ([] if where is None else [f"{at}.{where}"])
    at = f"affinity.{kind}.{PREFERRED}[0].podAffinityTerm"
    liked = {kind: {PREFERRED: [{"weight": 1, "podAffinityTerm": term}]}}
    assert _faults(affinity=liked) == ([] if where is None else [f"{at}.{where}"])


@pytest.mark.parametrize(
    ("weight", "is_right"), [(1, True), (100, True), (0, False), (101, False), (None, False), (True, False)]
)
def test_what_is_liked_has_a_weight(weight: object, *, is_right: bool) -> None:
    """1 to 100."""
    found = _faults(affinity={"podAffinity": {PREFERRED: [{"weight": weight, "podAffinityTerm": TERM}]}})
    assert found == ([] if is_right else [f"affinity.podAffinity.{PREFERRED}[0].weight"])


@pytest.mark.parametrize(
    ("toleration", "where"),
    [
        ({"key": "a b", "operator": "Exists"}, "key"),
        ({"key": "a/b/c", "operator": "Exists"}, "key"),
        ({"key": "a", "value": "b c"}, "value"),
        ({"key": "a", "value": "b" * 64}, "value"),
        ({"key": "example.com/a", "value": "b" * 63}, None),
        ({"operator": "Exists"}, None),
        ({"key": "a"}, None),
    ],
)
def test_a_toleration_names_what_a_taint_can_have(toleration: dict[str, Any], where: str | None) -> None:
    """A key is a label's, and a value too; none stands for all."""
    assert _faults(tolerations=[toleration]) == ([] if where is None else [f"tolerations[0].{where}"])


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"matchLabelKeys": ["x"]}, None),
        ({"matchLabelKeys": ["x"], "labelSelector": None}, "matchLabelKeys"),
        ({"matchLabelKeys": ["x y"]}, "matchLabelKeys[0]"),
        ({"matchLabelKeys": ["x", "a"]}, "matchLabelKeys[1]"),
        ({"labelSelector": {"matchExpressions": [_asked()]}, "matchLabelKeys": ["a"]}, "matchLabelKeys[0]"),
        ({"labelSelector": {"matchLabels": {"a": "b c"}}}, "labelSelector.matchLabels.a"),
        (
            {"labelSelector": {"matchExpressions": [_asked(values=["b"])]}},
            "labelSelector.matchExpressions[0].values",
        ),
        ({"matchLabelKeys": [{}]}, "matchLabelKeys[0]"),
    ],
)
def test_what_is_spread_is_chosen_by_labels(fields: dict[str, Any], where: str | None) -> None:
    """Keys that are added to a selector need one, and are not in it."""
    constraint = {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", **TERM, **fields}
    at = "topologySpreadConstraints[0]"
    assert _faults(topologySpreadConstraints=[constraint]) == ([] if where is None else [f"{at}.{where}"])
