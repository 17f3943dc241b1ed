"""Arguments that cannot be meant, refused in one manner: where, what came, what would be right."""

from __future__ import annotations

import contextlib
import enum
import inspect
import ipaddress
import math
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Final, ParamSpec, TypeVar, cast

from nodealloc.errors import ConfigurationError

__all__ = [
    "absolute",
    "addresses",
    "check",
    "checked",
    "choice",
    "done",
    "field_of",
    "filled",
    "filled_or_none",
    "is_other",
    "named",
    "names_in",
    "not_a_machine",
    "several",
    "unix_time",
    "whole",
    "within",
    "wrong",
]

E = TypeVar("E", bound=enum.Enum)
P = ParamSpec("P")
T = TypeVar("T")
_SHOWN = 60
"""Characters of a value that are shown; some print a whole machine."""


def wrong(where: str, value: object, expected: str) -> ConfigurationError:
    """The error for an argument of another kind, to be raised.

    Args:
        where: The argument or field, with the class it belongs to where that helps.
        value: What came.
        expected: What would be right, and how to come by it.
    """
    found = _shown(value)
    kind = type(value).__name__
    if found.endswith(f" {kind}") and kind in expected.split():
        # Several packages have one of this name, such as `Rules`.
        found = f"the {kind} of {type(value).__module__.partition('._')[0]}"
    return ConfigurationError(f"{where}: expected {expected}, found {found}")


def _shown(value: object) -> str:
    if value is None:
        return "None"
    kind = type(value).__name__
    if isinstance(value, type):
        return f"the class {getattr(value, '__name__', '')}"
    if not isinstance(value, (str, bytes, int, float, Mapping, list, tuple, set, frozenset, enum.Enum)):
        return f"{'an' if kind[:1].lower() in 'aeio' else 'a'} {kind}"  # u: a UnixServer
    text = repr(cast("object", value))
    return f"{text if len(text) <= _SHOWN else text[:_SHOWN] + '…'} ({kind})"


@contextlib.contextmanager
def named(where: str) -> Generator[None, None, None]:
    """Says of what is refused inside where it stands: an option, or a field of a document."""
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from error


def names_in(where: str, names: Iterable[str]) -> frozenset[str]:
    """Each of several names; raises `ConfigurationError` for one text, whose letters are not meant."""
    if isinstance(names, str):
        raise wrong(where, names, "several of text")
    found = tuple(names)
    for one in found:
        if is_other(one, str):
            raise wrong(where, one, "several of text")
    return frozenset(found)


