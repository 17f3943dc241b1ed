"""Images of containers: names, what is there, what is fetched, as whom, and how many at a time."""

from __future__ import annotations

import base64
import functools
import json
import threading
from collections.abc import Sequence
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any, cast

import pytest

from nodealloc.errors import NodeallocError
from nodealloc.podlife import ImageName, RestartBackOff, SecretCredentials
from nodealloc.podlife._images import (
    FailedPulls,
    ImageFetcher,
    ImageUnavailableError,
    find_image,
    pull_held,
    pull_policy,
)
from nodealloc.podspec import Container, Pod, PullPolicy
from nodealloc.podspec._model import LocalName
from nodealloc.runtime import (
    AnswerLostError,
    ImageRecord,
    PullCredentials,
    RuntimeRefusedError,
    RuntimeUnavailableError,
    SandboxConfig,
)
from nodealloc.testing.conformance import Row, read_rows
from nodealloc.testing.dsw_asw import ManualCancel
from nodealloc.testing.runtime import FakeContainerRuntime

VECTORS = Path(__file__).parents[2] / "vectors"
DIGEST = "sha256:" + "a" * 64
POD = Pod(uid="u", name="web", namespace="shop", image_pull_secrets=(LocalName(name="keys"),))


def app(image: str, policy: PullPolicy | None = None) -> Container:
    """A container of an image."""
    return Container(name="app", image=image, image_pull_policy=policy)


@functools.cache
def stories() -> tuple[Row, ...]:
    """All recorded stories of static pods."""
    return tuple(read_rows(VECTORS / "kubelet_stories.jsonl.gz"))


def told(name: str) -> list[str]:
    """All that users of the recorded stories saw of containers that waited."""
    found: list[str] = []
    for story in stories():
        for pod in cast("Any", story)["seen"]["pods"].values():
            for state in pod["states"]:
                waiting = state.get("containers", {}).values()
                found += [one.get("message", "") for one in waiting if one.get("reason") == name]
    return found


@pytest.mark.parametrize(
    ("text", "repository", "rest"),
    [
        ("busybox", "docker.io/library/busybox", "latest"),
        ("busybox:1", "docker.io/library/busybox", "1"),
        ("team/app", "docker.io/team/app", "latest"),
        ("localhost/app:1", "localhost/app", "1"),
        ("registry.test:5000/a/b:v1.2_x", "registry.test:5000/a/b", "v1.2_x"),
        ("[::1]:5000/a", "[::1]:5000/a", "latest"),
        ("index.docker.io/busybox", "docker.io/library/busybox", "latest"),
        ("index.docker.io/team/app:1", "docker.io/team/app", "1"),
        (f"a@{DIGEST}", "docker.io/library/a", DIGEST),
        (f"r.test/a:1@{DIGEST}", "r.test/a", DIGEST),
    ],
)
def test_names_are_read_in_full(text: str, repository: str, rest: str) -> None:
    """Registry, path, and tag or digest, whatever was left out."""
    name = ImageName.of(text)
    assert (name.repository, name.digest or name.tag) == (repository, rest)


NO_NAMES = (
    *("", "Localhost//x", "UPPER", "a b", "a:", "a@", "a@sha256:1", "/a", "a/", "a//b", "a:b:c", "-a"),
    *("a" * 64, "x_.test/a", "a" * 2000, "a/" * 400 + "a", "registry.test/", "a\n"),
)


@pytest.mark.parametrize("text", NO_NAMES)
def test_what_names_no_image_is_refused(text: str) -> None:
    """Empty parts, capitals in paths, half digests, ids, and what is far too long."""
    with pytest.raises(ValueError, match=r"names no image|characters"):
        ImageName.of(text)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a@sha256:" + "a" * 32, "invalid checksum digest length"),
        ("a@sha512:" + "a" * 64, "invalid checksum digest length"),
        ("a@sha256:" + "A" * 64, "invalid checksum digest format"),
        ("a@md5:" + "a" * 32, "unsupported digest algorithm"),
        ("a:t@SHA256:" + "a" * 64, "invalid checksum digest format"),
        ("a" * 256, "repository name must not be more than 255 characters"),
        ("r.test/" + "a" * 256, "repository name must not be more than 255 characters"),
        ("a" * 2000, "invalid reference format"),
    ],
)
def test_what_is_no_digest_or_too_long_is_said_as_a_kubelet_says_it(text: str, fault: str) -> None:
    """No runtime has an image of such a name, so nobody is asked to fetch it."""
    with pytest.raises(ValueError, match=r"a digest is sha256:|255 at most|names no image"):
        ImageName.of(text)
    assert ImageName.fault(text) == fault
    for algorithm, size in (("sha384", 96), ("sha512", 128)):
        assert ImageName.of(f"a@{algorithm}:{'0' * size}").digest


