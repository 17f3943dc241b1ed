"""The folders of pods below one root: listed, and removed without ever crossing a mount."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Final

from nodealloc._arguments import absolute
from nodealloc._mountinfo import parse_mountinfo, read_mountinfo
from nodealloc._typed import typed, typed_methods
from nodealloc.errors import ConfigurationError, PermanentError
from nodealloc.podlife._housekeeping import Remnant, RemnantKind
from nodealloc.volumes import MountedHereError, SafeRoot

__all__ = ["MountInTheWayError", "PodFolders"]

_BEHIND: Final = chr(ord("/") + 1)


class MountInTheWayError(PermanentError):
    """Something is mounted in a folder that was to be removed; what is below it was not touched.

    Attributes:
        path: Where.
    """

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} is on another mount than the folder it is in; unmount it, then remove again"
        )
        self.path = path


@typed_methods
class PodFolders:
    """Folders that are named by their pods' uids.

    Args:
        root: The directory that they are in; of nobody else's.
        kind: What they are.
        mountinfo: Reads what is mounted where.
    """

    @typed
    def __init__(
        self,
        root: str,
        /,
        *,
        kind: RemnantKind = RemnantKind.FOLDER,
        mountinfo: Callable[[], str] = read_mountinfo,
    ) -> None:
        absolute("PodFolders.root", root)
        self._root = os.path.realpath(root)
        self._kind = kind
        self._mountinfo = mountinfo

    def found(self) -> Sequence[Remnant]:
        """Every folder, with what is mounted at it or below it; nothing where the root is not there.

        Raises:
            OSError: The root cannot be read.
        """
        try:
            names = sorted(one.name for one in os.scandir(self._root) if one.is_dir(follow_symlinks=False))
        except FileNotFoundError:
            return ()
        points = sorted(one.target for one in parse_mountinfo(self._mountinfo()))
        return tuple(
            Remnant(
                uid=name,
                kind=self._kind,
                where=path,
                mounts=_at(path, points),
            )
            for name in names
            for path in (f"{self._root}/{name}",)
        )

    def remove(self, remnant: Remnant, /) -> None:
        """Remove a folder with all that is in it; one that is gone is no error.

        Each directory is opened without following links, and left alone where it
        is on another mount than the root, however the mount came there.

        Raises:
            MountInTheWayError: Something is mounted in it. What is beside that may be gone.
            ConfigurationError: It is none of these folders.
            OSError: It cannot be removed.
        """
        parent, name = os.path.split(remnant.where)
        if parent != self._root or name in {"", ".", ".."}:
            raise ConfigurationError(
                f"{remnant.where} is no folder below {self._root}; give what `found` told"
            )
        if not os.path.isdir(self._root):  # noqa: PTH112 - no Path elsewhere here
            return
        try:
            SafeRoot(self._root).remove_tree(remnant.where)
        except MountedHereError as error:
            raise MountInTheWayError(error.paths[0]) from error


def _at(path: str, points: Sequence[str]) -> tuple[str, ...]:
    """Of sorted mount points those at a path or below it; looks at no others, of which there are many."""
    here = points[bisect_left(points, path) : bisect_right(points, path)]
    below = points[bisect_left(points, f"{path}/") : bisect_left(points, f"{path}{_BEHIND}")]
    return (*here, *below)
