"""Hypothesis strategies for cgroup names, limits, reservations and pods with CPU and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from nodealloc.cgroups import NO_LIMIT, CgroupName, Limits
from nodealloc.cgroups._convert import MAX_SHARES, MIN_QUOTA_US, MIN_SHARES
from nodealloc.idset import CPUSet, NodeSet
from nodealloc.podspec import Container, Pod, Quantity

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

__all__ = ["cgroup_names", "cgroup_pods", "limits"]

_PART = "[a-z0-9]([a-z0-9-]{0,12}[a-z0-9])?"
_PAGE = 4096


def cgroup_names(*, max_depth: int = 4) -> SearchStrategy[CgroupName]:
    """Names that both spellings can write, the root among them."""
    part = st.from_regex(_PART, fullmatch=True).filter(lambda text: text != "tasks")
    return st.lists(part, max_size=max_depth).map(lambda parts: CgroupName(tuple(parts)))


@st.composite
def limits(draw: DrawFn) -> Limits:
    """Limits that v1 and v2 both have, each field asked for or not."""
    quota = draw(st.none() | st.just(NO_LIMIT) | st.integers(MIN_QUOTA_US, 10**6))
    period = draw(st.none() | st.integers(1000, 10**6)) if quota is not None else None
    pages = st.just(NO_LIMIT) | st.integers(1, 1 << 24).map(lambda count: count * _PAGE)
    return Limits(
        cpu_shares=draw(st.none() | st.integers(MIN_SHARES, MAX_SHARES)),
        cpu_quota_us=quota,
        cpu_period_us=period,
        memory_bytes=draw(st.none() | pages),
        pids=draw(st.none() | st.just(NO_LIMIT) | st.integers(1, 10**6)),
        cpus=draw(st.none() | st.sets(st.integers(0, 63), min_size=1).map(CPUSet)),
        mems=draw(st.none() | st.sets(st.integers(0, 7), min_size=1).map(NodeSet)),
        hugepage_bytes=draw(
            st.dictionaries(st.sampled_from([2 << 20, 1 << 30]), st.integers(0, 64).map(lambda n: n << 30))
        ),
    )


@st.composite
def _containers(draw: DrawFn) -> Container:
    def amounts() -> dict[str, Quantity]:
        cpu = draw(st.none() | st.integers(1, 8000))
        memory = draw(st.none() | st.integers(1 << 20, 1 << 32))
        found = {"cpu": Quantity.of(f"{cpu}m")} if cpu is not None else {}
        return found | ({"memory": Quantity.of(memory)} if memory is not None else {})

    limited = amounts()
    # As a manifest is read: a request that is missing follows the limit.
    return Container(name="x", requests=limited | (amounts() if draw(st.booleans()) else {}), limits=limited)


def _named(containers: list[Container], prefix: str, *, restartable: bool = False) -> tuple[Container, ...]:
    return tuple(
        Container(name=f"{prefix}-{at}", requests=each.requests, limits=each.limits, restartable=restartable)
        for at, each in enumerate(containers)
    )


@st.composite
def cgroup_pods(draw: DrawFn) -> list[Pod]:
    """Pods of all classes with different uids."""
    uids = draw(
        st.lists(st.from_regex("[a-f0-9]{4}(-[a-f0-9]{4})?", fullmatch=True), unique=True, max_size=6)
    )
    return [
        Pod(
            uid=uid,
            init_containers=_named(
                draw(st.lists(_containers(), max_size=1)), "init", restartable=draw(st.booleans())
            ),
            containers=_named(draw(st.lists(_containers(), min_size=1, max_size=3)), "app"),
        )
        for uid in uids
    ]
