"""What can go wrong with volumes, named by pod and volume."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nodealloc.errors import PermanentError, RetryableError

__all__ = [
    "ClaimError",
    "InvalidVolumeError",
    "MountBusyError",
    "MountError",
    "MountedHereError",
    "OutsideRootError",
    "PodVolumesError",
]


class InvalidVolumeError(PermanentError):
    """A volume that cannot be as the pod or its claim describes it.

    Attributes:
        volume: The pod's name of it.
        reason: What is wrong and what would be right.
    """

    def __init__(self, volume: str, reason: str) -> None:
        super().__init__(f"volume {volume!r}: {reason}")
        self.volume = volume
        self.reason = reason


class ClaimError(RetryableError):
    """A claim that gives no volume now: unbound, being deleted, not found.

    Attributes:
        claim: `namespace/name`.
        reason: Why, and what would mend it.
    """

    def __init__(self, claim: str, reason: str, /, *, after_s: float = 1.0) -> None:
        super().__init__(f"claim {claim}: {reason}", after_s=after_s)
        self.claim = claim
        self.reason = reason


class PodVolumesError(RetryableError):
    """Some volumes of a pod could not be resolved; the others go on.

    Attributes:
        pod: `namespace/name`.
        errors: Volume name to its error; at least one.
    """

    def __init__(self, pod: str, errors: Mapping[str, Exception]) -> None:
        lines = "; ".join(str(error) for error in errors.values())
        super().__init__(f"pod {pod}: {lines}", after_s=0.0)
        self.pod = pod
        self.errors: dict[str, Exception] = dict(errors)


class MountError(RetryableError):
    """The kernel refused a mount or an unmount.

    Attributes:
        action: `mount` or `unmount`.
        target: Where.
        errno: The kernel's number.
    """

    def __init__(self, action: str, target: str, errno: int, text: str) -> None:
        super().__init__(f"{action} {target}: {text} (errno {errno})")
        self.action = action
        self.target = target
        self.errno = errno


class MountBusyError(MountError):
    """Somebody still uses the mount: an open file, a working directory, a mount below it."""


class OutsideRootError(PermanentError):
    """A path that leads outside the root: refused, and nothing was touched.

    Attributes:
        path: As it was asked for.
        reason: A symbolic link, a `..`, a name that is no name.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}; nothing outside the root is mounted on or deleted")
        self.path = path
        self.reason = reason


class MountedHereError(RetryableError):
    """A tree that was to be deleted holds a mount; nothing below the mount was touched.

    Attributes:
        paths: The mount points that were found.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths: tuple[str, ...] = tuple(paths)
        super().__init__(f"still mounted: {', '.join(self.paths)}; unmount before deleting")
