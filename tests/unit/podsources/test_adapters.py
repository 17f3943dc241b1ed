"""Sources as they are: real files, a real server that misbehaves, and the engine that reads them."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml

from nodealloc.dirwatch import InotifyWatcher
from nodealloc.dsw_asw import Cancel
from nodealloc.errors import ConfigurationError, DecodeError, RetryableError
from nodealloc.podsources import (
    KUBELET,
    Editions,
    FolderSource,
    HttpSource,
    MergedUpdates,
    Merging,
    PodSources,
    PodUpdate,
    Polling,
    Reading,
    Rules,
    _documents,
    _folder,
    _sources,
    merge_update,
)
from nodealloc.podsources._ports import SourceFault
from nodealloc.podspec import Container, Pod, effective_requests
from nodealloc.testing.dirwatch import FakeWatcher
from nodealloc.testing.dsw_asw import ManualCancel, ManualExecutor, VirtualClock
from nodealloc.testing.podsources import FakeSource, check_source

YAML = """
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec: {containers: [{name: app, image: "%s"}]}
"""


def manifest(name: str = "web", image: str = "web:1") -> str:
    """One pod in YAML."""
    return YAML % (name, image)


def as_json(name: str) -> dict[str, object]:
    """One pod as JSON has it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "app", "image": "web:1"}]},
    }


@attrs.define
class Folder:
    """A folder, a source on it, and a clock that stands still."""

    path: Path
    clock: VirtualClock
    source: FolderSource

    def look(self) -> Reading:
        """Two looks, so that what stands still counts."""
        self.source.read(ManualCancel())
        return self.source.read(ManualCancel())


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """An empty one."""
    path = tmp_path / "manifests"
    path.mkdir()
    clock = VirtualClock()
    return Folder(path, clock, FolderSource(path, clock=clock))


def names(reading: Reading) -> list[str]:
    """Of the pods, in order."""
    return sorted(pod.name for pod in reading.pods)


def faults(reading: Reading) -> str:
    """All of them in one text."""
    return "\n".join(map(str, reading.faults))


def test_yaml_and_json_are_read_with_links_and_without_dots(folder: Folder) -> None:
    """A file is a pod, whatever it is called and wherever it leads; dot files are none."""
    (folder.path / "a.yaml").write_text("---\n" + manifest("a") + "---\n")
    (folder.path / "b.json").write_text(json.dumps(as_json("b")))
    target = folder.path.parent / "elsewhere"
    target.write_text(manifest("c"))
    (folder.path / "c").symlink_to(target)
    (folder.path / ".d.yaml.swp").write_text(manifest("d"))
    reading = folder.look()
    assert (names(reading), reading.faults, reading.is_synced) == (["a", "b", "c"], (), True)
    check_source(folder.source)


def test_a_file_that_is_being_written_is_not_taken(folder: Folder) -> None:
    """What changed since the last look is looked at again first; until then the source knows not all."""
    path = folder.path / "a.yaml"
    path.write_text(manifest("a")[:40])
    first = folder.source.read(ManualCancel())
    assert (first.pods, first.is_synced) == ((), False)
    assert first.again_after_s == pytest.approx(0.1)
    path.write_text(manifest("a") + "# whole")
    assert folder.source.read(ManualCancel()).pods == ()
    whole = folder.source.read(ManualCancel())
    assert (names(whole), whole.is_synced) == (["a"], True)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "nothing is in it yet"),
        (manifest("a")[:70], "neither JSON nor YAML"),
        ("\x00\x01", "neither JSON nor YAML"),
        (manifest("a") + "---" + manifest("b"), "2 documents; one file is one pod"),
        (manifest("A_b"), "is no valid name"),
        (manifest("a").replace("image", "imgae"), "imgae"),
        ("[" * 5000, "a.yaml"),
        (manifest("a") + "status: 5", "expected a mapping, found 5 @ $.status"),
        (manifest("a") + "status: {a: [.nan]}", "found nan @ $.status.a[0]"),
    ],
)
def test_what_cannot_be_read_leaves_its_pod_and_says_so(folder: Folder, content: str, words: str) -> None:
    """The pod runs on; the file is named, with what to do; the kubelet would end the pod."""
    path = folder.path / "a.yaml"
    path.write_text(manifest("a"))
    (folder.path / "good.yaml").write_text(manifest("good"))
    folder.look()
    path.write_text(content)
    spoiled = folder.look()
    assert names(spoiled) == ["a", "good"]
    assert words in faults(spoiled)
    assert "a.yaml: " in faults(spoiled)
    assert "its pod stays as it is" in faults(spoiled)
    theirs = FolderSource(folder.path, settle_s=0, rules=KUBELET)
    path.write_text(manifest("a"))
    theirs.read(ManualCancel())
    path.write_text(content)
    assert names(theirs.read(ManualCancel())) == ["good"]


def test_whatever_a_file_brings_about_is_its_own(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that nobody foresaw is a fault of each look, and others are read."""
    (folder.path / "bad.yaml").write_text(manifest("bad"))
    (folder.path / "good.yaml").write_text(manifest("good"))
    read = _documents.pod_in

    def fails(data: bytes, /, **options: Any) -> Pod:
        if b"bad" in data:
            raise KeyError("oops")
        return read(data, **options)

    monkeypatch.setattr(_folder, "pod_in", fails)
    for _ in range(3):
        found = folder.look()
        assert (names(found), found.is_synced) == (["good"], True)
        assert faults(found) == "bad.yaml: KeyError: 'oops'"
    monkeypatch.setattr(_folder, "pod_in", read)
    assert names(folder.look()) == ["bad", "good"]


@pytest.mark.parametrize("rules", [Rules(), KUBELET])
def test_a_files_name_need_not_be_text(folder: Folder, rules: Rules) -> None:
    """Any bytes are a name; where the uid depends on it, two such files are two pods all the same."""
    for name, byte in (("a", b"\xff"), ("b", b"\xfe")):
        Path(os.fsdecode(os.fsencode(folder.path) + b"/" + byte + b".yaml")).write_text(manifest(name))
    source = FolderSource(folder.path, settle_s=0, clock=folder.clock, rules=rules)
    reading = source.read(ManualCancel())
    assert (names(reading), reading.faults) == (["a", "b"], ())
    assert len({pod.uid for pod in reading.pods}) == 2


def test_a_file_of_plain_text_is_asked_for_a_manifest(folder: Folder) -> None:
    """Its author writes no Python: nothing is said of how a program would read it."""
    (folder.path / "a.yaml").write_text("just words\n")
    source = FolderSource(folder.path, settle_s=0, clock=folder.clock)
    assert faults(source.read(ManualCancel())) == (
        "a.yaml: expected a mapping, found a text; write a Pod manifest @ $"
    )
    with pytest.raises(
        DecodeError, match=r"items\[0\]: expected a mapping, found a text; write a Pod manifest"
    ):
        [
            *_documents.pods_in(
                b"{apiVersion: v1, kind: PodList, items: [a]}", where="x", source="s", node_name=""
            )
        ]


def test_an_item_that_cannot_be_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is wrong with it, so that nobody looks through the whole list."""
    bad = json.dumps({"kind": "PodList", "items": [as_json("a"), {**as_json("b"), "status": 5}]}).encode()

    def read(data: bytes) -> list[Pod]:
        return [*_documents.pods_in(data, where="http://x", source="http", node_name="")]

    with pytest.raises(DecodeError, match=r"http://x items\[1\]: expected a mapping, found 5 @ \$\.status"):
        read(bad)
    monkeypatch.setattr(_documents, "faults_of", lambda pod, **_: {}[pod.name])
    with pytest.raises(DecodeError, match=r"http://x items\[0\]: KeyError: 'a'"):
        read(bad)


def test_a_uid_of_its_own_stays_through_every_edit(folder: Folder) -> None:
    """Also with the kubelet, for which another pod is only the edition of one that has no uid."""
    theirs, known = FolderSource(folder.path, settle_s=0, rules=KUBELET), Editions()
    told: list[str] = []
    for edition in ("1", "2"):
        for name, more in (("own", {"uid": "mine"}), ("none", {})):
            document = as_json(name)
            document["metadata"] = {"name": name, "labels": {"edition": edition}, **more}
            (folder.path / f"{name}.json").write_text(json.dumps(document))
        known, pods = known.read(theirs.read(ManualCancel()).pods, rules=KUBELET)
        told += [pod.uid for pod in pods]
    assert told.count("mine") == 2
    assert len(set(told)) == 3


def test_junk_is_named_and_nothing_hangs(folder: Folder) -> None:
    """A dangling link, a link to itself, a FIFO, a folder and a huge file each get their line."""
    (folder.path / "good.yaml").write_text(manifest("good"))
    (folder.path / "dangling").symlink_to("nowhere")
    (folder.path / "loop").symlink_to("loop")
    os.mkfifo(folder.path / "fifo")
    (folder.path / "below").mkdir()
    with (folder.path / "huge").open("wb") as huge:
        huge.truncate(11 << 20)
    (folder.path / "bytes").write_bytes(b"\xff\xfe")
    reading = folder.look()
    assert names(reading) == ["good"]
    assert {one.where for one in reading.faults} == {"dangling", "loop", "fifo", "below", "huge", "bytes"}
    assert "262144 is the limit" in faults(reading)


def test_what_is_no_file_is_left_alone(folder: Folder) -> None:
    """It is not even opened: whoever writes into a pipe goes on waiting for a reader."""
    pipe = folder.path / "fifo"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: os.close(os.open(pipe, os.O_WRONLY)))
    writer.start()
    try:
        writer.join(0.2)
        assert "no file" in faults(folder.look())
        writer.join(0.2)
        assert writer.is_alive()
    finally:
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        writer.join()
        os.close(reader)


