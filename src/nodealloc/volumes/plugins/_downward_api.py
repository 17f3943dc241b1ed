"""`downwardAPI`: what a pod is told of itself, as files that follow its labels and annotations."""

from __future__ import annotations

from collections.abc import Mapping

from nodealloc._typed import typed
from nodealloc.podfacts import metadata_field, resource_value
from nodealloc.podspec import Json, Pod, Quantity, ResourceFieldRef, Volume
from nodealloc.volumes._errors import InvalidVolumeError
from nodealloc.volumes._model import Use, VolumeSpec
from nodealloc.volumes._paths import SafeRoot
from nodealloc.volumes._ports import Found, Mounter
from nodealloc.volumes.plugins._atomic_files import FileContent, digest_of
from nodealloc.volumes.plugins._files import (
    DEFAULT_MODE,
    FileVolumes,
    inner_mounts,
    items_of,
    mode_of,
    revision_of,
    united,
)

__all__ = ["DownwardApi", "files_of", "told"]

_NO_AMOUNTS: Mapping[str, Quantity] = {}


class DownwardApi:
    """Plugin for `downwardAPI`, on a tmpfs; thread-safe.

    Its files change in place when the pod's labels or annotations do.

    Args:
        root: Directory of the node's pods.
        mounter: Mounts below `root`.
        allocatable: What the node has for pods: a limit that a container lacks is told as this.
        keeps_folders: As of `EmptyDir`.

    Source: kubelet ``volume/downwardapi``.
    """

    name: str = "kubernetes.io/downward-api"
    kinds: tuple[str, ...] = ("downwardAPI",)

    @typed
    def __init__(
        self,
        root: SafeRoot,
        mounter: Mounter,
        /,
        *,
        allocatable: Mapping[str, Quantity] = _NO_AMOUNTS,
        keeps_folders: bool = False,
    ) -> None:
        self._volumes = FileVolumes(root, mounter, self.name, in_memory=True, keeps_folders=keeps_folders)
        self._allocatable = dict(allocatable)

    def spec(self, pod: Pod, volume: Volume, /) -> VolumeSpec:
        """Read `items` and `defaultMode`, and tell what the pod's files say now."""
        mode = mode_of(volume.name, volume.spec.get("defaultMode"))
        files = told(volume.name, pod, volume.spec.get("items"), mode, self._allocatable)
        united(volume.name, [files_of(files)])
        return VolumeSpec(
            plugin=self.name,
            name=volume.name,
            pod_uid=pod.uid,
            config={"files": files, **inner_mounts(pod, volume.name)},
        )

    def revision(self, spec: VolumeSpec, /) -> str:
        """Names what the files say, and where others are mounted inside."""
        return revision_of(digest_of(files_of(spec.config.get("files"))), spec)

    def mount(self, spec: VolumeSpec, use: Use, device_path: str, /) -> None:
        """Write the files; the same content again writes nothing."""
        del device_path
        self._volumes.write(spec, use, files_of(spec.config.get("files")))

    def unmount(self, spec: VolumeSpec, use: Use, /) -> None:
        """Take the memory off."""
        self._volumes.remove(spec.name, use)

    def path(self, spec: VolumeSpec, use: Use, /) -> str:
        """`pods/UID/volumes/kubernetes.io~downward-api/NAME`."""
        return self._volumes.path(spec.name, use)

    def reconstruct(self, found: Found, /) -> VolumeSpec | None:
        """Path and pod tell everything that taking it down needs."""
        return self._volumes.found(found)


def told(
    volume: str, pod: Pod, items: Json, default_mode: int, allocatable: Mapping[str, Quantity], /
) -> dict[str, Json]:
    """What the items of a downward API say of a pod: path to `text` and `mode`.

    Raises:
        InvalidVolumeError: There is no such field, resource or container.

    Source: kubelet ``volume/downwardapi/downwardapi.go``.
    """
    files: dict[str, Json] = {}
    for item in items_of(volume, items, "path and fieldRef"):
        field, amount, mode = item.get("fieldRef"), item.get("resourceFieldRef"), item["mode"]
        if isinstance(field, Mapping):
            text = _field(volume, pod, str(field.get("fieldPath", "")))
        elif isinstance(amount, Mapping):
            text = _amount(volume, pod, amount, allocatable)
        else:
            raise InvalidVolumeError(volume, f"item {item['path']} has neither fieldRef nor resourceFieldRef")
        files[str(item["path"])] = {"text": text, "mode": default_mode if mode is None else mode}
    return files


def files_of(files: Json, /) -> dict[str, FileContent]:
    """Files as a volume's config keeps them; none for a volume that was found at start."""
    found: dict[str, FileContent] = {}
    for path, one in files.items() if isinstance(files, Mapping) else ():
        if isinstance(one, Mapping):
            mode = one.get("mode")
            text = str(one.get("text", "")).encode("utf-8", "surrogateescape")
            found[path] = FileContent(text, mode if isinstance(mode, int) else DEFAULT_MODE)
    return found


def _field(volume: str, pod: Pod, path: str) -> str:
    text = metadata_field(path, pod)
    if text is None:
        raise InvalidVolumeError(
            volume,
            f"fieldPath is {path!r}; files tell metadata.name, namespace, uid, labels and annotations, "
            "and metadata.labels['key']",
        )
    return text


def _amount(volume: str, pod: Pod, asked: Mapping[str, Json], allocatable: Mapping[str, Quantity]) -> str:
    name, divisor = asked.get("containerName"), asked.get("divisor") or ""
    of = next((one for one in pod.all_containers if one.name == name), None)
    if of is None:
        known = ", ".join(one.name for one in pod.all_containers)
        raise InvalidVolumeError(volume, f"containerName is {name!r}; the pod's containers are {known}")
    ref = ResourceFieldRef(
        resource=str(asked.get("resource", "")), divisor=divisor if isinstance(divisor, int) else str(divisor)
    )
    text = resource_value(ref, of, allocatable)
    if text is None:
        raise InvalidVolumeError(
            volume, f"no resource {ref.resource!r} can be told in units of {ref.divisor or 1!r}"
        )
    return text
