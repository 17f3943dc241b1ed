"""Hints and claims as words of a sentence, and what kind they are."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import ParamSpec

from nodealloc.idset import format_list
from nodealloc.topology import Claim, TopologyHint, Workload

__all__ = ["amounts_of", "has_fractions", "in_words", "is_listed", "told", "width"]

P = ParamSpec("P")


def in_words(check: Callable[P, None]) -> Callable[P, None]:
    """A check that says in a sentence, too, which call raised where it has to answer."""

    @functools.wraps(check)
    def checked(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            check(*args, **kwargs)
        except AssertionError:
            raise
        except Exception as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is None:
                raise  # the check itself was called with other arguments than it has
            raise AssertionError(f"{_call(error)} raised {error!r} where it has to answer") from error

    return checked


def _call(error: Exception) -> str:
    """The first call that was no longer the check's own."""
    frame = error.__traceback__
    while frame is not None:
        name = frame.tb_frame.f_code.co_name
        if name != "checked" and not name.startswith(("check_", "_", "<")):
            return name
        frame = frame.tb_next
    return "a call"


def width(hint: TopologyHint) -> int:
    return 1 << 20 if hint.affinity is None else hint.affinity.bit_count()


def told(hint: TopologyHint) -> str:
    """The nodes of a hint, for a sentence."""
    if hint.affinity is None:
        return "any node"
    nodes = format_list(hint.affinity) if hint.affinity > 0 else str(hint.affinity)
    return f"NUMA nodes {nodes}"


def amounts_of(claim: Claim) -> str:
    return ", ".join(f"{name}={amount}" for name, amount in claim.amounts.items())


def is_listed(value: object) -> bool:
    """Whether a value is a list of something."""
    return isinstance(value, Sequence)


def has_fractions(asked: Workload) -> bool:
    """Whether a claim asks for a part of a unit."""
    return not all(amount.is_whole for claim in asked.claims for amount in claim.amounts.values())
