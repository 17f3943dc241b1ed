"""What is still to do: desired and actual worlds, plans, operations, time, the loop.

```text
   desired World ──┐ dirty keys, moments            one at a time within a scope
   actual World  ──┼─▶ plan(view) ─▶ Plan ─▶ Journal ─▶ Executor ─▶ perform() ─▶ the machine
   near Worlds   ──┘    pure        value    committed   back-off     slow          │
        ▲                                                deadline, cancel           │
        └───────── settled(have, step, outcome) ◀──────────────── Outcome ◀─────────┘
                   pure; the engine writes       Done, Failed, Uncertain, Cancelled
```

| noun          | what it is                                                                |
|---------------|---------------------------------------------------------------------------|
| `World`       | keyed immutable records with generations; `replace` takes over a listing  |
| `Transitions` | states × events in one table, which code reads, docs draw, a test walks   |
| `Domain`      | the rules you write: `plan` (pure), `perform` (slow), `settled` (pure)    |
| `View`        | what a plan may look at: want, have, what runs, the time, near records    |
| `Plan`        | the intent to remember, the next steps, when to look again, what to stop  |
| `Step`        | what to do next, in which scope, by when; scopes nest                     |
| `Near`        | records of another world that a plan looks at, and is woken by            |
| `Remember`    | how records outlive the process: intents first, results before anybody is told |
| `Reconciler`  | passes over what changed; back-off, deadlines, waits                      |
| `Group`       | reconcilers that are driven, remembered and stopped as one                |
| `Periodic`    | a reconciler of one call that time alone brings                           |

Reconcilers and groups share their verbs: `start` (a thread makes passes) or
`await run()` (an event loop does), `reconcile` (one pass by hand), `wait`,
`stop`.

A domain in full, for a machine that is a dict:

    >>> machine: dict[str, int] = {}
    >>> desired: World[str, int] = World("desired")
    >>> actual: World[str, int] = World("actual")
    >>> Size = tuple[str, int | None]
    >>> class Sizes:
    ...     def plan(self, view: View[str, int, int, Size]) -> Plan[int, Size]:
    ...         if view.want == view.have:
    ...             return Plan()
    ...         verb = "remove" if view.want is None else "set"
    ...         detail = (view.key, view.want)
    ...         return Plan(steps=[Step(scope=(view.key,), verb=verb, detail=detail, deadline_s=5.0)])
    ...
    ...     def perform(self, step: Step[Size], cancel: Cancel) -> None:
    ...         key, want = step.detail
    ...         machine.pop(key, None)
    ...         if want is not None:
    ...             machine[key] = want
    ...
    ...     def settled(self, have: int | None, step: Step[Size], outcome: Outcome[None]) -> int | None:
    ...         key, want = step.detail
    ...         match outcome:
    ...             case Done():
    ...                 return want
    ...             case Uncertain():
    ...                 return -1  # not what is wanted: set it again
    ...             case _:
    ...                 return have  # failed: tried again after its back-off
    >>> reconciler = Reconciler(Sizes(), desired=desired, actual=actual, executor=InlineExecutor())
    >>> _ = desired.put("db", 2, by="populator")
    >>> reconciler.run_until_quiet().done, machine
    (1, {'db': 2})
    >>> reconciler.reconcile().is_idle
    True
    >>> reconciler.stop()
    ()

A `Done` has to change the key's record, or it counts as no progress and is
held off, unless its step `may_change_nothing`. What raises `UncertainError`, or
passes its deadline, is uncertain: record that, and let `plan` drive it to a
known state.
"""

from nodealloc._back_off import BackOff
from nodealloc.dsw_asw._clock import SystemClock
from nodealloc.dsw_asw._drawing import as_text
from nodealloc.dsw_asw._driven import Driven, Passing
from nodealloc.dsw_asw._errors import (
    BadPlanError,
    CancelledOperationError,
    DeadlineError,
    LivelockError,
    NoProgressError,
    NotTakenUpError,
    RestlessPlanError,
    ShutDownError,
    WaitTimeoutError,
)
from nodealloc.dsw_asw._executors import InlineExecutor, ThreadExecutor
from nodealloc.dsw_asw._few_at_once import FewAtOnce
from nodealloc.dsw_asw._group import Group
from nodealloc.dsw_asw._moments import Moment
from nodealloc.dsw_asw._periodic import Periodic
from nodealloc.dsw_asw._plans import KEEP, Keep, Near, Plan, View
from nodealloc.dsw_asw._ports import Cancel, Clock, Domain, Executor, Journal, Observer
from nodealloc.dsw_asw._reconciler import Reconciler
from nodealloc.dsw_asw._remembering import Remember
from nodealloc.dsw_asw._steps import (
    Cancelled,
    Done,
    Failed,
    Failure,
    Outcome,
    Running,
    Step,
    StepScope,
    Uncertain,
)
from nodealloc.dsw_asw._summary import Summary
from nodealloc.dsw_asw._telling import tell
from nodealloc.dsw_asw._transitions import Transition, Transitions
from nodealloc.dsw_asw._waits import Wait
from nodealloc.dsw_asw._world import Change, Watch, World
from nodealloc.errors import UncertainError

__all__ = [
    "KEEP",
    "BackOff",
    "BadPlanError",
    "Cancel",
    "Cancelled",
    "CancelledOperationError",
    "Change",
    "Clock",
    "DeadlineError",
    "Domain",
    "Done",
    "Driven",
    "Executor",
    "Failed",
    "Failure",
    "FewAtOnce",
    "Group",
    "InlineExecutor",
    "Journal",
    "Keep",
    "LivelockError",
    "Moment",
    "Near",
    "NoProgressError",
    "NotTakenUpError",
    "Observer",
    "Outcome",
    "Passing",
    "Periodic",
    "Plan",
    "Reconciler",
    "Remember",
    "RestlessPlanError",
    "Running",
    "ShutDownError",
    "Step",
    "StepScope",
    "Summary",
    "SystemClock",
    "ThreadExecutor",
    "Transition",
    "Transitions",
    "Uncertain",
    "UncertainError",
    "View",
    "Wait",
    "WaitTimeoutError",
    "Watch",
    "World",
    "as_text",
    "tell",
]
