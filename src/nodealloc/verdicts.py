"""May it come in: one answer for everybody who may say no, or not yet.

| verdict    | means                                  | what to do                          |
|------------|----------------------------------------|-------------------------------------|
| `Admitted` | nothing speaks against it              | go on                               |
| `Refused`  | no, as things are; says why, in fields | report it; the asker may ask anew   |
| `NotYet`   | nobody can say; nobody is to blame     | ask again after `after_s`           |

Who judges (resources, host ports, taints, a node that runs short) answers with
one of these, or with a subclass that adds fields of its own. Whoever asks looks
at the three alone:

    >>> def host_port(port: int, taken: frozenset[int]) -> Verdict:
    ...     if port not in taken:
    ...         return Admitted()
    ...     return Refused(
    ...         reason="NodePorts",
    ...         message=f"host port {port} is taken; use another one, or none",
    ...         figures={"port": port},
    ...     )
    >>> verdict = host_port(80, frozenset({80, 443}))
    >>> print(verdict)
    NodePorts: host port 80 is taken; use another one, or none
    >>> verdict.figures["port"]
    80

Verdicts are values: they can be compared, hashed, pickled, printed and logged,
and none of it asks anybody. Whoever can tell a longer story offers a
function for it (`nodealloc.topology.explain`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TypeAlias, Union

from nodealloc import _attrs as attrs
from nodealloc._arguments import is_other, wrong
from nodealloc.errors import ConfigurationError

__all__ = ["Admitted", "Figure", "NotYet", "Refused", "Verdict"]

Figure: TypeAlias = Union[int, float, str]
"""A number in the unit that its name states, or a word."""


_PLAIN = frozenset({int, str})


class _Figures(Mapping[str, Figure]):
    """A mapping that nobody can change: it can be hashed, pickled and shared."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Mapping[str, Figure]) -> None:
        self._entries = dict(entries)
        for name, figure in self._entries.items():
            # Nearly all are plain, and a fleet is refused by the thousand.
            if type(name) is not str or not name or type(figure) not in _PLAIN:
                _check(name, figure)

    def __getitem__(self, name: str) -> Figure:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __hash__(self) -> int:
        return hash(frozenset(self._entries.items()))

    def __repr__(self) -> str:
        return repr(self._entries)

    def __reduce__(self) -> tuple[object, ...]:
        return _Figures, (self._entries,)


def _check(name: object, figure: object) -> None:
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"the figure {figure!r} has the name {name!r}; give it one of text")
    if not isinstance(figure, int | float | str):
        raise TypeError(f"the figure {name!r} is {figure!r}; give a number or text")
    if isinstance(figure, float) and not math.isfinite(figure):
        raise ConfigurationError(f"the figure {name!r} is {figure}; leave out what is not known")


def _kept(figures: Mapping[str, Figure]) -> Mapping[str, Figure]:
    """An immutable copy; what is immutable already is shared."""
    if type(figures) is _Figures:
        return figures
    # A look at the class is quicker than asking an abstract one.
    if figures.__class__ is not dict and is_other(figures, Mapping):
        raise wrong("figures", figures, "a mapping of names to numbers or text")
    return _Figures(figures)


def _check_text(field: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise ConfigurationError(f"{field} is {value!r}; say it in at least a word")


def _check_seconds(field: str, value: object) -> None:
    if isinstance(value, bool) or not (isinstance(value, int | float) and 0 <= value < math.inf):
        raise ConfigurationError(f"{field} is {value!r}; give finite seconds, 0 or more")


_NONE: Mapping[str, Figure] = _Figures({})


@attrs.frozen(kw_only=True)
class Admitted:
    """Nothing speaks against it, as far as the one who was asked can tell."""

    def __str__(self) -> str:
        """One word."""
        return "admitted"


@attrs.frozen(kw_only=True)
class Refused:
    """It may not come in; nothing was changed by asking.

    Attributes:
        reason: The field's name for it, one word, for programs: `NodePorts`,
            `OutOfcpu`, `TopologyAffinityError`.
        message: What, where and what to do, in a sentence for people.
        figures: The numbers and names that the message speaks of, so that
            nobody has to parse it. Copied, and immutable from then on.

    Raises:
        ConfigurationError: No reason or no message, or a figure without a name, infinite or not a number.
        TypeError: A figure is neither number nor text.
    """

    reason: str
    message: str
    figures: Mapping[str, Figure] = attrs.field(default=_NONE, converter=_kept)

    def __attrs_post_init__(self) -> None:
        # In one call for both fields, since a fleet is refused by the thousand.
        if not (self.reason and type(self.reason) is str and self.message and type(self.message) is str):
            _check_text("reason", self.reason)
            _check_text("message", self.message)

    def __str__(self) -> str:
        """One line: the reason and the message."""
        return f"{self.reason}: {self.message}"


@attrs.frozen(kw_only=True)
class NotYet:
    """Nobody can say yet; ask again. Nothing is held and nobody is to blame.

    Attributes:
        blocker: Who or what is waited for, as a name: a resource, a plugin, a store.
        message: What is awaited, in words (`plugin example.com/gpu has not registered`).
        after_s: When asking again makes sense, in seconds from now; 0 or more.

    Raises:
        ConfigurationError: No blocker or no message, or `after_s` is negative or not finite.
    """

    blocker: str
    message: str
    after_s: float = 1.0

    def __attrs_post_init__(self) -> None:
        _check_text("blocker", self.blocker)
        _check_text("message", self.message)
        _check_seconds("after_s", self.after_s)

    def __str__(self) -> str:
        """One line: who is waited for, for what, and how long."""
        return f"not yet, {self.blocker}: {self.message} (ask again after {self.after_s:g} s)"


Verdict: TypeAlias = Union[Admitted, Refused, NotYet]
"""Every answer there is."""
