"""The shell of device plugins without a socket: trouble of stores, of plugins, of restarts."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path

import pytest

from nodealloc.checkpoint import (
    DEVICE_STATE,
    KUBELET_FORMATS,
    Checkpoint,
    DeviceManagerState,
    MemoryStore,
)
from nodealloc.devices import (
    Capacity,
    Device,
    DeviceAllocator,
    DeviceLedger,
    DeviceList,
    Inventory,
    Phase,
    PluginLimits,
    PluginOptions,
    PluginRefusedError,
    PluginUnavailableError,
    PreferenceQuestion,
    RegistrationRefusedError,
)
from nodealloc.devices.plugins import DevicePlugins
from nodealloc.devices.plugins._codec import RegisterRequest
from nodealloc.devices.plugins._endpoints import Endpoint
from nodealloc.devices.plugins._grpc import GrpcConnection
from nodealloc.devices.plugins._inventories import Inventories
from nodealloc.dsw_asw import Cancel
from nodealloc.errors import PermanentError, RetryableError
from nodealloc.podspec import Quantity
from nodealloc.testing.devices import FakePlugin, wait_until
from nodealloc.testing.dsw_asw import ManualCancel, ManualExecutor, VirtualClock
from nodealloc.topology import Claim, NotYet, Owner, Shortfall, TopologyHint

GPU = "example.com/gpu"
ONE = Claim(owner=Owner("p", "c"), amounts={GPU: Quantity.of(1)})
ANY = TopologyHint(None, False)


def serving(plugin: FakePlugin, ledger: DeviceLedger | None = None) -> DevicePlugins:
    """A shell whose every connection is this plugin."""
    keeper = DeviceLedger(DeviceAllocator()) if ledger is None else ledger
    return DevicePlugins(keeper, connect=lambda _socket: plugin, look_s=0.01)


def listed(plugins: DevicePlugins, count: int) -> None:
    """Wait for so many healthy devices."""
    wait_until(lambda: plugins.capacity().get(GPU, Capacity(0, 0)).allocatable == count)


class FullDisk(DeviceLedger):
    """A keeper whose store is full for the next few changes."""

    refusals = 0

    def alter(
        self, change: Callable[[DeviceAllocator], DeviceAllocator], /
    ) -> tuple[DeviceAllocator, DeviceAllocator]:
        """See `AllocatorKeeper`."""
        if self.refusals:
            self.refusals -= 1
            raise RetryableError("the disk is full", after_s=0.0)
        return super().alter(change)


def test_a_full_disk_is_no_plugins_fault() -> None:
    """What happened is remembered as soon as it can be; the plugin keeps serving."""
    ledger = FullDisk(DeviceAllocator())
    ledger.refusals = 2
    with serving(FakePlugin([Device("a")]), ledger) as plugins:
        plugins.register(GPU, "/s", ["v1beta1"])
        listed(plugins, 1)
        assert plugins.status()[0].trouble == ""


def test_a_full_disk_does_not_keep_the_shell_from_stopping() -> None:
    """A change that cannot be remembered is given up when the shell stops."""
    ledger = FullDisk(DeviceAllocator())
    plugin = FakePlugin([Device("a")])
    plugins = serving(plugin, ledger)
    plugins.start()
    plugins.register(GPU, "/s", ["v1beta1"])
    listed(plugins, 1)
    ledger.refusals = 1 << 30
    plugin.set_devices(())
    wait_until(lambda: ledger.refusals < 1 << 30, what="the first try")
    plugins.stop()
    given_up = ledger.refusals
    assert plugins.capacity()[GPU].allocatable == 1, "a change that was not remembered is believed"
    assert ledger.refusals == given_up, "somebody still tries"


class Buggy(FakePlugin):
    """A connection that breaks its promise about errors."""

    def lists(self) -> Iterator[Sequence[Device]]:
        """See `PluginWatch`."""
        raise RuntimeError("a bug")


def test_a_bug_in_a_connection_is_that_plugins_trouble(caplog: pytest.LogCaptureFixture) -> None:
    """An error that nobody promised is logged with its trace, and the resource is away."""
    with serving(Buggy()) as plugins:
        plugins.register(GPU, "/s", ["v1beta1"])
        wait_until(lambda: bool(plugins.status()) and plugins.status()[0].phase is Phase.LOST)
        assert plugins.status()[0].trouble == "RuntimeError: a bug"
    assert "following its stream failed" in caplog.text


class Stuck(FakePlugin):
    """A connection that cannot be closed without an error."""

    def close(self) -> None:
        """See `PluginWatch`."""
        super().close()
        raise OSError("not now")


def test_a_connection_that_does_not_close_well_is_let_go_all_the_same(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The end of its stream counts, who comes after it serves, and a shell that stops goes through."""
    made = [Stuck([Device("a")]), Stuck([Device("a"), Device("b")]), Stuck()]
    left = iter(made)
    plugins = DevicePlugins(DeviceLedger(DeviceAllocator()), connect=lambda _socket: next(left), look_s=0.01)
    with plugins:
        plugins.register(GPU, "/s", ["v1beta1"])
        listed(plugins, 1)
        plugins.register(GPU, "/t", ["v1beta1"])
        listed(plugins, 2)
        FakePlugin.close(made[1])
        wait_until(lambda: plugins.status()[0].phase is Phase.LOST)
        plugins.register("example.com/net", "/n", ["v1beta1"])
        plugins.deregister("example.com/net", "/n")
        wait_until(lambda: plugins.status()[1].phase is Phase.LOST)
    assert "not now" in caplog.text
    assert not plugins.engine.running()


