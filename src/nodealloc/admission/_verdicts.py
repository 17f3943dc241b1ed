"""Verdicts that say who has to make room."""

from __future__ import annotations

from typing import Final

from nodealloc import _attrs as attrs
from nodealloc._arguments import wrong
from nodealloc._typed import typed_fields
from nodealloc.verdicts import Admitted, NotYet

__all__ = ["ADMITTED", "MakingRoom", "RoomMade"]

ADMITTED: Final = Admitted()
"""What a handler with nothing to say answers; one for all, so that it is told quickly."""


@typed_fields
@attrs.frozen(kw_only=True)
class MakingRoom(NotYet):
    """It comes in when these have ended: end them, and ask again when a view has them gone.

    Attributes:
        victims: Uids, in the order in which they are to be ended; none of them can be spared.
    """

    victims: tuple[str, ...]

    def __attrs_post_init__(self) -> None:
        if not self.victims:
            raise wrong("MakingRoom.victims", self.victims, "uids of pods to end; NotYet says to wait")


@attrs.frozen(kw_only=True)
class RoomMade(Admitted):
    """It is in, and these are to be ended: what a kubelet answers at once.

    Attributes:
        victims: Uids, in the order in which they are to be ended.
    """

    victims: tuple[str, ...]
