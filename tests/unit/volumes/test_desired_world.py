"""From pods to the desired world of volumes: what fails once is not forgotten."""

from __future__ import annotations

import pytest

from nodealloc.dsw_asw import World
from nodealloc.podspec import Container, Pod
from nodealloc.volumes import Use, VolumeSpec
from nodealloc.volumes._desired_world import DesiredWorldWriter
from nodealloc.volumes._model import DesiredVolume
from nodealloc.volumes._populator import DesiredPod, Populated

UIDS = ("a", "b", "c")


class Told:
    """A writer over three pods with a volume each, and who is told of a pod."""

    def __init__(self, fault: BaseException | None) -> None:
        self.fault = fault
        self.known: list[str] = []
        self.woken = 0
        self.desired: World[str, DesiredVolume] = World("desired volumes")
        pods: World[str, DesiredPod] = World("pods")
        populated: World[str, Populated] = World("populated pods")
        self.writer = DesiredWorldWriter(pods, populated, self.desired, self._hear, self._wake)
        for uid in UIDS:
            one = Pod(name=uid, uid=uid, containers=(Container(name="c"),))
            desired = DesiredPod(pod=one, generation=1)
            spec = VolumeSpec(plugin="example.com/any", name="v", pod_uid=uid)
            pods.put(uid, desired)
            populated.put(uid, Populated(desired=desired, resolved={"v": (spec, Use(pod_uid=uid))}))

    def _wake(self) -> None:
        self.woken += 1

    def _hear(self, uid: str) -> None:
        fault, self.fault = self.fault, None
        if fault is not None:
            raise fault
        self.known.append(uid)


def test_a_pod_that_could_not_be_told_is_told_in_the_next_pass(caplog: pytest.LogCaptureFixture) -> None:
    """It was not looked at any more until its pod changed; nor is it work by itself, which would spin."""
    told = Told(OSError(5, "once"))
    told.writer.begin_pass()
    assert "pod a" in caplog.text
    assert (told.known, told.writer.has_work) == (["b", "c"], False)
    told.writer.begin_pass()
    assert sorted(told.known) == ["a", "b", "c"]
    told.writer.begin_pass()
    assert (len(told.known), len(told.desired)) == (3, 3)


def test_a_pass_that_is_interrupted_goes_on_in_the_next() -> None:
    """Ctrl-C in the middle: those behind it are due still, and that is work."""
    told = Told(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        told.writer.begin_pass()
    assert told.writer.has_work
    told.writer.begin_pass()
    assert (sorted(told.known), told.writer.has_work) == (["a", "b", "c"], False)
