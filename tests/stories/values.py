"""What stories and what was seen of ours are made of, taken apart: pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

__all__ = ["Item", "at_of", "brief_runs", "ended", "items_of", "list_of", "mapping_of", "without_ended"]

Json = object

_BRIEF_S: Final = 1.0
_RUN: Final = re.compile(r"(\S+@\d+) (started|ended) ?")


@attrs.frozen
class Item:
    """Something that was so from a moment on.

    Attributes:
        at: Seconds since the first step.
        value: As text, to compare and to show.
    """

    at: float
    value: str


def items_of(pairs: Json, /) -> list[Item]:
    """Pairs of a time, or of two, and a value."""
    found: list[Item] = []
    for at, value in pairs if isinstance(pairs, list) else []:
        found.append(Item(at_of(at), value if isinstance(value, str) else json.dumps(value, sort_keys=True)))
    return found


def at_of(value: Json, /) -> float:
    """The first of two times that is known, or the one that there is."""
    known = [one for one in value if one is not None] if isinstance(value, list) else [value]
    return float(str(known[0])) if known and known[0] is not None else 0.0


def list_of(value: Json, /) -> list[Json]:
    """Itself, or nothing where it is no list."""
    return value if isinstance(value, list) else []


def mapping_of(value: Json, /) -> Mapping[str, Json]:
    """Itself, or nothing where it is no mapping."""
    return value if isinstance(value, dict) else {}


def ended(seen: Mapping[str, Json]) -> frozenset[str]:
    """Pods of which nothing is told at the end, or that are in a terminal phase."""
    found: set[str] = set()
    for name, pod in mapping_of(seen.get("pods")).items():
        phases = items_of(mapping_of(mapping_of(mapping_of(pod).get("tracks")).get("phase")).get("seq"))
        if phases and phases[-1].value.startswith(("null", "Succeeded", "Failed")):
            found.add(name)
    return frozenset(found)


def without_ended(seen: Mapping[str, Json], over: frozenset[str]) -> Mapping[str, Json]:
    """Without the clean-up after pods that have ended."""
    plain = {one.partition("#")[0] for one in over}
    starts = tuple(f"default_{one}_" for one in plain), tuple(f"{one}_" for one in plain)
    end = dict(mapping_of(seen.get("end")))
    for what in ("containers", "sandboxes"):
        end[what] = [
            one for one in list_of(end.get(what)) if list_of(one)[:1] and list_of(one)[0] not in over
        ]
    end["log_files"] = [one for one in list_of(end.get("log_files")) if not str(one).startswith(starts[0])]
    end["log_links"] = [
        one for one in list_of(end.get("log_links")) if not str(list_of(one)[0]).startswith(starts[1])
    ]
    calls = {
        name: [one for one in list_of(made) if name not in over or not _is_clean_up(one, list_of(made))]
        for name, made in mapping_of(seen.get("calls")).items()
    }
    return {**seen, "calls": calls, "end": end}


def _is_clean_up(call: Json, made: Sequence[Json]) -> bool:
    """Removing; and stopping a sandbox once more before."""
    name = str(mapping_of(call).get("call"))
    if name == "StopPodSandbox":
        same = [one for one in made if {**mapping_of(one), "at": 0} == {**mapping_of(call), "at": 0}]
        return call is not same[0]
    return name.startswith("Remove")


def brief_runs(seen: Mapping[str, Json], /) -> frozenset[str]:
    """`pod/container@attempt` of those that lived for a second or less.

    The recording looks at cgroups every half a second, and so does ours: who saw them is chance.
    """
    found: set[str] = set()
    for name, pod in mapping_of(seen.get("runtime")).items():
        began: dict[str, float] = {}
        for one in items_of(mapping_of(pod).get("order")):
            if (said := _RUN.match(one.value)) is None:
                continue
            if said[2] == "started":
                began[said[1]] = one.at
            elif one.at - began.get(said[1], one.at) <= _BRIEF_S:
                found.add(f"{name}/{said[1]}")
    return frozenset(found)
