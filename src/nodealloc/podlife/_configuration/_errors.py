"""Why a container or a sandbox cannot be configured."""

from __future__ import annotations

from nodealloc.errors import RetryableError

__all__ = ["ContainerConfigError", "RootForbiddenError", "SandboxConfigError"]


class ContainerConfigError(RetryableError):
    """A container cannot be configured as things are; what it lacks may come.

    Attributes:
        reason: One word for programs: `CreateContainerConfigError`.
        container: Which container.
        message: For people.
    """

    reason = "CreateContainerConfigError"

    def __init__(self, container: str, message: str, /) -> None:
        super().__init__(message, after_s=10.0)
        self.container = container
        self.message = message


class RootForbiddenError(ContainerConfigError):
    """A container must not run as root, and would, or nobody can tell."""


class SandboxConfigError(RetryableError):
    """A sandbox cannot be configured as the pod asks for it.

    Attributes:
        message: For people.
    """

    def __init__(self, message: str, /) -> None:
        super().__init__(message, after_s=10.0)
        self.message = message
