"""YAML as a kubelet's reader takes it, and with bounds; loaded where somebody hands over YAML."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Final, Protocol, cast

import yaml
from yaml.constructor import SafeConstructor
from yaml.events import (
    AliasEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

__all__ = [
    "MOST_SLOW",
    "MOST_VALUES",
    "SLOW_VALUES",
    "SlowParser",
    "TooDeepError",
    "TooManyValuesError",
    "TooSlowError",
    "values_of",
]

MOST_VALUES: Final = 30_000
"""Of a text, keys included; a manifest has some hundred."""
MOST_SLOW: Final = 128 << 10
SLOW_VALUES: Final = 8_000
"""Characters and values for PyYAML's own parser, which takes ten times as long as libyaml's."""
_OF_A_DOCUMENT: Final = 10
"""Values that a document counts for besides its own: beginning one costs as much."""
_DEEPEST: Final = 100
"""Levels of lists and mappings."""
_SHOWN: Final = 40
"""Characters of a key that are shown."""
_TOO_DEEP: Final = "exceeded maximum nesting depth"
"""What libyaml says from PyYAML 6.0.4 on, which reads a thousand levels ahead of what is made of them."""
_TAG: Final = "tag:yaml.org,2002:"
_STR: Final = f"{_TAG}str"
_NUMBERS: Final = (f"{_TAG}int", f"{_TAG}float")
_NOT_SAID: Final = (None, "!")
_INT: Final = re.compile(
    r"^(?:[-+]?0b[01_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+)$", re.ASCII
)
_FLOAT: Final = re.compile(
    r"^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$",
    re.ASCII,
)


class TooManyValuesError(Exception):
    """More values than anybody waits for; its argument says how many that are."""


class TooSlowError(Exception):
    """More than anybody waits for without libyaml."""


class TooDeepError(Exception):
    """Nested deeper than any manifest, or in itself."""


class Parser(Protocol):
    """What PyYAML makes of a text, piece by piece."""

    def get_event(self) -> Event: ...

    def dispose(self) -> None: ...


class SlowParser(yaml.SafeLoader):
    """PyYAML's own, where it was built without libyaml."""

    def fetch_more_tokens(self) -> None:
        """Look how many brackets are open: tokens are read ahead of what is made of them."""
        if self.flow_level > _DEEPEST:
            raise TooDeepError
        super().fetch_more_tokens()


_PARSER: Final = cast("type[yaml.SafeLoader]", getattr(yaml, "CSafeLoader", SlowParser))
"""libyaml's where it is there, as the readers of kubelets are translations of it."""


def _resolvers(
    known: Mapping[str, Sequence[tuple[str, re.Pattern[str]]]],
) -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """What plain words stand for, with numbers that have no colon and no moments."""
    dropped = {f"{_TAG}{one}" for one in ("timestamp", "merge", "value")}.union(_NUMBERS)
    found = {first: [one for one in rules if one[0] not in dropped] for first, rules in known.items()}
    for tag, firsts, pattern in (
        (f"{_TAG}float", "-+0123456789.", _FLOAT),
        (f"{_TAG}int", "-+0123456789", _INT),
    ):
        for first in firsts:
            found.setdefault(first, []).append((tag, pattern))
    return found


_RESOLVERS: Final = _resolvers(yaml.SafeLoader.yaml_implicit_resolvers)
_CONSTRUCTOR: Final = SafeConstructor()
_MAKERS: Final = {
    f"{_TAG}null": _CONSTRUCTOR.construct_yaml_null,
    f"{_TAG}bool": _CONSTRUCTOR.construct_yaml_bool,
    f"{_TAG}int": _CONSTRUCTOR.construct_yaml_int,
    f"{_TAG}float": _CONSTRUCTOR.construct_yaml_float,
}
_KUBELETS_INT: Final = re.compile(
    r"[-+]?(?:0[xX][0-9a-fA-F]{1,16}|0[bB][01]{1,64}|0[oO]?[0-7]{1,22}|0|[1-9][0-9]{0,19})", re.ASCII
)
_KUBELETS_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_KUBELETS_BOOL: Final = {"y": True, "Y": True, "n": False, "N": False}
"""Beside what PyYAML takes for truth values."""
_MOST_PLAIN: Final = 1e21
"""From here on Go writes a number with an exponent, which is no whole one to it."""
_OPEN: Final = object()
"""Stands for a list or mapping that is not read to its end."""


