"""Errors of stores and of what they hold."""

from __future__ import annotations

import errno

from nodealloc.errors import PermanentError, RetryableError

__all__ = ["CorruptCheckpointError", "StoreBusyError", "StoreClosedError", "StoreFailedError"]


_SOMETHING_ELSE = "something else stands there, move it away"
_NOT_OURS = "make it readable and writable for this process"
_REMEDIES = {
    **dict.fromkeys((errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ELOOP, errno.ENXIO), _SOMETHING_ELSE),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), _NOT_OURS),
    errno.ENOENT: "make or mount what it belongs into",
    errno.EFBIG: "store less under one key",
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "let this process open more files"),
}
_PERM, _BUSY, _LOCKED, _READONLY, _FULL, _CANTOPEN, _TOOBIG = 3, 5, 6, 8, 13, 14, 18
# SQLite counts its errors by itself: 13 is a full disk there, and no permission here.
_SQLITE_REMEDIES = {
    **dict.fromkeys((_PERM, _READONLY, _CANTOPEN), _NOT_OURS),
    **dict.fromkeys((_BUSY, _LOCKED), "end what else has it open"),
    _FULL: "the disk is full: make room",
    _TOOBIG: "store less under one key",
}


class CorruptCheckpointError(PermanentError):
    """Bytes have the right shape, but their checksum says that they were changed.

    Attributes:
        source: What was read: `cpu_manager_state`, `pod.8f1c`.
        stored: The checksum in the bytes, as it is printed there.
        computed: The checksum of the content, printed likewise.
    """

    source: str
    stored: str
    computed: str

    def __init__(self, source: str, stored: str, computed: str) -> None:
        self.source = source
        self.stored = stored
        self.computed = computed
        super().__init__(source, stored, computed)

    def __str__(self) -> str:
        """What disagrees, with both checksums."""
        return (
            f"{self.source}: checksum {self.stored} is stored, {self.computed} belongs to this content; "
            "restore it from a copy, or rebuild it from what runs"
        )


class StoreBusyError(RetryableError):
    """Another process holds the store.

    Attributes:
        path: The store.
        pid: The process that holds it; 0 when that is not known.
    """

    path: str
    pid: int

    def __init__(self, path: str, pid: int) -> None:
        self.path = path
        self.pid = pid
        owner = f"process {pid}" if pid else "another process"
        super().__init__(f"{path}: held by {owner}; end it, or wait until it gives the store back")


class StoreFailedError(RetryableError):
    """The medium refused; what was stored before is still what is stored.

    Attributes:
        path: What was touched.
        step: What was tried, as the name of a system call (`write`, `fsync`) or `sqlite`.
        code: The error number, 0 where there is none; after `sqlite` it is SQLite's.
    """

    path: str
    step: str
    code: int

    def __init__(self, path: str, step: str, code: int, reason: str, *, remedy: str = "") -> None:
        self.path = path
        self.step = step
        self.code = code
        known = _SQLITE_REMEDIES.get(code & 0xFF) if step == "sqlite" else _REMEDIES.get(code)
        remedy = remedy or known or "make room or mend the disk"
        untouched = "" if step == "read" else "nothing was changed: "
        super().__init__(f"{path}: {step} failed ({reason}); {untouched}{remedy}, then retry")


class StoreClosedError(PermanentError):
    """The store was given back already.

    Attributes:
        path: The store.
    """

    path: str

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"{path}: this store is closed; open another one")
