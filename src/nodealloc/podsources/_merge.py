"""What sources say becomes what has to be done; pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import attrs

from nodealloc._fields import fields_but
from nodealloc._typed import typed
from nodealloc.podfacts import EventKind, PodEvent, PodIdentity
from nodealloc.podsources._changes import MergedUpdates, Merging, PodChange, PodUpdate, SourceOp
from nodealloc.podsources._rules import RIGHT, Rules
from nodealloc.podsources._static import LOCAL, SEEN
from nodealloc.podspec import Pod
from nodealloc.podspec._origin import SOURCE

__all__ = ["merge_update"]

_lasting: Final = fields_but(Pod, "status", "carried", "annotations", "creation_timestamp")
"""Without what may change, or change in part, while it stays what it is."""
_ORDER = (SourceOp.REMOVE, SourceOp.ADD, SourceOp.UPDATE, SourceOp.DELETE, SourceOp.RECONCILE)
"""What goes comes first, so that a name is free for its next pod; statuses come last."""


@typed
def merge_update(
    merged: MergedUpdates, update: PodUpdate, /, *, seen: str = "", rules: Rules = RIGHT
) -> Merging:
    """Take in one message of a source.

    Args:
        merged: What is known.
        update: The message. A source counts as heard once it has said `SET`.
        seen: The time, as new pods carry it in the annotation
            `kubernetes.io/config.seen`.
        rules: Where the kubelet is wrong.

    Source: kubelet ``config/config.go``.
    """
    work = _Work(merged, update, seen, rules)
    work.do()
    heard = merged.heard | {update.source} if update.op is SourceOp.SET else merged.heard
    pods = {**merged.pods, update.source: work.after}
    twins = {**merged.twins, update.source: tuple(work.twins)}
    after = MergedUpdates(pods=pods, heard=heard, twins=twins)
    return Merging(
        merged=after,
        changes=tuple(work.changes(is_first=heard != merged.heard)),
        events=tuple(work.events),
    )


class _Work:
    """One message, while it is taken in."""

    def __init__(self, merged: MergedUpdates, update: PodUpdate, seen: str, rules: Rules) -> None:
        self._before: Mapping[str, Pod] = merged.pods.get(update.source, {})
        self._waiting = merged.twins.get(update.source, ())
        self._update = update
        self._seen = seen
        self._rules = rules
        self._told: dict[SourceOp, list[Pod]] = {op: [] for op in _ORDER}
        self._known = dict(self._before)
        self.after = {} if update.op is SourceOp.SET else self._known
        self.twins: list[Pod] = []
        self.events: list[PodEvent] = []

    def do(self) -> None:
        op, pods = self._update.op, self._update.pods
        if op is SourceOp.REMOVE:
            self._remove(pods)
        elif op is SourceOp.RECONCILE:
            self._reconcile(pods)
        else:
            said = {pod.uid for pod in pods}
            if op is not SourceOp.SET:
                self.twins = [pod for pod in self._waiting if pod.uid not in said]
            for pod in self._without_twins(pods):
                self._take(pod)
        if op is SourceOp.SET:
            self._told[SourceOp.REMOVE] += [pod for uid, pod in self._before.items() if uid not in self.after]

    def changes(self, *, is_first: bool) -> Iterator[PodChange]:
        source = self._update.source
        comes = (SourceOp.ADD, SourceOp.UPDATE, SourceOp.DELETE)
        silent = is_first and not any(self._told[op] for op in comes)
        for op in _ORDER:
            if op is SourceOp.RECONCILE and silent:
                yield PodChange(source=source, op=SourceOp.ADD)
            if self._told[op]:
                yield PodChange(source=source, op=op, pods=tuple(self._told[op]))

    def _remove(self, pods: Iterable[Pod]) -> None:
        gone = {pod.uid for pod in pods}
        self._told[SourceOp.REMOVE] += [self.after.pop(uid) for uid in gone & self.after.keys()]
        self._told[SourceOp.REMOVE].sort(key=lambda pod: pod.uid)
        waiting = [pod for pod in self._waiting if pod.uid not in gone]
        for pod in self._without_twins(waiting, again=True):
            self._take(pod)

    def _reconcile(self, pods: Iterable[Pod]) -> None:
        self.twins = list(self._waiting)
        for pod in pods if self._rules.hears_reconcile else ():
            was = self.after.get(pod.uid)
            if was is not None and was.status != pod.status:
                self._tell(SourceOp.RECONCILE, attrs.evolve(was, status=pod.status))

    def _tell(self, op: SourceOp, pod: Pod, was: Pod | None = None) -> None:
        self.after[pod.uid] = pod
        self._told[op].append(pod)
        if was is None:
            return
        self._known[pod.uid] = pod
        if was is not self._before.get(pod.uid):
            # Of two of a message with one uid the first is told as the second has it, too.
            for told in self._told.values():
                told[:] = [pod if one is was else one for one in told]

    def _take(self, said: Pod) -> None:
        was = self._known.get(said.uid)
        if was is None:
            marks = {SOURCE: self._update.source, SEEN: self._seen}
            self._tell(SourceOp.ADD, attrs.evolve(said, annotations={**said.annotations, **marks}))
            return
        said = attrs.evolve(said, name=was.name, namespace=was.namespace)
        if self._rules.keeps_deletion:
            said = _still_deleted(was, said)
        if _meaning(was) == _meaning(said):
            if was.status == said.status:
                self.after[was.uid] = was
            else:
                self._tell(SourceOp.RECONCILE, attrs.evolve(was, status=said.status), was)
            return
        local = {key: was.annotations[key] for key in LOCAL if key in was.annotations}
        now = attrs.evolve(said, annotations={**said.annotations, **local})
        self._tell(SourceOp.DELETE if now.deletion_timestamp else SourceOp.UPDATE, now, was)

    def _without_twins(self, pods: Iterable[Pod], *, again: bool = False) -> Iterator[Pod]:
        """Those whose name is free, in their order; the others wait, or are refused."""
        pods = tuple(pods)
        keeps = self._rules.keeps_known
        names, uids = self._held(pods) if keeps else ({}, {})
        came: dict[str, str] = {}
        for pod in pods:
            holder = came.get(pod.full_name) or names.get(pod.full_name, pod.uid)
            owner = uids.get(pod.uid, pod.full_name)
            if pod.full_name in came or holder != pod.uid or owner != pod.full_name:
                if keeps and (holder, owner) != (pod.uid, pod.full_name):
                    self.twins.append(pod)
                if not again:
                    self.events.append(self._refused(pod, holder, owner))
                continue
            came[pod.full_name] = pod.uid
            if keeps:
                uids[pod.uid] = pod.full_name
            yield pod

    def _held(self, pods: tuple[Pod, ...]) -> tuple[dict[str, str], dict[str, str]]:
        """Full name to uid and uid to full name of known pods that go on."""
        going = {(pod.full_name, pod.uid) for pod in pods}
        named = {pod.full_name: pod.uid for pod in self._before.values()}
        if self._update.op is SourceOp.SET:
            return {one: uid for one, uid in named.items() if (one, uid) in going}, {
                uid: pod.full_name for uid, pod in self._before.items()
            }
        held = {pod.full_name: pod.uid for pod in self.after.values()}
        return held, {uid: one for one, uid in held.items()}

    def _refused(self, pod: Pod, holder: str, owner: str) -> PodEvent:
        source = self._update.source
        if not self._rules.keeps_known:
            message = (
                f"Error validating pod {pod.name}_{pod.namespace}({pod.uid}) from {source} "
                f'due to duplicate pod name "{pod.name}", ignoring'
            )
        elif owner != pod.full_name:
            message = (
                f"{pod.full_name} from {source}: its uid {pod.uid} is that of {owner}; give it one of its own"
            )
        else:
            message = (
                f"{pod.full_name} ({pod.uid}) from {source}: the name is that of pod {holder}, which stays; "
                "rename one of them, or take that one away"
            )
        identity = PodIdentity.of(pod)
        return PodEvent(pod=identity, kind=EventKind.WARNING, reason="FailedValidation", message=message)


def _meaning(pod: Pod) -> tuple[object, ...]:
    """A pod without what changes while it stays what it is: status, versions, the node's own marks."""
    carried = {key: value for key, value in pod.carried.items() if not key.startswith("metadata.")}
    notes = {key: value for key, value in pod.annotations.items() if key not in LOCAL}
    return (*_lasting(pod), carried, notes)


def _still_deleted(was: Pod, said: Pod) -> Pod:
    """Deletion that was asked for stands, with the shorter grace."""
    if not was.deletion_timestamp:
        return said
    graces = (was.deletion_grace_period_seconds, said.deletion_grace_period_seconds)
    shortest = min((one for one in graces if one is not None), default=None)
    is_shorter = said.deletion_timestamp and shortest != was.deletion_grace_period_seconds
    return attrs.evolve(
        said,
        deletion_timestamp=said.deletion_timestamp if is_shorter else was.deletion_timestamp,
        deletion_grace_period_seconds=shortest,
    )
