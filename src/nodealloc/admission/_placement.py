"""Is the pod for this node: operating system, name, selector and affinity, taints."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from nodealloc._typed import typed
from nodealloc.admission._rules import Rules
from nodealloc.admission._verdicts import ADMITTED
from nodealloc.podfacts import NodeView, TaintEffect
from nodealloc.podspec import (
    NodeSelectorOperator,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
)
from nodealloc.podspec._origin import comes_from_node
from nodealloc.verdicts import Admitted, Refused

__all__ = ["node_affinity", "node_name", "operating_system", "taints"]

_OS_LABEL: Final = "kubernetes.io/os"
_OS: Final = "linux"
_NO_EXECUTE: Final = TaintEffect.NO_EXECUTE
_ENDS: Final = frozenset({"", TaintEffect.NO_EXECUTE.value})
"""Effects of tolerations that are for taints that end pods."""
_LABEL_VALUE: Final = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])?", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,63}", re.ASCII)
"""As many digits as a label has characters."""
_WORD: Final = 1 << 63
_IN, _NOT_IN, _EXISTS, _ABSENT, _GT, _ = NodeSelectorOperator


@typed
def operating_system(pod: Pod, view: NodeView, /, *, rules: Rules) -> Admitted | Refused:
    """Whether the pod is for Linux.

    Args:
        pod: Who wants to come in.
        view: The node, by its labels.
        rules: `os_by_field`: whether the field `os` alone counts, and no label.

    Source: kubelet ``lifecycle/predicate.go``.
    """
    if not rules.os_by_field:
        said = pod.labels.get(_OS_LABEL)
        if said is not None and said != _labels(view, rules).get(_OS_LABEL, _OS):
            return Refused(
                reason="PodOSSelectorNodeLabelDoesNotMatch",
                message="Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
                figures={"wanted": said or "none", "node": _OS},
            )
    if pod.os is not None and pod.os.name != _OS:
        return Refused(
            reason="PodOSNotSupported",
            message="Failed to admit pod as the OS field doesn't match node OS",
            figures={"wanted": pod.os.name, "node": _OS},
        )
    return ADMITTED


@typed
def node_name(pod: Pod, view: NodeView, /) -> Admitted | Refused:
    """Whether it is for a node of this name, or for any."""
    if not pod.node_name or pod.node_name == view.name or not view.is_named:
        return ADMITTED
    return _failed(
        "NodeName", "node(s) didn't match the requested node name", wanted=pod.node_name, node=view.name
    )


@typed
def node_affinity(pod: Pod, view: NodeView, /, *, rules: Rules) -> Admitted | Refused:
    """Whether the node's labels and name are what the pod's selector and required affinity ask for.

    Args:
        pod: Who wants to come in.
        view: The node, by its name and labels.
        rules: What is right, or `KUBELET`.

    Source: Kubernetes ``component-helpers/scheduling/corev1/nodeaffinity``.
    """
    affinity = pod.affinity.node_affinity if pod.affinity is not None else None
    required = affinity.required if affinity is not None else None
    if not pod.node_selector and required is None:
        return ADMITTED
    labels, name = _labels(view, rules), view.name if view.is_named else None
    for key, value in pod.node_selector.items():
        if labels.get(key) != value:
            break
    else:
        if required is None:
            return ADMITTED
        for term in required.node_selector_terms:
            if _term(term, labels, name, rules):
                return ADMITTED
    return _failed("NodeAffinity", "node(s) didn't match Pod's node affinity/selector", node=view.name)


@typed
def taints(pod: Pod, view: NodeView, /) -> Admitted | Refused:
    """Whether it tolerates every taint that ends pods; a static pod is not asked.

    Taints that only keep a scheduler off are a scheduler's matter.
    """
    for taint in view.taints:
        if taint.effect is _NO_EXECUTE and not _tolerated(pod, taint.key, taint.value):
            if comes_from_node(pod):
                break
            return _failed(
                "TaintToleration", "node(s) had taints that the pod didn't tolerate", taint=taint.key
            )
    return ADMITTED


def _failed(predicate: str, why: str, **figures: str) -> Refused:
    return Refused(reason=predicate, message=f"Predicate {predicate} failed: {why}", figures=figures)


def _labels(view: NodeView, rules: Rules) -> Mapping[str, str]:
    """With that of the operating system, which a node sets itself."""
    if view.labels.get(_OS_LABEL) == _OS or not (view.labels or rules.knows_own_os):
        return view.labels
    return {**view.labels, _OS_LABEL: _OS}


def _term(term: NodeSelectorTerm, labels: Mapping[str, str], name: str | None, rules: Rules) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    for one in term.match_expressions:
        if not _holds(one, labels, rules):
            return False
    return all(_field_holds(one, name) for one in term.match_fields) if term.match_fields else True


def _holds(one: NodeSelectorRequirement, labels: Mapping[str, str], rules: Rules) -> bool:
    operator, values = one.operator, one.values
    if not rules.compares_any_number and not all(map(_LABEL_VALUE.fullmatch, values)):
        return False
    have = labels.get(one.key)
    if operator is _IN:
        return have is not None and have in values
    if operator is _NOT_IN:
        return bool(values) and (have is None or have not in values)
    if operator is _EXISTS or operator is _ABSENT:
        return not values and (have is not None) == (operator is _EXISTS)
    if operator is None or len(values) != 1:
        return False
    mine, bound = _number(have, rules), _number(values[0], rules)
    if mine is None or bound is None:
        return False
    return mine > bound if operator is _GT else mine < bound


def _number(text: str | None, rules: Rules) -> int | None:
    """A kubelet's has 64 bits; one beyond that is none."""
    if text is None or not _NUMBER.fullmatch(text):
        return None
    found = int(text)
    return found if rules.compares_any_number or -_WORD <= found < _WORD else None


def _field_holds(one: NodeSelectorRequirement, name: str | None) -> bool:
    """The node's name is the only field; an operator takes one value of it. None is any name."""
    if len(one.values) != 1 or one.operator not in {_IN, _NOT_IN}:
        return False
    is_name = one.key == "metadata.name"
    if is_name and name is None:
        return True
    have = name if is_name else ""
    return (have == one.values[0]) == (one.operator is _IN)


def _tolerated(pod: Pod, key: str, value: str) -> bool:
    """Whether it tolerates a taint that ends pods."""
    for one in pod.tolerations:
        if one.effect not in _ENDS or (one.key and one.key != key):
            continue
        if one.operator == "Exists" or (one.operator in {"", "Equal"} and one.value == value):
            return True
    return False