def test_a_runtime_is_asked_for_what_was_written() -> None:
    """With the tag that it means; the registry is the runtime's business."""
    for text, asked in (
        ("a", "a:latest"),
        ("a:1", "a:1"),
        (f"a@{DIGEST}", f"a@{DIGEST}"),
        ("r:5/a", "r:5/a:latest"),
    ):
        assert ImageName.of(text).asked == asked


def test_an_image_is_known_by_all_its_names() -> None:
    """Short and full, tag and digest; another tag is another image."""
    one = ImageRecord(
        id="sha256:1", names=("docker.io/library/a:1", f"docker.io/library/a@{DIGEST}", "<none>")
    )
    for text in ("a:1", "docker.io/library/a:1", "index.docker.io/a:1", f"a@{DIGEST}", f"a:9@{DIGEST}"):
        assert find_image([one], ImageName.of(text)) is one
    for text in ("a", "a:2", "b:1", "localhost/a:1"):
        assert find_image([one], ImageName.of(text)) is None


def test_an_image_that_is_there_is_known_by_its_id_as_well() -> None:
    """One that was loaded without a name, say; a kubelet asks its runtime, which knows it so."""
    one = ImageRecord(id=DIGEST)
    assert find_image([ImageRecord(id="sha256:1"), one], ImageName.of(DIGEST)) is one


def test_a_manifest_says_when_its_image_is_fetched() -> None:
    """As the API has it: always for `latest`; for a pod made by hand that does not say, once."""

    def read(image: str) -> PullPolicy:
        manifest = {
            "metadata": {"name": "web", "uid": "u"},
            "spec": {"containers": [{"name": "app", "image": image}]},
        }
        return pull_policy(Pod.from_manifest(manifest).containers[0])

    always, once = PullPolicy.ALWAYS, PullPolicy.IF_NOT_PRESENT
    assert [read(one) for one in ("a", "a:latest", "a:1", f"a@{DIGEST}")] == [always, always, once, once]
    assert [read(f"r.test:5000/a{one}@{DIGEST}") for one in (":latest", ":1", "")] == [always, once, once]
    assert pull_policy(app("a")) is once
    assert pull_policy(app("a", PullPolicy.NEVER)) is PullPolicy.NEVER


def test_what_is_there_is_not_fetched() -> None:
    """By policy: never and if-not-present take what is there, always asks the registry."""
    runtime = FakeContainerRuntime()
    runtime.image_store["sha256:1"] = ImageRecord(id="sha256:1", names=("docker.io/library/a:1",), user=7)
    fetcher = ImageFetcher(runtime)
    for policy in (PullPolicy.NEVER, PullPolicy.IF_NOT_PRESENT):
        assert fetcher.fetch(POD, app("a:1", policy), ManualCancel()).user == 7
    assert not [one for one in runtime.calls if one.startswith("pull")]
    fetcher.fetch(POD, app("a:1", PullPolicy.ALWAYS), ManualCancel())
    assert [one for one in runtime.calls if one.startswith("pull")] == ["pull_image a:1"]


def refused(fetcher: ImageFetcher, image: str, policy: PullPolicy | None = None) -> tuple[str, str]:
    """Reason and words of a failure."""
    with pytest.raises(ImageUnavailableError) as caught:
        fetcher.fetch(POD, app(image, policy), ManualCancel())
    assert caught.value.image == image
    return caught.value.reason, str(caught.value)


def test_failures_say_what_users_of_a_kubelet_saw() -> None:
    """Words of a name that is none, and of an image that may not be fetched, are in the recorded stories."""
    fetcher = ImageFetcher(FakeContainerRuntime())
    reason, words = refused(fetcher, "Localhost//x")
    assert words in told(reason)
    reason, words = refused(fetcher, "localhost/missing:1", PullPolicy.NEVER)
    assert words in told(reason)


