"""Whether what an agent did is what was recorded of a kubelet: pure, no clock, no I/O.

Exact are the values and their order. Not compared are times, texts of the
runtime's own, amounts that are the machine's, events, counters, and what the
recording itself calls flaky. Whether the dead containers of a pod that has ended
go at once or with the next collection falls as the recorded agent's looks fall:
the recording has both for the same story of a pod. What lasted less than a second may be seen or
missed; what happens within half a second has no order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Final

from tests.stories.values import (
    Item,
    at_of,
    brief_runs,
    ended,
    items_of,
    mapping_of,
    without_ended,
)

__all__ = ["align", "differences"]

Json = object

_BRIEF_S: Final = 1.0
_LATE_S: Final = 3.0
_TOGETHER_S: Final = (0.5, 1.0)
"""Ends that are so close have no order; times of the recording are rounded to half a second."""
_LOT_S: Final = 15.0
"""Restarts come so much later than their delay at most, by lot; each adds to those before."""
_ABOUT: Final = ("tracks", "order", "calls", "container_config", "sandbox_config", "cgroups", "end")
_OF_THE_MACHINE: Final = {"kubepods": ("memory_limit", "pids_max")}
"""Facts of a cgroup that follow from the machine's size."""
_CONTENT: Final = re.compile(r"/\.\.(?!data[@\"/])[^/\"]+")
"""The directory that holds what a volume's files say now: it is named by a time, or after the content."""
_NOT_OURS: Final = (
    "linux.security_context.seccomp",
    "linux.overhead",
    "linux.resources",
    "annotations.kubernetes.io/config.hash",
    "annotations.kubernetes.io/config.seen",
)
"""What a runtime is told of a sandbox that follows from the machine, or from the recorded agent."""


def differences(recorded: Mapping[str, Json], seen: Mapping[str, Json], end: float, /) -> tuple[str, ...]:
    """What differs; empty where nothing does.

    Args:
        recorded: `seen` of a row.
        seen: The same of a run of ours, with one time for each item or with two.
        end: How long was watched, in seconds.
    """
    loops = "BackOff" in json.dumps(recorded.get("pods")) or "@2 " in json.dumps(recorded.get("runtime"))
    found: list[str] = []
    over = ended(recorded) | ended(seen)
    recorded, seen = without_ended(recorded, over), without_ended(seen, over)
    brief = brief_runs(recorded) | brief_runs(seen)
    for what, compare in (
        ("pods", _tracks),
        ("runtime", _order),
        ("calls", _calls),
        ("cgroups", _cgroups),
    ):
        ours, theirs = mapping_of(seen.get(what)), mapping_of(recorded.get(what))
        for name in sorted({*ours, *theirs}):
            if name in ("(node)", "images") or (
                what == "cgroups" and name in brief and not (ours.get(name) and theirs.get(name))
            ):
                continue
            found += compare(name, theirs.get(name), ours.get(name), end, loops)
    for what in ("container_config", "sandbox_config"):
        found += _configs(what, mapping_of(recorded.get(what)), mapping_of(seen.get(what)), loops)
    found += _end(mapping_of(recorded.get("end")), mapping_of(seen.get("end")), loops)
    found += _steps(recorded.get("steps"), seen.get("steps"))
    if _refused(recorded) != _refused(seen):
        found.append(f"agent: recorded {recorded.get('agent')}, seen {seen.get('agent')}")
    return tuple(found)


def align(theirs: Sequence[Item], ours: Sequence[Item], end: float, *, goes_on: bool = False) -> bool:
    """Whether two runs of states are one story.

    Equal states match in order. What lasted a second or less, on either side, may be
    missing on the other, and so may what came in the last seconds.

    Args:
        theirs: As recorded.
        ours: As seen.
        end: When watching ended.
        goes_on: Whether either may go on where the other has come to its end: delays between
            restarts, and looks after them, are up to 15 s longer by lot than what was told.
    """
    may_miss = _missable(theirs, end), _missable(ours, end)

    @cache
    def matches(i: int, j: int, last: str) -> bool:
        if i == len(theirs) and j == len(ours):
            return True
        both = i < len(theirs) and j < len(ours) and theirs[i].value == ours[j].value
        if both and matches(i + 1, j + 1, theirs[i].value):
            return True
        if i < len(theirs):
            late = goes_on and j == len(ours) and theirs[i].at >= end - _LATE_S - _LOT_S
            if (may_miss[0][i] or theirs[i].value == last or late) and matches(i + 1, j, last):
                return True
        if j < len(ours):
            free = may_miss[1][j] or ours[j].value == last or (goes_on and i == len(theirs))
            return free and matches(i, j + 1, last)
        return False

    return matches(0, 0, "null")  # nothing is told of a pod before it comes


