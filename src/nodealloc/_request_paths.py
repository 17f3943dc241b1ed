"""The path of an HTTP request, of what a manifest gives as one; probes and hooks send the same."""

from __future__ import annotations

import re
import string
from typing import Final
from urllib.parse import quote, urlsplit

__all__ = ["path_of", "sent_as"]

_IN_PATH: Final = "!$%&'()*+,-./:;=@[]_~"
_IN_QUERY: Final = string.punctuation
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
"""What Python's reader of URLs drops, and Go's refuses."""


def path_of(text: str, /) -> str:
    """Path and query of what a manifest gives as a path, which is read as a URL where it can be."""
    url = text.partition("#")[0]
    try:
        parts = urlsplit(url)
    except ValueError:
        return quote(f"/{text}", safe="/")
    if _CONTROL.search(url) or _BAD_ESCAPE.search(parts.path):
        return quote(text if text.startswith("/") else f"/{text}", safe=_IN_PATH.replace("%", ""))
    return sent_as(parts.path, parts.query)


def sent_as(path: str, query: str, /) -> str:
    """Path and query as they are sent: from the root, what no URL has by its numbers."""
    begun = path if path.startswith("/") else f"/{path}"
    return quote(begun, safe=_IN_PATH) + (f"?{quote(query, safe=_IN_QUERY)}" if query else "")
