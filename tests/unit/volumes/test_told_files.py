"""Volumes that tell a pod of itself, and those of several sources: on fakes of the mounter."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
import pytest

from nodealloc.dsw_asw import InlineExecutor
from nodealloc.podspec import Json, Pod, Quantity, Volume, VolumeUse
from nodealloc.testing.dsw_asw import VirtualClock
from nodealloc.testing.podfacts import FakePods
from nodealloc.testing.volume_plugins import check_plugin
from nodealloc.testing.volume_sources import FakeConfigSource, FakeTokens
from nodealloc.testing.volumes import FakeMounter
from nodealloc.volumes import InvalidVolumeError, Plugin, SafeRoot, Use, VolumeManager
from nodealloc.volumes.plugins import ChangeStrategy, ConfigStore, DownwardApi, EmptyDir, Projected

ALLOCATABLE = {"cpu": Quantity.of(4), "memory": Quantity.of("8Gi")}
USE = Use(pod_uid="uid")


def pod(volume: dict[str, Json] | None = None, /, **meta: Json) -> Pod:
    """A pod that mounts `v`, which is this volume."""
    app = {
        "name": "app",
        "image": "i",
        "resources": {"limits": {"cpu": "1500m"}, "requests": {"memory": "10Mi"}},
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    }
    return Pod.from_manifest(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web", "namespace": "team", "uid": "uid", **meta},
            "spec": {"containers": [app], "volumes": [{"name": "v", **(volume or {"emptyDir": {}})}]},
        }
    )


class Tools:
    """A root, a mounter of the mind, sources of objects and tokens."""

    def __init__(self, base: Path) -> None:
        self.root = SafeRoot(str(base))
        self.mounter = FakeMounter(self.root.path)
        self.maps, self.secrets, self.tokens = FakeConfigSource(), FakeConfigSource(), FakeTokens()
        self.maps.put("team", "settings", {"mode": b"fast", "log": b"all"})
        self.secrets.put("team", "key", {"password": b"hidden"})
        self.downward = DownwardApi(self.root, self.mounter, allocatable=ALLOCATABLE)

    def projected(self, strategy: ChangeStrategy = ChangeStrategy.GET) -> Projected:
        """With everything to ask for."""
        return Projected(
            self.root,
            self.mounter,
            config_maps=ConfigStore(self.maps, strategy),
            secrets=ConfigStore(self.secrets, strategy),
            tokens=self.tokens,
            allocatable=ALLOCATABLE,
        )

    def manager(self, *plugins: Plugin) -> tuple[VolumeManager, FakePods, VirtualClock]:
        """One over these plugins, without threads."""
        pods, clock = FakePods(), VirtualClock()
        return VolumeManager(plugins, pods=pods, executor=InlineExecutor(), clock=clock), pods, clock


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    """A root and fakes."""
    return Tools(tmp_path)


def item(path: str, field: str) -> Json:
    """A file of a field."""
    return {"path": path, "fieldRef": {"fieldPath": field}}


def amount(path: str, resource: str, **more: Json) -> Json:
    """A file of an amount of the container."""
    return {"path": path, "resourceFieldRef": {"containerName": "app", "resource": resource, **more}}


def downward(*items: Json, **more: Json) -> Volume:
    """A volume of them."""
    return Volume(name="v", kind="downwardAPI", spec={"items": list(items), **more})


def sources(*found: Json, **more: Json) -> Volume:
    """A volume of several sources."""
    return Volume(name="v", kind="projected", spec={"sources": list(found), **more})


def files(folder: str) -> dict[str, str]:
    """Every file that a container sees in it, by its path."""
    found: dict[str, str] = {}
    for at, below, names in os.walk(folder, followlinks=True):
        below[:] = [one for one in below if not one.startswith("..")]
        for name in names:
            path = Path(at, name)
            found[str(path.relative_to(folder))] = path.read_text()
    return found


def settle(manager: VolumeManager) -> None:
    """Make passes until only time could bring more."""
    for _ in range(100):
        if manager.reconcile().is_idle and not manager.has_work:
            return
    raise AssertionError("no rest after 100 passes")


EVERY_SOURCE: Sequence[Mapping[str, Json]] = (
    {"downwardAPI": {"items": [item("who/name", "metadata.name")]}},
    {"configMap": {"name": "settings", "items": [{"key": "mode", "path": "config/mode"}]}},
    {"secret": {"name": "key"}},
    {"serviceAccountToken": {"path": "token", "audience": "vault", "expirationSeconds": 7200}},
)


def test_both_plugins_bear_repetition(tools: Tools) -> None:
    """Every call twice, and in vain; what is found has its id; nothing is left."""
    projected = tools.projected()
    check_plugin(tools.downward, tools.downward.spec(pod(), downward(item("n", "metadata.name"))), USE)
    check_plugin(projected, projected.spec(pod(), sources(*EVERY_SOURCE)), USE)
    assert not tools.mounter.entries()
    assert [one for one in Path(tools.root.path).rglob("*") if not one.is_dir()] == []


def test_a_pod_is_told_of_itself(tools: Tools) -> None:
    """Each field and amount by its path, in its own file, on a tmpfs."""
    of = pod(labels={"tier": "front", "app": "web"}, annotations={"note": 'a "b"\n\x01\u200bé'})
    volume = downward(
        item("name", "metadata.name"),
        item("deep/er/space", "metadata.namespace"),
        item("./uid", "metadata.uid"),
        item("labels", "metadata.labels"),
        item("annotations", "metadata.annotations"),
        item("tier", "metadata.labels['tier']"),
        item("none", "metadata.annotations['none']"),
        amount("cpu", "limits.cpu", divisor="1m"),
        amount("cpus", "limits.cpu", divisor=None),
        amount("memory", "limits.memory", divisor="1Gi"),
        amount("asked", "requests.memory"),
        amount("disk", "limits.ephemeral-storage"),
    )
    spec = tools.downward.spec(of, volume)
    tools.downward.mount(spec, USE, "")
    folder = tools.downward.path(spec, USE)
    assert files(folder) == {
        "name": "web",
        "deep/er/space": "team",
        "uid": "uid",
        "labels": 'app="web"\ntier="front"',
        "annotations": r'note="a \"b\"\n\x01\u200bé"',
        "tier": "front",
        "none": "",
        "cpu": "1500",
        "cpus": "2",
        "memory": "8",
        "asked": "10485760",
        "disk": "0",
    }
    assert folder.endswith("/pods/uid/volumes/kubernetes.io~downward-api/v")
    assert tools.mounter.is_mounted(folder)


def test_files_have_the_modes_that_are_asked_for(tools: Tools) -> None:
    """The item's, else the volume's, else 0644."""
    plain = item("plain", "metadata.name")
    own: Json = {"path": "own", "mode": 0o400, "fieldRef": {"fieldPath": "metadata.uid"}}
    spec = tools.downward.spec(pod(), downward(plain, own, defaultMode=0o640))
    tools.downward.mount(spec, USE, "")
    folder = Path(tools.downward.path(spec, USE))
    assert [stat.S_IMODE((folder / one).stat().st_mode) for one in ("plain", "own")] == [0o640, 0o400]


@pytest.mark.parametrize(
    ("volume", "reason"),
    [
        (downward(item("x", "spec.nodeName")), "fieldPath is 'spec.nodeName'; files tell metadata.name"),
        (downward(item("../x", "metadata.name")), "leads out of the volume"),
        (downward(item("..x", "metadata.name")), "leads out of the volume"),
        (downward(item("/x", "metadata.name")), "leads out of the volume"),
        (downward(item("", "metadata.name")), "leads out of the volume"),
        (downward({"path": "x"}), "x has neither fieldRef nor resourceFieldRef"),
        (downward({"fieldRef": {"fieldPath": "metadata.name"}}), "lacks path or fieldRef"),
        (downward("x"), "lacks path or fieldRef"),
        (
            downward(amount("x", "limits.cpu", containerName="b")),
            "containerName is 'b'; the pod's containers are app",
        ),
        (downward(amount("x", "limits.gpu")), "no resource 'limits.gpu'"),
        (downward(amount("x", "limits.cpu", divisor="much")), "in units of 'much'"),
        (downward(item("a", "metadata.name"), item("a/b", "metadata.uid")), "'a' is a file and, for 'a/b'"),
        (downward(defaultMode=0o1777), "use 0 to 511"),
    ],
)
def test_bad_downward_volumes_are_named(tools: Tools, volume: Volume, reason: str) -> None:
    """Fields, containers, units, paths and modes are read strictly."""
    with pytest.raises(InvalidVolumeError, match=reason):
        tools.downward.spec(pod(), volume)


def test_files_follow_labels_in_place(tools: Tools) -> None:
    """All files at once, by the link that is swapped; what did not change stays as it is."""
    manager, pods, _clock = tools.manager(tools.downward)
    volume: dict[str, Json] = {"downwardAPI": {"items": [item("tier", "metadata.labels['tier']")]}}
    pods.put(pod(volume, labels={"tier": "front"}))
    manager.pod_changed("uid")
    settle(manager)
    folder = Path(manager.volumes_of("uid")[0].path)
    first = (folder / "..data").readlink()
    manager.refresh("uid")
    settle(manager)
    assert (folder / "..data").readlink() == first
    pods.put(pod(volume, labels={"tier": "back"}))
    manager.pod_changed("uid")
    settle(manager)
    assert files(str(folder)) == {"tier": "back"}
    assert (folder / "..data").readlink() != first
    assert len(tools.mounter.entries()) == 1, "nothing was mounted anew"


def test_several_sources_are_one_directory(tools: Tools) -> None:
    """What the pod is, a config map's item, a whole secret, a token for an audience."""
    projected = tools.projected()
    spec = projected.spec(pod(), sources(*EVERY_SOURCE))
    projected.mount(spec, USE, "")
    folder = projected.path(spec, USE)
    assert files(folder) == {
        "who/name": "web",
        "config/mode": "fast",
        "password": "hidden",
        "token": "team/default/uid/vault/0",
    }
    assert {(one.service_account, one.audience, one.lifetime_s) for one in tools.tokens.asked} == {
        ("default", "vault", 7200)
    }
    assert folder.endswith("/pods/uid/volumes/kubernetes.io~projected/v")
    assert tools.mounter.is_mounted(folder)