def test_capitals_in_a_path_are_named() -> None:
    """With what a name without a registry means; so is what looks like an id."""
    capitals = "invalid reference format: repository name ({}) must be lowercase"
    for text, words in (
        ("BusyBox:1", capitals.format("library/BusyBox")),
        ("docker.io/BusyBox", capitals.format("library/BusyBox")),
        ("me/BusyBox", capitals.format("me/BusyBox")),
        ("r.test/BusyBox@sha256:1", capitals.format("BusyBox@sha256")),
        ("a" * 64, f"invalid repository name ({'a' * 64}), cannot specify 64-byte hexadecimal strings"),
        ("a b", "invalid reference format"),
    ):
        assert refused(ImageFetcher(FakeContainerRuntime()), text)[1].endswith(f'"{text}": {words}')


def test_a_registry_that_says_no_is_quoted() -> None:
    """The runtime's own words are the message; the next try is told beside them."""

    class Runtime(FakeContainerRuntime):
        def pull_image(
            self,
            name: str,
            credentials: PullCredentials | None = None,
            sandbox: SandboxConfig | None = None,
            /,
        ) -> str:
            raise RuntimeRefusedError("PullImage", "NOT_FOUND", f"no {name} here")

    reason, words = refused(ImageFetcher(Runtime()), "r.test/a:1")
    assert (reason, words) == ("ErrImagePull", "no r.test/a:1 here")
    held = pull_held("r.test/a:1", reason, words, 30.0)
    assert (held.reason, held.until_s) == ("ImagePullBackOff", 30.0)
    seen = [one for one in told("ErrImagePull") if "missing:1" in one]
    assert pull_held("localhost/missing:1", "ErrImagePull", seen[0], 0.0).message in told("ImagePullBackOff")


@pytest.mark.parametrize(
    ("status", "words", "reason"),
    [
        ("UNKNOWN", "RegistryUnavailable: no route", "RegistryUnavailable"),
        ("UNKNOWN", "SignatureValidationFailed", "SignatureValidationFailed"),
        ("NOT_FOUND", "RegistryUnavailable: no route", "ErrImagePull"),
        ("UNKNOWN", "the registry says RegistryUnavailable", "ErrImagePull"),
    ],
)
def test_the_runtimes_own_word_for_a_failure_is_the_reason(status: str, words: str, reason: str) -> None:
    """Where its answer begins with one that people know, and gRPC has none for it."""

    class Runtime(FakeContainerRuntime):
        def pull_image(
            self,
            name: str,
            credentials: PullCredentials | None = None,
            sandbox: SandboxConfig | None = None,
            /,
        ) -> str:
            raise RuntimeRefusedError("PullImage", status, words)

    assert refused(ImageFetcher(Runtime()), "r.test/a:1") == (reason, words)


def test_a_runtime_that_is_away_is_no_verdict_on_the_image() -> None:
    """The listing failed: another reason, and the image may be there."""

    class Runtime(FakeContainerRuntime):
        def images(self) -> tuple[ImageRecord, ...]:
            raise RuntimeUnavailableError("ListImages", "connection refused")

    reason, words = refused(ImageFetcher(Runtime()), "a:1")
    assert (reason, words) == ("ImageInspectError", 'Failed to inspect image "a:1": connection refused')


@pytest.mark.parametrize(
    "error",
    [RuntimeUnavailableError("ListImages", "away"), RuntimeRefusedError("ListImages", "UNKNOWN", "no")],
)
def test_an_image_that_came_is_there_though_nobody_can_list_it(error: NodeallocError) -> None:
    """It was fetched again and again, and no reason was told of its container."""

    class Runtime(FakeContainerRuntime):
        def images(self) -> tuple[ImageRecord, ...]:
            raise error

    found = ImageFetcher(Runtime()).fetch(POD, app("a:1", PullPolicy.ALWAYS), ManualCancel())
    assert found.names == ("a:1",)


def test_failures_wait_longer_and_longer() -> None:
    """By pod and image; what came, and a pod that is gone, begin anew."""
    pulls = FailedPulls(RestartBackOff())
    assert [pulls.failed("u", "a", now_s, now_s) for now_s in (0.0, 10.0, 30.0)] == [10, 20, 40]
    assert pulls.failed("u", "b", 30.0, 30.0) == 10
    assert pulls.failed("v", "a", 30.0, 30.0) == 10
    assert pulls.has_failed("u", "a")
    pulls.came("u", "a")
    assert not pulls.has_failed("u", "a")
    assert pulls.failed("u", "a", 70.0, 70.0) == 10
    # Another container of the pod, which began to fetch it as the first had failed.
    assert [pulls.failed("u", "a", 70.0, now_s) for now_s in (70.0, 100.0)] == [10, 10]
    assert pulls.failed("u", "a", 80.0, 130.0) == 20
    pulls.forget("v")
    assert not pulls.has_failed("v", "a")


