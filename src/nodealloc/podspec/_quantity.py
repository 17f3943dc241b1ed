"""Exact amounts, as Kubernetes writes them: `500m`, `1.5Gi`, `2e3`."""

from __future__ import annotations

import enum
import functools
import re
from typing import Final, Never

from nodealloc import _attrs as attrs
from nodealloc._arguments import is_other, wrong
from nodealloc.errors import ConfigurationError, DecodeError, Fault

__all__ = ["Quantity", "QuantityFormat"]

NANO: Final = 10**9
MAX_TEXT = 512
"""Longest text that is read; a longer one is a mistake or an attack."""
_OFTEN: Final = 16
"""Longest text that is kept with its quantity."""
MAX_EXPONENT = 512
"""Largest power of ten that is read, for the same reason."""
_BEYOND: Final = 10**MAX_TEXT
"""The first number that is too long."""

_SHAPE = re.compile(r"([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[+-]?[0-9]*)", re.ASCII)
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX: Final = {power: suffix for suffix, power in _DECIMAL.items()}
_BINARY_SUFFIX: Final = {power // 10: suffix for suffix, power in _BINARY.items()}
_INT64_DIGITS = 18
_set: Final = object.__setattr__


class QuantityFormat(enum.Enum):
    """Family of suffixes in which a quantity prints."""

    BINARY_SI = "BinarySI"
    DECIMAL_SI = "DecimalSI"
    DECIMAL_EXPONENT = "DecimalExponent"


@attrs.frozen(order=False, init=False)
class Quantity:
    """An exact amount of any size, in steps of a billionth.

    Two quantities are equal when their amounts are, however they were written.
    `Quantity.of(2)` and `Quantity.parse("2Gi")` make them of what people write;
    `Quantity(nanos=2)` is two billionths, and `Quantity(2)` is refused, since
    nobody means that.

    Attributes:
        nanos: The amount in units of 1e-9; smaller parts were rounded away from zero.
        format: Family of suffixes for printing.

    Raises:
        ConfigurationError: An amount without its name, or one that is no whole number.

    Source: Kubernetes ``k8s.io/apimachinery/pkg/api/resource``, which wraps
    around or caps past 64 bits where this is exact.
    """

    nanos: int
    format: QuantityFormat = attrs.field(default=QuantityFormat.DECIMAL_SI, eq=False)
    _written: str = attrs.field(default="", eq=False, repr=False, alias="written")

    def __init__(
        self,
        *misplaced: Never,
        nanos: int = 0,
        format: QuantityFormat = QuantityFormat.DECIMAL_SI,  # noqa: A002 - the field's name
        written: str = "",
    ) -> None:
        # Made by the million, so this is one look and no more.
        if misplaced or nanos.__class__ is not int:
            raise _not_nanos(misplaced, nanos)
        _set(self, "nanos", nanos)
        _set(self, "format", format)
        _set(self, "_written", written)

    @classmethod
    def parse(cls, text: str, /) -> Quantity:
        """Read a quantity; raises `DecodeError` for what Kubernetes refuses."""
        if type(text) is str and len(text) <= _OFTEN:
            return _parsed(text)
        if is_other(text, str):
            raise _refused(repr(text), "no text; Quantity.of takes numbers too")
        return _read(text)

    @classmethod
    def of(cls, amount: Quantity | str | int | float, /) -> Quantity:
        """A quantity from itself, its text, or a number (a float by its shortest text).

        Raises:
            DecodeError: What Kubernetes refuses, or a number of more than 512 digits.
        """
        if isinstance(amount, Quantity):
            return amount
        if isinstance(amount, int) and not isinstance(amount, bool):
            if abs(amount) >= _BEYOND:
                raise _refused("an enormous number", f"longer than {MAX_TEXT} digits; write a smaller amount")
            return cls(nanos=amount * NANO)
        if isinstance(amount, (str, float)):
            return cls.parse(str(amount))
        raise _refused(repr(amount), "not a quantity; write a number or a text such as 500m")

    @property
    def value(self) -> int:
        """The amount in whole units, fractions rounded away from zero."""
        return _away_from_zero(self.nanos, NANO)

    @property
    def milli_value(self) -> int:
        """The amount in thousandths, smaller parts rounded away from zero."""
        return _away_from_zero(self.nanos, NANO // 1000)

    @property
    def is_whole(self) -> bool:
        """Whether the amount has no fraction."""
        return self.nanos % NANO == 0

    def __add__(self, other: Quantity, /) -> Quantity:
        try:
            nanos = self.nanos + other.nanos
        except AttributeError:
            return NotImplemented
        return Quantity(nanos=nanos, format=self.format if self.nanos else other.format)

    def __sub__(self, other: Quantity, /) -> Quantity:
        try:
            nanos = self.nanos - other.nanos
        except AttributeError:
            return NotImplemented
        return Quantity(nanos=nanos, format=self.format if self.nanos else other.format)

    def __lt__(self, other: Quantity, /) -> bool:
        try:
            return self.nanos < other.nanos
        except AttributeError:
            return NotImplemented

    def __le__(self, other: Quantity, /) -> bool:
        try:
            return self.nanos <= other.nanos
        except AttributeError:
            return NotImplemented

    def __gt__(self, other: Quantity, /) -> bool:
        try:
            return self.nanos > other.nanos
        except AttributeError:
            return NotImplemented

    def __ge__(self, other: Quantity, /) -> bool:
        try:
            return self.nanos >= other.nanos
        except AttributeError:
            return NotImplemented

    def __bool__(self) -> bool:
        return bool(self.nanos)

    def __str__(self) -> str:
        """Canonical form, as the Kubernetes API returns it."""
        if self._written or not self.nanos:
            return self._written or "0"
        whole, fraction = divmod(self.nanos, NANO)
        if self.format is QuantityFormat.BINARY_SI and not fraction and abs(whole) >= 1024:
            return _binary_text(whole)
        return _decimal_text(self.nanos, exponents=self.format is QuantityFormat.DECIMAL_EXPONENT)


def _not_nanos(misplaced: tuple[object, ...], nanos: object) -> ConfigurationError:
    if misplaced:
        expected = "nothing without a name: Quantity.of takes numbers and texts, nanos= counts billionths"
        return wrong("Quantity", misplaced[0], expected)
    return wrong(
        "Quantity: nanos", nanos, "a whole number of billionths; Quantity.of takes numbers and texts"
    )


def _read(text: str) -> Quantity:
    found = _SHAPE.fullmatch(text) if 0 < len(text) <= MAX_TEXT else None
    if found is None:
        what = f"longer than {MAX_TEXT} characters" if len(text) > MAX_TEXT else "not a quantity"
        raise _refused(text, f"{what}; write a number with an optional suffix, such as 500m or 2Gi")
    sign, digits, fraction, suffix = found.groups()
    return _Parts(text, -1 if sign == "-" else 1, digits or "0", fraction or "", suffix).quantity()


_parsed = functools.lru_cache(maxsize=1024)(_read)
"""Few texts are written over and over, and a quantity never changes."""


def _refused(text: str, reason: str) -> DecodeError:
    shown = text if len(text) <= 40 else f"{text[:40]}…"
    return DecodeError(f"quantity {shown!r}", [Fault("$", reason)])


@attrs.frozen
class _Parts:
    """A quantity's text, taken apart; digits without leading zeros."""

    text: str
    sign: int
    digits: str
    fraction: str
    suffix: str

    def quantity(self) -> Quantity:
        """Put the parts together."""
        if self.suffix in _BINARY:
            return self._binary(_BINARY[self.suffix])
        power = _DECIMAL.get(self.suffix)
        if power is not None:
            return self._decimal(power, QuantityFormat.DECIMAL_SI)
        exponent = _EXPONENT.fullmatch(self.suffix)
        if exponent is None:
            known = " ".join([*filter(None, _DECIMAL), *_BINARY])
            raise _refused(
                self.text, f"unknown suffix {self.suffix!r}; use one of {known} or an exponent such as e3"
            )
        return self._decimal(int(exponent[1]), QuantityFormat.DECIMAL_EXPONENT)

    def _mantissa(self) -> int:
        return self.sign * int(self.digits + self.fraction)

    def _decimal(self, power: int, form: QuantityFormat) -> Quantity:
        if abs(power) > MAX_EXPONENT:
            raise _refused(self.text, f"exponent {power} is outside -{MAX_EXPONENT} to {MAX_EXPONENT}")
        scale = power - len(self.fraction)
        shown = self.digits + self.fraction
        as_written = (
            len(shown) <= _INT64_DIGITS
            and scale >= -9
            and scale % 3 == 0
            and not shown.endswith("000")
            and not shown.startswith("0")
        )
        shift = scale + 9
        mantissa = self._mantissa()
        nanos = mantissa * 10**shift if shift >= 0 else _away_from_zero(mantissa, 10**-shift)
        return Quantity(nanos=nanos, format=form, written=self.text if as_written else "")

    def _binary(self, power: int) -> Quantity:
        mantissa = self._mantissa() * NANO << power
        nanos = _away_from_zero(mantissa, 10 ** len(self.fraction))
        # Where Kubernetes keeps the text as written: whole, short, and not a multiple of eight.
        room = 15 - len(self.digits) - power * 3 // 10 - 1
        as_written = not self.fraction and room >= 0 and int(self.digits) & 7 != 0
        below_one = 0 < nanos < NANO
        form = QuantityFormat.DECIMAL_SI if below_one else QuantityFormat.BINARY_SI
        return Quantity(nanos=nanos, format=form, written=self.text if as_written else "")


def _away_from_zero(numerator: int, denominator: int) -> int:
    magnitude = -(-abs(numerator) // denominator)
    return magnitude if numerator >= 0 else -magnitude


def _binary_text(whole: int) -> str:
    power = 0
    while whole % 1024 == 0 and power < max(_BINARY_SUFFIX):
        whole //= 1024
        power += 1
    return f"{whole}{_BINARY_SUFFIX.get(power, '')}"


def _decimal_text(nanos: int, *, exponents: bool) -> str:
    power = -9
    while nanos % 10 == 0:
        nanos //= 10
        power += 1
    # Only multiples of three have a suffix, and exponents keep to the same steps.
    short = power % 3 if exponents else max(power % 3, power - max(_DECIMAL_SUFFIX))
    nanos *= 10**short
    power -= short
    if exponents:
        return f"{nanos}e{power}" if power else str(nanos)
    return f"{nanos}{_DECIMAL_SUFFIX[power]}"
