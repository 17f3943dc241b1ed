"""A chain of handlers, of which the first that does not let in has the word."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import assert_never, assert_type

import attrs

from nodealloc.verdicts import Admitted, Figure, NotYet, Refused, Verdict

Handler = Callable[[int], Verdict]


@attrs.frozen(kw_only=True)
class OutOfPorts(Refused):
    """With a field of its own."""

    port: int


def ports(port: int) -> Admitted | OutOfPorts:
    """One port is taken."""
    if port != 80:
        return Admitted()
    return OutOfPorts(reason="NodePorts", message="taken", figures={"port": port}, port=port)


def waiting(port: int) -> Verdict:
    """Never knows."""
    return NotYet(blocker="store", message=f"nobody knows of port {port}", after_s=2)


def chain(handlers: Iterable[Handler], port: int) -> Verdict:
    """The first answer that is no yes."""
    for handler in handlers:
        verdict = handler(port)
        if not isinstance(verdict, Admitted):
            return verdict
    return Admitted()


def words(verdict: Verdict) -> str:
    """One word for each kind; a fourth kind would not type."""
    match verdict:
        case Admitted():
            return "in"
        case Refused():
            assert_type(verdict.figures, Mapping[str, Figure])
            return verdict.reason
        case NotYet():
            assert_type(verdict.after_s, float)
            return verdict.blocker
        case _:
            assert_never(verdict)


answer = ports(80)
if not isinstance(answer, Admitted):
    assert_type(answer.port, int)
assert words(chain([ports, waiting], 80)) == "NodePorts"
assert words(chain([ports, waiting], 81)) == "store"
assert words(chain([ports], 81)) == "in"
