"""A Kubernetes Pod manifest as a `Pod`; the dicts stop here.

Reading goes on behind a fault, so that one message lists them all.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Final, cast

from nodealloc._reading import MAX_DOCUMENT_BYTES, Reader, kind_of, short, under
from nodealloc.podspec._model import Container, Json, Pod, Volume, VolumeUse
from nodealloc.podspec._resources import read_resources

__all__ = ["pod_from_manifest"]

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*", re.ASCII
)
_UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
_NAMES: Final = uuid.UUID("6f1d2f6e-7d0c-5b35-9a3e-4f0a1b8f3c55")
"""Name space of the uids that are made for manifests without one; ours."""
_CONTAINER: Final = frozenset(
    [
        "name",
        "image",
        "command",
        "args",
        "workingDir",
        "ports",
        "envFrom",
        "env",
        "resources",
        "resizePolicy",
        "restartPolicy",
        "volumeMounts",
        "volumeDevices",
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle",
        "terminationMessagePath",
        "terminationMessagePolicy",
        "imagePullPolicy",
        "securityContext",
        "stdin",
        "stdinOnce",
        "tty",
    ]
)
"""Fields of a container in the API; another that is nearly one of them is a typing error."""
_RESOURCES: Final = frozenset({"claims", "limits", "requests"})
_LEVELS: Final = 32
"""Depth of what a volume says about itself; the API's kinds have three."""
_VALUES: Final = 10_000
"""Values in what all volumes of a pod say; a pod as large as an API server takes has fewer."""
_SHOWN: Final = 80
"""Characters of a name that is listed; a right one has fewer."""
_BITS: Final = 128
"""Of a number in what a volume says; Python refuses to write the longest."""
_LISTED: Final = 10
"""Names that a fault lists."""
_SOURCE: Final = 320
"""Characters of a pod's name in an error; a name and a name space that are right have fewer."""


def pod_from_manifest(manifest: object, /, *, source: str = "", max_bytes: int = MAX_DOCUMENT_BYTES) -> Pod:
    """Read one Pod manifest, as YAML or JSON gives it.

    Fields that do not matter for running the pod on one node are ignored. A
    request that is missing follows the limit. A manifest without `metadata.uid`
    gets one that depends on namespace and name alone.

    Args:
        manifest: A mapping with `metadata` and `spec`.
        source: What to call it in an error, such as a file name.
        max_bytes: A manifest that takes more is refused unread. Counted without
            blanks and quotes, and what a reference of YAML stands for each time.

    Raises:
        DecodeError: Lists every wrong field with its path; of more than a
            hundred the first, and how many more there are.

    Source: Kubernetes API reference, Pod v1; the checks are those of
    ``pkg/apis/core/validation`` that concern these fields.
    """
    reader = _Reader(source or "pod")
    if not reader.fits(manifest, max_bytes):
        reader.check()
    pod = reader.pod(manifest)
    reader.check(source or (f"pod {pod.full_name[:_SOURCE]}" if pod.name else "pod"))
    return pod


