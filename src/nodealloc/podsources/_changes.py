"""Values only: what a source says, and what changes by it."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping

from nodealloc import _attrs as attrs
from nodealloc._arguments import names_in
from nodealloc._frozen import freeze
from nodealloc._typed import typed_fields
from nodealloc.errors import ConfigurationError
from nodealloc.podfacts import PodEvent
from nodealloc.podspec import Pod

__all__ = ["MergedUpdates", "Merging", "PodChange", "PodUpdate", "SourceOp"]


class SourceOp(enum.Enum):
    """What is to be done with the pods of a message."""

    SET = "set"
    """They are all that the source has; only said by sources, never told on."""
    ADD = "add"
    UPDATE = "update"
    """What they ask for has changed."""
    REMOVE = "remove"
    """The source has them no more."""
    DELETE = "delete"
    """Somebody asked for their deletion."""
    RECONCILE = "reconcile"
    """Only the status that the source has of them differs."""


def _named(_update: object, _field: object, pods: tuple[Pod, ...]) -> None:
    for pod in pods:
        if not pod.name:
            raise ConfigurationError(f"pod {pod.uid} has no name; sources tell pods apart by theirs")


def _source(_value: object, _field: object, source: str) -> None:
    if not source:
        raise ConfigurationError("a source without a name; give it one, such as 'file'")


@typed_fields
@attrs.frozen(kw_only=True)
class PodUpdate:
    """One message of a source.

    Attributes:
        source: Who says it.
        op: What is to be done with them.
        pods: In the source's order; each has a name.

    Raises:
        ConfigurationError: A pod or the source has no name.
    """

    source: str = attrs.field(validator=_source)
    op: SourceOp = SourceOp.SET
    pods: tuple[Pod, ...] = attrs.field(default=(), converter=tuple[Pod, ...], validator=_named)


@attrs.frozen(kw_only=True)
class PodChange:
    """What changes by a message, all of one kind.

    Attributes:
        source: Whose pods they are.
        op: What has to be done; never `SET`.
        pods: As they are known from now on, those of a `REMOVE` as they were
            known. None at all in the `ADD` that says that a source was heard.
    """

    source: str
    op: SourceOp
    pods: tuple[Pod, ...] = ()


@attrs.frozen(kw_only=True)
class MergedUpdates:
    """All that sources have said so far.

    Attributes:
        pods: Source to uid to pod.
        heard: Sources that have said once what all their pods are.
        twins: Source to pods that wait for another one to give up its name or uid.
    """

    pods: Mapping[str, Mapping[str, Pod]] = attrs.field(
        factory=dict[str, Mapping[str, Pod]], validator=freeze
    )
    heard: frozenset[str] = frozenset()
    twins: Mapping[str, tuple[Pod, ...]] = attrs.field(factory=dict[str, tuple[Pod, ...]], validator=freeze)

    def has_heard(self, sources: Iterable[str], /) -> bool:
        """Whether each of them was heard once; nothing may be destroyed before."""
        return self.heard >= names_in("MergedUpdates.has_heard: sources", sources)

    def by_uid(self) -> Mapping[str, Pod]:
        """Every pod of every source; of two with one uid that of the source whose name comes first.

        Those of one source in the order of their age, the oldest first, as a kubelet admits them.
        """
        found: dict[str, Pod] = {}
        for source in sorted(self.pods):
            # All times of an API server are of one form, so that texts are in their order.
            for uid, pod in sorted(self.pods[source].items(), key=_made):
                found.setdefault(uid, pod)
        return found


def _made(entry: tuple[str, Pod]) -> str:
    return entry[1].creation_timestamp


@attrs.frozen(kw_only=True)
class Merging:
    """What comes of one message.

    Attributes:
        merged: What is known from now on.
        changes: What has to be done, in this order: what goes, comes, changes, is
            to be deleted, differs in its status.
        events: Pods that were refused.
    """

    merged: MergedUpdates
    changes: tuple[PodChange, ...] = ()
    events: tuple[PodEvent, ...] = ()