def test_no_more_is_read_than_a_file_holds(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of the kernel say another size than they give: its log stays, and no look follows another."""
    (folder.path / "proc").symlink_to("/proc/version")
    (folder.path / "sys").symlink_to("/sys/kernel/mm/transparent_hugepage/enabled")
    took: list[int] = []
    really = os.read

    def read(descriptor: int, most: int) -> bytes:
        took.append(most)
        return really(descriptor, most)

    monkeypatch.setattr(os, "read", read)
    reading = folder.look()
    assert {one.where: one.what.split(";")[1] for one in reading.faults} == {
        "proc": " write a Pod manifest @ $",
        "sys": " put a plain file here",
    }
    assert (reading.again_after_s, took[0]) == (None, 4096)
    assert max(took) <= 4096


def test_a_larger_manifest_is_read_where_the_caller_allows_it(folder: Folder) -> None:
    """The same bound goes for the file and for what its references stand for."""
    large = manifest("web").replace("name: app", "name: app, args: [%s]" % ("x" * 300_000))
    (folder.path / "a.yaml").write_text(large)
    assert "262144 is the limit" in faults(FolderSource(folder.path, settle_s=0).read(ManualCancel()))
    allowed = FolderSource(folder.path, settle_s=0, max_bytes=1 << 20)
    assert names(allowed.read(ManualCancel())) == ["web"]


def test_away_counts_after_a_time_only(folder: Folder) -> None:
    """A file, or the whole folder, that is away for less leaves its pods as they are."""
    path = folder.path / "a.yaml"
    path.write_text(manifest("a"))
    folder.look()
    path.unlink()
    away = folder.look()
    assert names(away) == ["a"]
    assert away.again_after_s == pytest.approx(5.0)
    assert "a.yaml: it is away, and its pod stays as it is until it was away for 5 s" in faults(away)
    assert away.gone == ()
    folder.clock.advance(4.9)
    path.write_text(manifest("a"))
    assert names(folder.look()) == ["a"]
    folder.path.rename(folder.path.parent / "moved")
    assert names(folder.look()) == ["a"]
    folder.clock.advance(5.0)
    gone = folder.source.read(ManualCancel())
    assert (gone.pods, gone.gone) == ((), ("a.yaml",))
    assert folder.look().gone == ()


def test_a_kubelet_finds_out_late_what_cannot_be_read(folder: Folder) -> None:
    """With its rules a pod ends once its file could not be read for some time, unless it can be again."""
    path = folder.path / "a.yaml"
    theirs = FolderSource(folder.path, settle_s=0, unreadable_s=0.5, clock=folder.clock, rules=KUBELET)
    path.write_text(manifest("a"))
    assert names(theirs.read(ManualCancel())) == ["a"]
    path.write_text("{")
    spoilt = theirs.read(ManualCancel())
    assert (names(spoilt), spoilt.again_after_s) == (["a"], 0.5)
    assert faults(spoilt).endswith(", and its pod stays as it is until it could not be read for 0.5 s")
    path.write_text(manifest("a"))
    theirs.read(ManualCancel())
    folder.clock.advance(1)
    assert names(theirs.read(ManualCancel())) == ["a"]
    path.write_text("{")
    theirs.read(ManualCancel())
    folder.clock.advance(0.5)
    assert names(theirs.read(ManualCancel())) == []


def test_a_kubelet_finds_out_late_that_the_folder_is_away(folder: Folder) -> None:
    """A file that is removed counts at once, one whose whole folder went when it is listed next."""
    theirs = FolderSource(folder.path, settle_s=0, unreadable_s=1.0, clock=folder.clock, rules=KUBELET)
    (folder.path / "a.yaml").write_text(manifest("a"))
    theirs.read(ManualCancel())
    folder.clock.advance(60)
    folder.path.rename(folder.path.with_name("elsewhere"))
    assert names(theirs.read(ManualCancel())) == ["a"]
    folder.clock.advance(1)
    assert names(theirs.read(ManualCancel())) == []


APP = {"name": "app", "image": "web:1"}
PROBE = {"exec": {"command": ["true"]}}


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"resourceClaims": [{"name": "r", "resourceClaimName": "x"}]}, "resourceClaims"),
        ({"ephemeralContainers": [{"name": "e", "image": "web:1"}]}, "ephemeralContainers"),
        ({"containers": [{"name": "app"}]}, "containers[0].image"),
        ({"containers": [{**APP, "livenessProbe": {"exec": {"command": []}}}]}, "livenessProbe.exec.command"),
        ({"initContainers": [{"name": "i", "image": "a", "readinessProbe": PROBE}]}, "readinessProbe"),
        ({"initContainers": [{"name": "i", "image": "a", "lifecycle": {"preStop": PROBE}}]}, "lifecycle"),
        ({"securityContext": {"sysctls": [{"name": "A B", "value": "1"}]}}, "sysctls[0].name"),
        ({"volumes": [{"name": "v", "hostPath": {"path": "/a/../b"}}]}, "hostPath.path"),
        ({"volumes": [{"name": "v", "hostPath": {"path": "/a", "type": "Any"}}]}, "hostPath.type"),
        ({"containers": [{**APP, "ports": [{"containerPort": 1, "hostPort": 9}] * 2}]}, "containers"),
        (
            {"hostNetwork": True, "containers": [{**APP, "ports": [{"containerPort": 1, "hostPort": 9}]}]},
            "ports[0].hostPort",
        ),
        (
            {
                "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}],
                "containers": [
                    {**APP, "volumeMounts": [{"name": one, "mountPath": "/d"} for one in ("v", "w")]}
                ],
            },
            "volumeMounts",
        ),
    ],
)
def test_what_an_api_server_would_not_take_is_refused(
    folder: Folder, fields: dict[str, object], where: str
) -> None:
    """Nobody else looks at the manifest of a static pod; the fault names the place."""
    document = as_json("a")
    spec = {"containers": [APP], **fields}
    (folder.path / "a.json").write_text(json.dumps({**document, "spec": spec}))
    (folder.path / "b.yaml").write_text(manifest("b"))
    looked = folder.look()
    assert names(looked) == ["b"]
    assert where in faults(looked)


def test_a_label_that_is_none_is_refused(folder: Folder) -> None:
    """As by an API server."""
    document = {**as_json("a"), "metadata": {"name": "a", "labels": {"app": "a b"}}}
    (folder.path / "a.json").write_text(json.dumps(document))
    assert "$.metadata.labels.app" in faults(folder.look())


def test_a_lenient_folder_leaves_out_what_nobody_knows(folder: Folder) -> None:
    """A field of another API, and documents behind the first, as a kubelet does; else both are faults."""
    document = as_json("a")
    (folder.path / "a.json").write_text(json.dumps({**document, "spec": {"containers": [APP], "later": 1}}))
    (folder.path / "b.yaml").write_text(f"{manifest('b')}---\n{manifest('c')}")
    assert names(folder.look()) == []
    lenient = FolderSource(folder.path, settle_s=0, is_lenient=True, clock=folder.clock)
    assert names(lenient.read(ManualCancel())) == ["a", "b"]


def test_for_the_kubelet_a_manifest_says_what_it_is(folder: Folder) -> None:
    """Version and kind have to be there."""
    document = json.loads(json.dumps(yaml.safe_load(manifest("a"))))
    for key in ("apiVersion", "kind"):
        rest = {name: value for name, value in document.items() if name != key}
        (folder.path / "a.json").write_text(json.dumps(rest))
        lenient = FolderSource(folder.path, settle_s=0, is_lenient=True, clock=folder.clock)
        assert names(lenient.read(ManualCancel())) == []


@pytest.mark.parametrize(
    "content",
    ["", f"---\n---\n{manifest('a')}", manifest("a").replace("app,", "app, env: [{name: A, value: 1e3}],")],
    ids=["nothing", "an empty first document", "a number for a text"],
)
def test_for_the_kubelet_the_first_document_is_the_manifest(folder: Folder, content: str) -> None:
    """One in which nothing stands is none, and what its YAML takes for a number is no text."""
    (folder.path / "a.yaml").write_text(content)
    lenient = FolderSource(folder.path, settle_s=0, is_lenient=True, clock=folder.clock)
    reading = lenient.read(ManualCancel())
    assert (names(reading), len(reading.faults)) == ([], 1)


def test_for_the_kubelet_amounts_are_thousandths(folder: Folder) -> None:
    """Of each container, rounded up; others are exact."""
    asked = "resources: {requests: {cpu: %s, memory: 1Mi}}"
    many = "".join(f", {{name: c{n}, image: i, {asked % '100u'}}}" for n in range(3))
    whole = '{name: app, image: "web:1"}'
    assert whole in manifest()
    text = manifest().replace(whole, f"{{name: app, image: i, {asked % 0.9991}}}{many}")
    (folder.path / "a.yaml").write_text(text)
    (exact,) = folder.look().pods
    lenient = FolderSource(folder.path, settle_s=0, is_lenient=True, clock=folder.clock)
    (rounded,) = lenient.read(ManualCancel()).pods
    assert [str(effective_requests(one)["cpu"]) for one in (exact, rounded)] == ["999400u", "1003m"]
    assert [str(effective_requests(one)["memory"]) for one in (exact, rounded)] == ["4Mi", "4Mi"]


def test_a_manifest_tells_nothing_of_how_its_pod_fared(folder: Folder) -> None:
    """One that was copied from an API server with its status is of a pod that begins."""
    document = yaml.safe_load(manifest("a"))
    (folder.path / "a.json").write_text(json.dumps({**document, "status": {"phase": "Succeeded"}}))
    (found,) = folder.look().pods
    assert found.status["phase"] == "Pending"


def test_for_the_kubelet_another_file_is_another_pod(folder: Folder) -> None:
    """`keeps_uid`: a file that is renamed is the same pod; for a kubelet it is another one."""
    for rules in (Rules(), KUBELET):
        source = FolderSource(folder.path, settle_s=0, rules=rules, clock=folder.clock)
        (folder.path / "a.yaml").write_text(manifest("web"))
        (before,) = source.read(ManualCancel()).pods
        (folder.path / "a.yaml").rename(folder.path / "b.yaml")
        source.read(ManualCancel())
        folder.clock.advance(60)
        (after,) = source.read(ManualCancel()).pods
        assert (after.uid == before.uid) is rules.keeps_uid
        (folder.path / "b.yaml").unlink()


def test_a_pods_name_is_a_name_whatever_its_node_is_called(folder: Folder) -> None:
    """In lower case, as names are."""
    (folder.path / "a.yaml").write_text(manifest("web"))
    source = FolderSource(folder.path, settle_s=0, node_name="Rack7.Example", clock=folder.clock)
    source.read(ManualCancel())
    (pod,) = source.read(ManualCancel()).pods
    assert (pod.name, pod.node_name) == ("web-rack7.example", "Rack7.Example")


def test_for_the_kubelet_away_is_gone(folder: Folder) -> None:
    """With its rules a file counts as gone at the first look without it."""
    path = folder.path / "a.yaml"
    path.write_text(manifest("a"))
    theirs = FolderSource(folder.path, settle_s=0, clock=folder.clock, rules=KUBELET)
    assert names(theirs.read(ManualCancel())) == ["a"]
    path.unlink()
    assert theirs.read(ManualCancel()).pods == ()


def test_a_file_that_never_stands_still_holds_up_no_other(folder: Folder) -> None:
    """Once the folder was heard, others come and go; at the start it is waited for ten seconds at most."""
    (folder.path / "a.yaml").write_text(manifest("a"))
    restless = folder.path / "restless"
    for count in range(3):
        restless.write_text("#" * count)
        assert not folder.source.read(ManualCancel()).is_synced
    folder.clock.advance(10.0)
    restless.write_text("#" * 10)
    assert folder.source.read(ManualCancel()).is_synced
    (folder.path / "b.yaml").write_text(manifest("b"))
    folder.source.read(ManualCancel())
    restless.write_text("#" * 11)
    reading = folder.source.read(ManualCancel())
    assert (names(reading), reading.is_synced) == (["a", "b"], True)


def test_a_watcher_wakes_for_a_file_that_is_written_in_place(tmp_path: Path) -> None:
    """No file comes or goes; its content alone is another one."""
    path = tmp_path / "a.yaml"
    path.write_text(manifest("a"))
    watcher = InotifyWatcher(str(tmp_path))
    while watcher.wait(0.05):
        pass
    path.write_text(manifest("b"))
    assert watcher.wait(5.0)
    watcher.close()


def test_a_folder_is_watched_without_what_lies_deeper(tmp_path: Path) -> None:
    """Its own files give a reason to read it again, files of directories in it do not."""
    (tmp_path / "deeper").mkdir()
    watcher = InotifyWatcher(str(tmp_path), below=False)
    while watcher.wait(0.05):
        pass
    (tmp_path / "deeper" / "a.yaml").write_text(manifest("a"))
    assert not watcher.wait(0.1)
    (tmp_path / "a.yaml").write_text(manifest("a"))
    assert watcher.wait(5.0)
    watcher.close()


@pytest.mark.parametrize("rules", [Rules(), KUBELET], ids=["right", "kubelet"])
def test_a_path_may_name_one_manifest(tmp_path: Path, rules: Rules) -> None:
    """Whatever it is called; what it said stays while it cannot be read, and is gone with it."""
    path = tmp_path / ".pod"
    source = FolderSource(path, settle_s=0, away_s=0, rules=rules)
    (tmp_path / "another.yaml").write_text(manifest("b"))
    path.write_text("{")
    first = source.read(ManualCancel())
    assert (names(first), first.is_synced, len(first.faults)) == ([], rules.keeps_unreadable, 1)
    path.write_text(manifest("a"))
    whole = source.read(ManualCancel())
    assert (names(whole), whole.is_synced, whole.faults) == (["a"], True, ())
    path.write_text("{broken")
    broken = source.read(ManualCancel())
    assert (names(broken), broken.again_after_s) == (["a"], None)
    path.unlink()
    gone = source.read(ManualCancel())
    assert (names(gone), gone.is_synced) == ([], True)


def test_a_path_that_is_neither_folder_nor_file_is_refused(tmp_path: Path) -> None:
    """A pipe, a socket, a link to itself; nothing is read of them, and each is named with what to do."""
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "socket"))
    (tmp_path / "loop").symlink_to("loop")
    for name, words in (
        ("pipe", "no folder, and no file; give the folder of manifests, or one manifest"),
        ("socket", "no folder, and no file; give the folder of manifests, or one manifest"),
        ("loop", "a link that leads nowhere; mend it, or mount what it leads to"),
    ):
        path = tmp_path / name
        with pytest.raises(OSError, match=f"^{re.escape(f'{path}: {words}')}$"):
            FolderSource(path).read(ManualCancel())


def test_a_folder_behind_a_link_that_leads_nowhere_is_not_empty(folder: Folder) -> None:
    """What it leads to is not mounted: nobody has taken manifests away. A kubelet ends their pods."""
    (folder.path / "web.yaml").write_text(manifest(), encoding="utf-8")
    link = folder.path.parent / "link"
    link.symlink_to(folder.path)
    right = FolderSource(link, settle_s=0, clock=folder.clock)
    kubelet = FolderSource(link, settle_s=0, away_s=0, clock=folder.clock, rules=KUBELET)
    assert len(right.read(ManualCancel()).pods) == len(kubelet.read(ManualCancel()).pods) == 1
    link.unlink()
    link.symlink_to("nowhere")
    for _ in range(2):
        with pytest.raises(OSError, match="a link that leads nowhere; mend it, or mount what it leads to"):
            right.read(ManualCancel())
        folder.clock.advance(60.0)
    assert kubelet.read(ManualCancel()).pods == ()


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.EIO, "look at the disk, or at the server that it is on, and mount it anew"),
        (errno.ESTALE, "look at the disk, or at the server that it is on, and mount it anew"),
        (errno.ENOTCONN, "look at the disk, or at the server that it is on, and mount it anew"),
        (errno.EACCES, "mend its rights, or take it away"),
        (errno.ENOENT, "mend the link, or take it away"),
        (errno.ELOOP, "mend the link, or take it away"),
        (errno.EMFILE, "let this process open more files"),
        (errno.ENAMETOOLONG, "mend it, or take it away"),
    ],
)
def test_what_to_do_about_a_file_that_cannot_be_read_is_what_helps(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, number: int, remedy: str
) -> None:
    """A disk that fails has nothing to do with the rights of a file."""
    (folder.path / "web.yaml").write_text(manifest(), encoding="utf-8")

    def fail(path: str) -> int:
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr(_folder, "open_plain", fail)
    (fault,) = folder.look().faults
    assert fault.what == f"cannot be read ({os.strerror(number)}); {remedy}"


def test_a_folder_that_is_not_there_yet_knows_nothing(tmp_path: Path) -> None:
    """It may be mounted late: for the same time it is not heard, then it has no pods."""
    clock = VirtualClock()
    source = FolderSource(tmp_path / "late", clock=clock)
    assert not source.read(ManualCancel()).is_synced
    clock.advance(5.0)
    reading = source.read(ManualCancel())
    assert reading.is_synced
    assert "there is no such folder; make it" in faults(reading)


def test_a_moved_file_is_the_same_pod_and_the_older_twin_stays(folder: Folder) -> None:
    """Renamed, nothing changes; copied, the copy is named and does not count."""
    (folder.path / "b.yaml").write_text(manifest("web", "web:1"))
    before = folder.look().pods
    (folder.path / "b.yaml").rename(folder.path / "c.yaml")
    assert folder.look().pods == before
    (folder.path / "a.yaml").write_text(manifest("web", "web:2"))
    twins = folder.look()
    assert [pod.containers[0].image for pod in twins.pods] == ["web:1"]
    assert "a.yaml: pod default/web is that of c.yaml, which counts" in faults(twins)


def test_who_has_a_name_by_a_kubelets_rules(tmp_path: Path) -> None:
    """The file that was written last, then the last by its name; if any of them goes, nobody for a while."""
    clock = VirtualClock()
    source = FolderSource(tmp_path, clock=clock, settle_s=0, unreadable_s=1.0, rules=KUBELET)

    def images(wait_s: float = 0.0) -> list[str]:
        clock.advance(wait_s)
        return [pod.containers[0].image for pod in source.read(ManualCancel()).pods]

    (tmp_path / "b.yaml").write_text(manifest("web", "web:b"))
    assert images(5) == ["web:b"]
    (tmp_path / "a.yaml").write_text(manifest("web", "web:a"))
    reading = source.read(ManualCancel())
    assert [pod.containers[0].image for pod in reading.pods] == ["web:a"]
    assert "b.yaml: pod default/web is that of a.yaml, which counts" in faults(reading)
    assert reading.again_after_s == 1.0
    assert images(1) == ["web:b"]
    (tmp_path / "c.yaml").write_text(manifest("other", "other:c"))
    (tmp_path / "a.yaml").unlink()
    assert images() == ["other:c"]
    assert images(1) == ["web:b", "other:c"]
    (tmp_path / "b.yaml").unlink()
    assert images() == ["other:c"]
    assert source.read(ManualCancel()).again_after_s == 1.0


def test_names_and_uids_belong_to_the_node(folder: Folder) -> None:
    """Two nodes that read one manifest run two pods; a uid that the manifest gives stays."""
    (folder.path / "a.yaml").write_text(manifest("web"))
    (one,), (two,) = (
        FolderSource(folder.path, node_name=node, settle_s=0).read(ManualCancel()).pods
        for node in ("n1", "n2")
    )
    assert (one.name, one.node_name, two.name) == ("web-n1", "n1", "web-n2")
    assert one.uid != two.uid
    given = manifest("web").replace("{name: web}", "{name: web, uid: mine}")
    (folder.path / "a.yaml").write_text(given)
    (pod,) = FolderSource(folder.path, settle_s=0).read(ManualCancel()).pods
    assert pod.uid == "mine"
    with pytest.raises(ConfigurationError, match="away_s: expected a number of seconds, 0 or more, found -1"):
        FolderSource(folder.path, away_s=-1)


class Answers(BaseHTTPRequestHandler):
    """What the path asks for."""

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        """An answer of each kind."""
        body = json.dumps(
            {"kind": "PodList", "apiVersion": "v1", "items": [as_json("a"), as_json("b")]}
        ).encode()
        if self.path == "/empty":
            body = b""
        if self.path == "/silent":
            time.sleep(1.0)
            return
        refused = self.path == "/token" and self.headers["X-Token"] != "a, b"
        if self.path in {"/202", "/204", "/206"}:
            self.send_response(int(self.path[1:]))
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(403 if refused else 500 if self.path == "/broken" else 200)
        size = len(body) + (10 if self.path == "/half" else 0)
        if self.path not in {"/huge", "/slow", "/yaml"}:
            self.send_header("Content-Length", str(size))
        self.end_headers()
        if self.path == "/huge":
            body = b" " * 200_000
        if self.path == "/yaml":
            body = manifest("a").encode() + b"#" * 300_000
        if self.path == "/slow":
            for byte in body[:20]:
                self.wfile.write(bytes([byte]))
                time.sleep(0.05)
            return
        self.wfile.write(b"" if self.path == "/broken" else body)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as served:
        thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{served.server_port}"
        served.shutdown()
        thread.join()


def test_an_address_is_read(server: str) -> None:
    """A list of pods, read twice alike."""
    source = HttpSource(server + "/")
    assert names(source.read(ManualCancel())) == ["a", "b"]
    check_source(source)


@pytest.mark.parametrize("status", [202, 204, 206])
@pytest.mark.parametrize("is_lenient", [False, True])
def test_an_answer_that_is_none_of_the_pods_says_nothing(
    server: str, status: int, *, is_lenient: bool
) -> None:
    """Without a byte it would say that there are no pods, and all that were would end."""
    with pytest.raises(RetryableError, match=f"status {status}; the last answer stays"):
        HttpSource(f"{server}/{status}", is_lenient=is_lenient).read(ManualCancel())


def test_headers_are_sent_along(server: str) -> None:
    """Every value, as one field of the request."""
    with pytest.raises(RetryableError, match="status 403"):
        HttpSource(server + "/token").read(ManualCancel())
    source = HttpSource(server + "/token", headers={"X-Token": ["a", "b"]})
    assert names(source.read(ManualCancel())) == ["a", "b"]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/silent", "no whole answer"),
        ("/slow", "not all; the last answer stays"),
        ("/huge", "more than 100000 bytes"),
        ("/half", "of [0-9]+ bytes|no whole answer"),
        ("/broken", "status 500"),
    ],
)
def test_an_answer_that_is_none_is_refused_in_time(server: str, path: str, words: str) -> None:
    """Silent, slow, huge, half an answer, an error: each within its bounds."""
    began_s = time.monotonic()
    with pytest.raises(RetryableError, match=words):
        HttpSource(server + path, deadline_s=0.3, max_bytes=100_000).read(ManualCancel())
    assert time.monotonic() - began_s < 5.0


@pytest.mark.parametrize(
    ("first", "word"),
    [
        (b"HTTP/1.1 200 OK\r\nX: ", b"a"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"0"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b" "),
    ],
    ids=["a header", "go on", "a chunk's length", "a body"],
)
@pytest.mark.parametrize("is_cancelled", [False, True])
def test_a_server_that_always_says_one_thing_more_is_hung_up_on(
    first: bytes, word: bytes, is_cancelled: bool
) -> None:
    """A timeout of a socket begins anew with each word; what counts is the time of the whole."""
    cancel, said, hung_up = ManualCancel(), threading.Event(), threading.Event()

    def serve(listening: socket.socket) -> None:
        caller, _ = listening.accept()
        with caller:
            try:
                caller.sendall(first)
                for _ in range(500):
                    caller.sendall(word)
                    said.set()
                    time.sleep(0.02)
            except OSError:
                hung_up.set()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        source = HttpSource(
            f"http://127.0.0.1:{listening.getsockname()[1]}", deadline_s=60.0 if is_cancelled else 0.3
        )
        server = threading.Thread(target=serve, args=(listening,))
        server.start()
        if is_cancelled:
            threading.Thread(target=lambda: cancel.set() if said.wait() else None).start()
        with pytest.raises(RetryableError, match=r"not all|no whole answer"):
            source.read(cancel)
        server.join()
    assert hung_up.is_set()


def test_a_long_answer_has_to_be_json(server: str) -> None:
    """YAML takes a hundred times as long, and whoever may answer could keep an agent busy for minutes."""
    with pytest.raises(DecodeError, match="262144 is the limit of YAML; answer with JSON"):
        HttpSource(server + "/yaml").read(ManualCancel())
    allowed = HttpSource(server + "/yaml", max_yaml_bytes=1 << 20)
    assert names(allowed.read(ManualCancel())) == ["a"]


def test_an_answer_is_read_as_a_kubelet_reads_it() -> None:
    """The first document; what it says that it is; and nothing that it does not know."""
    from nodealloc.podsources._documents import pods_in

    def read(document: object) -> list[str]:
        data = document if isinstance(document, bytes) else json.dumps(document).encode()
        return [pod.name for pod in pods_in(data, where="x", source="http", node_name="", is_lenient=True)]

    pod, pods = as_json("a"), {"apiVersion": "v1", "kind": "PodList"}
    assert read({**pod, "later": 1}) == ["a"]
    assert read({**pods, "items": [{**pod, "kind": ""}, as_json("b")]}) == ["a", "b"]
    assert read({**pods, "items": None}) == read(pods) == []
    assert read(f"{manifest('a')}---\n{manifest('b')}".encode()) == ["a"]
    for key in ("apiVersion", "kind"):
        with pytest.raises(DecodeError, match=rf"it is needed; write it @ \$.{key}"):
            read({name: value for name, value in pod.items() if name != key})
    with pytest.raises(DecodeError, match="expected a list"):
        read({**pods, "items": {}})
    with pytest.raises(DecodeError, match="nothing is in it yet"):
        read(b" ")
    with pytest.raises(DecodeError, match="List"):
        read({**pods, "kind": "List", "items": [pod]})


def test_a_list_that_nothing_was_put_into_says_that_there_are_no_pods() -> None:
    """Go writes null for it; a list without a list is asked for one, and not taken for a controller."""

    def read(**fields: object) -> list[str]:
        data = json.dumps({"apiVersion": "v1", **fields}).encode()
        return [pod.name for pod in _documents.pods_in(data, where="x", source="http", node_name="")]

    for kind in ("PodList", "List"):
        assert read(kind=kind, items=None) == read(kind=kind, items=[]) == []
        wrongs: tuple[dict[str, object], ...] = ({}, {"items": {}}, {"items": "a"})
        for wrong in wrongs:
            with pytest.raises(
                DecodeError, match=r"x: expected a list of pods; write \[\] for none @ \$\.items"
            ):
                read(kind=kind, **wrong)
    with pytest.raises(DecodeError, match="expected Pod, found 'Deployment'"):
        read(kind="Deployment")
    with pytest.raises(DecodeError, match="expected a text, found a list"):
        read(kind=["PodList"])


def test_for_a_kubelet_an_answer_without_a_byte_is_no_pods(server: str) -> None:
    """The source was heard then; by default that is no answer."""
    reading = HttpSource(server + "/empty", is_lenient=True).read(ManualCancel())
    assert (reading.pods, reading.is_synced, len(reading.faults)) == ((), True, 1)
    with pytest.raises(DecodeError, match="empty PodList"):
        HttpSource(server + "/empty").read(ManualCancel())


class Onward(BaseHTTPRequestHandler):
    """Sends on to wherever the test says, and notes who asked for what."""

    location = ""
    asked: list[tuple[str, str | None]]

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        """An empty list, or where else to ask."""
        self.asked.append((self.path, self.headers["Authorization"]))
        self.send_response(302 if self.path == "/on" else 200)
        self.send_header("Location", self.location)
        body = b'{"kind": "PodList", "apiVersion": "v1", "items": []}'
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def onward() -> Iterator[tuple[str, type[Onward]]]:
    """A server on every address of this machine, and what it was asked."""
    kind = type("Here", (Onward,), {"asked": []})
    serving = ThreadingHTTPServer(("", 0), kind)
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{serving.server_port}", kind
    serving.shutdown()
    serving.server_close()


def test_headers_stay_with_the_host_that_they_are_for(onward: tuple[str, type[Onward]]) -> None:
    """A redirect within the host takes them along; one to another host is followed without."""
    address, kind = onward
    source = HttpSource(f"http://{address}/on", headers={"Authorization": ["secret"]})
    for kind.location, sent in (("/there", "secret"), (f"http://localhost:{address[10:]}/there", None)):
        kind.asked.clear()
        assert source.read(ManualCancel()).is_synced
        assert kind.asked == [("/on", "secret"), ("/there", sent)]


def test_a_header_is_sent_as_utf8_and_shown_to_nobody(onward: tuple[str, type[Onward]]) -> None:
    """As Go writes it; what stands in one may be a token."""
    address, kind = onward
    HttpSource(f"http://{address}/there", headers={"Authorization": ["\u20ac"]}).read(ManualCancel())
    assert [sent and sent.encode("latin-1").decode() for _, sent in kind.asked] == ["\u20ac"]
    with pytest.raises(ConfigurationError, match="headers: the value of 'Authorization' is none") as caught:
        HttpSource("http://host/", headers={"Authorization": ["Bearer s3cret\n"]})
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "location",
    [
        "ftp://127.0.0.1/x",
        "file:///etc/passwd",
        "http://[::1",
        "http://\xc4\xb0/",
        f"http://{'x' * 99}/",
        "//",
    ],
)
def test_a_redirect_to_nonsense_is_no_answer(onward: tuple[str, type[Onward]], location: str) -> None:
    """Nobody is asked by another protocol, and what is no address is told as such."""
    address, kind = onward
    kind.location = location
    with pytest.raises(RetryableError, match="the last"):
        HttpSource(f"http://{address}/on").read(ManualCancel())


def test_what_stands_beside_a_redirect_is_not_read() -> None:
    """Its body may have no end; nothing of it is kept, and the answer is asked for at once."""
    sent: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer(begin: bytes, more: bytes) -> None:
            made, _ = server.accept()
            made.recv(1 << 16)
            threading.Thread(target=send, args=(made, begin, more), daemon=True).start()

        def send(made: socket.socket, begin: bytes, more: bytes) -> None:
            with made, contextlib.suppress(OSError):
                made.sendall(b"HTTP/1.1 " + begin)
                while more and len(sent) < 256:
                    made.sendall(more)
                    sent.append(len(more))

        def serve_both() -> None:
            answer(b"302 Found\r\nLocation: /there\r\n\r\n", bytes(1 << 18))
            answer(b'200 OK\r\n\r\n{"kind": "PodList", "apiVersion": "v1", "items": []}', b"")

        serving = threading.Thread(target=serve_both, daemon=True)
        serving.start()
        reading = HttpSource(f"http://127.0.0.1:{server.getsockname()[1]}/").read(ManualCancel())
        serving.join(10)
    assert reading.is_synced
    assert sum(sent) < 32 << 20


def test_an_answer_without_sense_is_quoted_in_part(onward: tuple[str, type[Onward]]) -> None:
    """A line of it may have 64 KiB, at each try; and a redirect that turns round is told as one."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            made, _ = server.accept()
            with made:
                made.recv(1 << 16)
                made.sendall(b"x" * 60_000)

        threading.Thread(target=serve, daemon=True).start()
        with pytest.raises(RetryableError, match="x…") as caught:
            HttpSource(f"http://127.0.0.1:{server.getsockname()[1]}/").read(ManualCancel())
    assert len(str(caught.value)) < 400
    address, kind = onward
    kind.location = "/on"
    with pytest.raises(RetryableError, match="status 302, and it leads on to no answer; the last"):
        HttpSource(f"http://{address}/on").read(ManualCancel())


def test_nonsense_for_an_address_is_refused() -> None:
    """Only HTTP, and bounds that let something through."""
    with pytest.raises(ConfigurationError, match="begins with http"):
        HttpSource("file:///etc/passwd")
    with pytest.raises(ConfigurationError, match="give more than 0"):
        HttpSource("http://x", deadline_s=0)


def until(what: Callable[[], bool]) -> None:
    """Wait for something that happens on other threads."""
    for _ in range(1000):
        if what():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen within ten seconds")


def test_a_hung_source_delays_no_other_and_nothing_is_ready_before_all(tmp_path: Path) -> None:
    """The pods of one are there while another hangs; ready only when that one was heard as well."""
    release = threading.Event()

    class Hung:
        def read(self, _cancel: Cancel, /) -> Reading:
            release.wait(20.0)
            return Reading()

    (tmp_path / "a.yaml").write_text(manifest("a"))
    sources = PodSources({"file": FolderSource(tmp_path), "http": Hung()})
    sources.start()
    try:
        until(lambda: len(sources.pods) == 1)
        assert not sources.is_ready()
        release.set()
        until(sources.is_ready)
        assert sorted(sources.merged().heard) == ["file", "http"]
    finally:
        release.set()
        sources.stop()


def test_a_folder_beyond_its_bound_reads_as_many_files_as_it_says(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that it knows first; then others, by their names."""
    monkeypatch.setattr(_folder, "_MOST_FILES", 3)
    source = FolderSource(folder.path, settle_s=0, clock=folder.clock)
    for name in ("y", "z"):
        (folder.path / f"{name}.yaml").write_text(manifest(name))
    assert names(source.read(ManualCancel())) == ["y", "z"]
    for name in ("a", "b"):
        (folder.path / f"{name}.yaml").write_text(manifest(name))
    reading = source.read(ManualCancel())
    assert names(reading) == ["a", "y", "z"]
    assert [one.what for one in reading.faults] == ["4 files, 3 are read; take some away"]


def test_nothing_is_ready_before_everybody_was_told_of_the_last_source() -> None:
    """Whoever asks meanwhile, on another thread, would end what nobody has said yet."""
    pod = Pod(uid="u", name="web", containers=(Container(name="app"),))
    clock, executor = VirtualClock(), ManualExecutor()
    sources = PodSources({"api": FakeSource([pod])}, executor=executor, clock=clock)
    was_ready: list[bool] = []
    watch = sources.pods.watch(lambda: was_ready.append(sources.is_ready()))
    sources.run_until_quiet()
    executor.run_all()
    sources.run_until_quiet()
    assert (was_ready, sources.is_ready(), set(watch.take())) == ([False], True, {"u"})


def test_pods_of_one_answer_come_by_their_age() -> None:
    """A kubelet admits those of an update in that order; those of one age in the order of their source."""
    made = {
        "young": "2026-01-02T00:00:00Z",
        "b": "2026-01-01T00:00:00Z",
        "a": "2026-01-01T00:00:00Z",
        "static": "",
    }
    pods = [
        Pod(uid=uid, name=uid, creation_timestamp=at, containers=(Container(name="app"),))
        for uid, at in made.items()
    ]
    clock, executor = VirtualClock(), ManualExecutor()
    sources = PodSources({"api": FakeSource(pods)}, executor=executor, clock=clock)
    watch = sources.pods.watch()
    sources.run_until_quiet()
    executor.run_all()
    assert list(watch.take()) == ["static", "b", "a", "young"]


def test_a_failing_source_keeps_what_it_said_last() -> None:
    """Its error is in `answers`, its pods stay; unsynced answers change nothing."""
    pod = Pod(uid="u", name="web", containers=(Container(name="app"),))
    source = FakeSource(pods=[pod], synced=False)
    sources = PodSources({"api": source}, polling=Polling(period_s=0.01, gap_s=0, again_s=0.01))
    sources.start()
    try:
        until(lambda: source.reads > 2)
        assert (len(sources.pods), sources.is_ready()) == (0, False)
        source.synced = True
        until(sources.is_ready)
        source.error = RetryableError("away")
        until(lambda: any(one.value.error == "away" for one in sources.answers.snapshot().values()))
        assert sources.pods.get("u") is not None
        source.pods, source.error = [], None
        until(lambda: len(sources.pods) == 0)
    finally:
        sources.stop()


@attrs.define
class Says:
    """A source of one answer, which a test changes."""

    answer: Reading | OSError

    def read(self, _cancel: Cancel, /) -> Reading:
        """The answer."""
        if isinstance(self.answer, OSError):
            raise self.answer
        return self.answer


def test_a_fault_is_told_once_and_once_more_when_it_is_gone() -> None:
    """A line each, also of a source without an answer; what stays as it is is not told again."""
    files, other = Says(Reading()), Says(Reading())
    clock, executor = VirtualClock(), ManualExecutor()
    sources = PodSources({"file": files, "api": other}, executor=executor, clock=clock)
    lines: list[str] = []
    sources.tell_faults(lines.append)

    def reads() -> list[str]:
        lines.clear()
        for name in ("file", "api"):
            sources.hurry(name)
        clock.advance(3.0)
        sources.run_until_quiet()
        executor.run_all()
        sources.run_until_quiet()
        return sorted(lines)

    assert reads() == []
    bad = SourceFault(where="a.yaml", what="no YAML")
    files.answer = Reading(faults=(bad, SourceFault(where="a.yaml", what="too\n long")))
    other.answer = OSError("away")
    assert reads() == ["a.yaml: no YAML; too long", "source api: away"]
    assert reads() == []
    files.answer = Reading(faults=(bad,))
    assert reads() == ["a.yaml: no YAML"]
    files.answer = other.answer = Reading()
    assert reads() == ["a.yaml: no fault any more", "source api: no fault any more"]
    files.answer = Reading(faults=(bad,))
    assert reads() == ["a.yaml: no YAML"]
    files.answer = Reading(gone=("a.yaml", "b.yaml"))
    assert reads() == ["a.yaml: it is gone"]  # what nobody was told of goes without a word


def test_a_pod_whose_file_is_away_may_be_about_to_go(tmp_path: Path) -> None:
    """It is one of the pods for a while; who needs what it holds is not to be refused for that."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(manifest(name))
    clock, executor = VirtualClock(), ManualExecutor()
    folder = FolderSource(tmp_path, clock=clock, settle_s=0.0)
    sources = PodSources({"file": folder}, executor=executor, clock=clock)

    def leaving(*, after_s: float) -> list[str]:
        clock.advance(after_s)
        sources.hurry("file")
        clock.advance(3.0)
        sources.run_until_quiet()
        executor.run_all()
        sources.run_until_quiet()
        return [pod.name for uid, pod in known.items() if sources.may_leave(uid)]

    known: dict[str, Pod] = {}
    leaving(after_s=0.0)
    known.update(sources.merged().by_uid())
    assert sorted(one.name for one in known.values()) == ["a", "b"]
    assert leaving(after_s=1.0) == []
    (tmp_path / "a.yaml").rename(tmp_path / ".a")
    assert leaving(after_s=0.0) == ["a"]
    (tmp_path / ".a").rename(tmp_path / "a.yaml")
    assert leaving(after_s=0.0) == []
    (tmp_path / "b.yaml").unlink()
    assert leaving(after_s=0.0) == ["b"]
    assert len(sources.merged().by_uid()) == 2
    assert leaving(after_s=9.0) == ["b"]
    assert [one.name for one in sources.merged().by_uid().values()] == ["a"]


def test_a_fault_is_one_line_whatever_its_file_is_called() -> None:
    """A name with a newline tells nothing of other files, and one that is no text can be written."""
    odd = os.fsdecode(b"a\xff\nb.yaml: no fault any more\x1b[2J")
    files = Says(Reading(faults=(SourceFault(where=odd, what="no \x1b[31mYAML"),)))
    executor = ManualExecutor()
    sources = PodSources({"file": files}, executor=executor, clock=VirtualClock())
    lines: list[str] = []
    sources.tell_faults(lines.append)
    sources.run_until_quiet()
    executor.run_all()
    sources.run_until_quiet()
    assert lines == [r"a\udcff\nb.yaml: no fault any more\x1b[2J: no \x1b[31mYAML"]


@pytest.mark.parametrize("is_lenient", [False, True])
def test_a_status_that_makes_no_sense_is_a_fault_or_left_out(tmp_path: Path, *, is_lenient: bool) -> None:
    """A manifest that was copied with its status: nothing at all was told of its pod, which ran."""
    status = {"phase": {"of": "another"}, "conditions": 5, "hostIP": "10.0.0.1"}
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "app", "image": "a:1"}]},
        "status": status,
    }
    (tmp_path / "web.json").write_text(json.dumps(manifest))
    reading = FolderSource(tmp_path, is_lenient=is_lenient).read(ManualCancel())
    assert [dict(pod.status) for pod in reading.pods] == [{"phase": "Pending"}] * is_lenient
    expected = [] if is_lenient else ["expected a list, found 5 @ $.status.conditions"]
    assert [one.what for one in reading.faults] == expected


