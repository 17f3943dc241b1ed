"""Values only: which sockets are there, and which of them are the same as before."""

from __future__ import annotations

from collections.abc import Mapping

from nodealloc import _attrs as attrs
from nodealloc._frozen import freeze

__all__ = ["Sighting", "Sightings", "SocketIdentity"]


@attrs.frozen
class SocketIdentity:
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
    identity: SocketIdentity
    generation: int


@attrs.frozen(kw_only=True)
class Sightings:
    """All sockets of one look.

    Attributes:
        by_path: Path to sighting.
        generation: The newest that was given out.
        left_out: Paths of sockets beyond the most that are looked after, ascending.
    """

    by_path: Mapping[str, Sighting] = attrs.field(factory=dict[str, Sighting], validator=freeze)
    generation: int = 0
    left_out: tuple[str, ...] = ()

    def after(self, found: Mapping[str, SocketIdentity], /, *, most: int | None = None) -> Sightings:
        """The next look: same socket, same sighting; a new socket on an old path is a new one.

        Args:
            found: Path to what stands there.
            most: How many sockets are looked after; None for all. Paths that were
                there before come first, then the others by name.
        """
        generation = self.generation
        by_path: dict[str, Sighting] = {}
        wanted = sorted(found, key=lambda path: (path not in self.by_path, path))
        left_out = [] if most is None else wanted[most:]
        for path in sorted(wanted[:most]):
            known = self.by_path.get(path)
            if known is None or known.identity != found[path]:
                generation += 1
                known = Sighting(path=path, identity=found[path], generation=generation)
            by_path[path] = known
        return Sightings(by_path=by_path, generation=generation, left_out=tuple(sorted(left_out)))
