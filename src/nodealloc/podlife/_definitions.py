"""Values only: the fingerprints of what a pod's containers are made from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, cast

from nodealloc import _attrs as attrs
from nodealloc._frozen import Frozen, freeze
from nodealloc._typed import typed, typed_fields, typed_methods
from nodealloc.podspec import HASH_ANNOTATION, Container, Pod, container_hash, kubelet_hash
from nodealloc.runtime import ContainerRecord

__all__ = ["RESOURCES_ANNOTATION", "Definitions"]

RESOURCES_ANNOTATION: Final = "nodealloc.io/container.resources"
"""Where `Definitions.resources` is kept beside a container."""

_OURS: Final = "v1:"
"""Of hashes that this library writes; one of another version cannot be compared."""
_NOTHING: Final[Mapping[str, str]] = Frozen[str, str]()


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
    """

    kubelet: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    ours: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    resources: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    restarting: Mapping[str, frozenset[str]] = attrs.field(
        factory=Frozen[str, frozenset[str]], validator=freeze
    )

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
            left = record.annotations.get(HASH_ANNOTATION, "")
            if left.startswith(_OURS):
                return left != self.ours.get(record.name, left) or self._needs_restart(record, resized)
        return bool(record.definition) and record.definition != self.kubelet.get(record.name)

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

    def _needs_restart(self, record: ContainerRecord, resized: Mapping[str, str]) -> bool:
        watched = self.restarting.get(record.name)
        if not watched or not self.resizes(record, resized):
            return False
        had = _parsed(resized.get(record.id) or record.annotations[RESOURCES_ANNOTATION])
        wanted = _parsed(self.resources[record.name])
        return any(
            had.get(key) != wanted.get(key) for key in {*had, *wanted} if key.partition(" ")[2] in watched
        )


def _resources_text(container: Container) -> str:
    both = (("limits", container.limits), ("requests", container.requests))
    said = {f"{kind} {name}": str(amount) for kind, amounts in both for name, amount in amounts.items()}
    return json.dumps(said, sort_keys=True, separators=(",", ":"))


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