def values_of(
    text: str, /, *, parser: type[yaml.SafeLoader] = _PARSER, is_kubelets: bool = False
) -> list[object]:
    """The value of each document of a text, which is JSON.

    Merged keys are counted as often as they are brought: a hundred lines can merge
    more than any memory holds. Numbers to base 60 and moments are texts.

    Args:
        text: YAML.
        parser: Splits it into events.
        is_kubelets: Whether it is what a kubelet makes of it: the first document alone, whatever
            stands behind; `1e3` and `08` are numbers, `y` and `n` truth values, and keys texts,
            of which the last one counts that stands twice.

    Raises:
        TooManyValuesError: More than `MOST_VALUES`, or `SLOW_VALUES` for PyYAML's own parser.
        TooSlowError: More than `MOST_SLOW` characters for PyYAML's own parser.
        TooDeepError: Nested too deeply, or in itself.
        YAMLError: It is no YAML, has a key twice, or something that JSON has not.

    Source: sigs.k8s.io/yaml ``goyaml.v2/resolve.go``.
    """
    is_slow = issubclass(parser, SlowParser)
    if is_slow and len(text) > MOST_SLOW:
        raise TooSlowError
    events = parser(text)
    try:
        values = _Values(events, SLOW_VALUES if is_slow else MOST_VALUES, is_kubelets=is_kubelets)
        return [values.first()] if is_kubelets else values.documents()
    except yaml.MarkedYAMLError as error:
        if error.problem == _TOO_DEEP:
            raise TooDeepError from None
        raise
    finally:
        events.dispose()


class _Values:
    """Makes values of events."""

    def __init__(self, events: Parser, most: int, *, is_kubelets: bool) -> None:
        self._next = events.get_event
        self._most = self._left = most
        self._anchors: dict[str, object] = {}
        self._is_kubelets = is_kubelets
        self._scalar = _kubelets_scalar if is_kubelets else _scalar

    def first(self) -> object:
        """The value of the first document; None where there is none."""
        while not isinstance(event := self._next(), DocumentStartEvent):
            if isinstance(event, StreamEndEvent):
                return None
        value = self._value(self._next(), 0)
        self._next()  # its end, which may be none
        return value

    def documents(self) -> list[object]:
        found: list[object] = []
        while not isinstance(event := self._next(), StreamEndEvent):
            if isinstance(event, DocumentStartEvent):
                self._count(_OF_A_DOCUMENT)
                self._anchors.clear()
                found.append(self._value(self._next(), 0))
        return found

    def _count(self, values: int) -> None:
        self._left -= values
        if self._left < 0:
            raise TooManyValuesError(self._most)

    def _value(self, event: Event, depth: int) -> object:
        self._count(1)
        if isinstance(event, ScalarEvent):
            return self._named(event, self._scalar(event))
        if isinstance(event, AliasEvent):
            return self._alias(event)
        if depth == _DEEPEST:
            raise TooDeepError
        start = cast("CollectionStartEvent", event)
        self._named(start, _OPEN)
        if isinstance(start, SequenceStartEvent):
            _check_tag(start, "seq")
            return self._named(start, self._sequence(depth + 1))
        _check_tag(start, "map")
        return self._named(start, self._mapping(depth + 1))

    def _named(self, event: NodeEvent, value: object) -> object:
        if event.anchor is not None:
            self._anchors[event.anchor] = value
        return value

    def _alias(self, event: AliasEvent) -> object:
        if event.anchor not in self._anchors:
            raise _refused(f"found undefined alias {event.anchor!r}", event)
        value = self._anchors[event.anchor]
        if value is _OPEN:
            raise TooDeepError
        return value

    def _sequence(self, depth: int) -> list[object]:
        found: list[object] = []
        while not isinstance(event := self._next(), SequenceEndEvent):
            found.append(self._value(event, depth))
        return found

    def _mapping(self, depth: int) -> dict[Hashable, object]:
        own: dict[Hashable, object] = {}
        merged: dict[Hashable, object] = {}
        while not isinstance(event := self._next(), MappingEndEvent):
            if isinstance(event, ScalarEvent) and event.value == "<<" and event.implicit[0]:
                self._merge(merged, event, self._value(self._next(), depth))
                continue
            key = self._value(event, depth)
            if isinstance(key, (list, dict)):
                raise _refused("found unhashable key", event)
            if self._is_kubelets:
                if isinstance(key, int):
                    key = str(key).lower() if isinstance(key, bool) else str(key)
            elif key in own:
                raise _refused(f"the key {str(key)[:_SHOWN]!r} stands twice in one mapping", event)
            own[key] = self._value(self._next(), depth)
        return {**merged, **own} if merged else own

    def _merge(self, merged: dict[Hashable, object], at: Event, value: object) -> None:
        """Add what is merged: of a list the first counts most."""
        sources = reversed(cast("list[object]", value)) if isinstance(value, list) else (value,)
        for one in sources:
            if not isinstance(one, dict):
                raise _refused("expected a mapping or a list of mappings to merge", at)
            mapping = cast("dict[Hashable, object]", one)
            self._count(1 + len(mapping))
            merged.update(mapping)


