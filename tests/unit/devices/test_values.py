"""Names, lists, lives, answers and events of devices, a behaviour at a time."""

from __future__ import annotations

import gc
import pickle
import socket
import sys
from itertools import product
from pathlib import Path

import pytest

from nodealloc.checkpoint import DEVICE_STATE, KUBELET_FORMATS, DeviceManagerState, MemoryStore
from nodealloc.devices import (
    DEVICE_LIFE,
    Capacity,
    Device,
    DeviceAllocator,
    DeviceLedger,
    DeviceList,
    DeviceMount,
    DeviceNode,
    Grant,
    Inventory,
    Phase,
    PluginOptions,
    RegistrationRefusedError,
    Response,
)
from nodealloc.devices._directory import plugin_socket, prepare_directory
from nodealloc.devices._events import DeviceEvent, DeviceEvents, Touched, touched_by
from nodealloc.devices._launch import Conflict, merge
from nodealloc.devices._life import PluginEvent
from nodealloc.devices._state import from_rows, remembered, restored, to_row
from nodealloc.devices.plugins import (
    DevicePlugins,
    launch_of,
)
from nodealloc.devices.plugins._codec import (
    decode_list,
    decode_response,
    encode_list,
    encode_response,
)
from nodealloc.errors import ConfigurationError, DecodeError, PermanentError
from nodealloc.testing.devices import check_allocator_keeper
from nodealloc.topology import NotYet, Owner

GPU = "example.com/gpu"


def test_a_list_pickles_without_what_it_worked_out() -> None:
    """A scheduler sends snapshots to other processes; indexes are made there when they are needed."""
    devices = DeviceList.of([Device(f"dev-{n}") for n in range(100)], nodes=(0,))
    fresh = len(pickle.dumps(devices))
    assert devices.index["dev-7"] == devices.ids.index("dev-7")
    assert len(pickle.dumps(devices)) == fresh
    copy = pickle.loads(pickle.dumps(devices))  # noqa: S301
    assert copy == devices
    assert copy.index == devices.index


@pytest.mark.parametrize("count", [0, 1, 7, 8, 100])
def test_a_mask_has_the_devices_that_are_named(count: int) -> None:
    """Few or many of them, some twice, some unknown."""
    devices = DeviceList.of([Device(f"d{n:03}", numa_nodes=1 << n % 3) for n in range(200)], nodes=(0, 1))
    named = [f"d{n * 2:03}" for n in range(count)]
    mask = devices.mask_of([*named, *named, "unknown"])
    assert devices.ids_of(mask) == tuple(named)
    assert all(devices.nodes_of(one) == {0: (0,), 1: (1,), 2: ()}[int(one[1:]) % 3] for one in named)


def test_of_two_devices_with_one_id_the_last_counts() -> None:
    """A doubled id is one device, and the list says so."""
    devices = DeviceList.of([Device("a"), Device("a", "Unhealthy")], nodes=(0,))
    assert (devices.ids, devices.healthy) == (("a",), 0)
    assert "twice" in devices.findings[0]


def test_unknown_health_is_unhealthy() -> None:
    """A word that nobody knows is taken for the worst, and named."""
    devices = DeviceList.of([Device("a", "Splendid")], nodes=(0,))
    assert devices.healthy == 0
    assert "'Splendid'" in devices.findings[0]


def test_a_device_without_id_is_left_out() -> None:
    """Nobody could be given it."""
    devices = DeviceList.of([Device("")], nodes=(0,))
    assert devices.ids == ()
    assert "without id" in devices.findings[0]


def test_foreign_numa_nodes_are_dropped_and_named() -> None:
    """A node that the machine does not have takes nothing else from its device."""
    devices = DeviceList.of([Device("a", numa_nodes=0b1010), Device("b", numa_nodes=1 << 9)], nodes=(0, 1))
    assert devices.nodes_of("a") == (1,)
    assert devices.nodes_of("b") == ()
    assert "[3, 9]" in devices.findings[0]


def test_node_zero_is_an_empty_message_not_an_absent_one() -> None:
    """On the wire node 0 has no field; a device there is not one without a place."""
    data = encode_list([Device("a", numa_nodes=1), Device("b")])
    assert b"\x1a\x02\x0a\x00" in data
    assert decode_list(data) == [Device("a", numa_nodes=1), Device("b")]


def test_a_place_without_nodes_is_no_place() -> None:
    """A topology that names no node would never be aligned with anything."""
    assert decode_list(b"\x0a\x05\x0a\x01a\x1a\x00") == [Device("a", "")]