def test_a_source_of_nothing_writes_nothing(tools: Tools) -> None:
    """A kind that is null is not there; as Go reads it."""
    projected = tools.projected()
    spec = projected.spec(pod(), sources({}, {**EVERY_SOURCE[0], "secret": None}, {"configMap": None}))
    projected.mount(spec, USE, "")
    assert files(projected.path(spec, USE)) == {"who/name": "web"}


BAD_SOURCES: list[tuple[Sequence[Json], str]] = [
    (
        [{"downwardAPI": {"items": [item("a", "metadata.name")]}}] * 2,
        "'a' is given by downwardAPI and by downwardAPI",
    ),
    (
        [EVERY_SOURCE[3], {"secret": {"name": "key", "items": [{"key": "k", "path": "./token"}]}}],
        "'token' is given by serviceAccountToken and by secret",
    ),
    ([{"configMap": {}}], "name a configMap"),
    (
        [{"clusterTrustBundle": {"path": "x"}}],
        "'clusterTrustBundle'; there are: downwardAPI, configMap, secret",
    ),
    ([{"configMap": {"name": "a"}, "secret": {"name": "a"}}], "is not one kind"),
    (["x"], "is not one kind"),
    ([{"secret": "x"}], "is not one kind"),
    ([{"serviceAccountToken": {"path": "x", "expirationSeconds": 5}}], "use 600 or more"),
    ([{"serviceAccountToken": {}}], "leads out"),
]