def test_a_connection_whose_stream_gets_no_thread_can_be_closed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The system gives none: that is the error, and the socket and the stream are given back."""
    starts = threading.Thread.start

    def refused(thread: threading.Thread) -> None:
        if thread.name.startswith("device lists of"):
            raise RuntimeError("can't start new thread")
        starts(thread)

    with socket.socket(socket.AF_UNIX) as listening:
        path = str(tmp_path / "gpu.sock")
        listening.bind(path)
        listening.listen()
        connection = GrpcConnection(path)
        monkeypatch.setattr(threading.Thread, "start", refused)
        with pytest.raises(RuntimeError, match="can't start"):
            next(connection.lists())
        connection.close()
        with pytest.raises(PluginUnavailableError):
            next(connection.lists())


def test_a_plugin_that_registered_again_costs_no_descriptor_where_none_is_left_to_look_with(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its stream has ended, and whether it listens cannot be told: it is away, and its socket is not held."""
    plugins, path = serving(FakePlugin()), tmp_path / "gpu.sock"
    endpoint = Endpoint(
        resource=GPU,
        generation=1,
        socket=str(path),
        path=str(path),
        identity=None,
        connection=FakePlugin(),
        options=PluginOptions(),
    )

    def refused(*_: object, **__: object) -> socket.socket:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        with monkeypatch.context() as patched:
            patched.setattr(socket, "socket", refused)
            assert not plugins._streams._opened_again(endpoint)
        held: list[Path] = []
        for one in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):  # another thread's, and gone by now
                held.append(one.readlink())
        assert path not in held


def test_a_resource_that_nobody_has_spoken_of_is_looked_at() -> None:
    """One that came by another way, as when containers were adopted, has its grace period too."""
    clock = VirtualClock()
    ledger = DeviceLedger(DeviceAllocator())
    with DevicePlugins(ledger, clock=clock, grace_s=5.0, look_s=1.0) as plugins:
        ledger.alter(lambda allocator: allocator.with_inventory(Inventory(resource=GPU)))
        clock.advance(1.0)
        plugins.reconcile()
        wait_until(lambda: bool(plugins.engine.run_until_quiet().next_due_s == 2.0), what="the look")
        assert [one.phase for one in plugins.status()] == [Phase.AWAITED]
        clock.advance(5.0)
        plugins.reconcile()
        wait_until(lambda: [one.phase for one in plugins.status()] == [Phase.GONE])


