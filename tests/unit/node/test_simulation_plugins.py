"""Device plugins of a simulated node: one that registers by two sockets serves at one."""

from __future__ import annotations

import random

from nodealloc.testing.simulation import SimulatedClock
from nodealloc.testing.simulation.node._events import Events
from nodealloc.testing.simulation.node._plugins import SimulatedPlugins
from nodealloc.testing.simulation.node._resources import RESOURCES


def test_a_plugin_that_registers_twice_serves_at_its_own_socket() -> None:
    """Both sockets say the same of it; the second one goes, and it serves as before."""
    plugins = SimulatedPlugins(SimulatedClock(), Events())
    own = plugins.look("/plugins")
    rng = random.Random(1)
    while len(plugins.look("/plugins")) < 2 * len(RESOURCES):
        plugins.register_twice(rng)
    for path in plugins.look("/plugins").keys() - own.keys():
        assert plugins.info(path) == plugins.info(path.removesuffix(".again"))
        plugins.notify(path, "")
    plugins.register_once()
    assert plugins.look("/plugins") == own
