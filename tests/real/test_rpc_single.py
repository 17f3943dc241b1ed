"""Calls on the event loop: whoever speaks badly, too much, or no more; and the end of a program."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodealloc._rpc.conversations import Conversations
from nodealloc._rpc.single import Answer
from nodealloc.testing.devices import wait_until

pytestmark = pytest.mark.real

HELLO = b"\0\0\0\4\0\0\0\0\0"
HEADERS = b"\x88\x00\x0ccontent-type\x10application/grpc"  # :status: 200, and one literal header
FIRST = b"\0\0" + bytes([len(HEADERS)]) + b"\1\4\0\0\0\1" + HEADERS
LARGE = b"\0\x20\5\0\0\0\0\0\1" + b"\0\0\0\x20\0" + bytes(1 << 13)


@pytest.fixture
def path() -> Iterator[Path]:
    """Of a socket, short enough."""
    directory = Path(tempfile.mkdtemp(prefix="na-"))
    yield directory / "s.sock"
    shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def speaking(path: Path, *words: bytes, hangs: bool) -> Iterator[list[socket.socket]]:
    """Whoever says this to each caller, and hangs up after it, or not."""
    there: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                caller, _ = listening.accept()
            except OSError:
                return
            there.append(caller)
            with contextlib.suppress(OSError):
                for word in words:
                    caller.sendall(word)
                    time.sleep(0.05)
            if not hangs:
                caller.close()

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield there
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
            for one in there:
                one.close()


def asked(path: Path, limit_s: float = 5.0) -> Answer:
    """How a call ends."""
    call = Conversations(1).ask(str(path), "/a.B/C", b"", limit_s=limit_s, wait_s=5.0, largest_bytes=1 << 12)
    return call.result(20.0)


@pytest.mark.parametrize(
    ("words", "hangs", "status"),
    [
        ((), False, "UNAVAILABLE"),
        ((b"HTTP/1.1 400 Bad Request\r\n\r\n",), False, "UNAVAILABLE"),
        ((HELLO,), False, "UNAVAILABLE"),
        ((HELLO, FIRST, LARGE), True, "RESOURCE_EXHAUSTED"),
        ((HELLO, b"\0\0\4\3\0\0\0\0\1\0\0\0\7"), True, "UNAVAILABLE"),
        ((HELLO,), True, "DEADLINE_EXCEEDED"),
        ((), True, "DEADLINE_EXCEEDED"),
    ],
    ids=["hangs up", "HTTP/1", "hello and gone", "too large", "reset", "hangs", "silent"],
)
def test_what_is_no_answer_says_why(
    path: Path, words: tuple[bytes, ...], status: str, *, hangs: bool
) -> None:
    """In gRPC's own statuses, and no connection is left."""
    with speaking(path, *words, hangs=hangs) as there:
        answer = asked(path, 1.0)
        assert (answer.status, answer.data) == (status, b"")
        assert answer.detail
        assert answer.is_away == (status != "RESOURCE_EXHAUSTED")
        for one in there:
            with contextlib.suppress(OSError):
                one.settimeout(3.0)
                while one.fileno() >= 0 and one.recv(1 << 16):
                    pass


def test_nothing_is_dialled_through_a_link(path: Path) -> None:
    """A path is resolved before; whoever turns it into a link afterwards gets no call."""
    with speaking(path, hangs=True) as there:
        link = path.with_name("link.sock")
        link.symlink_to(path)
        assert asked(link).status == "UNAVAILABLE"
        for one in there:  # somebody looked whether anybody listens, and said nothing
            assert one.recv(1) == b""


HANGS = """
import os, sys, time
from nodealloc.pluginreg import GrpcRegistration
path = sys.argv[1]
client = GrpcRegistration()
calls = [client.info_later(path) for _ in range(20)]
time.sleep(float(sys.argv[2]))
if sys.argv[3] == "fork":
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
print(sum(call.done() for call in calls))
"""


PYTHON = (sys.executable, "-X", "dev", "-W", "ignore::DeprecationWarning", "-c")


# One fork in some dozens ends by a segmentation fault in gRPC's own threads, which do not outlive it; on a
# machine that is busy several in a row may.
@pytest.mark.flaky(reruns=6, reruns_delay=2)
@pytest.mark.parametrize("how", ["ends", "fork"])
@pytest.mark.parametrize("after_s", [0.0, 0.4])
def test_a_program_ends_with_calls_under_way(path: Path, after_s: float, how: str) -> None:
    """At once, and says nothing."""
    with speaking(path, HELLO, hangs=True) as there:
        began_s = time.monotonic()
        done = subprocess.run(
            [*PYTHON, HANGS, str(path), str(after_s), how],
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        # gRPC itself says of a fork that it does not prepare for it while calls are under way.
        said = [line for line in done.stderr.splitlines() if "fork_posix.cc" not in line]
        assert (done.returncode, done.stdout, said) == (0, "0\n", [])
        assert time.monotonic() - began_s < 10.0
        wait_until(lambda: bool(there) or after_s == 0.0)
