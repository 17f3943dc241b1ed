"""Nobody is kept waiting: a node whose runtime, advisor, store or allocators are slow, and many callers."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import attrs
import pytest

from nodealloc.checkpoint import Checkpoint, Contents, MemoryStore, StoreFailedError
from nodealloc.cpuset import CpuAllocator
from nodealloc.devices import Device, DeviceAllocator, DeviceList, Inventory, PluginOptions
from nodealloc.dsw_asw import Summary
from nodealloc.dsw_asw._operations import Operation, Operations
from nodealloc.errors import PermanentError, RetryableError
from nodealloc.machine import machine_from_text
from nodealloc.memblocks import MemoryAllocator
from nodealloc.node import FORMATS, NODE_LIFE, NodeAllocator, RunningContainer, describe, holdings
from nodealloc.node import _holdings as node_holdings
from nodealloc.node._life import NodeState
from nodealloc.podspec import Json
from nodealloc.testing.node import FakeAdvisor, FakeRuntime
from nodealloc.testing.topology import workload
from nodealloc.topology import (
    Admitted,
    Claim,
    Hints,
    NotYet,
    Owner,
    Policy,
    Refusal,
    Restored,
    Shortfall,
    Snapshot,
    TopologyHint,
)

MACHINE = machine_from_text("2 sockets x 8 cores x 2 threads, memory=8Gi")
GPU = "example.com/gpu"
LONG_S = 30.0
"""What would be a hang; nothing here takes as long."""


class HungRuntime(FakeRuntime):
    """A runtime that answers when it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()
        self.answers = threading.Event()
        self.calls = 0

    def running(self) -> Sequence[RunningContainer]:
        """What runs, after a while."""
        self.calls += 1
        self.asked.set()
        assert self.answers.wait(LONG_S)
        return super().running()


class SlowStore(MemoryStore):
    """A store whose commits wait while it is told to, and are written down."""

    def __init__(self, data: Mapping[str, bytes] | None = None) -> None:
        super().__init__(FORMATS, data=data)
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.waits = threading.Event()
        self.fails: BaseException | None = None
        self.keys: list[frozenset[str]] = []

    def commit(self, changes: Mapping[str, Checkpoint | None], /) -> None:
        """Store, when it is let go."""
        self.waits.set()
        assert self.goes_on.wait(LONG_S)
        if self.fails is not None:
            raise self.fails
        super().commit(changes)
        self.keys.append(frozenset(changes))


@attrs.frozen
class Watched:
    """An allocator that grants nothing and calls somebody at each question about hints."""

    asked: Callable[[Claim], None] = attrs.field(eq=False)
    turns: int = 0
    name: str = "watched"

    def hints(self, claims: Sequence[Claim], /) -> Hints:
        """No preference, when the call returns."""
        self.asked(claims[0])
        return {}

    def allocate(self, _claim: Claim, _affinity: TopologyHint, /) -> Watched | Shortfall:
        """Nothing to do."""
        return self

    def release(self, _workload: str, _member: str | None = None, /) -> Watched:
        """Nothing to do."""
        return self

    def remembered(self, _workload: str, /) -> Json:
        """Nothing."""
        return None

    def restored(self, _grants: Mapping[str, Json], /) -> Restored:
        """As it is."""
        return Restored(allocator=self)

    def turned(self) -> Watched:
        """Another value."""
        return attrs.evolve(self, turns=self.turns + 1)


def empty(*more: Watched) -> Snapshot:
    """A node with CPUs, memory and devices, and nothing held."""
    listed = DeviceList.of([Device(f"gpu-{number}") for number in range(8)], nodes=(0, 1))
    known = Inventory(resource=GPU).registered(1, now_s=0.0)
    gpus = DeviceAllocator(nodes=(0, 1)).with_inventory(known.listed(1, listed, PluginOptions(), now_s=0.0))
    cpus = CpuAllocator.of(MACHINE, reserved=2)
    policy = Policy.parse("best-effort")
    return Snapshot.of(MACHINE, policy=policy, allocators=[cpus, MemoryAllocator.of(MACHINE), gpus, *more])


def started(
    store: MemoryStore, *more: Watched, runtime: FakeRuntime | None = None, patience_s: float = LONG_S
) -> NodeAllocator:
    """A node after a clean start, with its plugin there."""
    node = NodeAllocator(empty(*more), store, runtime=runtime, patience_s=patience_s)
    assert node.start().is_clean
    fresh = empty()[DeviceAllocator].inventories[GPU]
    node.allocator(DeviceAllocator).alter(lambda one: one.with_inventory(attrs.evolve(fresh, generation=2)))
    return node