def done(where: str, call: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
    """Call a function of others; raises `ConfigurationError` where its work begins when it is awaited."""
    answer = call(*args, **kwargs)
    if answer is not None and inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise wrong(where, answer, "a function that has done its work when it returns, no `async` one")


def check(where: str, value: T, kinds: type | tuple[type, ...], expected: str) -> T:
    """The value itself where it is of these kinds; raises `ConfigurationError` otherwise."""
    if not isinstance(value, kinds):
        raise wrong(where, value, expected)
    return value


def is_other(value: object, kinds: type | tuple[type, ...]) -> bool:
    """Whether a value is of another kind than annotations promise."""
    return not isinstance(value, kinds)


def checked(kind: type[T], expected: str) -> Callable[[object, object, T], None]:
    """A validator of attrs: the field's value is of this kind."""

    def validate(instance: object, attribute: object, value: object) -> None:
        if not isinstance(value, kind):
            raise wrong(field_of(instance, attribute), value, expected)

    return validate


def several(kind: type[T], expected: str) -> Callable[[object, object, tuple[T, ...]], None]:
    """A validator of attrs: the field's value is a tuple of this kind."""

    def validate(instance: object, attribute: object, value: object) -> None:
        if is_other(value, tuple):
            raise wrong(field_of(instance, attribute), value, f"a tuple of {expected}")
        for place, one in enumerate(cast("tuple[object, ...]", value)):
            if is_other(one, kind):
                raise wrong(f"{field_of(instance, attribute)}[{place}]", one, expected)

    return validate


def within(
    low: float, high: float | None = None, *, above: bool = False, finite: bool = False
) -> Callable[[object, object, float], None]:
    """A validator of attrs: a number from `low`, or above it, to `high`; `finite` where inf has no end."""
    least = f"above {low:g}" if above else f"{low:g} or more"
    kind = "a finite number" if finite else "a number"
    expected = f"{kind} {least}" if high is None else f"{kind} from {low:g} to {high:g}"

    def validate(instance: object, attribute: object, value: object) -> None:
        number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
        enough = number is not None and (number > low or (number == low and not above))
        if number is None or not enough or (high is not None and number > high):
            raise wrong(field_of(instance, attribute), value, expected)
        if finite and number == math.inf:
            raise wrong(field_of(instance, attribute), value, expected)

    return validate


def whole(low: int, high: int | None = None) -> Callable[[object, object, int], None]:
    """A validator of attrs: a whole number from `low` to `high`."""
    expected = f"a whole number, {low} or more" if high is None else f"a whole number from {low} to {high}"

    def validate(instance: object, attribute: object, value: object) -> None:
        number = value if isinstance(value, int) and not isinstance(value, bool) else None
        if number is None or number < low or (high is not None and number > high):
            raise wrong(field_of(instance, attribute), value, expected)

    return validate


def filled(instance: object, attribute: object, value: str) -> None:
    """A validator of attrs: a text that says something."""
    if is_other(value, str) or not value:
        raise wrong(field_of(instance, attribute), value, "a text that is not empty")


def filled_or_none(instance: object, attribute: object, value: str | None) -> None:
    """A validator of attrs: a text that says something, or None."""
    if value is not None and (is_other(value, str) or not value):
        raise wrong(field_of(instance, attribute), value, "a text that is not empty, or None")


_YEAR_10000_UNIX_S: Final = 253_402_300_800.0
"""What no time of Kubernetes' API reaches, and nanoseconds have passed long ago."""


def unix_time(instance: object, attribute: object, value: float | None) -> None:
    """A validator of attrs: finite Unix seconds, or None where nobody knows."""
    if value is None:
        return
    if is_other(value, (int, float)) or isinstance(value, bool) or not -math.inf < value < math.inf:
        raise wrong(field_of(instance, attribute), value, "finite Unix seconds, or None where nobody knows")
    if abs(value) >= _YEAR_10000_UNIX_S:
        expected = "Unix seconds before the year 10000 (divide nanoseconds by 10**9), or None"
        raise wrong(field_of(instance, attribute), value, expected)


def absolute(where: str, value: str, /) -> None:
    """Raises `ConfigurationError` for a path that does not begin at the root."""
    if not value.startswith("/"):
        raise wrong(where, value, "an absolute path, such as /var/lib/data")


def addresses(where: str, values: Iterable[str], /) -> None:
    """Raises `ConfigurationError` for the first text that is no IP address."""
    for value in values:
        try:
            ipaddress.ip_address(value)
        except ValueError:
            raise wrong(where, value, "an IP address such as 10.0.0.1") from None


def choice(kind: type[E], value: object, where: str) -> E:
    """A member of an enumeration from itself or its word; raises `ConfigurationError` with all words."""
    if isinstance(value, kind):
        return value
    if isinstance(value, str):
        for member in kind:
            if member.value == value:
                return member
    known = ", ".join(repr(member.value) for member in kind)
    raise wrong(where, value, f"one of {known}, or a member of {kind.__name__}")


def not_a_machine(value: object) -> ConfigurationError:
    """The error for whatever came instead of a machine."""
    remedy = "a Machine; machine_from_text and machine_from_json make one"
    return wrong("machine", value, "discovery.machine" if hasattr(value, "machine") else remedy)


def field_of(instance: object, attribute: object) -> str:
    """A field of attrs as an error names it: `Class.name`."""
    return f"{type(instance).__name__}.{getattr(attribute, 'name', '')}"
