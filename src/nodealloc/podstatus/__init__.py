"""What to tell about a pod: phase, conditions, containers.

```text
   pod, life, report, verdicts,      status_of       PodStatus     take_status     Told
   start failures, who ends it  ──▶ (pure, Rules) ──▶ (podfacts) ──▶   pure    ──▶ version, times, oddities
            Observed
```

- What is *observed* is all that is known of a pod now; what is not known is absent.
- A *status* is what follows from it: the same for whoever knows the same.
- What is *told* has a version, and times since when conditions are as they are.

A pod that runs, and is ended by somebody:

    >>> from nodealloc.podfacts import LifeState
    >>> from nodealloc.podspec import Container, Pod
    >>> web = Pod(uid="u", name="web", containers=(Container(name="app", image="web:1"),))
    >>> status = status_of(Observed(pod=web))
    >>> status.phase.value, status.condition("Ready").message
    ('Pending', 'containers with unready status: [app]')
    >>> evicted = ToldEnding(reason="Evicted", message="The node was low on memory.")
    >>> last = status_of(Observed(pod=web, life=LifeState.TERMINATED, ending=evicted), status)
    >>> last.phase.value, last.reason
    ('Failed', 'Evicted')

A terminal phase is never left, Ready falls with the decision to end, and restart counts
never fall. `Rules()` is what is right, `KUBELET` is as recorded.
"""

from nodealloc.podstatus._codec import STATUS_ROWS, told_from_checkpoint
from nodealloc.podstatus._lines import JsonLinesSink
from nodealloc.podstatus._living import observed_of, with_source, with_verdicts
from nodealloc.podstatus._manager import StatusManager, TellingOptions
from nodealloc.podstatus._merge import StatusOddity, merge_status, same_status
from nodealloc.podstatus._observed import Health, Observed, StartFailure, ToldEnding, with_runtime
from nodealloc.podstatus._ports import LifeFacts, ProbeResults, Sink
from nodealloc.podstatus._rules import KUBELET, Rules
from nodealloc.podstatus._sinks import CallSink, FolderSink
from nodealloc.podstatus._status import status_of
from nodealloc.podstatus._taking import Told, take_status
from nodealloc.podstatus._telling import Part

__all__ = [
    "KUBELET",
    "STATUS_ROWS",
    "CallSink",
    "FolderSink",
    "Health",
    "JsonLinesSink",
    "LifeFacts",
    "Observed",
    "Part",
    "ProbeResults",
    "Rules",
    "Sink",
    "StartFailure",
    "StatusManager",
    "StatusOddity",
    "TellingOptions",
    "Told",
    "ToldEnding",
    "merge_status",
    "observed_of",
    "same_status",
    "status_of",
    "take_status",
    "told_from_checkpoint",
    "with_runtime",
    "with_source",
    "with_verdicts",
]
