"""PyYAML's safe loader as a kubelet's reads, and with bounds; loaded where somebody hands over YAML."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

import yaml
from yaml.constructor import ConstructorError

__all__ = ["MOST_VALUES", "BoundedLoader", "TooDeepError", "TooManyValuesError"]

MOST_VALUES: Final = 30_000
"""Of a text, keys included; each takes some twenty microseconds. A manifest has some hundred."""
_DEEPEST: Final = 100
"""Levels of lists and mappings. Each word of YAML is held against every bracket that is open."""
_TAG: Final = "tag:yaml.org,2002:"
_MERGE: Final = f"{_TAG}merge"
_NUMBERS: Final = (f"{_TAG}int", f"{_TAG}float")
_JSON_TAGS: Final = ("null", "bool", "int", "float", "str", "seq", "map")
_INT: Final = re.compile(
    r"^(?:[-+]?0b[01_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+)$", re.ASCII
)
_FLOAT: Final = re.compile(
    r"^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$",
    re.ASCII,
)


class TooManyValuesError(Exception):
    """More values than anybody waits for."""


class TooDeepError(Exception):
    """Nested deeper than any manifest."""


def _resolvers(
    known: Mapping[str, Sequence[tuple[str, re.Pattern[str]]]],
) -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """What plain words stand for, with numbers that have no colon and no moments."""
    dropped = {f"{_TAG}timestamp", *_NUMBERS}
    found = {first: [one for one in rules if one[0] not in dropped] for first, rules in known.items()}
    for tag, firsts, pattern in (
        (f"{_TAG}float", "-+0123456789.", _FLOAT),
        (f"{_TAG}int", "-+0123456789", _INT),
    ):
        for first in firsts:
            found.setdefault(first, []).append((tag, pattern))
    return found


_RESOLVERS: Final = _resolvers(yaml.SafeLoader.yaml_implicit_resolvers)


class BoundedLoader(yaml.SafeLoader):
    """What it makes is JSON, of so many values at most.

    Those that merge keys bring are counted as often as they are brought: a hundred lines
    can merge more than any memory holds. Numbers to base 60 and moments are texts.
    """

    yaml_constructors: ClassVar = {
        tag: make
        for tag, make in yaml.SafeLoader.yaml_constructors.items()
        if tag is None or tag.rpartition(":")[2] in _JSON_TAGS
    }

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.yaml_implicit_resolvers = _RESOLVERS
        self._left = MOST_VALUES
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Count it, then make it."""
        self._count(1)
        self._depth += 1
        if self._depth > _DEEPEST:
            raise TooDeepError
        made = super().compose_node(parent, index)
        self._depth -= 1
        return made

    def fetch_more_tokens(self) -> None:
        """Look how many brackets are open: tokens are read ahead of what is made of them."""
        if self.flow_level > _DEEPEST:
            raise TooDeepError
        super().fetch_more_tokens()

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Count what is merged, then merge it."""
        for key, value in node.value:
            if key.tag == _MERGE:
                for one in value.value if isinstance(value, yaml.SequenceNode) else (value,):
                    if isinstance(one, yaml.MappingNode):
                        self.flatten_mapping(one)
                        self._count(1 + len(one.value))
        super().flatten_mapping(node)

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> str:
        """Refuse what was said to be a number and has a colon."""
        value = super().construct_scalar(node)
        if node.tag in _NUMBERS and ":" in value:
            raise ConstructorError(None, None, "a number to base 60", node.start_mark)
        return value

    def _count(self, values: int) -> None:
        self._left -= values
        if self._left < 0:
            raise TooManyValuesError
