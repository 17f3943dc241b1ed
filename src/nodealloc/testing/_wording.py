"""Hints and claims as words of a sentence, and what kind they are."""

from __future__ import annotations

import functools
import inspect
import itertools
import linecache
import re
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, ParamSpec

from nodealloc.idset import format_list
from nodealloc.topology import Claim, TopologyHint, Workload

__all__ = ["amounts_of", "at_once", "has_fractions", "in_words", "is_listed", "told", "width"]

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
            raise AssertionError(_broken(error)) from error

    return checked


_HERE: Final = str(Path(__file__).parent)


def _broken(error: Exception) -> str:
    """Which call raised; or which answer, or which call itself, is other than the check takes it to be."""
    frames = traceback.extract_tb(error.__traceback__)
    own = list(itertools.takewhile(_is_a_check, frames))
    words = _words(own[-1])
    if len(own) == len(frames):
        return f"{words}: {error!r}; what was answered, or can be asked, is not what the Protocol says"
    called = re.fullmatch(r".*?(\w+)\(.*\)", words, re.DOTALL)
    name = called[1] if called else frames[len(own)].name
    return f"{name} raised {error!r} where it has to answer"


def _is_a_check(frame: traceback.FrameSummary) -> bool:
    name = frame.name
    return frame.filename.startswith(_HERE) and (name == "checked" or name.startswith(("check_", "_", "<")))


def _words(frame: traceback.FrameSummary) -> str:
    """What was being worked out, as it stands in the check; "a call" where its source is not there."""
    lines = linecache.getlines(frame.filename)[(frame.lineno or 1) - 1 : frame.end_lineno]
    if not lines or frame.colno is None or frame.end_colno is None:
        return "a call"
    lines[-1] = lines[-1][: frame.end_colno]
    lines[0] = lines[0][frame.colno :]
    return " ".join(" ".join(lines).split())


def at_once(answer: object, call: str) -> None:
    """Raises `AssertionError` for the answer of a call whose work begins when it is awaited."""
    if inspect.iscoroutine(answer):
        answer.close()
    assert not inspect.isawaitable(answer), (
        f"{call} has to be awaited, and has to be done when it returns; run it on a loop of your own"
    )


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