def test_a_look_does_not_undo_what_a_plugin_says_meanwhile() -> None:
    """It registers and lists between the question whether it has spoken and the answer: its devices stay."""
    ledger, clock = DeviceLedger(DeviceAllocator()), VirtualClock()
    inventories = Inventories(ledger, clock, most=10, grace_s=5.0, told=lambda *_: None)
    ledger.alter(lambda allocator: allocator.with_inventory(Inventory(resource=GPU)))
    devices = DeviceList.of([Device("a")], nodes=(0,))

    def found(inventory: Inventory) -> Inventory:
        inventories.change(
            GPU,
            lambda known: known.registered(1, now_s=0.0).listed(1, devices, PluginOptions(), now_s=0.0),
        )
        return inventory.ended(inventory.generation, "the agent started anew", now_s=0.0)

    inventories.observe(found)
    kept = ledger.current().inventories[GPU]
    assert (kept.phase, kept.capacity.allocatable) == (Phase.SERVING, 1)


def test_a_plugin_that_lists_nothing_is_waited_for_no_longer_than_its_grace_period() -> None:
    """Pods that asked for its devices waited for ever."""
    clock, keeper = VirtualClock(), DeviceLedger(DeviceAllocator())
    with DevicePlugins(keeper, connect=lambda _socket: FakePlugin(), clock=clock, grace_s=5.0) as plugins:
        plugins.register(GPU, "/s", ["v1beta1"])
        wait_until(lambda: keeper.current().inventories[GPU].phase is Phase.SERVING)
        assert isinstance(keeper.current().hints([ONE]), NotYet)
        clock.advance(5.1)
        wait_until(lambda: not isinstance(keeper.current().allocate(ONE, ANY), NotYet))
        assert isinstance(keeper.current().allocate(ONE, ANY), Shortfall)


def test_a_grace_period_ends_though_nobody_looks() -> None:
    """Its end is a moment of the engine's, not one of the looks at the own socket."""
    clock, plugin = VirtualClock(), FakePlugin([Device("a")])
    keeper = DeviceLedger(DeviceAllocator())
    with DevicePlugins(
        keeper, connect=lambda _socket: plugin, clock=clock, grace_s=5.0, look_s=3600.0
    ) as plugins:
        plugins.register(GPU, "/s", ["v1beta1"])
        listed(plugins, 1)
        plugin.close()
        wait_until(lambda: plugins.status()[0].phase is Phase.LOST)
        clock.advance(4.9)
        plugins.reconcile()
        assert plugins.status()[0].phase is Phase.LOST
        clock.advance(0.1)
        plugins.reconcile()
        assert plugins.status()[0].phase is Phase.GONE


@pytest.mark.parametrize(
    ("name", "endpoint", "versions", "said"),
    [
        (GPU, "/allowed/s", ["v1alpha1"], "v1beta1 is needed, the plugin speaks v1alpha1"),
        (GPU, "/allowed/s", [], "speaks none"),
        ("cpu", "/allowed/s", ["v1beta1"], "no extended resource"),
        (GPU, "/elsewhere/s", ["v1beta1"], "in none of the directories"),
        (GPU, "/allowed/../elsewhere/s", ["v1beta1"], "in none of the directories"),
    ],
)
def test_plugins_that_are_refused(name: str, endpoint: str, versions: list[str], said: str) -> None:
    """The reason is what the plugin is told."""
    plugins = DevicePlugins(DeviceLedger(DeviceAllocator()), roots=[Path("/allowed")])
    with pytest.raises(RegistrationRefusedError, match=said):
        plugins.register(name, endpoint, versions)
    assert plugins.status() == ()


def test_a_new_shell_over_an_old_allocator() -> None:
    """Whoever served before is away; a plugin that registers has a newer generation."""
    inventory = Inventory(resource=GPU, phase=Phase.SERVING, generation=7, settled=True)
    ledger = DeviceLedger(DeviceAllocator(inventories={GPU: inventory}))
    with serving(FakePlugin([Device("a")]), ledger) as plugins:
        assert plugins.status()[0].phase is Phase.LOST
        plugins.register(GPU, "/s", ["v1beta1"])
        listed(plugins, 1)
        assert plugins.status()[0].generation == 8