class Slow(FakeContainerRuntime):
    """Fetching takes until it is let go; how many are fetched at a time is counted."""

    def __init__(self) -> None:
        super().__init__()
        self.image_store.clear()
        self.go = threading.Event()
        self.begun = threading.Semaphore(0)
        self.now = 0
        self.most = 0
        self._count = threading.Lock()

    def pull_image(
        self, name: str, credentials: PullCredentials | None = None, sandbox: SandboxConfig | None = None, /
    ) -> str:
        """Wait, then be had."""
        del sandbox
        with self._count:
            self.now += 1
            self.most = max(self.most, self.now)
        self.begun.release()
        self.go.wait(10)
        with self._count:
            self.now -= 1
        return super().pull_image(name, credentials)


def fetched(fetcher: ImageFetcher, *images: str) -> list[threading.Thread]:
    """Each on a thread of its own."""
    threads = [
        threading.Thread(target=fetcher.fetch, args=(POD, app(one), ManualCancel()), daemon=True)
        for one in images
    ]
    for one in threads:
        one.start()
    return threads


@pytest.mark.parametrize(("at_once", "most"), [(1, 1), (2, 2), (None, 4)])
def test_so_many_are_fetched_at_a_time(at_once: int | None, most: int) -> None:
    """One, a number, or all; everybody gets a turn."""
    runtime = Slow()
    threads = fetched(ImageFetcher(runtime, at_once=at_once), *(f"a:{n}" for n in range(4)))
    for _ in range(most):
        assert runtime.begun.acquire(timeout=10)
    runtime.go.set()
    for one in threads:
        one.join(10)
    assert runtime.most == most
    assert len(runtime.image_store) == 4


def test_a_long_fetch_holds_up_nobody_whose_image_is_there() -> None:
    """What is there is found beside the line; what waits can be called off, and leaves the line."""
    runtime = Slow()
    runtime.image_store["x"] = ImageRecord(id="x", names=("docker.io/library/here:1",))
    fetcher = ImageFetcher(runtime)
    first = fetched(fetcher, "long:1")
    assert runtime.begun.acquire(timeout=10)
    found = fetcher.find(app("here:1"))
    assert found is not None
    assert found.id == "x"
    cancel = ManualCancel()
    cancel.set()
    with pytest.raises(CancelledError):
        fetcher.fetch(POD, app("other:1"), cancel)
    second = fetched(fetcher, "next:1")
    runtime.go.set()
    for one in (*first, *second):
        one.join(10)
    assert sorted(one.names[0] for one in runtime.image_store.values()) == [
        "docker.io/library/here:1", "long:1", "next:1",
    ]  # fmt: skip


def test_a_line_of_nobody_is_refused() -> None:
    """None at a time would fetch nothing."""
    with pytest.raises(ValueError, match="at_once is 0"):
        ImageFetcher(FakeContainerRuntime(), at_once=0)


class Secrets:
    """One secret, in the manner of registries' own files."""

    def __init__(self, auths: object, *, old: bool = False) -> None:
        name = ".dockercfg" if old else ".dockerconfigjson"
        self.data = {name: json.dumps(auths if old else {"auths": auths}).encode()}

    def config_map(self, namespace: str, name: str, /) -> dict[str, str] | None:
        """There is none."""
        del namespace, name
        return None

    def secret(self, namespace: str, name: str, /) -> dict[str, bytes] | None:
        """The secret of the pod."""
        return self.data if (namespace, name) == ("shop", "keys") else None


def entry(user: str) -> dict[str, str]:
    """User and password as such files have them."""
    return {"auth": base64.b64encode(f"{user}:pa:ss".encode()).decode()}


def users(auths: object, image: str, *, old: bool = False) -> list[str]:
    """Who is tried for an image, in order."""
    source = SecretCredentials(Secrets(auths, old=old))
    return [one.username for one in source.credentials(POD, ImageName.of(image))]