@contextmanager
def beside(call: Callable[[], object]) -> Iterator[threading.Thread]:
    """A call in a thread of its own, which has to have ended at the end."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - told below
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield thread
    thread.join(LONG_S)
    assert not thread.is_alive(), "it hangs"
    if failed:
        raise failed[0]


def flip(node: NodeAllocator) -> None:
    """A plugin lists its devices again, one of them ill."""
    gpus = node.allocator(DeviceAllocator)
    inventory = gpus.current().inventories[GPU]
    devices = attrs.evolve(inventory.devices, healthy=inventory.devices.healthy ^ 1)
    gpus.alter(lambda one: one.with_inventory(attrs.evolve(inventory, devices=devices)))


def test_a_runtime_that_hangs_keeps_nobody() -> None:
    """While one caller waits for it, others admit, bind, release and change devices."""
    runtime = HungRuntime()
    runtime.answers.set()
    node = started(MemoryStore(FORMATS), runtime=runtime)
    for name in ("stale", "web"):
        assert isinstance(node.admit(workload(name, {"cpu": 2, GPU: 1})), Admitted)
    runtime.answers.clear()
    runtime.asked.clear()
    released: list[str] = []
    with beside(lambda: released.extend(node.release_stale({"web", "new"}))):
        assert runtime.asked.wait(LONG_S)
        assert isinstance(node.admit(workload("new", {"cpu": 2})), Admitted)
        assert node.before_start(Owner("new", "app-0"), "1").exclusive
        flip(node)
        node.release("web")
        assert sorted(node.records) == ["new", "stale"]
        runtime.answers.set()
    assert released == ["stale"]


def test_a_runtime_that_hangs_at_the_start_is_asked_once_and_waited_for_by_nobody() -> None:
    """New pods have to wait and are told so; who is recorded comes in; its answer is heard when it comes."""
    store = MemoryStore(FORMATS)
    started(store).admit(workload("web", {"cpu": 2}))
    runtime = HungRuntime()
    node = started(MemoryStore(FORMATS, data=store.data()), runtime=runtime, patience_s=0.001)
    for _ in range(3):
        answer = node.admit(workload("new", {"cpu": 2}))
        assert isinstance(answer, NotYet)
        assert answer.blocker == "runtime"
        assert "silent" in answer.message
    assert isinstance(node.admit(workload("web", {"cpu": 2})), Admitted)
    assert runtime.asked.wait(LONG_S)
    assert runtime.calls == 1
    runtime.answers.set()
    for _ in range(1000):
        answer = node.admit(workload("new", {"cpu": 2}))
        if isinstance(answer, Admitted):
            break
        threading.Event().wait(0.005)
    assert isinstance(answer, Admitted)
    assert runtime.calls == 1


def test_what_a_runtime_raises_is_raised_where_it_was_asked() -> None:
    """A mistake in it is no reason to wait; the next admission asks again."""

    class Broken(FakeRuntime):
        wrong = True

        def running(self) -> Sequence[RunningContainer]:
            if self.wrong:
                raise ZeroDivisionError
            return super().running()

    runtime = Broken()
    node = NodeAllocator(empty(), MemoryStore(FORMATS), runtime=runtime)
    node.start()
    with pytest.raises(ZeroDivisionError):
        node.admit(workload("new", {"cpu": 2}))
    runtime.wrong = False
    assert isinstance(node.admit(workload("new", {"cpu": 2})), Admitted)


def test_where_no_thread_can_be_started_the_next_admission_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is told, and the question is not taken for one under way."""
    node = NodeAllocator(empty(), MemoryStore(FORMATS), runtime=FakeRuntime())

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        node.start()
        with pytest.raises(RuntimeError, match="new thread"):
            node.admit(workload("new", {"cpu": 2}))
    assert isinstance(node.admit(workload("new", {"cpu": 2})), Admitted)


