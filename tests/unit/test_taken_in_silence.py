"""Wrong values on which nothing breaks at once: they would mean something else later, or nothing at all."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from nodealloc.cgroups import CgroupMount, PodOptions, TreeOptions
from nodealloc.checkpoint import JsonCheckpoint, MemoryManagerState, MemoryStore
from nodealloc.cpuset import CpuAllocator
from nodealloc.devices import Deadlines, DeviceAllocator
from nodealloc.dsw_asw import Group, Near
from nodealloc.errors import ConfigurationError
from nodealloc.machine import draw_svg, draw_text, machine_from_text
from nodealloc.node import FORMATS, NodeAllocator
from nodealloc.pluginreg import PluginRegistrar
from nodealloc.podfacts import Exited, HostPort
from nodealloc.testing.dsw_asw import ManualExecutor
from nodealloc.testing.podfacts import FakePods
from nodealloc.topology import Policy, Snapshot
from nodealloc.volumes import VolumeManager

MACHINE = machine_from_text("4 cores")
CPUS = CpuAllocator.of(MACHINE)
SNAPSHOT = Snapshot.of(MACHINE, allocators=(CPUS,))
STORE = MemoryStore(FORMATS)


def wrong(value: object) -> Any:
    """A value of a type that does not belong there."""
    return value


SILENT: Mapping[str, tuple[Callable[[], object], str]] = {
    "an allocation that ends before it begins": (lambda: Deadlines(allocate_s=-1), "allocate_s"),
    "a retry in the past": (lambda: DeviceAllocator(retry_s=-1), "retry_s"),
    "no patience": (lambda: NodeAllocator(SNAPSHOT, STORE, patience_s=-1), "patience_s"),
    "a view of nothing": (lambda: NodeAllocator(SNAPSHOT, STORE, view=wrong("node")), "view"),
    "pods that are a number": (lambda: VolumeManager([], pods=wrong(5), executor=ManualExecutor()), "pods"),
    "a deadline in words": (
        lambda: VolumeManager([], pods=FakePods(), executor=ManualExecutor(), deadline_s=wrong("2m")),
        "deadline_s",
    ),
    "a neighbour of a number": (lambda: Near(wrong(5), lambda key: [key]), "world"),
    "a record's kind of a number": (lambda: JsonCheckpoint(kind=wrong(5), version=1, value=None), "kind"),
    "a version of a half": (
        lambda: JsonCheckpoint(kind="a", version=wrong(1.5), value=None),
        "version",
    ),
    "fewer than no nodes": (lambda: Policy(max_nodes=-1), "max_nodes"),
    "half a step": (lambda: Policy(search_steps=wrong(1.5)), "search_steps"),
    "a picture as wide as a truth": (lambda: draw_text(MACHINE, width=wrong(True)), "width"),
    "an endless picture": (lambda: draw_svg(MACHINE, width=wrong(math.inf)), "width"),
    "memory below 0": (lambda: PodOptions(allocatable_memory_bytes=-1), "allocatable_memory_bytes"),
    "a tree below 0": (
        lambda: TreeOptions(allocatable_memory_bytes=-1),
        "allocatable_memory_bytes",
    ),
    "a registrar of no sockets": (lambda: PluginRegistrar("/run", {}, most_sockets=0), "most_sockets"),
    "a code of a half": (lambda: Exited(code=wrong(1.5)), "code"),
    "a port that is a truth": (lambda: HostPort(port=wrong(True)), "port"),
    "a mount of nothing": (lambda: CgroupMount(path=wrong(None), version=2, controllers=()), "path"),
    "a file's policy of a number": (lambda: MemoryManagerState(policy_name=wrong(5)), "policy_name"),
    "a listener of a number": (lambda: Group(name="a").add_listener(wrong(5)), "on_work"),
    "a claim that is a text": (lambda: CPUS.hints(wrong(("app",))), "claims"),
    "an owner that is a text": (lambda: CPUS.confinement(wrong("job")), "Owner"),
    "changes of None": (lambda: STORE.commit(wrong(None)), "changes"),
}


@pytest.mark.parametrize("name", SILENT)
def test_a_wrong_value_is_refused_where_it_is_given(name: str) -> None:
    """Its argument is named, so that nobody looks for it where it shows."""
    call, argument = SILENT[name]
    with pytest.raises(ConfigurationError, match=argument):
        call()
