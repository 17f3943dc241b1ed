"""As whom images are fetched: the secrets that a pod names."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, cast

from nodealloc._typed import typed, typed_methods
from nodealloc.runtime import PullCredentials

if TYPE_CHECKING:
    from nodealloc.podlife._configuration import EnvironmentSource
    from nodealloc.podlife._image_names import ImageName
    from nodealloc.podspec import Pod

__all__ = ["SecretCredentials"]

_FILES: Final = (".dockerconfigjson", ".dockercfg")
_HUBS: Final = frozenset({"index.docker.io", "registry-1.docker.io"})


@typed_methods
class SecretCredentials:
    """A `CredentialSource` over the secrets that pods name in `imagePullSecrets`.

    An entry is for a registry, whose host may have `*` in each of its parts, and
    may be for what its paths begin with; of several the most exact is tried first. A secret
    that is not there, or that makes no sense, is passed over: the image may need none.

    Source: kubelet ``pkg/credentialprovider``.
    """

    @typed
    def __init__(self, source: EnvironmentSource, /) -> None:
        self._source = source

    def credentials(self, pod: Pod, image: ImageName, /) -> tuple[PullCredentials, ...]:
        """See `CredentialSource.credentials`."""
        found: dict[PullCredentials, str] = {}
        for ref in pod.image_pull_secrets:
            data = self._source.secret(pod.namespace, ref.name)
            for registry, one in _entries(data or {}):
                place = _place(registry)
                if _matches(place, image):
                    found.setdefault(one, place)
        return tuple(sorted(found, key=lambda one: found[one], reverse=True))


def _entries(data: Mapping[str, bytes]) -> Iterator[tuple[str, PullCredentials]]:
    for file in _FILES:
        try:
            document: object = json.loads(data[file])
        except (KeyError, ValueError, RecursionError):
            continue
        if file == _FILES[0] and isinstance(document, dict):
            document = cast("Mapping[str, object]", document).get("auths")
        if not isinstance(document, dict):
            continue
        for registry, entry in cast("Mapping[str, object]", document).items():
            if isinstance(entry, dict):
                yield registry, _credentials(registry, cast("Mapping[str, object]", entry))


def _credentials(registry: str, entry: Mapping[str, object]) -> PullCredentials:
    username, password = _text(entry, "username"), _text(entry, "password")
    try:
        auth = "".join(_text(entry, "auth").split())
        both = base64.b64decode(auth + "=" * (-len(auth) % 4), validate=True).decode()
    except (binascii.Error, ValueError):
        both = ""
    if ":" in both:
        username, _, password = both.partition(":")
    return PullCredentials(
        username=username,
        password=password.rstrip("\0"),
        server=registry,
        identity_token=_text(entry, "identitytoken"),
        registry_token=_text(entry, "registrytoken"),
    )


def _text(entry: Mapping[str, object], key: str) -> str:
    found = entry.get(key)
    return found if isinstance(found, str) else ""


def _place(registry: str) -> str:
    """Host and path that an entry is for."""
    place = registry.partition("://")[2] or registry
    host, slash, path = place.partition("/")
    if path.startswith(("v1/", "v2/")) or path in {"v1", "v2"}:
        path = path[3:]
    return f"{host}{slash}{path}" if path else host


def _matches(place: str, image: ImageName) -> bool:
    host, _, path = place.partition("/")
    host = "docker.io" if host in _HUBS else host
    if not image.path.startswith(path):
        return False
    name, _, port = host.partition(":")
    mine, _, my_port = image.registry.partition(":")
    parts, my_parts = name.split("."), mine.split(".")
    return (
        port == my_port
        and len(parts) == len(my_parts)
        and all(fnmatchcase(each, part) for part, each in zip(parts, my_parts, strict=True))
    )
