"""A Kubernetes Pod manifest as the fields of a pod; the dicts stop here.

Reading goes on behind a fault, so that one message lists them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, TypeVar, cast

import attrs

from nodealloc._reading import short
from nodealloc.podspec._fields import PodFields
from nodealloc.podspec._model import Container, DnsPolicy
from nodealloc.podspec._pod_reader import PodReader, some

__all__ = ["Maker", "read_pod"]

P = TypeVar("P", bound=PodFields)
P_co = TypeVar("P_co", bound=PodFields, covariant=True)

_NAMES: Final = "6f1d2f6e-7d0c-5b35-9a3e-4f0a1b8f3c55"
"""Name space of the uids that are made for manifests without one; ours."""


class Maker(Protocol[P_co]):
    """Makes a pod of its fields."""

    def __call__(self, **fields: object) -> P_co: ...


def read_pod(manifest: object, reader: PodReader, make: Maker[P], /) -> P:
    """The pod of a manifest; faults are the reader's, and what cannot be read has its default."""
    if isinstance(manifest, str | bytes):
        reader.fault(
            "$", "expected a mapping, found a text; read it first, with json.loads or yaml.safe_load"
        )
        reader.check()
    # Imported late: whoever reads no manifest needs neither cattrs nor uids.
    import uuid  # noqa: PLC0415

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
    uid = metadata.pop("uid", "") or str(uuid.uuid5(uuid.UUID(_NAMES), f"{namespace}/{name}"))
    given: dict[str, object] = {**metadata, **spec, "namespace": namespace, "carried": carried, "uid": uid}
    pod = make(**given, status=found.status if found else {})
    return _with_defaults(pod, reader)


def _with_defaults(pod: P, reader: PodReader) -> P:
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
