"""A Kubernetes Pod manifest as a `Pod`; the dicts stop here.

Reading goes on behind a fault, so that one message lists them all.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Final, Protocol, cast

import attrs

from nodealloc._reading import MAX_DOCUMENT_BYTES, short
from nodealloc.errors import Fault
from nodealloc.podspec._model import Container, DnsPolicy, Pod
from nodealloc.podspec._pod_reader import PodReader, some

__all__ = ["pod_as_it_stands", "pod_from_manifest"]

_NAMES: Final = uuid.UUID("6f1d2f6e-7d0c-5b35-9a3e-4f0a1b8f3c55")
"""Name space of the uids that are made for manifests without one; ours."""
_SOURCE: Final = 320
"""Characters of a pod's name in an error; a name and a name space that are right have fewer."""


class _Maker(Protocol):
    def __call__(self, **fields: object) -> Pod: ...


def pod_from_manifest(
    manifest: object,
    /,
    *,
    source: str = "",
    max_bytes: int = MAX_DOCUMENT_BYTES,
    unread: Callable[[Fault], None] | None = None,
) -> Pod:
    """Read one Pod manifest, as YAML or JSON gives it.

    Every field of v1.32 is read, carried along where it concerns others than
    the node, or named. What is missing gets the default of the API: a request
    follows its limit, a manifest without `metadata.uid` gets one that depends
    on namespace and name alone.

    Args:
        manifest: A mapping with `metadata` and `spec`.
        source: What to call it in an error, such as a file name.
        max_bytes: A manifest that takes more is refused unread. Counted without
            blanks and quotes, and what a reference of YAML stands for each time.
        unread: Told of each field that is unknown or not supported, which is then
            left out: for manifests of a newer API. None refuses the manifest.

    Raises:
        DecodeError: Lists every wrong field with its path; of more than a
            hundred the first, and how many more there are.

    Source: Kubernetes API reference, Pod v1; the checks and defaults are those of
    ``pkg/apis/core/validation`` and ``pkg/apis/core/v1/defaults`` that concern a node.
    """
    reader = PodReader(source or "pod", unread=unread).start()
    if not reader.fits(manifest, max_bytes):
        reader.check()
    pod = _pod(manifest, reader)
    reader.check(source or (f"pod {pod.full_name[:_SOURCE]}" if pod.name else "pod"))
    return pod


def pod_as_it_stands(manifest: object, /) -> Pod:
    """A pod of a manifest that an API server might have refused; what cannot be read has its default.

    For replaying recorded decisions alone: what was decided about such a pod is recorded all the same.
    """
    return _pod(manifest, PodReader("recorded pod").start())


def _pod(manifest: object, reader: PodReader) -> Pod:
    if isinstance(manifest, str | bytes):
        reader.fault(
            "$", "expected a mapping, found a text; read it first, with json.loads or yaml.safe_load"
        )
        reader.check()
    # Imported late: whoever reads no manifest needs no cattrs.
    from nodealloc.podspec._documents import Manifest, documents  # noqa: PLC0415

    found = documents().read(Manifest, manifest, "$", reader)
    # The two sections were built as the fields of a pod; without a fault both are there.
    metadata = cast("dict[str, object]", (found and found.metadata) or {})
    spec = cast("dict[str, object]", (found and found.spec) or {})
    name, namespace = metadata.get("name", ""), metadata.get("namespace") or "default"
    if spec and not spec.get("containers") and not reader.faults:
        reader.fault("$.spec.containers", "a pod needs at least one container")
    _check_names(reader)
    _check_uses(reader)
    carried = {
        **cast("dict[str, object]", metadata.pop("carried", {})),
        **cast("dict[str, object]", spec.pop("carried", {})),
    }
    uid = metadata.pop("uid", "") or str(uuid.uuid5(_NAMES, f"{namespace}/{name}"))
    given: dict[str, object] = {**metadata, **spec, "namespace": namespace, "carried": carried, "uid": uid}
    pod = cast("_Maker", Pod)(**given, status=found.status if found else {})
    return _with_defaults(pod, reader)


def _with_defaults(pod: Pod, reader: PodReader) -> Pod:
    if pod.dns_policy is DnsPolicy.NONE and not (pod.dns_config and pod.dns_config.nameservers):
        reader.fault("$.spec.dnsConfig.nameservers", "dnsPolicy None needs at least one name server")
    if pod.share_process_namespace and pod.host_pid:
        reader.fault("$.spec.shareProcessNamespace", "the processes are the node's already with hostPID")
    if not pod.host_network or not any(one.ports for one in pod.all_containers):
        return pod
    return attrs.evolve(
        pod,
        init_containers=tuple(map(_on_the_host, pod.init_containers)),
        containers=tuple(map(_on_the_host, pod.containers)),
    )


def _on_the_host(container: Container) -> Container:
    ports = tuple(attrs.evolve(one, host_port=one.host_port or one.container_port) for one in container.ports)
    return attrs.evolve(container, ports=ports)


def _check_names(reader: PodReader) -> None:
    _unique(reader, [(one.name, path) for one, path in reader.containers], "container name")
    _unique(reader, [(one.name, path) for one, path in reader.volumes], "volume name")


def _unique(reader: PodReader, named: Sequence[tuple[str, str]], noun: str) -> None:
    seen: dict[str, str] = {}
    for name, path in named:
        if name and name in seen:
            reader.fault(f"{path}.name", f"{noun} {short(name)} is taken by {seen[name]}; choose another")
        seen.setdefault(name, path)


def _check_uses(reader: PodReader) -> None:
    known = {volume.name for volume, _ in reader.volumes}
    defined = some(known, ", ") or "none"
    for container, path in reader.containers:
        for use in container.volumes:
            if use.name not in known:
                key = "volumeDevices" if use.block else "volumeMounts"
                reason = f"the pod defines no volume {short(use.name)}; defined: {defined}"
                reader.fault(f"{path}.{key}", reason)
            if use.sub_path and use.sub_path_expr:
                reader.fault(f"{path}.volumeMounts", "subPath and subPathExpr exclude one another")
