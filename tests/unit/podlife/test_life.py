"""How far a pod has come, how long it has to end, and who of its containers waits for whom."""

from __future__ import annotations

import attrs

from nodealloc.podfacts import LifeState
from nodealloc.podlife import KUBELET, POD_LIFE, stop_timeout_s
from nodealloc.podlife._grace import (
    effective_grace_s,
    kill_grace_s,
    stops_after,
)
from nodealloc.podlife._life import LifeEvent
from nodealloc.podspec import Container, Pod


def test_the_table_is_walked() -> None:
    """Every state can be reached, and every pod can finish, wherever it is."""
    assert set(POD_LIFE.paths()) == set(LifeState)
    for state in LifeState:
        assert LifeState.FINISHED in attrs.evolve(POD_LIFE, start=state).paths()


def test_there_is_no_way_back() -> None:
    """Whatever happens, a pod only goes down the list of states."""
    order = list(LifeState)
    for state in LifeState:
        for event in LifeEvent:
            assert order.index(POD_LIFE.after(state, event)) >= order.index(state)


def test_a_grace_only_shrinks() -> None:
    """Whoever asks for more than was asked before is not heard, in any order."""
    assert effective_grace_s(None, own_s=30) == 30
    assert effective_grace_s(30, own_s=30, deletion_s=3) == 3
    assert effective_grace_s(3, own_s=30, deletion_s=15, override_s=40) == 3


def test_a_grace_of_nothing_is_a_grace() -> None:
    """Zero seconds are kept by us; for the kubelet they are not set, and another wish counts."""
    assert effective_grace_s(None, own_s=30, deletion_s=0, override_s=40) == 0
    assert effective_grace_s(None, own_s=30, deletion_s=0, override_s=40, rules=KUBELET) == 40
    assert effective_grace_s(None, own_s=30, deletion_s=0, rules=KUBELET) == 1


def test_a_failed_probe_has_a_grace_of_its_own() -> None:
    """Deletion comes first, then the probe, then the pod; where nobody says anything it is 2 s."""
    assert kill_grace_s(own_s=30, deletion_s=5, probe_s=9) == 5
    assert kill_grace_s(own_s=30, probe_s=9) == 9
    assert kill_grace_s(own_s=30) == 30
    assert kill_grace_s(own_s=None, probe_s=9) == 2


def test_hooks_and_waiting_fit_into_the_grace() -> None:
    """What is left is left; the kubelet gives 2 s more than was asked, and counts whole seconds."""
    assert stop_timeout_s(10, 3.5, 4) == 2.5
    assert stop_timeout_s(10, 9, 4) == 0
    assert stop_timeout_s(10, 3.5, 4.9, rules=KUBELET) == 3
    assert stop_timeout_s(0, rules=KUBELET) == 2


SIDECARS = Pod(
    uid="u",
    name="web",
    init_containers=(
        Container(name="log", restartable=True),
        Container(name="setup"),
        Container(name="proxy", restartable=True),
        Container(name="vpn", restartable=True),
    ),
    containers=(Container(name="app"),),
)


def test_sidecars_end_behind_all_that_come_after_them() -> None:
    """Main containers at once, then the last sidecar, then the one before."""
    after = stops_after(SIDECARS, ["log", "vpn", "app", "proxy"])
    assert after == {
        "app": frozenset(),
        "vpn": {"app"},
        "proxy": {"app", "vpn"},
        "log": {"app", "vpn", "proxy"},
    }


def test_a_sidecar_that_has_ended_breaks_no_chain() -> None:
    """The first still waits for the last; with the kubelet it does not."""
    assert stops_after(SIDECARS, ["log", "vpn"])["log"] == {"vpn"}
    assert stops_after(SIDECARS, ["log", "vpn"], rules=KUBELET)["log"] == frozenset()
