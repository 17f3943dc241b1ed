"""A fake and checks for sources of pods.

>>> source = FakeSource()
>>> check_source(source)
"""

from __future__ import annotations

from collections.abc import Collection

from nodealloc import _attrs as attrs
from nodealloc._sound import require_sound
from nodealloc.errors import ConfigurationError
from nodealloc.podsources import MergedUpdates, PodUpdate, Reading, Source, merge_update
from nodealloc.podspec import Pod
from nodealloc.testing._wording import in_words
from nodealloc.testing.dsw_asw import ManualCancel

__all__ = ["FakeSource", "check_source"]


@attrs.define
class FakeSource:
    """A `Source` that a test fills."""

    pods: list[Pod] = attrs.field(factory=list[Pod])
    synced: bool = True
    error: Exception | None = None
    reads: int = 0

    def read(self, _cancel: object, /) -> Reading:
        """What was put; or raises what the test wants raised."""
        self.reads += 1
        if self.error is not None:
            raise self.error
        return Reading(pods=tuple(self.pods), is_synced=self.synced)


@in_words
def check_source(source: Source, /, expected: Collection[str] | None = None) -> None:
    """Hold a `Source` that can be read now, and does not change meanwhile, to its promises.

    Args:
        source: Any.
        expected: Names of the pods that it should bring; None where nobody knows.
    """
    first = _read(source)
    for _ in range(50):
        if first.is_synced and first.again_after_s is None:
            break
        first = _read(source)
    assert first.is_synced, "it never knows all its pods; nobody would ever hear of them"
    again = _read(source)
    assert again.is_synced, "it knew all its pods and no longer does"
    assert again.pods == first.pods, "read again without a change it says something else"
    names = [pod.full_name for pod in first.pods]
    _check_names(first)
    brought = sorted(pod.name for pod in first.pods)
    right = brought if expected is None else sorted(expected)
    assert brought == right, f"it has {right}, and brings {brought}"
    assert len(set(names)) == len(names), "two pods have one full name; name one of them as a fault"
    done = merge_update(MergedUpdates(), PodUpdate(source="checked", pods=first.pods))
    assert not done.events, f"merged, a pod is refused: {done.events[0].message}"


def _read(source: Source) -> Reading:
    found: object = source.read(ManualCancel())
    assert isinstance(found, Reading), f"read answered {found!r}; answer with a Reading, Reading(pods=...)"
    return found


def _check_names(reading: Reading) -> None:
    """What each pod is told apart by; what is said of pods is said of those that it has."""
    for pod in reading.pods:
        try:
            require_sound(pod)
        except ConfigurationError as error:
            raise AssertionError(f"{error}; nothing of a source with such a pod is taken") from error
    names = {pod.full_name for pod in reading.pods}
    for what, said in (("leaving", reading.leaving), ("places", reading.places)):
        others = sorted(set(said) - names)
        assert not others, (
            f"{what} speaks of {', '.join(others)}, and the pods' full names are {', '.join(sorted(names))}"
        )
