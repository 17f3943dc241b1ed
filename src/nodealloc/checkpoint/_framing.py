"""What the CPU and the memory manager's files share: a body, a checksum of Go's print of it, or of its text.

```text
older    {…body…, "checksum": of the body as Go prints it}
newest   {…body…, "checksum": 0, "data": the body once more as text, "dataChecksum": of that text}
```
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from nodealloc import _attrs as attrs
from nodealloc._reading import short
from nodealloc.checkpoint._errors import CorruptCheckpointError
from nodealloc.checkpoint._fnv import fnv1a32
from nodealloc.checkpoint._json import Json, Shape, go_json, read_json

__all__ = ["Framed", "check", "frame", "print_entries", "read_entries", "unframe"]

T = TypeVar("T")


@attrs.frozen
class Framed:
    """A file taken apart.

    Attributes:
        body: What is remembered.
        checksum: That counts.
        data: The text that it covers; None where it covers Go's print of the body.
    """

    body: Mapping[str, object]
    checksum: object
    data: str | None


def frame(outer: Mapping[str, Json], body: Mapping[str, Json]) -> bytes:
    """A file of the newest kind; `outer` is what older kubelets read of it."""
    data = go_json(body)
    return go_json({**outer, "checksum": 0, "data": data, "dataChecksum": fnv1a32(_text(data))}).encode()


def unframe(shape: Shape, source: str, data: bytes, required: Sequence[str]) -> Framed:
    """Take a file of either kind apart; raises `DecodeError`."""
    optional = ("entries", "podEntries")
    outer = shape.fields(
        read_json(source, data), "$", (*required, "checksum"), (*optional, "data", "dataChecksum")
    )
    shape.check()
    if "data" not in outer and "dataChecksum" not in outer:
        return Framed(outer, outer["checksum"], None)
    text = shape.text(outer.get("data"), "$.data")
    shape.check()
    body = shape.fields(read_json(f"{source} $.data", text.encode()), "$.data", required, optional)
    return Framed(body, outer.get("dataChecksum"), text)


def check(source: str, stored: int, data: str | None, prints: Iterable[bytes]) -> None:
    """Raise `CorruptCheckpointError` when a checksum is neither the text's nor, without one, a print's."""
    computed: list[int] = []
    for covered in prints if data is None else (_text(data),):
        computed.append(fnv1a32(covered))
        if computed[-1] == stored:
            return
    raise CorruptCheckpointError(source, str(stored), str(computed[0]))


def read_entries(
    shape: Shape, body: Mapping[str, object], read: Callable[[object, str], T]
) -> dict[str, dict[str, T]]:
    """Pod uid to container name to what it holds."""
    entries: dict[str, dict[str, T]] = {}
    for pod, containers in shape.mapping(body.get("entries", {}), "$.entries").items():
        path = f"$.entries[{short(pod)}]"
        entries[pod] = {
            name: read(value, f"{path}[{short(name)}]")
            for name, value in shape.mapping(containers, path).items()
        }
    return entries


def print_entries(entries: Mapping[str, Mapping[str, T]], show: Callable[[T], str]) -> str:
    """The same as Go prints it."""
    pods = [
        f"{pod}:map[{' '.join([f'{name}:{show(value)}' for name, value in sorted(held.items())])}]"
        for pod, held in sorted(entries.items())
    ]
    return f"map[{' '.join(pods)}]"


def _text(data: str) -> bytes:
    return f"(string){data}".encode()
