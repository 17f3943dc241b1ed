"""What device plugins say of mounts, as it comes to a container."""

from __future__ import annotations

import attrs
import pytest

from nodealloc.agent._granted import _with_devices
from nodealloc.devices import DeviceMount, DeviceNode, Launch
from nodealloc.devices.plugins import DevicePlugins
from nodealloc.errors import ConfigurationError
from nodealloc.podlife import ContainerGift
from nodealloc.topology import Owner

OWNER = Owner("u", "app")


@attrs.frozen
class Plugins(DevicePlugins):
    """Says of whatever it is asked that one folder has to be mounted, and has one device."""

    mount: DeviceMount

    def pre_start(self, owner: Owner, /) -> None:
        """Nothing to do."""

    def launch(self, owner: Owner, /) -> Launch:
        """The folder, and a device whose place lacks the root."""
        node = DeviceNode("dev/gpu0", "/dev/gpu0", "rw")
        return Launch(mounts=(self.mount,), device_nodes=(node,))


@pytest.mark.parametrize("path", ["/usr/lib/gpu", "usr/lib/gpu"])
def test_a_plugin_may_leave_out_the_root(path: str) -> None:
    """Runtimes take such a place from the root on."""
    gift = _with_devices(ContainerGift(), Plugins(DeviceMount(path, "/opt/gpu", read_only=True)), OWNER)
    (found,) = gift.mounts
    assert gift.devices[0].container_path == "/dev/gpu0"
    assert (found.host_path, found.container_path, found.read_only) == ("/opt/gpu", "/usr/lib/gpu", True)


@pytest.mark.parametrize("mount", [DeviceMount("", "/opt/gpu"), DeviceMount("/usr/lib/gpu", "gpu")])
def test_a_plugin_that_says_no_place_is_refused(mount: DeviceMount) -> None:
    """It would be mounted over everything that the container has, or from wherever the runtime is."""
    with pytest.raises(ConfigurationError, match=r"HostMount\.(container|host)_path: expected a path from"):
        _with_devices(ContainerGift(), Plugins(mount), OWNER)
