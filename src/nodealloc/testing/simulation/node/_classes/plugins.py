"""Plugins of devices are away, slow, silent, and talk nonsense.

Faults that may strike, with their odds below:

- `plugin is away`
- `plugin is slow`
- `plugin hangs`
- `plugin refuses`
- `plugin talks nonsense`
- `directory tells nothing`
- `killed`
- `killed before a call`
- `disk fails`
"""

from __future__ import annotations

from nodealloc.testing.simulation.node._classes._values import SeedClass

__all__ = ["PLUGINS"]

PLUGINS = SeedClass(
    name="plugins",
    about="Plugins of devices are away, slow, silent, and talk nonsense.",
    odds={
        "plugin is away": 0.1,
        "plugin is slow": 0.1,
        "plugin hangs": 0.05,
        "plugin refuses": 0.05,
        "plugin talks nonsense": 0.1,
        "directory tells nothing": 0.2,
        "killed": 0.002,
        "killed before a call": 0.001,
        "disk fails": 0.001,
        "call takes time": 0.8,
    },
    device_pods=0.7,
    plugins_act_s=10.0,
)