def test_a_reading_that_brings_the_same_costs_no_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    """The very same pods were merged before; another source's change has them looked at again."""
    merged: list[str] = []

    def counted(before: MergedUpdates, update: PodUpdate, /, **more: object) -> Merging:
        merged.append(update.source)
        return merge_update(before, update, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(_sources, "merge_update", counted)
    pod = Pod(uid="u", name="web", containers=(Container(name="app"),))
    file, other = FakeSource(pods=[pod]), FakeSource()
    executor, clock = ManualExecutor(), VirtualClock()
    polling = Polling(period_s=1.0, gap_s=0)
    sources = PodSources({"file": file, "other": other}, polling=polling, executor=executor, clock=clock)

    def read() -> list[str]:
        merged.clear()
        clock.advance(1.0)
        sources.run_until_quiet()
        while executor.run_all():
            sources.run_until_quiet()
        return sorted(merged)

    assert [read() for _ in range(4)] == [["file", "other"], ["file"], [], []]
    other.pods = [Pod(uid="v", name="db", containers=(Container(name="app"),))]
    assert [read() for _ in range(3)] == [["other"], ["file", "other"], []]
    assert sources.pods.snapshot().keys() == {"u", "v"}


def test_a_file_that_has_not_changed_is_not_opened(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was replaced, or whose rights were changed, is."""
    file = folder.path / "a.yaml"
    file.write_text(manifest("a"))
    folder.look()
    folder.look()
    opened: list[object] = []
    real = os.open

    def noted(path: str, flags: int, *, dir_fd: int | None = None) -> int:
        opened.append(path)
        return real(path, flags, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", noted)
    assert (names(folder.look()), opened) == (["a"], [])
    file.chmod(0o600)
    assert (names(folder.look()), len(opened)) == (["a"], 1)
    (folder.path / ".b").write_text(manifest("b"))
    (folder.path / ".b").rename(file)
    assert names(folder.look()) == ["b"]


def test_inotify_wakes_and_an_edit_keeps_the_uid_over_a_restart(tmp_path: Path) -> None:
    """A new file is there at once; put back it is a new pod, and stays so after a restart."""
    path = tmp_path / "a.yaml"
    remembered: dict[str, object] = {}

    def begin(**more: object) -> PodSources:
        folder = FolderSource(tmp_path, away_s=0.0)
        watcher = InotifyWatcher(str(tmp_path), below=False)
        made = PodSources(
            {"file": folder},
            wakers={"file": watcher},
            polling=Polling(period_s=3600),
            **more,  # type: ignore[arg-type]
        )
        made.start()
        return made

    sources = begin(remember=remembered.__setitem__)
    try:
        until(sources.is_ready)
        path.write_text(manifest("a"))
        until(lambda: len(sources.pods) == 1)
        (first,) = sources.pods.snapshot()
        path.unlink()
        until(lambda: len(sources.pods) == 0)
        path.write_text(manifest("a"))
        until(lambda: len(sources.pods) == 1)
        (second,) = sources.pods.snapshot()
        assert second != first
    finally:
        sources.stop()
    again = begin(editions=remembered)
    try:
        until(lambda: len(again.pods) == 1)
        (pod,) = again.pods.snapshot().values()
        assert pod.value.uid == second
        again.learn_ends(lambda uid: uid == second)
        temporary = tmp_path / ".new"
        temporary.write_text(manifest("a", "web:2"))
        temporary.rename(path)
        until(lambda: set(again.pods.snapshot()) not in (set(), {second}))
    finally:
        again.stop()


def test_wrong_wiring_is_refused() -> None:
    """No sources, wakers of none, hurries for nobody."""
    with pytest.raises(ConfigurationError, match="no source at all"):
        PodSources({})
    with pytest.raises(ConfigurationError, match="wakers of none"):
        PodSources({"api": FakeSource()}, wakers={"file": FakeWatcher()})
    for name in ("API", "Api"):
        with pytest.raises(ConfigurationError, match=f"'{name}' .*static pods.*; call it 'api'"):
            PodSources({name: FakeSource()})
    with pytest.raises(ConfigurationError, match="none of the sources api"):
        PodSources({"api": FakeSource()}).hurry("file")


def test_checks_refuse_broken_doubles() -> None:
    """A source that never syncs, that wavers, that has twins."""
    web = Pod(uid="u", name="web", containers=(Container(name="app"),))

    class Wavering(FakeSource):
        def read(self, cancel: object, /) -> Reading:
            self.pods = [] if self.pods else [web]
            return super().read(cancel)

    with pytest.raises(AssertionError, match="never knows"):
        check_source(FakeSource(synced=False))
    with pytest.raises(AssertionError, match="something else"):
        check_source(Wavering())
    with pytest.raises(AssertionError, match="two pods have one full name"):
        check_source(FakeSource(pods=[web, attrs.evolve(web, uid="v")]))
    with pytest.raises(AssertionError, match="a pod is refused"):
        check_source(FakeSource(pods=[web, attrs.evolve(web, name="db")]))
    check_source(FakeSource(pods=[web]))


def test_an_answer_without_pods_is_no_answer() -> None:
    """Nothing at all is not "no pods"."""
    from nodealloc.podsources._documents import pods_in

    with pytest.raises(DecodeError, match="empty PodList"):
        list(pods_in(b"", where="x", source="http", node_name=""))
    with pytest.raises(DecodeError, match="253 is the limit"):
        list(pods_in(json.dumps(as_json("a")).encode(), where="x", source="http", node_name="n" * 253))


WHOLE = json.dumps(
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
)


@pytest.mark.parametrize(
    ("text", "is_read"),
    [(WHOLE, True), (WHOLE[:-9], False), (manifest(), False), ("{" * 100_000, False)],
    ids=["a whole object", "half of one", "YAML, that never says where it ends", "deeper than can be read"],
)
def test_a_whole_object_is_read_at_the_first_look(folder: Folder, text: str, *, is_read: bool) -> None:
    """Whoever renames a JSON manifest into the folder need not wait for a second look."""
    (folder.path / "a").write_text(text)
    first = folder.source.read(ManualCancel())
    assert bool(first.pods) == is_read
    assert (first.again_after_s is None) == is_read


_APP = {"name": "app", "image": "busybox"}


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"containers": [{**_APP, "env": [{"name": "1A", "value": "x"}]}]}, "containers[0].env[0].name"),
        ({"containers": [{**_APP, "env": [{"name": "..a", "value": "x"}]}]}, "containers[0].env[0].name"),
        (
            {"containers": [{**_APP, "envFrom": [{"prefix": "1_", "secretRef": {"name": "s"}}]}]},
            "containers[0].envFrom[0].prefix",
        ),
        (
            {"initContainers": [{**_APP, "name": "first", "resizePolicy": [
                {"resourceName": "cpu", "restartPolicy": "NotRequired"}]}]},
            "initContainers[0].resizePolicy",
        ),
        ({"containers": [{**_APP, "securityContext": {"procMount": "Unmasked"}}]}, "procMount"),
        ({"hostUsers": False, "hostPID": True}, "$.spec.hostUsers"),
        (
            {"volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]},
            "sources[0].serviceAccountToken",
        ),
    ],
)  # fmt: skip
def test_what_a_kubelet_refuses_counts_where_it_is_followed(spec: dict[str, object], path: str) -> None:
    """Some of it other nodes take, or later kubelets."""
    document = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [_APP], **spec}
    }  # fmt: skip
    told = {"where": "a.json", "source": "file", "node_name": "n"}
    data = json.dumps(document).encode()
    assert _documents.pod_in(data, is_lenient=False, **told).name == "a-n"  # type: ignore[arg-type]
    with pytest.raises(DecodeError) as caught:
        _documents.pod_in(data, is_lenient=True, **told)  # type: ignore[arg-type]
    assert [one.path.endswith(path) for one in caught.value.faults] == [True]


@pytest.mark.parametrize("is_lenient", [False, True])
def test_a_manifest_is_looked_at_as_it_comes_to_its_node(*, is_lenient: bool) -> None:
    """Whatever node it names; a gate would hold back what is on a node already."""
    told = {"where": "a.json", "source": "file", "node_name": "n", "is_lenient": is_lenient}

    def data(**spec: object) -> bytes:
        whole = {"containers": [_APP], **spec}
        return json.dumps(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": whole}
        ).encode()

    assert _documents.pod_in(data(nodeName="N 2"), **told).node_name == "n"  # type: ignore[arg-type]
    with pytest.raises(DecodeError, match="no scheduling gate"):
        _documents.pod_in(data(schedulingGates=[{"name": "a"}]), **told)  # type: ignore[arg-type]
