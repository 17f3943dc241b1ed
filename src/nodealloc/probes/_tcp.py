"""Connecting as a way of asking."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Final

from nodealloc.probes._exchange import answered, connected, is_address, opened, reached
from nodealloc.probes._ports import Exchange, Question
from nodealloc.probes._replies import Reply, ReplyKind

__all__ = ["TcpProber"]


class TcpProber:
    """A `Prober`: who takes a connection is well. It is closed at once, and holds no port afterwards."""

    asks_by: Final = "tcp"

    def probe(self, question: Question, /) -> Reply:
        """See `Prober.probe`."""
        return answered(self._exchange, question)

    def exchange(self, question: Question, /) -> Exchange | None:
        """See `Exchanges.exchange`; None where a name has to be resolved."""
        return self._exchange(question, (question.address,)) if is_address(question.address) else None

    def _exchange(self, question: Question, addresses: Sequence[str]) -> Exchange:
        where = f"{question.address}:{question.port}"
        one: socket.socket | None = None
        try:
            address = yield from reached(addresses, question.port)
            one = opened(address)
            yield from connected(one, address, question.port)
        except TimeoutError:
            return Reply(
                ReplyKind.FAILURE, f"{where}: no connection within {question.timeout_s:g} s", timed_out=True
            )
        except OSError as error:
            return Reply(ReplyKind.FAILURE, f"{where}: {error.strerror or error}")
        finally:
            if one is not None:
                one.close()
        return Reply(ReplyKind.SUCCESS)
