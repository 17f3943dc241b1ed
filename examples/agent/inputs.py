"""The machine that the agent gives out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

from nodealloc.errors import DecodeError, Fault
from nodealloc.machine import Machine, discover, machine_from_json, machine_from_text

__all__ = ["MACHINES", "read_machine"]

MACHINES = {
    "laptop": "1 socket x 4 cores x 2 threads, memory=16Gi",
    "server": "2 sockets x 2 numa x 8 cores x 2 threads, memory=64Gi",
    "chiplets": "2 sockets x 2 numa x 4 l3 x 8 cores x 2 threads, memory=128Gi",
}
"""Synthetic machines by name."""


def read_machine(words: str | None) -> tuple[Machine, list[str]]:
    """This machine, or a named, described or captured one; and what could not be known of it.

    Raises:
        NodeallocError: No machine can be made of that.
    """
    if words in MACHINES:
        return machine_from_text(MACHINES[words], name=words), []
    if words is None or Path(words).is_dir():
        inner = Path(words, "sys") if words else Path("/sys")
        found = discover(inner if inner.is_dir() else Path(words or "/sys"))
        return found.machine, [str(note) for note in found.notes]
    if Path(words).is_file():
        return machine_from_json(_json(Path(words))), []
    return machine_from_text(words, name=words), []


def _json(path: Path) -> dict[str, object]:
    try:
        found: object = json.loads(path.read_bytes())
    except RecursionError as error:
        raise DecodeError(str(path), [Fault("$", "not JSON of a machine: nested too deeply")]) from error
    except ValueError as error:
        raise DecodeError(str(path), [Fault("$", f"not JSON: {error}")]) from error
    if not isinstance(found, dict):
        raise DecodeError(str(path), [Fault("$", "expected an object")])
    return cast("dict[str, object]", found)
