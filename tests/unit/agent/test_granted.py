"""What device plugins say of mounts, as it comes to a container."""

from __future__ import annotations

import attrs
import pytest

from nodealloc.agent import AGENT_FORMATS, GrantedConfiguration
from nodealloc.agent._granted import _with_devices
from nodealloc.checkpoint import MemoryStore
from nodealloc.cpuset import CpuAllocator
from nodealloc.devices import DeviceMount, DeviceNode, Launch
from nodealloc.devices.plugins import DevicePlugins
from nodealloc.dsw_asw import Cancel
from nodealloc.errors import ConfigurationError
from nodealloc.machine import machine_from_text
from nodealloc.node import NodeAllocator
from nodealloc.podlife import ContainerRunOptions, NodeConfiguration, NodeSettings, PodRecord
from nodealloc.podspec import Container, Pod, Quantity
from nodealloc.testing.podlife import check_configures
from nodealloc.topology import Owner, Snapshot

OWNER = Owner("u", "app")


@attrs.frozen
class Plugins(DevicePlugins):
    """Says of whatever it is asked that one folder has to be mounted, and has one device."""

    mount: DeviceMount
    heard: list[Owner] = attrs.field(factory=list[Owner])

    def pre_start(self, owner: Owner, /, *, cancel: Cancel | None = None) -> None:
        """Noted."""
        assert cancel is None or not cancel.is_set()
        self.heard.append(owner)

    def launch(self, owner: Owner, /) -> Launch:
        """The folder, and a device whose place lacks the root."""
        node = DeviceNode("dev/gpu0", "/dev/gpu0", "rw")
        return Launch(mounts=(self.mount,), device_nodes=(node,))


@pytest.mark.parametrize("path", ["/usr/lib/gpu", "usr/lib/gpu"])
def test_a_plugin_may_leave_out_the_root(path: str) -> None:
    """Runtimes take such a path as an absolute one."""
    options = _with_devices(
        ContainerRunOptions(), Plugins(DeviceMount(path, "/opt/gpu", read_only=True)), OWNER, None
    )
    (found,) = options.mounts
    assert options.devices[0].container_path == "/dev/gpu0"
    assert (found.host_path, found.container_path, found.read_only) == ("/opt/gpu", "/usr/lib/gpu", True)


@pytest.mark.parametrize("mount", [DeviceMount("", "/opt/gpu"), DeviceMount("/usr/lib/gpu", "gpu")])
def test_a_plugin_that_says_no_place_is_refused(mount: DeviceMount) -> None:
    """It would be mounted over everything that the container has, or from wherever the runtime is."""
    with pytest.raises(ConfigurationError, match=r"HostMount\.(container|host)_path: expected an absolute"):
        _with_devices(ContainerRunOptions(), Plugins(mount), OWNER, None)


def test_no_plugin_hears_of_other_limits() -> None:
    """It would make ready, while a container runs, what that one has in use."""
    machine = machine_from_text("4 cores")
    snapshot = Snapshot.of(machine, allocators=[CpuAllocator.of(machine, reserved=1)])
    node = NodeAllocator(snapshot, MemoryStore(AGENT_FORMATS))
    node.start()
    plugins = Plugins(DeviceMount("/usr/lib/gpu", "/opt/gpu"))
    whole = NodeConfiguration(NodeSettings(name="n1", memory_capacity_bytes=1 << 30, pods_directory=""))
    granted = GrantedConfiguration(whole=whole, node=node, plugins=plugins)
    app = Container(name="app", image="i", limits={"cpu": Quantity.of(1)})
    record = PodRecord(pod=Pod(uid="u", name="web", containers=(app,)))
    assert granted.resources(record, app).cpu_quota_us == 100_000
    assert plugins.heard == []
    check_configures(granted, record.pod)
    assert plugins.heard == [OWNER, OWNER, OWNER]
