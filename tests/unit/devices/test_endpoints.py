"""Who serves a resource, who comes next, who is tried again: without a socket."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from nodealloc.devices import (
    Capacity,
    Device,
    DeviceAllocator,
    DeviceLedger,
    Phase,
    PluginConnection,
    PluginLimits,
    PluginOptions,
    PluginUnavailableError,
    RegistrationRefusedError,
)
from nodealloc.devices.plugins import DevicePlugins
from nodealloc.devices.plugins._callbacks import PluginRegistration
from nodealloc.devices.plugins._unanswered import UnansweredPlugins
from nodealloc.dsw_asw import InlineExecutor
from nodealloc.errors import RetryableError
from nodealloc.testing.devices import FakePlugin, wait_until
from nodealloc.testing.dsw_asw import VirtualClock
from nodealloc.testing.pluginreg import bare_socket

GPU = "example.com/gpu"
V1 = ["v1beta1"]


def serving(connect: Callable[[str], PluginConnection]) -> DevicePlugins:
    """A shell whose plugins are these, by socket."""
    return DevicePlugins(DeviceLedger(DeviceAllocator()), connect=connect, look_s=0.01)


def healthy(plugins: DevicePlugins, count: int) -> None:
    """Wait for so many devices."""
    wait_until(lambda: plugins.capacity().get(GPU, Capacity(0, 0)).allocatable == count)


class Slow(FakePlugin):
    """A plugin whose first answer has to be let go."""

    def __init__(self, devices: list[Device]) -> None:
        super().__init__(devices)
        self.asked = threading.Event()
        self.go_on = threading.Event()

    def options(self) -> PluginOptions:
        """See `PluginWatch`."""
        self.asked.set()
        self.go_on.wait(30)
        return super().options()

    def close(self) -> None:
        """See `PluginWatch`."""
        super().close()
        self.go_on.set()


def test_who_registered_earlier_and_answers_later_is_told_so() -> None:
    """The newest registration counts, in whatever order they answer."""
    slow, quick = Slow([Device("a")]), FakePlugin([Device("b"), Device("c")])
    said: list[str] = []
    with serving(lambda socket: slow if socket == "/slow" else quick) as plugins:

        def come() -> None:
            try:
                plugins.register(GPU, "/slow", V1)
            except RegistrationRefusedError as error:
                said.append(str(error))

        thread = threading.Thread(target=come)
        thread.start()
        assert slow.asked.wait(10)
        plugins.register(GPU, "/quick", V1)
        healthy(plugins, 2)
        slow.go_on.set()
        thread.join(10)
        healthy(plugins, 2)
    assert said == [f"{GPU}: another plugin registered later and has answered first"]


def test_a_plugin_that_another_replaced_while_it_was_called_is_not_taken_for_that_one(
    tmp_path: Path,
) -> None:
    """Both stood on one path; the one that came later serves, whichever answers first."""
    for older_is_first in (True, False):
        path = tmp_path / f"{older_is_first}.sock"
        bare_socket(path)
        older, newer = Slow([Device("a")]), FakePlugin([Device("b"), Device("c")])
        older._options = PluginOptions(pre_start_required=True)
        order: list[PluginConnection] = [older, newer]
        with serving(lambda _socket, order=order: order.pop(0)) as plugins:  # type: ignore[misc]

            def come(plugins: DevicePlugins = plugins, path: Path = path) -> None:
                with contextlib.suppress(RegistrationRefusedError):
                    plugins.register(GPU, str(path), V1)

            thread = threading.Thread(target=come)
            thread.start()
            assert older.asked.wait(10)
            path.unlink()
            bare_socket(path)
            if older_is_first:
                older.go_on.set()
                thread.join(10)
                healthy(plugins, 1)
            plugins.register(GPU, str(path), V1)
            healthy(plugins, 2)
            older.go_on.set()
            thread.join(10)
            newer.set_devices([Device("d")])
            healthy(plugins, 1)
            assert not plugins._keeper.current().inventories[GPU].options.pre_start_required


class Quiet(FakePlugin):
    """A plugin whose first list has to be let go."""

    def __init__(self, devices: list[Device]) -> None:
        super().__init__(devices)
        self.go_on = threading.Event()
        self.is_closed = False

    def lists(self) -> Iterator[Sequence[Device]]:
        """See `PluginWatch`."""
        self.go_on.wait(30)
        yield from super().lists()

    def close(self) -> None:
        """See `PluginWatch`."""
        self.is_closed = True
        super().close()
        self.go_on.set()


def test_who_registers_again_after_another_has_come_serves_on(tmp_path: Path) -> None:
    """The last registration counts: the other one is let go before it has listed anything."""
    older, newer = tmp_path / "a.sock", tmp_path / "b.sock"
    bare_socket(older)
    bare_socket(newer)
    a, b = FakePlugin([Device("a")]), Quiet([Device("b"), Device("c")])
    with serving(lambda socket: {str(older): a, str(newer): b}[socket]) as plugins:
        plugins.register(GPU, str(older), V1)
        healthy(plugins, 1)
        plugins.register(GPU, str(newer), V1)
        a_again = FakePlugin([Device("a")])
        a, first = a_again, a
        plugins.register(GPU, str(older), V1)
        assert b.is_closed
        first.set_devices([Device("a"), Device("d"), Device("e")])
        healthy(plugins, 3)
        assert plugins.status()[0].socket == str(older)


def test_who_registered_before_another_registered_again_is_told_so(tmp_path: Path) -> None:
    """It answers late, and whoever serves has registered since."""
    path = tmp_path / "a.sock"
    bare_socket(path)
    a, slow, said = FakePlugin([Device("a")]), Slow([Device("b"), Device("c")]), list[str]()
    with serving(lambda socket: slow if socket == "/slow" else a) as plugins:
        plugins.register(GPU, str(path), V1)
        healthy(plugins, 1)

        def come() -> None:
            try:
                plugins.register(GPU, "/slow", V1)
            except RegistrationRefusedError as error:
                said.append(str(error))

        thread = threading.Thread(target=come)
        thread.start()
        assert slow.asked.wait(10)
        a, first = FakePlugin([Device("a")]), a
        plugins.register(GPU, str(path), V1)
        slow.go_on.set()
        thread.join(10)
        first.set_devices([Device("a"), Device("d"), Device("e")])
        healthy(plugins, 3)
    assert said == [f"{GPU}: another plugin registered later and has answered first"]


def test_a_plugin_that_registers_again_is_asked_at_once_as_it_wants_now(tmp_path: Path) -> None:
    """Not only with its next list, which may never come."""
    path = tmp_path / "p.sock"
    bare_socket(path)
    connections = [FakePlugin([Device("a")]), FakePlugin(options=PluginOptions(pre_start_required=True))]
    with serving(lambda _socket: connections.pop(0)) as plugins:
        plugins.register(GPU, str(path), V1)
        healthy(plugins, 1)
        plugins.register(GPU, str(path), V1)
        inventory = plugins._keeper.current().inventories[GPU]
        assert (inventory.phase, inventory.generation) == (Phase.SERVING, 1)
        assert inventory.options.pre_start_required
        healthy(plugins, 1)


def test_who_waits_for_an_answer_while_the_agent_stops_is_told_so() -> None:
    """As one that may register again elsewhere."""
    slow = Slow([Device("a")])
    plugins, said = serving(lambda _socket: slow), list[str]()
    plugins.start()

    def come() -> None:
        try:
            plugins.register(GPU, "/slow", V1)
        except RetryableError as error:
            said.append(str(error))

    thread = threading.Thread(target=come)
    thread.start()
    assert slow.asked.wait(10)
    plugins.stop()
    thread.join(10)
    assert len(said) == 1
    assert "the agent is stopping" in said[0]


class Buggy(FakePlugin):
    """A connection that breaks its promise about errors at once."""

    def options(self) -> PluginOptions:
        """See `PluginWatch`."""
        raise RuntimeError("a bug")


def test_a_bug_in_the_first_answer_is_that_plugins_trouble(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged with its trace; the plugin hears that nobody answered, and the resource is away."""
    with serving(lambda _socket: Buggy()) as plugins:
        with pytest.raises(PluginUnavailableError, match="a bug"):
            plugins.register(GPU, "/s", V1)
        assert plugins.status()[0].phase is Phase.LOST
    assert "asking for its options failed" in caplog.text


