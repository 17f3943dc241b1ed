"""Keys: which names may be stored, and which reader a name has."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar, cast
from urllib.parse import quote, unquote

from nodealloc._arguments import wrong
from nodealloc._typed import typed
from nodealloc.checkpoint._ports import Checkpoint, Formats, Reader
from nodealloc.checkpoint._record import JsonCheckpoint
from nodealloc.errors import ConfigurationError, DecodeError

__all__ = [
    "KEY_LENGTH",
    "check_formats",
    "check_key",
    "reader_for",
    "require_formats",
    "row_formats",
    "row_key",
    "rows_of",
]

T = TypeVar("T")

KEY_LENGTH = 200
"""Longest key in characters; leaves room for what a store adds in a file name of 255 bytes."""

_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,%+=@~-]*", re.ASCII)
_PREFIX = re.compile(rf"(?:{_KEY.pattern})?\*", re.ASCII)


def check_key(key: str, /) -> str:
    """The key itself, when it may be one.

    A key is a file name everywhere: ASCII letters, digits and ``_ . , % + = @ ~ -``,
    first a letter, a digit or an underscore, no two dots in a row, at most
    `KEY_LENGTH` characters.

    Raises:
        ConfigurationError: It is none of that.

    Source: ours; the kubelet forbids separators and dots at the start and the end.
    """
    if len(key) > KEY_LENGTH:
        raise ConfigurationError(
            f"key {key[:40]!r}… has {len(key)} characters; at most {KEY_LENGTH} are allowed"
        )
    if ".." in key or key.endswith(".") or _KEY.fullmatch(key) is None:
        raise ConfigurationError(
            f"key {key!r} is no file name that is safe everywhere: use letters, digits, _ . , % + = @ ~ -, "
            "without separators or `..`; `row_key` makes one from any text"
        )
    return key


@typed
def row_key(kind: str, name: str, /) -> str:
    """A key for one row of a kind: ``kind.name``, odd characters of the name quoted as in a URL.

    Rows are what keeps a commit small: an agent that admits one workload
    commits ``pod.<uid>`` and leaves the rows of ten thousand others alone.

    Raises:
        ConfigurationError: `kind` is not a key, `name` is empty, or the result is too long.

        >>> row_key("pod", "job/7 on β")
        'pod.job%2F7%20on%20%CE%B2'
    """
    return _row_key(kind, name)


@functools.lru_cache(maxsize=4096)
def _row_key(kind: str, name: str) -> str:
    """Each row of a pod is written several times while it starts, and looked for each time."""
    if not name:
        raise ConfigurationError(f"row_key: a row of {kind!r} needs a name; give one, such as a pod's uid")
    return check_key(f"{check_key(kind)}.{quote(name, safe='').replace('.', '%2E')}")


@typed
def row_formats(*kinds: str) -> Formats:
    """What a store is opened with to hold rows of these kinds, each row one `JsonCheckpoint`.

    >>> sorted(row_formats("pod", "job"))
    ['job.*', 'pod.*']
    """
    return {f"{check_key(kind)}.*": JsonCheckpoint.unmarshal for kind in kinds}


@typed
def rows_of(
    kind: str, values: Mapping[str, Checkpoint], read: Callable[[JsonCheckpoint], T], /
) -> dict[str, T]:
    """The rows of a kind that a store holds, by the names that `row_key` was given.

    Args:
        kind: As `row_key` was given it.
        values: What was read (`Store.read`).
        read: From a row to what it stands for; what it raises comes out.

    Raises:
        DecodeError: `read` raised it; its `source` begins with the key of the row.
    """
    start = f"{kind}."
    found: dict[str, T] = {}
    for key, row in values.items():
        if key.startswith(start) and isinstance(row, JsonCheckpoint):
            try:
                found[unquote(key.removeprefix(start))] = read(row)
            except DecodeError as error:
                raise DecodeError(f"{key}: {error.source}", error.faults) from error
    return found


def check_formats(formats: Formats, /) -> Formats:
    """The formats themselves, when there are some and every name in them is a key or a prefix with `*`."""
    if not formats:
        raise wrong("formats", formats, "at least one key or prefix with its reader; nothing could be stored")
    for name in formats:
        if _PREFIX.fullmatch(name) is None:
            check_key(name)
    return formats


def require_formats(store: object, needed: Collection[str], who: str) -> None:
    """Refuse a store that was opened without a format of what somebody stores there.

    A store that does not say what it was opened with (`BaseStore.formats`) is not looked at.

    Args:
        store: The store.
        needed: Keys, or prefixes with `*`, as in `Formats`.
        who: Stores them, with the name of the formats that it exports.
    """
    formats: object = getattr(store, "formats", None)
    if not isinstance(formats, Mapping):
        return
    known = cast("Formats", formats)
    lacking = [name for name in needed if reader_for(name.replace("*", "0"), known) is None]
    if lacking:
        raise ConfigurationError(
            f"{who}: the store was opened without formats for {', '.join(lacking)}, so that nothing could be "
            f"kept there; it has {', '.join(known)}"
        )


def reader_for(key: str, formats: Formats, /) -> Reader | None:
    """What reads the key: its own entry, or that of the longest prefix; None for a stranger."""
    exact = formats.get(key)
    if exact is not None:
        return exact
    fitting = [name for name in formats if name[-1] == "*" and key.startswith(name[:-1])]
    return formats[max(fitting, key=len)] if fitting else None
