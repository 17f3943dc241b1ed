"""Whether a pod that a program made can live on a node; of a manifest its reader sees to that."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from nodealloc.errors import ConfigurationError

if TYPE_CHECKING:
    from nodealloc.podspec import Pod

__all__ = ["require_sound"]

_NO_PART: Final = (".", "..")
_UID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
"""As in a manifest: folders, cgroups and keys of a store are named after it, with something before it."""
_LONGEST_NAME: Final = 253
_SHOWN: Final = 80


def require_sound(pod: Pod, /) -> None:
    """Look at what a pod is told apart by, and what folders and cgroups are named after.

    Raises:
        ConfigurationError: It has no uid, name or container, two containers of one name, or
            something of that would lead a path elsewhere, or is no name of a file.
    """
    if not pod.uid or not pod.name:
        raise ConfigurationError(f"pod {pod.full_name} needs a uid and a name; sources give it both")
    if not pod.containers:
        raise ConfigurationError(f"pod {pod.full_name} has no containers; a pod runs at least one")
    names = [one.name for one in (*pod.all_containers, *pod.ephemeral_containers)]
    if "" in names:
        raise ConfigurationError(f"pod {pod.full_name} has a container without a name; give it one")
    if len(set(names)) < len(names):
        twice = ", ".join(sorted({one for one in names if names.count(one) > 1}))
        raise ConfigurationError(f"pod {pod.full_name} has containers {twice} twice; give each its own name")
    for part in (pod.uid, pod.namespace, pod.name, *names):
        if "/" in part or "\0" in part or part in _NO_PART:
            raise ConfigurationError(
                f"pod {pod.full_name}: {part!r} would lead a path elsewhere; use letters, digits, '-' and '.'"
            )
    if not _UID.fullmatch(pod.uid):
        raise ConfigurationError(
            f"pod {pod.full_name[:_SHOWN]!a}: {pod.uid[:_SHOWN]!a} is no uid; "
            "use up to 128 letters, digits, '-', '_' and '.'"
        )
    for part in (pod.namespace, pod.name, *names):
        if not part.isprintable() or len(part) > _LONGEST_NAME:
            raise ConfigurationError(
                f"pod of uid {pod.uid}: {part[:_SHOWN]!a} is no name; "
                f"use up to {_LONGEST_NAME} letters, digits, '-' and '.'"
            )
