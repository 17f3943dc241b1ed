"""What a runtime did for a call of which nobody expected anything any more: checkers let it pass."""

from __future__ import annotations

import contextlib

import attrs
import pytest

from nodealloc.podfacts import PodIdentity
from nodealloc.podspec import Volume, VolumeUse
from nodealloc.runtime import SandboxConfig
from nodealloc.testing.simulation.node import What
from nodealloc.testing.simulation.node._mounting import MountsAccounted
from nodealloc.testing.simulation.node._running import OneDeadline
from tests.unit.node.simulated_scene import APP, Scene


def unmounted_below(scene: Scene, asked_s: float) -> None:
    """A sandbox is run that was asked for at that time, and a volume is taken from its pod."""
    app = attrs.evolve(APP, volumes=(VolumeUse(name="own", path="/own"),))
    scene.wants(container=app, volumes=(Volume(name="own", kind="emptyDir"),))
    config = SandboxConfig(pod=PodIdentity.of(scene.environment.known["u"]), hostname="u")
    scene.environment.containers.run_sandbox(config, asked_s)
    checker = MountsAccounted(scene.environment)
    scene.environment.events.listen(checker.heard)
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


@pytest.mark.parametrize("asked_s", [3590.0, 0.0])
def test_a_start_that_comes_an_hour_late_may_find_nothing_mounted(asked_s: float) -> None:
    """Its pod was over long before, and what was mounted for it was taken away."""
    scene = Scene()
    app = attrs.evolve(APP, volumes=(VolumeUse(name="own", path="/own"),))
    scene.wants(container=app, volumes=(Volume(name="own", kind="emptyDir"),))
    made = scene.runs(starts=False)
    scene.environment.events.listen(MountsAccounted(scene.environment).heard)
    scene.clock.advance(3600.0)
    is_late = asked_s == 0.0
    with contextlib.nullcontext() if is_late else pytest.raises(AssertionError, match="own is not mounted"):
        scene.environment.containers.start(made, asked_s)


@pytest.mark.parametrize("asked_s", [3.0, 11.0])
def test_a_call_to_end_that_hung_lengthens_nothing(asked_s: float) -> None:
    """It comes after one that was made later, and nobody could take it back; a later one is not longer."""
    scene = Scene()
    scene.environment.events.listen(OneDeadline(scene.environment).heard)
    scene.wants()
    made = scene.runs()
    scene.clock.advance(12.0)
    scene.environment.containers.ask_to_end(made, 10.0, 10.0)
    is_later = asked_s > 10.0
    with pytest.raises(AssertionError, match="left of what") if is_later else contextlib.nullcontext():
        scene.environment.containers.ask_to_end(made, 20.0, asked_s)
