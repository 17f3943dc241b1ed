"""Values only: which probes there are, and the table of who is asked when."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from typing import Final

from nodealloc._typed import typed_on_error
from nodealloc.podfacts import LifeState
from nodealloc.podspec import Container, Pod, Probe

__all__ = ["ASKED", "ContainerKind", "ProbeKind", "asks", "drawn", "kinds_of"]


class ProbeKind(enum.Enum):
    """What a probe is to find out, by the names of the Kubernetes API."""

    STARTUP = "startup"
    """Has it started? Nothing else is asked before."""
    LIVENESS = "liveness"
    """Is it alive? What is not is killed."""
    READINESS = "readiness"
    """Is it ready to serve?"""

    @property
    def kills(self) -> bool:
        """Whether whoever fails is killed."""
        return self is not ProbeKind.READINESS

    def of(self, container: Container, /) -> Probe | None:
        """The probe of this kind that a container has."""
        if self is ProbeKind.STARTUP:
            return container.startup_probe
        return container.liveness_probe if self is ProbeKind.LIVENESS else container.readiness_probe


class ContainerKind(enum.Enum):
    """Which part of its pod a container is."""

    MAIN = "main"
    SIDECAR = "sidecar"
    """An init container that starts again whenever it ends."""
    INIT = "init"
    """It has to end before the next one starts, so that nothing can be asked of it."""
    EPHEMERAL = "ephemeral"
    """Put there to look at the others; it has no probes."""


def kinds_of(pod: Pod, /) -> Iterator[tuple[ContainerKind, Container]]:
    """The containers of a pod and which part of it each is, in the order init, main, ephemeral."""
    for one in pod.init_containers:
        yield (ContainerKind.SIDECAR if one.restartable else ContainerKind.INIT), one
    for one in pod.containers:
        yield ContainerKind.MAIN, one
    for one in pod.ephemeral_containers:
        yield ContainerKind.EPHEMERAL, one


_ALL: Final = frozenset(ProbeKind)
_READINESS: Final = frozenset({ProbeKind.READINESS})
_LASTING: Final = frozenset({ContainerKind.MAIN, ContainerKind.SIDECAR})

ASKED: Mapping[tuple[LifeState, ContainerKind], frozenset[ProbeKind]] = {
    (life, kind): {LifeState.SYNCING: _ALL, LifeState.TERMINATING: _READINESS}.get(life, frozenset())
    if kind in _LASTING
    else frozenset()
    for life in LifeState
    for kind in ContainerKind
}
"""Phase of the pod's life × kind of container: the probes that are asked.

A pod that is to end is not killed for being unwell on the way, yet whoever sends
it requests has to hear when it no longer takes them.

Source: kubelet ``prober_manager.go`` and ``worker.go``.
"""


# The same, nested: a hash of two is what looking it up would cost most. It has no place for other words.
_BY_LIFE: Final = {
    life: {one: {kind: kind in ASKED[life, one] for kind in ProbeKind} for one in ContainerKind}
    for life in LifeState
}


@typed_on_error
def asks(kind: ProbeKind, life: LifeState, container: ContainerKind, /) -> bool:
    """Whether a container is asked, by the table.

    Args:
        kind: Which probe.
        life: How far its pod has come.
        container: Which part of its pod it is.
    """
    return _BY_LIFE[life][container][kind]


def drawn() -> str:
    """The table as text: a line a phase and kind of container, a column a probe."""
    lines = [["life", "container", *(kind.value for kind in ProbeKind)]]
    lines += [
        [
            life.value,
            container.value,
            *("asked" if asks(kind, life, container) else "·" for kind in ProbeKind),
        ]
        for life in LifeState
        for container in ContainerKind
    ]
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    text = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    return "\n".join([text[0], "  ".join("─" * width for width in widths), *text[1:]]) + "\n"
