"""What the kit's fakes can be told."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from nodealloc.dsw_asw import Cancel, Reconciler, World
from nodealloc.errors import ConfigurationError
from nodealloc.machine import machine_from_text
from nodealloc.memblocks import MemoryAllocator
from nodealloc.podfacts import PodIdentity
from nodealloc.runtime import ContainerConfig, Listing, SandboxConfig
from nodealloc.testing.dsw_asw import ManualExecutor, MemoryJournal, VirtualClock, check_journal, run_to_rest
from nodealloc.testing.machine import format_mask, write_sysfs
from nodealloc.testing.memblocks import check_books
from nodealloc.testing.runtime import FakeContainerRuntime, check_containers
from nodealloc.testing.topology import FakeAllocator, check_allocator, check_comparison, workload
from nodealloc.testing.volume_plugins import FakeBlockTools, FakeFilesystems, check_filesystems
from nodealloc.testing.volume_sources import FakeConfigSource
from nodealloc.topology import Narrowest, NotYet, NumaTopology, Owner
from tests.unit.test_ports import Counting

GPU = "example.com/gpu"


def test_a_clock_begins_where_it_is_told() -> None:
    """And goes on from there, never back."""
    clock = VirtualClock(7.5)
    clock.advance(0.5)
    assert clock.monotonic_s() == 8.0
    with pytest.raises(ValueError, match="does not go back by 1 s"):
        clock.advance(-1)


def test_whatever_is_still_tried_when_time_is_over_is_said() -> None:
    """A step that never succeeds does not keep a test from ending."""

    class Stubborn(Counting):
        def perform(self, step: object, _cancel: Cancel, /) -> str:
            raise OSError(step)

    desired: World[str, int] = World("desired")
    actual: World[str, int] = World("actual")
    clock, executor = VirtualClock(), ManualExecutor()
    reconciler = Reconciler(Stubborn(), desired=desired, actual=actual, executor=executor, clock=clock)
    desired.put("a", 1)
    with pytest.raises(AssertionError, match="1 steps held off after 30 s"):
        run_to_rest(reconciler, executor, clock, within_s=30.0)
    assert clock.monotonic_s() <= 30.0


def test_a_journal_that_keeps_half_of_a_refused_commit_is_found() -> None:
    """What a journal refuses changes nothing of the rest; what it takes all the same is said."""

    class Strict(MemoryJournal[int]):
        def commit(self, changes: Mapping[str, int | None], /) -> None:
            if -1 in changes.values():
                raise ValueError(changes)
            super().commit(changes)

    class Half(Strict):
        def commit(self, changes: Mapping[str, int | None], /) -> None:
            for name, row in changes.items():
                super().commit({name: row})

    strict, half, loose = Strict(), Half(), MemoryJournal[int]()
    check_journal(strict, lambda: strict.rows, (1, 2), bad=-1)
    with pytest.raises(AssertionError, match="a refused commit changed something"):
        check_journal(half, lambda: half.rows, (1, 2), bad=-1)
    with pytest.raises(AssertionError, match="was taken: -1"):
        check_journal(loose, lambda: loose.rows, (1, 2), bad=-1)


def test_an_allocator_that_waits_is_not_ready() -> None:
    """Until then it has no answer for whoever wants something of it, and passes the check."""
    waiting = FakeAllocator(name=GPU, units={0: 0b11}, waiting_for="a plugin")
    asked = workload("job", {GPU: 1})
    assert waiting.hints(asked.claims) == NotYet(blocker=GPU, message="a plugin")
    assert waiting.hints(workload("other", {"cpu": 1}).claims) == {}
    check_allocator(waiting, asked, NumaTopology(nodes=(0,)))


def test_a_check_that_is_called_wrongly_says_so() -> None:
    """It was told as a call of the user's class that raised where it has to answer."""
    check: Callable[..., None] = check_comparison
    with pytest.raises(
        TypeError, match=r"check_comparison\(\) missing 1 required positional argument: 'numa'"
    ):
        check(Narrowest())


def called_by_others() -> None:
    """A call that fails below the method that is asked: a decorator of the user's is no name for it."""
    raise OSError("cut off")


class Feeds(FakeContainerRuntime):
    """Asked for a listing it fails elsewhere."""

    def listing(self) -> Listing:
        """See `Looks.listing`."""
        called_by_others()
        return super().listing()


class Untold(FakeContainerRuntime):
    """Forgets to answer."""

    listing: Any = lambda _self: None


