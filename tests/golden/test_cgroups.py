"""Texts of real kernels."""

from __future__ import annotations

from nodealloc.cgroups import CgroupMount
from nodealloc.cgroups._layout import mounts_below

HYBRID = """\
25 21 0:23 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
26 25 0:24 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw
27 25 0:25 / /sys/fs/cgroup/systemd rw,nosuid - cgroup cgroup rw,xattr,name=systemd
28 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:11 - cgroup cgroup rw,cpu,cpuacct
29 25 0:27 / /sys/fs/cgroup/memory ro,nosuid shared:12 - cgroup cgroup rw,memory
30 25 0:28 / /sys/fs/cgroup/net_cls rw - cgroup cgroup rw,net_cls
31 21 0:29 / /proc rw - proc proc rw
a line that is none
"""
UNIFIED = (
    "30 24 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup rw,nsdelegate\n"
)


def test_hybrid_mounts_are_read() -> None:
    """Co-mounted controllers are one hierarchy, foreign ones are left out, read-only ones are marked."""
    assert mounts_below(HYBRID, "/sys/fs/cgroup") == (
        CgroupMount(path="/sys/fs/cgroup/cpu,cpuacct", version=1, controllers=("cpu", "cpuacct")),
        CgroupMount(path="/sys/fs/cgroup/memory", version=1, controllers=("memory",), read_only=True),
        CgroupMount(path="/sys/fs/cgroup/unified", version=2),
    )


def test_unified_mount_is_read() -> None:
    """A v2 node has one hierarchy; a directory in it is a delegated subtree."""
    assert mounts_below(UNIFIED, "/sys/fs/cgroup") == (CgroupMount(path="/sys/fs/cgroup", version=2),)
    assert mounts_below(UNIFIED, "/sys/fs/cgroup/user.slice") == (
        CgroupMount(path="/sys/fs/cgroup/user.slice", version=2),
    )
    assert mounts_below(UNIFIED, "/elsewhere") == ()


def test_escaped_mount_points_are_read() -> None:
    """A blank in a mount point stands as an octal number."""
    assert mounts_below(UNIFIED.replace("/sys/fs/cgroup", r"/a\040b"), "/a b")[0].path == "/a b"
