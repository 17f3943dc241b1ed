"""Where requests go, and how far they follow where HTTP servers send them, for probes and hooks alike."""

from __future__ import annotations

from typing import Final, Self
from urllib.parse import urljoin, urlsplit

from nodealloc import _attrs as attrs
from nodealloc._request_paths import is_unreadable, sent_as

__all__ = ["FOLLOWED", "MOST_REQUESTS", "Target", "is_whole_url"]

FOLLOWED: Final = frozenset({301, 302, 303, 307, 308})
"""Statuses whose `Location` is asked next; that of others is not looked at."""
MOST_REQUESTS: Final = 10
"""The first one included. Source: as kubelets do it."""


def is_whole_url(location: str, /) -> bool:
    """Whether a `Location` says by which scheme: from there on no `Host` of the pod's own is told.

    Raises:
        ValueError: It is no URL.

    Source: Go ``net/http``, which kubelets ask by.
    """
    return bool(urlsplit(location).scheme)


@attrs.frozen(kw_only=True)
class Target:
    """One request: where it goes, and what is asked for.

    Attributes:
        scheme: `http` or `https`; of another host, whichever was said.
        host: In small letters.
        port: 1 to 65535.
        netloc: Host and port as they were written.
        path: Path and query, as they are sent.
    """

    scheme: str
    host: str
    port: int
    netloc: str
    path: str

    @classmethod
    def of(cls, scheme: str, host: str, port: int, path: str, /) -> Self:
        """The first one."""
        bracketed = f"[{host}]" if ":" in host else host
        return cls(scheme=scheme, host=host.lower(), port=port, netloc=f"{bracketed}:{port}", path=path)

    @property
    def url(self) -> str:
        """The same as one text."""
        return f"{self.scheme}://{self.netloc}{self.path}"

    def at(self, location: str, /) -> Self:
        """Where a redirect leads.

        Raises:
            ValueError: To this host, in a way that nobody can ask.
        """
        parts = urlsplit(urljoin(self.url, location))
        if parts.hostname == self.host and parts.scheme not in {"http", "https"}:
            raise ValueError(f"redirected to {parts.scheme or 'no scheme'}, which is not HTTP")
        if is_unreadable(parts.path):
            raise ValueError(f"redirected to {location[:80]!r}, which is no URL")
        default = 443 if parts.scheme == "https" else 80
        return attrs.evolve(
            self,
            scheme=parts.scheme,
            host=parts.hostname or "",
            port=parts.port or default,
            netloc=parts.netloc.rpartition("@")[2],
            path=sent_as(parts.path, parts.query),
        )
