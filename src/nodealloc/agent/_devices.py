"""What device plugins have to do for a pod."""

from __future__ import annotations

from typing import Final

from nodealloc._typed import typed
from nodealloc.devices.plugins import DevicePlugins
from nodealloc.dsw_asw import Cancel
from nodealloc.podspec import Pod
from nodealloc.verdicts import Admitted

__all__ = ["DevicePreparer"]


class DevicePreparer:
    """A `Preparer`: plugins allocate what a pod was granted before any of its containers is made.

    Args:
        plugins: Talks to them.
    """

    NAME: Final = "devices"
    """Of its `Preparation`; it is remembered, so it stays the same over releases."""

    @typed
    def __init__(self, plugins: DevicePlugins) -> None:
        self._plugins = plugins

    def make_ready(self, pod: Pod, cancel: Cancel, /) -> Admitted:
        """See `Preparer.make_ready`; a plugin that fails or is away raises, and is asked again."""
        self._plugins.prepare(pod.uid, cancel=cancel)
        return Admitted()

    def take_back(self, _pod: Pod, _cancel: Cancel, /) -> None:
        """See `Preparer.take_back`: the grant goes with the pod's admission."""
