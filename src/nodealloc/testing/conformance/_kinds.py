"""The kinds of recorded rows, and the function that answers each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TypeAlias, cast

from nodealloc.podspec import Json

__all__ = ["KINDS", "Answer", "Row", "answer_for"]

Row: TypeAlias = Mapping[str, Json]
Answer: TypeAlias = Callable[[Row, Mapping[str, Row]], tuple[Json, Json]]
"""From a row and the recorded machines by name to (expected, got); equal means passed."""

KINDS: Mapping[str, str] = {
    "cpuset": "_idset",
    "quantity": "_podspec",
    "pod_qos": "_cgroups",
    "merge": "_topology",
    "cpu_hints": "_cpuset",
    "device_hints": "_devices",
    "take_cpus": "_cpuset",
    "admission": "_admission",
    "checkpoint_files": "_checkpoint",
    "cgroup": "_cgroups",
}
"""Kind to the module of this package whose function of the kind's name answers it."""


def answer_for(kind: str, /) -> Answer:
    """The function for a kind; raises `KeyError` for an unknown one."""
    module = import_module(f"nodealloc.testing.conformance.{KINDS[kind]}")
    return cast("Answer", getattr(module, kind))