@pytest.mark.parametrize("number", [-1, 1 << 40, 70000])
def test_absurd_numa_ids_are_foreign(number: int) -> None:
    """An id that no machine can have costs no memory and is dropped."""
    from nodealloc._proto import deviceplugin_v1beta1_pb2 as wire

    place = wire.TopologyInfo(nodes=[wire.NUMANode(ID=number)])
    data = wire.ListAndWatchResponse(devices=[wire.Device(ID="a", topology=place)]).SerializeToString()
    devices = DeviceList.of(decode_list(data), nodes=(0,))
    assert devices.nodes_of("a") == ()
    said = "NUMA nodes [1024] (1024: or any below 0 or above) are not on this machine"
    assert any(finding.startswith(said) for finding in devices.findings)


def test_places_of_many_devices_take_little_room() -> None:
    """A plugin that puts each of them somewhere else, far from any node, would take a GiB with 4 MiB."""
    from nodealloc._proto import deviceplugin_v1beta1_pb2 as wire

    message = wire.ListAndWatchResponse()
    for number in range(1000):
        place = wire.TopologyInfo(nodes=[wire.NUMANode(ID=one) for one in (number, 65535 - number)])
        message.devices.add(ID=f"d{number:03}").topology.CopyFrom(place)
    listed = decode_list(message.SerializeToString())
    assert sum(sys.getsizeof(device.numa_nodes) for device in listed) < 200_000
    devices = DeviceList.of(listed, nodes=(0, 999))
    assert devices.by_node == {0: 1, 999: 1 << 999}


def test_bytes_that_are_no_list() -> None:
    """Junk is an error with its reason, not a list."""
    with pytest.raises(DecodeError, match="ListAndWatchResponse"):
        decode_list(b"\xff\xff\xff\x07")


def test_every_pair_of_phase_and_happening() -> None:
    """The whole table is walked: what is in it moves, what is not changes nothing."""
    for phase, event in product(Phase, PluginEvent):
        before = Inventory(resource=GPU, phase=phase, generation=5, settled=True, since_s=1.0)
        after = {
            PluginEvent.REGISTERED: lambda one: one.registered(6, now_s=500.0),
            PluginEvent.LISTED: lambda one: one.listed(5, DeviceList(), PluginOptions(), now_s=500.0),
            PluginEvent.ENDED: lambda one: one.ended(5, "x", now_s=500.0),
            PluginEvent.GRACE_OVER: lambda one: one.aged(now_s=500.0, grace_s=300.0),
        }[event](before)
        if DEVICE_LIFE.takes(phase, event):
            assert after.phase is DEVICE_LIFE.after(phase, event)
        else:
            assert after is before


def test_a_late_end_of_an_older_registration_changes_nothing() -> None:
    """Generations tell an old stream from the current one."""
    current = Inventory(resource=GPU).registered(1, now_s=0.0).registered(2, now_s=1.0)
    assert current.ended(1, "late", now_s=2.0) is current
    assert current.listed(1, DeviceList(), PluginOptions(), now_s=2.0) is current
    assert current.registered(1, now_s=2.0) is current


def test_a_lost_plugin_keeps_its_capacity_for_a_while() -> None:
    """Capacity stands while the grace period runs, nothing is allocatable."""
    devices = DeviceList.of([Device("a"), Device("b")], nodes=(0,))
    serving = Inventory(resource=GPU).registered(1, now_s=0.0).listed(1, devices, PluginOptions(), now_s=0.0)
    lost = serving.ended(1, "crashed", now_s=10.0)
    assert serving.capacity == Capacity(2, 2)
    assert lost.capacity == Capacity(2, 0)
    assert lost.aged(now_s=309.0, grace_s=300.0) is lost
    assert lost.aged(now_s=310.0, grace_s=300.0).capacity == Capacity(0, 0)
    assert lost.registered(2, now_s=20.0).aged(now_s=900.0, grace_s=300.0).phase is Phase.CONNECTING


def test_answers_are_merged() -> None:
    """Several plugins' wishes for one container come together; the same wish twice is one."""
    lib = DeviceMount("/opt", "/opt", read_only=True)
    launch = merge(
        {
            "b/x": Response(env={"B": "2"}, mounts=(lib,), cdi_devices=("v/c=2", "v/c=1")),
            "a/x": Response(env={"A": "1"}, mounts=(lib,), cdi_devices=("v/c=1",), annotations={"k": "v"}),
        }
    )
    assert (launch.env, launch.annotations) == ({"A": "1", "B": "2"}, {"k": "v"})
    assert (launch.mounts, launch.cdi_devices, launch.conflicts) == ((lib,), ("v/c=1", "v/c=2"), ())


