"""The volumes of a pod: their kinds, and which fields the API's kinds have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from nodealloc._declared import FAULTY, At
from nodealloc._reading import alike, short, under
from nodealloc.podspec._checks import label
from nodealloc.podspec._model import Volume
from nodealloc.podspec._pod_reader import PodReader, some
from nodealloc.podspec._storage_validity import STORAGE_KINDS

__all__ = ["volume_of"]

_SHOWN: Final = 80
"""Characters of a name that is listed; a right one has fewer."""
_TOLD: Final = 100
"""Faults that are told; for those behind them nothing is looked up."""

_ITEMS: Final = ("items", "optional")
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "configMap": ("name", "defaultMode", *_ITEMS),
    "csi": ("driver", "fsType", "nodePublishSecretRef", "readOnly", "volumeAttributes"),
    "downwardAPI": ("defaultMode", "items"),
    "emptyDir": ("medium", "sizeLimit"),
    "ephemeral": ("volumeClaimTemplate",),
    "hostPath": ("path", "type"),
    "image": ("pullPolicy", "reference"),
    "nfs": ("path", "readOnly", "server"),
    "persistentVolumeClaim": ("claimName", "readOnly"),
    "projected": ("defaultMode", "sources"),
    "secret": ("secretName", "defaultMode", *_ITEMS),
}
"""Fields of the API's kinds that a node makes itself; of other kinds whoever mounts them knows."""
_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "clusterTrustBundle": ("labelSelector", "name", "optional", "path", "signerName"),
    "configMap": ("name", *_ITEMS),
    "downwardAPI": ("items",),
    "secret": ("name", *_ITEMS),
    "serviceAccountToken": ("audience", "expirationSeconds", "path"),
}
"""The same of the sources of a projected volume."""


def volume_of(at: At, _: object) -> object:
    """One volume: its name, and one key that is its kind."""
    item, path, plain = at
    reader = cast("PodReader", plain)
    fields = reader.mapping(item, path)
    if not fields:
        if isinstance(item, Mapping) and not item:
            reader.fault(path, "nothing stands here; a name is needed")
        return FAULTY
    # As Go reads it: a kind of null is not there.
    kinds = [key for key, value in fields.items() if key != "name" and value is not None]
    if len(kinds) > 1:
        kinds = _known_kinds(reader, kinds, path)
    kind = kinds[0] if kinds else "emptyDir"
    where = under(path, kind)
    detail = reader.maybe_mapping(fields.get(kind), where)
    named = fields.get("name")
    name = reader.maybe_text(named, f"{path}.name")
    if named is None or named == "":
        reader.fault(f"{path}.name", "a name is needed")
    elif name and (reason := label(name)):
        reader.fault(f"{path}.name", reason)
    _check_fields(reader, kind, detail, where)
    volume = Volume(name=name, kind=kind, spec=reader.copied(detail, where))
    reader.volumes.append((volume, path))
    return volume


def _known_kinds(reader: PodReader, kinds: list[str], path: str) -> list[str]:
    """Of several kinds the one that the API has; a fault where it has two."""
    known = [kind for kind in kinds if kind in _FIELDS or kind in STORAGE_KINDS]
    if len(known) != 1:
        reader.fault(path, f"one kind of volume at a time, found {some(kinds, ' and ')}")
        return kinds
    for kind in kinds:
        if kind != known[0]:
            reader.not_read(under(path, kind), f"unknown kind {short(kind)} beside {known[0]}; leave it out")
    return known


def _check_fields(reader: PodReader, kind: str, detail: Mapping[str, object], path: str) -> None:
    known = _FIELDS.get(kind)
    if known is None:
        return
    _name_unknown(reader, detail, known, path)
    if kind != "projected":
        return
    sources = f"{path}.sources"
    for number, source in enumerate(reader.maybe_sequence(detail.get("sources"), sources)):
        here = f"{sources}[{number}]"
        parts = {key: part for key, part in reader.mapping(source, here).items() if part is not None}
        if len(parts) > 1:
            reader.fault(here, f"one source at a time, found {some(parts, ' and ')}")
        _name_unknown(reader, parts, tuple(_PARTS), here)
        for key, part in parts.items():
            if key in _PARTS:
                _name_unknown(
                    reader, reader.maybe_mapping(part, f"{here}.{key}"), _PARTS[key], f"{here}.{key}"
                )


def _name_unknown(reader: PodReader, fields: Mapping[str, object], known: tuple[str, ...], path: str) -> None:
    for key in fields:
        if key not in known:
            meant = alike(key[:_SHOWN], known) if len(reader.faults) < _TOLD else ""
            hint = f"did you mean {meant}?" if meant else f"known are {', '.join(known)}"
            reader.not_read(under(path, key), f"unknown field {short(key)}; {hint}")
