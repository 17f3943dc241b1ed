"""The path of an HTTP request, of what a manifest gives as one; probes and hooks send the same."""

from __future__ import annotations

import re
import string
from typing import Final
from urllib.parse import quote, urlsplit

__all__ = ["is_unreadable", "path_of", "sent_as"]

_IN_PATH: Final = "!$%&'()*+,-./:;=@[]_~"
_IN_QUERY: Final = string.punctuation
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
_BYTES: Final = "surrogateescape"
"""Bytes of a redirect that are no UTF-8 are sent as they came."""
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
"""What Python's reader of URLs drops, and Go's refuses."""


def path_of(text: str, /) -> str:
    """Path and query of what a manifest gives as a path, which is read as a URL where it can be."""
    url = text.partition("#")[0]
    try:
        parts = urlsplit(url)
    except ValueError:
        return quote(f"/{text}", safe="/")
    if _CONTROL.search(url) or is_unreadable(parts.path):
        return quote(text if text.startswith("/") else f"/{text}", safe=_IN_PATH.replace("%", ""))
    # A question mark behind which nothing stands is sent, too.
    return sent_as(parts.path, parts.query) + "?" * (url.endswith("?") and not parts.query)


def sent_as(path: str, query: str, /) -> str:
    """Path and query as they are sent: from the root, what no URL has by its numbers."""
    begun = path if path.startswith("/") else f"/{path}"
    asked = f"?{quote(query, safe=_IN_QUERY, errors=_BYTES)}" if query else ""
    return quote(begun, safe=_IN_PATH, errors=_BYTES) + asked


def is_unreadable(path: str, /) -> bool:
    """Whether a path has a `%` without two digits behind it, which no reader of URLs takes."""
    return _BAD_ESCAPE.search(path) is not None
