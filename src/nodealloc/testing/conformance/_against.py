"""A function of somebody else's, named on the command line, in place of the library's."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TypeAlias, cast

from nodealloc.errors import ConfigurationError
from nodealloc.podspec import Json
from nodealloc.testing.conformance._kinds import Row, RowAnswer

__all__ = ["answer_named", "from_fields"]

_Fields: TypeAlias = Callable[[Row, Mapping[str, Row]], object]


def answer_named(name: str, /) -> RowAnswer:
    """The function that `MODULE:FUNCTION` names, as an answer.

    Modules are looked for in the working directory too.

    Raises:
        ConfigurationError: There is none, or it cannot be imported.
    """
    module, colon, function = name.partition(":")
    if not (module and colon and function):
        raise ConfigurationError(f"{name!r}: expected MODULE:FUNCTION, such as mine:take_cpus")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: object = getattr(import_module(module), function, None)
    except Exception as error:
        raise ConfigurationError(f"{name}: importing {module} raised {error!r}") from error
    if not callable(found):
        raise ConfigurationError(f"{name}: {module} has no function {function}")
    return from_fields(cast("_Fields", found))


def from_fields(function: _Fields, /) -> RowAnswer:
    """An answer from a function that says some of a row's fields anew.

    What it does not say is not compared. It may answer with a pair, what was
    expected and what it got, as any `RowAnswer`.
    """

    def answer(row: Row, machines: Mapping[str, Row]) -> tuple[Json, Json]:
        got = function(row, machines)
        if isinstance(got, Mapping):
            fields = cast("Mapping[str, Json]", got)
            return {name: row.get(name) for name in fields}, fields
        pair = cast("tuple[Json, ...]", got) if isinstance(got, tuple) else ()
        if len(pair) == 2:
            return pair[0], pair[1]
        return "a mapping of fields, or a pair (expected, got)", f"{got!r}"

    return answer
