"""Admission into a ledger: nothing that happens meanwhile is lost, and a snapshot knows who is there."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from operator import methodcaller
from pathlib import Path

import attrs
import pytest

from nodealloc.checkpoint import KUBELET_FORMATS, FileStore, _pod_devices
from nodealloc.checkpoint._fnv import fnv1a32
from nodealloc.cpuset import CpuAllocator
from nodealloc.devices import (
    Capacity,
    Device,
    DeviceAllocator,
    DeviceLedger,
    DeviceList,
    Inventory,
    PluginOptions,
    _ledger,
)
from nodealloc.devices.plugins import DevicePlugins
from nodealloc.errors import RetryableError
from nodealloc.machine import machine_from_text
from nodealloc.podspec import Container, Pod, Quantity
from nodealloc.testing.devices import FakePlugin, wait_until
from nodealloc.topology import (
    Feasibility,
    NumaTopology,
    Owner,
    Placed,
    Policy,
    Refusal,
    Snapshot,
    Workload,
    admit,
    explain,
)
from nodealloc.verdicts import NotYet

GPU = "example.com/gpu"
NODE = Snapshot(numa=NumaTopology(nodes=(0, 1)))


def pod(uid: str, count: int = 1, resource: str = GPU) -> Pod:
    """A pod that wants so many devices."""
    return Pod(uid=uid, containers=(Container(name="c", requests={resource: Quantity.of(count)}),))


def inventory(*devices: Device, generation: int = 1, resource: str = GPU) -> Inventory:
    """A plugin that serves these."""
    listed = DeviceList.of(devices, nodes=(0, 1))
    blank = Inventory(resource=resource).registered(generation, now_s=0.0)
    return blank.listed(generation, listed, PluginOptions(), now_s=0.0)


def ledger_of(*devices: Device) -> DeviceLedger:
    """A ledger whose plugin serves these."""
    return DeviceLedger(DeviceAllocator(nodes=(0, 1)).with_inventory(inventory(*devices)))


def placed(verdict: object) -> Placed:
    """A verdict that has to be yes."""
    assert isinstance(verdict, Placed), verdict
    return verdict


def held(ledger: DeviceLedger, workload: str) -> frozenset[str]:
    """Devices of a pod."""
    grants = ledger.current().grants.get(workload, {})
    return frozenset(identity for grant in grants.values() for identity in grant.ids)


def test_what_happens_during_an_admission_stands() -> None:
    """Health, a release, a plugin's answer, while a plugin is asked: none of it is undone."""
    ledger = ledger_of(Device("a"), Device("b"), Device("c"), Device("d"))
    for uid in ("gone", "stays"):
        placed(ledger.admit(NODE, pod(uid)))
    sick = inventory(Device("a"), Device("b"), Device("c", "Unhealthy"), Device("d"))

    def meddle(_outcome: DeviceAllocator) -> bool:
        ledger.alter(lambda allocator: allocator.with_inventory(sick))
        ledger.release("gone")
        ledger.alter(lambda allocator: allocator.with_response(Owner("stays", "c"), GPU, b"answer"))
        return False

    placed(ledger.admit(NODE, pod("new", 2), ask=meddle))
    after = ledger.current()
    assert after.inventories[GPU].capacity == Capacity(4, 3)
    assert set(after.grants) == {"stays", "new"}
    assert after.grants["stays"]["c", GPU].response == b"answer"
    assert held(ledger, "new") == {"a", "d"}


def test_a_plugin_that_went_away_during_an_admission_stays_away() -> None:
    """The answer is *not yet*, and nothing is granted."""
    ledger = ledger_of(Device("a"))

    def meddle(_outcome: DeviceAllocator) -> bool:
        ledger.alter(lambda one: one.with_inventory(one.inventories[GPU].ended(1, "it died", now_s=1.0)))
        return False

    assert isinstance(ledger.admit(NODE, pod("p"), ask=meddle), NotYet)
    assert ledger.current().inventories[GPU].trouble == "it died"
    assert ledger.current().grants == {}


def test_a_plugins_advice_is_followed_and_not_kept() -> None:
    """As many rounds as its questions take; nothing of them is remembered."""
    plugin = FakePlugin([Device("a"), Device("b")], options=PluginOptions(preferred_allocation=True))
    ledger = DeviceLedger(DeviceAllocator(nodes=(0, 1)))
    with DevicePlugins(ledger, connect=lambda _socket: plugin) as plugins:
        plugins.register(GPU, "/s", ["v1beta1"])
        wait_until(lambda: plugins.capacity()[GPU].allocatable == 2)
        verdict = placed(ledger.admit(NODE, pod("p"), ask=plugins.ask))
    assert held(ledger, "p") == {"b"}
    for allocator in (ledger.current(), verdict.snapshot[DeviceAllocator]):
        assert (dict(allocator.answers), allocator.unanswered) == ({}, ())