def test_a_shell_that_stops_takes_nobody_on() -> None:
    """A registration that comes too late is told to try again elsewhere."""
    plugins = serving(FakePlugin())
    plugins.start()
    plugins.stop()
    plugins.stop()
    with pytest.raises(RetryableError, match="the agent is stopping"):
        plugins.register(GPU, "/s", ["v1beta1"])


def test_deregistering_an_older_endpoint_changes_nothing() -> None:
    """Only the endpoint that is current can be let go."""
    with serving(FakePlugin([Device("a")])) as plugins:
        plugins.register(GPU, "/new", ["v1beta1"])
        listed(plugins, 1)
        plugins.deregister(GPU, "/old")
        listed(plugins, 1)
        plugins.deregister(GPU, "/new")
        listed(plugins, 0)
        assert plugins.status()[0].trouble == "its socket was removed"


def test_advice_of_a_plugin_that_is_away_is_none() -> None:
    """The question is answered with no opinion, so that the next decision does not ask again."""
    plugins = serving(FakePlugin())
    question = PreferenceQuestion(resource=GPU, available=("a", "b"), must_include=(), size=1)
    assert plugins.ask(DeviceAllocator(unanswered=(question,)))
    assert not plugins.ask(DeviceAllocator())


def test_a_plugin_that_does_not_answer_is_asked_once_for_all_that_it_might_say() -> None:
    """A pod with many containers would wait for its deadline as often; one that refuses is asked on."""
    refused: list[tuple[Exception, int]] = [
        (PluginUnavailableError("gpu", "GetPreferredAllocation", "DEADLINE_EXCEEDED"), 1),
        (PluginRefusedError("gpu", "GetPreferredAllocation", "INTERNAL"), 3),
    ]
    for error, times in refused:
        plugin, asked = FakePlugin([Device("a")]), list[PreferenceQuestion]()

        def prefers(
            question: PreferenceQuestion,
            /,
            *,
            error: Exception = error,
            asked: list[PreferenceQuestion] = asked,
        ) -> tuple[str, ...]:
            asked.append(question)
            raise error

        plugin.preferred = prefers  # type: ignore[method-assign]
        with serving(plugin) as plugins:
            plugins.register(GPU, "/s", ["v1beta1"])
            listed(plugins, 1)
            questions = [
                PreferenceQuestion(resource=GPU, available=("a", "b"), must_include=(), size=size)
                for size in (1, 2, 3)
            ]
            assert plugins.ask(DeviceAllocator(unanswered=tuple(questions)))
            assert len(asked) == times
            assert dict(plugins._keeper.current().answers) == dict.fromkeys(questions, ())


def test_preparing_needs_the_plugin_only_once() -> None:
    """What has its answer is left alone; what has none names the plugin that is away."""
    ledger = DeviceLedger(DeviceAllocator())
    plugin = FakePlugin([Device("a")], options=PluginOptions(pre_start_required=True))
    with serving(plugin, ledger) as plugins:
        plugins.register(GPU, "/s", ["v1beta1"])
        listed(plugins, 1)
        after = ledger.current().allocate(ONE, ANY)
        assert isinstance(after, DeviceAllocator)
        ledger.alter(lambda _: after)
        plugins.prepare("p")
        plugins.prepare("p")
        assert plugin.allocated == [("a",)]
        plugins.pre_start(ONE.owner)
        plugins.pre_start(Owner("p", "other"))
        assert plugin.prepared == [("a",)]
        plugin.refusal = PluginRefusedError("fake", "PreStartContainer", "INTERNAL")
        with pytest.raises(PluginRefusedError):
            plugins.pre_start(ONE.owner)
        plugin.close()
        listed(plugins, 0)
        plugins.prepare("p")
        with pytest.raises(PluginUnavailableError, match="NOT REGISTERED"):
            plugins.pre_start(ONE.owner)