@pytest.mark.parametrize(("found", "reason"), BAD_SOURCES)
def test_bad_sources_are_named(tools: Tools, found: Sequence[Json], reason: str) -> None:
    """Paths that clash, kinds that nobody serves, and what lacks a name."""
    with pytest.raises(InvalidVolumeError, match=reason):
        tools.projected().spec(pod(), sources(*found))


@pytest.mark.parametrize("place", [1, 2, 3])
def test_a_source_that_nobody_gives_is_refused_by_name(tools: Tools, place: int) -> None:
    """A node without an API server has what the pod itself says."""
    alone = Projected(tools.root, tools.mounter)
    (kind,) = EVERY_SOURCE[place]
    with pytest.raises(InvalidVolumeError, match=f"gives a source of kind '{kind}'; there are: downwardAPI$"):
        alone.spec(pod(), sources(EVERY_SOURCE[place]))
    spec = alone.spec(pod(), sources(EVERY_SOURCE[0]))
    alone.mount(spec, USE, "")
    assert files(alone.path(spec, USE)) == {"who/name": "web"}


def test_the_later_object_counts_where_keys_clash(tools: Tools) -> None:
    """Two whole objects with one key: as they stand in the list, file by file."""
    tools.secrets.put("team", "key", {"mode": b"slow"})
    projected = tools.projected()
    spec = projected.spec(pod(), sources({"configMap": {"name": "settings"}}, {"secret": {"name": "key"}}))
    projected.mount(spec, USE, "")
    assert files(projected.path(spec, USE)) == {"mode": "slow", "log": "all"}


