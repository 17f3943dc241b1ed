"""Has it started, is it alive, is it ready: containers are asked, and answers become verdicts.

```text
 put(pod, life) ──┐                 due ─▶ Prober: HTTP, TCP, exec, gRPC, yours
 reports of a     ├─▶ asks ─▶ look ─┤                 │ Reply
 runtime        ──┘   table   pure  │   hear ◀────────┘
                        ▲           │   pure ─▶ verdict ─▶ Journal ─▶ verdicts World
                        └───────────┴──────────────────────────────────── │
```

| noun        | what it is                                                               |
|-------------|--------------------------------------------------------------------------|
| `Probing`   | the shell: asks when it is time, remembers verdicts, tells them          |
| `Prober`    | one way of asking; `HttpProber`, `TcpProber`, `ExecProber`, or yours     |
| `Reply`     | what came of asking once                                                 |
| `Tally`     | what replies came to so far; `look` and `hear` are pure functions of it  |
| `PodVerdicts` | what stands, by container: no probe, no answer yet, passed, unwell     |
| `ASKED`     | phase of a pod's life × kind of container: which probes are asked        |

A verdict stands until there is a new one, also over restarts of the agent. Asking
over gRPC is in `nodealloc.probes.health`, which loads gRPC.
"""

from nodealloc.probes._codec import PROBE_ROWS, verdicts_from_checkpoint
from nodealloc.probes._exec import ExecProber
from nodealloc.probes._http import HttpProber
from nodealloc.probes._kinds import ContainerKind, ProbeKind, asks
from nodealloc.probes._options import ProbeOptions, Probers
from nodealloc.probes._ports import Exchange, Exchanges, Exec, Prober, Question
from nodealloc.probes._probing import Probing
from nodealloc.probes._replies import Reply, ReplyKind
from nodealloc.probes._rules import KUBELET, Rules
from nodealloc.probes._schedule import Schedule
from nodealloc.probes._tally import Asking, Instance, Tally, hear, look
from nodealloc.probes._tcp import TcpProber
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
    "KUBELET",
    "PROBE_ROWS",
    "Asking",
    "ContainerKind",
    "ContainerVerdicts",
    "Exchange",
    "Exchanges",
    "Exec",
    "ExecProber",
    "HttpProber",
    "Instance",
    "NoAnswer",
    "NoProbe",
    "Passed",
    "PodVerdicts",
    "ProbeKind",
    "ProbeOptions",
    "ProbeVerdict",
    "Prober",
    "Probers",
    "Probing",
    "Question",
    "Reply",
    "ReplyKind",
    "Rules",
    "Schedule",
    "Tally",
    "TcpProber",
    "Unwell",
    "asks",
    "hear",
    "look",
    "verdicts_from_checkpoint",
]
