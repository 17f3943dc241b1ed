"""A program on a machine in virtual time: a seed is a life with faults, and the same each time.

```text
   seed ─▶ Chance ──▶ faults, latencies, orders
              │
   build(life) ─▶ Driven ─▶ life.executor   calls begin late, in any order, twice or never
        ▲                   life.port(x)    the process may be killed at each call
        │                   life.clock      jumps from one due time to the next
        └── again after each kill, from what outlived it: DurableRows, MachineDisk
```

- `Simulation(seed, build, odds=…)`: `run` lives with faults, `settle` stops
  them and drives to quiet; a violation's message has the seed.
- `check` and `check_settled` take plain functions that raise `AssertionError`;
  `act` is what the world outside does.
- Time that nothing happens in costs nothing.

A lamp that is switched by a program which is killed now and then:

    >>> from nodealloc.dsw_asw import Done, Plan, Reconciler, Step, World
    >>> lamps, wishes = {}, World("wishes")
    >>> class Lamps:
    ...     def plan(self, view):
    ...         if view.want == view.have:
    ...             return Plan()
    ...         return Plan(steps=[Step(scope=(view.key,), verb="switch", detail=(view.key, view.want))])
    ...     def perform(self, step, cancel):
    ...         key, state = step.detail
    ...         self.machine.__setitem__(key, state)
    ...     def settled(self, have, step, outcome):
    ...         return step.detail[1] if isinstance(outcome, Done) else have
    >>> def build(life):
    ...     domain = Lamps()
    ...     domain.machine = life.port(lamps)
    ...     return Reconciler(domain, desired=wishes, actual=World("seen"),
    ...                       executor=life.executor, clock=life.clock)
    >>> def wish(rng):
    ...     wishes.put(rng.randrange(3), rng.choice(["on", "off"]))
    >>> def as_wished():
    ...     assert lamps == {key: record.value for key, record in wishes.snapshot().items()}
    >>> with Simulation(7, build, odds={"killed": 0.01, "executor drops": 0.05}) as simulation:
    ...     simulation.act(5.0, wish)
    ...     simulation.check_settled(as_wished)
    ...     _ = simulation.run(500)
    ...     report = simulation.settle()
    >>> report.faults > 10, report.lives > 2
    (True, True)
"""

from nodealloc.testing.simulation._chance import Chance, FaultOccurrence
from nodealloc.testing.simulation._clock import SimulatedClock
from nodealloc.testing.simulation._executor import Killed, LastingExecutor, Rest, SeededExecutor
from nodealloc.testing.simulation._life import Life
from nodealloc.testing.simulation._report import Report, ViolationError
from nodealloc.testing.simulation._simulation import Simulation
from nodealloc.testing.simulation._storage import DurableRows, MachineDisk
from nodealloc.testing.simulation._threads import SimulatedThreads

__all__ = [
    "Chance",
    "DurableRows",
    "FaultOccurrence",
    "Killed",
    "LastingExecutor",
    "Life",
    "MachineDisk",
    "Report",
    "Rest",
    "SeededExecutor",
    "SimulatedClock",
    "SimulatedThreads",
    "Simulation",
    "ViolationError",
]