def test_a_snapshot_knows_who_is_admitted() -> None:
    """So what would help a refused pod is told from what never will."""
    ledger = ledger_of(Device("a", numa_nodes=1), Device("b", numa_nodes=2), Device("c", numa_nodes=2))
    node = Snapshot(numa=NumaTopology(nodes=(0, 1)), policy=Policy.parse("single-numa-node"))
    ledger.alter(lambda one: one.with_inventory(inventory(Device("b", numa_nodes=2), generation=2)))
    placed(ledger.admit(node, pod("p1")))
    both = inventory(Device("b", numa_nodes=2), Device("c", numa_nodes=2), generation=3)
    ledger.alter(lambda one: one.with_inventory(both))
    assert set(ledger.snapshot(node).admitted) == {"p1"}
    refused = ledger.admit(node, pod("p2", 2))
    assert isinstance(refused, Refusal)
    assert explain(refused).feasibility is Feasibility.NO_ROOM
    ledger.release("p1")
    assert ledger.snapshot(node).admitted == {}
    placed(ledger.admit(node, pod("p2", 2)))


def test_after_a_restart_who_holds_devices_is_admitted_again(tmp_path: Path) -> None:
    """With the devices that it has, before any plugin is there; others have to wait."""
    begin = DeviceAllocator(nodes=(0, 1))
    with FileStore(tmp_path, KUBELET_FORMATS) as store:
        ledger = DeviceLedger(begin, store=store)
        ledger.alter(lambda one: one.with_inventory(inventory(Device("a", numa_nodes=2))))
        first = placed(ledger.admit(NODE, pod("p")))
    with FileStore(tmp_path, KUBELET_FORMATS) as store:
        ledger = DeviceLedger.load(begin, store, now_s=0.0)
        again = placed(ledger.admit(NODE, pod("p")))
        assert again.repeated
        assert not first.repeated
        assert again.affinity["c"].affinity == 2
        assert held(ledger, "p") == {"a"}
        assert isinstance(ledger.admit(NODE, pod("q")), NotYet)


LARGE = tuple(Device(f"{number:04}-{'x' * 8}") for number in range(2_000))
SMALL = "example.com/nic"


@attrs.define
class Meanwhile:
    """Something that another thread does at some moment of an admission."""

    act: Callable[[], object]
    times: int = 1
    went_through: list[bool] = attrs.field(factory=list[bool])
    threads: list[threading.Thread] = attrs.field(factory=list[threading.Thread])

    def __call__(self) -> None:
        """Have it done, as often as said; what waits for the admission's own lock does not go through."""
        if len(self.went_through) < self.times:
            self.went_through.append(False)
            other = threading.Thread(target=self.act, daemon=True)
            self.threads.append(other)
            other.start()
            other.join(2)
            self.went_through[-1] = not other.is_alive()


def at_decisions(monkeypatch: pytest.MonkeyPatch, uid: str, act: Callable[[], None]) -> None:
    """Do something after each decision about a pod."""

    def deciding(node: Snapshot, workload: Workload) -> object:
        verdict = admit(node, workload)
        if workload.key == uid:
            act()
        return verdict

    monkeypatch.setattr(_ledger, "admit", deciding)


def at_hashing(monkeypatch: pytest.MonkeyPatch, uid: str, act: Callable[[], None]) -> None:
    """Do something whenever what is large is worked out."""

    def hashing(data: bytes, /, *, start: int) -> int:
        if len(data) > 10_000 and uid.encode() in data:
            act()
        return fnv1a32(data, start=start)

    monkeypatch.setattr(_pod_devices, "fnv1a32", hashing)


def stored_ledger(store: FileStore) -> DeviceLedger:
    """With many devices of one resource, and two of another."""
    nics = inventory(Device("a"), Device("b"), resource=SMALL)
    begin = DeviceAllocator(nodes=(0, 1)).with_inventory(inventory(*LARGE))
    return DeviceLedger(begin.with_inventory(nics), store=store)


