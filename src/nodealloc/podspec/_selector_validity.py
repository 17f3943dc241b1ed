"""What an API server checks of selectors of labels, and of the keys that are added to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from nodealloc._raw_parts import Fields, fields_of, items_of, text_of
from nodealloc.errors import Fault
from nodealloc.podspec._checks import label_key, label_value

__all__ = ["keys_of", "label_key_faults", "selector_faults"]

_WITH_VALUES: Final = ("In", "NotIn")
_WITHOUT: Final = ("Exists", "DoesNotExist")


def selector_faults(path: str, selector: object, /) -> Iterator[Fault]:
    """What is wrong with a selector of labels, as it came; None selects nothing and is right.

    Source: Kubernetes ``apimachinery/pkg/apis/meta/v1/validation``.
    """
    found = fields_of(selector)
    if selector is not None and not isinstance(selector, Mapping):
        yield Fault(path, "a mapping is needed: matchLabels, matchExpressions")
    for name, value in fields_of(found.get("matchLabels")).items():
        where = f"{path}.matchLabels.{name}"
        if what := label_key(name) or label_value(value):
            yield Fault(where, what)
    for index, one in enumerate(items_of(found.get("matchExpressions"))):
        yield from _expression(f"{path}.matchExpressions[{index}]", fields_of(one))


def _expression(path: str, one: Fields) -> Iterator[Fault]:
    if what := label_key(text_of(one.get("key"))):
        yield Fault(f"{path}.key", what)
    operator, values = one.get("operator"), items_of(one.get("values"))
    if operator not in (*_WITH_VALUES, *_WITHOUT):
        yield Fault(f"{path}.operator", f"expected one of {', '.join((*_WITH_VALUES, *_WITHOUT))}")
    elif operator in _WITH_VALUES and not values:
        yield Fault(f"{path}.values", f"{operator} needs at least one value; write it")
    elif operator in _WITHOUT and values:
        yield Fault(f"{path}.values", f"{operator} takes no values; leave them out")
    for index, value in enumerate(values):
        if what := label_value(value):
            yield Fault(f"{path}.values[{index}]", what)


def label_key_faults(path: str, keys: object, selector: object, /) -> Iterator[Fault]:
    """What is wrong with keys of labels that are added to a selector."""
    if not items_of(keys):
        return
    if selector is None:
        yield Fault(
            path, "they are added to a labelSelector, and there is none; write one, or leave them out"
        )
    for index, one in enumerate(items_of(keys)):
        if what := label_key(text_of(one)):
            yield Fault(f"{path}[{index}]", what)


def keys_of(selector: object, /) -> Counter[str]:
    """The keys that a selector asks for, and how often each."""
    found = fields_of(selector)
    asked = [text_of(fields_of(one).get("key")) for one in items_of(found.get("matchExpressions"))]
    return Counter([*fields_of(found.get("matchLabels")), *asked])
