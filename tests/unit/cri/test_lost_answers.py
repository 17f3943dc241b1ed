"""Calls whose answer was lost: whatever goes wrong besides, they do not count as calls that were not made."""

from __future__ import annotations

import errno
import os

import grpc
import pytest

from nodealloc._rpc.errors import CallUnavailableError
from nodealloc.cri._grpc import Line
from nodealloc.runtime import AnswerLostError


class Cut:
    """A connection whose calls are cut off, where no descriptor is left to look who listens."""

    def __init__(self) -> None:
        self.closed = 0

    def call(self, name: str, _request: bytes, _limit_s: float) -> bytes:
        """Cut off on its way."""
        raise CallUnavailableError("/run/x.sock", name, "UNAVAILABLE", "Socket closed") from grpc.RpcError()

    def is_served(self) -> bool:
        """Nobody can tell."""
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    def close(self) -> None:
        """Counted."""
        self.closed += 1


def test_a_lost_answer_is_told_as_one_where_nobody_can_look_who_listens() -> None:
    """It may have been done; other calls on that connection go on, and the next that fails looks again."""
    line, cut = Line("/run/x.sock"), Cut()
    line._callers["RuntimeService"] = cut  # type: ignore[assignment]
    for _ in range(2):
        with pytest.raises(AnswerLostError):
            line.call("CreateContainer", b"", 1.0, about="box", changes=True)
    assert (cut.closed, list(line._callers)) == (0, ["RuntimeService"])
