"""Tests that fork, each run in a process of its own that has one thread.

A process in which gRPC, a `Loop` or xdist has threads must not fork: the child
has none of them, and all of their locks. So a test marked `forks` is run by a
child of multiprocessing's fork server, which never had a second thread.
"""

from __future__ import annotations

import multiprocessing
import traceback
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection

import pytest

__all__ = ["CLEAN", "run_apart"]

CLEAN = multiprocessing.get_context("forkserver")
CLEAN.set_forkserver_preload(["pytest", "nodealloc.volumes.plugins", "tests.real.test_devices_restarts"])
"""Processes start from one that has the slow imports behind it; it can be told of them only once."""

_SOON_S = 10.0


def run_apart(test: Callable[..., object], arguments: Mapping[str, object]) -> None:
    """Run a test in a process of its own; it passes, skips and fails as here."""
    reading, writing = CLEAN.Pipe(duplex=False)
    process = CLEAN.Process(target=_run, args=(writing, test, arguments))
    process.start()
    writing.close()
    try:
        how, text = reading.recv()
        process.join(_SOON_S)
    except EOFError:
        process.join()
        how, text = "failed", f"the process of this test ended with {process.exitcode} and without a word"
    finally:
        process.kill()
        process.join()
    if how == "skipped":
        pytest.skip(text)
    if how == "failed":
        pytest.fail(text, pytrace=False)


def _run(answer: Connection, test: Callable[..., object], arguments: Mapping[str, object]) -> None:
    how, text = "passed", ""
    try:
        test(**arguments)
    except pytest.skip.Exception as skipped:
        how, text = "skipped", str(skipped)
    except BaseException as error:  # noqa: BLE001 - the parent reports it
        # Assertions are not rewritten here: the locals say what the values were.
        told = traceback.TracebackException.from_exception(error, capture_locals=True)
        how, text = "failed", "".join(told.format())
    answer.send((how, text))
