"""Fakes and checks for device plugins: a plugin without a socket, and promises put to the test.

```python
plugin = FakePlugin((Device("dev-0"),))
with DevicePlugins(keeper, connect=lambda _socket: plugin) as plugins:
    plugins.register("example.com/gpu", "/anywhere", ["v1beta1"])
```

A plugin in a process of its own is `python -m nodealloc.testing.device_plugin`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from types import TracebackType
from typing import Self

from nodealloc.devices import (
    AllocatorKeeper,
    Device,
    DeviceAllocator,
    Inventory,
    PluginConnection,
    PluginOptions,
    PluginUnavailableError,
    PreferenceQuestion,
    Response,
)
from nodealloc.devices.plugins._codec import (
    decode_response,
    encode_response,
)
from nodealloc.dsw_asw import Cancel
from nodealloc.errors import NodeallocError
from nodealloc.testing._wording import in_words
from nodealloc.testing.dsw_asw import ManualCancel

__all__ = ["FakePlugin", "PluginProcess", "check_allocator_keeper", "check_connection", "wait_until"]

_LONG_S = 20.0
_SOON_S = 10.0
"""For a call that was asked to stop; by itself it may last a minute."""


def wait_until(condition: Callable[[], bool], /, *, within_s: float = _LONG_S, what: str = "") -> None:
    """Wait for a condition; raises `AssertionError` naming `what` when it does not come."""
    ends = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > ends:
            raise AssertionError(f"waited {within_s} s in vain for {what or condition}")
        time.sleep(0.005)


class PluginProcess:
    """`python -m nodealloc.testing.device_plugin` as a child process; thread-safe.

    Ends with the `with` block, whatever state it is in, and with the process that started it.

    Args:
        arguments: Of the command line.

    Attributes:
        events: What it said so far, as a word and its details.
    """

    def __init__(self, *arguments: str) -> None:
        self.events: list[tuple[str, str]] = []
        command = [sys.executable, "-m", "nodealloc.testing.device_plugin", "--with-parent", *arguments]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def count(self, event: str, /) -> int:
        """How often it said this word."""
        return sum(said == event for said, _ in self.events)

    def wait_for(self, event: str, /, times: int = 1) -> str:
        """Wait until it has said the word so often; the details of the last time."""
        wait_until(lambda: self.count(event) >= times, what=f"{event} from the plugin")
        return [details for said, details in self.events if said == event][-1]

    def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self._process.kill()
        self._process.wait()

    def terminate(self) -> int:
        """SIGTERM, and wait for the end; its exit status."""
        self._process.terminate()
        return self._process.wait(_LONG_S)

    def wait(self) -> int:
        """Wait for it to end by itself; its exit status."""
        return self._process.wait(_LONG_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            said = json.loads(line)
            self.events.append((said["event"], said["details"]))


class FakePlugin:
    """A `PluginConnection` without a plugin behind it; prefers the highest ids. Thread-safe.

    Attributes:
        allocated: What `allocate` was called with, in order.
        prepared: What `pre_start` was called with, in order.
        waiting: What `allocate` and `pre_start` were called with that hung, in order.
        refusal: Raised by every call of `PluginCalls` while it is not None.
    """

    def __init__(self, devices: Sequence[Device] = (), /, *, options: PluginOptions | None = None) -> None:
        self.allocated: list[tuple[str, ...]] = []
        self.prepared: list[tuple[str, ...]] = []
        self.waiting: list[tuple[str, ...]] = []
        self.refusal: NodeallocError | None = None
        self._options = PluginOptions() if options is None else options
        self._changed = threading.Condition()
        self._devices: tuple[Device, ...] | None = tuple(devices)
        self._ended = False
        self._hangs = False

    def hang(self) -> None:
        """From now on `allocate` and `pre_start` answer nobody who waits, until somebody calls `close`."""
        self._hangs = True

    def set_devices(self, devices: Sequence[Device], /) -> None:
        """List these next."""
        with self._changed:
            self._devices = tuple(devices)
            self._changed.notify_all()

    def options(self) -> PluginOptions:
        """See `PluginWatch`."""
        self._alive("GetDevicePluginOptions")
        return self._options

    def lists(self) -> Iterator[Sequence[Device]]:
        """See `PluginWatch`."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._devices is not None or self._ended)
                self._alive("ListAndWatch")
                devices, self._devices = self._devices, None
            yield devices or ()

    def close(self) -> None:
        """See `PluginWatch`; also what the end of the plugin looks like."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def preferred(self, question: PreferenceQuestion, /) -> tuple[str, ...]:
        """See `PluginCalls`."""
        self._alive("GetPreferredAllocation")
        rest = sorted(set(question.available) - set(question.must_include), reverse=True)
        return (*question.must_include, *rest)[: question.size]

    def allocate(self, ids: Sequence[str], /, *, cancel: Cancel | None = None) -> bytes:
        """See `PluginCalls`."""
        self._alive("Allocate")
        if self._hangs:
            self._hang(tuple(ids), ManualCancel() if cancel is None else cancel, "Allocate")
        self.allocated.append(tuple(ids))
        return encode_response(Response(env={"DEVICES": ",".join(ids)}))

    def pre_start(self, ids: Sequence[str], /, *, cancel: Cancel | None = None) -> None:
        """See `PluginCalls`."""
        self._alive("PreStartContainer")
        if self._hangs:
            self._hang(tuple(ids), ManualCancel() if cancel is None else cancel, "PreStartContainer")
        self.prepared.append(tuple(ids))

    def _hang(self, ids: tuple[str, ...], cancel: Cancel, call: str) -> None:
        leave = cancel.on_cancel(self._wake)
        with self._changed:
            self.waiting.append(ids)
            self._changed.wait_for(lambda: self._ended or cancel.is_set())
        leave()
        if cancel.is_set():
            raise CancelledError
        self._alive(call)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _alive(self, call: str) -> None:
        if self._ended:
            raise PluginUnavailableError("fake plugin", call, "ENDED")
        if self.refusal is not None and call not in ("GetDevicePluginOptions", "ListAndWatch"):
            raise self.refusal


@in_words
def check_connection(
    make: Callable[
        [Sequence[Device]],
        tuple[PluginConnection, Callable[[Sequence[Device]], None], Callable[[], None]],
    ],
    /,
) -> None:
    """Hold a `PluginConnection` to its promises.

    Args:
        make: From the devices of a plugin to a connection with it, a function
            that changes its devices, and one by which it answers neither
            `Allocate` nor `PreStartContainer` from then on.
    """
    first, second = (Device("a"), Device("b", numa_nodes=2)), (Device("b", "Unhealthy"),)
    connection, change, hang = make(first)
    try:
        options: object = connection.options()
        assert isinstance(options, PluginOptions), f"asked what it wants, it answered {options!r}"
        lists = connection.lists()
        for there in (first, second):
            if there is second:
                change(second)
            listed = list(next(lists))
            assert listed == list(there), f"the plugin has {list(there)}, and lists {listed}"
        answer = connection.allocate(["b"])
        decode_response(answer)
        assert connection.allocate(["b"]) == answer, (
            "allocated again for the same devices, it answers otherwise"
        )
        for _ in range(2):
            _passes(lambda: connection.pre_start(["b"]), "pre_start")
        question = PreferenceQuestion(resource="r/r", available=("a", "b"), must_include=(), size=1)
        preferred = connection.preferred(question)
        assert set(preferred) <= {"a", "b"}, f"asked which of a and b it prefers, it answered {preferred}"
        hang()
        calls: dict[str, Callable[[Cancel], object]] = {
            "allocate()": lambda cancel: connection.allocate(["b"], cancel=cancel),
            "pre_start()": lambda cancel: connection.pre_start(["b"], cancel=cancel),
        }
        for name, call in calls.items():
            for when in ("before it began", "while it waited"):
                _check_cancel(name, call, when)
        _check_close(connection, lists)
    finally:
        connection.close()
        connection.close()
    try:
        connection.allocate(["a"])
    except NodeallocError:
        return
    raise AssertionError("a call on a closed connection fails")


def _passes(call: Callable[[], object], what: str) -> None:
    try:
        call()
    except Exception as error:
        raise AssertionError(f"{what} raised {error!r}; it may be repeated") from error


def _check_cancel(name: str, call: Callable[[Cancel], object], when: str) -> None:
    cancel, ended = ManualCancel(), list[object]()

    def ask() -> None:
        try:
            ended.append(call(cancel))
        except BaseException as error:  # noqa: BLE001 - judged below
            ended.append(error)

    if when == "before it began":
        cancel.set()
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(0.0 if cancel.is_set() else 0.1)
    assert cancel.is_set() or not ended, f"the plugin hangs, and {name} came to {ended}"
    cancel.set()
    asking.join(_SOON_S)
    assert ended, f"{name} was asked to stop {when}, and goes on: the plugin hangs"
    assert isinstance(ended[0], CancelledError), f"{name} was asked to stop {when}, and came to {ended}"


def _check_close(connection: PluginConnection, lists: Iterator[Sequence[Device]]) -> None:
    ended: list[BaseException] = []

    def read() -> None:
        try:
            for _ in lists:
                pass
        except BaseException as error:  # noqa: BLE001 - judged below
            ended.append(error)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    time.sleep(0.05)
    connection.close()
    reader.join(_LONG_S)
    assert not reader.is_alive(), "close() ends lists() under way"
    assert [isinstance(error, NodeallocError) for error in ended] == [True], "lists() ends with an error"


@in_words
def check_allocator_keeper(make: Callable[[DeviceAllocator], AllocatorKeeper], /) -> None:
    """Hold an `AllocatorKeeper` to its promises: what it gives back, and that no change is lost."""
    begin = DeviceAllocator(nodes=(0, 1))
    keeper = make(begin)
    assert keeper.current() == begin, "it holds what it was given"
    before, after = keeper.alter(lambda a: a.with_inventory(Inventory(resource="r/count")))
    assert before == begin, "alter() answers with another value before"
    assert after == keeper.current(), "alter() answers with another value after"
    assert "r/count" in after.inventories, "alter() replaces and returns both"

    def broken(_allocator: DeviceAllocator) -> DeviceAllocator:
        raise ZeroDivisionError

    try:
        keeper.alter(broken)
    except ZeroDivisionError:
        assert keeper.current() == after, "a change raised, and what is kept is another value all the same"
    else:
        raise AssertionError("a change raised, and alter() says nothing of it")

    def counted(allocator: DeviceAllocator) -> DeviceAllocator:
        generation = allocator.inventories["r/count"].generation
        time.sleep(0.001)  # whoever does not wait comes between
        return allocator.with_inventory(Inventory(resource="r/count", generation=generation + 1))

    def count() -> None:
        for _ in range(10):
            keeper.alter(counted)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    left = keeper.current().inventories["r/count"].generation
    assert left == 40, f"40 changes from four threads left {left}: alter() is not exclusive"
