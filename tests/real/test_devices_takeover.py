"""Who serves a resource when plugins come late, come twice, lead nowhere, or come by the thousand."""

from __future__ import annotations

import contextlib
import logging
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from nodealloc.devices import (
    Capacity,
    Deadlines,
    DeviceAllocator,
    DeviceLedger,
    Phase,
    PluginLimits,
    PluginOptions,
    PluginRefusedError,
    PluginUnavailableError,
    RegistrationRefusedError,
)
from nodealloc.devices.plugins import DevicePlugins
from nodealloc.devices.plugins._codec import RegisterRequest
from nodealloc.devices.plugins._grpc import GrpcConnection
from nodealloc.devices.plugins._registration import introduce
from nodealloc.dsw_asw import BackOff
from nodealloc.errors import NodeallocError
from nodealloc.pluginreg import PluginInfo, PluginRegistrar, RegistrationState
from nodealloc.pluginreg._scan import scan
from nodealloc.podspec import Quantity
from nodealloc.testing.device_plugin import Behaviour, DevicePluginServer, numbered
from nodealloc.testing.devices import wait_until
from nodealloc.testing.pluginreg import FakeRegistration, bare_socket
from nodealloc.topology import Claim, Owner, TopologyHint
from tests.real.hanging import elsewhere

pytestmark = pytest.mark.real

GPU = "example.com/gpu"
QUICK = Deadlines(connect_s=1.5, preferred_s=5.0, allocate_s=10.0, pre_start_s=5.0)
ONE = Claim(owner=Owner("p", "c"), amounts={GPU: Quantity.of(1)})


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory with a path short enough for sockets."""
    path = Path(tempfile.mkdtemp(prefix="na-"))
    yield path / "dp"
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def agent(place: Path) -> Iterator[Agent]:
    """A running agent."""
    with serving(place) as plugins:
        yield plugins


class Agent(DevicePlugins):
    """Device plugins of a ledger; quick to lose patience."""

    def __init__(self, place: Path, limits: PluginLimits) -> None:
        self.ledger = DeviceLedger(DeviceAllocator(nodes=(0, 1)))
        super().__init__(self.ledger, directory=place, deadlines=QUICK, limits=limits, look_s=0.05)


def serving(place: Path, limits: PluginLimits | None = None) -> Agent:
    """An agent that has not started."""
    return Agent(place, PluginLimits() if limits is None else limits)


class Plugin:
    """A plugin in this process that writes down what it is asked."""

    def __init__(
        self, place: Path, name: str, count: int, *, resource: str = GPU, behaviour: Behaviour | None = None
    ) -> None:
        self.told: list[tuple[str, str]] = []
        self.kubelet = place / "kubelet.sock"
        self.server = DevicePluginServer(
            resource,
            numbered(count),
            place / name,
            behaviour=behaviour,
            tell=lambda what, details: self.told.append((what, details)),
        )

    def __enter__(self) -> Self:
        self.server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop()

    def register(self) -> bool:
        """Introduce itself."""
        return self.server.introduce(self.kubelet)

    def streams(self) -> int:
        """How often its devices were asked for."""
        return self.told.count(("called", "ListAndWatch"))


def register(place: Path, endpoint: str, resource: str = GPU) -> None:
    """Register as a plugin does."""
    introduce(
        place / "kubelet.sock", RegisterRequest(version="v1beta1", endpoint=endpoint, resource=resource)
    )


def allocatable(plugins: DevicePlugins, resource: str = GPU) -> int:
    """Healthy devices; -1 for a resource that nobody knows."""
    return plugins.capacity().get(resource, Capacity(0, -1)).allocatable


def wait(plugins: DevicePlugins, count: int, resource: str = GPU) -> None:
    """Wait until so many devices are healthy."""
    wait_until(lambda: allocatable(plugins, resource) == count, what=f"{count}; {plugins.status()}")


def grant(agent: Agent) -> None:
    """Give one device to a pod."""

    def change(allocator: DeviceAllocator) -> DeviceAllocator:
        answer = allocator.allocate(ONE, TopologyHint(None, True))
        assert isinstance(answer, DeviceAllocator)
        return answer

    agent.ledger.alter(change)


@contextlib.contextmanager
def mute(path: Path) -> Iterator[None]:
    """Somebody takes callers there and never says anything."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen(64)
        yield


def nothing(_path: Path) -> contextlib.AbstractContextManager[None]:
    """Nothing is there."""
    return contextlib.nullcontext()


