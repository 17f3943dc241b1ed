"""Has it started, is it alive, is it ready: containers are asked, and answers become verdicts."""

from nodealloc.probes._kinds import ASKED, ContainerKind, ProbeKind, asks, drawn, kinds_of
from nodealloc.probes._replies import Reply, ReplyKind
from nodealloc.probes._rules import KUBELET, Rules
from nodealloc.probes._schedule import Schedule
from nodealloc.probes._tally import (
    TRIES,
    Asking,
    Heard,
    Instance,
    Looked,
    Next,
    Tally,
    event_of,
    hear,
    look,
)
from nodealloc.probes._verdicts import (
    ContainerVerdicts,
    NoAnswer,
    NoProbe,
    Passed,
    PodVerdicts,
    ProbeVerdict,
    Unwell,
)

__all__ = [
    "ASKED",
    "KUBELET",
    "TRIES",
    "Asking",
    "ContainerKind",
    "ContainerVerdicts",
    "Heard",
    "Instance",
    "Looked",
    "Next",
    "NoAnswer",
    "NoProbe",
    "Passed",
    "PodVerdicts",
    "ProbeKind",
    "ProbeVerdict",
    "Reply",
    "ReplyKind",
    "Rules",
    "Schedule",
    "Tally",
    "Unwell",
    "asks",
    "drawn",
    "event_of",
    "hear",
    "kinds_of",
    "look",
]
