"""A runtime whose reports carry the termination messages of ended containers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from nodealloc._typed import typed
from nodealloc.podfacts import Exited
from nodealloc.podlife._configuration import (
    PATH_ANNOTATION,
    POLICY_ANNOTATION,
    PodFiles,
    termination_message,
)
from nodealloc.podspec import MessagePolicy

if TYPE_CHECKING:
    from nodealloc.dsw_asw import Cancel
    from nodealloc.podlife._configuration import NodeSettings
    from nodealloc.runtime import ContainerReport, Listing, Looks, PodListing, PodReport, RuntimeHealth

__all__ = ["TerminationMessages"]


class TerminationMessages:
    """A `Looks` over another one: an exit comes with the container's own words.

    Given to `RuntimeWatch` in place of the runtime, so that they are stored with the
    exit, before records or files go.

    Args:
        looks: The runtime.
        node: Where the files of pods are.
        output: From a log file to the end of what the container wrote, for those that
            ask for it where they left no words (`nodealloc.cri.last_output`); None for nothing.

    Source: kubelet ``kuberuntime_container.go``.
    """

    @typed
    def __init__(
        self, looks: Looks, node: NodeSettings, /, *, output: Callable[[str], bytes] | None = None
    ) -> None:
        self._looks = looks
        self._node = node
        self._output = output
        self._files = PodFiles()

    def listing(self) -> Listing:
        """See `Looks.listing`."""
        return self._looks.listing()

    def health(self) -> RuntimeHealth:
        """See `Looks.health`."""
        return self._looks.health()

    def inspect(self, uid: str, listed: PodListing | None = None, /) -> PodReport:
        """See `Looks.inspect`; what a container left stands behind the runtime's own message."""
        report = self._looks.inspect(uid, listed)
        if all(one.exit is None for one in report.containers):
            return report
        return attrs.evolve(report, containers=tuple(map(self._told, report.containers)))

    def follow(self, on_event: Callable[[], None], cancel: Cancel, /) -> None:
        """See `Looks.follow`."""
        self._looks.follow(on_event, cancel)

    def _told(self, one: ContainerReport) -> ContainerReport:
        marks = one.record.annotations
        if one.exit is None or not marks.get(PATH_ANNOTATION):
            return one
        record = one.record
        try:
            written = self._files.read(record.pod.uid, record.name, record.attempt, node=self._node)
            policy = MessagePolicy(marks.get(POLICY_ANNOTATION, MessagePolicy.FILE.value))
            words = termination_message(
                written,
                policy=policy,
                has_failed=one.exit != Exited(code=0),
                output=b"" if written or policy is MessagePolicy.FILE else self._written(one),
            )
        except (OSError, ValueError) as error:
            words = f"its termination message cannot be read: {error}"
        if not words:
            return one
        return attrs.evolve(one, message=f"{one.message}: {words}" if one.message else words)

    def _written(self, one: ContainerReport) -> bytes:
        return self._output(one.log_path) if self._output is not None and one.log_path else b""
