"""A pod's volumes, mounted before its containers are made."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from functools import partial
from typing import Final

from nodealloc._arguments import wrong
from nodealloc._typed import typed, typed_methods
from nodealloc.dsw_asw import Cancel, World
from nodealloc.podfacts import PodSighting
from nodealloc.podlife._configuration import ContainerRunOptions, PodRunOptions
from nodealloc.podlife._lives import PodLives
from nodealloc.podlife._ports import Provided
from nodealloc.podspec import Pod
from nodealloc.verdicts import NotYet
from nodealloc.volumes import VolumeId, VolumeManager

__all__ = ["BegunPods", "VolumePreparer"]

_SOON_S = 0.1


@typed_methods
class VolumePreparer:
    """A `Preparer` over a volume manager, which is told of one pod after the other.

    Args:
        manager: Mounts and unmounts; driven by whoever made it.
        patience_s: Real seconds that a call waits for mounts that take no longer, and makes the manager's
            passes meanwhile, so that a pod goes on in the same step: for a manager whose executor has
            threads. 0 for none.

    Attributes:
        mounted: Counts mounts of a pod that were made, changed or went, so that it is asked again at
            once; a pod of which nothing is mounted any more is dropped.

    Raises:
        ConfigurationError: A time that nobody can wait.
    """

    NAME: Final = "volumes"
    """Of its `Preparation`; it is remembered, so it stays the same over releases."""

    @typed
    def __init__(self, manager: VolumeManager, *, patience_s: float = 0.0) -> None:
        if not 0 <= patience_s <= threading.TIMEOUT_MAX:
            raise wrong("VolumePreparer: patience_s", patience_s, "seconds that somebody can wait")
        self._manager = manager
        self._patience_s = patience_s
        self.mounted: World[str, object] = World("changes of mounts")
        self._lock = threading.Condition()
        self._count = 0  # of what `mounted` was told
        self._wakes = 0
        # Of each pod that is made ready now, the last count that is to be told of.
        self._made_ready: dict[str, int] = {}
        self._mounts: dict[VolumeId, Mapping[str, object]] = {}
        self._changes = manager.actual.watch(self._changed)
        if patience_s:
            manager.add_listener(self._woken)

    def make_ready(self, pod: Pod, cancel: Cancel, /) -> Provided | NotYet:
        """See `Preparer.make_ready`."""
        self._manager.pod_changed(pod.uid)
        with self._told_at_once(pod.uid):
            for _ in self._looks(cancel):
                if isinstance(answer := self._answer(pod), Provided):
                    return answer
            return self._answer(pod)

    @contextlib.contextmanager
    def _told_at_once(self, uid: str) -> Generator[None, None, None]:
        """What is mounted of a pod meanwhile is told at the end: whoever waits for both looks once."""
        with self._lock:
            self._made_ready[uid] = 0
        try:
            yield
        finally:
            with self._lock:
                count = self._made_ready.pop(uid, 0)
            if count:
                self.mounted.put(uid, count, by="mounts")

    def _answer(self, pod: Pod) -> Provided | NotYet:
        containers = (*pod.all_containers, *pod.ephemeral_containers)
        used = {use.name for one in containers for use in one.volumes}
        found = {one.name: one for one in self._manager.volumes_of(pod.uid)}
        missing = sorted(name for name in used if name not in found or not found[name].mounted)
        if missing:
            why = [_named(name, found[name].error) if name in found else name for name in missing]
            return NotYet(blocker=self.NAME, message=f"not mounted yet: {', '.join(why)}", after_s=1.0)
        paths = {name: one.path for name, one in found.items()}
        read_only = frozenset(name for name, one in found.items() if one.read_only)
        options = ContainerRunOptions(volumes=paths, read_only_volumes=read_only)
        return Provided(value=PodRunOptions(everywhere=options))

    def take_back(self, pod: Pod, cancel: Cancel, /) -> NotYet | None:
        """See `Preparer.take_back`."""
        if self._manager.sub_paths is not None:
            self._manager.sub_paths.clean(pod.uid)
        self._manager.pod_changed(pod.uid)
        for _ in self._looks(cancel):
            if not self._manager.holds(pod.uid):
                self.mounted.drop(pod.uid, by="gone")
                return None
        left = sorted(_named(one.name, one.error) for one in self._manager.volumes_of(pod.uid))
        message = f"still mounted: {', '.join(left)}" if left else "still mounted"
        return NotYet(blocker=self.NAME, message=message, after_s=_SOON_S)

    def _looks(self, cancel: Cancel) -> Iterator[None]:
        """Moments to look at what is mounted: now, and after each change while there is patience."""
        ends_s = time.monotonic() + self._patience_s
        while True:
            wakes = self._wakes
            # Whoever drives the manager may gather what happens for longer than such mounts take.
            if self._patience_s and self._manager.has_work:
                self._manager.reconcile()
            yield
            left_s = ends_s - time.monotonic()
            if left_s <= 0 or cancel.is_set():
                return
            with self._lock:
                if self._wakes == wakes:
                    self._lock.wait(left_s)

    def _woken(self) -> None:
        """There is a pass to be made."""
        with self._lock:
            self._wakes += 1
            self._lock.notify_all()

    def _changed(self) -> None:
        # Records are taken and compared in one step: an older one that came late would hide the next change.
        with self._lock:
            found = [one for key in self._changes.take() for one in self._moved(key)]
            due: list[tuple[int, str, bool]] = []
            for uid, is_mounted in found:
                self._count += 1
                if is_mounted and uid in self._made_ready:
                    self._made_ready[uid] = self._count
                else:
                    due.append((self._count, uid, is_mounted))
            self._wakes += 1
            self._lock.notify_all()
        for count, uid, is_mounted in due:
            if is_mounted:
                self.mounted.put(uid, count, by="mounts")
            else:
                self.mounted.alter(uid, partial(_if_known, count), by="mounts")

    def _moved(self, key: VolumeId) -> list[tuple[str, bool]]:
        """Pods with a mount of their own that was made or changed, and those with one that went.

        Who shares a volume has nothing to ask.
        """
        record = self._manager.actual.get(key)
        before = self._mounts.pop(key, {})
        made: list[tuple[str, bool]] = []
        now: Mapping[str, object] = {}
        if record is not None:
            now = self._mounts[key] = record.mounts
            made = [
                (uid, True) for uid, one in record.mounts.items() if one.is_mounted and one != before.get(uid)
            ]
        return made + [(uid, False) for uid in before if uid not in now]


def _named(name: str, error: str) -> str:
    return f"{name} ({error})" if error else name


def _if_known(count: int, before: object) -> object:
    return None if before is None else count


class BegunPods:
    """A `PodSource` for a volume manager: pods whose volumes were begun, so that a refused pod has none.

    The lives are made of preparers, and a volume manager before them: tell it of the
    lives (`follow`) once there are any. Until then no pod is known.

    Args:
        preparation: Name of the preparation that has the volumes.
        is_let_in: From a uid to whether its pod was admitted, such as `NodeAllocator.holds`: for one that
            waits for that nothing is mounted. None where nobody is refused.
    """

    @typed
    def __init__(
        self, *, preparation: str = VolumePreparer.NAME, is_let_in: Callable[[str], bool] | None = None
    ) -> None:
        self._preparation = preparation
        self._is_let_in = is_let_in
        self._lives: PodLives | None = None

    def follow(self, lives: PodLives, /) -> None:
        """Speak of these pods from now on."""
        self._lives = lives

    def uids(self) -> Iterable[str]:
        """See `PodSource.uids`."""
        found = () if self._lives is None else self._lives.pod_source().uids()
        return [uid for uid in found if self.get(uid) is not None]

    def get(self, uid: str, /) -> PodSighting | None:
        """See `PodSource.get`."""
        lives = self._lives
        record = None if lives is None else lives.pods.get(uid)
        if lives is None or record is None or self._preparation not in record.made:
            return None
        # One that has come as far as its sandbox had its volumes, whatever became of the node's records.
        if self._is_let_in is not None and record.sandbox_attempt < 0 and not self._is_let_in(uid):
            return None
        return lives.pod_source().get(uid)

    def is_ready(self) -> bool:
        """See `PodSource.is_ready`."""
        return self._lives is not None and self._lives.pod_source().is_ready()
