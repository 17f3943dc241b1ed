"""What goes wrong when a machine is looked at."""

from __future__ import annotations

from nodealloc.errors import ConfigurationError, RetryableError

__all__ = ["MachineUnreadableError", "NotAMachineError"]


class MachineUnreadableError(RetryableError):
    """A file or directory of a sysfs was not given when it was read: the machine may have more than was seen.

    Attributes:
        path: Which.
        reason: What the system says.
    """

    path: str
    reason: str

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: cannot be read now ({reason}); mend that, and look at the machine again")
        self.path = path
        self.reason = reason


class NotAMachineError(ConfigurationError):
    """A directory is no sysfs root from which a machine can be known.

    Attributes:
        root: The directory that was looked at.
        reason: What is missing there.
        remedy: What to give instead.
    """

    root: str
    reason: str
    remedy: str

    def __init__(self, root: str, reason: str, remedy: str) -> None:
        super().__init__(root, reason, remedy)
        self.root = root
        self.reason = reason
        self.remedy = remedy

    def __str__(self) -> str:
        """Where, what and what to do."""
        return f"{self.root}: {self.reason}; {self.remedy}"
