"""What needs a machine of one's own: ext4 that grows while a pod uses it.

The kernel takes the call from who has CAP_SYS_RESOURCE, which root in a
container often lacks; in the virtual machine root has everything.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nodealloc.testing.volumes import claiming_pod
from nodealloc.volumes import LinuxMountTable
from tests.real.volumes_node import Node, loop_devices, on

pytestmark = [pytest.mark.vm, pytest.mark.real, pytest.mark.root, pytest.mark.forks]


def test_ext4_grows_while_it_is_mounted(tmp_path: Path) -> None:
    """Two pods see more room without a remount, an open file goes on, and the data stay."""
    loop_devices()
    image = tmp_path / "disk.img"

    def test(node: Node) -> None:
        def size(megabytes: int) -> None:
            node.claims.volumes["disk"] = node.local.volume("disk", str(image), size_bytes=megabytes << 20)

        size(16)
        one = Path(node.run(claiming_pod("one", "disk")))
        other = Path(node.run(claiming_pod("other", "disk")))
        blocks = os.statvfs(one).f_blocks
        mounts = LinuxMountTable().entries()
        with (one / "file").open("wb") as writing:
            writing.write(b"kept")
            size(64)
            node.manager.refresh("one")
            node.manager.refresh("other")
            node.settle()
            assert os.statvfs(one).f_blocks > 3 * blocks
            assert os.statvfs(other).f_blocks == os.statvfs(one).f_blocks
            writing.write(bytes(24 << 20))
        assert LinuxMountTable().entries() == mounts
        assert node.manager.volumes_of("one")[0].size_bytes == 64 << 20
        with (other / "file").open("rb") as reading:
            assert reading.read(4) == b"kept"
        node.end("one")
        node.end("other")

    on(tmp_path, test)
