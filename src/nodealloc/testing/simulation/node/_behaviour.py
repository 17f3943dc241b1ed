"""Values only: what a container does once it runs."""

from __future__ import annotations

from nodealloc import _attrs as attrs

__all__ = ["IMAGE", "Behaviour", "end_reason", "last_words"]

IMAGE = "busybox:0"
"""What is on the node from the beginning; without a tag it would be fetched for each start."""


@attrs.frozen(kw_only=True)
class Behaviour:
    """What a container does once it runs.

    Attributes:
        runs_s: Seconds until it ends by itself; infinite for one that does not.
        code: With what it then ends.
        leaves_s: Seconds that it takes to leave once it is asked to; infinite for
            one that has to be killed.
        leaves_with: The code with which it leaves where it was asked to.
        answers_s: Seconds that a command of a probe takes in it.
        hooks_s: Seconds that a hook takes, by its command; those that are absent take as long as a probe.
        fails: Commands that fail in it from the beginning.
    """

    runs_s: float
    code: int
    leaves_s: float
    leaves_with: int = 143
    answers_s: float = 0.0
    hooks_s: tuple[tuple[str, float], ...] = ()
    fails: frozenset[str] = frozenset()

    def takes_s(self, command: str) -> float:
        """How long a command takes in it."""
        return dict(self.hooks_s).get(command, self.answers_s)


def end_reason(code: int, /) -> str:
    """In which word the runtime says how a container ended."""
    return "Error" if code else "Completed"


def last_words(container_id: str, code: int, /) -> str:
    """What the runtime says of an end besides its exit status."""
    return f"{container_id} ended with {code}"
