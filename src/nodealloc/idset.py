"""Sets of small ids, each held in one integer, and the Linux list format.

Bit *n* of the integer says whether id *n* is in the set, so that union,
intersection and counting are single operations of the interpreter, however
large the set is. Two typed uses keep CPUs and NUMA nodes apart:

    >>> CPUSet.parse("0-3,8") & CPUSet.of(2, 3, 4)
    CPUSet('2-3')
    >>> NodeSet.of(0, 1).mask
    3

The hot paths of this library work on the bare integer (`.mask`); the classes
stand at its edges, where people look.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, cast, final

from nodealloc._arguments import is_other, wrong
from nodealloc._typed import typed_on_error
from nodealloc.errors import ConfigurationError, DecodeError, Fault

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Never, Self

__all__ = ["MAX_ID", "CPUSet", "IdSet", "NodeSet", "bits", "format_list", "lowest", "parse_list"]

MAX_ID = 65535
"""Largest id; a longer mask would let one typing error allocate gigabytes."""

_DIGITS = frozenset("0123456789")
_SHOWN = 40
"""Characters of a fault that are shown; whoever wrote it may have written a megabyte."""
_LONG = 1024
"""Bits of a mask that are gone through one by one; a longer one is cut into such."""
_FEW = 12
"""Up to here taking bit by bit is quicker than halving the mask."""


def bits(mask: int, /) -> Iterator[int]:
    """Ids in a mask, ascending; asked for the first, raises `ConfigurationError` for a mask below 0."""
    try:
        length = mask.bit_length()
    except AttributeError:
        raise wrong("bits: mask", mask, "a whole number, 0 or more") from None
    if mask < 0:
        raise wrong("bits: mask", mask, "a whole number, 0 or more")
    if length > _LONG:
        # Each step below copies the whole mask; of short ones it may.
        data = mask.to_bytes((length + 7) // 8, "little")
        for start in range(0, len(data), _LONG // 8):
            part = int.from_bytes(data[start : start + _LONG // 8], "little")
            for number in bits(part):
                yield start * 8 + number
        return
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


@typed_on_error
def lowest(mask: int, count: int, /) -> int:
    """The `count` lowest ids of a mask, or all where there are fewer.

    >>> bin(lowest(0b11_0110, 3))
    '0b10110'
    """
    if mask.bit_count() <= count:
        return mask
    if count < _FEW:
        rest = mask
        for _ in range(count):
            rest &= rest - 1
        return mask ^ rest
    below, above = count, mask.bit_length()
    while below < above:
        middle = (below + above) // 2
        if (mask & ((1 << middle) - 1)).bit_count() < count:
            below = middle + 1
        else:
            above = middle
    return mask & ((1 << below) - 1)


@typed_on_error
def format_list(mask: int, /) -> str:
    """Linux list format of a mask: ``0b1_0000_1111`` is ``0-3,8``.

    Runs of one id stand alone, longer runs as ``low-high``; the empty mask is
    the empty string. Source: ``cpuset(7)``, "List format".
    """
    parts: list[str] = []
    base = 0
    while mask:
        gap = (mask & -mask).bit_length() - 1
        mask >>= gap
        base += gap
        run = (~mask & (mask + 1)).bit_length() - 1
        parts.append(str(base) if run == 1 else f"{base}-{base + run - 1}")
        mask >>= run
        base += run
    return ",".join(parts)


def _number(text: str, position: int, source: str) -> int:
    digits = text.removeprefix("+")
    # Python refuses to read thousands of digits, zeros or not.
    number = digits.lstrip("0") or "0"
    if not digits or not _DIGITS.issuperset(digits):
        reason = f"expected a decimal id, found {text[:_SHOWN]!r}"
        if text != text.strip():
            reason += "; strip blanks and the newline"
        elif "-" in text.strip("-"):
            reason += "; separate ranges by commas, as in 0-3,5"
    elif len(number) > len(str(MAX_ID)) or int(number) > MAX_ID:
        reason = f"id {number[:_SHOWN]} is above {MAX_ID}, the largest that a set holds"
    else:
        return int(number)
    raise DecodeError(source, [Fault(f"character {position}", reason)])


def parse_list(text: str, /, *, source: str = "id list") -> int:
    """Mask of a Linux list such as ``0-3,8``; the empty string is the empty set.

    Args:
        text: Ids and ``low-high`` ranges, comma-separated, in any order;
            overlaps are allowed, blanks are not (strip a file's newline first).
        source: What to call the text in an error.

    Raises:
        DecodeError: Junk, a reversed range or an id above `MAX_ID`; its path
            is the 0-based character where the fault starts.

    Source: ``cpuset(7)``; kubelet ``k8s.io/utils/cpuset``, which accepts a
    leading ``+`` as well.
    """
    if is_other(text, str):
        remedy = "; decode it" if not is_other(text, bytes) else ""
        reason = f"expected a text such as 0-3,8, found {str(text)[:_SHOWN]}{remedy}"
        raise DecodeError(source, [Fault("$", reason)])
    mask = 0
    position = 0
    for part in text.split(",") if text else ():
        low_text, dash, high_text = part.partition("-")
        low = _number(low_text, position, source)
        high = _number(high_text, position + len(low_text) + 1, source) if dash else low
        if high < low:
            reason = f"range {part[:_SHOWN]!r} runs backwards; write {high}-{low}"
            raise DecodeError(source, [Fault(f"character {position}", reason)])
        mask |= ((1 << (high - low + 1)) - 1) << low
        position += len(part) + 1
    return mask


def _is_whole(number: object) -> bool:
    """Whether a number is an integer, if perhaps one of another class; a truth value is none."""
    return isinstance(number, int) and not isinstance(number, bool)


class IdSet:
    """An immutable, hashable set of ids from 0 to `MAX_ID`.

    Two sets combine and compare only with their own class, so that a CPU set
    and a node set cannot be mixed up.

    Attributes:
        mask: The set as an integer: bit *n* stands for id *n*.
    """

    __slots__ = ("mask",)

    mask: int
    _noun: ClassVar[str] = "id set"

    def __new__(cls, ids: Iterable[int] | str = ()) -> Self:
        """Build from ids, or from their text as `repr` shows it.

        Raises:
            ConfigurationError: An id below 0 or above `MAX_ID`, or no whole number.
            DecodeError: A text that is no list of ids; see `parse`.
        """
        if isinstance(ids, str):
            return cls.parse(ids)
        if is_other(ids, Iterable):
            raise wrong(cls._noun, ids, f"ids or their text; for one id write {cls.__name__}.of({ids!r})")
        mask = 0
        for number in ids:
            if number.__class__ is not int and not _is_whole(number):
                raise wrong(f"{cls._noun}, an id", number, "a whole number")
            if not 0 <= number <= MAX_ID:
                raise ConfigurationError(f"{cls._noun}: id {number} is outside 0 to {MAX_ID}")
            mask |= 1 << number
        return cls.from_mask(mask)

    @classmethod
    def of(cls, *ids: int | str | Iterable[int]) -> Self:
        """The set of exactly these ids; one argument may be all of them, or their text."""
        if len(ids) == 1 and isinstance(ids[0], (str, Iterable)):
            return cls(ids[0])
        return cls(cast("tuple[int, ...]", ids))

    @classmethod
    def from_mask(cls, mask: int, /) -> Self:
        """The set whose integer is `mask`; raises `ConfigurationError` if that is no set."""
        if mask.__class__ is not int and not _is_whole(mask):
            raise wrong(cls._noun, mask, "a mask, an integer whose bit n stands for id n")
        if mask < 0 or mask.bit_length() > MAX_ID + 1:
            what = "negative" if mask < 0 else f"longer than {MAX_ID + 1} bits"
            raise ConfigurationError(f"{cls._noun}: the mask is {what}; bit n stands for id n")
        made = _new(cls)
        _set_mask(made, mask)
        return made

    @classmethod
    def parse(cls, text: str, /) -> Self:
        """Read the Linux list format; see `parse_list`."""
        return cls.from_mask(parse_list(text, source=cls._noun))

    def __setattr__(self, name: str, value: Never) -> Never:
        raise AttributeError(f"a {self._noun} does not change; build another instead of {name} =")

    def __delattr__(self, name: str) -> Never:
        raise AttributeError(f"a {self._noun} does not change; {name} stays")

    # The six operators repeat their two lines: one shared function more would
    # cost as much as the operation itself.

    def __or__(self, other: Self, /) -> Self:
        if other.__class__ is not (cls := self.__class__):
            return NotImplemented
        _set_mask(made := _new(cls), self.mask | other.mask)
        return made

    def __and__(self, other: Self, /) -> Self:
        if other.__class__ is not (cls := self.__class__):
            return NotImplemented
        _set_mask(made := _new(cls), self.mask & other.mask)
        return made

    def __sub__(self, other: Self, /) -> Self:
        if other.__class__ is not (cls := self.__class__):
            return NotImplemented
        _set_mask(made := _new(cls), self.mask & ~other.mask)
        return made

    def __xor__(self, other: Self, /) -> Self:
        if other.__class__ is not (cls := self.__class__):
            return NotImplemented
        _set_mask(made := _new(cls), self.mask ^ other.mask)
        return made

    def __le__(self, other: Self, /) -> bool:
        """Whether every id of this set is in `other`."""
        if other.__class__ is not self.__class__:
            return NotImplemented
        return not self.mask & ~other.mask

    def __ge__(self, other: Self, /) -> bool:
        """Whether every id of `other` is in this set."""
        if other.__class__ is not self.__class__:
            return NotImplemented
        return not other.mask & ~self.mask

    def __lt__(self, other: Self, /) -> bool:
        """Whether this set is a proper subset of `other`."""
        return self != other and self <= other

    def __gt__(self, other: Self, /) -> bool:
        """Whether this set is a proper superset of `other`."""
        return self != other and self >= other

    def __eq__(self, other: object, /) -> bool:
        if not isinstance(other, IdSet) or other.__class__ is not self.__class__:
            return NotImplemented
        return self.mask == other.mask

    def __hash__(self) -> int:
        return hash((self._noun, self.mask))

    def isdisjoint(self, other: Self, /) -> bool:
        """Whether no id is in both."""
        return not (self & other).mask

    def __len__(self) -> int:
        return self.mask.bit_count()

    def __bool__(self) -> bool:
        return bool(self.mask)

    def __contains__(self, number: int, /) -> bool:
        return number >= 0 and bool(self.mask >> number & 1)

    def __iter__(self) -> Iterator[int]:
        """Ids, ascending."""
        return bits(self.mask)

    def __str__(self) -> str:
        """Linux list format, as `parse` reads it."""
        return format_list(self.mask)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({format_list(self.mask)!r})"

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return (self.__class__.from_mask, (self.mask,))


@final
class CPUSet(IdSet):
    """Logical CPU ids, as the kernel numbers them. Public as `nodealloc.cpuset.CPUSet`."""

    __slots__ = ()
    _noun: ClassVar[str] = "CPU set"


@final
class NodeSet(IdSet):
    """NUMA node ids, as the kernel numbers them."""

    __slots__ = ()
    _noun: ClassVar[str] = "NUMA node set"


_new = object.__new__
# The slot's own setter: it passes by `__setattr__`, which refuses everyone else.
_set_mask = IdSet.__dict__["mask"].__set__
