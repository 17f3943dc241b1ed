"""Names of images: which are none, and which mean the same."""

from __future__ import annotations

import re
from typing import Final

from nodealloc import _attrs as attrs
from nodealloc._typed import typed
from nodealloc.errors import ConfigurationError

__all__ = ["ImageName"]

_COMPONENT: Final = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN: Final = rf"(?:{_COMPONENT}(?:\.{_COMPONENT})*|\[[0-9a-fA-F:]+\])(?::[0-9]+)?"
_STEP: Final = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_PATH: Final = rf"{_STEP}(?:/{_STEP})*"
_NAME: Final = re.compile(
    rf"(?:(?P<registry>{_DOMAIN})/)?(?P<path>{_PATH})"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?:@(?P<digest>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?",
)
_DIGITS: Final = {"sha256": 64, "sha384": 96, "sha512": 128}
"""How long the digests are that there are."""
_ALGORITHM: Final = re.compile(r"[a-z0-9]+(?:[.+_-][a-z0-9]+)*")
_HEXADECIMAL: Final = re.compile(r"[a-f0-9]*")
_ID: Final = re.compile(r"[a-f0-9]{64}")
_LONGEST: Final = 255
_MOST: Final = 1024
"""Characters of a name with all that can stand in it; a longer one is not looked at."""
_HUB: Final = "docker.io"
_HUBS: Final = (_HUB, f"index.{_HUB}")
_LIBRARY: Final = "library/"


@attrs.frozen(kw_only=True)
class ImageName:
    """An image, named in full.

    Attributes:
        given: As it was written.
        registry: Host, with a port where it has one; `docker.io` where none was written, or
            `index.docker.io`, which is an older name of it.
        path: In the registry.
        tag: "" where there is a digest and no tag.
        digest: `sha256:…`, or "".
    """

    given: str
    registry: str
    path: str
    tag: str = ""
    digest: str = ""

    @classmethod
    @typed
    def of(cls, text: str, /) -> ImageName:
        """Read a name; one without tag and digest means `latest`.

        Raises:
            ConfigurationError: It is no name of an image.

        Source: the grammar of distribution's ``reference`` package.
        """
        found = None
        if len(text) <= _MOST and not _ID.fullmatch(text):
            found = _NAME.fullmatch(text if _has_registry(text) else f"{_HUB}/{text}")
        if found is None or found["registry"] is None:
            raise ConfigurationError(
                f"{text[:80]!r} names no image; write REGISTRY/PATH:TAG or REGISTRY/PATH@DIGEST, "
                "the path in lower case"
            )
        digest, path = found["digest"] or "", found["path"]
        if fault := _digest_fault(digest):
            raise ConfigurationError(
                f"image {text[:80]!r}: {fault}; a digest is sha256: with 64 digits of 0-9 and a-f, "
                "sha384: with 96 or sha512: with 128"
            )
        registry = _HUB if found["registry"] in _HUBS else found["registry"]
        if registry == _HUB and "/" not in path:
            path = _LIBRARY + path
        if len(path) > _LONGEST:
            raise ConfigurationError(
                f"image {text[:80]!r}…: its path has {len(path)} characters, {_LONGEST} at most"
            )
        tag = found["tag"] or ("" if digest else "latest")
        return cls(given=text, registry=registry, path=path, tag=tag, digest=digest)

    @classmethod
    @typed
    def fault(cls, text: str, /) -> str:
        """Why a text names no image, in the words that people know.

        Source: distribution's ``reference`` package.
        """
        if _ID.fullmatch(text):
            return f"invalid repository name ({text}), cannot specify 64-byte hexadecimal strings"
        registry, _, path = text.partition("/") if _has_registry(text) else (_HUB, "", text)
        if registry in _HUBS and "/" not in path:
            path = _LIBRARY + path
        path, colon, rest = path.partition(":")
        rest = colon + rest
        if path != path.lower():
            return f"invalid reference format: repository name ({path}) must be lowercase"
        found = _NAME.fullmatch(f"{registry}/{path}{rest}") if len(text) <= _MOST else None
        if found is None:
            return "invalid reference format"
        if len(found["path"]) > _LONGEST:
            return f"repository name must not be more than {_LONGEST} characters"
        return _digest_fault(found["digest"] or "") or "invalid reference format"

    @property
    def asked(self) -> str:
        """As a runtime is asked for it: as it was written, with the tag that it means."""
        last = self.given.rpartition("/")[2]
        return self.given if self.digest or ":" in last else f"{self.given}:{self.tag}"

    @property
    def repository(self) -> str:
        """Registry and path."""
        return f"{self.registry}/{self.path}"

    def is_named_by(self, name: str, /) -> bool:
        """Whether a name that a runtime lists means this image."""
        try:
            other = ImageName.of(name)
        except ValueError:
            return False
        if other.repository != self.repository:
            return False
        return other.digest == self.digest if self.digest else not other.digest and other.tag == self.tag


def _digest_fault(digest: str) -> str:
    """Why a digest is none, in the words of go-digest; "" for one that is, and for none."""
    if not digest:
        return ""
    algorithm, _, digits = digest.partition(":")
    if algorithm not in _DIGITS:
        is_name = _ALGORITHM.fullmatch(algorithm)
        return "unsupported digest algorithm" if is_name else "invalid checksum digest format"
    if len(digits) != _DIGITS[algorithm]:
        return "invalid checksum digest length"
    return "" if _HEXADECIMAL.fullmatch(digits) else "invalid checksum digest format"


def _has_registry(text: str) -> bool:
    first, slash, _ = text.partition("/")
    return bool(slash) and (
        any(one in first for one in ".:") or first == "localhost" or first != first.lower()
    )
