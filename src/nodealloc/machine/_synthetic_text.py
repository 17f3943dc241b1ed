"""The part of a machine's text before its options: levels, products, sums."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias, Union

from nodealloc import _attrs as attrs
from nodealloc._reading import short
from nodealloc.errors import DecodeError, Fault
from nodealloc.idset import MAX_ID

if TYPE_CHECKING:
    from typing import Never

__all__ = ["Core", "parse_cores"]

_PLURALS = ("sockets", "dies", "clusters", "cores", "threads")
_LEVELS = {plural: plural.removesuffix("s") for plural in _PLURALS} | {
    "socket": "socket",
    "package": "socket",
    "packages": "socket",
    "die": "die",
    "numa": "numa",
    "node": "numa",
    "nodes": "numa",
    "l3": "l3",
    "cache": "l3",
    "caches": "l3",
    "cluster": "cluster",
    "core": "core",
    "thread": "thread",
}
_TOKEN = re.compile(r"[0-9]+|[x×*](?=\s*[0-9(]|\s|$)|[+()]|[a-z][a-z0-9]*")
_MAX_DEPTH = 16
_SHOWN = 40
"""Digits of a count that are shown."""


@attrs.frozen(kw_only=True)
class Core:
    """One core, or a place without any.

    Attributes:
        groups: Level (`socket`, `numa`, ...) to number of the group, for levels that are named.
        threads: CPUs of the core; 0 for a place that has none.
        kind: Name of its kind, or "".
    """

    groups: Mapping[str, int]
    threads: int
    kind: str = ""


@attrs.frozen
class _Factor:
    count: int
    level: str
    kind: str
    position: int


_Product: TypeAlias = "tuple[Union[_Factor, _Sum], ...]"
_Sum: TypeAlias = "list[_Product]"


@attrs.frozen
class _Token:
    text: str
    position: int


def parse_cores(text: str, most: int) -> Sequence[Core]:
    """All cores that a text such as `2 sockets x 8 cores` stands for, in its order; of so many CPUs at most.

    Raises:
        DecodeError: With the 0-based character at which it stops making sense.
    """
    parser = _Parser(text)
    # One more than can be: a slip in a count must not fill the memory.
    cores = list(islice(_expand_sum(parser.whole(), {}, {}), most + 2))
    total = sum(core.threads for core in cores)
    if not total or max(total, len(cores)) > most:
        _refuse(0, f"expected a machine of 1 to {most} CPUs; write fewer, or allow more with `max_cpus`")
    return cores


def _refuse(position: int, reason: str) -> Never:
    raise DecodeError("machine text", [Fault(f"character {position}", reason)])


def _seen(token: _Token) -> str:
    return short(token.text) if token.text else "the end"


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    # Letter by letter: some, outside of what a token is made of, get longer when they get small.
    lower = text.lower() if text.isascii() else "".join(one.lower()[:1] for one in text)
    position = 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        found = _TOKEN.match(lower, position)
        if found is None:
            _refuse(position, f"{text[position]!r} makes no sense here; expected `2 sockets x 8 cores`")
        tokens.append(_Token(found[0], position))
        position = found.end()
    return [*tokens, _Token("", len(text))]


class _Parser:
    """Recursive descent over sums of products of `COUNT [KIND] LEVEL` and parentheses."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._at = 0
        self._depth = 0

    def whole(self) -> _Sum:
        found = self._sum()
        if self._next.text:
            _refuse(self._next.position, f"{_seen(self._next)} is left over; levels are joined by x or +")
        return found

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._next
        if token.text:  # the end stays, however often it is taken
            self._at += 1
        return token

    def _sum(self) -> _Sum:
        products = [self._product()]
        while self._next.text == "+":
            self._take()
            products.append(self._product())
        return products

    def _product(self) -> _Product:
        factors = [self._factor()]
        while self._next.text in {"x", "×", "*"}:
            if not isinstance(factors[-1], _Factor):
                _refuse(self._next.position, "nothing can follow a closing parenthesis but + or an option")
            self._take()
            factors.append(self._factor())
        return tuple(factors)

    def _factor(self) -> _Factor | _Sum:
        token = self._take()
        if token.text == "(":
            self._depth += 1
            if self._depth > _MAX_DEPTH:
                _refuse(token.position, f"more than {_MAX_DEPTH} parentheses inside each other")
            inner = self._sum()
            closing = self._take()
            if closing.text != ")":
                _refuse(closing.position, "expected a closing parenthesis")
            self._depth -= 1
            return inner
        if not token.text.isdigit():
            _refuse(token.position, f"expected a count such as `8 cores`, found {_seen(token)}")
        count = int(token.text) if len(token.text) <= len(str(MAX_ID)) else MAX_ID + 1
        if count > MAX_ID:
            _refuse(token.position, f"{token.text[:_SHOWN]} is too many; at most {MAX_ID}")
        return self._levelled(count, token)

    def _levelled(self, count: int, counted: _Token) -> _Factor:
        word, kind, position = self._take(), "", counted.position
        if (word.text == "core" or word.text not in _LEVELS) and _LEVELS.get(self._next.text) == "core":
            if word.position == position + len(counted.text):
                example = "write digits, and a blank before a kind: `8 atom cores`"
                _refuse(position, f"{short(counted.text + word.text)} is no count; {example}")
            kind, word = word.text, self._take()
        level = _LEVELS.get(word.text, "")
        if not level:
            known = ", ".join(sorted(set(_LEVELS.values())))
            if not word.text:
                _refuse(
                    word.position, f"expected a level after {counted.text}, found the end; known are {known}"
                )
            _refuse(word.position, f"{_seen(word)} is no level; known are {known}")
        if count == 0 and level != "core":
            _refuse(position, f"0 of level {level}; only cores can be 0, for a node that has memory alone")
        return _Factor(count, level, kind, position)


def _expand_sum(parts: _Sum, groups: Mapping[str, int], made: dict[str, int]) -> Iterator[Core]:
    for product in parts:
        yield from _expand(product, groups, made, "")


def _expand(factors: _Product, groups: Mapping[str, int], made: dict[str, int], kind: str) -> Iterator[Core]:
    if not factors:
        inside = groups if "core" in groups else {**groups, "core": _new(made, "core")}
        yield Core(groups=inside, threads=1, kind=kind)
        return
    first, *rest = factors
    if not isinstance(first, _Factor):
        yield from _expand_sum(first, groups, made)
    elif first.level == "thread":
        if rest:
            _refuse(first.position, "threads are the innermost level; name them last")
        inside = groups if "core" in groups else {**groups, "core": _new(made, "core")}
        yield Core(groups=inside, threads=first.count, kind=kind)
    elif first.level in groups:
        _refuse(first.position, f"level {first.level} inside another of its kind")
    elif first.count == 0:
        yield Core(groups=groups, threads=0)
    else:
        if "core" in groups:
            _refuse(first.position, f"level {first.level} inside a core; only threads are")
        for _ in range(first.count):
            inside = {**groups, first.level: _new(made, first.level)}
            yield from _expand(tuple(rest), inside, made, first.kind or kind)


def _new(made: dict[str, int], level: str) -> int:
    number = made.get(level, 0)
    made[level] = number + 1
    return number
