"""What a pod is: what its values hold, and what they refuse."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable

import attrs
import pytest

from nodealloc.podfacts import (
    ConditionStatus,
    ContainerRunning,
    ContainerStatus,
    ContainerTerminated,
    ContainerWaiting,
    EventKind,
    Exited,
    ExitUnknown,
    HostPort,
    LifeState,
    NodeView,
    PodCondition,
    PodEvent,
    PodIdentity,
    PodOnNode,
    PodPhase,
    PodsOnNode,
    PodStatus,
    Pressure,
    Taint,
    TaintEffect,
    Transport,
)
from nodealloc.podspec import Container, Pod, Quantity
from nodealloc.verdicts import Admitted, Refused, Verdict

WEB = PodIdentity(uid="u", namespace="default", name="web")


def pod(uid: str, **requests: int) -> Pod:
    """A pod with one container that requests these whole amounts."""
    amounts = {name: Quantity.of(amount) for name, amount in requests.items()}
    return Pod(uid=uid, name=uid, containers=(Container(name="app", requests=amounts),))


def test_an_identity_is_that_of_its_pod() -> None:
    """Uid, namespace and name; two pods of one name are two."""
    assert PodIdentity.of(Pod(uid="u", name="web")) == WEB
    assert WEB.full_name == "default/web"
    assert attrs.evolve(WEB, uid="v") != WEB
    with pytest.raises(ValueError, match="name: expected a text that is not empty"):
        PodIdentity.of(Pod(uid="u"))


def test_an_unknown_exit_is_no_exit_code() -> None:
    """Not knowing how a container ended equals neither a success nor any failure."""
    assert ContainerTerminated(exit=ExitUnknown()) != ContainerTerminated(exit=Exited(code=0))
    assert not isinstance(ExitUnknown(), Exited)
    assert Exited(code=137, signal=9) != Exited(code=137)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Exited(code=-1), "ExitUnknown"),
        (lambda: Exited(code=256), "outside 0 to 255"),
        (lambda: Exited(code=1, signal=0), "outside 1 to 64"),
        (lambda: ContainerRunning(started_unix_s=math.inf), "finite Unix seconds"),
        (lambda: ContainerTerminated(exit=ExitUnknown(), finished_unix_s=math.nan), "finite Unix seconds"),
        (
            lambda: ContainerTerminated(exit=ExitUnknown(), container_id=""),
            "container_id: expected a text that is not empty",
        ),
        (lambda: ContainerStatus(name=""), "name: expected a text that is not empty"),
        (lambda: ContainerStatus(name="app", restart_count=-1), "0 or more"),
        (lambda: ContainerStatus(name="app", image_id=""), "image_id: expected a text that is not empty"),
        (
            lambda: PodCondition(type="", status=ConditionStatus.TRUE),
            "type: expected a text that is not empty",
        ),
        (lambda: PodStatus(pod_ips=("10.0.0.300",)), "expected an IP address"),
        (lambda: PodStatus(pod_ips=("10.0.0.3", "10.0.0.3")), "each address once"),
        (
            lambda: PodEvent(pod=WEB, kind=EventKind.NORMAL, reason=""),
            "reason: expected a text that is not empty",
        ),
        (
            lambda: PodEvent(pod=WEB, kind=EventKind.NORMAL, reason="Killing", container=""),
            "container: expected a text that is not empty",
        ),
        (lambda: HostPort(port=0), "outside 1 to 65535"),
        (lambda: HostPort(port=80, address="everywhere"), "expected an IP address"),
        (lambda: Taint(key="", effect=TaintEffect.NO_EXECUTE), "key: expected a text that is not empty"),
        (lambda: NodeView(name=""), "name: expected a text that is not empty"),
    ],
)
def test_nonsense_is_refused(make: Callable[[], object], words: str) -> None:
    """Each value names the field that cannot be, and what to give instead."""
    with pytest.raises(ValueError, match=words):
        make()


def test_a_container_is_told_of_once() -> None:
    """Init, main and ephemeral containers share one space of names."""
    one = ContainerStatus(name="app", state=ContainerWaiting(reason="PodInitializing"))
    with pytest.raises(ValueError, match="app are told of more than once"):
        PodStatus(init_containers=(one,), containers=(one,))


def test_a_status_is_asked_by_name() -> None:
    """A condition by its type, the first of two; a container whichever kind it is of; None for others."""
    first = PodCondition(type="Ready", status=ConditionStatus.FALSE)
    second = attrs.evolve(first, status=ConditionStatus.TRUE)
    side, app = ContainerStatus(name="side"), ContainerStatus(name="app")
    status = PodStatus(conditions=(first, second), init_containers=(side,), ephemeral_containers=(app,))
    assert status.condition("Ready") is first
    assert (status.container("side"), status.container("app")) == (side, app)
    assert (status.condition("Initialized"), status.container("none")) == (None, None)
    assert status.all_containers == (side, app)


def test_two_phases_are_final() -> None:
    """Succeeded and Failed; a pod whose phase is unknown may still come back."""
    assert [one for one in PodPhase if one.is_terminal] == [PodPhase.SUCCEEDED, PodPhase.FAILED]


def test_a_life_only_goes_on() -> None:
    """From where it ends on it stays ending; containers run while it syncs and while it terminates."""
    assert [one.is_ending for one in LifeState] == [False, False, True, True, True]
    assert [one for one in LifeState if one.may_run] == [LifeState.SYNCING, LifeState.TERMINATING]


def test_a_view_has_what_its_pods_take() -> None:
    """Sums follow each pod that comes, changes or goes; what nobody asks for any more is left out."""
    empty = NodeView(name="n1")
    view = empty.with_pod(PodOnNode.of(pod("a", cpu=2, memory=5))).with_pod(PodOnNode.of(pod("b", cpu=1)))
    assert view.pods.requested == {"cpu": Quantity.of(3), "memory": Quantity.of(5)}
    smaller = view.with_pod(PodOnNode.of(pod("a", cpu=1), state=LifeState.TERMINATING))
    assert smaller.pods.requested == {"cpu": Quantity.of(2)}
    assert smaller.pods["a"].state.is_ending
    assert list(smaller.pods) == ["a", "b"]
    assert smaller.without("a").without("a").without("b") == empty
    assert view.pods.requested["cpu"] == Quantity.of(3), "a view does not change"


def test_a_view_can_be_sent_elsewhere() -> None:
    """Another process gets an equal view, with the sums."""
    view = NodeView(name="n1", pressure=frozenset({Pressure.MEMORY})).with_pod(PodOnNode.of(pod("a", cpu=2)))
    other = pickle.loads(pickle.dumps(view))  # noqa: S301 - our own bytes
    assert other == view
    assert other.pods.requested == view.pods.requested
    assert "'a'" in repr(other.pods)


def test_of_two_pods_with_one_uid_the_later_counts() -> None:
    """A listing that names a pod twice counts it once."""
    pods = PodsOnNode([PodOnNode.of(pod("a", cpu=2)), PodOnNode.of(pod("a", cpu=1))])
    assert (len(pods), pods.requested) == (1, {"cpu": Quantity.of(1)})


def test_a_judge_is_a_function_of_a_pod_and_a_view() -> None:
    """Ports, taints, pressure and shutdown are all there; the answer is a verdict."""
    taken = HostPort(port=80, transport=Transport.TCP)

    def port_is_free(_pod: Pod, view: NodeView) -> Verdict:
        if any(taken in one.host_ports for one in view.pods.values()):
            return Refused(reason="NodePorts", message="port 80 is taken", figures={"port": 80})
        return Admitted()

    web = pod("web")
    view = NodeView(name="n1", taints=(Taint(key="k", effect=TaintEffect.NO_EXECUTE),))
    assert port_is_free(web, view) == Admitted()
    there = view.with_pod(PodOnNode.of(web, host_ports=[taken]))
    assert isinstance(port_is_free(pod("other"), there), Refused)
    assert not there.shutting_down
