"""The three verdicts that everybody who judges answers with."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Mapping
from typing import cast

import attrs
import pytest

from nodealloc.verdicts import Admitted, Figure, NotYet, Refused, Verdict

PORT = Refused(reason="NodePorts", message="host port 80 is taken", figures={"port": 80, "protocol": "TCP"})
WAITING = NotYet(blocker="example.com/gpu", message="its plugin has not registered", after_s=2.5)


@attrs.frozen(kw_only=True)
class _Tainted(Refused):
    """A refusal with a field of its own, as any handler may make one."""

    taint: str


TAINT = _Tainted(reason="Taint", message="the node is tainted", taint="dedicated=db:NoSchedule")


@pytest.mark.parametrize("verdict", [Admitted(), PORT, TAINT, WAITING], ids=lambda one: type(one).__name__)
def test_verdicts_are_values(verdict: Verdict) -> None:
    """Copies, pickles and equal ones are equal and hash alike."""
    for other in (copy.copy(verdict), copy.deepcopy(verdict), pickle.loads(pickle.dumps(verdict))):  # noqa: S301
        assert other == verdict
        assert hash(other) == hash(verdict)
        assert repr(other) == repr(verdict)
        assert str(other) == str(verdict)


def test_verdicts_say_what_they_mean() -> None:
    """One line each, from the fields alone."""
    assert str(Admitted()) == "admitted"
    assert str(PORT) == "NodePorts: host port 80 is taken"
    assert str(WAITING) == "not yet, example.com/gpu: its plugin has not registered (ask again after 2.5 s)"
    assert "'port': 80" in repr(PORT)


def test_figures_are_a_copy_that_nobody_changes() -> None:
    """What the caller does to the mapping later does not reach the verdict, and nobody can write to it."""
    given: dict[str, Figure] = {"free": 1}
    verdict = Refused(reason="OutOfcpu", message="too few", figures=given)
    given["free"] = 9
    assert verdict.figures == {"free": 1}
    with pytest.raises(TypeError, match="does not support item assignment"):
        cast("dict[str, Figure]", verdict.figures)["free"] = 9


def test_figures_are_shared_by_changed_copies() -> None:
    """A changed copy costs no second mapping."""
    assert attrs.evolve(PORT, message="taken").figures is PORT.figures
    assert Refused(reason="R", message="m").figures is Refused(reason="S", message="n").figures


def test_the_order_of_figures_does_not_matter() -> None:
    """Equal figures in another order are equal, and hash alike."""
    turned = attrs.evolve(PORT, figures={"protocol": "TCP", "port": 80})
    assert turned == PORT
    assert hash(turned) == hash(PORT)
    assert turned != attrs.evolve(PORT, figures={"port": 81, "protocol": "TCP"})


@pytest.mark.parametrize(
    ("figures", "error"),
    [
        ({"": 1}, ValueError),
        ({1: 1}, ValueError),
        ({"free": math.nan}, ValueError),
        ({"free": math.inf}, ValueError),
        ({"free": None}, TypeError),
        ({"free": [1]}, TypeError),
    ],
)
def test_figures_that_make_no_sense_are_refused(figures: object, error: type[Exception]) -> None:
    """A figure has a name, and is a finite number or text."""
    with pytest.raises(error, match="figure"):
        Refused(reason="R", message="m", figures=cast("Mapping[str, Figure]", figures))


@pytest.mark.parametrize("text", ["", None, 7])
def test_words_are_needed(text: str) -> None:
    """A reason, a message and a blocker are never empty."""
    with pytest.raises(ValueError, match="reason"):
        Refused(reason=text, message="m")
    with pytest.raises(ValueError, match="message"):
        Refused(reason="R", message=text)
    with pytest.raises(ValueError, match="blocker"):
        NotYet(blocker=text, message="m")
    with pytest.raises(ValueError, match="message"):
        NotYet(blocker="b", message=text)


@pytest.mark.parametrize("after_s", [-1, -0.1, math.nan, math.inf, "1"])
def test_waiting_takes_finite_seconds(after_s: float) -> None:
    """Not before now, and not for ever; at once is allowed."""
    with pytest.raises(ValueError, match="after_s"):
        NotYet(blocker="b", message="m", after_s=after_s)
    assert NotYet(blocker="b", message="m", after_s=0).after_s == 0


def test_a_subclass_is_told_by_the_three() -> None:
    """Whoever asks needs no other names; a field of one's own makes it another value."""
    assert isinstance(TAINT, Refused)
    assert TAINT != Refused(reason=TAINT.reason, message=TAINT.message)
