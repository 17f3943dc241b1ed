"""`projected`: files of several sources in one directory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, cast

from nodealloc._typed import typed
from nodealloc.podspec import Json, Pod, Quantity, Volume
from nodealloc.volumes._errors import InvalidVolumeError
from nodealloc.volumes._model import Use, VolumeSpec
from nodealloc.volumes._paths import SafeRoot
from nodealloc.volumes._ports import Found, Mounter
from nodealloc.volumes.plugins._atomic_files import FileContent, digest_of
from nodealloc.volumes.plugins._config_store import ConfigStore
from nodealloc.volumes.plugins._downward_api import files_of, told
from nodealloc.volumes.plugins._files import (
    DEFAULT_MODE,
    FileVolumes,
    inner_mounts,
    key_items,
    mode_of,
    path_of,
    revision_of,
    united,
)
from nodealloc.volumes.plugins._objects import ObjectFiles
from nodealloc.volumes.plugins._tokens import ServiceToken, TokenRequest, TokenSource

__all__ = ["Projected"]

_OBJECTS: Final = ("configMap", "secret")
_TOKEN: Final = "serviceAccountToken"  # noqa: S105 - a field's name
_DOWNWARD: Final = "downwardAPI"
_LIFETIME_S: Final = 3600
_SHORTEST_S: Final = 600
_OWN: Final = 0o600
_NO_AMOUNTS: Mapping[str, Quantity] = {}

_Fields = Mapping[str, Json]


class Projected:
    """Plugin for `projected`, on a tmpfs; thread-safe.

    Of a path that two sources write the later one counts, where only the objects tell
    that they do; paths that the manifest itself gives twice are refused. A source
    that the node has nothing to ask for is refused by name.

    Args:
        root: Directory of the node's pods.
        mounter: Mounts below `root`.
        config_maps: Reads config maps, for this plugin alone; None where there are none to ask for.
        secrets: The same of secrets.
        tokens: Gives out tokens of service accounts; None where nobody does.
        allocatable: What the node has for pods: a limit that a container lacks is told as this.
        on_changed: Called with a pod's uid when an object that it uses
            changed; `VolumeManager.refresh` fits.
        keeps_folders: As of `EmptyDir`.

    Source: kubelet ``volume/projected``.
    """

    name: str = "kubernetes.io/projected"
    kinds: tuple[str, ...] = ("projected",)

    @typed
    def __init__(
        self,
        root: SafeRoot,
        mounter: Mounter,
        /,
        *,
        config_maps: ConfigStore | None = None,
        secrets: ConfigStore | None = None,
        tokens: TokenSource | None = None,
        allocatable: Mapping[str, Quantity] = _NO_AMOUNTS,
        on_changed: Callable[[str], None] = lambda _uid: None,
        keeps_folders: bool = False,
    ) -> None:
        self.on_changed = on_changed
        self._volumes = FileVolumes(root, mounter, self.name, in_memory=True, keeps_folders=keeps_folders)
        stores = {kind: one for kind, one in zip(_OBJECTS, (config_maps, secrets), strict=True) if one}
        self._fresh_s = [one.fresh_s for one in stores.values() if one.fresh_s is not None]
        self._objects = {
            kind: ObjectFiles(store, kind, plugin=self.name, on_changed=self._changed)
            for kind, store in stores.items()
        }
        self._tokens = tokens
        self._allocatable = dict(allocatable)

    def spec(self, pod: Pod, volume: Volume, /) -> VolumeSpec:
        """Read `sources` and `defaultMode`, and tell what the pod says of itself now."""
        mode = mode_of(volume.name, volume.spec.get("defaultMode"))
        sources = [
            {kind: self._source(volume.name, pod, kind, fields, mode)} for kind, fields in _sources(volume)
        ]
        _check_paths(volume.name, sources)
        return VolumeSpec(
            plugin=self.name,
            name=volume.name,
            pod_uid=pod.uid,
            config={
                "namespace": pod.namespace,
                "defaultMode": mode,
                "sources": sources,
                **inner_mounts(pod, volume.name),
            },
        )

    def revision(self, spec: VolumeSpec, /) -> str:
        """Names what all files say, and where others are mounted inside."""
        for objects, namespace, name in self._read(spec):
            objects.look(namespace, name, spec.pod_uid, spec.name)
        return revision_of(digest_of(self._files(spec, None)), spec)

    def fresh_s(self, spec: VolumeSpec, /) -> float | None:
        """As the stores find changes, and tokens are renewed."""
        tokens = [self._token(fields) for kind, fields in _parts(spec) if kind == _TOKEN]
        due = [*self._fresh_s, *(one.renew_s for one in tokens if one.renew_s is not None)]
        return min(due, default=None)

    def mount(self, spec: VolumeSpec, use: Use, device_path: str, /) -> None:
        """Write the files; the same content again writes nothing."""
        del device_path
        for objects, namespace, name in self._read(spec):
            objects.use(namespace, name, use.pod_uid, spec.name)
        self._volumes.write(spec, use, self._files(spec, use))

    def unmount(self, spec: VolumeSpec, use: Use, /) -> None:
        """Take the memory off."""
        self._volumes.remove(spec.name, use)
        for one in self._objects.values():
            one.leave(use.pod_uid, spec.name)

    def path(self, spec: VolumeSpec, use: Use, /) -> str:
        """`pods/UID/volumes/kubernetes.io~projected/NAME`."""
        return self._volumes.path(spec.name, use)

    def reconstruct(self, found: Found, /) -> VolumeSpec | None:
        """Path and pod tell everything that taking it down needs."""
        return self._volumes.found(found)

    def _source(self, volume: str, pod: Pod, kind: str, fields: _Fields, mode: int) -> Json:
        """One source as the config keeps it, checked."""
        if kind == _DOWNWARD:
            return told(volume, pod, fields.get("items"), mode, self._allocatable)
        if kind in self._objects:
            name = fields.get("name")
            if not isinstance(name, str) or not name:
                raise InvalidVolumeError(volume, f"name is {name!r}; name a {kind}")
            return {
                "object": name,
                "optional": bool(fields.get("optional", False)),
                "items": key_items(volume, fields.get("items")),
            }
        if kind == _TOKEN and self._tokens is not None:
            return _token_fields(volume, pod, fields)
        served = [_DOWNWARD, *self._objects, *([_TOKEN] if self._tokens else [])]
        raise InvalidVolumeError(
            volume, f"nobody here gives a source of kind {kind!r}; there are: {', '.join(served)}"
        )

    def _read(self, spec: VolumeSpec) -> Iterator[tuple[ObjectFiles, str, str]]:
        """Namespace and name of each object that a volume has files of, and who reads it."""
        for kind, fields in _parts(spec):
            if kind in self._objects:
                yield self._objects[kind], str(spec.config["namespace"]), str(fields["object"])

    def _files(self, spec: VolumeSpec, use: Use | None) -> dict[str, FileContent]:
        found: list[Mapping[str, FileContent]] = []
        given = spec.config.get("defaultMode")
        mode = given if isinstance(given, int) else DEFAULT_MODE
        for kind, fields in _parts(spec):
            if kind == _DOWNWARD:
                found.append(files_of(fields))
            elif kind == _TOKEN:
                owner = fields.get("owner")
                is_own = owner is not None or (use is not None and use.fs_group is not None)
                content = FileContent(
                    self._token(fields).text.encode(),
                    _OWN if is_own else mode,
                    owner if isinstance(owner, int) else None,
                )
                found.append({str(fields["path"]): content})
            else:
                namespace = str(spec.config["namespace"])
                found.append(self._objects[kind].files(spec.name, namespace, fields, mode))
        return united(spec.name, found)

    def _token(self, fields: _Fields) -> ServiceToken:
        if self._tokens is None:
            raise InvalidVolumeError(str(fields.get("path")), "nobody gives out tokens any more")
        lifetime_s = fields["lifetimeSeconds"]
        request = TokenRequest(
            namespace=str(fields["namespace"]),
            service_account=str(fields["serviceAccount"]),
            pod_name=str(fields["podName"]),
            pod_uid=str(fields["podUid"]),
            audience=str(fields["audience"]),
            lifetime_s=lifetime_s if isinstance(lifetime_s, int) else _LIFETIME_S,
        )
        return self._tokens.token(request)

    def _changed(self, uid: str) -> None:
        self.on_changed(uid)


def _sources(volume: Volume) -> Iterator[tuple[str, _Fields]]:
    """Kind and fields of each source."""
    sources = volume.spec.get("sources") or ()
    if not isinstance(sources, Sequence) or isinstance(sources, str):
        raise InvalidVolumeError(volume.name, f"sources is {sources!r}; write a list of sources")
    for source in sources:
        if not isinstance(source, Mapping):
            raise InvalidVolumeError(volume.name, f"source {source!r} is not one kind with its fields")
        # What is null is not there, and a source of nothing writes nothing.
        parts = [(kind, fields) for kind, fields in source.items() if fields is not None]
        if len(parts) > 1 or any(not isinstance(fields, Mapping) for _, fields in parts):
            raise InvalidVolumeError(volume.name, f"source {source!r} is not one kind with its fields")
        for kind, fields in parts:
            yield kind, cast("_Fields", fields)


def _parts(spec: VolumeSpec) -> Iterator[tuple[str, _Fields]]:
    """Kind and fields of each source, as the config keeps them."""
    sources = spec.config.get("sources") or ()
    for source in sources if isinstance(sources, Sequence) else ():
        for kind, fields in source.items() if isinstance(source, Mapping) else ():
            if isinstance(fields, Mapping):
                yield kind, fields


def _check_paths(volume: str, sources: Sequence[Mapping[str, Json]]) -> None:
    """Refuse what the manifest gives twice."""
    taken: dict[str, str] = {}
    for source in sources:
        for kind, fields in source.items():
            for path in _given(kind, fields if isinstance(fields, Mapping) else {}):
                if path in taken:
                    raise InvalidVolumeError(
                        volume, f"path {path!r} is given by {taken[path]} and by {kind}; choose another one"
                    )
                taken[path] = kind


def _given(kind: str, fields: _Fields) -> Iterator[str]:
    """Paths that a source names itself."""
    if kind == _DOWNWARD:
        yield from fields
    elif kind == _TOKEN:
        yield str(fields["path"])
    else:
        items = fields.get("items") or ()
        for item in items if isinstance(items, Sequence) else ():
            if isinstance(item, Mapping):
                yield str(item["path"])


def _token_fields(volume: str, pod: Pod, fields: _Fields) -> Json:
    seconds = fields.get("expirationSeconds")
    lifetime_s = _LIFETIME_S if seconds is None else seconds
    if not isinstance(lifetime_s, int) or lifetime_s < _SHORTEST_S:
        raise InvalidVolumeError(volume, f"expirationSeconds is {lifetime_s!r}; use {_SHORTEST_S} or more")
    return {
        "path": path_of(volume, fields.get("path")),
        "namespace": pod.namespace,
        "serviceAccount": pod.service_account_name or "default",
        "podName": pod.name,
        "podUid": pod.uid,
        "audience": str(fields.get("audience") or ""),
        "lifetimeSeconds": lifetime_s,
        "owner": _only_user(pod),
    }


def _only_user(pod: Pod) -> int | None:
    """The user that all containers of a pod run as, as far as it says; the token is that user's.

    Source: kubelet ``util/fs`` (`FsUserFrom`).
    """
    of_pod = None if pod.security_context is None else pod.security_context.run_as_user
    users: set[int | None] = set()
    for one in (*pod.all_containers, *pod.ephemeral_containers):
        own = None if one.security_context is None else one.security_context.run_as_user
        users.add(of_pod if own is None else own)
    return users.pop() if len(users) == 1 else None
