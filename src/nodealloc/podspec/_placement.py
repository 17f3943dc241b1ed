"""Values only: on which nodes a pod wants to be, and what it puts up with there."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from nodealloc import _attrs as attrs
from nodealloc._reading import Json
from nodealloc._typed import typed_fields
from nodealloc._wire import wire
from nodealloc.podspec._checks import between, one_of

__all__ = [
    "Affinity",
    "NodeAffinity",
    "NodeSelector",
    "NodeSelectorOperator",
    "NodeSelectorRequirement",
    "NodeSelectorTerm",
    "PreferredNodes",
    "Toleration",
]


class NodeSelectorOperator(enum.Enum):
    """How a label is compared."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


@typed_fields
@attrs.frozen(kw_only=True)
class NodeSelectorRequirement:
    """One comparison of a label, or of the field `metadata.name`.

    Attributes:
        key: Of the label or field.
        operator: How; without one nothing matches.
        values: With what; for GT and LT one whole number.
    """

    key: str = attrs.field(default="", metadata=wire(required=True))
    operator: NodeSelectorOperator | None = attrs.field(default=None, metadata=wire(required=True))
    values: tuple[str, ...] = ()


@typed_fields
@attrs.frozen(kw_only=True)
class NodeSelectorTerm:
    """All of these have to hold; a term of nothing matches no node.

    Attributes:
        match_expressions: Of labels.
        match_fields: Of fields.
    """

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


@attrs.frozen(kw_only=True)
class NodeSelector:
    """One of these has to hold.

    Attributes:
        node_selector_terms: At least one.
    """

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


@attrs.frozen(kw_only=True)
class PreferredNodes:
    """Where a scheduler likes to put it; no reason to refuse.

    Attributes:
        weight: 1 to 100.
        preference: Which nodes.
    """

    weight: int = attrs.field(default=1, metadata=wire(required=True, check=between(1, 100)))
    preference: NodeSelectorTerm = NodeSelectorTerm()


@typed_fields
@attrs.frozen(kw_only=True)
class NodeAffinity:
    """Which nodes.

    Attributes:
        required: Has to hold; None for any node.
        preferred: For a scheduler.
    """

    required: NodeSelector | None = attrs.field(
        default=None, metadata=wire("requiredDuringSchedulingIgnoredDuringExecution")
    )
    preferred: tuple[PreferredNodes, ...] = attrs.field(
        default=(), metadata=wire("preferredDuringSchedulingIgnoredDuringExecution")
    )


@attrs.frozen(kw_only=True)
class Affinity:
    """Beside what a pod wants to be.

    Attributes:
        node_affinity: Which nodes.
        pod_affinity: Near which pods, as it came: a scheduler's matter.
        pod_anti_affinity: Far from which pods, as it came: a scheduler's matter.
    """

    node_affinity: NodeAffinity | None = None
    pod_affinity: Mapping[str, Json] | None = attrs.field(default=None, metadata=wire(raw=True))
    pod_anti_affinity: Mapping[str, Json] | None = attrs.field(default=None, metadata=wire(raw=True))


@typed_fields
@attrs.frozen(kw_only=True)
class Toleration:
    """Which taints do not matter.

    Attributes:
        key: Of the taint; "" with operator `Exists` for every taint.
        operator: `Equal` or `Exists`.
        value: With `Equal`, the taint's.
        effect: `NoSchedule`, `PreferNoSchedule`, `NoExecute`; "" for all.
        toleration_seconds: How long `NoExecute` does not matter; None for ever.
    """

    key: str = ""
    operator: str = attrs.field(default="Equal", metadata=wire(check=one_of("", "Equal", "Exists")))
    value: str = ""
    effect: str = attrs.field(
        default="", metadata=wire(check=one_of("", "NoSchedule", "PreferNoSchedule", "NoExecute"))
    )
    toleration_seconds: int | None = None