def test_an_admission_that_takes_long_keeps_nobody() -> None:
    """Another pod is released while an allocator thinks; the decision is then made anew, on what is left."""
    thinks, goes_on = threading.Event(), threading.Event()
    asked: list[str] = []

    def think(claim: Claim) -> None:
        asked.append(claim.owner.workload)
        if claim.owner.workload == "slow":
            thinks.set()
            assert goes_on.wait(LONG_S)

    node = started(MemoryStore(FORMATS), Watched(think))
    node.admit(workload("other", {"cpu": 28}))
    answers: list[object] = []
    with beside(lambda: answers.append(node.admit(workload("slow", {"cpu": 2})))):
        assert thinks.wait(LONG_S)
        node.release("other")
        assert "other" not in node.records
        assert isinstance(node.admit(workload("quick", {"cpu": 28})), Admitted)
        goes_on.set()
    assert isinstance(answers[0], Admitted)
    assert asked.count("slow") == 2
    assert sorted(node.records) == ["quick", "slow"]


def test_a_refusal_stands_for_the_node_that_was_asked() -> None:
    """It needs no second decision, whatever happened meanwhile."""
    calls: list[str] = []
    node: NodeAllocator

    def change(claim: Claim) -> None:
        calls.append(claim.owner.workload)
        if claim.owner.workload == "large":
            flip(node)

    node = started(MemoryStore(FORMATS), Watched(change))
    assert isinstance(node.admit(workload("large", {"cpu": 64})), Refusal)
    assert calls == ["large"]


def test_after_three_tries_a_decision_is_made_alone() -> None:
    """Somebody changes the node during each try; the fourth is made while nobody can."""
    calls: list[threading.Thread | None] = []
    node: NodeAllocator

    def disturb(_claim: Claim) -> None:
        other = threading.Thread(target=flip, args=(node,), daemon=True)
        other.start()
        if len(calls) < 3:
            other.join(LONG_S)
        else:
            other.join(0.05)
            assert other.is_alive(), "somebody changed the node while a decision was made alone"
        calls.append(other)

    node = started(MemoryStore(FORMATS), Watched(disturb))
    assert isinstance(node.admit(workload("web", {"cpu": 2})), Admitted)
    assert len(calls) == 4
    for other in calls:
        assert other is not None
        other.join(LONG_S)
        assert not other.is_alive()
    assert list(node.records) == ["web"]


def test_an_advisor_that_hangs_keeps_nobody() -> None:
    """Devices change and pods are released while it is asked."""
    asked, goes_on = threading.Event(), threading.Event()

    class Hung(FakeAdvisor):
        def ask(self, outcome: Snapshot, /) -> bool:
            asked.set()
            assert goes_on.wait(LONG_S)
            return super().ask(outcome)

    node = started(MemoryStore(FORMATS))
    node.admit(workload("old", {"cpu": 2}))
    node.advise_with(Hung())
    with beside(lambda: node.admit(workload("new", {"cpu": 2}))):
        assert asked.wait(LONG_S)
        node.release("old")
        flip(node)
        goes_on.set()
    assert list(node.records) == ["new"]


def test_who_changes_the_view_does_not_wait_for_an_advisor_that_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An agent says on the thread of its passes which pods end: half a second, here a minute, held up all."""
    monkeypatch.setattr(node_holdings, "_LINE_S", 2 * LONG_S)
    asked, goes_on = threading.Event(), threading.Event()

    class Hung(FakeAdvisor):
        def ask(self, outcome: Snapshot, /) -> bool:
            asked.set()
            assert goes_on.wait(LONG_S)
            return super().ask(outcome)

    node = started(MemoryStore(FORMATS))
    old = [f"old{number}" for number in range(5)]
    for one in old:
        node.admit(workload(one, {}))
    node.advise_with(Hung())
    with beside(lambda: node.admit(workload("new", {"cpu": 2}))):
        assert asked.wait(LONG_S)
        with beside(lambda: [node.mark_ending(one) for one in old]):
            pass
        goes_on.set()
    assert all(node.view.pods[one].state.is_ending for one in old)
    assert "new" in node.records


@pytest.mark.parametrize("answers", [0, 2])
def test_with_an_advisor_a_decision_is_made_once_more_for_each_answer(answers: int) -> None:
    """Where nothing is to be asked, once."""
    asked: list[str] = []
    node = started(MemoryStore(FORMATS), Watched(lambda claim: asked.append(claim.owner.workload)))
    advisor = FakeAdvisor(answers)
    node.advise_with(advisor)
    assert isinstance(node.admit(workload("web", {"cpu": 2})), Admitted)
    assert len(asked) == len(advisor.asked) == answers + 1
    assert isinstance(node.admit(workload("web", {"cpu": 2})), Admitted)
    assert len(advisor.asked) == answers + 1, "who is in already is not asked about"


def test_an_advisor_has_the_last_word_on_what_is_kept() -> None:
    """Of a decision; who is in already changes nothing, and nothing is settled of it."""

    class Settling(FakeAdvisor):
        def settled(self, outcome: Snapshot, /) -> Snapshot:
            kept.append(attrs.evolve(outcome, generation=outcome.generation + 100))
            return kept[-1]

    kept: list[Snapshot] = []
    node = started(MemoryStore(FORMATS))
    node.advise_with(Settling())
    for _ in range(2):
        assert isinstance(node.admit(workload("web", {"cpu": 2})), Admitted)
        assert [one.generation for one in kept] == [node.snapshot.generation]


def test_an_advisor_that_puts_its_answers_into_the_node_waits_for_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It did so behind the very decision that it was asked for: half a second, here a minute, each time."""
    monkeypatch.setattr(node_holdings, "_LINE_S", 2 * LONG_S)

    class Answering(FakeAdvisor):
        def ask(self, outcome: Snapshot, /) -> bool:
            flip(node)
            return super().ask(outcome)

    node = started(MemoryStore(FORMATS))
    node.advise_with(Answering(2))
    answers: list[object] = []
    with beside(lambda: answers.append(node.admit(workload("web", {"cpu": 2})))):
        pass
    assert isinstance(answers[0], Admitted)