def _missable(items: Sequence[Item], end: float) -> list[bool]:
    ends = [*(one.at for one in items[1:]), *([end] if items else [])]
    return [
        until - one.at <= _BRIEF_S or one.at >= end - _LATE_S for one, until in zip(items, ends, strict=True)
    ]


def _tracks(name: str, theirs: Json, ours: Json, end: float, loops: bool) -> list[str]:
    recorded = mapping_of(mapping_of(theirs).get("tracks"))
    seen = mapping_of(mapping_of(ours).get("tracks"))
    found: list[str] = []
    for track in sorted({*recorded, *seen} - {"agree"}):
        known = mapping_of(recorded.get(track))
        left, right = items_of(known.get("seq")), items_of(mapping_of(seen.get(track)).get("seq"))
        if known.get("agree") is False:  # only what both runs showed is there
            continue
        if not align(left, right, end, goes_on=loops):
            found.append(_show(f"pod {name}, {track}", left, right))
    return found


def _order(name: str, theirs: Json, ours: Json, end: float, loops: bool) -> list[str]:
    left, right = (items_of(mapping_of(one).get("order")) for one in (theirs, ours))
    return _happenings(f"order of {name}", left, right, _is_end, end=end, loops=loops)


def _happenings(
    what: str,
    theirs: Sequence[Item],
    ours: Sequence[Item],
    is_end: Callable[[str], bool],
    *,
    end: float,
    loops: bool,
) -> list[str]:
    """What happened one after the other; ends that are close to each other in any order."""
    for gap_s in _TOGETHER_S:
        left, right = _together(theirs, is_end, gap_s), _together(ours, is_end, gap_s)
        if _same(left, right, end, loops):
            return []
    left, right = (_together(one, is_end, _TOGETHER_S[0]) for one in (theirs, ours))
    return [_show(what, left, right)]


def _is_end(text: str) -> bool:
    """An end of a container is told by its own time, one of a sandbox by when somebody looked."""
    return " ended " in text or text.endswith(" not ready")


def _calls(name: str, theirs: Json, ours: Json, end: float, loops: bool) -> list[str]:
    left, right = (_squeezed(_called(one)) for one in (theirs, ours))
    return _happenings(f"calls for {name}", left, right, _ends, end=end, loops=loops)


def _ends(text: str) -> bool:
    return text.startswith(("Stop", "Remove"))


def _called(calls: Json) -> list[Item]:
    found: list[Item] = []
    for one in calls if isinstance(calls, list) else []:
        error = str(one.get("error") or "")
        if "ancel" in error:  # the runtime's word on a client that went away
            continue
        words = [str(one["call"])]
        if "container" in one:
            words.append(f"{one['container']}@{one.get('attempt', 0)}")
        elif "attempt" in one:
            words.append(f"@{one['attempt']}")
        words += [f"{key} {one[key]}" for key in ("timeout", "image") if key in one]
        text = " ".join(words)
        if error and found and found[-1].value == text:
            found.pop()  # the recording has a call that failed as it begins, too
        found.append(Item(at_of(one.get("at")), f"{text} failed" if error else text))
    return found


def _same(left: Sequence[Item], right: Sequence[Item], end: float, loops: bool) -> bool:
    """Happenings: none may be missing, but for those of the last seconds."""
    texts, ours = [one.value for one in left], [one.value for one in right]
    late_s = _LATE_S + (_LOT_S if loops else 0.0)
    while len(texts) > len(ours) and left[len(texts) - 1].at >= end - late_s:
        texts.pop()
    while len(ours) > len(texts) and (loops or right[len(ours) - 1].at >= end - _LATE_S):
        ours.pop()
    return texts == ours


def _cgroups(name: str, theirs: Json, ours: Json, end: float, loops: bool) -> list[str]:
    without = _OF_THE_MACHINE.get(name, ())
    left, right = (_facts(one, without) for one in (theirs, ours))
    if align(left, right, end) or (loops and re.search(r"@[1-9]", name)):
        return []
    if not left and right and "@" in name and end - right[0].at < _LATE_S:
        return []
    return [_show(f"cgroup {name}", left, right)]


def _facts(facts: Json, without: Iterable[str]) -> list[Item]:
    found: list[Item] = []
    for one in facts if isinstance(facts, list) else []:
        kept = {key: value for key, value in one.items() if key != "at" and key not in without}
        found.append(Item(at_of(one.get("at")), json.dumps(kept, sort_keys=True)))
    return _squeezed(found)


