"""The library's own records as rows of a table: who holds what, then what was asked and what runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, cast

from nodealloc._raw_parts import fields_of, items_of
from nodealloc._units import bytes_text
from nodealloc.idset import NodeSet

if TYPE_CHECKING:
    from nodealloc.checkpoint import JsonCheckpoint

__all__ = ["record_rows"]

Row = tuple[str, str, str]


def record_rows(record: JsonCheckpoint) -> Iterator[Row]:
    """Owner, resource and value of everything in a record."""
    kind = f"({record.kind}, version {record.version})"
    value = record.value
    if not isinstance(value, Mapping):
        yield kind, "", json.dumps(value, ensure_ascii=False)
        return
    fields = cast("Mapping[str, object]", value)
    workload, grants = fields.get("workload"), fields.get("grants")
    if not (isinstance(workload, Mapping) and isinstance(grants, Mapping)):
        for name, one in fields.items():
            yield kind, name, _words(one)
        return
    asked = cast("Mapping[str, object]", workload)
    key = str(asked.get("key", ""))
    for allocator, held in cast("Mapping[str, object]", grants).items():
        yield from _grants(key, allocator, held)
    yield from _asked(key, asked.get("claims"))
    yield from _named(key, "(container)", fields.get("bound"))
    if not grants:
        yield key, "(nothing held)", ""


def _grants(key: str, allocator: str, held: object) -> Iterator[Row]:
    """What an allocator granted, a row a member where its words say who that is."""
    if isinstance(held, Mapping):
        for member, one in cast("Mapping[str, object]", held).items():
            yield f"{key}/{member}", allocator, _words(one)
        return
    for entry in items_of(held):
        fields = fields_of(entry)
        if "member" in fields and "places" in fields:
            place = fields_of(fields["places"])
            text = ", ".join(
                f"{' '.join(map(str, items_of(ids)))} on {'no node' if node == '-1' else f'node {node}'}"
                for node, ids in place.items()
            )
            yield f"{key}/{fields['member']}", str(fields.get("resource", allocator)), text
        else:
            yield key, allocator, _words(entry)


def _asked(key: str, claims: object) -> Iterator[Row]:
    for claim in items_of(claims):
        fields = fields_of(claim)
        member = fields_of(fields.get("owner")).get("member", "")
        yield f"{key}/{member}", "(asked)", _words(fields.get("amounts"))


def _named(key: str, what: str, entries: object) -> Iterator[Row]:
    if isinstance(entries, Mapping):
        for member, one in cast("Mapping[str, object]", entries).items():
            yield f"{key}/{member}", what, _words(one)


def _words(value: object) -> str:
    """A value in a line: blocks of memory as the kubelet's are shown, mappings as `name=value`."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, object]", value)
        mask, size = fields.get("nodes"), fields.get("size_bytes")
        if len(fields) == 3 and "resource" in fields and isinstance(mask, int) and isinstance(size, int):
            return f"{fields['resource']}: {bytes_text(size)} on nodes {NodeSet.from_mask(mask)}"
        return " ".join(f"{name}={_words(one)}" for name, one in fields.items())
    listed = items_of(value)
    if listed and all(isinstance(one, Mapping) for one in listed):
        return "; ".join(_words(one) for one in listed)
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
