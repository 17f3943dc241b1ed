"""Laws of quantities and of pod-level arithmetic."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodealloc.errors import DecodeError
from nodealloc.podspec import Container, Pod, Quantity, QuantityFormat, effective_requests

amounts = st.builds(Quantity, nanos=st.integers(-(10**30), 10**30), format=st.sampled_from(QuantityFormat))


@given(amounts)
def test_the_canonical_form_reads_back(amount: Quantity) -> None:
    """Printing loses nothing, in any family of suffixes."""
    assert Quantity.parse(str(amount)) == amount


@given(st.text(max_size=30) | st.text("0123456789.+-eEkKMGTPimun ", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text raises anything but `DecodeError`, and what is read prints and reads back."""
    try:
        amount = Quantity.parse(text)
    except DecodeError:
        return
    assert Quantity.parse(str(amount)) == amount


@given(amounts, amounts)
def test_addition_is_exact(first: Quantity, second: Quantity) -> None:
    """What is added can be taken away again."""
    assert first + second - second == first
    assert (first < second) == (second > first) == (first.nanos < second.nanos)


containers = st.builds(
    lambda name, cpu, restartable: Container(
        name=name, requests={"cpu": Quantity.of(cpu)}, restartable=restartable
    ),
    st.uuids().map(str),
    st.integers(0, 8),
    st.booleans(),
)


@given(st.lists(containers, max_size=5), st.lists(containers, min_size=1, max_size=4))
def test_a_pod_needs_what_it_holds_at_its_peak(init: list[Container], main: list[Container]) -> None:
    """Walking through the pod's life never finds more held than the effective request."""
    pod = Pod(uid="u", init_containers=tuple(init), containers=tuple(main))
    cpu = [container.requests["cpu"].value for container in (*init, *main)]
    sidecars, peak = 0, 0
    for container, wanted in zip(init, cpu, strict=False):
        peak = max(peak, sidecars + wanted)
        sidecars += wanted if container.restartable else 0
    peak = max(peak, sidecars + sum(cpu[len(init) :]))
    assert effective_requests(pod)["cpu"].value == peak