def _configs(what: str, theirs: Mapping[str, Json], ours: Mapping[str, Json], loops: bool) -> list[str]:
    found: list[str] = []
    for name in sorted(theirs):
        if name not in ours:
            found.append(f"{what} of {name}: recorded, and never seen")
            continue
        left, right = dict(_flat(theirs[name])), dict(_flat(ours[name]))
        found += [
            f"{what} of {name}, {path}: recorded {left.get(path)}, seen {right.get(path)}"
            for path in sorted({*left, *right})
            if left.get(path) != right.get(path) and not _is_left_out(path, what)
        ]
    found += [
        f"{what} of {name}: seen, and not recorded"
        for name in sorted(ours)
        if name not in theirs and not loops
    ]
    return found


def _is_left_out(path: str, what: str) -> bool:
    if path.startswith("annotations.nodealloc.io/"):  # ours alone
        return True
    return what == "sandbox_config" and any(
        path == one or path.startswith((f"{one}.", f"{one}[")) for one in _NOT_OURS
    )


def _flat(value: Json, path: str = "") -> Iterable[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, below in value.items():
            yield from _flat(below, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for number, below in enumerate(value):
            yield from _flat(below, f"{path}[{number}]")
    else:
        yield path, json.dumps(value)


def _steps(theirs: Json, ours: Json) -> list[str]:
    """What commands of the story left: exit statuses."""
    left, right = (
        [f"{one['do']} at {at_of(one.get('at')):.0f}: {one.get('result')}" for one in steps]
        if isinstance(steps, list)
        else []
        for steps in (theirs, ours)
    )
    return [] if left == right else [f"steps: recorded {_without(left, right)}, seen {_without(right, left)}"]


def _end(theirs: Mapping[str, Json], ours: Mapping[str, Json], loops: bool) -> list[str]:
    found: list[str] = []
    for what in ("containers", "sandboxes", "images", "log_files", "log_links", "pod_dirs", "pod_cgroups"):
        left, right = (_left(one.get(what), loops) for one in (theirs, ours))
        if what == "pod_dirs":  # what stands below `plugins` is the recorded agent's own
            left, right = (
                [_CONTENT.sub("/..<content>", one) for one in dict.fromkeys(some) if "/plugins/" not in one]
                for some in (left, right)
            )
        if left != right:
            gone, more = _without(left, right), _without(right, left)
            found.append(f"at the end, {what}: missing {gone}, too many {more}")
    return found


def _left(value: Json, loops: bool) -> list[str]:
    texts = [json.dumps(one) for one in value] if isinstance(value, list) else []
    if loops:  # one attempt more or less, as delays fall
        texts = [re.sub(r"/\d+\.log|, \d+,", " * ", one) for one in texts]
        texts = [re.sub(r'"(running|exited)"\]', "*", one) for one in texts]
    return sorted(texts)


def _without(left: Sequence[str], right: Sequence[str]) -> list[str]:
    rest = list(right)
    gone: list[str] = []
    for one in left:
        if one in rest:
            rest.remove(one)
        else:
            gone.append(one)
    return gone


def _refused(seen: Mapping[str, Json]) -> bool:
    """Whether the agent refused its configuration: it never answered."""
    answers = seen.get("agent")
    return isinstance(answers, list) and [one[1] for one in answers] == ["does not answer"]


def _together(items: Sequence[Item], is_end: Callable[[str], bool], gap_s: float) -> list[Item]:
    """Ends of one moment in the order of their names."""
    found: list[Item] = []
    group: list[Item] = []
    for one in items:
        if group and (not is_end(one.value) or one.at - group[-1].at > gap_s):
            found += sorted(group, key=lambda each: each.value)
            group = []
        if is_end(one.value):
            group.append(one)
        else:
            found.append(one)
    return _squeezed(found + sorted(group, key=lambda each: each.value))


def _squeezed(items: Sequence[Item]) -> list[Item]:
    return [one for place, one in enumerate(items) if not place or items[place - 1].value != one.value]


def _show(where: str, left: Sequence[Item], right: Sequence[Item]) -> str:
    """Where they part, with what comes there."""
    texts, ours = [one.value for one in left], [one.value for one in right]
    same = 0
    while same < min(len(texts), len(ours)) and texts[same] == ours[same]:
        same += 1
    shown = [
        ", ".join(f"{one.value} at {one.at:g}" for one in items[same : same + 3]) or "no more"
        for items in (left, right)
    ]
    return f"{where}, after {same} equal: recorded {shown[0]}; seen {shown[1]}"
