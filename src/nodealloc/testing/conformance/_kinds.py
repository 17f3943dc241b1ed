"""The kinds of recorded rows, and the function that answers each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import TypeAlias, cast

from nodealloc.errors import PermanentError
from nodealloc.podspec import Json

__all__ = ["KINDS", "NoRoomError", "Row", "RowAnswer", "UnknownKindError", "answer_for", "known_kind"]

Row: TypeAlias = Mapping[str, Json]
RowAnswer: TypeAlias = Callable[[Row, Mapping[str, Row]], tuple[Json, Json]]
"""From a row and the recorded machines by name to (expected, got); equal means passed."""

KINDS: Mapping[str, str | None] = {
    "admission": "_admission",
    "admit_predicates": "_chain",
    "apparmor_admit": "_chain",
    "cgroup": "_cgroups",
    "checkpoint_files": "_checkpoint",
    "container_gc": "_runtime",
    "container_kill_grace": "_podlife",
    "cpu_hints": "_cpuset",
    "cpuset": "_idset",
    "critical_preemption": "_chain",
    "device_hints": "_devices",
    "eviction_rank": None,
    "eviction_thresholds": None,
    "eviction_trace": None,
    "image_gc": "_runtime",
    "kubelet_api_stories": None,
    "kubelet_stories": None,
    "memory_qos_swap": "_memory_qos",
    "merge": "_topology",
    "pleg": "_runtime",
    "pod_actions": "_podplan",
    "pod_container_deletor": "_runtime",
    "pod_phase_status": "_podstatus",
    "pod_qos": "_cgroups",
    "pod_resources": None,
    "pod_source_updates": "_podsources",
    "pod_workers": "_podlife",
    "probe_worker": "_probes",
    "quantity": "_podspec",
    "restart_backoff": "_podplan",
    "sandbox_changed": "_podplan",
    "shutdown": None,
    "status_merge": "_status_merge",
    "sysctl_allowlist": "_chain",
    "take_cpus": "_cpuset",
    "termination_order": "_podlife",
}
"""Every recorded kind, and the module of this package that answers it; None where nothing does yet.

The module has a function of the kind's name. A new package changes its kind's
line here, and its function hands the package's `KUBELET` rules to whatever
takes rules: recorded rows are the kubelet's.
"""


class UnknownKindError(PermanentError, ValueError):
    """No rows of such a kind were recorded.

    Attributes:
        kind: What was asked for.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind

    def __str__(self) -> str:
        """The kind, one that is spelled alike, and all that there are."""
        alike = get_close_matches(self.kind, KINDS, n=1)
        hint = f"did you mean {alike[0]}? " if alike else ""
        return f"{self.kind!r} is no kind of recorded rows; {hint}The kinds are {', '.join(sorted(KINDS))}"


class NoRoomError(PermanentError):
    """Rows of this kind were recorded, but no package of this library answers them yet.

    Attributes:
        kind: The kind.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind

    def __str__(self) -> str:
        """The kind, and how to answer it all the same."""
        return (
            f"{self.kind}: no package of this library answers rows of this kind yet; "
            "give `replay` a function of your own to check something else against them"
        )


def known_kind(kind: str, /) -> str:
    """The kind itself; raises `UnknownKindError` for one that was never recorded."""
    if kind not in KINDS:
        raise UnknownKindError(kind)
    return kind


def answer_for(kind: str, /) -> RowAnswer:
    """The function for a kind.

    Raises:
        UnknownKindError: No such rows were recorded.
        NoRoomError: They were, and nothing in this library answers them yet.
    """
    name = KINDS[known_kind(kind)]
    if name is None:
        raise NoRoomError(kind)
    module = import_module(f"nodealloc.testing.conformance.{name}")
    return cast("RowAnswer", getattr(module, kind))
