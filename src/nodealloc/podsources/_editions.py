"""Static pods as their names go through time: which edition is which pod; pure."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from nodealloc import _attrs as attrs
from nodealloc._frozen import freeze
from nodealloc._typed import typed_on_error
from nodealloc.podsources._rules import RIGHT, Rules
from nodealloc.podsources._static import HASH
from nodealloc.podspec import Pod

__all__ = ["Edition", "Editions", "PodForms", "another_uid"]

_NAMES: Final = uuid.UUID("0f6b7e7c-8d55-5c0a-9a51-6a2f0a4de1b7")
"""Name space of the uids of later pods of one name; ours."""
_MOST_GONE: Final = 1000
"""Names that are not there any more and are kept."""


@attrs.frozen(kw_only=True)
class Edition:
    """What became of one full name.

    Attributes:
        number: How many pods had this name before.
        content: Of what its manifest said last, as a hash.
        is_there: Whether its source still has it.
        has_ended: Whether this pod has to end, or has ended, for another reason
            than an edit: no container of it is ever started again.
    """

    number: int = 0
    content: str = ""
    is_there: bool = True
    has_ended: bool = False

    def read(self, content: str, rules: Rules, /) -> Edition:
        """The same name as its source has it now."""
        is_edited = content != self.content
        is_new = rules.renews_uid and (not self.is_there or (self.has_ended and is_edited))
        return Edition(
            number=self.number + is_new,
            content=content,
            has_ended=self.has_ended and not is_new,
        )


class PodForms:
    """What each pod of a source came to: a reading costs what is new in it. Not for several threads.

    A pod is known by being the very same object, as a source that reads only
    files that changed hands it out again.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Pod, str, tuple[int, Pod] | None]] = {}

    def keep_only(self, pods: Iterable[Pod], /) -> None:
        """Forget all others; held here, so that no other object takes an id meanwhile."""
        ids = {id(pod) for pod in pods}
        for gone in self._known.keys() - ids:
            del self._known[gone]

    def content(self, pod: Pod, /) -> str:
        """What its manifest says, as a hash."""
        known = self._known.get(id(pod))
        if known is None:
            known = self._known[id(pod)] = (pod, _content(pod), None)
        return known[1]

    def told(self, pod: Pod, number: int, rules: Rules, /) -> Pod:
        """It as everybody else is told of it."""
        content = self.content(pod)
        made = self._known[id(pod)][2]
        if made is None or made[0] != number:
            made = (number, _as_told(pod, number, content, rules))
            self._known[id(pod)] = (pod, content, made)
        return made[1]


