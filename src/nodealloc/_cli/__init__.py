"""Commands of `python -m nodealloc`; each is one module with `add_arguments` and `run`.

A command's module is imported only when it is asked for, so that looking at a
machine needs neither cattrs nor gRPC.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Protocol, TextIO, cast

from nodealloc.errors import NodeallocError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["COMMANDS", "main"]

COMMANDS = {
    "topology": "what the CPUs, caches and NUMA nodes of a machine are",
    "admit": "what a node would say to pods",
    "checkpoint": "look at, verify and convert remembered state",
}
"""Command to what it does; the module of the same name stands in this package."""

_ENDED_BY_PIPE = 128 + signal.SIGPIPE
"""Exit status of a shell's command whose reader has gone."""


class Command(Protocol):
    """What a command's module defines."""

    def add_arguments(self, parser: argparse.ArgumentParser, /) -> None:
        """Declare what the command takes."""
        ...

    def run(self, arguments: argparse.Namespace, /) -> int:
        """Do it; the exit status is 0, 1 for a verdict against, 2 for bad input."""
        ...


def _command(name: str) -> Command:
    return cast("Command", import_module(f"nodealloc._cli.{name}"))


def _version() -> str:
    try:
        return version("nodealloc")
    except PackageNotFoundError:
        return "that was not installed (a source tree)"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m nodealloc",
        description="Look at a machine, ask what a node would say to pods, and see what was remembered.",
    )
    parser.add_argument("--version", action="version", version=f"nodealloc {_version()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    arguments = sys.argv[1:] if argv is None else list(argv)
    for name, purpose in COMMANDS.items():
        child = commands.add_parser(name, help=purpose, description=purpose)
        if name in arguments[:1]:
            _command(name).add_arguments(child)
    parsed = parser.parse_args(arguments)
    # What the terminal cannot show is replaced: without `·` and `×` a picture still has the numbers.
    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        reconfigure(errors="replace")
    try:
        status = _command(parsed.command).run(parsed)
        if (out := cast("TextIO | None", sys.stdout)) is not None:  # it was closed: nobody wants to read
            out.flush()
    except NodeallocError as error:
        print(f"nodealloc {parsed.command}: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # `| head` has seen enough; what is still in the buffer goes nowhere
        _write_nowhere()
        return _ENDED_BY_PIPE
    except OSError as error:
        print(f"nodealloc {parsed.command}: {error}; see that what it writes has room", file=sys.stderr)
        _write_nowhere()
        return 2
    return status


def _write_nowhere() -> None:
    """What is still in the buffer would end in a traceback when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
