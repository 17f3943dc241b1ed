"""What an agent starts and stops beside its group: whatever has threads of its own."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Beside"]


class Beside(Protocol):
    """Something that runs by itself: plugins, their registry, sources, probes."""

    def start(self) -> object:
        """Begin; once in a life."""
        ...

    def stop(self) -> object:
        """End; what runs on the node runs on."""
        ...
