"""Where this package does otherwise than the kubelet."""

from __future__ import annotations

import attrs

from nodealloc._rules import as_recorded

__all__ = ["KUBELET", "RIGHT", "Rules"]


@attrs.frozen(kw_only=True)
class Rules:
    """Where this package does otherwise than the kubelet."""


RIGHT = Rules()
"""What a decision takes when it is told nothing."""

KUBELET = as_recorded(Rules)
"""As kubelet v1.32 does it, bug for bug."""
