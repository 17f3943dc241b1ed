"""What the agent reads: pod manifests, and the machine to give out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import yaml

from nodealloc.errors import DecodeError, Fault
from nodealloc.machine import Machine, discover, machine_from_json, machine_from_text
from nodealloc.podspec import Pod

__all__ = ["MACHINES", "read_machine", "read_pods"]

MACHINES = {
    "laptop": "1 socket x 4 cores x 2 threads, memory=16Gi",
    "server": "2 sockets x 2 numa x 8 cores x 2 threads, memory=64Gi",
    "chiplets": "2 sockets x 2 numa x 4 l3 x 8 cores x 2 threads, memory=128Gi",
}
"""Synthetic machines by name."""
_LARGEST = 1 << 18
"""Bytes of a file with manifests."""
# libyaml where it is: 256 kB take seconds without.
_LOADER: type[yaml.SafeLoader | yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


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


def read_pods(folder: Path) -> dict[str, Pod]:
    """The pods of every `*.yaml` file in a folder, by uid.

    Raises:
        DecodeError: Lists every fault of every file; `source` is the folder.
    """
    pods: dict[str, Pod] = {}
    faults: list[Fault] = []
    files = sorted(folder.glob("*.yaml"))
    if not folder.is_dir():
        faults.append(Fault(str(folder), "no such folder; give one with pod manifests"))
    for path in files:
        try:
            for document in _documents(path):
                pod = Pod.from_manifest(document, source=path.name)
                faults += [
                    Fault(f"{path.name} {where}", "this agent does not do that") for where in _beyond(pod)
                ]
                if pod.uid in pods:
                    faults.append(Fault(f"{path.name} $.metadata.uid", f"{pod.uid} is another pod's as well"))
                pods[pod.uid] = pod
        except DecodeError as error:
            faults += [Fault(f"{path.name} {fault.path}", fault.reason) for fault in error.faults]
    if faults:
        raise DecodeError(str(folder), faults)
    return pods


def _beyond(pod: Pod) -> list[str]:
    """What a pod asks of whoever makes its containers, and this agent leaves out."""
    found: list[str] = []
    for one in pod.all_containers:
        if any(use.sub_path or use.sub_path_expr for use in one.volumes):
            found.append(f"volumeMounts[].subPath of {one.name}")
        if one.liveness_probe or one.readiness_probe or one.startup_probe or one.lifecycle:
            found.append(f"probes and hooks of {one.name}")
    return found


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


def _documents(path: Path) -> list[object]:
    if path.exists() and not path.is_file():
        raise DecodeError(path.name, [Fault("file", "no regular file; give a manifest")])
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise DecodeError(path.name, [Fault("file", f"more than {_LARGEST} bytes are no manifest")])
        return [one for one in yaml.load_all(data, Loader=_LOADER) if one is not None]
    except FileNotFoundError:
        return []  # gone since the folder was listed
    except OSError as error:
        raise DecodeError(path.name, [Fault("file", f"cannot be read: {error}")]) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}" if mark else "$"
        raise DecodeError(
            path.name, [Fault(where, f"not YAML: {getattr(error, 'problem', None) or error}")]
        ) from error
