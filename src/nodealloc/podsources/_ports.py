"""The Protocol that is called here: a source of pods; who says when to read it is `nodealloc.dirwatch`'s."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from nodealloc import _attrs as attrs
from nodealloc._frozen import freeze
from nodealloc._typed import typed_fields
from nodealloc.dsw_asw import Cancel
from nodealloc.podspec import Pod

__all__ = ["Reading", "Source", "SourceFault"]


@attrs.frozen(kw_only=True)
class SourceFault:
    """Something of a source that is not as it should be; for people.

    Attributes:
        where: A file, or an address.
        what: What is wrong, and what to do about it.
    """

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@typed_fields
@attrs.frozen(kw_only=True)
class Reading:
    """One answer of a source.

    Attributes:
        pods: All that it has.
        faults: What could not be read, or counts for less than it looks.
        gone: Where faults stood that are over since what had them is no more, such as a file that was away
            for long enough; for people.
        leaving: Full names of those of `pods` that may be about to go, such as one whose file is away.
        places: Where pods stand, by full name, such as a file; needed for those that `unread` is to keep.
        unread: Places that are there, and of which nobody knows whether they have a pod, such as a file that
            could not be read since the process began. Pods that stood there at the last reading of an
            earlier process stay (`PodSources(known=...)`).
        is_synced: Whether it knows all of its pods by now. Until it does, its
            answer changes nothing.
        again_after_s: When to read again, if sooner than usual; None for no hurry.
    """

    pods: tuple[Pod, ...] = attrs.field(default=(), converter=tuple[Pod, ...])
    faults: tuple[SourceFault, ...] = ()
    gone: tuple[str, ...] = ()
    leaving: frozenset[str] = frozenset()
    places: Mapping[str, str] = attrs.field(factory=dict[str, str], validator=freeze)
    unread: frozenset[str] = frozenset()
    is_synced: bool = True
    again_after_s: float | None = None


class Source(Protocol):
    """Knows which pods should be here: a folder, an address, a watch of your own."""

    def read(self, cancel: Cancel, /) -> Reading:
        """All its pods as they are now; may be slow, and is never called twice at a time.

        Raises any exception when it cannot tell; what it said last then stays. So it does where a pod has
        no uid, name or container, or two containers of one name: nobody could run it.
        """
        ...
