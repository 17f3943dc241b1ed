"""Plugins without rights: fakes of the mounter and of block devices."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Sequence
from pathlib import Path

import pytest

from nodealloc.errors import PermanentError, RetryableError
from nodealloc.podspec import Container, Json, Pod, Quantity, Volume
from nodealloc.testing.volume_plugins import (
    FakeBlockTools,
    FakeFilesystems,
    check_block_tools,
    check_filesystems,
    check_plugin,
)
from nodealloc.testing.volume_sources import FakeConfigSource
from nodealloc.testing.volumes import FakeHost, FakeMounter
from nodealloc.volumes import (
    Found,
    InvalidVolumeError,
    MountedHereError,
    MountError,
    Plugin,
    SafeRoot,
    Use,
    VolumeMode,
    VolumeSpec,
)
from nodealloc.volumes.plugins import (
    ConfigMap,
    ConfigObject,
    ConfigStore,
    EmptyDir,
    HostPath,
    LocalBlock,
    PodObjects,
    Secret,
    node_plugins,
)
from nodealloc.volumes.plugins._block_record import BlockRecord, BlockRecords

POD = Pod(uid="uid", name="pod")
USE = Use(pod_uid="uid", generation=1, volume="v")


class OneObject:
    """A source with one object of every name."""

    def read(self, namespace: str, name: str, /) -> ConfigObject | None:
        """The object."""
        return ConfigObject(data={"a": b"1"}, version="1")


class Tools:
    """Everything that plugins need, of the mind."""

    def __init__(self, base: Path) -> None:
        (base / "root").mkdir()
        self.base = base
        self.root = SafeRoot(str(base / "root"))
        self.mounter = FakeMounter(self.root.path)
        self.blocks = FakeBlockTools()
        self.filesystems = FakeFilesystems()
        self.local = LocalBlock(self.root, self.mounter, blocks=self.blocks, filesystems=self.filesystems)


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    """A root and fakes."""
    return Tools(tmp_path)


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("emptyDir", {}),
        ("emptyDir", {"medium": "Memory", "sizeLimit": " 1Mi "}),
        ("hostPath", {"path": "/etc", "type": "Directory"}),
        ("configMap", {"name": "o"}),
        ("secret", {"secretName": "o"}),
    ],
)
def test_each_plugin_bears_repetition(tools: Tools, kind: str, spec: dict[str, Json]) -> None:
    """Every call twice, and in vain; what is found has its id; nothing is left."""
    plugins: list[Plugin] = [
        EmptyDir(tools.root, tools.mounter),
        HostPath(),
        ConfigMap(tools.root, tools.mounter, ConfigStore(OneObject())),
        Secret(tools.root, tools.mounter, ConfigStore(OneObject())),
    ]
    plugin = next(one for one in plugins if kind in one.kinds)
    is_there = None if kind == "hostPath" else os.path.isdir  # which is there with or without it
    check_plugin(plugin, plugin.spec(POD, Volume(name="v", kind=kind, spec=spec)), USE, is_there=is_there)
    assert not tools.mounter.entries()
    assert [one for one in (tools.base / "root").rglob("*") if not one.is_dir()] == []


@pytest.mark.parametrize("mode", list(VolumeMode))
@pytest.mark.parametrize("grows_online", [True, False])
def test_local_block_bears_repetition(tools: Tools, mode: VolumeMode, grows_online: bool) -> None:
    """File system or raw device, growing online or at the next mount."""
    tools.filesystems.grows_online = grows_online
    image = str(tools.base / "disk.img")
    check_plugin(tools.local, tools.local.volume("disk", image, size_bytes=1 << 20, mode=mode), USE)
    assert not tools.blocks.attached
    assert not tools.mounter.entries()
    assert [one for one in (tools.base / "root").rglob("*") if not one.is_dir()] == []


def test_fakes_keep_their_own_promises(tools: Tools) -> None:
    """Block tools, file systems and the host in memory pass the checks for real ones."""
    check_block_tools(tools.blocks, str(tools.base / "a"))
    check_filesystems(tools.filesystems, tools.blocks, str(tools.base / "b"))
    host = FakeHost()
    check_plugin(host, host.disk("d", 7), USE)
    assert host.violations == []


def test_growth_that_must_wait_is_due(tools: Tools) -> None:
    """Where online growth is refused, the size is promised for the next mount."""
    image = str(tools.base / "disk.img")
    small = tools.local.volume("disk", image, size_bytes=1 << 20)
    tools.filesystems.grows_online = False
    device = tools.local.attach(small).device_path
    tools.local.stage(small, device)
    grown = tools.local.expand(tools.local.volume("disk", image, size_bytes=2 << 20), device)
    assert grown.due_bytes == 2 << 20
    assert grown.size_bytes < 2 << 20
    tools.local.unstage(small, device)
    tools.local.stage(tools.local.volume("disk", image, size_bytes=2 << 20), device)
    assert tools.filesystems.sizes[device] == 2 << 20


def test_a_device_that_is_too_small_is_named(tools: Tools) -> None:
    """An image is grown; what is absent without a size, or too short, is said."""
    with pytest.raises(Exception, match="does not exist; make it"):
        tools.local.attach(tools.local.volume("disk", str(tools.base / "none.img")))
    with pytest.raises(InvalidVolumeError, match="by a claim"):
        tools.local.spec(POD, Volume(name="v", kind="x"))
    with pytest.raises(InvalidVolumeError, match="absolute path"):
        tools.local.attach(tools.local.volume("disk", "relative.img"))


def test_mkfs_that_was_cut_short_is_made_again(tools: Tools) -> None:
    """The record says that nothing was mounted yet; without it the same bytes are data."""
    image = tools.base / "disk.img"
    image.write_bytes(b"half a superblock" + bytes(1 << 20))
    spec = tools.local.volume("disk", str(image))
    device = tools.local.attach(spec).device_path
    with pytest.raises(Exception, match="is not empty"):
        tools.local.stage(spec, device)
    records = BlockRecords(tools.root, tools.local.name)
    records.write("disk", BlockRecord.of(spec, formatting="ext4"))
    tools.local.attach(spec)
    tools.local.stage(spec, device)
    assert tools.filesystems.types == {device: "ext4"}
    record = records.read("disk")
    assert record is not None
    assert record.formatting == ""


def test_mkfs_that_was_cut_short_elsewhere_says_nothing_of_another_device(tools: Tools) -> None:
    """A volume that is given to another device under its name keeps what is on that."""
    records = BlockRecords(tools.root, tools.local.name)
    before = tools.local.volume("disk", str(tools.base / "first.img"), size_bytes=1 << 20)
    tools.local.attach(before)
    records.write("disk", BlockRecord.of(before, formatting="ext4"))
    spec = tools.local.volume("disk", str(tools.base / "second.img"), size_bytes=1 << 20)
    device = tools.local.attach(spec).device_path
    tools.filesystems.types[device] = "ext4"  # with somebody's files; `make` refuses to make it again
    tools.local.stage(spec, device)
    assert tools.mounter.is_mounted(f"{tools.root.path}/plugins/nodealloc.io~local-block/mounts/disk")


def test_a_record_that_is_none_is_passed_over(tools: Tools) -> None:
    """Foreign bytes in its place are no record, and no crash."""
    folder = tools.base / "root/plugins/nodealloc.io~local-block/records"
    folder.mkdir(parents=True)
    for name, text in (("a", "{"), ("b", "[]"), ("c", '{"name": "c"}'), ("d", "\xff"), ("e", "[" * 60_000)):
        (folder / f"{name}.json").write_text(text, encoding="latin-1")
        assert BlockRecords(tools.root, tools.local.name).read(name) is None
    os.mkfifo(folder / "f.json")
    records = BlockRecords(tools.root, tools.local.name)
    with pytest.raises(OSError, match="no regular file"):  # nor is it waited for
        records.read("f")
    os.mkfifo(folder / ".f.new")
    record = BlockRecord.of(tools.local.volume("f", "disk.img"))
    records.write("f", record)
    assert records.read("f") == record


def test_a_mount_below_stops_a_deletion(tools: Tools) -> None:
    """An emptyDir that cannot be unmounted is not deleted."""
    plugin = EmptyDir(tools.root, tools.mounter)
    spec = plugin.spec(POD, Volume(name="v", kind="emptyDir", spec={"medium": "Memory"}))
    plugin.mount(spec, USE, "")
    path = Path(plugin.path(spec, USE))
    (path / "file").write_text("x")
    tools.mounter.busy.add(str(path))
    with pytest.raises(Exception, match="busy"):
        plugin.unmount(spec, USE)
    assert (path / "file").exists()
    assert "unmount before deleting" in str(MountedHereError([str(path)]))


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"medium": "Paper"}, "medium is"),
        ({"sizeLimit": "lots"}, "sizeLimit"),
        ({"sizeLimit": "-1"}, "0 or more"),
        ({"sizeLimit": "9223372036854775808"}, "at most 9223372036854775807"),
        ({"sizeLimit": 16**6000}, "sizeLimit"),
    ],
)
def test_bad_empty_dirs_are_named(tools: Tools, spec: dict[str, Json], reason: str) -> None:
    """Medium and size limit are read strictly."""
    with pytest.raises(InvalidVolumeError, match=reason):
        EmptyDir(tools.root, tools.mounter).spec(POD, Volume(name="v", kind="emptyDir", spec=spec))


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({}, "absolute path"),
        ({"path": "data"}, "absolute path"),
        ({"path": "/a\0b"}, "absolute path"),
        ({"path": "/a/../b"}, "holds `..`"),
        ({"path": "/a", "type": "Folder"}, "type is 'Folder'"),
    ],
)
def test_bad_host_paths_are_named(spec: dict[str, Json], reason: str) -> None:
    """Nothing leads up, and nothing is relative to wherever the agent runs."""
    with pytest.raises(InvalidVolumeError, match=reason):
        HostPath().spec(POD, Volume(name="v", kind="hostPath", spec=spec))


@pytest.mark.parametrize("kind", ["configMap", "secret", "downwardAPI", "projected"])
def test_a_mode_that_is_null_is_the_default(tools: Tools, kind: str) -> None:
    """As templates write one for which nobody gave a value."""
    source = FakeConfigSource()
    plugins = node_plugins(tools.root, tools.mounter, PodObjects(config_maps=source, secrets=source))
    (plugin,) = (one for one in plugins if kind in one.kinds)
    asked: dict[str, Json] = {"name": "o", "secretName": "o", "defaultMode": None}
    plain = {name: value for name, value in asked.items() if value is not None}
    specs = [plugin.spec(POD, Volume(name="v", kind=kind, spec=one)) for one in (asked, plain)]
    assert specs[0] == specs[1]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({}, "name a configMap"),
        ({"name": "o", "items": "x"}, "write a list"),
        ({"name": "o", "items": [{"key": "a"}]}, "lacks key or path"),
        ({"name": "o", "defaultMode": 4096}, "0777"),
        ({"name": "o", "items": [{"key": "a", "path": "../x"}]}, "leads out"),
    ],
)
def test_bad_config_volumes_are_named(tools: Tools, spec: dict[str, Json], reason: str) -> None:
    """Names, items and modes are read strictly."""
    plugin = ConfigMap(tools.root, tools.mounter, ConfigStore(OneObject()))
    with pytest.raises(InvalidVolumeError, match=reason):
        plugin.spec(POD, Volume(name="v", kind="configMap", spec=spec))


def test_an_empty_list_of_items_names_every_key(tools: Tools) -> None:
    """As no list does: it is the same to an API."""
    plugin = ConfigMap(tools.root, tools.mounter, ConfigStore(OneObject()))
    for items in (None, [], [{"key": "a", "path": "b"}]):
        spec = plugin.spec(POD, Volume(name="v", kind="configMap", spec={"name": "o", "items": items}))
        plugin.mount(spec, USE, "")
        there = [one for one in Path(plugin.path(spec, USE)).iterdir() if not one.name.startswith("..")]
        assert [one.name for one in there] == ["b" if items else "a"]


def test_users_of_a_config_hear_of_its_change(tools: Tools) -> None:
    """A change reaches the pods that use the object, once each, until the last use is gone."""
    store = ConfigStore(OneObject())
    told: list[str] = []
    plugin = ConfigMap(tools.root, tools.mounter, store, told.append)
    changed = store.on_change
    assert changed is not None
    one, other = (plugin.spec(POD, Volume(name=name, kind="configMap", spec={"name": "o"})) for name in "vw")
    plugin.mount(one, USE, "")
    plugin.mount(other, USE, "")
    changed("default", "o")
    changed("default", "another")
    plugin.unmount(one, USE)
    changed("default", "o")
    plugin.unmount(other, USE)
    changed("default", "o")
    assert told == ["uid", "uid"]


def test_a_store_serves_one_plugin(tools: Tools) -> None:
    """A second one would take the first one's news away."""
    store = ConfigStore(OneObject())
    ConfigMap(tools.root, tools.mounter, store)
    with pytest.raises(ValueError, match="serves another plugin"):
        Secret(tools.root, tools.mounter, store)


