"""What a pod tells of itself: fields of its metadata, and what its containers ask for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from nodealloc._typed import typed
from nodealloc.errors import DecodeError
from nodealloc.podspec import Container, Pod, Quantity, ResourceFieldRef

__all__ = ["metadata_field", "resource_value"]

_SUBSCRIPT: Final = re.compile(r"metadata\.(labels|annotations)\['(.*)'\]", re.DOTALL)
_ESCAPES: Final = {'"': r"\"", "\\": r"\\"} | dict(
    zip("\n\t\r\a\b\f\v", (r"\n", r"\t", r"\r", r"\a", r"\b", r"\f", r"\v"), strict=True)
)
_DEFAULTED: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
_ONE_BYTE, _TWO_BYTES = 0x80, 0x10000


@typed
def metadata_field(path: str, pod: Pod, /) -> str | None:
    """What a field of a pod's metadata says, for variables and files; None where there is no such field.

    Args:
        path: `metadata.name`, `metadata.namespace`, `metadata.uid`, `metadata.labels['app']` (""
            where it has none of that key), or `metadata.labels`: a line each, by key, the value
            quoted; `metadata.annotations` likewise.
        pod: Whose.

    Source: Kubernetes ``pkg/fieldpath/fieldpath.go``.
    """
    subscript = _SUBSCRIPT.fullmatch(path)
    if subscript:
        of = pod.labels if subscript[1] == "labels" else pod.annotations
        return of.get(subscript[2], "")
    match path:
        case "metadata.name":
            return pod.name
        case "metadata.namespace":
            return pod.namespace
        case "metadata.uid":
            return pod.uid
        case "metadata.labels":
            return _lines(pod.labels)
        case "metadata.annotations":
            return _lines(pod.annotations)
        case _:
            return None


@typed
def resource_value(
    ref: ResourceFieldRef, container: Container, allocatable: Mapping[str, Quantity], /
) -> str | None:
    """What a container asks for, in units of the divisor, rounded up; None for what cannot be told.

    A limit that it lacks is the node's: so much it may use.

    Args:
        ref: `limits.cpu` or the like, with a divisor.
        container: Who asks.
        allocatable: What the node has for pods, by resource.

    Source: Kubernetes ``pkg/api/v1/resource/helpers.go``.
    """
    kind, _, name = ref.resource.partition(".")
    amounts = {"limits": container.limits, "requests": container.requests}.get(kind)
    if amounts is None or not (name in _DEFAULTED or name.startswith("hugepages-")):
        return None
    amount = amounts.get(name)
    if not amount and kind == "limits" and name in _DEFAULTED:
        amount = allocatable.get(name, amount)
    try:
        divisor = Quantity.of(ref.divisor or 1)
    except DecodeError:
        return None
    if divisor.nanos <= 0:
        divisor = Quantity.of(1)
    if name == "cpu":
        # Both count in thousandths, each rounded up.
        parts, whole = amount.milli_value if amount else 0, divisor.milli_value
    else:
        parts, whole = amount.value if amount else 0, divisor.value
    return str(-(-parts // whole))


def _lines(words: Mapping[str, str]) -> str:
    """A whole mapping as a text: a line each, by key."""
    return "\n".join(f'{key}="{"".join(map(_escaped, words[key]))}"' for key in sorted(words))


def _escaped(character: str) -> str:
    """As Go's `%q` writes it: what cannot be printed by its number."""
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    number = ord(character)
    if number < _ONE_BYTE:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < _TWO_BYTES else f"\\U{number:08x}"
