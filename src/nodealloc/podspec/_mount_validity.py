"""What an API server checks of the volumes that a container mounts, or has as devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from nodealloc.errors import Fault
from nodealloc.podspec._checks import one_of

if TYPE_CHECKING:
    from nodealloc.podspec._fields import PodFields
    from nodealloc.podspec._model import Container, VolumeUse

__all__ = ["mount_faults"]

_DEVICES: Final = ("ephemeral", "persistentVolumeClaim")
"""Kinds of volumes that can be a device."""
_READ_ONLY: Final = one_of("", "Disabled", "IfPossible", "Enabled")
_STRICT: Final = ("IfPossible", "Enabled")


def mount_faults(pod: PodFields, where: str, one: Container, /) -> Iterator[Fault]:
    """What is wrong with a container's `volumeMounts` and `volumeDevices`.

    Source: Kubernetes v1.32 ``pkg/apis/core/validation``.
    """
    if not one.volumes:
        return
    mounts = [use for use in one.volumes if not use.block]
    for path, count in Counter(use.path for use in mounts).items():
        if count > 1:
            yield Fault(f"{where}.volumeMounts", f"{path} is mounted on {count} times")
    privileged = one.security_context is not None and one.security_context.privileged is True
    for index, use in enumerate(mounts):
        yield from _mount(f"{where}.volumeMounts", index, use, privileged=privileged)
    devices = [use for use in one.volumes if use.block]
    if devices:
        yield from _devices(pod, f"{where}.volumeDevices", devices, mounts)


def _mount(at: str, index: int, use: VolumeUse, *, privileged: bool) -> Iterator[Fault]:
    if use.propagation == "Bidirectional" and not privileged:
        yield Fault(at, f"{use.path}: Bidirectional is for privileged containers alone")
    if what := _READ_ONLY(use.recursive_read_only):
        yield Fault(f"{at}[{index}].recursiveReadOnly", what)
    elif use.recursive_read_only in _STRICT and not use.read_only:
        yield Fault(at, f"{use.path}: recursiveReadOnly goes with readOnly alone")
    elif use.recursive_read_only in _STRICT and use.propagation != "None":
        yield Fault(at, f"{use.path}: recursiveReadOnly goes with mountPropagation None alone")


def _devices(pod: PodFields, at: str, devices: list[VolumeUse], mounts: list[VolumeUse]) -> Iterator[Fault]:
    kinds = {volume.name: volume.kind for volume in pod.volumes}
    mounted, taken = {use.name for use in mounts}, {use.path for use in mounts}
    names, paths = Counter(use.name for use in devices), Counter(use.path for use in devices)
    for index, use in enumerate(devices):
        where = f"{at}[{index}]"
        if (kind := kinds.get(use.name, "")) and kind not in _DEVICES:
            what = (
                f"{use.name} is of {kind}, which is no device; mount it, or use one of {', '.join(_DEVICES)}"
            )
            yield Fault(f"{where}.name", what)
        if use.name in mounted:
            yield Fault(f"{where}.name", f"{use.name} is mounted already; leave one of the two out")
        elif names[use.name] > 1:
            yield Fault(f"{where}.name", f"{use.name} stands here {names[use.name]} times; once is enough")
        if ".." in use.path.split("/"):
            yield Fault(f"{where}.devicePath", f"{use.path[:80]!r} leads upwards; write it without ..")
        if use.path in taken or paths[use.path] > 1:
            yield Fault(f"{where}.devicePath", f"{use.path[:80]!r} is taken; choose another path")
