"""Values only: how a runtime is, what it can do, and what may start because of it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from nodealloc import _attrs as attrs
from nodealloc._frozen import Frozen, freeze
from nodealloc._typed import typed, typed_fields
from nodealloc.verdicts import NotYet

__all__ = ["CgroupDriverKind", "Heard", "RuntimeCondition", "RuntimeHealth", "may_start"]

_READY: Final = "RuntimeReady"
_NETWORK: Final = "NetworkReady"
_LOOK_AGAIN_S: Final = 5.0


class CgroupDriverKind(enum.Enum):
    """Who makes cgroups for the runtime; the node's own has to be of the same kind."""

    CGROUPFS = "cgroupfs"
    SYSTEMD = "systemd"


@typed_fields
@attrs.frozen(kw_only=True)
class RuntimeCondition:
    """One thing that a runtime says of itself.

    Attributes:
        holds: Whether it is so.
        reason: One word for programs, or "".
        message: For people, or "".
    """

    holds: bool
    reason: str = ""
    message: str = ""


@typed_fields
@attrs.frozen(kw_only=True)
class RuntimeHealth:
    """What a runtime says of itself.

    Attributes:
        conditions: By type; `RuntimeReady` and `NetworkReady` decide what may start.
        name: Of the runtime, or "".
        version: Of the runtime, or "".
        cgroup_driver: None where the runtime cannot be asked.
        handlers: Names of its handlers, "" for the default one; empty where it cannot be asked.
    """

    conditions: Mapping[str, RuntimeCondition] = attrs.field(
        factory=Frozen[str, RuntimeCondition], validator=freeze
    )
    name: str = ""
    version: str = ""
    cgroup_driver: CgroupDriverKind | None = None
    handlers: tuple[str, ...] = ()

    @property
    def is_ready(self) -> bool:
        """Whether it takes containers at all."""
        return _READY in self.conditions and self.conditions[_READY].holds

    @property
    def is_network_ready(self) -> bool:
        """Whether it takes pods that have a network of their own."""
        return _NETWORK in self.conditions and self.conditions[_NETWORK].holds


@attrs.frozen(kw_only=True)
class Heard:
    """When a runtime was last heard, and what it said of itself.

    Attributes:
        listing: Counts the listings that were taken over; 0 before the first.
        listed_s: When the newest of them began, on the engine's clock; None before the first.
        failed_s: When the first of the failures in a row that are the newest answer
            came; None when the newest answer was a listing.
        error: That failure, in words; "" for none.
        health: Its own words; None before it was asked successfully.
        oddities: What made no sense, of no pod that can be told.
        health_error: Why it was not told at the last try how the runtime is, in words; "" where it was.
    """

    listing: int = 0
    listed_s: float | None = None
    failed_s: float | None = None
    error: str = ""
    health: RuntimeHealth | None = None
    oddities: tuple[str, ...] = ()
    health_error: str = ""

    def silent_s(self, now_s: float, /) -> float | None:
        """Seconds since the newest listing; None before the first."""
        return None if self.listed_s is None else max(0.0, now_s - self.listed_s)


@typed
def may_start(
    heard: Heard,
    /,
    *,
    now_s: float,
    host_network: bool = False,
    handler: str = "",
    silent_s: float = 180.0,
) -> NotYet | None:
    """What a pod's start has to wait for; None when nothing stands in its way.

    Args:
        heard: What is known of the runtime.
        now_s: The engine's clock.
        host_network: Whether the pod has the node's network.
        handler: The pod's runtime handler, "" for the default one.
        silent_s: Seconds without a listing after which the runtime counts as away.

    Source: kubelet ``kubelet.go`` and ``runtime.go``: a network that is not ready
    holds pods with one of their own, 180 s of silence make a runtime unhealthy.
    That nothing starts before the first listing, and a handler is looked for, is ours.
    """
    what = _lacks(heard, now_s, host_network=host_network, handler=handler, silent_s=silent_s)
    return None if what is None else NotYet(blocker=what[0], message=what[1], after_s=_LOOK_AGAIN_S)


def _lacks(
    heard: Heard, now_s: float, *, host_network: bool, handler: str, silent_s: float
) -> tuple[str, str] | None:
    silence_s = heard.silent_s(now_s)
    if silence_s is None:
        return "runtime", "the runtime has not been heard yet; what runs already is not known"
    if silence_s > silent_s:
        why = f": {heard.error}" if heard.error else ""
        return "runtime", f"the runtime has not been heard for {silence_s:.0f} s{why}"
    health = heard.health
    if health is None:
        why = f": {heard.health_error}" if heard.health_error else ""
        return "runtime", f"the runtime has not said yet how it is{why}"
    if not health.is_ready:
        return "runtime", f"the runtime is not ready{_words(health, _READY)}"
    if not host_network and not health.is_network_ready:
        return "network", f"the runtime's network is not ready{_words(health, _NETWORK)}"
    # The default one is there in any case, whether it is listed or not.
    if handler and health.handlers and handler not in health.handlers:
        known = ", ".join(sorted(filter(None, health.handlers))) or "none but the default"
        return "runtime", f"the runtime has no handler {handler!r}; there are: {known}"
    return None


def _words(health: RuntimeHealth, name: str) -> str:
    condition = health.conditions.get(name)
    if condition is None:
        return ": it says nothing about that"
    words = " ".join(filter(None, (condition.reason, condition.message)))
    return f": {words}" if words else ""