def test_an_advisor_that_never_rests_is_asked_eight_times() -> None:
    """The pod is admitted with what was said so far."""
    node = started(MemoryStore(FORMATS))
    advisor = FakeAdvisor(100)
    node.advise_with(advisor)
    assert isinstance(node.admit(workload("web", {"cpu": 2})), Admitted)
    assert len(advisor.asked) == 8


def test_who_reads_waits_for_no_disk() -> None:
    """While a commit hangs, the node shows what it held; nothing is answered before it is durable."""
    store = SlowStore()
    node = started(store)
    node.admit(workload("old", {"cpu": 2}))
    before = node.snapshot
    store.goes_on.clear()
    store.waits.clear()
    answers: list[object] = []
    with beside(lambda: answers.append(node.admit(workload("new", {"cpu": 2})))):
        assert store.waits.wait(LONG_S)
        assert node.snapshot is before
        assert list(node.records) == ["old"]
        assert describe(node.snapshot) == describe(before)
        assert not answers
        store.goes_on.set()
    assert sorted(node.records) == ["new", "old"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), PermanentError("closed"), RetryableError("full")])
def test_after_any_exception_a_node_holds_what_it_held(error: BaseException) -> None:
    """Also after Ctrl-C in a commit; the next call goes on."""
    store = SlowStore()
    node = started(store)
    node.admit(workload("old", {"cpu": 2}))
    held, data = node.snapshot, dict(store.data())
    store.fails = error
    for call in (
        lambda: node.release("old"),
        lambda: node.before_start(Owner("old", "app-0"), "1"),
        lambda: node.alter("cpu", lambda one: one.release("old")),
    ):
        with pytest.raises(type(error)):
            call()
    if isinstance(error, RetryableError):
        assert isinstance(node.admit(workload("new", {"cpu": 2})), NotYet)
    else:
        with pytest.raises(type(error)):
            node.admit(workload("new", {"cpu": 2}))
    assert node.snapshot is held
    assert dict(store.data()) == data
    store.fails = None
    assert isinstance(node.admit(workload("new", {"cpu": 2})), Admitted)


def test_two_changes_of_one_record_lose_neither() -> None:
    """A container is bound while its devices are answered for: both are remembered."""
    store = MemoryStore(FORMATS)
    node = started(store)
    owner = Owner("web", "app-0")
    node.admit(workload("web", {"cpu": 2, GPU: 1}))
    calls: list[None] = []

    def answered(one: DeviceAllocator) -> DeviceAllocator:
        calls.append(None)
        if len(calls) == 1:
            node.before_start(owner, "container-1")
        return one.with_response(owner, GPU, b"\x0a\x00")

    node.allocator(DeviceAllocator).alter(answered)
    assert len(calls) == 2
    later = started(MemoryStore(FORMATS, data=store.data()))
    assert later.records["web"].bound == {"app-0": "container-1"}
    assert later.snapshot[DeviceAllocator].grants["web"]["app-0", GPU].response == b"\x0a\x00"


