"""Has images of containers on the node; of each pod it is known which could not be had, and since when."""

from __future__ import annotations

from functools import partial

from nodealloc.dsw_asw import Cancel, Clock, UncertainError
from nodealloc.podlife._answers import CheckedConfigures
from nodealloc.podlife._details import Acted, Pull
from nodealloc.podlife._failing import CannotStartError
from nodealloc.podlife._images import FailedPulls, ImageFetcher, ImageUnavailableError, pull_held
from nodealloc.podlife._look import StartFailure
from nodealloc.podlife._record import PodRecord
from nodealloc.podlife._rules import Rules
from nodealloc.podspec import Container

__all__ = ["PullCalls"]


class PullCalls:
    """Has images fetched; used from any worker.

    Args:
        images: Finds and fetches them.
        failed: Remembers which could not be had.
        configuring: Says what the sandbox is made from of the pod that an image is for.
        clock: Time for back-offs.
        rules: `tells_meanwhile`.
    """

    def __init__(
        self,
        images: ImageFetcher,
        failed: FailedPulls,
        *,
        configuring: CheckedConfigures,
        clock: Clock,
        rules: Rules,
    ) -> None:
        self._images = images
        self._failed = failed
        self._configuring = configuring
        self._clock = clock
        self._rules = rules

    def pull(self, record: PodRecord, container: Container, detail: Pull, cancel: Cancel, /) -> Acted:
        """Find an image, or fetch it; raises `CannotStartError` with the moment of the next try."""
        began_s, images = self._clock.monotonic_s(), self._images
        try:
            if detail.fetches:
                sandbox = partial(self._configuring.sandbox_of, record)
                found = images.fetch(record.pod, container, cancel, sandbox=sandbox)
            elif (here := images.find(container)) is not None:
                found = here
            else:
                return Acted()
        except ImageUnavailableError as error:
            raise self._not_had(record.pod.uid, error, began_s) from error
        self._failed.came(record.pod.uid, container.image)
        return Acted(id=found.id)

    def forget(self, uid: str, /) -> None:
        """The pod is gone, or begins again: nothing of it waits any more."""
        self._failed.forget(uid)

    def _not_had(self, uid: str, error: ImageUnavailableError, began_s: float) -> CannotStartError:
        """The first failure is told by its reason, later ones as a back-off with that reason in it."""
        again_s, failure = error.after_s, None
        if error.was_asked_for:
            now_s = self._clock.monotonic_s()
            # A kubelet tells of the back-off when it looks next.
            is_first = not self._failed.has_failed(uid, error.image)
            tells_it = is_first or not self._rules.tells_meanwhile
            again_s = self._failed.failed(uid, error.image, began_s, now_s)
            held = pull_held(error.image, error.reason, error.message, now_s + again_s)
            failure = StartFailure(
                reason=error.reason if tells_it else held.reason,
                message=error.message if tells_it else held.message,
                until_s=held.until_s,
            )
        lost = error.__cause__
        told = CannotStartError(error.reason, lost if isinstance(lost, UncertainError) else error, failure)
        told.again_after_s = again_s
        return told
