"""Values only: what a class of seeds is."""

from __future__ import annotations

from collections.abc import Mapping

from nodealloc import _attrs as attrs

__all__ = ["SeedClass"]


@attrs.frozen(kw_only=True)
class SeedClass:
    """Seeds whose lives have the same kinds of faults.

    Attributes:
        name: One word.
        about: What they look for, in a sentence.
        odds: Fault to its probability each time that it may strike.
        deletes: Whether pods are deleted, edited and taken out of their sources.
        crashes: Whether containers end for reasons of their own.
        plugins_act_s: Mean seconds from one time that a plugin of devices comes or goes, or a device
            fails, to the next.
        device_pods: Of the pods so many ask for devices, from 0 to 1.
        hooks: Of main containers so many have a hook before their end, from 0 to 1; two thirds of that
            have one after their start.
        resyncs: Whether reconcilers look at every key now and then. Where they do not, a wake-up
            that was lost is not made good.
        rests_s: Virtual seconds after that in which nothing happens but that one container is in a crash
            loop, for longer than its longest wait; then it is edited, and every container crashes once.
        operations: Calls that one life of a seed makes before all is left to settle.
    """

    name: str
    about: str
    odds: Mapping[str, float]
    deletes: bool = True
    crashes: bool = True
    plugins_act_s: float = 40.0
    device_pods: float = 0.2
    hooks: float = 0.3
    resyncs: bool = False
    rests_s: float = 0.0
    operations: int = 4000
