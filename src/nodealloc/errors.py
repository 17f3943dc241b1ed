"""Errors: the class says whether to try again, the fields carry the numbers.

| caught as        | means                                   | what to do            |
|------------------|-----------------------------------------|-----------------------|
| `RetryableError` | not now: busy or absent; nothing was changed | again after `after_s` |
| `UncertainError` | it may have been done: the answer is lost | look, then decide     |
| `PermanentError` | never, as asked: the input has to change | report it             |
| `ConfigurationError` | an argument, option or document that cannot be meant | mend it |
| `DecodeError`    | of these, a document: each fault, with its path | mend it       |

A `ConfigurationError` is a `ValueError` as well; one `except` catches whatever is
wrong in a configuration.

A refusal of a pod is no error: it is a value (`nodealloc.verdicts.Refused`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodealloc import _attrs as attrs

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "ConfigurationError",
    "DecodeError",
    "Fault",
    "NodeallocError",
    "PermanentError",
    "RetryableError",
    "UncertainError",
]


class NodeallocError(Exception):
    """Root of every error that this library raises on purpose.

    It can be copied, and sent to another process, with all its fields.
    """

    def __reduce__(self) -> tuple[object, ...]:
        # Python's own way calls the class with the text, and few are made from a text alone.
        return _remade, (type(self), self.args), self.__getstate__()


def _remade(kind: type[NodeallocError], args: tuple[object, ...]) -> NodeallocError:
    return kind.__new__(kind, *args)


class RetryableError(NodeallocError):
    """The same call may succeed later; nothing was changed by this one.

    Attributes:
        after_s: How long to wait before the next try, in seconds; 0 or more.
    """

    after_s: float

    def __init__(self, message: str, /, *, after_s: float = 1.0) -> None:
        super().__init__(message)
        self.after_s = after_s


class UncertainError(NodeallocError):
    """What was asked for may have been done, and nobody knows: look before the next try.

    Attributes:
        after_s: How long to wait before that, in seconds; 0 or more.
    """

    after_s: float

    def __init__(self, message: str, /, *, after_s: float = 1.0) -> None:
        super().__init__(message)
        self.after_s = after_s


class PermanentError(NodeallocError):
    """The same call will fail again until something else changes."""


class ConfigurationError(PermanentError, ValueError):
    """What was handed in cannot be meant: an argument, an option, a text, a document.

    Nothing was changed. The text says where, what came, and what would be right.
    """


@attrs.frozen
class Fault:
    """One thing that is wrong in an input.

    Attributes:
        path: Where, as `$`, `$.spec.containers[0].name`, or `byte 17`.
        reason: What is wrong there and what would be right.
    """

    path: str
    reason: str

    def __str__(self) -> str:
        """`reason @ path`."""
        return f"{self.reason} @ {self.path}"


class DecodeError(ConfigurationError):
    """Outside data do not fit; lists every fault, not only the first.

    Attributes:
        source: What was read: a file name, `pod default/web`, `cpuset`.
        faults: At least one `Fault`, in document order.
    """

    source: str
    faults: tuple[Fault, ...]

    def __init__(self, source: str, faults: Iterable[Fault]) -> None:
        self.source = source
        self.faults = tuple(faults)
        if not self.faults:
            raise ValueError(f"DecodeError for {source!r} without a fault: name at least one")
        super().__init__(source, self.faults)

    def __str__(self) -> str:
        """The source, then one `reason @ path` a line."""
        if len(self.faults) == 1:
            return f"{self.source}: {self.faults[0]}"
        lines = "\n".join(f"  {fault}" for fault in self.faults)
        return f"{self.source}: {len(self.faults)} faults\n{lines}"