class Short(FakeContainerRuntime):
    """Takes less than it is asked."""

    inspect: Any = lambda self, uid, /: FakeContainerRuntime.inspect(self, uid)


@pytest.mark.parametrize(
    ("runtime", "says"),
    [
        (Feeds(), r"^listing raised OSError\('cut off'\) where it has to answer$"),
        (Untold(), r"^runtime\.listing\(\)\.pods: AttributeError\(.*'pods'.* is not what the Protocol says$"),
        (Short(), r"^runtime\.inspect\(uid, listed\): TypeError\(.* is not what the Protocol says$"),
    ],
)
def test_a_broken_call_is_named_as_the_check_made_it(runtime: FakeContainerRuntime, says: str) -> None:
    """What is of another kind shows in the check's own lines; which answer that was is said."""
    pod = PodIdentity(uid="u", namespace="default", name="web")
    with pytest.raises(AssertionError, match=says) as told:
        check_containers(runtime, SandboxConfig(pod=pod), ContainerConfig(name="app", image="busybox"))
    assert told.value.__cause__ is not None


def test_a_check_without_its_source_still_says_what_was_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where only compiled files are there."""
    monkeypatch.setattr(linecache, "getlines", lambda *_: [])
    pod = PodIdentity(uid="u", namespace="default", name="web")
    config = ContainerConfig(name="app", image="busybox")
    with pytest.raises(AssertionError, match=r"^listing raised OSError\('cut off'\)"):
        check_containers(Feeds(), SandboxConfig(pod=pod), config)
    with pytest.raises(AssertionError, match=r"^a call: AttributeError"):
        check_containers(Untold(), SandboxConfig(pod=pod), config)


def test_an_allocator_may_hold_something_from_the_start() -> None:
    """What is held is not free, and is given back."""
    held = FakeAllocator(name=GPU, units={0: 0b11}, held={Owner("job", "app"): 0b01})
    assert held.free_on(0) == 1
    assert held.release("job").free_on(0) == 2


def test_filesystems_of_another_type_and_full_ones(tmp_path: Path) -> None:
    """The type is the caller's; a device with any byte on it is not empty."""
    check_filesystems(FakeFilesystems(), FakeBlockTools(), str(tmp_path / "image"), "xfs")
    full = tmp_path / "full"
    full.write_bytes(b"\0" * 100 + b"x")
    assert FakeFilesystems().probe(str(full)) == ""
    assert not FakeFilesystems(grows_online=False).grow(str(full), "/mounted")


def test_an_object_may_be_immutable() -> None:
    """As the source says of it."""
    source = FakeConfigSource()
    source.put("n", "o", {"a": b"1"}, immutable=True)
    found = source.read("n", "o")
    assert found is not None
    assert found.immutable
    source.put("n", "o", None)
    assert source.read("n", "o") is None


def test_masks_are_written_as_kernels_write_them(tmp_path: Path) -> None:
    """Groups of 32 bits, the highest first, none of them left out."""
    assert format_mask(0) == "00000000"
    assert format_mask(1 << 64 | 0xF) == "00000001,00000000,0000000f"
    write_sysfs(machine_from_text("1 socket x 2 cores"), tmp_path)
    assert (tmp_path / "devices/system/cpu/cpu0/topology/package_cpus").read_text() == "00000003\n"


def test_books_that_do_not_add_up_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte that is reserved for nobody is said with the figures."""
    allocator = MemoryAllocator.of(machine_from_text("1 socket x 2 cores, memory=1Gi"))
    check_books(allocator)
    sound = allocator.recorded()
    (node,) = sound.nodes
    table = node.tables["memory"]
    lost = attrs.evolve(table, reserved=table.reserved + 1, free=table.free - 1)
    cooked = attrs.evolve(sound, nodes=(attrs.evolve(node, tables={**node.tables, "memory": lost}),))
    monkeypatch.setattr(type(allocator), "recorded", lambda _: cooked)
    with pytest.raises(AssertionError, match="reserved"):
        check_books(allocator)


def test_fakes_of_another_kind_are_refused_where_they_are_made() -> None:
    """Not by what would be made of them."""
    with pytest.raises(ConfigurationError, match="workload: amounts: expected a mapping"):
        workload("job", "cpu")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=r"FakeAllocator.of: capacity: expected a mapping"):
        FakeAllocator.of("x", {0: "2"})  # type: ignore[dict-item]
    with pytest.raises(ConfigurationError, match=r"FakeAllocator.of: capacity: expected 0 or more units"):
        FakeAllocator.of("x", {0: -1})