def test_a_record_that_cannot_be_read_now_is_not_taken_for_none(tools: Tools) -> None:
    """Out of descriptors, say: nobody knows, so nothing is forgotten."""
    records = BlockRecords(tools.root, tools.local.name)
    records.write("disk", BlockRecord.of(tools.local.volume("disk", "/image")))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            records.read("disk")
        with pytest.raises(OSError, match="Too many open files"):
            tools.local.detach(VolumeSpec(plugin=tools.local.name, name="disk"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert records.read("disk") is not None


def test_a_full_disk_is_named_and_leaves_what_was_there(tools: Tools) -> None:
    """Neither a record nor a pod's files are half written; once there is room, they are."""
    records = BlockRecords(tools.root, tools.local.name)
    plugin = ConfigMap(tools.root, tools.mounter, ConfigStore(OneObject()))
    spec = plugin.spec(POD, Volume(name="v", kind="configMap", spec={"name": "o"}))
    records.write("disk", BlockRecord.of(tools.local.volume("disk", "/old")))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with pytest.raises(OSError, match=f"too large: '{tools.root.path}/plugins/.*/records/disk.json'"):
            records.write("disk", BlockRecord.of(tools.local.volume("disk", "/new")))
        with pytest.raises(OSError, match=f"too large: '{plugin.path(spec, USE)}'"):
            plugin.mount(spec, USE, "")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    record = records.read("disk")
    assert record is not None
    assert record.path == "/old"
    assert not Path(plugin.path(spec, USE), "a").exists()
    plugin.mount(spec, USE, "")
    assert Path(plugin.path(spec, USE), "a").read_bytes() == b"1"


def test_what_is_mounted_is_unstaged_also_without_a_record(tools: Tools) -> None:
    """A record that a stranger took or damaged leaves no mount behind."""
    spec = tools.local.volume("disk", str(tools.base / "disk.img"), size_bytes=1 << 20)
    tools.local.stage(spec, tools.local.attach(spec).device_path)
    BlockRecords(tools.root, tools.local.name).drop("disk")
    found = tools.local.reconstruct(Found(plugin=tools.local.name, name="disk"))
    assert found is not None
    assert found.needs_stage
    tools.local.unstage(found, "")
    tools.local.detach(found)
    assert tools.mounter.entries() == ()


def test_a_lost_stage_is_not_bound(tools: Tools) -> None:
    """A pod does not start on the empty directory below the mount that somebody took off."""
    spec = tools.local.volume("disk", str(tools.base / "disk.img"), size_bytes=1 << 20)
    device = tools.local.attach(spec).device_path
    tools.local.stage(spec, device)
    tools.mounter.unmount(tools.mounter.entries()[0].target)
    with pytest.raises(RetryableError, match="somebody took the mount off"):
        tools.local.mount(spec, USE, device)


@pytest.mark.parametrize(
    ("limit", "wanted", "given"),
    [
        (None, None, []),
        (None, "2Mi", ["size=2097152"]),
        (4096, None, ["size=4096"]),
        (4096, "2Mi", ["size=4096"]),
    ],
)
def test_memory_of_an_empty_dir_is_bounded(
    tools: Tools, limit: int | None, wanted: str | None, given: list[str]
) -> None:
    """By what the pod asks for and by what the node gives, whichever is less."""
    plugin = EmptyDir(tools.root, tools.mounter, memory_limit_bytes=limit)
    volume = Volume(name="v", kind="emptyDir", spec={"medium": "Memory", "sizeLimit": wanted})
    plugin.mount(plugin.spec(POD, volume), USE, "")
    (mount,) = tools.mounter.entries()
    assert [option for option in mount.super_options if option.startswith("size=")] == given


def test_memory_is_never_swapped_where_the_kernel_can_do_that(tools: Tools) -> None:
    """An older kernel knows no such option, and gets none; what else it refuses stays refused."""
    volume = Volume(name="v", kind="emptyDir", spec={"medium": "Memory", "sizeLimit": "1Mi"})

    class Kernel(FakeMounter):
        refuses = errno.EINVAL

        def mount(
            self, source: str, target: str, /, *, fstype: str = "", options: Sequence[str] = ()
        ) -> None:
            if "noswap" in options and self.refuses:
                raise MountError("mount", target, self.refuses, "refused")
            super().mount(source, target, fstype=fstype, options=options)

    kernel = Kernel(tools.root.path)
    plugin = EmptyDir(tools.root, kernel)
    spec = plugin.spec(POD, volume)
    given = ("mode=1777", "size=1048576")
    for refuses, options in ((errno.EINVAL, given), (0, (*given, "noswap"))):
        kernel.refuses = refuses
        plugin.mount(spec, USE, "")
        (mount,) = kernel.entries()
        assert mount.super_options == options
        plugin.unmount(spec, USE)
    kernel.refuses = errno.EPERM
    with pytest.raises(MountError):
        plugin.mount(spec, USE, "")


@pytest.mark.parametrize(
    ("limits", "wanted", "given"),
    [
        (("8Mi", "4Mi"), None, 12 << 20),
        (("8Mi", "4Mi"), "2Mi", 2 << 20),
        (("8Mi", "4Mi"), "64Mi", 12 << 20),
        (("8Mi", "0"), "64Mi", 64 << 20),
        (("8Mi", None), None, 1 << 30),
    ],
)
def test_memory_of_an_empty_dir_is_its_pods(
    tools: Tools, limits: tuple[str | None, ...], wanted: str | None, given: int
) -> None:
    """No more than all containers together may use, where each has a limit."""
    containers = tuple(
        Container(name=f"c{n}", limits={} if one is None else {"memory": one}) for n, one in enumerate(limits)
    )
    pod = Pod(uid="uid", name="pod", containers=containers)
    memory = {"memory": Quantity.parse("1Gi")}
    found = node_plugins(tools.root, tools.mounter, allocatable=memory)
    (plugin,) = [one for one in found if isinstance(one, EmptyDir)]
    volume = Volume(name="v", kind="emptyDir", spec={"medium": "Memory", "sizeLimit": wanted})
    plugin.mount(plugin.spec(pod, volume), USE, "")
    (mount,) = tools.mounter.entries()
    assert f"size={given}" in mount.super_options


@pytest.mark.parametrize("keeps", [False, True])
def test_what_an_empty_dir_leaves_behind(tools: Tools, keeps: bool) -> None:
    """Nothing; or the directories above it, as a kubelet does until the pod's own directory goes."""
    plugin = EmptyDir(tools.root, tools.mounter, keeps_folders=keeps)
    spec = plugin.spec(POD, Volume(name="v", kind="emptyDir", spec={}))
    use = Use(pod_uid=POD.uid)
    plugin.mount(spec, use, "")
    plugin.unmount(spec, use)
    path = Path(plugin.path(spec, use))
    assert not path.exists()
    assert path.parent.exists() is keeps


def test_a_host_path_is_told_as_it_is_written() -> None:
    """A runtime gets what the pod says, with all its slashes."""
    plugin = HostPath()
    for text in ("/srv/", "/srv//data", "/srv/./data", "/"):
        spec = plugin.spec(POD, Volume(name="v", kind="hostPath", spec={"path": text}))
        assert plugin.path(spec, USE) == text


def test_a_host_path_is_looked_for_where_the_nodes_root_is(tools: Tools) -> None:
    """An agent in a container sees the node below a directory."""
    (tools.base / "host/srv").mkdir(parents=True)
    plugin = HostPath(str(tools.base / "host"))
    spec = plugin.spec(POD, Volume(name="v", kind="hostPath", spec={"path": "/srv/", "type": "Directory"}))
    plugin.mount(spec, USE, "")
    assert plugin.path(spec, USE) == str(tools.base / "host/srv")
    made = plugin.spec(
        POD, Volume(name="w", kind="hostPath", spec={"path": "/a/b", "type": "DirectoryOrCreate"})
    )
    plugin.mount(made, USE, "")
    assert (tools.base / "host/a/b").is_dir()


@pytest.mark.parametrize("path", ["dangling", "loop", "dangling/below"])
def test_a_link_that_leads_nowhere_is_named_where_a_folder_is_to_be_made(tools: Tools, path: str) -> None:
    """Nothing is made in its place, nor where it leads."""
    (tools.base / "dangling").symlink_to("nowhere")
    (tools.base / "loop").symlink_to("loop")
    plugin, text = HostPath(), str(tools.base / path)
    spec = plugin.spec(
        POD, Volume(name="v", kind="hostPath", spec={"path": text, "type": "DirectoryOrCreate"})
    )
    with pytest.raises(PermanentError, match=r"(dangling|loop) is a link that leads nowhere; make what"):
        plugin.mount(spec, USE, "")
    assert not (tools.base / "nowhere").exists()


def test_the_image_of_a_read_only_volume_is_neither_made_nor_grown(tools: Tools) -> None:
    """It is attached as it is, or refused by name."""
    image = tools.base / "disk.img"
    spec = tools.local.volume("disk", str(image), size_bytes=1 << 20, read_only=True)
    with pytest.raises(PermanentError, match="does not exist; make it"):
        tools.local.attach(spec)
    image.write_bytes(b"short")
    with pytest.raises(PermanentError, match="has 5 bytes, 1048576 are wanted"):
        tools.local.attach(spec)
    assert image.read_bytes() == b"short"


def test_a_read_only_volume_is_neither_made_nor_grown(tools: Tools) -> None:
    """It is mounted as it is, or refused while it is empty."""
    image = tools.base / "disk.img"
    image.write_bytes(bytes(1 << 20))
    writable = tools.local.volume("disk", str(image), size_bytes=1 << 20)
    spec = tools.local.volume("disk", str(image), size_bytes=1 << 20, read_only=True)
    device = tools.local.attach(spec).device_path
    with pytest.raises(PermanentError, match="is empty and read-only"):
        tools.local.stage(spec, device)
    tools.filesystems.make(device, "ext4")
    tools.filesystems.sizes[device] = 7
    tools.local.stage(spec, device)
    assert tools.mounter.entries()[0].read_only
    assert tools.filesystems.sizes[device] == 7
    tools.local.unstage(spec, device)
    tools.local.stage(writable, device)
    assert not tools.mounter.entries()[0].read_only
    assert tools.filesystems.sizes[device] == 1 << 20
