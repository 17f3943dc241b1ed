"""Documents read by what attrs classes declare: every fault with its path, and none hides the next.

cattrs finds the reader of a type; the readers here hand a path and a `Reader`
along with the value, so that a fault leaves a default behind and reading goes
on. A field that no class declares is named, with one that is spelled alike.
"""

from __future__ import annotations

import enum
import functools
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar, Union, cast

import attrs
import cattrs

from nodealloc._reading import Reader, alike, as_shown, short, under
from nodealloc._wire import camel, wire_of

__all__ = ["FAULTY", "At", "Documents"]

At: TypeAlias = tuple[object, str, Reader]
"""A value, where it stands, and who remembers what is wrong with it."""
Hook: TypeAlias = Callable[[At, object], object]
Check: TypeAlias = Callable[[object, str, Reader], None]
Build: TypeAlias = Callable[[dict[str, object], str, Reader], object]

T = TypeVar("T")

_WORDS: Final = 6
_TOLD: Final = 100
"""Faults for which a field that is spelled alike is looked for; more are not told."""


class _Faulty(enum.Enum):
    FAULTY = 0


FAULTY: Final = _Faulty.FAULTY
"""What a reader answers with after a fault; the field keeps its default."""


_Field: TypeAlias = tuple[str, Hook, object, Union[Callable[[object], str], None], Union[type, None], object]
"""Name, hook, type, check, the class of values that need no hook, and the value that says nothing.

A tuple is taken apart fastest.
"""


class Documents:
    """Reads documents of some attrs classes. Readers are made once for each class.

    Args:
        unsupported: By class, fields that are known and not read, and why.
        checks: By class, what has to hold between its fields.
        builders: By class, what is made of its fields in place of the class itself.
        hooks: Readers of types that are no classes, or are spelled otherwise.
        raw: Reads fields that are taken as they come.
    """

    def __init__(
        self,
        *,
        unsupported: Mapping[type, Mapping[str, str]],
        checks: Mapping[type, Check],
        builders: Mapping[type, Build],
        hooks: Mapping[object, Hook],
        raw: Hook,
    ) -> None:
        self._unsupported = unsupported
        self._checks = checks
        self._builders = builders
        self._raw = raw
        self._converter = converter = cattrs.Converter()
        converter.register_structure_hook_factory(lambda _: True, _refuse)
        converter.register_structure_hook_factory(attrs.has, self._class_hook)
        converter.register_structure_hook_factory(_is_optional, self._optional_hook)
        converter.register_structure_hook_factory(_is_list, self._list_hook)
        converter.register_structure_hook_factory(_is_mapping, self._mapping_hook)
        for plain, reads in ((enum.Enum, _member), *_SIMPLE.items()):
            converter.register_structure_hook(plain, reads)
        self.register(Union[int, str], _number_or_text)
        for kind, hook in hooks.items():
            self.register(kind, hook)

    def register(self, kind: object, hook: Hook) -> None:
        """Read a type with a function of one's own."""
        self._converter.register_structure_hook_func(lambda one: one is kind or one == kind, hook)

    def read(self, kind: type[T], value: object, path: str, reader: Reader) -> T | None:
        """A value of a declared class; after a fault, what could be read of it, or None."""
        hook = cast("Hook", self._converter.get_structure_hook(kind))
        found = hook((value, path, reader), kind)
        return None if found is FAULTY else cast("T", found)

    def hook(self, kind: object) -> Hook:
        """The reader of a type, found when it is first needed, since classes may hold one another."""
        if kind in _SIMPLE:
            return _SIMPLE[cast("type", kind)]
        found: list[Hook] = []

        def read(at: At, wanted: object) -> object:
            if not found:
                found.append(cast("Hook", self._converter.get_structure_hook(cast("type", kind))))
            return found[0](at, wanted)

        return read

    def _class_hook(self, kind: type) -> Hook:
        hints = typing.get_type_hints(kind)
        fields: dict[str, _Field] = {}
        needed: list[tuple[str, str]] = []
        bare: list[str] = []
        for one in attrs.fields(kind):
            wire = wire_of(one.metadata)
            if wire.skip:
                continue
            key = wire.key or camel(one.name)
            hint = _given(hints[one.name])
            hook = self._raw if wire.raw else self.hook(hint)
            plain = next((one for one in _UNBOUNDED if hint is one and not wire.raw), None)
            unset = "" if isinstance(hint, type) and issubclass(hint, enum.Enum) else wire.unset
            fields[key] = (one.alias or one.name, hook, hint, wire.check, plain, unset)
            if wire.required or one.default is attrs.NOTHING:
                needed.append((key, one.name))
            if one.default is attrs.NOTHING:
                bare.append(one.name)
        take = _fields_reader(fields, needed, self._unsupported.get(kind, {}))
        check = self._checks.get(kind)
        build = self._builders.get(kind)
        # Without one of these nothing of the class can be made; a builder knows what to do.
        without = frozenset(bare) if build is None else frozenset[str]()

        def read(at: At, _: object) -> object:
            value, path, reader = at
            made = take(value, path, reader)
            if made is None or not made.keys() >= without:
                return FAULTY
            result = kind(**made) if build is None else build(made, path, reader)
            if check is not None:
                check(result, path, reader)
            return result

        return read

    def _optional_hook(self, kind: object) -> Hook:
        (inner,) = [one for one in typing.get_args(kind) if one is not type(None)]
        hook = self.hook(inner)
        return lambda at, _: None if at[0] is None else hook(at, inner)

    def _list_hook(self, kind: object) -> Hook:
        inner = typing.get_args(kind)[0]
        hook = self.hook(inner)

        def read(at: At, _: object) -> object:
            value, path, reader = at
            if type(value) is not list and not (
                isinstance(value, Sequence) and not isinstance(value, str | bytes)
            ):
                reader.expected("a list", value, path)
                return FAULTY
            items = cast("Sequence[object]", value)
            found = [hook((item, f"{path}[{n}]", reader), inner) for n, item in enumerate(items)]
            return tuple(one for one in found if one is not FAULTY)

        return read

    def _mapping_hook(self, kind: object) -> Hook:
        inner = typing.get_args(kind)[1]
        hook = self.hook(inner)

        def read(at: At, _: object) -> object:
            value, path, reader = at
            found = {
                key: "" if item is None and inner is str else hook((item, under(path, key), reader), inner)
                for key, item in reader.mapping(value, path).items()
            }
            return {key: one for key, one in found.items() if one is not FAULTY}

        return read


