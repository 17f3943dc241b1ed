"""Values only: the fingerprints of what a pod's containers are made from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Final, cast

from nodealloc import _attrs as attrs
from nodealloc._frozen import Frozen, freeze
from nodealloc._typed import typed, typed_fields, typed_methods
from nodealloc._wire import written
from nodealloc.cgroups import NO_LIMIT
from nodealloc.podspec import (
    HASH_ANNOTATION,
    Container,
    Json,
    Pod,
    RestartPolicy,
    container_hash,
    kubelet_hash,
)
from nodealloc.podspec._writing import use_manifest, volume_manifest
from nodealloc.runtime import ContainerRecord, LinuxResources, SandboxRecord

__all__ = [
    "MOUNTS_ANNOTATION",
    "RESOURCES_ANNOTATION",
    "SANDBOX_ANNOTATION",
    "Definitions",
    "needs_new_sandbox",
    "sandbox_hash",
    "unlimited",
]

RESOURCES_ANNOTATION: Final = "nodealloc.io/container.resources"
"""Where `Definitions.resources` is kept beside a container."""
MOUNTS_ANNOTATION: Final = "nodealloc.io/container.mounts"
"""Where `Definitions.mounts` is kept beside a container."""
SANDBOX_ANNOTATION: Final = "nodealloc.io/sandbox.hash"
"""Where `sandbox_hash` is kept beside a sandbox."""

_OURS: Final = "v1:"
"""Of hashes that this library writes; one of another version cannot be compared."""
_NOTHING: Final[Mapping[str, str]] = Frozen[str, str]()
_OF_SANDBOXES: Final = (
    *("dns_config", "dns_policy", "host_aliases", "host_ipc", "host_pid", "hostname", "runtime_class_name"),
    *("security_context", "set_hostname_as_fqdn", "share_process_namespace", "subdomain"),
)
"""Fields of a pod that only a new sandbox, with all its containers, can change; of version 1."""


@typed_methods
@typed_fields
@attrs.frozen(kw_only=True)
class Definitions:
    """What each container of one edition of a pod is made from; reckoned once, compared often.

    Attributes:
        kubelet: Container name to the kubelet's hash, which covers name and image.
        ours: Container name to the hash that covers all that needs a new container.
        resources: Container name to its requests and limits, as a text to compare.
        restarting: Container name to the resources whose change needs a new instance of it.
        mounts: Container name to a hash of its mounts, and of the volumes that they are of.
        sandbox: The hash of what a sandbox is made from.
    """

    kubelet: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    ours: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    resources: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    restarting: Mapping[str, frozenset[str]] = attrs.field(
        factory=Frozen[str, frozenset[str]], validator=freeze
    )
    mounts: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    sandbox: str = ""

    @classmethod
    @typed
    def of(cls, pod: Pod, /) -> Definitions:
        """Those of all containers of a pod."""
        containers = (*pod.all_containers, *pod.ephemeral_containers)
        return cls(
            kubelet={one.name: kubelet_hash(one) for one in containers},
            ours={one.name: container_hash(one) for one in containers},
            resources={one.name: _resources_text(one) for one in containers},
            restarting={one.name: found for one in containers if (found := _restarting(one))},
            mounts={one.name: _mounts_hash(pod, one) for one in containers},
            sandbox=sandbox_hash(pod),
        )

    def differs(
        self, record: ContainerRecord, resized: Mapping[str, str] = _NOTHING, /, *, compares_all: bool
    ) -> bool:
        """Whether a container was made from something else than what is wanted of its name now.

        A record that carries nothing to compare by is taken for what is wanted.

        Args:
            record: The container, as the runtime has it.
            resized: Container id to the `resources` that it was given since it was made.
            compares_all: Whether all is compared that needs a new instance, or name and image.
        """
        if compares_all:
            if _are_other(record.annotations.get(MOUNTS_ANNOTATION), self.mounts.get(record.name)):
                return True
            left = record.annotations.get(HASH_ANNOTATION, "")
            if left.startswith(_OURS):
                return left != self.ours.get(record.name, left) or self._needs_restart(record, resized)
        return bool(record.definition) and record.definition != self.kubelet.get(record.name)

    def differs_in_sandbox(self, record: SandboxRecord, /) -> bool:
        """Whether a sandbox was made from something else than is wanted now; False where nobody knows."""
        return _are_other(record.annotations.get(SANDBOX_ANNOTATION), self.sandbox)

    def counted_by(self, name: str, /, *, compares_all: bool) -> str:
        """By which fingerprint of a container its back-off counts; another one begins anew.

        Args:
            name: Of the container.
            compares_all: As of `differs`.
        """
        return (self.ours if compares_all else self.kubelet).get(name, "")

    def resizes(self, record: ContainerRecord, resized: Mapping[str, str] = _NOTHING, /) -> bool:
        """Whether a container was given other resources than are wanted now; False where nobody knows."""
        wanted = self.resources.get(record.name)
        had = resized.get(record.id) or record.annotations.get(RESOURCES_ANNOTATION) or wanted
        return had != wanted

    def resizing(self, record: ContainerRecord, resized: Mapping[str, str] = _NOTHING, /) -> str:
        """What a container may have been given while a call that resizes it has not come back.

        Equal to nothing that is wanted: until a call has come back well it is resized, to whatever is
        wanted by then.
        """
        had = _parsed(resized.get(record.id) or record.annotations.get(RESOURCES_ANNOTATION, ""))
        wanted = _parsed(self.resources.get(record.name, ""))
        return _text({**had, **wanted, _UNSURE: ""})

    def freed(self, record: ContainerRecord, resized: Mapping[str, str] = _NOTHING, /) -> frozenset[str]:
        """Resources that a container was limited in, as far as anybody knows, and is no more."""
        had = _parsed(resized.get(record.id) or record.annotations.get(RESOURCES_ANNOTATION, ""))
        wanted = _parsed(self.resources.get(record.name, ""))
        gone = [one.partition(" ") for one in had if one not in wanted]
        return frozenset([name for kind, _, name in gone if kind == "limits"])

    def _needs_restart(self, record: ContainerRecord, resized: Mapping[str, str]) -> bool:
        watched = self.restarting.get(record.name)
        if not watched or not self.resizes(record, resized):
            return False
        had = _parsed(resized.get(record.id) or record.annotations[RESOURCES_ANNOTATION])
        wanted = _parsed(self.resources[record.name])
        return any(
            had.get(key) != wanted.get(key) for key in {*had, *wanted} if key.partition(" ")[2] in watched
        )


def unlimited(resources: LinuxResources, freed: Collection[str], /) -> LinuxResources:
    """With no limit where one was taken out: what an update does not say stays as it is."""
    if "cpu" in freed and resources.cpu_quota_us is None:
        resources = attrs.evolve(resources, cpu_quota_us=NO_LIMIT)
    if "memory" in freed and resources.memory_bytes is None:
        resources = attrs.evolve(resources, memory_bytes=NO_LIMIT, swap_bytes=NO_LIMIT)
    return resources


def sandbox_hash(pod: Pod, /) -> str:
    """A hash of what only a new sandbox can change of a pod; its network is compared by itself."""
    said: list[tuple[str, object]] = [(name, getattr(pod, name)) for name in _OF_SANDBOXES]
    fields = {name: text for name, value in said if value and (text := written(value))}
    if pod.host_users is False:
        fields["host_users"] = False  # true is what all others have, too
    ports = [written(port) for one in pod.all_containers for port in one.ports if port.host_port]
    return _hash({**fields, "host_ports": ports})


def needs_new_sandbox(before: Pod, now: Pod, /) -> bool:
    """Whether an edit changes what only a new sandbox can; one that never starts again keeps its own."""
    is_other = sandbox_hash(before) != sandbox_hash(now) or before.host_network is not now.host_network
    return is_other and now.restart_policy is not RestartPolicy.NEVER


def _mounts_hash(pod: Pod, container: Container) -> str:
    if not container.volumes:
        return _NO_MOUNTS
    volumes = {one.name: volume_manifest(one) for one in pod.volumes}
    return _hash([[use.block, use_manifest(use), volumes.get(use.name)] for use in container.volumes])


def _hash(said: Json) -> str:
    digest = hashlib.sha256(json.dumps(said, sort_keys=True, separators=(",", ":")).encode())
    return f"{_OURS}{digest.hexdigest()[:32]}"


_NO_MOUNTS: Final = _hash([])


def _are_other(had: str | None, wanted: str | None) -> bool:
    """Whether two hashes of this version differ; what is of another one, or not there, cannot be compared."""
    return had is not None and had.startswith(_OURS) and wanted is not None and had != wanted


def _resources_text(container: Container) -> str:
    both = (("limits", container.limits), ("requests", container.requests))
    return _text(
        {f"{kind} {name}": str(amount) for kind, amounts in both for name, amount in amounts.items()}
    )


def _text(said: Mapping[str, str]) -> str:
    return json.dumps(said, sort_keys=True, separators=(",", ":"))


_UNSURE: Final = "unsure"
"""Stands among amounts of which nobody knows whether they were given."""


def _parsed(text: str) -> Mapping[str, str]:
    """What `_resources_text` wrote; of anything else nothing is known."""
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return cast("Mapping[str, str]", found) if isinstance(found, dict) else {}


def _restarting(container: Container) -> frozenset[str]:
    return frozenset(
        one.resource_name for one in container.resize_policy if one.restart_policy == "RestartContainer"
    )