def test_what_is_optional_may_come_later(tools: Tools) -> None:
    """Without it the other files are there; with it, it is, at once where changes are told."""
    projected = tools.projected(ChangeStrategy.WATCH)
    manager, pods, _clock = tools.manager(projected)
    projected.on_changed = manager.refresh
    late: Json = {"configMap": {"name": "late", "optional": True}}
    pods.put(pod({"projected": {"sources": [EVERY_SOURCE[0], late]}}))
    manager.pod_changed("uid")
    settle(manager)
    folder = manager.volumes_of("uid")[0].path
    assert files(folder) == {"who/name": "web"}
    tools.maps.put("team", "late", {"a": b"1"})
    settle(manager)
    assert files(folder) == {"who/name": "web", "a": "1"}
    pods.sightings.clear()
    manager.pods_changed()
    settle(manager)
    tools.maps.reads.clear()
    tools.maps.put("team", "late", {"a": b"2"})
    settle(manager)
    assert tools.maps.reads == [], "nobody follows what nobody has"


def test_a_missing_object_is_waited_for(tools: Tools) -> None:
    """It is named, and the volume is there once it is."""
    manager, pods, clock = tools.manager(tools.projected())
    pods.put(pod({"projected": {"sources": [{"secret": {"name": "late"}}]}}))
    manager.pod_changed("uid")
    settle(manager)
    assert "secret team/late does not exist" in manager.volumes_of("uid")[0].error
    tools.secrets.put("team", "late", {"a": b"1"})
    clock.advance(manager.seconds_to_next() or 0.0)
    settle(manager)
    assert files(manager.volumes_of("uid")[0].path) == {"a": "1"}


def test_content_that_nobody_tells_of_is_looked_at_again(tools: Tools) -> None:
    """A token when it is due, an object a minute later; nothing is asked before that."""
    tools.tokens.life_s = 40.0
    manager, pods, clock = tools.manager(tools.projected())
    pods.put(pod({"projected": {"sources": [EVERY_SOURCE[3], {"configMap": {"name": "settings"}}]}}))
    manager.pod_changed("uid")
    settle(manager)
    folder = manager.volumes_of("uid")[0].path
    tools.tokens.renewed = 1
    clock.advance(39.0)
    asked = len(tools.tokens.asked)
    settle(manager)
    assert len(tools.tokens.asked) == asked
    clock.advance(2.0)
    settle(manager)
    assert files(folder)["token"] == "team/default/uid/vault/1"  # noqa: S105 - invented
    tools.tokens.life_s = None
    tools.maps.put("team", "settings", {"mode": b"slow"})
    clock.advance(61.0)
    settle(manager)
    assert files(folder)["mode"] == "slow"


@pytest.mark.root
@pytest.mark.usefixtures("as_root")
def test_a_pods_group_owns_its_files(tools: Tools) -> None:
    """All of them, readable; the token is nobody else's."""
    projected, use = tools.projected(), Use(pod_uid="uid", fs_group=4321)
    spec = projected.spec(pod(), sources(*EVERY_SOURCE, defaultMode=0o400))
    projected.mount(spec, use, "")
    folder = Path(projected.path(spec, use))
    assert {one.stat().st_gid for one in (folder, *folder.rglob("*"))} == {4321}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o2777
    modes = [stat.S_IMODE((folder / one).stat().st_mode) for one in ("password", "token", "who")]
    assert modes == [0o440, 0o640, 0o2755]
    empty = EmptyDir(tools.root, tools.mounter)
    scratch = empty.spec(pod(), Volume(name="s", kind="emptyDir"))
    empty.mount(scratch, use, "")
    there = Path(empty.path(scratch, use))
    assert (there.stat().st_gid, stat.S_IMODE(there.stat().st_mode)) == (4321, 0o2777)
    there.chmod(0o2700)
    empty.mount(scratch, use, "")
    assert stat.S_IMODE(there.stat().st_mode) == 0o2700, "what the pod made of it stays"