def dead(path: Path) -> contextlib.AbstractContextManager[None]:
    """A socket is there on which nobody listens."""
    bare_socket(path)
    return contextlib.nullcontext()


def directory(path: Path) -> contextlib.AbstractContextManager[None]:
    """A directory is there."""
    path.mkdir()
    return contextlib.nullcontext()


@pytest.mark.parametrize(
    ("there", "said"),
    [
        (nothing, "nothing is there"),
        (dead, "nobody listens"),
        (directory, "a directory is there"),
        (mute, "does not answer in gRPC"),
    ],
)
def test_a_newcomer_that_leads_nowhere_is_told_and_takes_nothing_away(
    agent: Agent, place: Path, there: type, said: str
) -> None:
    """Its `Register` fails with the reason; whoever serves serves on, by the stream that it has."""
    with Plugin(place, "owner.sock", 2) as owner:
        assert owner.register()
        wait(agent, 2)
        events = agent.events()
        with there(place / "nobody.sock"), pytest.raises(PluginUnavailableError, match=said):
            register(place, "nobody.sock")
        time.sleep(0.2)
        assert events.take() == ()
        (status,) = agent.status()
        assert (status.phase, status.trouble, status.capacity) == (Phase.SERVING, "", Capacity(2, 2))
        owner.server.set_devices(numbered(3))
        wait(agent, 3)
        assert owner.streams() == 1


@pytest.mark.parametrize(
    "behaviour",
    [
        Behaviour(garbage=frozenset({"GetDevicePluginOptions"})),
        Behaviour(status=frozenset({"GetDevicePluginOptions"})),
    ],
)
def test_a_newcomer_that_answers_nonsense_is_refused(agent: Agent, place: Path, behaviour: Behaviour) -> None:
    """It hears so; the one before serves on."""
    with Plugin(place, "owner.sock", 2) as owner, Plugin(place, "bad.sock", 5, behaviour=behaviour) as bad:
        assert owner.register()
        wait(agent, 2)
        assert not bad.register()
        assert "GetDevicePluginOptions was refused" in bad.told[-1][1]
        assert agent.status()[0].phase is Phase.SERVING
        assert allocatable(agent) == 2


def test_a_newcomer_takes_over_with_its_first_list(agent: Agent, place: Path) -> None:
    """At no time are the devices unhealthy, and pods have to wait at none; then the older one is let go."""
    with Plugin(place, "old.sock", 2) as old, Plugin(place, "new.sock", 3) as new:
        assert old.register()
        wait(agent, 2)
        events = agent.events()
        assert new.register()
        wait(agent, 3)
        seen = [(one.phase, one.capacity.allocatable) for one in events.take()]
        assert seen == [(Phase.SERVING, 3)]
        grant(agent)
        agent.prepare("p")
        assert ("called", "Allocate") in new.told
        old.server.set_devices(numbered(7))
        time.sleep(0.2)
        assert allocatable(agent) == 3


def test_a_newcomer_that_never_lists_leaves_the_older_one_in_its_place(agent: Agent, place: Path) -> None:
    """Calls go to who has listed; when it ends, the newcomer is waited for."""
    hangs = Behaviour(hang=frozenset({"ListAndWatch"}))
    with Plugin(place, "new.sock", 3, behaviour=hangs) as new:
        with Plugin(place, "old.sock", 2) as old:
            assert old.register()
            wait(agent, 2)
            assert new.register()
            wait_until(lambda: new.streams() == 1)
            time.sleep(0.1)
            assert (agent.status()[0].phase, allocatable(agent)) == (Phase.SERVING, 2)
            grant(agent)
            agent.prepare("p")
            assert ("called", "Allocate") in old.told
        wait_until(lambda: agent.status()[0].phase is Phase.CONNECTING)
        assert agent.status()[0].socket.endswith("new.sock")
        assert agent.capacity()[GPU] == Capacity(2, 0), "nobody has said since that they are well"


def test_of_two_newcomers_the_later_one_takes_over(agent: Agent, place: Path) -> None:
    """The earlier one, which has not listed so far, is let go."""
    hangs = Behaviour(hang=frozenset({"ListAndWatch"}))
    with (
        Plugin(place, "a.sock", 1) as first,
        Plugin(place, "b.sock", 2, behaviour=hangs) as second,
        Plugin(place, "c.sock", 3) as third,
    ):
        for one in (first, second, third):
            assert one.register()
        wait(agent, 3)
        assert agent.status()[0].socket.endswith("c.sock")