@attrs.frozen(kw_only=True)
class Editions:
    """The static pods of one source by full name, with those that were there once.

    An immutable value. Kept over a restart (`editions_to_checkpoint`), it keeps
    every uid as it is; without it, a pod that had predecessors begins as the
    first of its name again.

    Of more than a thousand names that are not there any more all are forgotten.
    Names that nobody knows then begin with `least`, so that no uid comes twice.

    Attributes:
        by_name: Full name to what became of it.
        least: More than the number of any pod whose name was forgotten.
        places: Full name to where it stands in its source, such as a file; of those that are there.
        uids: Full name to the uid of those that `places` has.
    """

    by_name: Mapping[str, Edition] = attrs.field(factory=dict[str, Edition], validator=freeze)
    least: int = 0
    places: Mapping[str, str] = attrs.field(factory=dict[str, str], validator=freeze)
    uids: Mapping[str, str] = attrs.field(factory=dict[str, str], validator=freeze)

    @typed_on_error
    def read(
        self,
        pods: Iterable[Pod],
        /,
        *,
        rules: Rules = RIGHT,
        forms: PodForms | None = None,
        is_ending: Callable[[str], bool] | None = None,
        places: Mapping[str, str] | None = None,
        unread: Collection[str] = (),
    ) -> tuple[Editions, tuple[Pod, ...]]:
        """Take over a whole listing.

        Args:
            pods: All pods of the source, with the uid that the manifest gives or
                that its name and source give.
            rules: Where the kubelet is wrong.
            forms: What the same pods came to before; for one source and one set of rules.
            is_ending: Whether the pod of a uid has to end, or has ended; None where only `ended` says so.
            places: Where pods stand, by full name (`Reading.places`).
            unread: Places of which nobody knows whether they have a pod: who stood there stays known.

        Returns:
            What is known from now on, and the pods with the uids they run under.
            Of twins, pods with one full name, the one that was read last stays the first; where none
            was, they are taken as they come.
        """
        names: dict[str, Edition] = {}
        told: list[Pod] = []
        forms = PodForms() if forms is None else forms
        pods = tuple(pods)
        forms.keep_only(pods)
        for pod in self._known_first(pods, forms) if rules.keeps_known else pods:
            content = forms.content(pod)
            edition = names.get(pod.full_name)
            if edition is None:
                was = self.by_name.get(pod.full_name, Edition(number=self.least, content=content))
                is_edited = content != was.content and not pod.deletion_timestamp
                if is_edited and is_ending is not None and is_ending(forms.told(pod, was.number, rules).uid):
                    was = attrs.evolve(was, has_ended=True)
                edition = was.read(content, rules)
            names.setdefault(pod.full_name, edition)
            told.append(forms.told(pod, edition.number, rules))
        stood = {name: place for name, place in (places or {}).items() if name in names}
        uids = {pod.full_name: pod.uid for pod in reversed(told) if pod.full_name in stood}
        for name in [one for one in self.unread(unread) if one not in names]:
            names[name], stood[name], uids[name] = self.by_name[name], self.places[name], self.uids[name]
        gone = {
            name: attrs.evolve(was, is_there=False) if was.is_there else was
            for name, was in self.by_name.items()
            if name not in names
        }
        if len(gone) > _MOST_GONE:
            numbers = [one.number + 1 for one in gone.values()] if rules.renews_uid else []
            least = max([self.least, *numbers])
            return Editions(by_name=names, least=least, places=stood, uids=uids), tuple(told)
        by_name = {**gone, **names}
        return Editions(by_name=by_name, least=self.least, places=stood, uids=uids), tuple(told)

    def unread(self, places: Collection[str], /) -> list[str]:
        """Full names of pods that stood at these places when they were read last."""
        there = self.by_name.keys() & self.uids.keys()
        return [name for name, place in self.places.items() if name in there and place in places]

    def _known_first(self, pods: tuple[Pod, ...], forms: PodForms) -> Iterable[Pod]:
        """Of twins the one that was read last before the others, whose order would make it another pod."""
        if len({pod.full_name for pod in pods}) == len(pods):
            return pods
        known = {name: one.content for name, one in self.by_name.items()}
        stays = {pod.full_name for pod in pods if forms.content(pod) == known.get(pod.full_name)}
        return sorted(
            pods,
            key=lambda pod: pod.full_name in stays and forms.content(pod) != known[pod.full_name],
        )

    def ended(self, full_name: str, /) -> Editions:
        """The pod of that name has ended, and not by an edit: put back or edited, it is a new one."""
        was = self.by_name.get(full_name)
        if was is None or was.has_ended:
            return self
        return attrs.evolve(self, by_name={**self.by_name, full_name: attrs.evolve(was, has_ended=True)})


def _content(pod: Pod) -> str:
    text = json.dumps(pod.to_manifest(), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def another_uid(uid: str, what: str | int, /) -> str:
    """The uid of a pod whose manifest has this one, and that is another by what it says, or by its number."""
    return str(uuid.uuid5(_NAMES, f"{uid}/{what}"))


def _as_told(pod: Pod, number: int, content: str, rules: Rules) -> Pod:
    uid = pod.uid
    if not rules.keeps_uid and HASH not in pod.annotations:
        uid = another_uid(pod.uid, content)
    if number:
        uid = another_uid(uid, number)
    return attrs.evolve(pod, uid=uid, annotations={**pod.annotations, HASH: content})
