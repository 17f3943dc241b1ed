"""Values only: what has happened to a pod, for people who look at it."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from nodealloc import _attrs as attrs
from nodealloc._arguments import filled, filled_or_none
from nodealloc._frozen import freeze
from nodealloc._typed import typed_fields
from nodealloc.podfacts._identity import PodIdentity

__all__ = ["EventKind", "PodEvent"]


class EventKind(enum.Enum):
    """Whether somebody should worry."""

    NORMAL = "Normal"
    WARNING = "Warning"


@typed_fields
@attrs.frozen(kw_only=True)
class PodEvent:
    """Something that happened to a pod and that its owner may want to read.

    It carries no time: whoever tells it on knows what time it is, and joins what
    repeats.

    Attributes:
        pod: Whose event it is.
        kind: Normal, or a warning.
        reason: One word for programs: `Killing`, `Unhealthy`, `Evicted`.
        message: For people.
        container: The container that it is about; None where it is about the whole pod.
        annotations: More of it for programs, by name.

    Raises:
        ConfigurationError: No reason, or a container without a name.
    """

    pod: PodIdentity
    kind: EventKind
    reason: str = attrs.field(validator=filled)
    message: str = ""
    container: str | None = attrs.field(default=None, validator=filled_or_none)
    annotations: Mapping[str, str] = attrs.field(factory=dict[str, str], validator=freeze)
