"""A fake and a check for sinks of pods' statuses.

>>> sink = FakeSink()
>>> check_sink(sink, sink.statuses.get)
"""

from __future__ import annotations

from collections.abc import Callable

from nodealloc import _attrs as attrs
from nodealloc.podfacts import (
    ConditionStatus,
    ContainerRunning,
    ContainerStatus,
    PodCondition,
    PodPhase,
    PodStatus,
)
from nodealloc.podstatus import Sink
from nodealloc.testing._wording import at_once, in_words

__all__ = ["FakeSink", "check_sink"]


@attrs.define
class FakeSink:
    """A `Sink` that remembers all it was told, and fails or does something else first where a test says so.

    Attributes:
        statuses: What is true now, by uid.
        calls: All calls that were taken, in order: the uid and its status, None for gone.
        error: What each call raises instead, or None.
        before: Called with the uid before a call is taken.
        tries: Calls, taken or not.
    """

    statuses: dict[str, PodStatus] = attrs.field(factory=dict[str, PodStatus])
    calls: list[tuple[str, PodStatus | None]] = attrs.field(factory=list["tuple[str, PodStatus | None]"])
    error: Exception | None = None
    before: Callable[[str], object] = lambda _: None
    tries: int = 0

    def told(self, uid: str, status: PodStatus, /) -> None:
        """Remember it; or raise what the test wants raised."""
        self._try(uid)
        self.statuses[uid] = status
        self.calls.append((uid, status))

    def gone(self, uid: str, /) -> None:
        """Forget the pod, and remember that."""
        self._try(uid)
        self.statuses.pop(uid, None)
        self.calls.append((uid, None))

    def of(self, uid: str, /) -> list[PodStatus | None]:
        """What was told of one pod, in order; None for gone."""
        return [status for one, status in self.calls if one == uid]

    def _try(self, uid: str) -> None:
        self.tries += 1
        self.before(uid)
        if self.error is not None:
            raise self.error


@in_words
def check_sink(sink: Sink, read: Callable[[str], object] | None = None, /) -> None:
    """Hold a `Sink` to its promises, with pods `checked-1` and `checked-2` of its own, which go again.

    Args:
        sink: Any.
        read: From a uid to what whoever reads behind the sink finds; None where it is gone.
    """
    ready = PodCondition(type="Ready", status=ConditionStatus.TRUE, last_transition_unix_s=1.0)
    up = PodStatus(phase=PodPhase.RUNNING, conditions=(ready,), started_unix_s=1.0)
    over = PodStatus(phase=PodPhase.SUCCEEDED, started_unix_s=1.0)
    _gone(sink, "checked-1")  # an unknown one is no error
    _told(sink, "checked-1", up)
    _told(sink, "checked-2", up)
    found = _read(read, "checked-1")
    assert read is None or found is not None, "what was told is not there when the call returns"
    for _ in range(2):
        _told(sink, "checked-1", up)
    assert _read(read, "checked-1") == found, "the same said twice is something else"
    _told(sink, "checked-1", over)
    assert read is None or _read(read, "checked-1") != found, (
        "what was told before is there instead of the newest"
    )
    _check_apart(sink, read, over, ready)
    assert read is None or _read(read, "checked-2") is not None, "another pod was lost"
    _gone(sink, "checked-1")
    assert _read(read, "checked-1") is None, "a pod that is gone is there"
    _gone(sink, "checked-1")
    assert read is None or _read(read, "checked-2") is not None, "another pod went with it"
    _told(sink, "checked-1", up)
    assert read is None or _read(read, "checked-1") is not None, (
        "told of again after it went, a pod is absent"
    )
    _gone(sink, "checked-1")
    _gone(sink, "checked-2")


def _check_apart(
    sink: Sink, read: Callable[[str], object] | None, status: PodStatus, condition: PodCondition
) -> None:
    """Statuses of one phase that differ elsewhere are told as they are."""
    box = ContainerStatus(name="app", state=ContainerRunning(started_unix_s=1.0))
    again = attrs.evolve(box, restart_count=1)
    for what, one, other in (
        ("conditions", attrs.evolve(status, conditions=(condition,)), status),
        ("containers", attrs.evolve(status, containers=(box,)), attrs.evolve(status, containers=(again,))),
    ):
        first, second = (_read_of(sink, read, said) for said in (one, other))
        assert read is None or first != second, f"of two statuses of one phase the {what} are not told apart"


def _told(sink: Sink, uid: str, status: PodStatus) -> None:
    told: Callable[[str, PodStatus], object] = sink.told
    at_once(told(uid, status), "told")


def _gone(sink: Sink, uid: str) -> None:
    gone: Callable[[str], object] = sink.gone
    at_once(gone(uid), "gone")


def _read_of(sink: Sink, read: Callable[[str], object] | None, status: PodStatus) -> object:
    """What is found once this was told last."""
    _told(sink, "checked-1", status)
    return _read(read, "checked-1")


def _read(read: Callable[[str], object] | None, uid: str) -> object:
    return None if read is None else read(uid)