class Silent(FakePlugin):
    """It has not listed a device yet."""

    def lists(self) -> Iterator[Sequence[Device]]:
        """See `PluginWatch`."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended)
        self._alive("ListAndWatch")
        yield ()


def test_what_a_plugin_wants_to_be_asked_counts_from_its_registration() -> None:
    """Also before its first list: a container that starts in between is prepared."""
    ledger = DeviceLedger(DeviceAllocator())
    plugin = FakePlugin([Device("a")])
    with serving(plugin, ledger) as plugins:
        plugins.register(GPU, "/s", ["v1beta1"])
        listed(plugins, 1)
        ledger.alter(lambda allocator: granted(allocator, ONE))
        plugins.prepare("p")
    newcomer = Silent(options=PluginOptions(pre_start_required=True))
    with serving(newcomer, ledger) as plugins:
        plugins.register(GPU, "/s", ["v1beta1"])
        plugins.pre_start(ONE.owner)
    assert newcomer.prepared == [("a",)]


def test_what_a_plugin_answers_that_it_wants_counts_and_not_what_it_registered_with(tmp_path: Path) -> None:
    """A call that it does not know would keep its containers from starting."""
    ledger = DeviceLedger(DeviceAllocator())
    wishes = PluginOptions(pre_start_required=True, preferred_allocation=True)
    plugins = DevicePlugins(ledger, directory=tmp_path, connect=lambda _socket: FakePlugin([Device("a")]))
    plugins._introduced(RegisterRequest(version="v1beta1", endpoint="s.sock", resource=GPU, options=wishes))
    assert ledger.current().inventories[GPU].options == PluginOptions()
    plugins.stop()


def test_whoever_drives_the_engine_gives_the_executor() -> None:
    """Nothing has a thread of its own then: a stream is followed when its call is run."""
    executor = ManualExecutor()
    plugin = FakePlugin([Device("a")])
    plugins = DevicePlugins(
        DeviceLedger(DeviceAllocator()),
        connect=lambda _socket: plugin,
        executor=executor,
        clock=VirtualClock(),
    )
    plugins.begin()
    plugins.register(GPU, "/s", ["v1beta1"])
    plugins.reconcile()
    assert len(executor) == 1
    assert plugins.capacity()[GPU] == Capacity(0, 0)
    plugin.close()
    executor.run_all()
    plugins.reconcile()
    assert plugins.status()[0].trouble
    plugins.stop()
    with pytest.raises(PermanentError, match="served once"):
        plugins.begin()


def test_devices_are_not_prepared_for_a_start_before_they_were_allocated() -> None:
    """The plugin would be asked about devices that it never gave anybody."""
    ledger = DeviceLedger(DeviceAllocator())
    plugin = FakePlugin([Device("a")], options=PluginOptions(pre_start_required=True))
    with serving(plugin, ledger) as plugins:
        plugins.register(GPU, "/s", ["v1beta1"])
        listed(plugins, 1)
        ledger.alter(lambda allocator: granted(allocator, ONE))
        with pytest.raises(PluginUnavailableError, match="NOT PREPARED"):
            plugins.pre_start(ONE.owner)
        assert plugin.prepared == []
        plugins.prepare("p")
        plugins.pre_start(ONE.owner)
        assert plugin.prepared == [("a",)]


def test_a_ledger_answers_for_grants_that_are_gone() -> None:
    """A response for a workload that was released meanwhile changes nothing."""
    allocator = DeviceAllocator()
    assert allocator.with_response(Owner("gone", "c"), GPU, b"x") is allocator


def test_availability_speaks_of_known_resources_only() -> None:
    """Nothing is said of a resource that nobody serves."""
    assert list(DeviceAllocator().availability([ONE])) == []


class Hasty(FakePlugin):
    """A plugin during whose `Allocate` the workload is released and admitted again with another device."""

    ledger: DeviceLedger

    def allocate(self, ids: Sequence[str], /, *, cancel: Cancel | None = None) -> bytes:
        """See `PluginCalls`."""
        if not self.allocated:
            self.ledger.alter(lambda allocator: granted(allocator.release("p"), OTHER))
            self.ledger.alter(lambda allocator: granted(allocator, ONE))
        return super().allocate(ids, cancel=cancel)


OTHER = Claim(owner=Owner("q", "c"), amounts={GPU: Quantity.of(1)})


def granted(allocator: DeviceAllocator, claim: Claim) -> DeviceAllocator:
    """The allocator after a claim that has to fit."""
    after = allocator.allocate(claim, ANY)
    assert isinstance(after, DeviceAllocator)
    return after


def test_an_answer_for_devices_that_were_given_back_is_not_remembered_for_others() -> None:
    """The container would be started with somebody else's device."""
    plugin = Hasty([Device("a"), Device("b")])
    plugin.ledger = DeviceLedger(DeviceAllocator())
    with serving(plugin, plugin.ledger) as plugins:
        plugins.register(GPU, "/s", ["v1beta1"])
        listed(plugins, 2)
        plugin.ledger.alter(lambda allocator: granted(allocator, ONE))
        plugins.prepare("p")
        assert isinstance(plugins.launch(ONE.owner), NotYet)
        plugins.prepare("p")
        launch = plugins.launch(ONE.owner)
    assert plugin.allocated == [("a",), ("b",)]
    assert not isinstance(launch, NotYet)
    assert launch.env == {"DEVICES": "b"}


