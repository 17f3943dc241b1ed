"""What newer instances took the place of goes, once its end is stored; what is kept does not grow."""

from __future__ import annotations

from nodealloc.checkpoint import row_key
from nodealloc.podfacts import Exited, PodIdentity
from nodealloc.podlife import LifePolicy, RestartBackOff
from nodealloc.podspec import Container, RestartPolicy
from nodealloc.runtime import (
    RUNTIME_ROWS,
    ContainerConfig,
    ContainerRecord,
    ContainerReport,
    PodKnown,
    PodReport,
    RunState,
    RuntimeUnavailableError,
    SandboxConfig,
    pod_from_checkpoint,
)
from tests.unit.podlife_node import Node, pod

SOON = RestartBackOff(base_s=0.5, cap_s=0.5)


def node_with(dead_kept: int = 1) -> Node:
    """A node on which a pod runs that restarts soon."""
    node = Node(policy=LifePolicy(pulls_at_once=None, restarts=SOON, dead_kept=dead_kept))
    node.lives.heard()
    node.lives.put(pod())
    node.after(2.0)
    return node


def restart(node: Node, times: int = 1) -> None:
    """The container ends, and starts again."""
    for _ in range(times):
        node.exit("app", 1)
        node.after(2.0, step_s=0.5)
        assert node.running(), "it did not start again"


def test_all_but_the_newest_dead_instance_goes() -> None:
    """As many stay as the policy says, for their logs."""
    node = node_with()
    restart(node, 4)
    assert [one.record.attempt for one in node.containers()] == [3, 4]
    node = node_with(dead_kept=2)
    restart(node, 4)
    assert [one.record.attempt for one in node.containers()] == [2, 3, 4]


def test_an_end_is_stored_before_its_record_goes() -> None:
    """At each removal the journal says how the instance ended."""
    node = node_with()
    removed: list[str] = []
    remove = node.runtime.remove_container

    def checked(container_id: str, /) -> None:
        row = node.journal.rows[row_key(RUNTIME_ROWS, "u")]
        assert container_id in pod_from_checkpoint(row).ends
        removed.append(container_id)
        remove(container_id)

    node.runtime.remove_container = checked  # type: ignore[method-assign]
    restart(node, 3)
    assert len(removed) == len(set(removed)) == 2


def test_a_removal_that_fails_holds_nothing_up() -> None:
    """The pod restarts all the same, and the record goes when the runtime lets it."""
    node = node_with()
    remove = node.runtime.remove_container

    def away(_container_id: str, /) -> None:
        raise RuntimeUnavailableError("remove", "busy")

    node.runtime.remove_container = away  # type: ignore[method-assign]
    restart(node, 3)
    assert [one.record.attempt for one in node.containers()] == [0, 1, 2, 3]
    node.runtime.remove_container = remove  # type: ignore[method-assign]
    restart(node)
    node.after(120.0, step_s=1.0)
    assert [one.record.attempt for one in node.containers()] == [3, 4]


def test_sandboxes_of_the_past_go() -> None:
    """A sandbox that failed goes once nothing is in it."""
    node = node_with()
    for _ in range(3):
        box = node.runtime.inspect("u").sandboxes[0].record.id
        node.runtime.stop_sandbox(box)
        node.after(8.0, step_s=0.5)
    left = node.runtime.inspect("u").sandboxes
    assert left[0].record.is_ready
    assert len(left) <= 2


def test_what_was_made_and_never_started_goes_when_a_newer_one_is_there() -> None:
    """The newest one is kept, since it may be started yet."""
    node = node_with()
    identity = PodIdentity(uid="u", namespace="default", name="web-u")
    box = node.runtime.inspect("u").sandboxes[0].record.id
    config = SandboxConfig(pod=identity)
    first = node.id_of("app")
    node.exit("app", 1)
    stray = node.runtime.create_container(
        box, ContainerConfig(name="app", image="busybox", attempt=1, definition="other"), config
    )
    node.after(5.0, step_s=0.5)
    assert node.running()
    assert first in [one.record.id for one in node.containers()], "the newest end is gone with it"
    restart(node)
    assert stray not in [one.record.id for one in node.containers()]


def test_what_is_kept_of_a_pod_does_not_grow() -> None:
    """After many restarts memory, journal and runtime hold what they held after a few; the count goes on."""
    node = node_with()

    def kept() -> tuple[int, int, int]:
        known = node.watch.pods.get("u")
        assert known is not None
        rows = {name: repr(row) for name, row in node.journal.rows.items()}
        return len(known.ends), len(node.containers()), len(str(rows)) // 100

    restart(node, 12)
    few = kept()
    restart(node, 60)
    many = kept()
    assert few[:2] == many[:2] == (2, 2)
    assert abs(many[2] - few[2]) <= 1
    facts = node.lives.facts.get("u")
    assert facts is not None
    assert facts.containers["app"].restart_count == 72
    node.kill_agent()
    node.lives.heard()
    node.lives.put(pod())
    node.after(2.0)
    restart(node)
    facts = node.lives.facts.get("u")
    assert facts is not None
    assert facts.containers["app"].restart_count == 73, "the count fell with what was forgotten"


def test_of_ten_thousand_ends_two_are_kept() -> None:
    """And all of those that the runtime still has a record of."""
    known = PodKnown(uid="u")
    identity = PodIdentity(uid="u", namespace="default", name="web")

    def dead(attempt: int) -> ContainerReport:
        record = ContainerRecord(
            id=f"c{attempt}",
            pod=identity,
            name="app",
            sandbox_id="s",
            attempt=attempt,
            state=RunState.EXITED,
        )
        return ContainerReport(record=record, exit=Exited(code=attempt % 256))

    most = 0
    for attempt in range(10_000):
        there = [dead(one) for one in range(max(0, attempt - 4), attempt + 1)]
        known = known.inspected(PodReport.of("u", [], there), {})
        most = max(most, len(known.ends))
    assert most == 5
    known = known.inspected(PodReport.of("u", [], [dead(9_999)]), {})
    assert sorted(known.ends) == ["c9998", "c9999"]
    assert sorted(known.gone().ends) == ["c9998", "c9999"]


def test_an_init_container_that_succeeded_is_not_forgotten_with_its_record() -> None:
    """What it came to is stored, so that it does not run again when its older tries are pruned."""
    node = Node(policy=LifePolicy(pulls_at_once=None, restarts=SOON))
    node.lives.heard()
    setup = Container(name="setup", image="busybox")
    node.lives.put(pod(init_containers=(setup,), policy=RestartPolicy.ON_FAILURE))
    node.after(2.0)
    for _ in range(3):
        node.exit("setup", 1)
        node.after(2.0, step_s=0.5)
    node.exit("setup", 0)
    node.after(2.0, step_s=0.5)
    for _ in range(3):
        node.exit("app", 1)
        node.after(2.0, step_s=0.5)
    made = [one for one in node.runtime.calls if one.startswith("create_container") and "setup" in one]
    assert len(made) == 4
    assert [one.record.name for one in node.containers()].count("setup") == 1
