"""One whole node in virtual time: an agent of yours, and everything around it that goes wrong.

```text
   seed ─▶ class of seeds ─▶ odds of faults
              │
   wiring(NodePorts) ─▶ the agent      Environment: runtime, volumes, sources, sink, disk
              ▲    │ calls                 │ events, in order
   killed ────┘    └──▶ ports ────────────▶├──▶ a checker for each guarantee
                        faults, kills      └──▶ the story
```

- A *wiring* builds an agent from ports: a group of reconcilers. `agent` is the one
  that ships; yours is any function of that shape.
- An *event* is one thing that really happened; checkers hear nothing else.
- A *class of seeds* says which faults a life may have.

`python -m nodealloc.testing.simulation` lives many seeds on all cores.
"""

from nodealloc.testing.simulation.node._classes import CLASSES, SeedClass, class_of
from nodealloc.testing.simulation.node._environment import Environment
from nodealloc.testing.simulation.node._events import Deletion, Event, Events, Ran, What
from nodealloc.testing.simulation.node._fewest import Shrunk, shrunk
from nodealloc.testing.simulation.node._guarantee import Guarantee
from nodealloc.testing.simulation.node._guarantees import GUARANTEES
from nodealloc.testing.simulation.node._many import SeedTally
from nodealloc.testing.simulation.node._parts import AgentParts
from nodealloc.testing.simulation.node._planted_faults import PLANTED_FAULTS, PlantedFault, spoiled
from nodealloc.testing.simulation.node._ports import (
    NodePorts,
    SimulatedCpusets,
    SimulatedRuntime,
)
from nodealloc.testing.simulation.node._simulation import Line, NodeSimulation, Wiring
from nodealloc.testing.simulation.node._sources import SimulatedSink, SimulatedSource
from nodealloc.testing.simulation.node._volumes import SimulatedVolumes
from nodealloc.testing.simulation.node._wiring import agent, agent_with

__all__ = [
    "CLASSES",
    "GUARANTEES",
    "PLANTED_FAULTS",
    "AgentParts",
    "Deletion",
    "Environment",
    "Event",
    "Events",
    "Guarantee",
    "Line",
    "NodePorts",
    "NodeSimulation",
    "PlantedFault",
    "Ran",
    "SeedClass",
    "SeedTally",
    "Shrunk",
    "SimulatedCpusets",
    "SimulatedRuntime",
    "SimulatedSink",
    "SimulatedSource",
    "SimulatedVolumes",
    "What",
    "Wiring",
    "agent",
    "agent_with",
    "class_of",
    "shrunk",
    "spoiled",
]
