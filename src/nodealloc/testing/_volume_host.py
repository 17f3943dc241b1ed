"""A whole machine in memory for the volume manager: a plugin that can do everything, and leftovers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from nodealloc import _attrs as attrs
from nodealloc.podspec import Pod, Volume
from nodealloc.volumes import Found, Grown, Staged, Use, VolumeId, VolumeSpec

__all__ = ["FakeHost"]


class FakeHost:
    """A machine in memory: a plugin with every ability, and `Leftovers`. Thread-safe.

    What must never happen raises `AssertionError` at once: a mount from a
    volume that is not staged, an unstage or detach under a mount, a second
    attach. Faults are the test's: `fault` is called before and after each call
    with its name, and may raise or block.

    Attributes:
        attached: Volumes attached.
        staged: Volumes staged.
        mounts: (volume, pod uid) to how often it was mounted anew.
        calls: Names of calls, in order.
    """

    def __init__(self, name: str = "example.com/disk", *, kinds: Iterable[str] = ()) -> None:
        self.name = name
        self.kinds: tuple[str, ...] = tuple(kinds)
        self.attached: set[VolumeId] = set()
        self.staged: set[VolumeId] = set()
        self.mounts: dict[tuple[VolumeId, str], Use] = {}
        self.sizes: dict[VolumeId, int] = {}
        self.calls: list[str] = []
        self.violations: list[str] = []
        self.fault: Callable[[str], None] = lambda _name: None
        self._specs: dict[VolumeId, VolumeSpec] = {}
        self._lock = threading.RLock()

    def disk(self, name: str, size_bytes: int | None = None) -> VolumeSpec:
        """A shared volume of this host that needs attaching and staging."""
        spec = VolumeSpec(
            plugin=self.name,
            name=name,
            size_bytes=size_bytes,
            needs_attach=True,
            needs_stage=True,
            can_expand=True,
        )
        self._specs[spec.id] = spec
        return spec

    def spec(self, pod: Pod, volume: Volume, /) -> VolumeSpec:
        """A volume of the pod's own, without attaching or staging."""
        return VolumeSpec(plugin=self.name, name=volume.name, pod_uid=pod.uid, config=volume.spec)

    def attach(self, spec: VolumeSpec, /) -> Staged:
        """Attach; attached already is no work."""
        with self._call("attach", spec.id):
            self.attached.add(spec.id)
        return Staged(device_path=f"/dev/{spec.name}")

    def detach(self, spec: VolumeSpec, /) -> None:
        """Detach; under a stage it is a violation."""
        with self._call("detach", spec.id):
            self._never(spec.id in self.staged, f"detach of {spec.id} while staged")
            self.attached.discard(spec.id)

    def stage(self, spec: VolumeSpec, device_path: str, /) -> Staged:
        """Stage; from what is not attached it is a violation."""
        with self._call("stage", spec.id):
            self._never(spec.needs_attach and spec.id not in self.attached, f"stage of {spec.id} unattached")
            self.staged.add(spec.id)
            self.sizes[spec.id] = max(self.sizes.get(spec.id, 0), spec.size_bytes or 0)
        return Staged(device_path=device_path, size_bytes=self.sizes[spec.id])

    def unstage(self, spec: VolumeSpec, device_path: str, /) -> None:
        """Unstage; under a pod's mount it is a violation."""
        assert not device_path or device_path == f"/dev/{spec.name}"
        with self._call("unstage", spec.id):
            used = [uid for key, uid in self.mounts if key == spec.id]
            self._never(bool(used), f"unstage of {spec.id} under {used}")
            self.staged.discard(spec.id)

    def mount(self, spec: VolumeSpec, use: Use, device_path: str, /) -> None:
        """Give it to a pod; from what is not staged it is a violation."""
        assert not device_path or device_path == f"/dev/{spec.name}"
        with self._call("mount", f"{spec.id} {use.pod_uid}"):
            self._never(spec.needs_stage and spec.id not in self.staged, f"mount of {spec.id} unstaged")
            self.mounts[spec.id, use.pod_uid] = use

    def unmount(self, spec: VolumeSpec, use: Use, /) -> None:
        """Take it from a pod."""
        with self._call("unmount", f"{spec.id} {use.pod_uid}"):
            self.mounts.pop((spec.id, use.pod_uid), None)

    def path(self, spec: VolumeSpec, use: Use, /) -> str:
        """A path of the mind."""
        return f"/pods/{use.pod_uid}/{spec.name}"

    def expand(self, spec: VolumeSpec, device_path: str, /) -> Grown:
        """Grow; shrinking is a violation."""
        assert not device_path or device_path == f"/dev/{spec.name}"
        with self._call("expand", spec.id):
            size = spec.size_bytes or 0
            self._never(size < self.sizes.get(spec.id, 0), f"shrink of {spec.id}")
            self.sizes[spec.id] = size
        return Grown(size_bytes=size)

    def reconstruct(self, found: Found, /) -> VolumeSpec | None:
        """The disk of that name, or a pod's own volume."""
        return self._specs.get(f"{self.name}/{found.name}") or VolumeSpec(
            plugin=self.name, name=found.name, pod_uid=found.pod_uid
        )

    def found(self) -> Sequence[Found]:
        """What stands on the machine now."""
        with self._lock:
            mounts = [
                Found(plugin=self.name, name=key.rsplit("/", 1)[1], pod_uid=uid) for key, uid in self.mounts
            ]
            volumes = self.attached | self.staged
            return [
                *mounts,
                *(Found(plugin=self.name, name=key.rsplit("/", 1)[1]) for key in sorted(volumes)),
            ]

    def clean(self, found: Found, /) -> None:
        """Never asked: this host knows everything that it holds."""
        raise AssertionError(f"clean of {found}")

    def mounted(self) -> Mapping[str, set[VolumeId]]:
        """Pod uid to its volumes."""
        with self._lock:
            pods: dict[str, set[VolumeId]] = {}
            for key, uid in self.mounts:
                pods.setdefault(uid, set()).add(key)
            return pods

    def _never(self, happened: bool, what: str) -> None:
        if happened:
            self.violations.append(what)
            raise AssertionError(what)

    def _call(self, verb: str, what: str) -> _Call:
        return _Call(self, f"{verb} {what}", self._lock)


@attrs.define
class _Call:
    """One call: faults strike before it is done, or after."""

    host: FakeHost
    name: str
    lock: threading.RLock

    def __enter__(self) -> None:
        self.host.fault(f"before {self.name}")
        self.lock.acquire()
        self.host.calls.append(self.name)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.lock.release()
        if kind is None:
            self.host.fault(f"after {self.name}")