def test_credentials_are_for_registries_and_paths() -> None:
    """The most exact first; a star stands for one part of a host."""
    auths = {
        "r.test": entry("all"),
        "https://r.test/v2/": entry("old spelling"),
        "r.test/team": entry("team"),
        "*.test": entry("star"),
        "r.test:5000": entry("port"),
        "https://index.docker.io/v1/": entry("hub"),
    }
    assert users(auths, "r.test/team/a:1") == ["team", "all", "old spelling", "star"]
    assert users(auths, "r.test/teams/a:1") == ["team", "all", "old spelling", "star"]
    assert users(auths, "r.test/other/a:1") == ["all", "old spelling", "star"]
    assert users({"https://r.test/v1/team": entry("old")}, "r.test/team/a") == ["old"]
    assert users({"r.test": {"auth": entry("ab")["auth"].rstrip("=")}}, "r.test/a") == ["ab"]
    assert users(auths, "r.test:5000/a:1") == ["port"]
    assert users(auths, "a.b.test/a:1") == []
    assert users(auths, "busybox") == ["hub"]
    assert users({"r.test": entry("old file")}, "r.test/a", old=True) == ["old file"]


@pytest.mark.parametrize(
    "auths", [None, [], {"r.test": 3}, {"r.test": {"auth": "%%"}}, {"r.test": {"auth": 1}}]
)
def test_secrets_that_make_no_sense_are_passed_over(auths: object) -> None:
    """The image may need none."""
    assert [one for one in users(auths, "r.test/a") if one] == []


def test_passwords_are_read_and_not_shown() -> None:
    """They reach the runtime, and no log."""
    (one,) = SecretCredentials(Secrets({"r.test": entry("me")})).credentials(POD, ImageName.of("r.test/a"))
    assert (one.username, one.password, one.server) == ("me", "pa:ss", "r.test")
    assert "pa:ss" not in repr(one)


def test_every_user_is_tried() -> None:
    """The first who may is the one; without any it is nobody."""
    tried: list[str] = []

    class Runtime(FakeContainerRuntime):
        def pull_image(
            self,
            name: str,
            credentials: PullCredentials | None = None,
            sandbox: SandboxConfig | None = None,
            /,
        ) -> str:
            tried.append(credentials.username if credentials else "nobody")
            if tried[-1] != "star":
                raise RuntimeRefusedError("PullImage", "UNAUTHENTICATED", "who are you")
            return super().pull_image(name, credentials)

    source = SecretCredentials(Secrets({"r.test": entry("all"), "*.test": entry("star")}))
    ImageFetcher(Runtime(), credentials=source).fetch(POD, app("r.test/a:1"), ManualCancel())
    assert tried == ["all", "star"]
    assert refused(ImageFetcher(Runtime(), credentials=source), "other.example/a:1")[0] == "ErrImagePull"
    assert tried == ["all", "star", "nobody"]


@pytest.mark.parametrize(
    "error", [AnswerLostError("PullImage", "503 of its tokens"), RuntimeUnavailableError("PullImage", "busy")]
)
def test_the_next_user_is_tried_after_any_failure(error: NodeallocError) -> None:
    """Their tokens may come from elsewhere; a kubelet does so too."""

    class Runtime(FakeContainerRuntime):
        def pull_image(
            self,
            name: str,
            credentials: PullCredentials | None = None,
            sandbox: SandboxConfig | None = None,
            /,
        ) -> str:
            if credentials is not None and credentials.username == "all":
                raise error
            return super().pull_image(name, credentials, sandbox)

    source = SecretCredentials(Secrets({"r.test": entry("all"), "*.test": entry("star")}))
    fetcher = ImageFetcher(Runtime(), credentials=source)
    assert "r.test/a:1" in fetcher.fetch(POD, app("r.test/a:1"), ManualCancel()).names


def test_what_each_user_was_told_is_said() -> None:
    """The first one's password may be what has to be mended; the same words are said once."""
    words = {"a": "a: denied", "b": "RegistryUnavailable: b", "c": "a: denied"}

    class Runtime(FakeContainerRuntime):
        def pull_image(
            self,
            name: str,
            credentials: PullCredentials | None = None,
            sandbox: SandboxConfig | None = None,
            /,
        ) -> str:
            said = words[credentials.username if credentials else "nobody"]
            raise RuntimeRefusedError("pull_image", "UNKNOWN", said)

    class Users:
        def credentials(self, pod: Pod, image: ImageName, /) -> Sequence[PullCredentials]:
            del pod, image
            return [PullCredentials(username=one) for one in words]

    reason, said = refused(ImageFetcher(Runtime(), credentials=Users()), "r.test/a:1")
    assert (reason, said) == ("RegistryUnavailable", "[a: denied, RegistryUnavailable: b]")
