"""The kernel's table of mounts, read as any user may."""

from __future__ import annotations

import math
import threading

import pytest

from nodealloc.errors import ConfigurationError
from nodealloc.volumes import LinuxMountTable

pytestmark = pytest.mark.skipif("sys.platform != 'linux'")


@pytest.mark.parametrize("timeout_s", [math.inf, 1e300, 3e9])
def test_a_wait_without_an_end_waits(timeout_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not with an `OverflowError` of the system's call, which knows milliseconds in 31 bits."""
    asked: list[float] = []

    class Poll:
        def register(self, *_: object) -> None: ...

        def poll(self, timeout_ms: float) -> list[tuple[int, int]]:
            asked.append(timeout_ms)
            return []

    monkeypatch.setattr("nodealloc.volumes._linux.select.poll", Poll)
    table = LinuxMountTable()
    try:
        assert table.wait(timeout_s) is False
    finally:
        table.close()
    assert 86_400_000 <= asked[0] < 1 << 31


@pytest.mark.parametrize("timeout_s", [-1, math.nan])
def test_a_wait_that_cannot_be_meant_is_refused(timeout_s: float) -> None:
    """A negative one had waited for ever."""
    table = LinuxMountTable()
    refused: list[ConfigurationError] = []

    def wait() -> None:
        try:
            table.wait(timeout_s)
        except ConfigurationError as error:
            refused.append(error)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    waiting.join(10)
    assert [str(error).partition(",")[0] for error in refused] == [
        "LinuxMountTable.wait: timeout_s: expected a number of seconds"
    ]
    table.close()
