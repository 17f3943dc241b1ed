"""Hypothesis strategies for the kubelet's states and for records."""

from __future__ import annotations

from hypothesis import strategies as st

from nodealloc.checkpoint import (
    CpuManagerState,
    DeviceManagerState,
    Json,
    MemoryBlock,
    MemoryManagerState,
    MemoryNode,
    MemoryTable,
    PodDevices,
)
from nodealloc.checkpoint._cpu_state import CpuLayout
from nodealloc.checkpoint._memory_state import MemoryLayout

__all__ = [
    "cpu_lists",
    "cpu_manager_states",
    "device_manager_states",
    "json_values",
    "memory_manager_states",
    "names",
]


def names() -> st.SearchStrategy[str]:
    """Names that a pod, a container or a device may have, awkward ones included."""
    usual = st.sampled_from(
        ["app", "side-car", "init_0", "größe", "<html>&", 'a"quote', "back\\slash", "\u2028"]
    )
    text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x7f"), max_size=8)
    return usual | text


def cpu_lists() -> st.SearchStrategy[str]:
    """Linux lists of CPU numbers, not always in normal form."""
    part = st.integers(0, 300).map(str) | st.tuples(st.integers(0, 99), st.integers(0, 20)).map(
        lambda pair: f"{pair[0]}-{pair[0] + pair[1]}"
    )
    return st.lists(part, max_size=4).map(",".join)


def cpu_manager_states() -> st.SearchStrategy[CpuManagerState]:
    """States of the CPU manager, in every layout."""
    entries = st.dictionaries(names(), st.dictionaries(names(), cpu_lists(), max_size=3), max_size=4)

    def of(layout: CpuLayout) -> st.SearchStrategy[CpuManagerState]:
        pods = st.dictionaries(names(), cpu_lists(), min_size=1, max_size=3)
        return st.builds(
            CpuManagerState,
            policy_name=st.sampled_from(["none", "static"]),
            default_cpuset=cpu_lists(),
            entries=entries,
            pod_entries=st.just({}) if layout is CpuLayout.V2 else pods,
            layout=st.just(layout),
        )

    return st.sampled_from(CpuLayout).flatmap(of)


def _sizes() -> st.SearchStrategy[int]:
    return st.integers(0, 2**64 - 1)


def memory_manager_states() -> st.SearchStrategy[MemoryManagerState]:
    """States of the memory manager, in every layout, with the kubelet's nils."""
    kinds = st.sampled_from(["memory", "hugepages-2Mi", "hugepages-1Gi"])
    ids = st.none() | st.lists(st.integers(0, 8), max_size=3).map(tuple)
    table = st.builds(
        MemoryTable,
        total=_sizes(),
        system_reserved=_sizes(),
        allocatable=_sizes(),
        reserved=_sizes(),
        free=_sizes(),
    )
    node = st.builds(
        MemoryNode,
        number_of_assignments=st.integers(0, 99),
        memory_map=st.none() | st.dictionaries(kinds, table, max_size=3),
        cells=ids,
    )
    block = st.builds(MemoryBlock, numa_affinity=ids, type=kinds, size=_sizes())
    blocks = st.none() | st.lists(block, max_size=3).map(tuple)
    entries = st.dictionaries(names(), st.dictionaries(names(), blocks, max_size=3), max_size=3)

    def of(layout: MemoryLayout) -> st.SearchStrategy[MemoryManagerState]:
        pods = st.dictionaries(names(), blocks, min_size=1, max_size=3)
        return st.builds(
            MemoryManagerState,
            policy_name=st.sampled_from(["None", "Static"]),
            machine_state=st.none() | st.dictionaries(st.integers(0, 40), node, max_size=3),
            entries=entries,
            pod_entries=st.just({}) if layout is MemoryLayout.V1 else pods,
            layout=st.just(layout),
        )

    return st.sampled_from(MemoryLayout).flatmap(of)


def device_manager_states() -> st.SearchStrategy[DeviceManagerState]:
    """States of the device manager in today's layout, with the kubelet's nils."""
    ids = st.none() | st.lists(names(), max_size=3).map(tuple)
    entry = st.builds(
        PodDevices,
        pod_uid=names(),
        container_name=names(),
        resource_name=names(),
        device_ids=st.none() | st.dictionaries(st.integers(-1, 40), ids, max_size=3),
        alloc_resp=st.none() | st.binary(max_size=20),
    )
    return st.builds(
        DeviceManagerState,
        pod_device_entries=st.none() | st.lists(entry, max_size=3).map(tuple),
        registered_devices=st.none() | st.dictionaries(names(), ids, max_size=3),
    )


def json_values() -> st.SearchStrategy[Json]:
    """Values that a `JsonCheckpoint` may carry."""
    leaves = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.text()
        | st.floats(allow_nan=False, allow_infinity=False)
    )
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=10,
    )