def test_what_was_touched_since_the_runtime_was_asked_is_not_stale() -> None:
    """It may have been started after the answer, which does not list it."""
    nodes: list[NodeAllocator] = []  # none yet where it is asked while one starts

    class Late(FakeRuntime):
        def running(self) -> Sequence[RunningContainer]:
            found = super().running()
            for node in nodes:
                node.before_start(Owner("bound", "app-0"), "1")
                node.admit(workload("admitted", {"cpu": 2}))
            return found

    node = started(MemoryStore(FORMATS), runtime=Late())
    for name in ("bound", "stale"):
        node.admit(workload(name, {"cpu": 2}))
    nodes.append(node)
    assert node.release_stale(()) == ("stale",)
    assert sorted(node.records) == ["admitted", "bound"]


def test_a_start_that_failed_can_be_made_again() -> None:
    """Nothing was loaded; a second start after one that succeeded is refused."""

    class Unreadable(MemoryStore):
        broken = True

        def read(self) -> Contents:
            if self.broken:
                raise StoreFailedError("memory", "read", 5, "input/output error")
            return super().read()

    store = Unreadable(FORMATS)
    node = NodeAllocator(empty(), store)
    with pytest.raises(StoreFailedError):
        node.start()
    assert isinstance(node.admit(workload("web", {"cpu": 2})), NotYet)
    store.broken = False
    assert node.start().is_clean
    with pytest.raises(ValueError, match="started before"):
        node.start()