def test_a_newcomer_that_leaves_before_its_first_list_changes_nothing(
    agent: Agent, place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is named in the log, with the reason; the older one serves on."""
    refuses = Behaviour(status=frozenset({"ListAndWatch"}))
    with Plugin(place, "old.sock", 2) as old, Plugin(place, "new.sock", 3, behaviour=refuses) as new:
        assert old.register()
        wait(agent, 2)
        assert new.register()
        wait_until(lambda: "left before its first list" in caplog.text)
        assert "told to fail" in caplog.text
        assert (agent.status()[0].phase, allocatable(agent)) == (Phase.SERVING, 2)


def test_a_plugin_that_registers_again_keeps_its_stream(agent: Agent, place: Path) -> None:
    """As plugins do when `kubelet.sock` is made anew: some end when their stream is cut."""
    with Plugin(place, "p.sock", 2) as plugin:
        assert plugin.register()
        wait(agent, 2)
        events = agent.events()
        (place / "kubelet.sock").unlink()
        wait_until((place / "kubelet.sock").exists)
        for _ in range(5):
            assert plugin.register()
        plugin.server.options = PluginOptions(pre_start_required=True)
        assert plugin.register()
        plugin.server.set_devices(numbered(4))
        wait(agent, 4)
        assert agent.ledger.current().inventories[GPU].options.pre_start_required
        assert plugin.streams() == 1
        assert {one.phase for one in events.take()} == {Phase.SERVING}


def test_a_plugin_that_registers_again_and_ends_its_stream_has_another_one(agent: Agent, place: Path) -> None:
    """It counts on being asked after each registration; its devices stay healthy meanwhile."""
    with Plugin(place, "p.sock", 2, behaviour=Behaviour(end_after=2)) as plugin:
        assert plugin.register()
        wait(agent, 2)
        assert plugin.register()
        events = agent.events()
        plugin.server.set_devices(numbered(3))
        wait_until(lambda: plugin.streams() == 2)
        wait_until(lambda: agent.status()[0].phase is Phase.SERVING)
        assert {one.capacity.allocatable for one in events.take()} <= {2, 3}
        plugin.server.set_devices(numbered(4))
        wait_until(lambda: agent.status()[0].phase is Phase.LOST)
        assert plugin.streams() == 2


def test_a_plugin_that_registered_twice_and_dies_is_lost_at_once(agent: Agent, place: Path) -> None:
    """Nobody listens any more: there is no second stream to wait for."""
    with Plugin(place, "p.sock", 2) as plugin:
        assert plugin.register()
        assert plugin.register()
        wait(agent, 2)
    wait(agent, 0)
    assert agent.status()[0].phase is Phase.LOST


def test_a_plugin_in_the_registry_that_begins_to_listen_later(place: Path) -> None:
    """The registrar hears that nobody answers, tells the plugin, and tries again until somebody does."""
    registry = place.parent / "registry"
    registry.mkdir()
    bare_socket(registry / "r.sock")
    info = PluginInfo(
        type="DevicePlugin", name=GPU, endpoint=str(registry / "late.sock"), versions=("v1beta1",)
    )
    client = FakeRegistration({str(registry / "r.sock"): info})
    with (
        serving(place) as plugins,
        PluginRegistrar(
            registry,
            {"DevicePlugin": plugins},
            registration=client,
            back_off=BackOff(initial_s=0.05, max_s=0.1),
            look=lambda _directory: {
                path: one for path, one in scan(str(registry)).items() if "r.sock" in path
            },
        ) as registrar,
    ):
        wait_until(lambda: any("nothing is there" in error for _, error in client.told))
        (status,) = registrar.status()
        assert status.state is RegistrationState.IDENTIFIED
        with Plugin(registry, "late.sock", 2):
            wait(plugins, 2)
            wait_until(lambda: registrar.status()[0].state is RegistrationState.REGISTERED)
            assert client.told[-1][1] == ""
            assert plugins.status()[0].trouble == ""


def test_a_latecomer_is_forgotten_when_another_serves(agent: Agent, place: Path) -> None:
    """Who registered first and listens last does not drive out who serves since."""
    with pytest.raises(PluginUnavailableError):
        register(place, "late.sock")
    with Plugin(place, "p.sock", 2) as plugin, Plugin(place, "late.sock", 5) as late:
        # It may have been tried again before the other one came.
        late.server.stop()
        assert plugin.register()
        wait(agent, 2)
        late.server.start()
        time.sleep(0.3)
        assert allocatable(agent) == 2
        assert late.streams() <= 1


def test_a_link_that_is_made_after_the_registration_is_not_followed(agent: Agent, place: Path) -> None:
    """A socket may come later; where its path leads was judged before."""
    outside = place.parent / "outside.sock"
    with Plugin(place.parent, "outside.sock", 2) as other:
        with pytest.raises(PluginUnavailableError, match="nothing is there"):
            register(place, "x.sock")
        (place / "x.sock").symlink_to(outside)
        time.sleep(0.3)
        assert [what for what, _ in other.told] == ["serving"]
        with pytest.raises(RegistrationRefusedError, match="outside"):
            register(place, "x.sock")


def test_a_connection_stays_with_the_socket_that_it_found(place: Path) -> None:
    """Neither a link that is turned nor another program on its path gets a call."""
    place.mkdir()
    with Plugin(place, "x.sock", 2) as plugin:
        connection = GrpcConnection(str(place / "x.sock"), deadlines=QUICK)
        assert connection.options() == PluginOptions()
        (place / "x.sock").rename(place / "y.sock")
        with Plugin(place, "x.sock", 2) as other:
            connection.pre_start(["dev-0"])
            assert ("prepared", "dev-0") in plugin.told
            assert [what for what, _ in other.told] == ["serving"]
        connection.close()
    late = GrpcConnection(str(place / "late.sock"), deadlines=QUICK)
    with Plugin(place.parent, "outside.sock", 1) as outside:
        (place / "late.sock").symlink_to(place.parent / "outside.sock")
        with pytest.raises(PluginUnavailableError, match="leads elsewhere"):
            late.options()
        assert [what for what, _ in outside.told] == ["serving"]
    late.close()


def test_a_flood_of_names_costs_only_itself(place: Path) -> None:
    """Each is told; a good plugin registers beside them; what is remembered and run stays bounded."""
    limits = PluginLimits(resources=8, introductions=4)
    with serving(place, limits) as agent, Plugin(place, "good.sock", 2, resource="example.com/good") as good:
        answers: list[str] = []

        def flood(first: int) -> None:
            for number in range(first, first + 6):
                try:
                    register(place, f"n{number}.sock", f"example.com/n{number}")
                except NodeallocError as error:
                    answers.append(str(error))

        before = threading.active_count()
        crowd = [threading.Thread(target=flood, args=(100 * number,)) for number in range(8)]
        for one in crowd:
            one.start()
        wait_until(lambda: len(answers) > 5)
        assert good.register()
        wait(agent, 2, "example.com/good")
        for one in crowd:
            one.join()
        assert len(answers) == 48
        assert len(agent.capacity()) <= 8
        assert threading.active_count() < before + 64 + 8 + 10
        assert allocatable(agent, "example.com/good") == 2


def test_a_crowd_that_never_answers_hardly_delays_a_good_one(place: Path) -> None:
    """Forty of one process that hang when they are called back, two at once.

    Sixteen have their turn; the others, and those that come later, are told at once, and stand in
    nobody's way. Once one of them answers they are called again.
    """
    with (
        serving(place, PluginLimits(introductions=2)) as agent,
        Plugin(place, "good.sock", 2, resource="example.com/good") as good,
        elsewhere(place, 40) as process,
    ):
        answers: list[str] = []

        def introduced(number: int) -> None:
            with pytest.raises(NodeallocError) as refused:
                register(place, f"s{number:04}.sock", f"example.com/h{number}")
            answers.append(str(refused.value))

        crowd = [threading.Thread(target=introduced, args=(number,)) for number in range(40)]
        for thread in crowd:
            thread.start()
        began_s = time.monotonic()
        assert good.register()
        assert time.monotonic() - began_s < 5.0
        wait(agent, 2, "example.com/good")
        for thread in crowd:
            thread.join()
        introduced(0)
        assert f"process {process} keeps silent on" in answers[-1]
        assert sum("it kept silent while others waited" in one for one in answers) <= 24


def test_a_crowd_that_leads_nowhere_hardly_delays_a_good_one(place: Path) -> None:
    """Forty sockets that are not there: after sixteen the others are told at once, as of one process."""
    with (
        serving(place, PluginLimits(introductions=2)) as agent,
        Plugin(place, "good.sock", 2, resource="example.com/good") as good,
    ):
        answers: list[str] = []

        def introduced(number: int) -> None:
            with pytest.raises(NodeallocError) as refused:
                register(place, f"s{number:04}.sock", f"example.com/h{number}")
            answers.append(str(refused.value))

        crowd = [threading.Thread(target=introduced, args=(number,)) for number in range(40)]
        for thread in crowd:
            thread.start()
        assert good.register()
        wait(agent, 2, "example.com/good")
        for thread in crowd:
            thread.join()
        assert sum("nobody takes calls on" in one for one in answers) >= 16


def test_a_resource_too_many_is_refused_by_name(place: Path) -> None:
    """While all that are known are in use; the plugin hears which bound it is."""
    with (
        serving(place, PluginLimits(resources=1)) as agent,
        Plugin(place, "a.sock", 1) as first,
        Plugin(place, "b.sock", 1, resource="example.com/nic") as second,
    ):
        assert first.register()
        wait(agent, 1)
        assert not second.register()
        assert "example.com/nic: 1 resources are known, which is the most" in second.told[-1][1]
        assert [one.resource for one in agent.status()] == [GPU]


@pytest.mark.parametrize(
    ("size", "said"), [(3 << 20, ""), (4 << 20, "4,194,304 are taken .* raise PluginLimits.answer_bytes")]
)
def test_an_answer_beyond_what_a_kubelet_takes_is_refused(
    agent: Agent, place: Path, size: int, said: str
) -> None:
    """4 MB; the error names plugin and call, and the workload can be released."""
    with Plugin(place, "p.sock", 1, behaviour=Behaviour(answer_bytes=size)) as plugin:
        assert plugin.register()
        wait(agent, 1)
        grant(agent)
        if said:
            with pytest.raises(PluginRefusedError, match=said):
                agent.prepare("p")
        else:
            agent.prepare("p")


def test_a_long_refusal_keeps_its_status_and_its_words(agent: Agent, place: Path) -> None:
    """By itself gRPC would drop both past 8 KiB."""
    with Plugin(place, "p.sock", 1, behaviour=Behaviour(refuse_allocate="on fire " * 12_500)) as plugin:
        assert plugin.register()
        wait(agent, 1)
        grant(agent)
        with pytest.raises(PluginRefusedError, match="on fire") as caught:
            agent.prepare("p")
        assert caught.value.status == "FAILED_PRECONDITION"
        assert len(str(caught.value)) < 1000


def test_answers_for_containers_that_nobody_asked_for_are_named(
    agent: Agent, place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The first one counts, as a kubelet has it."""
    with Plugin(place, "p.sock", 1, behaviour=Behaviour(extra_answers=2)) as plugin:
        assert plugin.register()
        wait(agent, 1)
        grant(agent)
        agent.prepare("p")
    assert "Allocate answered for 3 containers" in caplog.text
    assert getattr(agent.launch(ONE.owner), "env", None) == {"GPU_VISIBLE_DEVICES": "dev-0"}


def test_what_stands_in_the_way_of_the_own_socket_is_said_once(
    agent: Agent, place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """In a line, without a trace; it is served anew once the way is free."""
    path = place / "kubelet.sock"
    path.unlink()
    path.mkdir()
    wait_until(lambda: "is no socket" in caplog.text)
    for _ in range(5):
        agent.reconcile()
    time.sleep(0.3)
    records = [one for one in caplog.records if one.levelno >= logging.WARNING]
    said = [one for one in records if "is no socket" in one.getMessage()]
    assert len(said) == 1
    assert [one for one in records if one.exc_info] == []
    path.rmdir()
    wait_until(path.exists)
    with Plugin(place, "p.sock", 1) as plugin:
        assert plugin.register()


def test_stopping_waits_for_no_plugin_that_hangs(place: Path) -> None:
    """Whoever registers and keeps silent is told that the agent stops."""
    agent = serving(place)
    agent.start()
    said: list[str] = []

    def come() -> None:
        try:
            register(place, "m.sock")
        except NodeallocError as error:
            said.append(str(error))

    with mute(place / "m.sock"):
        thread = threading.Thread(target=come)
        thread.start()
        time.sleep(0.1)
        began_s = time.monotonic()
        agent.stop()
        assert time.monotonic() - began_s < 2.0
        thread.join()
    assert len(said) == 1
