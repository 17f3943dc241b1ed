"""Fakes and checks for whoever tells volumes what there is: claims, attachments, content, tokens, mounts.

>>> source = FakeConfigSource()
>>> source.put("web", "settings", {"mode": b"fast"})
>>> check_config_source(source, ("web", "settings"), ("web", "gone"))
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from nodealloc import _attrs as attrs
from nodealloc.podspec import Pod, Volume
from nodealloc.testing._wording import in_words
from nodealloc.volumes import (
    AttachVerifier,
    ClaimError,
    ClaimResolver,
    Found,
    Leftovers,
    MountWatch,
    VolumeId,
)
from nodealloc.volumes.plugins import (
    ConfigObject,
    ConfigSource,
    ServiceToken,
    TokenRequest,
    TokenSource,
    WatchableConfigSource,
)

__all__ = [
    "FakeAttachments",
    "FakeConfigSource",
    "FakeLeftovers",
    "FakeMountWatch",
    "FakeTokens",
    "check_attach_verifier",
    "check_claim_resolver",
    "check_config_source",
    "check_leftovers",
    "check_mount_watch",
    "check_token_source",
    "check_watchable",
]


@attrs.define
class FakeAttachments:
    """An `AttachVerifier` that a test fills.

    Attributes:
        devices: Volume to its device path on this node.
    """

    devices: dict[VolumeId, str] = attrs.field(factory=dict[VolumeId, str])

    def attached(self, volume: VolumeId, /) -> str | None:
        """What was put; None for others."""
        return self.devices.get(volume)


class FakeConfigSource:
    """A `WatchableConfigSource` over a dict. Thread-safe.

    Attributes:
        reads: What was read, in order.
    """

    def __init__(self) -> None:
        self.reads: list[tuple[str, str]] = []
        self._objects: dict[tuple[str, str], ConfigObject] = {}
        self._watchers: list[tuple[tuple[str, str], Callable[[], None]]] = []
        self._lock = threading.Lock()
        self._version = 0

    def put(
        self,
        namespace: str,
        name: str,
        data: Mapping[str, bytes] | None,
        /,
        *,
        immutable: bool = False,
        binary: frozenset[str] = frozenset(),
    ) -> None:
        """Write an object, or delete it with None, and tell who watches."""
        key = (namespace, name)
        with self._lock:
            self._version += 1
            if data is None:
                self._objects.pop(key, None)
            else:
                self._objects[key] = ConfigObject(
                    data=dict(data), version=str(self._version), immutable=immutable, binary=binary
                )
            told = [call for watched, call in self._watchers if watched == key]
        for call in told:
            call()

    def read(self, namespace: str, name: str, /) -> ConfigObject | None:
        """The object now."""
        with self._lock:
            self.reads.append((namespace, name))
            return self._objects.get((namespace, name))

    def watch(self, namespace: str, name: str, on_change: Callable[[], None], /) -> Callable[[], None]:
        """Call back from `put`."""
        entry = ((namespace, name), on_change)
        with self._lock:
            self._watchers.append(entry)

        def end() -> None:
            with self._lock:
                if entry in self._watchers:
                    self._watchers.remove(entry)

        return end


@attrs.define
class FakeTokens:
    """A `TokenSource` whose tokens say what they are for, and how many there were before.

    Attributes:
        life_s: So long the source keeps one; None for ever.
        renewed: How often a test had them made anew.
        asked: What was asked for, in order.
    """

    life_s: float | None = None
    renewed: int = 0
    asked: list[TokenRequest] = attrs.field(factory=list[TokenRequest])

    def token(self, request: TokenRequest, /) -> ServiceToken:
        """The same one until `renewed` changes."""
        self.asked.append(request)
        whose = f"{request.namespace}/{request.service_account}/{request.pod_uid}"
        return ServiceToken(text=f"{whose}/{request.audience}/{self.renewed}", renew_s=self.life_s)


@attrs.define
class FakeLeftovers:
    """`Leftovers` in a list.

    Attributes:
        there: What an earlier life left.
    """

    there: list[Found] = attrs.field(factory=list[Found])

    def found(self) -> Sequence[Found]:
        """A copy of the list."""
        return tuple(self.there)

    def clean(self, found: Found, /) -> None:
        """Strike it off."""
        self.there.remove(found)


@attrs.define
class FakeMountWatch:
    """A `MountWatch` that a test tells.

    Attributes:
        gone: What the next call tells.
    """

    gone: list[Found] = attrs.field(factory=list[Found])

    def lost(self) -> Sequence[Found]:
        """What was put, once."""
        told, self.gone = self.gone, []
        return told


@in_words
def check_claim_resolver(resolver: ClaimResolver, pod: Pod, bound: Volume, unbound: Volume, /) -> None:
    """Hold a `ClaimResolver` to its promises.

    Args:
        resolver: To check.
        pod: Whose volumes these are.
        bound: A volume whose claim is bound.
        unbound: One whose claim is not.
    """
    volume = resolver.resolve(pod, bound)
    assert resolver.resolve(pod, bound).id == volume.id, "one claim leads to one volume"
    assert not volume.pod_uid, f"{volume.id}: a claim's volume is shared between pods, so it names none"
    try:
        resolver.resolve(pod, unbound)
    except ClaimError:
        return
    raise AssertionError(f"the claim of {unbound.name} is not bound: ClaimError is what says so")


@in_words
def check_attach_verifier(verifier: AttachVerifier, attached: VolumeId, detached: VolumeId, /) -> None:
    """Hold an `AttachVerifier` to its promises, with a volume that is attached and one that is not."""
    device = verifier.attached(attached)
    assert isinstance(device, str), f"{attached} is attached: its device path, or an empty text"
    assert verifier.attached(attached) == device, "asking again gives the same"
    assert verifier.attached(detached) is None, f"{detached} is not attached: None"


@in_words
def check_leftovers(leftovers: Leftovers, left: Found, /) -> None:
    """Hold `Leftovers` to its promises.

    Args:
        leftovers: To check.
        left: Something empty of a plugin that nobody knows; it is there, and is cleaned.
    """
    before = list(leftovers.found())
    assert left in before, f"{left} is there and was not found"
    assert list(leftovers.found()) == before, "looking changes nothing"
    leftovers.clean(left)
    before.remove(left)
    assert list(leftovers.found()) == before, f"cleaning takes {left} away and nothing else"


@in_words
def check_mount_watch(
    watch: MountWatch, volume: Found, mount: Callable[[], object], unmount: Callable[[], object], /
) -> None:
    """Hold a `MountWatch` to its promises.

    Args:
        watch: To check; made while the volume was not mounted.
        volume: What is mounted.
        mount: Mounts it.
        unmount: Takes it off, as somebody else would.
    """
    assert list(watch.lost()) == [], "nothing went yet"
    for _ in range(2):
        mount()
        assert list(watch.lost()) == [], "a mount that came is not lost"
        unmount()
        assert list(watch.lost()) == [volume], f"{volume} lost its mount, and nobody was told"
        assert list(watch.lost()) == [], "a loss is told once"


@in_words
def check_config_source(source: ConfigSource, there: tuple[str, str], absent: tuple[str, str], /) -> None:
    """Hold a `ConfigSource` to its promises.

    Args:
        source: To check.
        there: Namespace and name of an object that there is.
        absent: Of one that there is not.
    """
    one = source.read(*there)
    assert one is not None, f"{'/'.join(there)} is there"
    assert one.version, "a version tells one content from the next"
    assert source.read(*there) == one, "what did not change reads the same"
    assert source.read(*absent) is None, f"{'/'.join(absent)} is not there: None"


@in_words
def check_token_source(source: TokenSource, request: TokenRequest, other: TokenRequest, /) -> None:
    """Hold a `TokenSource` to its promises.

    Args:
        source: To check.
        request: Of a pod that may have a token.
        other: Of another pod, or for another audience.
    """
    one = source.token(request)
    assert one.text, "a token says something"
    assert one.renew_s is None or one.renew_s >= 0, "what is due is due now at the earliest"
    assert source.token(request).text == one.text, "the same until it is time for another"
    assert source.token(other).text != one.text, "each has its own"


@in_words
def check_watchable(
    source: WatchableConfigSource,
    name: tuple[str, str],
    change: Callable[[], object],
    /,
    *,
    within_s: float = 10.0,
) -> None:
    """Hold a `WatchableConfigSource` to its promises.

    Args:
        source: To check.
        name: Namespace and name of an object that there is.
        change: Changes that object.
        within_s: How long news may take.
    """
    told = threading.Event()
    before = _version(source, name)
    end = source.watch(*name, told.set)
    change()
    assert told.wait(within_s), f"{'/'.join(name)} changed, and nobody was told within {within_s:g} s"
    after = _version(source, name)
    assert not before or before != after, f"{'/'.join(name)} changed, and its version is {after} as before"
    end()
    end()
    told.clear()
    change()
    assert not told.wait(0.05), "a watch that was ended still tells"


def _version(source: object, name: tuple[str, str]) -> str:
    """What the content has for a version, where whoever watches can read it as well."""
    if not isinstance(source, _Reads):
        return ""
    found = source.read(*name)
    return "" if found is None else found.version


@runtime_checkable
class _Reads(Protocol):
    """A `ConfigSource`, as far as one can tell."""

    def read(self, namespace: str, name: str, /) -> ConfigObject | None: ...
