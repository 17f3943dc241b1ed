"""Asking whether any volume is for a pod."""

from __future__ import annotations

from nodealloc.dsw_asw import World
from nodealloc.volumes._pods_of import PodsOf


def test_a_pod_is_known_while_any_volume_is_for_it() -> None:
    """Its own, one that others share, and one that is for others by now."""
    world = World[str, tuple[str, ...]]("volumes")
    pods = PodsOf(world, lambda uids: uids)
    world.put("own", ("a",))
    world.put("shared", ("a", "b"))
    assert ("a" in pods, "b" in pods, "c" in pods) == (True, True, False)
    world.drop("own")
    assert "a" in pods
    world.put("shared", ("c",))
    assert ("a" in pods, "b" in pods, "c" in pods) == (False, False, True)
    world.drop("shared")
    assert "c" not in pods
    assert not pods._volumes, "nothing is kept of who is gone"


def test_asking_takes_a_look_at_what_changed_alone() -> None:
    """Many pods end at once, and each is asked about several times."""
    world, looks = World[str, tuple[str, ...]]("volumes"), list[tuple[str, ...]]()

    def look(uids: tuple[str, ...]) -> tuple[str, ...]:
        looks.append(uids)
        return uids

    pods = PodsOf(world, look)
    for number in range(1000):
        world.put(f"{number}", (f"pod {number}",))
    assert all(f"pod {number}" in pods for number in range(1000))
    world.drop("7")
    assert [number for number in range(1000) if f"pod {number}" not in pods] == [7]
    assert len(looks) == 1000