def test_conflicts_are_named() -> None:
    """Where two plugins disagree, the first by name stands and both are named."""
    launch = merge(
        {
            "b/x": Response(
                env={"E": "b"},
                annotations={"k": "b"},
                mounts=(DeviceMount("/m", "/b"),),
                device_nodes=(DeviceNode("/dev/d", "/dev/b"),),
            ),
            "a/x": Response(
                env={"E": "a"},
                annotations={"k": "a"},
                mounts=(DeviceMount("/m", "/a"),),
                device_nodes=(DeviceNode("/dev/d", "/dev/a"),),
            ),
        }
    )
    assert (launch.env["E"], launch.annotations["k"], launch.mounts[0].host_path) == ("a", "a", "/a")
    assert [conflict.kind for conflict in launch.conflicts] == ["env", "mount", "device node", "annotation"]
    assert launch.conflicts[0] == Conflict(kind="env", place="E", kept=("a/x", "a"), dropped=("b/x", "b"))
    assert "a/x says 'a' and stands" in str(launch.conflicts[0])


def test_an_answer_reads_back() -> None:
    """The remembered bytes hold all that a plugin can say."""
    response = Response(
        env={"A": "1"},
        mounts=(DeviceMount("/c", "/h", read_only=True),),
        device_nodes=(DeviceNode("/dev/c", "/dev/h", "rwm"),),
        annotations={"a": "b"},
        cdi_devices=("v/c=n",),
    )
    assert decode_response(encode_response(response)) == response


def test_a_grant_without_answer_is_not_ready_to_launch() -> None:
    """A container does not start before its plugin has prepared its devices."""
    grants = {"p": {("c", GPU): Grant.of([("a", ())])}}
    allocator = DeviceAllocator(grants=grants)
    assert isinstance(launch_of(allocator, Owner("p", "c")), NotYet)
    answered = allocator.with_response(Owner("p", "c"), GPU, encode_response(Response(env={"A": "1"})))
    launch = launch_of(answered, Owner("p", "c"))
    assert not isinstance(launch, NotYet)
    assert launch.env == {"A": "1"}
    assert launch_of(answered, Owner("p", "other")) == merge({})


def test_who_is_touched_by_a_change_of_health() -> None:
    """Holders of devices that fell ill, came back or vanished; nobody else."""
    grants = {
        "p": {("c", GPU): Grant.of([("a", ()), ("b", ())])},
        "q": {("c", GPU): Grant.of([("c", ())]), ("c", "other/x"): Grant.of([("a", ())])},
    }
    healthy = DeviceList.of([Device("a"), Device("b"), Device("c")], nodes=(0,))
    sick = DeviceList.of([Device("b", "Unhealthy"), Device("c")], nodes=(0,))
    touched = Touched(owner=Owner("p", "c"), resource=GPU, unhealthy=("a", "b"), healthy=())
    assert touched_by(healthy, sick, GPU, grants) == (touched,)
    assert touched_by(healthy, healthy, GPU, grants) == ()


def test_events_are_coalesced() -> None:
    """A reader who sleeps finds one event a resource, with everyone who was touched."""
    stream = DeviceEvents()
    for member, phase in (("a", Phase.SERVING), ("b", Phase.LOST)):
        touched = Touched(owner=Owner("p", member), resource=GPU, unhealthy=("x",), healthy=())
        stream.put(DeviceEvent(resource=GPU, phase=phase, capacity=Capacity(1, 0), touched=(touched,)))
    (event,) = stream.take()
    assert (event.phase, [one.owner.member for one in event.touched]) == (Phase.LOST, ["a", "b"])
    assert stream.take() == ()


def bound(path: Path) -> None:
    """Leave a socket there."""
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


def test_the_directory_is_swept_of_sockets_alone(tmp_path: Path) -> None:
    """Sockets go, so that plugins notice; files and directories stay; others may not look in."""
    directory = tmp_path / "dp"
    prepare_directory(directory)
    bound(directory / "old.sock")
    (directory / DEVICE_STATE).write_text("{}")
    (directory / "sub").mkdir()
    assert prepare_directory(directory) == (directory / "old.sock",)
    assert sorted(entry.name for entry in directory.iterdir()) == [DEVICE_STATE, "sub"]
    assert directory.stat().st_mode & 0o777 == 0o750


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """Where something else stands, in the words in which a registrar says it."""
    taken = tmp_path / "file"
    taken.touch()
    with pytest.raises(ConfigurationError, match=f"{taken}: no directory can be made .*; give another"):
        prepare_directory(taken)


