"""Events of a runtime: each is heard at once, by the one thread that follows them, until that has to stop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

import grpc
import pytest

from nodealloc._proto import runtime_v1_pb2 as wire
from nodealloc._rpc.single import calls_loop
from nodealloc.cri import CriRuntime
from nodealloc.runtime import RuntimeRefusedError, RuntimeUnavailableError
from nodealloc.testing.dsw_asw import ManualCancel

EVENTS = "runtime.v1.RuntimeService"
WORKERS = "of the test's server"


class Teller:
    """A runtime that has nothing but events, which a test hands it."""

    def __init__(self, path: Path) -> None:
        self.events: SimpleQueue[bytes | None] = SimpleQueue()
        self._server = grpc.server(ThreadPoolExecutor(2, thread_name_prefix=WORKERS))
        method = grpc.unary_stream_rpc_method_handler(self._told)
        handler = grpc.method_handlers_generic_handler(EVENTS, {"GetContainerEvents": method})
        self._server.add_generic_rpc_handlers((handler,))
        self._server.add_insecure_port(f"unix:{path}")
        self._server.start()

    def _told(self, _request: bytes, _context: grpc.ServicerContext) -> Iterator[bytes]:
        while (event := self.events.get()) is not None:
            yield event

    def stop(self) -> None:
        """End it, and the stream."""
        self.events.put(None)
        self._server.stop(0).wait()


@pytest.fixture
def teller(tmp_path: Path) -> Iterator[Teller]:
    """One at `c.sock`."""
    made = Teller(tmp_path / "c.sock")
    yield made
    made.stop()


class Follower(threading.Thread):
    """Follows, and counts what it hears."""

    def __init__(self, path: Path, *, tells_starts: bool = True) -> None:
        super().__init__(name="follower", daemon=True)
        self.cancel = ManualCancel()
        self.heard: SimpleQueue[float] = SimpleQueue()
        self.ended: list[Exception | None] = []
        self._runtime = CriRuntime(path, tells_starts=tells_starts)

    def run(self) -> None:
        """Until it is asked to stop, or the stream ends."""
        try:
            self._runtime.follow(lambda: self.heard.put(time.monotonic()), self.cancel)
        except (RuntimeUnavailableError, RuntimeRefusedError) as error:
            self.ended.append(error)
        else:
            self.ended.append(None)

    def hears(self, count: int) -> None:
        """So many more."""
        for _ in range(count):
            self.heard.get(timeout=10.0)


def _slept(one: threading.Thread) -> int:
    """How often a thread has gone to sleep."""
    lines = Path(f"/proc/self/task/{one.native_id}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("voluntary_ctxt")).split()[1])


def test_events_take_no_thread_beside_the_one_that_follows(tmp_path: Path, teller: Teller) -> None:
    """One of gRPC's beside it would hand on each event, and both would wake ten times a second meanwhile.

    The loop of all calls is everybody's, and sleeps as well.
    """
    asyncio.run_coroutine_threadsafe(asyncio.sleep(0), calls_loop()).result(10.0)
    before = set(threading.enumerate())
    follower = Follower(tmp_path / "c.sock")
    follower.start()
    teller.events.put(b"")
    follower.hears(2)  # the first is that the stream was asked for
    more = {one for one in threading.enumerate() if not one.name.startswith(WORKERS)} - before
    assert more == {follower}
    time.sleep(0.1)
    slept = {one: _slept(one) for one in threading.enumerate() if not one.name.startswith(WORKERS)}
    time.sleep(0.5)
    assert _slept(follower) - slept[follower] <= 1
    loops = [one for one in slept if one.name == "calls"]
    assert loops
    assert all(_slept(one) - slept[one] <= 1 for one in loops)
    for _ in range(20):
        began_s = time.monotonic()
        teller.events.put(b"")
        assert follower.heard.get(timeout=10.0) - began_s < 5.0
    follower.cancel.set()
    follower.join(10.0)
    assert follower.ended == [None]


def test_a_stream_that_ends_and_one_that_breaks_are_told_apart_from_one_that_was_stopped(
    tmp_path: Path, teller: Teller
) -> None:
    """Whoever follows asks again; who asked to stop hears of no fault, though events come meanwhile."""
    ends = Follower(tmp_path / "c.sock")
    ends.start()
    teller.events.put(b"")
    ends.hears(2)
    teller.events.put(None)
    ends.join(10.0)
    assert [type(one) for one in ends.ended] == [RuntimeUnavailableError]
    stopped = Follower(tmp_path / "c.sock")
    stopped.start()
    stopped.hears(1)
    for _ in range(100):
        teller.events.put(b"")
    stopped.cancel.set()
    stopped.join(10.0)
    assert stopped.ended == [None]
    breaks = Follower(tmp_path / "c.sock")
    breaks.start()
    breaks.hears(1)
    teller.stop()
    breaks.join(10.0)
    assert [type(one) for one in breaks.ended] == [RuntimeUnavailableError]


def event(kind: wire.ContainerEventType) -> bytes:
    """An event of a kind."""
    return wire.ContainerEventResponse(container_id="c", container_event_type=kind).SerializeToString()


def test_who_makes_and_starts_everything_is_told_of_ends_alone(tmp_path: Path, teller: Teller) -> None:
    """And of what nobody here can read: it is a hint to look, and no more."""
    begun = [event(wire.CONTAINER_CREATED_EVENT), event(wire.CONTAINER_STARTED_EVENT)]
    over = [event(wire.CONTAINER_STOPPED_EVENT), event(wire.CONTAINER_DELETED_EVENT), b"\xff"]
    follower = Follower(tmp_path / "c.sock", tells_starts=False)
    follower.start()
    follower.hears(1)
    for one in (*begun, *over, *begun):
        teller.events.put(one)
    follower.hears(len(over))
    time.sleep(0.2)
    assert follower.heard.empty()
    follower.cancel.set()
    follower.join(10.0)
    assert follower.ended == [None]


def test_a_stream_that_ends_as_soon_as_it_is_asked_for_is_one_of_a_runtime_without_events(
    tmp_path: Path, teller: Teller
) -> None:
    """CRI-O ends it so as long as its pod events are off: asking each second for it leads nowhere."""
    teller.events.put(None)
    asks = Follower(tmp_path / "c.sock")
    asks.start()
    asks.join(10.0)
    (error,) = asks.ended
    assert isinstance(error, RuntimeRefusedError)
    assert "enable_pod_events" in error.reason
