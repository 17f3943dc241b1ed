"""The termination message of a container: what it is read from, and how much of it counts."""

from __future__ import annotations

from typing import Final

from nodealloc._typed import typed
from nodealloc.podspec import MessagePolicy

__all__ = [
    "LOG_LINES",
    "LOG_TAIL_BYTES",
    "MESSAGE_BYTES",
    "PATH_ANNOTATION",
    "POLICY_ANNOTATION",
    "termination_message",
]

PATH_ANNOTATION: Final = "io.kubernetes.container.terminationMessagePath"
"""Where the path of the message file in a container is kept beside it, as by a kubelet."""
POLICY_ANNOTATION: Final = "io.kubernetes.container.terminationMessagePolicy"
"""Where its policy is, likewise."""

MESSAGE_BYTES: Final = 4096
"""So much of the end of the message file counts."""
LOG_TAIL_BYTES: Final = 2048
"""So much of the end of the output counts, where the message is taken from there."""
LOG_LINES: Final = 80
"""So many lines of it, likewise."""


@typed
def termination_message(
    written: bytes, /, *, policy: MessagePolicy, has_failed: bool, output: bytes = b""
) -> str:
    """The termination message of a container.

    Args:
        written: Its message file; of a long one the end will do, `MESSAGE_BYTES`.
        policy: Whether its output stands in for an empty file.
        has_failed: Whether it ended otherwise than with 0; only then the output does.
        output: What it wrote, without the runtime's marks; the end will do.

    Returns:
        At most `MESSAGE_BYTES` of the file, or `LOG_LINES` lines and `LOG_TAIL_BYTES` of the
        output. Bytes that are no text are replaced.

    Source: kubelet ``kuberuntime_container.go``.
    """
    if written:
        return written[-MESSAGE_BYTES:].decode("utf-8", "replace")
    if policy is not MessagePolicy.FALLBACK_TO_LOGS_ON_ERROR or not has_failed:
        return ""
    # By newlines alone, as runtimes write logs: who draws a bar of progress goes back in its line.
    lines = output.split(b"\n")[-LOG_LINES - output.endswith(b"\n") :]
    return b"\n".join(lines)[-LOG_TAIL_BYTES:].decode("utf-8", "replace")