@pytest.mark.parametrize(
    "endpoint", ["../x.sock", "/etc/passwd", "", "link/x.sock", "a/../../x", ".", "a\0b", "kubelet.sock"]
)
def test_endpoints_outside_are_refused(tmp_path: Path, endpoint: str) -> None:
    """No word of a plugin leads out of the directory, nor to the agent itself."""
    directory = tmp_path / "dp"
    directory.mkdir()
    (directory / "link").symlink_to("/tmp")
    with pytest.raises(RegistrationRefusedError):
        plugin_socket(directory, endpoint, own="kubelet.sock")


def test_endpoints_inside_are_taken(tmp_path: Path) -> None:
    """A name, a name below, or the full path inside."""
    for endpoint in ("x.sock", "sub/x.sock", str(tmp_path / "x.sock")):
        assert tmp_path.resolve() in plugin_socket(tmp_path, endpoint, own="kubelet.sock").parents


def held() -> DeviceAllocator:
    """Something worth remembering: one grant answered, one not."""
    grants = {
        "p": {
            ("c", GPU): Grant.of([("a", (0, 1)), ("b", ())], response=b""),
            ("d", GPU): Grant.of([("e", (1,))]),
        }
    }
    inventory = Inventory(resource=GPU).registered(1, now_s=0.0)
    devices = DeviceList.of([Device("a"), Device("z", "Unhealthy")], nodes=(0,))
    return DeviceAllocator(nodes=(0, 1), grants=grants).with_inventory(
        inventory.listed(1, devices, PluginOptions(), now_s=0.0)
    )


def test_what_is_remembered_reads_back() -> None:
    """Grants survive the kubelet's file; plugins are awaited, capacity is zero until they come."""
    before = held()
    state = DeviceManagerState.unmarshal(remembered(before).marshal())
    state.verify()
    after = restored(DeviceAllocator(nodes=(0, 1)), state, now_s=7.0)
    assert after.grants == before.grants
    assert after.inventories == {GPU: Inventory(resource=GPU, phase=Phase.AWAITED, since_s=7.0)}
    assert state.registered_devices == {GPU: ("a",)}


def test_rows_read_back() -> None:
    """A node's own record of a workload says the same."""
    before = held()
    after = from_rows(DeviceAllocator(nodes=(0, 1)), {"p": to_row(before, "p")})
    assert after.grants == before.grants
    assert to_row(before, "nobody") == []


@pytest.mark.parametrize(
    "row", [3, [{}], [{"member": "c", "resource": "r", "places": {"x": []}, "response": None}]]
)
def test_rows_of_another_shape_are_refused(row: object) -> None:
    """What was never written is an error, not a grant."""
    with pytest.raises(DecodeError):
        from_rows(DeviceAllocator(), {"p": row})  # type: ignore[dict-item]


def test_the_ledger_keeps_the_promises_of_keepers() -> None:
    """The check for keepers holds, with and without a store."""
    check_allocator_keeper(DeviceLedger)
    check_allocator_keeper(lambda allocator: DeviceLedger(allocator, store=MemoryStore(KUBELET_FORMATS)))


def test_the_ledger_loads_what_it_stored() -> None:
    """A restart finds the grants."""
    store = MemoryStore(KUBELET_FORMATS)
    DeviceLedger(DeviceAllocator(nodes=(0, 1)), store=store).alter(lambda _: held())
    again = MemoryStore(KUBELET_FORMATS, data=store.data())
    ledger = DeviceLedger.load(DeviceAllocator(nodes=(0, 1)), again, now_s=0.0)
    assert ledger.current().grants == held().grants


def test_a_damaged_record_is_not_an_empty_one() -> None:
    """Who holds what is not known then, so nothing may be granted."""
    store = MemoryStore(KUBELET_FORMATS, data={DEVICE_STATE: b"{}"})
    with pytest.raises(PermanentError, match="kept as"):
        DeviceLedger.load(DeviceAllocator(), store, now_s=0.0)


def test_a_reader_who_is_gone_costs_nothing() -> None:
    """A stream that nobody holds any more is no longer filled."""
    plugins = DevicePlugins(DeviceLedger(DeviceAllocator()))
    kept = plugins.events()
    plugins.events()
    gc.collect()
    assert list(plugins._readers._streams) == [kept]


def test_what_was_remembered_of_a_resource_without_a_name_is_refused() -> None:
    """With the file's name, like other records that nobody can have written."""
    state = DeviceManagerState(registered_devices={"": ("a",)})
    with pytest.raises(DecodeError, match=r"kubelet_internal_checkpoint: .*a resource has an empty name"):
        restored(DeviceAllocator(), state, now_s=0.0)
