"""Static pods as their manifests say them: what was taken away and is put back runs under another uid."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from nodealloc.podsources._editions import another_uid
from nodealloc.podspec import Pod

__all__ = ["Manifests"]


class Manifests:
    """Which uid a manifest has that says none, or says one that was used: that depends on how often it came.

    A pod is known here by the uid under which it runs; its source says it with the uid of its manifest.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._own: dict[str, str] = {}
        self._said: dict[str, tuple[Pod, Pod]] = {}

    def runs_as(self, pod: Pod, /) -> Pod:
        """A pod that a source has from now on, as it runs."""
        number = self._numbers.get(pod.name, 0)
        if not number:
            return pod
        uid = another_uid(pod.uid, number)
        self._own[uid] = pod.uid
        return attrs.evolve(pod, uid=uid)

    def put_back(self, pod: Pod, /) -> Pod:
        """The manifest, word for word, of a pod that its agent has seen taken away."""
        self._numbers[pod.name] = self._numbers.get(pod.name, 0) + 1
        return self._as_said(pod)

    def said(self, pods: Iterable[Pod], /) -> tuple[Pod, ...]:
        """What a source says of these; the very same objects while nothing of them changes."""
        return tuple(map(self._as_said, pods))

    def _as_said(self, pod: Pod) -> Pod:
        own = self._own.get(pod.uid)
        if own is None:
            return pod
        known = self._said.get(pod.uid)
        if known is None or known[0] is not pod:
            known = self._said[pod.uid] = pod, attrs.evolve(pod, uid=own)
        return known[1]