def test_a_plugin_that_is_refused_leaves_a_resource_that_is_away_as_it_is() -> None:
    """Its grace period goes on; only the trouble is another."""
    first, dead = FakePlugin([Device("a")]), FakePlugin()
    dead.close()
    with serving(lambda socket: first if socket == "/first" else dead) as plugins:
        plugins.register(GPU, "/first", V1)
        healthy(plugins, 1)
        plugins.deregister(GPU, "/first")
        healthy(plugins, 0)
        before = plugins.status()[0]
        with pytest.raises(PluginUnavailableError):
            plugins.register(GPU, "/dead", V1)
        after = plugins.status()[0]
    assert (after.phase, after.generation, after.capacity) == (Phase.LOST, before.generation, Capacity(1, 0))
    assert "ENDED" in after.trouble


def test_a_newcomer_may_be_let_go_before_it_serves() -> None:
    """The one before goes on."""
    old, new = FakePlugin([Device("a")]), FakePlugin()
    new.set_devices(())
    held = threading.Event()
    lists = new.lists

    def late() -> object:
        held.wait(10)
        return lists()

    new.lists = late  # type: ignore[method-assign, assignment]
    with serving(lambda socket: old if socket == "/old" else new) as plugins:
        plugins.register(GPU, "/old", V1)
        healthy(plugins, 1)
        plugins.register(GPU, "/new", V1)
        plugins.deregister(GPU, "/new")
        held.set()
        assert [(one.phase, one.socket) for one in plugins.status()] == [(Phase.SERVING, "/old")]
        old.set_devices([Device("a"), Device("b")])
        healthy(plugins, 2)