@pytest.mark.parametrize(("life_s", "most"), [(0.0, 9), (math.inf, 3)])
def test_a_token_that_is_due_is_not_asked_for_without_a_pause(tools: Tools, life_s: float, most: int) -> None:
    """Its source may have no other one yet; one that never ends is not due."""
    tools.tokens.life_s = life_s
    manager, pods, clock = tools.manager(tools.projected())
    pods.put(pod({"projected": {"sources": [EVERY_SOURCE[3]]}}))
    manager.pod_changed("uid")
    settle(manager)
    for _ in range(30):
        clock.advance(0.1)
        settle(manager)
    assert manager.volumes_of("uid")[0].mounted
    assert len(tools.tokens.asked) <= most


@pytest.mark.root
@pytest.mark.usefixtures("as_root")
@pytest.mark.parametrize("kind", ["containers", "initContainers", "ephemeralContainers"])
@pytest.mark.parametrize(("users", "owner"), [((7, None), 0), ((7, 7), 7), ((7, 8), 0)])
def test_a_token_belongs_to_the_pods_only_user(
    tools: Tools, users: tuple[int, int | None], owner: int, kind: str
) -> None:
    """Where all containers run as one, those for debugging as well; else it has the volume's mode."""
    containers: list[Json] = [
        {"name": f"c{at}", "image": "i", "securityContext": {} if user is None else {"runAsUser": user}}
        for at, user in enumerate(users)
    ]
    text: dict[str, Json] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "team", "uid": "uid"},
        "spec": {"containers": containers[:1], kind: containers[-1:]}
        if kind != "containers"
        else {"containers": containers},
    }
    projected = tools.projected()
    spec = projected.spec(Pod.from_manifest(text), sources(EVERY_SOURCE[3]))
    projected.mount(spec, USE, "")
    found = (Path(projected.path(spec, USE)) / "token").stat()
    assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (owner, 0o600 if owner else 0o644)


def test_mounts_inside_have_their_directories(tools: Tools) -> None:
    """A container may only read such a volume, so what is mounted inside finds its directory there."""
    asks: dict[str, Json] = {"projected": {"sources": [{"configMap": {"name": "settings"}}]}}
    mounts = ["/v", "/v/extra/deep", "/v/extra/deep/inner", "/v/mode", "/vault", "/v/..data"]
    uses: list[Json] = [{"name": "v" if path == "/v" else "o", "mountPath": path} for path in mounts]
    one = Pod.from_manifest(
        {
            "metadata": {"name": "web", "namespace": "team", "uid": "uid"},
            "spec": {
                "containers": [{"name": "app", "image": "i", "volumeMounts": uses}],
                "volumes": [{"name": "v", **asks}, {"name": "o", "emptyDir": {}}],
            },
        }
    )
    plugin = tools.projected()
    volume = plugin.spec(one, one.volumes[0])
    at = Path(plugin.path(volume, USE))
    plugin.mount(volume, USE, "")
    extra = at / "extra"
    assert stat.S_IMODE(extra.stat().st_mode) == 0o777
    assert [path.relative_to(at) for path in sorted(extra.rglob("*"))] == [Path("extra/deep")]
    assert (at / "mode").read_text() == "fast"
    (extra / "deep/kept").touch()
    tools.maps.put("team", "settings", {"mode": b"slow"})
    plugin.mount(volume, USE, "")
    assert (extra / "deep/kept").exists()
    assert (at / "mode").read_text() == "slow"


def test_a_debug_container_finds_the_directories_of_its_mounts_inside(tools: Tools) -> None:
    """What is mounted inside changes with the pod, also where no file does; what is there stays."""
    manager, pods, _clock = tools.manager(tools.downward, EmptyDir(tools.root, tools.mounter))
    volume: dict[str, Json] = {"downwardAPI": {"items": [item("name", "metadata.name")]}}
    of = pod(volume)
    of = attrs.evolve(of, volumes=(*of.volumes, Volume(name="o", kind="emptyDir")))
    (app,) = of.containers

    def with_mounts(*inside: str) -> Pod:
        uses = [VolumeUse(name="o", path=f"/v/{path}") for path in inside]
        debug = attrs.evolve(app, name="debug", volumes=(*app.volumes, *uses))
        return attrs.evolve(of, ephemeral_containers=(debug,))

    for now, there in ((of, set()), (with_mounts("x"), {"x"}), (with_mounts("y/z"), {"x", "y"})):
        pods.put(now)
        manager.pod_changed("uid")
        settle(manager)
        (at,) = [Path(one.path) for one in manager.volumes_of("uid") if one.name == "v"]
        assert {one.name for one in at.iterdir() if one.is_dir() and one.name[0] != "."} == there
    assert (at / "y" / "z").is_dir()
    assert files(str(at)) == {"name": "web"}