@pytest.mark.parametrize("moment", [at_decisions, at_hashing])
def test_others_go_on_while_a_large_grant_is_decided_and_written_out(
    moment: Callable[[pytest.MonkeyPatch, str, Callable[[], None]], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another pod is in before the large one is; both are remembered."""
    with FileStore(tmp_path, KUBELET_FORMATS) as store:
        ledger = stored_ledger(store)
        other = Meanwhile(lambda: ledger.admit(NODE, pod("other", 1, SMALL)))
        moment(monkeypatch, "large", other)
        placed(ledger.admit(NODE, pod("large", 1_900)))
        assert other.went_through == [True]
    with FileStore(tmp_path, KUBELET_FORMATS) as store:
        again = DeviceLedger.load(DeviceAllocator(nodes=(0, 1)), store, now_s=0.0)
        assert again.current().grants == ledger.current().grants
        assert (len(held(again, "large")), len(held(again, "other"))) == (1_900, 1)


def test_who_was_overtaken_decides_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the other took is not granted a second time."""
    ledger = ledger_of(Device("a"), Device("b"))
    other = Meanwhile(lambda: ledger.admit(NODE, pod("other")))
    at_decisions(monkeypatch, "slow", other)
    assert isinstance(ledger.admit(NODE, pod("slow", 2)), Refusal)
    assert other.went_through == [True]
    assert set(ledger.current().grants) == {"other"}
    assert len(held(ledger, "other")) == 1


def test_who_is_overtaken_again_and_again_decides_at_last_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last try has others wait, and what was written out before stands."""
    worked_out: list[int] = []
    with FileStore(tmp_path, KUBELET_FORMATS) as store:
        ledger = stored_ledger(store)
        numbers = iter(range(100))
        placed(ledger.admit(NODE, pod("other", 1, SMALL)))

        def act() -> None:
            said = str(next(numbers)).encode()
            ledger.alter(lambda one: one.with_response(Owner("other", "c"), SMALL, said))

        busy = Meanwhile(act, times=100)
        at_decisions(monkeypatch, "large", busy)
        at_hashing(monkeypatch, "large", lambda: worked_out.append(1))
        placed(ledger.admit(NODE, pod("large", 1_900)))
        busy.threads[-1].join()
    tries = len(busy.went_through)
    assert busy.went_through == [True] * (tries - 1) + [False]
    assert tries == _ledger._FREE_TRIES + 1
    assert worked_out == [1]


class FullDisk(DeviceLedger):
    """A ledger whose store takes nothing."""

    def alter(
        self, change: Callable[[DeviceAllocator], DeviceAllocator], /
    ) -> tuple[DeviceAllocator, DeviceAllocator]:
        """See `AllocatorKeeper`."""
        raise RetryableError("the disk is full", after_s=7.0)


def test_while_the_store_takes_nothing_the_answer_is_not_yet() -> None:
    """Nothing is granted that is not remembered."""
    ledger = FullDisk(DeviceAllocator(nodes=(0, 1)).with_inventory(inventory(Device("a"))))
    verdict = ledger.admit(NODE, pod("p"))
    assert verdict == NotYet(blocker="store", message="the disk is full", after_s=7.0)
    assert ledger.current().grants == {}


def test_a_ledger_takes_devices_alone() -> None:
    """What else a node hands out, nobody would remember here."""
    cpus = CpuAllocator.of(machine_from_text("4 cores"), reserved=1)
    node = Snapshot(numa=NumaTopology(nodes=(0,)), allocators=(cpus,))
    with pytest.raises(ValueError, match="NodeAllocator"):
        DeviceLedger(DeviceAllocator()).admit(node, pod("p"))


def test_many_admissions_at_once_give_no_device_twice() -> None:
    """Each decides on what the one before has left, while a plugin's list changes under them."""
    ledger = ledger_of(*(Device(f"d{number}") for number in range(8)))
    done = threading.Event()

    def flap() -> None:
        lists = [inventory(*(Device(f"d{number}") for number in range(8 + extra))) for extra in (0, 1)]
        while not done.wait(0.001):
            for one in lists:
                ledger.alter(methodcaller("with_inventory", one))

    def come(number: int) -> None:
        placed(ledger.admit(NODE, pod(f"p{number}"), ask=lambda _outcome: False))

    flapping = threading.Thread(target=flap)
    flapping.start()
    crowd = [threading.Thread(target=come, args=(number,)) for number in range(8)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    done.set()
    flapping.join()
    ids = [identity for number in range(8) for identity in held(ledger, f"p{number}")]
    assert len(ids) == len(set(ids)) == 8


def test_whoever_only_decides_loads_no_grpc() -> None:
    """A scheduler imports the allocator and its ledger; what talks to plugins is a package of its own."""
    code = """
import sys
from nodealloc.devices import DeviceAllocator, DeviceLedger, Inventory, PluginUnavailableError
from nodealloc.devices._state import remembered
assert DeviceLedger(DeviceAllocator()).current() == DeviceAllocator()
loaded = [name for name in sys.modules if name == "grpc" or name.startswith("google.protobuf")]
assert not loaded, loaded
import nodealloc.devices.plugins
assert "grpc" in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stderr, done.returncode) == ("", 0)
