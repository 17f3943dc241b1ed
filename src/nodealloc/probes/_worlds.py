"""What is kept of probed pods: worlds by uid, which an asker and an engine read and write."""

from __future__ import annotations

from typing import Generic, TypeVar

from nodealloc import _attrs as attrs
from nodealloc.dsw_asw import World
from nodealloc.probes._asks import Heards, ProbedPod
from nodealloc.probes._ports import ReportedPod
from nodealloc.probes._verdicts import PodVerdicts

__all__ = ["Worlds"]

Seen = TypeVar("Seen", bound=ReportedPod)


@attrs.frozen(kw_only=True)
class Worlds(Generic[Seen]):
    """What an asker looks at, and where it writes what it heard.

    Attributes:
        wanted: Pods, by uid.
        reports: What is known of their containers.
        verdicts: What stands.
        heard: What answers came to; the asker alone writes it.
    """

    wanted: World[str, ProbedPod]
    reports: World[str, Seen]
    verdicts: World[str, PodVerdicts]
    heard: World[str, Heards]
