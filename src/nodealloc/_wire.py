"""How a field of an attrs class is spelled outside, and the way back out.

A field `host_ip` is `hostIp` outside unless it says otherwise; what a class
says of a field stands in its metadata. `written` is the way out: what has its
default is left out, as whoever reads it puts the default in again.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, TypeVar, cast

from nodealloc import _attrs as attrs
from nodealloc._reading import Json

__all__ = ["Wire", "camel", "wire", "wire_of", "written"]

_KEY: Final = "nodealloc.wire"

T = TypeVar("T")

Check: TypeAlias = Callable[[object], str]
"""What is wrong with a value, or ""."""


@attrs.frozen(kw_only=True)
class Wire:
    """What a field is outside.

    Attributes:
        key: Its name; "" for the field's own in camel case.
        required: It has to be there, and not be empty.
        check: What is wrong with a value, or "".
        skip: It is no field of the document.
        raw: It is taken as it comes.
        unset: A value that says nothing, as it stands in the document, beside null; an empty word
            of a list of words never says anything.
    """

    key: str = ""
    required: bool = False
    check: Check | None = None
    skip: bool = False
    raw: bool = False
    unset: object = None


_PLAIN: Final = Wire()


def wire(
    key: str = "",
    *,
    required: bool = False,
    check: Callable[[T], str] | None = None,
    skip: bool = False,
    raw: bool = False,
    unset: object = None,
) -> Mapping[str, object]:
    """Metadata of a field; arguments as of `Wire`."""
    found = cast("Check | None", check)
    return {_KEY: Wire(key=key, required=required, check=found, skip=skip, raw=raw, unset=unset)}


def wire_of(metadata: Mapping[object, object]) -> Wire:
    """What the metadata of a field says."""
    return cast("Wire", metadata.get(_KEY, _PLAIN))


def camel(name: str) -> str:
    """`period_seconds` as `periodSeconds`."""
    first, *rest = name.split("_")
    return first + "".join(one[:1].upper() + one[1:] for one in rest)


def written(value: object) -> Json:
    """A declared value as the document has it; fields with their defaults are left out."""
    if isinstance(value, enum.Enum):
        return cast("str", value.value)
    if attrs.has(type(value)):
        return _class_written(cast("attrs.AttrsInstance", value))
    if isinstance(value, Mapping):
        return {key: written(one) for key, one in cast("Mapping[str, object]", value).items()}
    if isinstance(value, tuple | list):
        return [written(one) for one in cast("tuple[object, ...]", value)]
    return cast("Json", value)


_UNSET: Final = object()
"""Equal to nothing that a field may hold."""


@functools.cache
def _plan(kind: type[attrs.AttrsInstance]) -> tuple[tuple[str, str, object], ...]:
    """Of each field that is written: its name, its key, and what is left out."""
    found: list[tuple[str, str, object]] = []
    for field in attrs.fields(kind):
        wired = wire_of(field.metadata)
        if wired.skip:
            continue
        default: object = field.default
        if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
            default = cast("Callable[[], object]", default.factory)()  # type: ignore[attr-defined]
        found.append((field.name, wired.key or camel(field.name), _UNSET if wired.required else default))
    return tuple(found)


def _class_written(value: attrs.AttrsInstance) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for name, key, default in _plan(type(value)):
        one = getattr(value, name)
        if one is not default and one != default:
            found[key] = one if type(one) is str else written(one)
    return found
