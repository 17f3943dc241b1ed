"""Values only: which sockets are there, and which of them are the same as before."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

__all__ = ["Identity", "Sighting", "Sightings"]


@attrs.frozen
class Identity:
    """What tells a socket from another one that took its path.

    Attributes:
        device: Of the file system.
        inode: Number of the inode; a file system may give it to the next file.
        birth: What tells two owners of one number apart: the file handle with
            its generation where the file system has one, else the time of the
            last change in nanoseconds.
    """

    device: int
    inode: int
    birth: bytes


@attrs.frozen(kw_only=True)
class Sighting:
    """One socket, from its first look to its last.

    Attributes:
        path: Where it is.
        identity: What tells it from another one there.
        generation: Unique among all sightings for all time.
    """

    path: str
    identity: Identity
    generation: int


@attrs.frozen(kw_only=True)
class Sightings:
    """All sockets of one look.

    Attributes:
        by_path: Path to sighting.
        generation: The newest that was given out.
    """

    by_path: Mapping[str, Sighting] = attrs.field(factory=dict[str, Sighting])
    generation: int = 0

    def after(self, found: Mapping[str, Identity], /) -> Sightings:
        """The next look: same socket, same sighting; a new socket on an old path is a new one."""
        generation = self.generation
        by_path: dict[str, Sighting] = {}
        for path in sorted(found):
            known = self.by_path.get(path)
            if known is None or known.identity != found[path]:
                generation += 1
                known = Sighting(path=path, identity=found[path], generation=generation)
            by_path[path] = known
        return Sightings(by_path=by_path, generation=generation)
