"""Fakes and checks for volumes: a mounter of the mind, a host, claims.

`FakeMounter` needs no rights and mounts nothing; it is held to the same
`check_mounter` as the adapter that does. `FakeHost` is a whole machine in
memory for the volume manager: a plugin that can do everything, faults at any
call, and a record of what must never happen.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from nodealloc import _attrs as attrs
from nodealloc.errors import NodeallocError
from nodealloc.podspec import Container, Pod, Volume, VolumeUse
from nodealloc.testing._volume_host import FakeHost
from nodealloc.testing._wording import in_words
from nodealloc.volumes import (
    ClaimError,
    Mount,
    MountBusyError,
    Mounter,
    MountError,
    MountTable,
    OutsideRootError,
    VolumeSpec,
)

__all__ = [
    "FakeClaims",
    "FakeHost",
    "FakeMounter",
    "check_mounter",
    "claiming_pod",
]


class FakeMounter:
    """A `Mounter` and a `MountTable` that remember mounts below a real directory. Thread-safe.

    Files are not redirected: what a bind "shows" is not there. Mark a target
    as in use with `busy`.
    """

    def __init__(self, root: str, /) -> None:
        self._root = os.path.realpath(root)
        self._changed = threading.Condition()
        self._mounts: list[Mount] = []
        self._number = 0
        self._seen = 0
        self._changes = 0
        self.busy: set[str] = set()

    def mount(self, source: str, target: str, /, *, fstype: str = "", options: Sequence[str] = ()) -> None:
        """Remember a mount; the target has to exist below the root, reached without links."""
        self._check(target)
        if not Path(target).exists():
            raise FileNotFoundError(target)
        with self._changed:
            if "remount" in options:
                self._remount(target, options)
            else:
                self._number += 1
                shown = [option for option in options if option in ("ro", "rw")] or ["rw"]
                self._mounts.append(
                    Mount(
                        id=self._number,
                        parent=0,
                        device=f"0:{self._number}",
                        root="/",
                        target=target,
                        options=tuple(shown),
                        fstype="none" if "bind" in options else fstype,
                        source=source,
                        super_options=tuple(options),
                    )
                )
            self._change()

    def unmount(self, target: str, /, *, lazy: bool = False) -> None:
        """Forget the topmost mount on a target."""
        self._check(target)
        with self._changed:
            below = any(one.target.startswith(f"{target}/") for one in self._mounts)
            at = [index for index, one in enumerate(self._mounts) if one.target == target]
            if at and not lazy and (target in self.busy or below):
                raise MountBusyError("unmount", target, 16, "Device or resource busy")
            if at:
                del self._mounts[at[-1]]
                self._change()

    def is_mounted(self, target: str, /) -> bool:
        """Whether a mount on this target is remembered."""
        self._check(target)
        with self._changed:
            return any(one.target == target for one in self._mounts)

    def entries(self) -> Sequence[Mount]:
        """What is remembered."""
        with self._changed:
            return tuple(self._mounts)

    def wait(self, timeout_s: float, /) -> bool:
        """Block until a mount comes or goes."""
        with self._changed:
            changed = self._changed.wait_for(lambda: self._changes != self._seen, timeout_s)
            self._seen = self._changes
            return changed

    def _remount(self, target: str, options: Sequence[str]) -> None:
        for at in range(len(self._mounts) - 1, -1, -1):
            if self._mounts[at].target == target:
                read_only = "ro" if "ro" in options else "rw"
                self._mounts[at] = attrs.evolve(self._mounts[at], options=(read_only,))
                return
        raise MountError("mount", target, 22, "Invalid argument, nothing is mounted there")

    def _change(self) -> None:
        self._changes += 1
        self._changed.notify_all()

    def _check(self, target: str) -> None:
        real = os.path.realpath(target)
        if real != target or not real.startswith(f"{self._root}/"):
            raise OutsideRootError(target, f"leads to {real}")


_LOOKS = 100
"""Others mount as well: a table need not be quiet at once."""


@in_words
def check_mounter(mounter: Mounter, table: MountTable, root: str, /) -> None:
    """Hold a mounter and its table to their promises.

    Args:
        mounter: Adapter whose root is `root`.
        table: Of the same machine.
        root: An empty directory on a real file system; left empty.
    """
    base = Path(root).resolve()
    target, other = base / "a target", base / "a target and more"
    target.mkdir()
    other.mkdir()
    (base / "link").symlink_to(base.parent)
    here, there = str(target), str(other)
    assert any(not table.wait(0.0) for _ in range(_LOOKS)), "the table tells of changes for ever"
    _check_life(mounter, table, here)
    _check_beside(mounter, here, there)
    _check_bind(mounter, table, here, there)
    for bad in (f"{base}/link/x", f"{base}/../x", str(base.parent), f"{base}/link"):
        for call in (
            lambda path=bad: mounter.mount("none", path, fstype="tmpfs"),
            lambda path=bad: mounter.unmount(path),
        ):
            _refuses(call, bad)
    (base / "link").unlink()
    target.rmdir()
    other.rmdir()


def _check_life(mounter: Mounter, table: MountTable, here: str) -> None:
    for path in (here, f"{here}/absent"):
        assert not mounter.is_mounted(path), f"nothing is mounted on {path}, and something is said to be"
    for path in (here, f"{here}/absent"):
        try:
            mounter.unmount(path)
        except Exception as error:
            raise AssertionError(f"nothing is on {path}, and to unmount it raised {error!r}") from error
    absent = f"{here}/absent"
    try:
        mounter.mount("tmpfs", absent, fstype="tmpfs", options=["size=1m"])
    except (OSError, NodeallocError):
        assert not Path(absent).exists(), f"{absent} was not there; a mount was refused and has made it"
    else:
        raise AssertionError(f"{absent} is not there, and was mounted on")
    mounter.mount("tmpfs", here, fstype="tmpfs", options=["size=1m"])
    assert mounter.is_mounted(here), f"{here} was mounted on, and is said not to be"
    assert not mounter.is_mounted(f"{here}/below"), f"{here} is a mount, and what is below is said to be one"
    assert table.wait(5.0), "the table did not tell of a mount"
    found = [one for one in table.entries() if one.target == here]
    assert [one.fstype for one in found] == ["tmpfs"], f"a tmpfs was mounted on {here}, listed is {found}"
    assert [one.source for one in found] == ["tmpfs"], f"of source tmpfs was mounted, listed is {found}"
    said = [option for one in found for option in (*one.options, *one.super_options)]
    assert any(one.startswith("size=") for one in said), f"mounted with a size, listed with {said}"
    mounter.mount("tmpfs", here, fstype="tmpfs", options=["remount", "ro"])
    read_only = [one.read_only for one in table.entries() if one.target == here]
    assert read_only == [True], f"remounted read-only, read_only of the mounts there is {read_only}"
    mounter.unmount(here)
    assert table.wait(5.0), "the table did not tell of an unmount"
    assert not mounter.is_mounted(here), f"{here} was unmounted, and is said to be mounted"


def _check_beside(mounter: Mounter, here: str, beside: str) -> None:
    """Whose path begins like another one's is mounted and unmounted for itself."""
    mounter.mount("tmpfs", beside, fstype="tmpfs", options=["size=1m"])
    assert not mounter.is_mounted(here), f"{beside} was mounted on, and {here} is said to be"
    mounter.mount("tmpfs", here, fstype="tmpfs", options=["size=1m"])
    mounter.unmount(here)
    assert mounter.is_mounted(beside), f"{here} was unmounted, and {beside} as well"
    mounter.unmount(beside)


