"""A machine that boots again: what is done stays done, what ran starts again by its policy alone."""

from __future__ import annotations

import pytest

from nodealloc.podfacts import ContainerTerminated, Exited, ExitUnknown, LifeState
from nodealloc.podspec import Container, RestartPolicy
from tests.unit.podlife_node import pod
from tests.unit.podstatus.test_with_lives import TellingNode

NEVER = pod("never", policy=RestartPolicy.NEVER)
ALWAYS = pod("always")
PODS = (NEVER, ALWAYS)


def boot(node: TellingNode, *, keeps_records: bool) -> None:
    """The machine boots: nothing runs, and a runtime with its state on a tmpfs knows nothing either."""
    ids = [one.record.id for uid in ("never", "always") for one in node.containers(uid)]
    boxes = [one.record.id for uid in ("never", "always") for one in node.runtime.inspect(uid).sandboxes]
    if keeps_records:
        for one in boxes:
            node.runtime.stop_sandbox(one)
    else:
        node.runtime.lose_records(*ids, *boxes)
    node.stops.clear()
    node.runtime.calls.clear()
    node.boot_id = "boot-2"
    node.kill_agent()
    for each in PODS:
        node.lives.put(each)
    node.heard("never", "always")
    node.after(15.0, step_s=0.5)


def up() -> TellingNode:
    """Both pods run."""
    node = TellingNode()
    node.heard("never", "always")
    for one in PODS:
        node.lives.put(one)
    node.after(3.0)
    assert (node.running("never"), node.running("always")) == (["app#0"], ["app#0"])
    return node


@pytest.mark.parametrize("keeps_records", [True, False])
@pytest.mark.parametrize("code", [0, 3])
def test_a_finished_pod_of_policy_never_stays_finished(code: int, *, keeps_records: bool) -> None:
    """Nothing of it is made again, and what was told of its end stands, exit code and all."""
    node = up()
    node.exit("app", code, "never")
    node.after(3.0)
    assert node.life("never") is LifeState.FINISHED
    told = node.sink.statuses["never"]
    boot(node, keeps_records=keeps_records)
    assert node.life("never") is LifeState.FINISHED
    assert not [one for one in node.calls() if "never" in one], "something of it was made again"
    assert node.sink.statuses["never"] == told
    (app,) = told.containers
    assert isinstance(app.state, ContainerTerminated)
    assert app.state.exit == Exited(code=code)


@pytest.mark.parametrize("keeps_records", [True, False])
def test_what_ran_at_the_reboot_starts_again_by_its_policy_alone(*, keeps_records: bool) -> None:
    """Never is never: it has failed, and nobody says with which code where nobody knows; Always counts on."""
    node = up()
    boot(node, keeps_records=keeps_records)
    assert node.running("never") == []
    assert node.life("never") is LifeState.FINISHED
    status = node.sink.statuses["never"]
    assert status.phase is not None
    assert status.phase.value == "Failed"
    (app,) = status.containers
    assert isinstance(app.state, ContainerTerminated)
    assert keeps_records or app.state.exit == ExitUnknown()
    assert app.restart_count == 0
    assert node.running("always") == ["app#1"]
    assert node.sink.statuses["always"].containers[0].restart_count == 1


def test_an_init_container_that_succeeded_runs_again_in_the_sandbox_of_a_new_boot() -> None:
    """What it prepared went with its sandbox; the pod goes on to its app, and restart counts do not fall."""
    node = TellingNode()
    node.heard("u")
    web = pod(init_containers=(Container(name="setup", image="busybox"),))
    node.lives.put(web)
    node.after(2.0)
    node.exit("setup")
    node.after(3.0)
    assert node.running() == ["app#0"]
    box = node.runtime.inspect("u").sandboxes[0].record.id
    node.runtime.lose_records(box, *[one.record.id for one in node.containers()])
    node.boot_id = "boot-2"
    node.kill_agent()
    node.lives.put(web)
    node.heard("u")
    node.after(12.0, step_s=0.5)
    assert node.running() == ["setup#1"]
    node.exit("setup")
    node.after(12.0, step_s=0.5)
    assert node.running() == ["app#1"]
