"""Commands as a way of asking."""

from __future__ import annotations

from typing import Final

from nodealloc._arguments import is_other, wrong
from nodealloc._typed import typed, typed_on_error
from nodealloc.errors import PermanentError, UncertainError
from nodealloc.podspec import ExecAction
from nodealloc.probes._ports import Exec, Question
from nodealloc.probes._replies import Reply, ReplyKind

__all__ = ["ExecProber"]

_SHOWN_BYTES: Final = 1024
"""Of what a command says that are told; a kubelet keeps ten times that."""


class ExecProber:
    """A `Prober`: a command that leaves with 0 is well.

    Args:
        commands: Runs them; a `CommandRunner` of `nodealloc.runtime` is one.

    Source: kubelet ``pkg/probe/exec``.
    """

    asks_by: Final = "exec"

    @typed
    def __init__(self, commands: Exec, /) -> None:
        self._commands = commands

    @typed_on_error
    def probe(self, question: Question, /) -> Reply:
        """See `Prober.probe`; raises what the runner raises where nobody was asked."""
        action = question.action
        if not isinstance(action, ExecAction):
            raise wrong("an exec prober's question", action, "an ExecAction")
        try:
            left = self._commands.run_command(question.container_id, action.command, question.timeout_s)
        except UncertainError as error:
            # Without its own time-out the runtime was away, and nobody knows what the command said.
            given_s: object = getattr(error, "timeout_s", None)
            if not isinstance(given_s, (int, float)):
                raise
            said = f"the command has not ended after {question.timeout_s:g} s"
            survivors: object = getattr(error, "survivors", None)
            if isinstance(survivors, int) and survivors > 0:
                said += f"; {survivors} of its processes live on in the container"
            return Reply(ReplyKind.FAILURE, said)
        except PermanentError as error:
            return Reply(ReplyKind.REFUSED, str(error))
        if is_other(getattr(left, "code", None), int):
            raise wrong("an exec prober's run_command", left, "what a command left: code, output and errors")
        if left.code == 0:
            return Reply(ReplyKind.SUCCESS)
        said = (left.output + left.errors)[:_SHOWN_BYTES].decode("utf-8", "replace").strip()
        return Reply(ReplyKind.FAILURE, said or f"the command left with {left.code}")