def _check_bind(mounter: Mounter, table: MountTable, here: str, there: str) -> None:
    mounter.mount(here, there, options=["bind", "ro"])
    read_only = [one.read_only for one in table.entries() if one.target == there]
    assert read_only == [True], f"bound read-only, read_only of the mounts there is {read_only}"
    for _ in range(2):
        mounter.mount(here, there, options=["bind"])
    assert len([one for one in table.entries() if one.target == there]) == 3, "mounts stack"
    mounter.unmount(there, lazy=True)
    stacked = len([one for one in table.entries() if one.target == there])
    assert stacked == 2, f"of three mounts one was unmounted lazily, and {stacked} are left"
    mounter.unmount(there)
    left = [one.read_only for one in table.entries() if one.target == there]
    assert mounter.is_mounted(there), "of two mounts one was unmounted, and none is left"
    assert left == [True], f"the topmost mount goes first; read_only of what is left is {left}"
    mounter.unmount(there, lazy=True)
    assert not mounter.is_mounted(there), f"{there} was unmounted lazily, and is said to be mounted"


def _refuses(call: Callable[[], None], path: str) -> None:
    try:
        call()
    except OutsideRootError:
        return
    raise AssertionError(f"{path} was not refused with OutsideRootError")


@attrs.define
class FakeClaims:
    """A `ClaimResolver` with claims by name; a missing one is unbound.

    Attributes:
        volumes: Claim name to volume.
        before: Called with the pod's uid before each look-up; may raise or block.
    """

    volumes: dict[str, VolumeSpec] = attrs.field(factory=dict[str, VolumeSpec])
    before: Callable[[str], None] = attrs.field(default=lambda _uid: None)

    def resolve(self, pod: Pod, volume: Volume, /) -> VolumeSpec:
        """The claim's volume; raises `ClaimError`."""
        self.before(pod.uid)
        name = str(volume.spec["claimName"])
        if name not in self.volumes:
            raise ClaimError(
                f"{pod.namespace}/{name}", "it is not bound; create a volume for it", after_s=0.0
            )
        return self.volumes[name]


def claiming_pod(uid: str, *claims: str) -> Pod:
    """A pod with one container that mounts these claims, each volume named as its claim."""
    return Pod(
        uid=uid,
        name=uid,
        volumes=tuple(
            Volume(name=claim, kind="persistentVolumeClaim", spec={"claimName": claim}) for claim in claims
        ),
        containers=(
            Container(name="c", volumes=tuple(VolumeUse(name=claim, path=f"/{claim}") for claim in claims)),
        ),
    )
