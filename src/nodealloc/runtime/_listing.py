"""Values only: one look at all that a runtime has, by pod, and what made no sense in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias, TypeVar

from nodealloc import _attrs as attrs
from nodealloc._frozen import Frozen, freeze
from nodealloc._typed import typed, typed_fields
from nodealloc.runtime._records import ContainerRecord, RunState, SandboxRecord

__all__ = ["Listing", "Marks", "Oddity", "PodListing"]

Marks: TypeAlias = Mapping[str, RunState]
"""Ids of a pod's containers, then of its sandboxes, and the state of each."""

R = TypeVar("R", SandboxRecord, ContainerRecord)

_SHOWN: Final = 80
"""Characters of a runtime's own words that a message repeats; it may say megabytes."""
_AHEAD_S: Final = 300.0
"""So far ahead of our clock a time may be before it counts as nonsense."""
_MOST_BYTES: Final = 1 << 20
"""Labels and annotations of one record; the API server takes a quarter of that for a pod."""


@typed_fields
@attrs.frozen(kw_only=True)
class Oddity:
    """Something that a runtime said and that cannot be.

    Attributes:
        uid: The pod concerned; "" where that cannot be told.
        what: Which record, and what is wrong with it.
        spoils: Whether the pod's listing cannot be trusted because of it.
    """

    uid: str
    what: str
    spoils: bool = True

    @classmethod
    @typed
    def of(cls, uid: str, what: str, /, *, spoils: bool = True) -> Oddity:
        """With long words shortened."""
        return cls(uid=uid, what=what if len(what) <= 4 * _SHOWN else what[: 4 * _SHOWN] + "…", spoils=spoils)


@typed_fields
@attrs.frozen(kw_only=True)
class PodListing:
    """What a listing has of one pod.

    Two are equal when ids, states and oddities are: nothing else of a record
    changes in its life. So comparing two listings costs little.

    Attributes:
        uid: The pod's.
        sandboxes: Its sandboxes as listed.
        containers: Its containers as listed.
        oddities: What made no sense; where one spoils it, the pod is not to be acted upon.
        marks: Ids and states.
    """

    uid: str
    sandboxes: tuple[SandboxRecord, ...] = attrs.field(default=(), eq=False)
    containers: tuple[ContainerRecord, ...] = attrs.field(default=(), eq=False)
    oddities: tuple[Oddity, ...] = ()
    marks: Marks = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        marks = {one.id: one.state for one in self.containers}
        for sandbox in self.sandboxes:
            marks[sandbox.id] = sandbox.state
        object.__setattr__(self, "marks", Frozen(marks))

    @property
    def is_spoilt(self) -> bool:
        """Whether something in it makes no sense at all."""
        return any(one.spoils for one in self.oddities)


@attrs.frozen(kw_only=True)
class Listing:
    """Everything that a runtime has, at one moment.

    Attributes:
        pods: By uid; a pod of which nothing is left is not in it.
        oddities: What made no sense, of no pod that can be told.
    """

    pods: Mapping[str, PodListing] = attrs.field(factory=Frozen[str, PodListing], validator=freeze)
    oddities: tuple[Oddity, ...] = ()

    @classmethod
    @typed
    def of(
        cls,
        sandboxes: Iterable[SandboxRecord],
        containers: Iterable[ContainerRecord],
        /,
        *,
        oddities: Iterable[Oddity] = (),
        now_unix_s: float | None = None,
    ) -> Listing:
        """Sort records by pod, and tell what cannot be.

        Args:
            sandboxes: As the runtime lists them.
            containers: As the runtime lists them.
            oddities: What whoever read the answer could make nothing of.
            now_unix_s: The present in Unix seconds; a record from the future gets
                no time. None leaves times alone.
        """
        boxes: dict[str, list[SandboxRecord]] = {}
        runs: dict[str, list[ContainerRecord]] = {}
        odd: dict[str, list[Oddity]] = {}
        for oddity in oddities:
            odd.setdefault(oddity.uid, []).append(oddity)
        owners: dict[str, str] = {}
        for sandbox in sandboxes:
            uid = sandbox.pod.uid
            boxes.setdefault(uid, []).append(_looked_at(sandbox, owners, odd, now_unix_s))
        for container in containers:
            uid = container.pod.uid
            runs.setdefault(uid, []).append(_looked_at(container, owners, odd, now_unix_s))
        nobody = tuple(odd.pop("", ()))
        return cls(
            pods={
                uid: PodListing(
                    uid=uid,
                    sandboxes=tuple(boxes.get(uid, ())),
                    containers=tuple(runs.get(uid, ())),
                    oddities=tuple(odd.get(uid, ())),
                )
                for uid in {**boxes, **runs, **odd}
            },
            oddities=nobody,
        )


def _looked_at(
    record: R, owners: dict[str, str], odd: dict[str, list[Oddity]], now_unix_s: float | None
) -> R:
    """The record, without what is odd about it, which goes into `odd`."""
    uid = record.pod.uid
    if record.id in owners:
        for one in sorted({owners[record.id], uid}):
            odd.setdefault(one, []).append(Oddity.of(one, f"id {record.id[:_SHOWN]!r} is listed twice"))
    owners[record.id] = uid
    created_s = record.created_unix_s
    if now_unix_s is not None and created_s is not None and created_s > now_unix_s + _AHEAD_S:
        # Without how far ahead of now, which would be news with each listing.
        what = (
            f"{record.id[:_SHOWN]!r} was made in the future, at {created_s:.0f} s; look at the node's clock"
        )
        odd.setdefault(uid, []).append(Oddity.of(uid, what, spoils=False))
        record = attrs.evolve(record, created_unix_s=None)
    size = _text(record.labels) + _text(record.annotations)
    if size > _MOST_BYTES:
        what = (
            f"{record.id[:_SHOWN]!r} has {size} characters of labels and annotations, {_MOST_BYTES} at most"
        )
        odd.setdefault(uid, []).append(Oddity.of(uid, what))
        record = attrs.evolve(record, labels={}, annotations={})
    return record


def _text(words: Mapping[str, str]) -> int:
    return sum(map(len, words)) + sum(map(len, words.values())) if words else 0
