"""A store that forgets everything with the process, for tests and dry runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from typing_extensions import override

from nodealloc._typed import typed, typed_methods
from nodealloc.checkpoint._base_store import BaseStore
from nodealloc.checkpoint._contents import Damaged, Identity
from nodealloc.checkpoint._ports import Formats

__all__ = ["MemoryStore"]


@typed_methods
class MemoryStore(BaseStore):
    """The contract of `Store` without a disk.

    A restart is a second store over the bytes of the first:
    ``MemoryStore(formats, data=first.data())``. The bytes do not say who wrote
    them: with `identity`, and the first one's as `writer`, it is told from a reboot.

    Args:
        formats: What reads which key.
        data: What is stored already; damaged bytes are reported as by any store.
        identity: This boot of this machine.
        writer: Who wrote `data`; None where that is not known.
    """

    @typed
    def __init__(
        self,
        formats: Formats,
        *,
        data: Mapping[str, bytes] | None = None,
        identity: Identity | None = None,
        writer: Identity | None = None,
    ) -> None:
        super().__init__("memory", formats, identity)
        self._stored = dict(data or {})
        for key, reason in self._adopt(self._stored, writer).items():
            self._damaged.append(Damaged(key=key, reason=reason, kept_as=f"memory of {key}"))

    def data(self) -> Mapping[str, bytes]:
        """The bytes by key, as a disk would hold them."""
        with self._mutex:
            return dict(self._stored)

    @override
    def _write(
        self, fresh: Mapping[str, bytes | None], settled: Iterable[Damaged], writer: Identity | None
    ) -> None:
        del settled, writer
        for key, data in fresh.items():
            if data is None:
                self._stored.pop(key, None)
            else:
                self._stored[key] = data