class _Reader(Reader):
    """Reads the parts of a pod."""

    _room = _VALUES

    def pod(self, manifest: object) -> Pod:
        if isinstance(manifest, str | bytes):
            self.fault(
                "$", "expected a mapping, found a text; read it first, with json.loads or yaml.safe_load"
            )
            self.check()
        root = self.mapping(manifest, "$")
        readable = isinstance(manifest, Mapping)
        if root and root.get("kind", "Pod") != "Pod":
            self.fault(
                "$.kind",
                f"expected Pod, found {kind_of(root['kind'])}; take the pod template out of its controller",
            )
        if root and root.get("apiVersion", "v1") != "v1":
            self.fault("$.apiVersion", f"expected v1, found {kind_of(root['apiVersion'])}")
        metadata: Mapping[str, object] = self.mapping(root.get("metadata"), "$.metadata") if readable else {}
        spec: Mapping[str, object] = self.mapping(root.get("spec"), "$.spec") if readable else {}
        name = self.name(metadata, "name", "$.metadata", _SUBDOMAIN, required="metadata" in root)
        namespace = self.name(metadata, "namespace", "$.metadata", _LABEL) or "default"
        uid = self.name(metadata, "uid", "$.metadata", _UID)
        init = self.containers(spec, "initContainers")
        main = self.containers(spec, "containers")
        if readable and not main and not self.faults:
            self.fault("$.spec.containers", "a pod needs at least one container")
        volumes = self.volumes(spec)
        self.unique([(c.name, p) for c, p in init + main], "container name")
        self.uses(init + main, volumes)
        return Pod(
            uid=uid or str(uuid.uuid5(_NAMES, f"{namespace}/{name}")),
            name=name,
            namespace=namespace,
            init_containers=tuple(container for container, _ in init),
            containers=tuple(container for container, _ in main),
            volumes=tuple(volume for volume, _ in volumes),
            labels=self.texts(metadata.get("labels"), "$.metadata.labels"),
            annotations=self.texts(metadata.get("annotations"), "$.metadata.annotations"),
        )

    def containers(self, spec: Mapping[str, object], key: str) -> list[tuple[Container, str]]:
        base = f"$.spec.{key}"
        items = self.maybe_sequence(spec.get(key), base)
        return [
            (self.container(item, f"{base}[{n}]", init=key[0] == "i"), f"{base}[{n}]")
            for n, item in enumerate(items)
        ]

    def entry(self, item: object, path: str) -> Mapping[str, object]:
        """One of a list of named things; empty only after a fault."""
        fields = self.mapping(item, path)
        if isinstance(item, Mapping) and not item:
            self.fault(path, "nothing stands here; a name is needed")
        return fields

    def container(self, item: object, path: str, *, init: bool) -> Container:
        fields = self.entry(item, path)
        if not fields:
            return Container(name="")
        self.near_misses(fields, path, _CONTAINER)
        resources = self.maybe_mapping(fields.get("resources"), f"{path}.resources")
        self.near_misses(resources, f"{path}.resources", _RESOURCES)
        requests, limits = read_resources(
            self.maybe_mapping(resources.get("requests"), f"{path}.resources.requests"),
            self.maybe_mapping(resources.get("limits"), f"{path}.resources.limits"),
            f"{path}.resources",
            self.fault,
        )
        command = self.words(fields.get("command"), f"{path}.command")
        command += self.words(fields.get("args"), f"{path}.args")
        return Container(
            name=self.name(fields, "name", path, _LABEL, required=True),
            requests=requests,
            limits=limits,
            restartable=self.restartable(fields, path, init=init),
            image=self.maybe_text(fields.get("image"), f"{path}.image"),
            command=tuple(command),
            env=self.env(fields.get("env"), f"{path}.env"),
            volumes=tuple(
                self.use(use, f"{path}.{key}[{n}]", block=key == "volumeDevices")
                for key in ("volumeMounts", "volumeDevices")
                for n, use in enumerate(self.maybe_sequence(fields.get(key), f"{path}.{key}"))
            ),
        )

    def near_misses(self, fields: Mapping[str, object], path: str, known: Collection[str]) -> None:
        """A field that is nearly one of those that decide would be ignored, and the pod be another."""
        for key in fields.keys() - known:
            meant = get_close_matches(key[:_SHOWN], known, n=1, cutoff=0.8)
            if meant:
                self.fault(under(path, key), f"unknown field; write {meant[0]}, or leave it out")

    def restartable(self, fields: Mapping[str, object], path: str, *, init: bool) -> bool:
        policy = fields.get("restartPolicy")
        if policy is None:
            return False
        if init and policy == "Always":
            return True
        where = (
            "an init container takes only Always here"
            if init
            else "only init containers take one of their own"
        )
        self.fault(f"{path}.restartPolicy", f"{where}, found {kind_of(policy)}")
        return False

    def env(self, items: object, path: str) -> dict[str, str]:
        variables: dict[str, str] = {}
        for number, item in enumerate(self.maybe_sequence(items, path)):
            fields = self.entry(item, f"{path}[{number}]")
            if not fields:
                continue
            name = self.maybe_text(fields.get("name"), f"{path}[{number}].name")
            if not name:
                self.fault(f"{path}[{number}].name", "a variable needs a name")
            if "valueFrom" not in fields:
                variables[name] = self.maybe_text(fields.get("value"), f"{path}[{number}].value")
        return variables

    def use(self, item: object, path: str, *, block: bool) -> VolumeUse:
        fields = self.entry(item, path)
        key = "devicePath" if block else "mountPath"
        if not fields:
            return VolumeUse(name="", path="", block=block)
        place = self.maybe_text(fields.get(key), f"{path}.{key}")
        if not place:
            self.fault(f"{path}.{key}", "a path inside the container is needed")
        if fields.get("subPath"):
            self.fault(f"{path}.subPath", "sub-paths are not supported; mount the whole volume")
        return VolumeUse(
            name=self.maybe_text(fields.get("name"), f"{path}.name"),
            path=place,
            read_only=self.flag(fields.get("readOnly"), f"{path}.readOnly"),
            block=block,
        )

    def volumes(self, spec: Mapping[str, object]) -> list[tuple[Volume, str]]:
        found: list[tuple[Volume, str]] = []
        for number, item in enumerate(self.maybe_sequence(spec.get("volumes"), "$.spec.volumes")):
            path = f"$.spec.volumes[{number}]"
            fields = self.entry(item, path)
            if not fields:
                continue
            kinds = [key for key in fields if key != "name"]
            if len(kinds) > 1:
                self.fault(path, f"one kind of volume at a time, found {_some(kinds, ' and ')}")
            kind = kinds[0] if kinds else "emptyDir"
            where = under(path, kind)
            detail = self.maybe_mapping(fields.get(kind), where)
            name = self.name(fields, "name", path, _LABEL, required=True)
            found.append((Volume(name=name, kind=kind, spec=self.copied(detail, where)), path))
        self.unique([(volume.name, path) for volume, path in found], "volume name")
        return found

    def copied(self, fields: Mapping[str, object], path: str, level: int = 1) -> dict[str, Json]:
        """A private copy, so that later changes to the manifest do not reach the pod."""
        return {key: self.copied_value(value, under(path, key), level) for key, value in fields.items()}

    def copied_value(self, item: object, path: str, level: int) -> Json:
        # References of YAML make a document out of few bytes that is endless, or nearly so.
        if self._room == 0:
            return None
        self._room -= 1
        if level == _LEVELS or self._room == 0:
            self._room = 0
            self.fault(path, f"nested {_LEVELS} levels deep or in itself, or more than {_VALUES} values")
            return None
        if isinstance(item, Mapping):
            fields = cast("Mapping[object, object]", item)
            named = {key if isinstance(key, str) else kind_of(key): value for key, value in fields.items()}
            return self.copied(named, path, level + 1)
        if isinstance(item, Sequence) and not isinstance(item, str | bytes):
            values = cast("Sequence[object]", item)
            return tuple(
                self.copied_value(value, f"{path}[{n}]", level + 1) for n, value in enumerate(values)
            )
        if isinstance(item, int) and item.bit_length() > _BITS:
            self.expected(f"a number of at most {_BITS} bits", item, path)
        return item if item is None or isinstance(item, bool | int | float | str) else str(item)

    def uses(
        self, containers: Sequence[tuple[Container, str]], volumes: Sequence[tuple[Volume, str]]
    ) -> None:
        known = {volume.name for volume, _ in volumes}
        defined = _some(known, ", ") or "none"
        for container, path in containers:
            for use in container.volumes:
                if use.name not in known:
                    key = "volumeDevices" if use.block else "volumeMounts"
                    reason = f"the pod defines no volume {short(use.name)}; defined: {defined}"
                    self.fault(f"{path}.{key}", reason)

    def unique(self, named: Sequence[tuple[str, str]], noun: str) -> None:
        seen: dict[str, str] = {}
        for name, path in named:
            if name and name in seen:
                self.fault(f"{path}.name", f"{noun} {short(name)} is taken by {seen[name]}; choose another")
            seen.setdefault(name, path)

    def words(self, item: object, path: str) -> list[str]:
        return [
            self.maybe_text(word, f"{path}[{n}]") for n, word in enumerate(self.maybe_sequence(item, path))
        ]

    def texts(self, item: object, path: str) -> dict[str, str]:
        return {
            key: self.maybe_text(value, under(path, key))
            for key, value in self.maybe_mapping(item, path).items()
        }

    def flag(self, item: object, path: str) -> bool:
        if isinstance(item, bool):
            return item
        if item is not None:
            self.expected("true or false", item, path)
        return False

    def name(
        self,
        fields: Mapping[str, object],
        key: str,
        path: str,
        shape: re.Pattern[str],
        *,
        required: bool = False,
    ) -> str:
        value = fields.get(key)
        text = self.maybe_text(value, f"{path}.{key}")
        if text and not shape.fullmatch(text):
            rule = (
                "letters, digits, '-', '_' and '.'" if shape is _UID else "lower-case letters, digits and '-'"
            )
            dots = ", '.' between parts" if shape is _SUBDOMAIN else ""
            self.fault(f"{path}.{key}", f"{short(text)} is no valid {key}; use {rule}{dots}")
        elif required and not text and (value is None or value == ""):
            self.fault(f"{path}.{key}", f"a {key} is needed")
        return text


def _some(names: Collection[str], between: str) -> str:
    """The first names in their order, and how many more there are."""
    shown = [name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…" for name in sorted(names)[:_LISTED]]
    more = [f"{len(names) - _LISTED} more"] if len(names) > _LISTED else []
    return between.join([*shown, *more])