def call_off(plugins: DevicePlugins, plugin: FakePlugin) -> None:
    """The plugin hangs as it prepares what was granted, and nobody wants that any more."""
    plugin.hang()
    cancel = ManualCancel()
    with ThreadPoolExecutor() as pool:
        preparing = pool.submit(plugins.prepare, "p", cancel=cancel)
        wait_until(lambda: bool(plugin.waiting))
        cancel.set()
        with pytest.raises(CancelledError):
            preparing.result(timeout=20)


def test_preparing_ends_when_nobody_wants_it_any_more() -> None:
    """The pod goes at once; until it does its device is nobody else's, and then anybody's."""
    ledger = DeviceLedger(DeviceAllocator())
    plugin = FakePlugin([Device("a")])
    with serving(plugin, ledger) as plugins:
        plugins.register(GPU, "/s", ["v1beta1"])
        listed(plugins, 1)
        ledger.alter(lambda allocator: granted(allocator, ONE))
        call_off(plugins, plugin)
        assert isinstance(plugins.launch(ONE.owner), NotYet)
        assert isinstance(ledger.current().allocate(OTHER, ANY), Shortfall)
        ledger.release("p")
        ledger.alter(lambda allocator: granted(allocator, OTHER))


def test_a_plugin_that_hung_is_asked_for_the_same_devices_again() -> None:
    """Also by an agent that was killed before it could ask again: whatever the plugin did counts once."""
    store = MemoryStore(KUBELET_FORMATS)
    ledger = DeviceLedger(DeviceAllocator(), store=store)
    plugin = FakePlugin([Device("a"), Device("b")])
    with serving(plugin, ledger) as plugins:
        plugins.register(GPU, "/s", ["v1beta1"])
        listed(plugins, 2)
        ledger.alter(lambda allocator: granted(allocator, ONE))
        call_off(plugins, plugin)
    again, plugin = (
        DeviceLedger.load(DeviceAllocator(), store, now_s=0.0),
        FakePlugin([Device("b"), Device("a")]),
    )
    with serving(plugin, again) as plugins:
        plugins.register(GPU, "/s", ["v1beta1"])
        listed(plugins, 2)
        again.alter(lambda allocator: granted(allocator, OTHER))
        plugins.prepare("p", cancel=ManualCancel())
        plugins.prepare("q")
        assert plugin.allocated == [("a",), ("b",)]


class Answering(FakePlugin):
    """A plugin that answers at the moment at which its caller is asked to stop."""

    cancel: ManualCancel

    def allocate(self, ids: Sequence[str], /, *, cancel: Cancel | None = None) -> bytes:
        """See `PluginCalls`."""
        answer = super().allocate(ids, cancel=cancel)
        self.cancel.set()
        return answer


