"""Run a piece of a test in a child process with a private mount namespace."""

from __future__ import annotations

import ctypes
import os
import sys
import traceback
from collections.abc import Callable

import pytest

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
_MS_REC_PRIVATE = (1 << 14) | (1 << 18)


def enter_namespace() -> str:
    """Give this process mounts of its own; returns why the machine refuses, or ""."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS) != 0:
        return f"unshare: {os.strerror(ctypes.get_errno())}"
    if libc.mount(b"none", b"/", None, ctypes.c_ulong(_MS_REC_PRIVATE), None) != 0:
        return f"private mounts: {os.strerror(ctypes.get_errno())}"
    return ""


def enter_user_namespace() -> str:
    """Give this process users and mounts of its own, those that are there locked; why not, or ""."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS) != 0:
        return f"unshare with users: {os.strerror(ctypes.get_errno())}"
    return ""


def in_namespace(child: Callable[[], object]) -> None:
    """Run `child` in a forked process with mounts of its own; its failure is the test's.

    Skips with the reason where the machine refuses. All mounts vanish with the child.
    """
    sys.stdout.flush()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        status, report = 0, ""
        try:
            os.close(read)
            report = enter_namespace()
            status = 77 if report else 0
            if not report:
                child()
        except BaseException:  # noqa: BLE001 - everything is reported to the parent
            status, report = 1, traceback.format_exc()
        os.write(write, report.encode()[-60000:])
        os._exit(status)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        report = pipe.read().decode()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status == 77:
        pytest.skip(report)
    assert status == 0, report
