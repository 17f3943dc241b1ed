"""Quantities: parsing, rounding, printing, arithmetic."""

from __future__ import annotations

import pytest

from nodealloc.errors import ConfigurationError, DecodeError
from nodealloc.podspec import Quantity


@pytest.mark.parametrize(
    ("text", "canonical", "value", "milli"),
    [
        ("1500m", "1500m", 2, 1500),
        ("1.5Gi", "1536Mi", 1610612736, 1610612736000),
        ("2e3", "2e3", 2000, 2000000),
        (".5", "500m", 1, 500),
        ("-28m", "-28m", -1, -28),
        ("60307Ti", "60307Ti", 66308247736287232, 66308247736287232000),
        ("1e30", "1e30", 10**30, 10**33),
        ("8192Ei", "8192Ei", 2**73, 2**73 * 1000),
    ],
)
def test_a_quantity_is_exact_at_any_size(text: str, canonical: str, value: int, milli: int) -> None:
    """Value, thousandths and canonical form agree with the exact amount."""
    amount = Quantity.parse(text)
    assert (str(amount), amount.value, amount.milli_value) == (canonical, value, milli)


@pytest.mark.parametrize(
    "text", ["", "abc", "1 Gi", "1gi", "1KB", "1e", "--1", "1..2", "0x10", "٣", "1\n", "1e99999", "9" * 600]
)
def test_what_kubernetes_refuses_is_refused(text: str) -> None:
    """Junk, unknown suffixes and absurd lengths raise one error that says what to write."""
    with pytest.raises(DecodeError) as caught:
        Quantity.parse(text)
    assert caught.value.faults[0].reason


def test_equal_amounts_are_equal_however_they_are_written() -> None:
    """Format and spelling take no part in equality, order or hash."""
    assert Quantity.parse("1Ki") == Quantity.of(1024)
    assert hash(Quantity.parse("1000m")) == hash(Quantity.of(1))
    assert Quantity.parse("999m") < Quantity.of(1) <= Quantity.parse("1.0")


def test_a_sum_keeps_the_family_of_suffixes() -> None:
    """Binary amounts add up to a binary amount; a zero takes the other's family."""
    assert str(Quantity.parse("1Gi") + Quantity.parse("1Gi")) == "2Gi"
    assert str(Quantity.of(0) + Quantity.parse("3Gi")) == "3Gi"
    assert str(Quantity.parse("2Gi") - Quantity.parse("1Gi")) == "1Gi"


def test_numbers_and_quantities_are_taken_as_they_are() -> None:
    """`of` reads what YAML gives: integers, floats and texts; a truth value is none of them."""
    assert [str(Quantity.of(item)) for item in (2, 0.5, "3k", Quantity.of(1))] == ["2", "500m", "3k", "1"]
    with pytest.raises(DecodeError, match="not a quantity"):
        Quantity.of(float("nan"))


@pytest.mark.parametrize("wrong", [2, "2Gi", 2.0])
def test_an_amount_without_its_name_is_refused(wrong: object) -> None:
    """Two of something was meant, and two billionths would have been made; both remedies are named."""
    with pytest.raises(ConfigurationError, match=r"Quantity\.of takes numbers and texts, nanos="):
        Quantity(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [2.0, "2", True, None])
def test_billionths_are_whole(wrong: object) -> None:
    """A part of a billionth is no amount."""
    with pytest.raises(ConfigurationError, match="nanos: expected a whole number of billionths"):
        Quantity(nanos=wrong)  # type: ignore[arg-type]
    assert Quantity(nanos=2) == Quantity.parse("2n")