def test_an_answer_that_came_as_its_caller_was_to_stop_is_remembered() -> None:
    """It is not asked for again; what has no answer yet is not asked for any more."""
    ledger = DeviceLedger(DeviceAllocator())
    plugin = Answering([Device("a"), Device("b")])
    plugin.cancel = ManualCancel()
    second = Claim(owner=Owner("p", "d"), amounts={GPU: Quantity.of(1)})
    with serving(plugin, ledger) as plugins:
        plugins.register(GPU, "/s", ["v1beta1"])
        listed(plugins, 2)
        ledger.alter(lambda allocator: granted(granted(allocator, ONE), second))
        with pytest.raises(CancelledError):
            plugins.prepare("p", cancel=plugin.cancel)
        assert plugin.allocated == [("a",)]
        assert not isinstance(plugins.launch(ONE.owner), NotYet)
        plugins.prepare("p")
        assert plugin.allocated == [("a",), ("b",)]


def test_device_plugins_start_once() -> None:
    """Started again after its end it would serve nobody, and say nothing."""
    plugins = serving(FakePlugin())
    plugins.start()
    for _ in range(2):
        with pytest.raises(PermanentError, match="make another"):
            plugins.start()
        plugins.stop()


def test_a_look_before_the_start_serves_nothing(tmp_path: Path) -> None:
    """Whoever drives the clock by hand need not serve."""
    plugins = DevicePlugins(DeviceLedger(DeviceAllocator()), directory=tmp_path / "dp")
    plugins.reconcile()
    assert not (tmp_path / "dp").exists()
    plugins.stop()


class Counting(MemoryStore):
    """A store that counts its commits."""

    commits = 0

    def commit(self, changes: Mapping[str, Checkpoint | None], /) -> None:
        """See `Store`."""
        self.commits += 1
        super().commit(changes)


def test_names_with_nobody_behind_them_are_told_bounded_and_not_remembered() -> None:
    """A flood of them writes nothing; the newest are known, until a plugin needs their room."""
    dead = FakePlugin()
    dead.close()
    good = FakePlugin([Device("a")])
    store = Counting(KUBELET_FORMATS)
    ledger = DeviceLedger(DeviceAllocator(), store=store)
    plugins = DevicePlugins(
        ledger, connect=lambda socket: good if socket == "/good" else dead, limits=PluginLimits(resources=5)
    )
    with plugins:
        for number in range(50):
            with pytest.raises(PluginUnavailableError, match="ENDED"):
                plugins.register(f"example.com/n{number}", "/nobody", ["v1beta1"])
        assert [one.phase for one in plugins.status()] == [Phase.LOST] * 5
        assert "example.com/n49" in plugins.capacity()
        assert store.commits == 0
        plugins.register(GPU, "/good", ["v1beta1"])
        listed(plugins, 1)
        assert len(plugins.status()) == 5
        for number in range(50):
            with pytest.raises(PluginUnavailableError):
                plugins.register(f"example.com/m{number}", "/nobody", ["v1beta1"])
        assert plugins.capacity()[GPU] == Capacity(1, 1)
        assert store.commits == 1
    state = store.read().get(DEVICE_STATE, DeviceManagerState)
    assert state is not None
    assert set(state.registered_devices or {}) == {GPU}


def test_what_a_plugin_says_is_a_line_of_a_log_and_obeyed_by_no_terminal() -> None:
    """Its error may hold a line that looks like one of the agent's own; `detail` has it as it came."""
    said = "no\nERROR: the node is lost\x1b[2J"
    for error in (
        PluginRefusedError("/run/x.sock", "Allocate", "INTERNAL", said),
        PluginUnavailableError("/run/x.sock", "Allocate", "UNAVAILABLE", said),
    ):
        assert error.detail == said
        assert str(error).isprintable()
        assert r"no\nERROR: the node is lost\x1b[2J" in str(error)
