"""An address that is polled as a source; the standard library alone."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from nodealloc._arguments import wrong
from nodealloc._reading import MAX_DOCUMENT_BYTES
from nodealloc._typed import typed
from nodealloc.dsw_asw import Cancel
from nodealloc.errors import ConfigurationError
from nodealloc.podsources._documents import pods_in
from nodealloc.podsources._names import check_node_name
from nodealloc.podsources._ports import Reading, SourceFault

__all__ = ["HttpSource"]

_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def _check_address(url: str) -> None:
    expected = "expected an address such as https://host:443/pods, without blanks"
    try:
        parts = urlsplit(url)
        is_fine = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError as error:
        raise ConfigurationError(f"{url}: {error}; {expected}") from None
    if parts.scheme not in {"http", "https"}:
        raise ConfigurationError(f"{url}: expected an address that begins with http:// or https://")
    if not is_fine or any(one.isspace() or not one.isprintable() for one in url):
        raise ConfigurationError(f"{url!r}: {expected}")


def _check_headers(headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if not _HEADER.fullmatch(name):
            raise ConfigurationError(f"headers: {name!r} is no header; write letters, digits and '-'")
        if not (value.isprintable() or value.isspace()):  # it may be a secret, and is not shown
            raise ConfigurationError(
                f"headers: the value of {name!r} is none; write one line of printable text"
            )


class HttpSource:
    """A `Source`: an address answers with a Pod, a PodList, or several documents.

    An answer that is late, too long, half there or no list of pods is none: what
    was said last stays.

    Args:
        url: `http://` or `https://`; asked without a proxy. Whom the machine trusts at that moment
            (OpenSSL's own files, or `SSL_CERT_FILE`) counts at each question.
        node_name: Is appended to the pods' names, as a kubelet does; "" for nothing.
        source: Name of this source, which uids depend on.
        headers: Sent with each question, by name; not to another host, nor without TLS, where a
            redirect leads.
        deadline_s: For the whole answer, in real seconds.
        max_bytes: Longer answers are refused. Each pod of one may take 256 KiB.
        max_yaml_bytes: Longer answers in YAML are refused unread; JSON is read a hundred times as fast.
        is_lenient: Whether answers are read as a kubelet reads them: as manifests are by a
            `FolderSource`, and an answer without a byte says that there are no pods.

    Raises:
        ConfigurationError: Another kind of address, or nonsense as a bound.
    """

    @typed
    def __init__(
        self,
        url: str,
        /,
        *,
        node_name: str = "",
        source: str = "http",
        headers: Mapping[str, Sequence[str]] | None = None,
        deadline_s: float = 10.0,
        max_bytes: int = 10 << 20,
        max_yaml_bytes: int = MAX_DOCUMENT_BYTES,
        is_lenient: bool = False,
    ) -> None:
        _check_address(url)
        if deadline_s <= 0 or min(max_bytes, max_yaml_bytes) < 1:
            sizes = f"max_bytes={max_bytes}, max_yaml_bytes={max_yaml_bytes}"
            raise ConfigurationError(f"deadline_s={deadline_s}, {sizes}: give more than 0")
        if deadline_s == math.inf:
            raise wrong("HttpSource: deadline_s", deadline_s, "seconds that pass")
        check_node_name("HttpSource", node_name)
        self._url, self._node_name, self._source = url, node_name, source
        sent = {name: ", ".join(values) for name, values in (headers or {}).items()}
        _check_headers(sent)
        self._max_yaml_bytes, self._is_lenient = max_yaml_bytes, is_lenient
        # The library's clients take 3 MiB, which nodes without such a source spare.
        from nodealloc.podsources._http_call import HttpCalls  # noqa: PLC0415

        self._calls = HttpCalls(url, sent, deadline_s=deadline_s, max_bytes=max_bytes)

    def read(self, cancel: Cancel, /) -> Reading:
        """See `Source`.

        Raises:
            RetryableError: No whole answer in time.
            DecodeError: The answer is no list of pods; lists each fault.
        """
        data = self._calls.body(cancel)
        if self._is_lenient and not data:
            what = "an empty answer, which says that there are no pods; answer with an empty PodList"
            return Reading(faults=(SourceFault(where=self._url, what=what),))
        pods = pods_in(
            data,
            where=self._url,
            source=self._source,
            node_name=self._node_name,
            max_yaml_bytes=self._max_yaml_bytes,
            is_lenient=self._is_lenient,
        )
        return Reading(pods=tuple(pods))
