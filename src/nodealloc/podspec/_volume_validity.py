"""What an API server checks of the volumes that a node makes itself."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, cast

from nodealloc._raw_parts import Fields, fields_of, items_of, text_of
from nodealloc.errors import Fault
from nodealloc.podspec._checks import subdomain
from nodealloc.podspec._claim_validity import ephemeral_faults
from nodealloc.podspec._quantity import Quantity
from nodealloc.podspec._reference_validity import amount_faults, keyed_field_fault, version_fault
from nodealloc.podspec._storage_validity import storage_faults

if TYPE_CHECKING:
    from nodealloc.podspec._fields import PodFields
    from nodealloc.podspec._model import Volume

__all__ = ["volume_faults"]

_HOST_PATHS: Final = (
    "DirectoryOrCreate",
    "Directory",
    "FileOrCreate",
    "File",
    "Socket",
    "CharDevice",
    "BlockDevice",
)
_FIELD: Final = re.compile(
    r"metadata\.(name|namespace|uid|labels|annotations|(labels|annotations)\['[^']+'\])"
)
_LONGEST_TARGET: Final = 64
_MOST_MODE: Final = 0o777
_SHORTEST_TOKEN_S: Final = 600
_LONGEST_TOKEN_S: Final = 1 << 32


def volume_faults(pod: PodFields, /) -> Iterator[Fault]:
    """What is wrong with the volumes of a pod, and with what stands below the kind of each.

    Source: Kubernetes v1.32 ``pkg/apis/core/validation``.
    """
    made = {f"{pod.name}-{one.name}" for one in pod.volumes if one.kind == "ephemeral"}
    for index, one in enumerate(pod.volumes):
        where, spec = f"$.spec.volumes[{index}].{one.kind}", cast("Fields", one.spec)
        yield from _of_kind(where, one)
        if one.kind == "persistentVolumeClaim" and text_of(spec.get("claimName")) in made:
            what = "this claim is made for an ephemeral volume of the pod; name another"
            yield Fault(f"{where}.claimName", what)
        path, portal = f"$.spec.volumes[{index}].name", text_of(spec.get("targetPortal"))
        if one.kind == "ephemeral" and (what := subdomain(f"{pod.name}-{one.name}")):
            yield Fault(path, f"a claim is made for it: {what}")
        if one.kind == "iscsi" and spec.get("initiatorName") is not None:
            length = len(f"{one.name}:{portal}")
            if length > _LONGEST_TARGET:
                what = f"{length} characters with targetPortal, {_LONGEST_TARGET} is the limit; shorten it"
                yield Fault(path, what)


def _of_kind(where: str, one: Volume) -> Iterator[Fault]:
    spec = cast("Fields", one.spec)
    if one.kind == "hostPath":
        yield from _host_path(where, spec)
    elif one.kind == "emptyDir":
        yield from _empty_dir(where, spec)
    elif one.kind == "configMap":
        yield from _needed(where, spec, "name")
        yield from _files(where, spec)
    elif one.kind == "secret":
        yield from _needed(where, spec, "secretName")
        yield from _files(where, spec)
    elif one.kind == "downwardAPI":
        yield from _mode(f"{where}.defaultMode", spec.get("defaultMode"))
        yield from _downward(where, spec)
    elif one.kind == "projected":
        yield from _projected(where, spec)
    elif one.kind == "persistentVolumeClaim":
        yield from _needed(where, spec, "claimName")
    elif one.kind == "ephemeral":
        yield from ephemeral_faults(where, spec)
    else:
        yield from storage_faults(where, one.kind, spec)


def _needed(where: str, spec: Fields, name: str) -> Iterator[Fault]:
    if not spec.get(name):
        yield Fault(f"{where}.{name}", "it is needed; write it")


def _host_path(where: str, spec: Fields) -> Iterator[Fault]:
    path, kind = str(spec.get("path") or ""), str(spec.get("type") or "")
    yield from _needed(where, spec, "path")
    if ".." in path.split("/"):
        yield Fault(f"{where}.path", f"{path} leads upwards; write it without ..")
    if kind and kind not in _HOST_PATHS:
        yield Fault(f"{where}.type", f"{kind!r} is none; {', '.join(sorted(_HOST_PATHS))} are")


def _empty_dir(where: str, spec: Fields) -> Iterator[Fault]:
    given = spec.get("sizeLimit")
    if given is None:
        return
    try:
        negative = Quantity.of(cast("str", given)).nanos < 0
    except (TypeError, ValueError):
        negative = True
    if negative:
        yield Fault(f"{where}.sizeLimit", f"{str(given)[:80]!r} is no size; write an amount such as 1Gi")


def _mode(path: str, mode: object) -> Iterator[Fault]:
    if isinstance(mode, str):
        yield Fault(path, f"{mode[:80]!r} is a text; write a number such as 420, or 0644 in YAML")
    elif mode is not None and not (isinstance(mode, int) and 0 <= mode <= _MOST_MODE):
        yield Fault(path, f"{str(mode)[:80]} is no mode; 0 to 511 (octal 777) are")


def _items(where: str, spec: Fields) -> Iterator[tuple[str, Fields]]:
    for index, item in enumerate(items_of(spec.get("items"))):
        yield f"{where}.items[{index}]", fields_of(item)


def _inside(path: str, name: str) -> Iterator[Fault]:
    if not name:
        yield Fault(path, "it is needed; write it")
    elif name.startswith(("/", "..")) or ".." in name.split("/"):
        yield Fault(path, f"{name[:80]!r} leads out of the volume, or to a name that the volume keeps")


def _files(where: str, spec: Fields) -> Iterator[Fault]:
    """Of a volume, or a part of one, whose files are keys of an object."""
    yield from _mode(f"{where}.defaultMode", spec.get("defaultMode"))
    for path, item in _items(where, spec):
        yield from _needed(path, item, "key")
        yield from _inside(f"{path}.path", str(item.get("path") or ""))
        yield from _mode(f"{path}.mode", item.get("mode"))


def _downward(where: str, spec: Fields) -> Iterator[Fault]:
    for path, item in _items(where, spec):
        yield from _inside(f"{path}.path", str(item.get("path") or ""))
        yield from _mode(f"{path}.mode", item.get("mode"))
        field, amount = item.get("fieldRef"), item.get("resourceFieldRef")
        if (field is None) == (amount is None):
            yield Fault(path, "exactly one of fieldRef, resourceFieldRef is needed")
        elif field is not None:
            name = str(fields_of(field).get("fieldPath") or "")
            if not _FIELD.fullmatch(name):
                yield Fault(f"{path}.fieldRef.fieldPath", f"{name[:80]!r} is no field that a file can have")
            yield from keyed_field_fault(f"{path}.fieldRef.fieldPath", name)
            yield from version_fault(f"{path}.fieldRef", str(fields_of(field).get("apiVersion") or "v1"))
        else:
            asked = fields_of(amount)
            yield from _needed(f"{path}.resourceFieldRef", asked, "containerName")
            resource = str(asked.get("resource") or "")
            yield from amount_faults(f"{path}.resourceFieldRef", resource, asked.get("divisor"))


def _projected(where: str, spec: Fields) -> Iterator[Fault]:
    yield from _mode(f"{where}.defaultMode", spec.get("defaultMode"))
    taken: list[str] = []
    for index, source in enumerate(items_of(spec.get("sources"))):
        for kind, part in fields_of(source).items():
            if part is None:
                continue
            path, fields = f"{where}.sources[{index}].{kind}", fields_of(part)
            yield from _part(path, kind, fields)
            items = [fields] if kind == "serviceAccountToken" else [item for _, item in _items(path, fields)]
            taken += [str(item.get("path") or "") for item in items]
    yield from _twice(where, taken)


def _part(path: str, kind: str, part: Fields) -> Iterator[Fault]:
    if kind == "downwardAPI":
        yield from _downward(path, part)
    elif kind in {"configMap", "secret"}:
        yield from _needed(path, part, "name")
        yield from _files(path, part)
    elif kind == "serviceAccountToken":
        yield from _inside(f"{path}.path", str(part.get("path") or ""))
        seconds = part.get("expirationSeconds")
        if isinstance(seconds, int) and not _SHORTEST_TOKEN_S <= seconds <= _LONGEST_TOKEN_S:
            what = f"{seconds} is outside {_SHORTEST_TOKEN_S} to {_LONGEST_TOKEN_S}"
            yield Fault(f"{path}.expirationSeconds", what)


def _twice(where: str, paths: Iterable[str]) -> Iterator[Fault]:
    for path, count in Counter(paths).items():
        if path and count > 1:
            yield Fault(
                f"{where}.sources", f"{path[:80]!r} is written by {count} of them; choose other paths"
            )
