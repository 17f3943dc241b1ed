"""The runtime is away, slow, refuses, forgets, and loses its answers.

Faults that may strike, with their odds below:

- `runtime is away`
- `runtime is slow`
- `runtime refuses`
- `runtime restarts`
- `container vanishes`
- `runtime forgets an end`
- `registry refuses`
- `answer is lost`
- `killed after a call`
"""

from __future__ import annotations

from nodealloc.testing.simulation.node._classes._values import SeedClass

__all__ = ["RUNTIMES"]

RUNTIMES = SeedClass(
    name="runtimes",
    about="The runtime is away, slow, refuses, forgets, and loses its answers.",
    odds={
        "runtime is away": 0.05,
        "runtime is slow": 0.02,
        "runtime refuses": 0.03,
        "runtime restarts": 0.003,
        "container vanishes": 0.08,
        "runtime forgets an end": 0.003,
        "registry refuses": 0.6,
        "answer is lost": 0.05,
        "call takes time": 0.8,
        "killed after a call": 0.001,
    },
)
