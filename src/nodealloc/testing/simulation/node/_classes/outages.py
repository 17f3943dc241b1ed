"""The runtime is away for a spell, and has lost, ended or doubled something once it is back.

Faults that may strike, with their odds below:

- `runtime goes away`
- `runtime refuses for a spell`
- `container ends meanwhile`
- `container is lost meanwhile`
- `record is lost meanwhile`
- `sandbox ends meanwhile`
- `state is unknown`
- `second sandbox is ready`
- `answer is late`
- `killed after a call`
"""

from __future__ import annotations

from nodealloc.testing.simulation.node._classes._values import SeedClass

__all__ = ["OUTAGES"]

OUTAGES = SeedClass(
    name="outages",
    about="The runtime is away for a spell, and has lost, ended or doubled something once it is back.",
    odds={
        "runtime goes away": 0.003,
        "runtime refuses for a spell": 0.004,
        "container ends meanwhile": 0.2,
        "container is lost meanwhile": 0.05,
        "record is lost meanwhile": 0.1,
        "sandbox ends meanwhile": 0.25,
        "state is unknown": 0.2,
        "second sandbox is ready": 0.1,
        "answer is late": 0.03,
        "killed after a call": 0.0005,
        "call takes time": 0.8,
    },
    operations=12000,
)
