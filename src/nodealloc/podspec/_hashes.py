"""Whether a container that runs is still the one that is wanted.

Two hashes of a container. The kubelet's covers name and image; an agent that
takes over a kubelet's containers compares it. Ours covers every field whose
change needs a new container, and says which version of it that is: of a record
of another version the kubelet's is compared, so that an upgrade restarts nothing.
"""

from __future__ import annotations

import functools
from typing import Final

from nodealloc._reading import Json
from nodealloc._typed import typed
from nodealloc._wire import written
from nodealloc.podspec._model import Container

__all__ = [
    "HASH_ANNOTATION",
    "container_hash",
    "kubelet_hash",
]

HASH_ANNOTATION: Final = "nodealloc.io/container.hash"
"""Where `container_hash` is kept beside a container."""
_VERSION: Final = "v1"
_FIELDS: Final = (
    "args",
    "command",
    "env",
    "envFrom",
    "image",
    "name",
    "securityContext",
    "stdin",
    "stdinOnce",
    "terminationMessagePath",
    "tty",
    "workingDir",
)
"""Of version 1, by their names outside; a later version has another number and leaves this one alone."""


@typed
def kubelet_hash(container: Container, /) -> str:
    """The kubelet's hash of a container, as its annotation carries it: hexadecimal, no leading zeros.

    Source: kubelet v1.31 and later, ``container/helpers.go``: FNV-1a 32 over
    the printed bytes of the JSON of image and name.
    """
    return _kubelet_hash(container.image, container.name)


@functools.lru_cache(maxsize=4096)
def _kubelet_hash(image: str, name: str) -> str:
    """Of these two alone; kept, since it costs as much as a plan, and pods of one template share it."""
    import json  # noqa: PLC0415 - as below

    text = json.dumps({"image": image, "name": name}, ensure_ascii=False, separators=(",", ":"))
    # Go writes these five as escapes, so that JSON can stand in HTML.
    for one in "<>&\u2028\u2029":
        text = text.replace(one, f"\\u{ord(one):04x}")
    printed = f"([]uint8)[{' '.join(map(str, text.encode()))}]"
    value = 0x811C9DC5
    for byte in printed.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return f"{value:x}"


@typed
def container_hash(container: Container, /) -> str:
    """Our hash of a container, `VERSION:DIGEST`; it stays the same for ever for a version.

    Covers what only a new container can change: image, command, environment,
    security, working directory, terminal. Source: ours.
    """
    # A scheduler, which hashes nothing, would load OpenSSL with them.
    import hashlib  # noqa: PLC0415
    import json  # noqa: PLC0415

    digest = hashlib.sha256(json.dumps(_hashed(container), sort_keys=True, separators=(",", ":")).encode())
    return f"{_VERSION}:{digest.hexdigest()[:32]}"


def _hashed(container: Container) -> dict[str, Json]:
    fields = written(container)
    return {key: fields[key] for key in _FIELDS if isinstance(fields, dict) and key in fields}
