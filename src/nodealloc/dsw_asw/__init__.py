"""What is still to do: desired and actual worlds, plans, operations, the loop.

```text
   desired World ──┐ dirty keys                    one at a time within a scope
                   ├────────────▶ plan() ─▶ Steps ─▶ Executor ─▶ perform() ─▶ the machine
   actual World ───┘              pure      values   back-off       slow        │
        ▲                                            deadline                   │
        └────────────────────── settle() ◀─────────────────────── Outcome ◀─────┘
                            writes records                 Done, Failed, Uncertain
```

| noun          | what it is                                                                  |
|---------------|-----------------------------------------------------------------------------|
| `World`       | keyed immutable records with generations; thread-safe; `watch` gives a dirty set |
| `Transitions` | states × events in one table, which code reads, docs draw and a test walks   |
| `Domain`      | the rules you write: `plan` (pure), `perform` (slow), `settle` (writes records) |
| `Step`        | what to do next, in which scope, by when; scopes nest                        |
| `Reconciler`  | passes over what changed; back-off, deadlines, waits                         |
| `Loop`        | a thread that makes passes; or call `reconcile()` yourself                   |

A domain in full, for a machine that is a dict:

    >>> machine: dict[str, int] = {}
    >>> desired: World[str, int] = World("desired")
    >>> actual: World[str, int] = World("actual")
    >>> SizeStep = Step[tuple[str, int | None]]
    >>> class Sizes:
    ...     def plan(self, key: str, want: int | None, have: int | None) -> list[SizeStep]:
    ...         if want == have:
    ...             return []
    ...         verb = "remove" if want is None else "set"
    ...         return [Step(scope=(key,), verb=verb, detail=(key, want), deadline_s=5.0)]
    ...
    ...     def perform(self, step: SizeStep) -> None:
    ...         key, want = step.detail
    ...         machine.pop(key, None)
    ...         if want is not None:
    ...             machine[key] = want
    ...
    ...     def settle(self, step: SizeStep, outcome: Outcome[None]) -> None:
    ...         key, want = step.detail
    ...         match outcome:
    ...             case Done():
    ...                 actual.alter(key, lambda _: want, by=step.verb)
    ...             case Uncertain():
    ...                 actual.put(key, -1, by=step.verb)  # not what is wanted: set it again
    ...             case Failed():
    ...                 pass  # tried again after its back-off
    >>> reconciler = Reconciler(Sizes(), desired=desired, actual=actual, executor=InlineExecutor())
    >>> _ = desired.put("db", 2, by="populator")
    >>> reconciler.run_until_quiet().done, machine
    (1, {'db': 2})
    >>> reconciler.reconcile().is_idle
    True
    >>> reconciler.close()
    ()

A `Done` has to change the key's actual record, or it counts as no progress
and is held off. What raises `UncertainError`, or passes its deadline, is
uncertain: record that, and let `plan` drive it to a known state.
"""

from nodealloc._back_off import BackOff
from nodealloc.dsw_asw._clock import SystemClock
from nodealloc.dsw_asw._drawing import as_mermaid, as_svg, as_text
from nodealloc.dsw_asw._errors import (
    DeadlineError,
    LivelockError,
    Missing,
    NoProgressError,
    ShutDownError,
    UncertainError,
    WaitTimeoutError,
)
from nodealloc.dsw_asw._executors import InlineExecutor, ThreadExecutor
from nodealloc.dsw_asw._loop import Loop, Passes
from nodealloc.dsw_asw._ports import Clock, Domain, Executor, Observer
from nodealloc.dsw_asw._reconciler import Reconciler
from nodealloc.dsw_asw._steps import Done, Failed, Failure, Outcome, Running, Scope, Step, Uncertain
from nodealloc.dsw_asw._summary import Summary
from nodealloc.dsw_asw._telling import tell
from nodealloc.dsw_asw._transitions import Transition, Transitions
from nodealloc.dsw_asw._waits import Wait
from nodealloc.dsw_asw._world import Change, Record, Snapshot, Watch, World

__all__ = [
    "BackOff",
    "Change",
    "Clock",
    "DeadlineError",
    "Domain",
    "Done",
    "Executor",
    "Failed",
    "Failure",
    "InlineExecutor",
    "LivelockError",
    "Loop",
    "Missing",
    "NoProgressError",
    "Observer",
    "Outcome",
    "Passes",
    "Reconciler",
    "Record",
    "Running",
    "Scope",
    "ShutDownError",
    "Snapshot",
    "Step",
    "Summary",
    "SystemClock",
    "ThreadExecutor",
    "Transition",
    "Transitions",
    "Uncertain",
    "UncertainError",
    "Wait",
    "WaitTimeoutError",
    "Watch",
    "World",
    "as_mermaid",
    "as_svg",
    "as_text",
    "tell",
]
