"""From what was observed to the form in which stories tell it: pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

__all__ = ["Call", "Contained", "Names", "Told", "calls", "configs", "order", "pods"]

Json = object

_ID: Final = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_RUN: Final = "container "
_TERMINATION: Final = re.compile(r"(containers/[^/\"]+)/[0-9a-f]+(?=\"|$)")


@attrs.frozen(kw_only=True)
class Told:
    """A line of the agent's status file.

    Attributes:
        at: Seconds since the first step.
        uid: The pod's.
        name: `namespace/name`.
        status: As the API spells it; None when nothing is told of it any more.
    """

    at: float
    uid: str
    name: str
    status: Mapping[str, Json] | None


@attrs.frozen(kw_only=True)
class Call:
    """A call that reached the runtime.

    Attributes:
        at: When it came.
        method: Of the runtime's interface.
        request: The message, as JSON with the interface's field names.
        answer: The id that was returned, "" for none.
        error: The runtime's words, "" for success.
    """

    at: float
    method: str
    request: Mapping[str, Json]
    answer: str
    error: str


@attrs.define(kw_only=True)
class Contained:
    """A container (or a sandbox: no name) as the runtime had it last.

    Attributes:
        pod: Its pod's uid.
        name: As the pod names it; "" for a sandbox.
        attempt: Its number.
        started: When it started, or the sandbox was made; None before.
        ended: When it ended, or the sandbox was no longer ready; None before.
        how: Exit code and reason.
        state: The last.
        removed: Whether it is gone.
    """

    pod: str
    name: str
    attempt: int
    started: float | None = None
    ended: float | None = None
    how: str = ""
    state: str = ""
    removed: bool = False


@attrs.define
class Names:
    """Pods by the names under which stories tell of them: the second of a name is `name#2`.

    Attributes:
        by_uid: Names of pods.
        counts: How many of a name there were.
        places: Words of this run to the word that stories have for them.
    """

    by_uid: dict[str, str] = attrs.field(factory=dict[str, str])
    counts: dict[str, int] = attrs.field(factory=dict[str, int])
    places: dict[str, str] = attrs.field(factory=dict[str, str])

    def see(self, uid: str, full: str) -> str:
        """The name of a pod, which is given at first sight.

        Args:
            uid: The pod's.
            full: `namespace/name`.
        """
        if uid not in self.by_uid:
            short = full.removeprefix("default/")
            self.counts[short] = self.counts.get(short, 0) + 1
            number = self.counts[short]
            self.by_uid[uid] = short if number == 1 else f"{short}#{number}"
        return self.by_uid[uid]

    def of(self, uid: str) -> str:
        """The name of a pod that was seen, else its uid."""
        return self.by_uid.get(uid, uid)

    def plain(self, text: str, /) -> str:
        """A text, of JSON or not, without what differs from run to run."""
        for word, told in (*self.places.items(), *((uid, "<uid>") for uid in self.by_uid)):
            text = text.replace(word, told)
        return _ID.sub("<id>", _TERMINATION.sub(r"\1/<n>", text))


def pods(told: Sequence[Told], names: Names) -> dict[str, Json]:
    """Tracks of all pods."""
    tracks: dict[str, dict[str, list[list[Json]]]] = {}
    for line in told:
        mine = tracks.setdefault(names.see(line.uid, line.name), {})
        found = {} if line.status is None else _values(line.status)
        has_containers = any(track.startswith(_RUN) for track in found)
        for track in {**mine, **found}:
            if has_containers and track not in found and track.startswith(_RUN):
                continue  # of a container that the pod has no more, but others, nothing is noted
            seq = mine.setdefault(track, [])
            value = found.get(track)
            if (seq and seq[-1][1] != value) or (not seq and value is not None):
                seq.append([line.at, value])
    return {
        name: {"tracks": {track: {"agree": True, "seq": seq} for track, seq in mine.items()}}
        for name, mine in tracks.items()
    }


def _values(status: Mapping[str, Json]) -> dict[str, Json]:
    found: dict[str, Json] = {"phase": _worded(status.get("phase"), status.get("reason"))}
    for one in _list(status.get("conditions")):
        found[f"condition {one['type']}"] = _worded(one["status"], one.get("reason"))
    for kind in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"):
        for one in _list(status.get(kind)):
            found[f"{_RUN}{one['name']}"] = _container(one)
    return found


def _worded(value: Json, reason: Json) -> str:
    return f"{value}({reason})" if reason else str(value)


def _container(status: Mapping[str, Json]) -> Mapping[str, Json]:
    state = status.get("state")
    ((kind, inside),) = state.items() if isinstance(state, dict) and state else [("waiting", {})]
    found: dict[str, Json] = {"state": kind}
    if inside.get("reason"):
        found["reason"] = inside["reason"]
    if kind == "terminated":
        found["exit_code"] = inside.get("exitCode", 0)
        if inside.get("signal"):
            found["signal"] = inside["signal"]
    found["restarts"] = status.get("restartCount", 0)
    found["ready"] = status.get("ready", False)
    found["started"] = status.get("started")
    return found


def order(contained: Iterable[Contained], names: Names) -> dict[str, Json]:
    """Starts and ends, and the last state of each."""
    by_pod: dict[str, list[Contained]] = {}
    for one in contained:
        by_pod.setdefault(names.of(one.pod), []).append(one)
    found: dict[str, Json] = {}
    for pod, mine in by_pod.items():
        lines: list[tuple[float, int, str]] = []
        for one in mine:
            words = f"{one.name or 'sandbox'}@{one.attempt}"
            if one.started is not None:
                lines.append((one.started, 0, f"{words} {'started' if one.name else 'ready'}"))
            if one.ended is not None:
                # What ends at once may have ended before the runtime wrote down that it began.
                ended = max(one.ended, one.started or one.ended)
                how = f"ended {one.how}" if one.name else "not ready"
                lines.append((ended, 1 if one.name else 2, f"{words} {how}"))
        found[pod] = {"order": [[at, text] for at, _, text in sorted(lines)]}
    return found


def calls(made: Sequence[Call], names: Names) -> dict[str, Json]:
    """Changes that were asked of the runtime, by pod; pulls under `images`."""
    boxes: dict[str, tuple[str, int]] = {}
    runs: dict[str, tuple[str, str, int]] = {}
    found: dict[str, list[Json]] = {}
    for one in made:
        line: dict[str, Json] = {"at": one.at, "call": one.method}
        request = one.request
        pod = "images"
        if one.method == "RunPodSandbox":
            meta = _dict(_dict(request.get("config")).get("metadata"))
            pod, attempt = str(meta.get("uid")), _int(meta.get("attempt"))
            boxes[one.answer] = pod, attempt
            line["attempt"] = attempt
        elif one.method == "CreateContainer":
            meta = _dict(_dict(request.get("config")).get("metadata"))
            pod = boxes.get(str(request.get("pod_sandbox_id")), ("?", 0))[0]
            runs[one.answer] = pod, str(meta.get("name")), _int(meta.get("attempt"))
            line |= {"container": meta.get("name"), "attempt": _int(meta.get("attempt"))}
        elif "PodSandbox" in one.method:
            pod, line["attempt"] = boxes.get(str(request.get("pod_sandbox_id")), ("?", 0))
        elif "Container" in one.method:
            pod, line["container"], line["attempt"] = runs.get(
                str(request.get("container_id")), ("?", "?", 0)
            )
            if one.method == "StopContainer" and one.error in ("", "canceled"):
                line["timeout"] = _int(request.get("timeout"))
        elif one.method == "PullImage":
            line["image"] = _dict(request.get("image")).get("image")
        else:
            continue
        if one.error and not (one.method == "StopContainer" and one.error == "canceled"):
            line["error"] = one.error  # a stop goes on when whoever asked for it is no more
        found.setdefault(names.of(pod), []).append(line)
    return dict(found)


def configs(made: Sequence[Call], names: Names) -> tuple[dict[str, Json], dict[str, Json]]:
    """What the runtime was asked for: sandboxes; containers, later attempts only where something changed."""
    boxes: dict[str, str] = {}
    runs: dict[str, Json] = {}
    sandboxes: dict[str, Json] = {}
    last: dict[str, str] = {}
    for one in made:
        if one.method not in ("RunPodSandbox", "CreateContainer") or one.error:
            continue
        config = json.loads(json.dumps(_dict(one.request.get("config"))))
        meta = config.get("metadata", {})
        attempt = _int(meta.get("attempt"))
        if one.method == "RunPodSandbox":
            boxes[one.answer] = names.of(str(meta.get("uid")))
            key, into, name = boxes[one.answer], sandboxes, f"{boxes[one.answer]}@{attempt}"
        else:
            pod = boxes.get(str(one.request.get("pod_sandbox_id")), "?")
            key, into, name = f"{pod}/{meta.get('name')}", runs, f"{pod}/{meta.get('name')}@{attempt}"
        config = _cleaned(config, names)
        # The recording has each sandbox of another number, of containers only what is new.
        is_run = one.method == "CreateContainer"
        bare = json.dumps(_without_attempt(config) if is_run else config, sort_keys=True)
        if last.get(key) != bare:
            last[key] = bare
            into[name] = config
    return runs, sandboxes


def _cleaned(config: dict[str, Json], names: Names) -> Mapping[str, Json]:
    """As stories show it: no uid, no hash, image by its name."""
    meta = _dict(config.get("metadata"))
    meta.pop("uid", None)
    if meta.get("attempt") == 0:
        meta.pop("attempt")
    image = config.get("image")
    if isinstance(image, dict):
        config["image"] = image.get("user_specified_image") or image.get("image")
    notes = config.get("annotations")
    if isinstance(notes, dict):
        notes.pop("io.kubernetes.container.hash", None)
    found = json.loads(names.plain(json.dumps(config)))
    return found if isinstance(found, dict) else {}


def _without_attempt(config: Mapping[str, Json]) -> Json:
    text = json.dumps(config, sort_keys=True)
    text = re.sub(r'"attempt": \d+,? ?|"io.kubernetes.container.restartCount": "\d+",? ?', "", text)
    return re.sub(r"/\d+\.log", "/N.log", text)


def _list(value: Json) -> list[Mapping[str, Json]]:
    return value if isinstance(value, list) else []


def _dict(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _int(value: Json) -> int:
    return int(str(value)) if value is not None else 0