def test_a_resource_for_which_there_is_no_room_leaves_nothing_behind() -> None:
    """Neither a row nor a stream, whether the plugin answers or not."""
    good, dead = FakePlugin([Device("a")]), FakePlugin()
    dead.close()
    plugins = DevicePlugins(
        DeviceLedger(DeviceAllocator()),
        connect=lambda socket: dead if socket == "/dead" else good,
        limits=PluginLimits(resources=1),
    )
    with plugins:
        plugins.register(GPU, "/good", V1)
        healthy(plugins, 1)
        for socket in ("/dead", "/other"):
            with pytest.raises(RegistrationRefusedError, match="1 resources are known"):
                plugins.register("example.com/nic", socket, V1)
        assert [one.resource for one in plugins.status()] == [GPU]


class Late:
    """UnansweredPlugins by hand: what listens, who was called, and who answers."""

    def __init__(self, most: int = 5) -> None:
        self.clock = VirtualClock()
        self.listening: set[str] = set()
        self.answering: set[str] = set()
        self.called: list[tuple[float, str]] = []
        self.unanswered = UnansweredPlugins(
            self.call,
            InlineExecutor(),
            self.clock,
            most=most,
            keep_s=300.0,
            look_s=1.0,
            listens=lambda path: path in self.listening,
        )

    def call(self, registration: PluginRegistration) -> None:
        """Call one back."""
        self.called.append((self.clock.monotonic_s(), registration.path))
        if registration.path not in self.answering:
            raise PluginUnavailableError(registration.path, "GetDevicePluginOptions", "UNAVAILABLE")

    def pass_time(self, seconds: int) -> None:
        """Second by second."""
        for _ in range(seconds):
            self.unanswered.engine.run_until_quiet()
            self.clock.advance(1.0)
        self.unanswered.engine.run_until_quiet()


def registration(resource: str, path: str = "/s") -> PluginRegistration:
    """How a plugin registered."""
    return PluginRegistration(resource=resource, socket=path, path=path)


def test_plugins_without_an_answer_wait_twice_as_long_after_each_failure() -> None:
    """1 s, 2 s, 4 s, up to a minute, until their time is over."""
    late = Late()
    late.listening.add("/s")
    late.unanswered.add(registration("a"))
    late.pass_time(400)
    assert [at_s for at_s, _ in late.called] == [0, 1, 3, 7, 15, 31, 63, 123, 183, 243]


def test_a_plugin_without_an_answer_is_called_once_it_listens() -> None:
    """Not before, which costs a look a second and no call; and not again once it has answered."""
    late = Late()
    late.answering.add("/s")
    late.unanswered.add(registration("a"))
    late.pass_time(10)
    assert late.called == []
    late.listening.add("/s")
    late.pass_time(400)
    assert late.called == [(11.0, "/s")]


def test_of_plugins_without_an_answer_the_newest_of_each_resource_counts() -> None:
    """And where there are too many, the oldest are forgotten."""
    late = Late(most=2)
    late.listening |= {"/old", "/new", "/b", "/c"}
    late.unanswered.add(registration("a", "/old"))
    late.clock.advance(1.0)
    late.unanswered.add(registration("a", "/new"))
    late.clock.advance(1.0)
    late.unanswered.add(registration("b", "/b"))
    late.unanswered.add(registration("c", "/c"))
    late.pass_time(0)
    assert late.called == [(2.0, "/b"), (2.0, "/c")]
    late.unanswered.forget("b")
    late.unanswered.forget("b")
    late.pass_time(1)
    assert late.called[2:] == [(3.0, "/c")]


def test_a_plugin_without_an_answer_that_registers_again_is_called_at_once() -> None:
    """Its failures were those of another registration."""
    late = Late()
    late.listening.add("/s")
    late.unanswered.add(registration("a"))
    late.pass_time(100)
    late.called.clear()
    late.unanswered.add(registration("a"))
    late.pass_time(0)
    assert late.called == [(100.0, "/s")]


@pytest.mark.parametrize("name", ["resources", "introductions", "list_bytes", "answer_bytes"])
def test_limits_of_nothing_are_refused(name: str) -> None:
    """Nobody could ever register."""
    with pytest.raises(ValueError, match=name):
        PluginLimits(**{name: 0})
