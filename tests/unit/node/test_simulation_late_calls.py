"""What a runtime did for a call of which nobody expected anything any more: checkers let it pass."""

from __future__ import annotations

import pytest

from nodealloc.podfacts import PodIdentity
from nodealloc.runtime import SandboxConfig
from nodealloc.testing.simulation.node import What
from nodealloc.testing.simulation.node._mounting import MountsAccounted
from tests.unit.node.simulated_scene import Scene


def unmounted_below(scene: Scene, asked_s: float) -> None:
    """A sandbox is run that was asked for at that time, and a volume is taken from its pod."""
    scene.wants()
    config = SandboxConfig(pod=PodIdentity.of(scene.outside.known["u"]), hostname="u")
    scene.outside.containers.run_sandbox(config, asked_s)
    checker = MountsAccounted(scene.outside)
    scene.outside.deeds.listen(checker.heard)
    scene.happens(What.UNMOUNTED, uid="u", id="own")


def test_a_sandbox_keeps_its_volumes() -> None:
    """As long as it stands."""
    scene = Scene()
    scene.clock.advance(3600.0)
    with pytest.raises(AssertionError, match=r"own is taken from u, whose sandbox .* still stands"):
        unmounted_below(scene, asked_s=3599.0)


def test_nobody_waits_for_a_sandbox_that_is_an_hour_late() -> None:
    """The clock had jumped while the call was on its way: its pod may be over by then."""
    scene = Scene()
    scene.clock.advance(3600.0)
    unmounted_below(scene, asked_s=0.0)