def _fields_reader(
    fields: Mapping[str, _Field], needed: Sequence[tuple[str, str]], unsupported: Mapping[str, str]
) -> Callable[[object, str, Reader], dict[str, object] | None]:
    """What reads the fields of one class, by the names of its attributes; None where none can be read."""
    needed_keys = " and a ".join(key for key, _ in needed)

    def take(value: object, path: str, reader: Reader) -> dict[str, object] | None:
        if type(value) is not dict and not isinstance(value, Mapping):
            reader.expected("a mapping", value, path)
            return None
        found = cast("Mapping[str, object]", value)  # other keys are not known
        if not found and needed:
            reader.fault(path, f"nothing stands here; a {needed_keys} is needed")
            return None
        made: dict[str, object] = {}
        faulty: set[str] = set()
        for key, item in found.items():
            field = fields.get(key)
            if field is None:
                _unread(reader, path, key, fields, unsupported)
                continue
            name, hook, wanted, fails, plain, unset = field
            if item is None or (item == unset and type(item) is type(unset)):
                continue
            one = item if type(item) is plain else hook((item, f"{path}.{key}", reader), wanted)
            if one is FAULTY:
                faulty.add(name)
                continue
            if fails is not None and (reason := fails(one)):
                reader.fault(f"{path}.{key}", reason)
            made[name] = one
        for key, name in needed:
            if name not in faulty and made.get(name, "") == "":
                reader.fault(f"{path}.{key}", f"a {key} is needed")
        return made

    return take


def _unread(
    reader: Reader,
    path: str,
    key: object,
    fields: Mapping[str, _Field],
    unsupported: Mapping[str, str],
) -> None:
    if not isinstance(key, str):
        reader.fault(path, f"the key {as_shown(key)} is no text; put it in quotes")
        return
    if key in unsupported:
        reader.not_read(under(path, key), f"is not supported: {unsupported[key]}")
        return
    # Looking for what is spelled alike is slow, and only the first are told.
    meant = alike(key[:_TOLD], fields) if len(reader.faults) < _TOLD else ""
    hint = f"did you mean {meant}?" if meant else f"known are {_some(fields)}"
    reader.not_read(under(path, key), f"unknown field {short(key)}; {hint}")


def _some(fields: Mapping[str, _Field]) -> str:
    names = sorted(fields)
    more = f" and {len(names) - _WORDS} more" if len(names) > _WORDS else ""
    return ", ".join(names[:_WORDS]) + more


def _given(hint: object) -> object:
    """The type of a field where something stands: null is never handed to its reader."""
    return next(one for one in typing.get_args(hint) if one is not type(None)) if _is_optional(hint) else hint


def _refuse(kind: object) -> Hook:
    raise TypeError(f"{kind!r}: no reader is declared for this type; register one")


def _is_optional(kind: object) -> bool:
    args = typing.get_args(kind)
    return typing.get_origin(kind) in (Union, types.UnionType) and type(None) in args and len(args) == 2


def _is_list(kind: object) -> bool:
    return typing.get_origin(kind) is tuple


def _is_mapping(kind: object) -> bool:
    return typing.get_origin(kind) is Mapping


@functools.cache
def _members(kind: type[enum.Enum]) -> Mapping[object, enum.Enum]:
    return {one.value: one for one in kind}


def _member(at: At, kind: object) -> object:
    value, path, reader = at
    members = _members(cast("type[enum.Enum]", kind))
    found = members.get(value) if isinstance(value, str) else None
    if found is None:
        reader.fault(path, f"expected one of {', '.join(map(str, members))}, found {as_shown(value)}")
        return FAULTY
    return found


def _text(at: At, _: object) -> object:
    value, path, reader = at
    if type(value) is str:
        return value
    before = reader.count
    found = reader.text(value, path)
    return FAULTY if reader.count != before else found


_LARGEST: Final = sys.float_info.max


def _number(at: At, _: object) -> object:
    value, path, reader = at
    # NaN is not at most anything, either.
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST:
        return float(value)
    reader.expected("a number", value, path)
    return FAULTY


def _flag(at: At, _: object) -> object:
    value, path, reader = at
    if isinstance(value, bool):
        return value
    reader.expected("true or false", value, path)
    return FAULTY


def _whole(at: At, _: object) -> object:
    value, path, reader = at
    if isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63:
        return value
    reader.expected("a whole number", value, path)
    return FAULTY


def _number_or_text(at: At, kind: object) -> object:
    return _text(at, kind) if isinstance(at[0], str) else _whole(at, kind)


_SIMPLE: Final[Mapping[type, Hook]] = {str: _text, bool: _flag, int: _whole, float: _number}
"""Found without asking, since nearly all values are of these."""
_UNBOUNDED: Final[tuple[type, ...]] = (str, bool)
"""Of these every value will do."""