def _scalar(event: ScalarEvent) -> object:
    text: str = event.value
    tag = event.tag
    if tag in _NOT_SAID:
        if not event.implicit[0]:
            return text
        for said, pattern in _RESOLVERS.get(text[:1], ()):
            if pattern.match(text):
                tag = said
                break
        else:
            return text
    if tag == _STR:
        return text
    make = _MAKERS.get(tag)
    if make is None:
        raise _refused(f"could not determine a constructor for the tag {tag!r}", event)
    if tag in _NUMBERS and ":" in text:
        raise _refused("a number to base 60", event)
    try:
        return cast("object", make(yaml.ScalarNode(tag, text)))
    except (LookupError, ValueError):  # Python reads no more than some thousand digits
        words = f"{text!r} is no {tag}" if len(text) <= _SHOWN else f"a number of {len(text)} characters"
        raise _refused(words, event) from None


def _kubelets_scalar(event: ScalarEvent) -> object:
    text: str = event.value
    if event.tag not in _NOT_SAID or not event.implicit[0]:
        return _scalar(event)
    if text in _KUBELETS_BOOL:
        return _KUBELETS_BOOL[text]
    return _kubelets_number(text, event) if text[:1] in set("+-.0123456789") else _scalar(event)


def _kubelets_number(text: str, event: ScalarEvent) -> object:
    """The number that a plain word stands for, a whole one as JSON writes it; else the word."""
    if text.lstrip("+-") in {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"}:
        raise _refused(f"{text}, which JSON has not", event)
    plain = text if text[0] == "." else text.replace("_", "")
    if _KUBELETS_INT.fullmatch(plain):
        digits = plain.lstrip("+-")
        octal = digits[:1] == "0" and digits.isdigit()
        value = int(digits, 8 if octal else 0) * (-1 if plain[0] == "-" else 1)
        if -(1 << 63) <= value < 1 << 64:
            return value
    if not _KUBELETS_FLOAT.fullmatch(plain) or (number := abs(float(plain))) == float("inf"):
        return text
    return int(float(plain)) if number.is_integer() and number < _MOST_PLAIN else float(plain)


def _check_tag(event: CollectionStartEvent, kind: str) -> None:
    if event.tag not in (*_NOT_SAID, f"{_TAG}{kind}"):
        raise _refused(f"could not determine a constructor for the tag {event.tag!r}", event)


def _refused(words: str, event: Event) -> yaml.YAMLError:
    mark = event.start_mark
    return yaml.YAMLError(words if mark is None else f"{words}, line {mark.line + 1}")