def test_many_callers_at_once_leave_sound_books() -> None:
    """No CPU and no device twice, as many rows as records, and the next process holds the same."""
    store = SlowStore()
    node = started(store)
    errors: list[BaseException] = []

    def live(seed: int) -> None:
        rng = random.Random(seed)
        try:
            for turn in range(30):
                name = f"{seed}-{turn % 4}"
                if rng.random() < 0.6:
                    asked = workload(
                        name, {"cpu": rng.randint(1, 3), "memory": 1 << 20, GPU: rng.randint(0, 1)}
                    )
                    if isinstance(node.admit(asked), Admitted) and rng.random() < 0.7:
                        node.before_start(Owner(name, "app-0"), f"{name}-{turn}")
                elif rng.random() < 0.7:
                    node.release(name)
                else:
                    flip(node)
        except BaseException as error:  # noqa: BLE001 - told below
            errors.append(error)

    threads = [threading.Thread(target=live, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG_S)
    assert not errors, errors
    held = holdings(node.snapshot)
    cpus = [cpu for one in held for cpu in one.cpus]
    ids = [name for one in held for name in one.ids]
    assert len(cpus) == len(set(cpus))
    assert len(ids) == len(set(ids))
    assert {one.owner.workload for one in held} == set(node.records) == set(node.snapshot.admitted)
    rows = {key for key in store.data() if key.startswith("workload.")}
    assert rows == {f"workload.{key}" for key in node.records}
    later = started(MemoryStore(FORMATS, data=store.data()))
    assert holdings(later.snapshot) == held
    assert later.records == node.records
    for key in node.records:
        node.release(key)
    assert holdings(node.snapshot) == ()


def test_the_store_hears_of_changes_in_their_order() -> None:
    """The last one about a workload is the one that is held."""
    store = SlowStore()
    node = started(store)
    before = len(store.keys)
    for name in "abc":
        node.admit(workload(name, {"cpu": 1}))
    node.release("b")
    assert store.keys[before:] == [frozenset({f"workload.{name}"}) for name in "abcb"]


def test_every_state_and_event_of_a_start_is_in_the_table() -> None:
    """Every state is reached, and a start only goes forward."""
    forward = tuple(NodeState)
    assert set(NODE_LIFE.paths()) == set(NodeState)
    for row in NODE_LIFE.rows:
        assert forward.index(row.state) < forward.index(row.to)


def test_a_node_goes_through_its_table() -> None:
    """Each thing that happens to a node moves it as the table says, and what is awaited is told."""
    store, runtime = SlowStore(), FakeRuntime()
    runtime.reachable = False
    node = NodeAllocator(empty(), store, runtime=runtime)
    awaited = [str(node.admit(workload("a", {"cpu": 1})))]
    store.fails = RetryableError("full")
    node.start()
    awaited.append(str(node.admit(workload("a", {"cpu": 1}))))
    store.fails = None
    awaited.append(str(node.admit(workload("a", {"cpu": 1}))))
    runtime.reachable = True
    assert isinstance(node.admit(workload("a", {"cpu": 1})), Admitted)
    changed = NodeAllocator(empty(), MemoryStore(FORMATS, data={"workload.b": b"{"}))
    changed.start()
    awaited.append(str(changed.admit(workload("a", {"cpu": 1}))))
    changed.accept()
    assert isinstance(changed.admit(workload("a", {"cpu": 1})), Admitted)
    for words, answer in zip(
        ("start()", "store: full", "the runtime has not said what runs", "report has not been accepted"),
        awaited,
        strict=True,
    ):
        assert words in answer


class SlowChain(FakeAdvisor):
    """An advisor that is asked for each decision, counts them, and lets other threads run meanwhile."""

    decisions = 0
    takes_s = 0.002

    def settled(self, snapshot: Snapshot, /) -> Snapshot:
        """What has been said so far."""
        self.decisions += 1
        time.sleep(self.takes_s)
        return super().settled(snapshot)


@pytest.mark.parametrize("takes_s", [0.002, 0.1])
def test_pods_that_come_together_are_decided_about_once_each(takes_s: float) -> None:
    """A decision that is made beside others would have to be made anew for each that is remembered first.

    However long the line is: on a busy machine it took longer than one decision may, and all went at once.
    """
    node = NodeAllocator(empty(), MemoryStore(FORMATS))
    node.start()
    advisor = SlowChain()
    advisor.takes_s = takes_s
    node.advise_with(advisor)
    wanted = [workload(f"w{number}", {}) for number in range(16)]
    threads = [threading.Thread(target=node.admit, args=(one,)) for one in wanted]
    for one in threads:
        one.start()
    for one in threads:
        one.join(LONG_S)
    assert len(node.snapshot.admitted) == len(wanted)
    assert advisor.decisions <= 2 * len(wanted)


def test_a_write_that_ended_a_moment_ago_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that loses its turn between its end and its word of it keeps nobody out."""
    said = Operations._over

    def late(self: Operations[object, object, object], operation: Operation[object, object, object]) -> None:
        time.sleep(0.05)
        said(self, operation)

    monkeypatch.setattr(Operations, "_over", late)
    node = NodeAllocator(empty(), MemoryStore(FORMATS))
    node.start()
    assert isinstance(node.admit(workload("web", {"cpu": 2})), Admitted)


def test_what_another_thread_has_settled_meanwhile_is_waited_for_by_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The write ends, and others make the pass, just before a caller begins to wait for it: it goes on."""
    store = SlowStore()
    store.fails = RetryableError("full")
    node = NodeAllocator(empty(), store)
    node.start()
    store.fails = None
    waits, overtaken, heard = node.engine.wait_for_pass, threading.Event(), list[bool]()

    def overtaken_once(since: int, timeout_s: float | None = None, /) -> bool:
        if not overtaken.is_set():
            overtaken.set()
            with beside(lambda: _settled(node)):
                pass
        heard.append(waits(since, LONG_S if timeout_s is None else timeout_s))
        return heard[-1]

    store.goes_on.clear()
    monkeypatch.setattr(node.engine, "wait_for_pass", overtaken_once)
    answers: list[object] = []
    with beside(lambda: answers.append(node.admit(workload("web", {"cpu": 2})))):
        assert overtaken.wait(LONG_S)
    assert [isinstance(one, Admitted) for one in answers] == [True]
    assert heard == [True], "the wait ended by its time"


def test_who_waits_for_the_store_looks_when_something_has_happened_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While it writes, a caller sleeps: it looked twenty times a second."""
    store = SlowStore()
    store.fails = RetryableError("full")
    node = NodeAllocator(empty(), store)
    node.start()
    store.fails = None
    store.goes_on.clear()
    store.waits.clear()
    made: list[None] = []
    passes = node.engine.run_until_quiet

    def counted(*, passes_: int = 1000) -> Summary:
        made.append(None)
        return passes(passes=passes_)

    monkeypatch.setattr(node.engine, "run_until_quiet", counted)
    with beside(lambda: node.admit(workload("web", {"cpu": 2}))):
        assert store.waits.wait(LONG_S)
        time.sleep(0.5)
        looked = len(made)
        store.goes_on.set()
    assert looked <= 3
    assert list(node.records) == ["web"]


def _settled(node: NodeAllocator) -> None:
    """Let the store write, and make the pass that settles it."""
    store = node._store
    assert isinstance(store, SlowStore)
    store.goes_on.set()
    while node.engine.unsettled("node"):
        node.engine.wait_for_work(LONG_S)
        node.engine.run_until_quiet()
