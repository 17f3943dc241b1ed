"""CRI without a runtime: what is asked, what nonsense makes of answers, how calls end, and logs."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs
import grpc
import pytest

from nodealloc._proto import runtime_v1_pb2 as wire
from nodealloc.cpuset import CPUSet, CpusetBusyError, CpusetWriteError, TargetGoneError
from nodealloc.cri import (
    CriCpusetWriter,
    CriDeadlines,
    CriRuntime,
    LogLine,
    follow_log,
    last_output,
    read_log,
)
from nodealloc.cri._requests import encode_create
from nodealloc.errors import DecodeError, NodeallocError
from nodealloc.idset import NodeSet
from nodealloc.podfacts import Exited, ExitUnknown, PodIdentity
from nodealloc.podspec import ProfileType
from nodealloc.runtime import (
    AnswerLostError,
    CgroupDriverKind,
    CommandTimedOutError,
    ContainerConfig,
    DnsConfig,
    HostDevice,
    HostMount,
    LinuxResources,
    NameReservedError,
    NoSuchRecordError,
    PodListing,
    Propagation,
    RunState,
    RuntimeRefusedError,
    RuntimeUnavailableError,
    SandboxConfig,
    Security,
    SecurityProfile,
)
from nodealloc.testing.dsw_asw import ManualCancel

WEB = PodIdentity(uid="u", namespace="ns", name="web")
LABELS = {
    "io.kubernetes.pod.uid": "u",
    "io.kubernetes.pod.namespace": "ns",
    "io.kubernetes.pod.name": "web",
    "io.kubernetes.container.name": "app",
}
Answer = bytes | tuple[grpc.StatusCode, str] | Callable[[bytes], bytes]


class Peer:
    """A runtime that says what a test tells it to.

    Attributes:
        answers: Method to an answer, a refusal, or a function of the request.
        asked: Each request, by method.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.answers: dict[str, Answer] = {}
        self.asked: list[tuple[str, bytes]] = []
        self._server = self._made()

    def restart(self) -> None:
        """Another one at the same path."""
        self.stop()
        self._server = self._made()

    def stop(self) -> None:
        """End it."""
        self._server.stop(None).wait()
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()

    def _made(self) -> grpc.Server:
        server = grpc.server(ThreadPoolExecutor(8))
        for service in wire.DESCRIPTOR.services_by_name.values():
            methods = {
                one.name: grpc.unary_unary_rpc_method_handler(self._answering(one.name))
                for one in service.methods
                if one.name != "GetContainerEvents"
            }
            handler = grpc.method_handlers_generic_handler(service.full_name, methods)
            server.add_generic_rpc_handlers((handler,))
        server.add_insecure_port(f"unix:{self.path}")
        server.start()
        return server

    def _answering(self, name: str) -> Callable[[bytes, grpc.ServicerContext], bytes]:
        def answer(request: bytes, context: grpc.ServicerContext) -> bytes:
            self.asked.append((name, request))
            said = self.answers.get(name, b"")
            if isinstance(said, tuple):
                context.abort(*said)
            return said if isinstance(said, bytes) else said(request)  # type: ignore[operator]

        return answer


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[Peer]:
    """It answers every call with an empty message."""
    one = Peer(tmp_path / "c.sock")
    yield one
    one.stop()


@pytest.fixture
def runtime(peer: Peer) -> Iterator[CriRuntime]:
    """A client of it, for which it is one hour past the year 2001."""
    one = CriRuntime(peer.path, deadlines=CriDeadlines(look_s=5.0, change_s=5.0), unix_s=lambda: 1e9)
    yield one
    one.close()


def boxes(*items: wire.PodSandbox) -> bytes:
    """An answer to ListPodSandbox."""
    return wire.ListPodSandboxResponse(items=items).SerializeToString()


def runs(*items: wire.Container) -> bytes:
    """An answer to ListContainers."""
    return wire.ListContainersResponse(containers=items).SerializeToString()


def sandbox(id_: str = "s", **more: object) -> wire.PodSandbox:
    """A sandbox of the pod."""
    meta = wire.PodSandboxMetadata(name="web", uid="u", namespace="ns", attempt=1)
    made = wire.PodSandbox(id=id_, metadata=meta, created_at=int(9e17), labels=LABELS)
    made.MergeFrom(wire.PodSandbox(**more))  # type: ignore[arg-type]
    return made


def container(id_: str = "c", labels: Mapping[str, str] = LABELS, **more: object) -> wire.Container:
    """A container of the pod."""
    made = wire.Container(
        id=id_,
        pod_sandbox_id="s",
        metadata=wire.ContainerMetadata(name="app", attempt=2),
        image=wire.ImageSpec(image="busybox"),
        labels=labels,
        annotations={"io.kubernetes.container.hash": "5eed"},
    )
    made.MergeFrom(wire.Container(**more))  # type: ignore[arg-type]
    return made


def status(**more: object) -> bytes:
    """An answer to ContainerStatus."""
    made = wire.ContainerStatus(
        id="c",
        metadata=wire.ContainerMetadata(name="app", attempt=2),
        labels=LABELS,
        **more,  # type: ignore[arg-type]
    )
    return wire.ContainerStatusResponse(status=made).SerializeToString()


def test_a_listing_is_read(peer: Peer, runtime: CriRuntime) -> None:
    """Who, which, how far; what is nobody's is left out."""
    peer.answers = {
        "ListPodSandbox": boxes(sandbox(state=wire.SANDBOX_NOTREADY)),
        "ListContainers": runs(container(state=wire.CONTAINER_RUNNING), container("x", labels={"a": "b"})),
    }
    (pod,) = runtime.listing().pods.values()
    assert (pod.uid, set(pod.marks), pod.oddities) == ("u", {"c", "s"}, ())
    box, run = pod.sandboxes[0], pod.containers[0]
    assert (box.pod, box.attempt, box.is_ready, box.created_unix_s) == (WEB, 1, False, 9e8)
    assert (run.pod, run.name, run.attempt, run.definition) == (WEB, "app", 2, "5eed")
    assert run.created_unix_s is None


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        (container(state=17), "state 17"),
        (container(""), "id: expected a text that is not empty"),
        (
            container(labels={**LABELS, "io.kubernetes.pod.name": ""}),
            "name: expected a text that is not empty",
        ),
        (container("twice"), "'twice' is listed twice"),
    ],
)
def test_nonsense_is_told_and_spoils_its_pod_alone(
    odd: wire.Container, words: str, peer: Peer, runtime: CriRuntime
) -> None:
    """Unknown states, empty names, doubled ids; a pod beside it is as it is."""
    other = wire.PodSandboxMetadata(name="db", uid="v", namespace="ns")
    fine = wire.PodSandbox(id="t", metadata=other)
    peer.answers = {
        "ListPodSandbox": boxes(fine),
        "ListContainers": runs(odd, odd) if "twice" in words else runs(odd),
    }
    pods = runtime.listing().pods
    assert pods["u"].is_spoilt
    assert words in pods["u"].oddities[0].what
    assert not pods["v"].oddities


def test_what_a_listing_shows_as_before_is_the_same_value(peer: Peer, runtime: CriRuntime) -> None:
    """So it costs nothing to read, nor to compare; a state that changed makes its pod another."""
    db = wire.PodSandbox(id="t", metadata=wire.PodSandboxMetadata(name="db", uid="v", namespace="ns"))
    peer.answers = {"ListPodSandbox": boxes(sandbox(), db), "ListContainers": runs(container())}
    first = runtime.listing().pods
    again = runtime.listing().pods
    assert all(again[uid] is first[uid] for uid in "uv")
    peer.answers["ListContainers"] = runs(container(state=wire.CONTAINER_RUNNING))
    after = runtime.listing().pods
    assert after["v"] is first["v"]
    assert [one.state for one in after["u"].containers] == [RunState.RUNNING]
    peer.answers["ListContainers"] = runs(container("other"), container())
    assert [one.id for one in runtime.listing().pods["u"].containers] == ["other", container().id]
    peer.answers["ListContainers"] = runs()
    assert runtime.listing().pods["u"].containers == ()
    peer.answers["ListContainers"] = runs(container(state=17))
    assert runtime.listing().pods["u"].is_spoilt


def test_what_is_listed_is_inspected_without_another_listing(peer: Peer, runtime: CriRuntime) -> None:
    """One question for each; those of a pod of which nothing is listed begin with two listings."""
    peer.answers = {
        "ListPodSandbox": boxes(sandbox()),
        "ListContainers": runs(container()),
        "PodSandboxStatus": (grpc.StatusCode.NOT_FOUND, "gone"),
        "ContainerStatus": status(state=wire.CONTAINER_RUNNING),
    }
    listed = runtime.listing().pods["u"]
    peer.asked.clear()
    runtime.inspect("u", listed)
    assert [name for name, _ in peer.asked] == ["PodSandboxStatus", "ContainerStatus"]
    peer.asked.clear()
    runtime.inspect("u", PodListing(uid="u", containers=listed.containers))
    assert [name for name, _ in peer.asked] == ["ContainerStatus"]
    peer.asked.clear()
    runtime.inspect("u")
    assert len(peer.asked) == 4


def test_a_time_in_the_future_is_told(peer: Peer, runtime: CriRuntime) -> None:
    """It is not believed, and the pod goes on."""
    peer.answers = {"ListPodSandbox": boxes(sandbox(created_at=int(2e18)))}
    pod = runtime.listing().pods["u"]
    assert (pod.is_spoilt, pod.sandboxes[0].created_unix_s) == (False, None)
    assert "in the future, at 2000000000 s" in pod.oddities[0].what


def test_a_clock_that_was_set_back_makes_no_news_each_second(peer: Peer) -> None:
    """What was made before that is from the future from then on, and each listing woke who looks at it."""
    times = itertools.count(1_000_000_000)
    one = CriRuntime(peer.path, unix_s=lambda: float(next(times)))
    peer.answers = {"ListPodSandbox": boxes(sandbox(created_at=int(2e18)))}
    assert one.listing().pods == one.listing().pods
    one.close()


def test_bytes_that_are_no_message_are_refused(peer: Peer, runtime: CriRuntime) -> None:
    """With what they should have been."""
    peer.answers = {"ListPodSandbox": b"\xff\xff"}
    with pytest.raises(DecodeError, match="sandboxes"):
        runtime.listing()


@pytest.mark.parametrize(
    ("code", "reason", "exit_"),
    [
        (0, "Completed", Exited(code=0)),
        (255, "Error", Exited(code=255)),
        (255, "Unknown", ExitUnknown()),
        (-1, "Error", ExitUnknown()),
        (1 << 20, "Error", ExitUnknown()),
    ],
)
def test_exits_are_read(
    code: int, reason: str, exit_: Exited | ExitUnknown, peer: Peer, runtime: CriRuntime
) -> None:
    """What nobody saw, and what is no exit status, is unknown."""
    peer.answers = {
        "ListContainers": runs(container()),
        "ContainerStatus": status(state=wire.CONTAINER_EXITED, exit_code=code, reason=reason),
    }
    (report,) = runtime.inspect("u").containers
    assert (report.exit, report.reason, report.record.sandbox_id) == (exit_, reason, "s")


def test_what_vanishes_between_two_calls_is_left_out(peer: Peer, runtime: CriRuntime) -> None:
    """The listing had it, the inspection does not; nonsense in the inspection is a refusal."""
    peer.answers = {
        "ListPodSandbox": boxes(sandbox()),
        "ListContainers": runs(container()),
        "PodSandboxStatus": (grpc.StatusCode.NOT_FOUND, "gone"),
        "ContainerStatus": (grpc.StatusCode.NOT_FOUND, "gone"),
    }
    report = runtime.inspect("u")
    assert (report.sandboxes, report.containers) == ((), ())
    peer.answers["ContainerStatus"] = status(state=17)
    with pytest.raises(RuntimeRefusedError, match="BAD ANSWER: c: a container in state 17"):
        runtime.inspect("u")


def test_addresses_are_read(peer: Peer, runtime: CriRuntime) -> None:
    """All of them; none of the host's; no report is no report."""
    meta = wire.PodSandboxMetadata(name="web", uid="u", namespace="ns")
    network = wire.PodSandboxNetworkStatus(ip="10.0.0.1", additional_ips=[wire.PodIP(ip="fd00::1")])
    of_host = wire.LinuxPodSandboxStatus(
        namespaces=wire.Namespace(options=wire.NamespaceOption(network=wire.NODE))
    )
    for made, ips in (
        (wire.PodSandboxStatus(id="s", metadata=meta, network=network), ("10.0.0.1", "fd00::1")),
        (wire.PodSandboxStatus(id="s", metadata=meta, network=network, linux=of_host), None),
        (wire.PodSandboxStatus(id="s", metadata=meta), None),
        (wire.PodSandboxStatus(id="s", metadata=meta, network=wire.PodSandboxNetworkStatus()), ()),
    ):
        answer = wire.PodSandboxStatusResponse(status=made).SerializeToString()
        peer.answers = {"ListPodSandbox": boxes(sandbox()), "PodSandboxStatus": answer}
        report = runtime.inspect("u")
        assert report.sandboxes[0].ips == ips
        assert report.ips == (ips or ())


def test_health_is_read(peer: Peer, runtime: CriRuntime) -> None:
    """Conditions, handlers and the driver; an old runtime does not know the last."""
    said = wire.StatusResponse(
        status=wire.RuntimeStatus(
            conditions=[wire.RuntimeCondition(type="RuntimeReady", status=True, message="fine")]
        ),
        runtime_handlers=[wire.RuntimeHandler(name="runc")],
    )
    version = wire.VersionResponse(runtime_name="containerd", runtime_version="1.7.24")
    config = wire.RuntimeConfigResponse(linux=wire.LinuxRuntimeConfiguration(cgroup_driver=wire.SYSTEMD))
    peer.answers = {
        "Status": said.SerializeToString(),
        "Version": version.SerializeToString(),
        "RuntimeConfig": config.SerializeToString(),
    }
    health = runtime.health()
    assert (health.name, health.is_ready, health.is_network_ready) == ("containerd", True, False)
    assert (health.handlers, health.cgroup_driver) == (("runc",), CgroupDriverKind.SYSTEMD)
    peer.answers["RuntimeConfig"] = (grpc.StatusCode.UNIMPLEMENTED, "unknown method")
    assert runtime.health() == health


def test_an_old_runtime_does_not_say_who_makes_cgroups(peer: Peer, runtime: CriRuntime) -> None:
    """Its health is told all the same."""
    peer.answers = {
        "Status": b"",
        "Version": wire.VersionResponse(runtime_name="containerd").SerializeToString(),
        "RuntimeConfig": (grpc.StatusCode.UNIMPLEMENTED, "unknown method"),
    }
    health = runtime.health()
    assert (health.name, health.cgroup_driver) == ("containerd", None)


def test_who_a_runtime_is_is_asked_again_when_it_was_away(peer: Peer, runtime: CriRuntime) -> None:
    """And not each time: it stays the same while it runs."""
    named = {n: wire.VersionResponse(runtime_version=n).SerializeToString() for n in ("1.6", "1.7")}
    peer.answers = {"Status": b"", "Version": named["1.6"], "RuntimeConfig": b""}
    assert runtime.health().version == "1.6"
    peer.answers["Version"] = named["1.7"]
    assert runtime.health().version == "1.6"
    peer.stop()
    with pytest.raises(RuntimeUnavailableError):
        runtime.health()
    peer.restart()
    assert runtime.health().version == "1.7"


def test_what_is_asked_for_is_written(peer: Peer, runtime: CriRuntime) -> None:
    """Each field where the protocol has it, with the words of a kubelet."""
    box = SandboxConfig(
        pod=WEB,
        attempt=3,
        hostname="web",
        log_directory="/logs",
        cgroup_parent="/pods/u",
        host_pid=True,
        handler="kata",
        dns=DnsConfig(servers=("192.0.2.1",), searches=("example.com",)),
        sysctls={"net.core.somaxconn": "1"},
        labels={"app": "web"},
    )
    peer.answers = {
        "RunPodSandbox": wire.RunPodSandboxResponse(pod_sandbox_id="s1").SerializeToString(),
        "CreateContainer": wire.CreateContainerResponse(container_id="c1").SerializeToString(),
    }
    assert runtime.run_sandbox(box) == "s1"
    asked = wire.RunPodSandboxRequest.FromString(peer.asked[-1][1])
    assert (asked.runtime_handler, asked.config.metadata.attempt, asked.config.hostname) == ("kata", 3, "web")
    assert asked.config.labels["io.kubernetes.pod.uid"] == "u"
    assert asked.config.labels["app"] == "web"
    assert asked.config.linux.security_context.namespace_options.pid == wire.NODE
    config = ContainerConfig(
        name="app",
        attempt=4,
        image="sha256:1",
        args=("-v",),
        env={"A": "b"},
        mounts=(HostMount(host_path="/h", container_path="/c", propagation=Propagation.BIDIRECTIONAL),),
        devices=(HostDevice(host_path="/dev/a", container_path="/dev/b", permissions="r"),),
        cdi_devices=("example.com/gpu=0",),
        resources=LinuxResources(cpu_shares=2, cpus=CPUSet.of(1, 2), mems=NodeSet.of(0)),
        security=Security(user=0, add_capabilities=("NET_ADMIN",)),
        definition="5eed",
        grace_s=0,
    )
    assert runtime.create_container("s1", config, box) == "c1"
    made = wire.CreateContainerRequest.FromString(peer.asked[-1][1])
    assert (made.pod_sandbox_id, made.config.mounts[0].propagation) == ("s1", wire.PROPAGATION_BIDIRECTIONAL)
    assert (made.config.linux.resources.cpuset_cpus, made.config.linux.resources.cpuset_mems) == ("1-2", "0")
    assert made.config.linux.security_context.HasField("run_as_user")
    assert not made.config.linux.security_context.HasField("run_as_group")
    assert made.config.annotations == {
        "io.kubernetes.container.hash": "5eed",
        "io.kubernetes.container.restartCount": "4",
        "io.kubernetes.pod.terminationGracePeriod": "0",
    }
    runtime.stop_container("c1", 0.2)
    assert wire.StopContainerRequest.FromString(peer.asked[-1][1]).timeout == 1
    runtime.run_command("c1", ["true"], 0.5)
    assert wire.ExecSyncRequest.FromString(peer.asked[-1][1]).timeout == 1
    assert runtime.run_sandbox(attrs.evolve(box, host_network=True)) == "s1"
    assert wire.RunPodSandboxRequest.FromString(peer.asked[-1][1]).config.hostname == ""


@pytest.mark.parametrize("grace_s", [8e9, 1e12, float(2**63 - 1)])
def test_a_grace_of_centuries_is_asked_for_as_decades(
    peer: Peer, runtime: CriRuntime, grace_s: float
) -> None:
    """No call can end after 2262, and no runtime counts more nanoseconds: such a call had ended at once."""
    runtime.stop_container("c1", grace_s)
    assert wire.StopContainerRequest.FromString(peer.asked[-1][1]).timeout == 10**9


def security_of(config: ContainerConfig, box: SandboxConfig) -> wire.LinuxContainerSecurityContext:
    """What a runtime is told of a container's rights."""
    data = encode_create("s", config, box)
    return wire.CreateContainerRequest.FromString(data).config.linux.security_context


def test_bytes_that_are_no_text_are_refused_by_the_name_of_their_variable() -> None:
    """As a secret may have them: the protocol carries text alone, and the error shows none of it."""
    box = SandboxConfig(pod=WEB)
    env = {"A": "fine", "TOKEN": "se\udccfcret"}
    config = ContainerConfig(name="app", image="i", env=env, args=("se\udccfcret",))
    with pytest.raises(RuntimeRefusedError, match="variable TOKEN holds bytes that are no UTF-8") as caught:
        encode_create("s", config, box)
    assert "cret" not in str(caught.value)
    assert caught.value.__cause__ is None
    with pytest.raises(RuntimeRefusedError, match="a field of it holds bytes that are no UTF-8"):
        encode_create("s", attrs.evolve(config, env={}), box)


def test_a_profile_of_app_armor_is_told_in_both_forms() -> None:
    """There are runtimes that know the old one alone."""
    app, box = ContainerConfig(name="app", image="i"), SandboxConfig(pod=WEB)
    bare = security_of(app, box)
    assert (bare.HasField("apparmor"), bare.HasField("capabilities")) == (False, False)
    assert bare.apparmor_profile == ""
    for kind, name, old in (
        (ProfileType.UNCONFINED, "", "unconfined"),
        (ProfileType.RUNTIME_DEFAULT, "", "runtime/default"),
        (ProfileType.LOCALHOST, "tight", "localhost/tight"),
    ):
        security = Security(apparmor=SecurityProfile(type=kind, localhost=name))
        told = security_of(attrs.evolve(app, security=security), box)
        assert (told.apparmor.localhost_ref, told.apparmor_profile) == (name, old)


def test_processes_of_a_target_are_shared_where_each_has_its_own() -> None:
    """Who sees those of all of the pod, or of the node, sees the target's anyway."""
    look = ContainerConfig(name="look", image="i", shares_pid_with="c1")
    for box, want in (
        (SandboxConfig(pod=WEB), (wire.TARGET, "c1")),
        (SandboxConfig(pod=WEB, shares_pid=True), (wire.POD, "")),
        (SandboxConfig(pod=WEB, host_pid=True), (wire.NODE, "")),
    ):
        options = security_of(look, box).namespace_options
        assert (options.pid, options.target_id) == want


@pytest.mark.parametrize(
    ("code", "words", "error"),
    [
        ("UNKNOWN", "server is not initialized yet", RuntimeUnavailableError),
        ("UNAVAILABLE", "server is not initialized yet", RuntimeUnavailableError),
        ("UNAVAILABLE", "Socket closed", AnswerLostError),
        ("DEADLINE_EXCEEDED", "context deadline exceeded", AnswerLostError),
        ("UNKNOWN", 'failed to reserve sandbox name "web": name is reserved for "s"', NameReservedError),
        ("FAILED_PRECONDITION", 'name "web" is reserved', NameReservedError),
        ("ALREADY_EXISTS", "there", NameReservedError),
        ("NOT_FOUND", "no image", NoSuchRecordError),
        ("INVALID_ARGUMENT", "no metadata", RuntimeRefusedError),
    ],
)
def test_how_calls_end(
    code: str, words: str, error: type[Exception], peer: Peer, runtime: CriRuntime
) -> None:
    """Not done, may be done, taken, not there, no: each is told apart, whatever a version says."""
    peer.answers = {"RunPodSandbox": (grpc.StatusCode[code], words)}
    with pytest.raises(error) as caught:
        runtime.run_sandbox(SandboxConfig(pod=WEB))
    assert type(caught.value) is error
    peer.answers = {"ListPodSandbox": (grpc.StatusCode[code], words)}
    with pytest.raises(Exception, match="ListPodSandbox") as looked:
        runtime.listing()
    assert not isinstance(looked.value, AnswerLostError)


def test_nobody_there_is_not_now(peer: Peer, runtime: CriRuntime) -> None:
    """Nothing was done, and the socket is named; a runtime that comes back there is dialled anew."""
    runtime.listing()
    peer.stop()
    with contextlib.suppress(RuntimeUnavailableError):
        while runtime.listing() is not None:  # a connection that has not noticed yet may lose a call
            pass
    with pytest.raises(RuntimeUnavailableError, match=re.escape(f"{peer.path}: ")):
        runtime.run_sandbox(SandboxConfig(pod=WEB))
    peer.restart()
    runtime.listing()


def test_a_command_that_takes_too_long(peer: Peer, runtime: CriRuntime) -> None:
    """Whoever notices it, the runtime or the caller: it has run out of time, and may still run."""
    peer.answers = {"ExecSync": (grpc.StatusCode.DEADLINE_EXCEEDED, "timeout 1s exceeded")}
    with pytest.raises(CommandTimedOutError, match="after 1 s"):
        runtime.run_command("c", ["sleep"], 1.0)
    peer.answers = {"ExecSync": (grpc.StatusCode.UNAVAILABLE, "Socket closed")}
    with pytest.raises(AnswerLostError):
        runtime.run_command("c", ["sleep"], 1.0)


def test_two_probes_may_run_the_same_command(peer: Peer, runtime: CriRuntime) -> None:
    """Liveness and readiness ask alike at one moment; what hangs for good still piles up no further."""
    gate, entered = threading.Event(), threading.Semaphore(0)

    def hang(_request: bytes) -> bytes:
        entered.release()
        gate.wait(20.0)
        return b""

    peer.answers = {"ExecSync": hang}
    asking = [
        threading.Thread(target=runtime.run_command, args=("c", ["cat", "ok"], 10.0), daemon=True)
        for _ in range(4)
    ]
    for one in asking:
        one.start()
        assert entered.acquire(timeout=10.0)
    with pytest.raises(RuntimeUnavailableError, match="one is under way"):
        runtime.run_command("c", ["cat", "ok"], 10.0)
    gate.set()
    for one in asking:
        one.join(10.0)


@pytest.mark.parametrize("about", ["u", ""])
def test_several_may_look_at_once(peer: Peer, runtime: CriRuntime, about: str) -> None:
    """Who makes a container asks for its pod's address while the watch looks at that; a few, and no more.

    Who tidies up lists as well, and nobody is told of an outage for that.
    """

    def look() -> None:
        if about:
            runtime.inspect(about)
        else:
            runtime.listing()

    gate, entered = threading.Event(), threading.Semaphore(0)

    def hang(_request: bytes) -> bytes:
        entered.release()
        gate.wait(20.0)
        return boxes()

    peer.answers = {"ListPodSandbox": hang}
    asking = [threading.Thread(target=look, daemon=True) for _ in range(4)]
    for one in asking:
        one.start()
        assert entered.acquire(timeout=10.0)
    with pytest.raises(RuntimeUnavailableError, match="one is under way"):
        look()
    gate.set()
    for one in asking:
        one.join(10.0)


def test_a_container_is_asked_to_end_sooner_while_it_has_longer(peer: Peer, runtime: CriRuntime) -> None:
    """A grace only shrinks, and who shortens it does not wait for it; what hangs piles up no further."""
    gate, entered = threading.Event(), threading.Semaphore(0)
    graces: list[int] = []

    def hang(request: bytes) -> bytes:
        graces.append(wire.StopContainerRequest.FromString(request).timeout)
        entered.release()
        gate.wait(20.0)
        return b""

    peer.answers = {"StopContainer": hang}
    asking = [
        threading.Thread(target=runtime.stop_container, args=("c", grace_s), daemon=True)
        for grace_s in (3600.0, 30.0, 2.0, 0.0)
    ]
    for one in asking:
        one.start()
        assert entered.acquire(timeout=10.0)
    assert graces == [3600, 30, 2, 0]
    with pytest.raises(RuntimeUnavailableError, match="one is under way"):
        runtime.stop_container("c", 0.0)
    gate.set()
    for one in asking:
        one.join(10.0)


def test_calls_do_not_pile_up_behind_one_that_hangs(peer: Peer, runtime: CriRuntime) -> None:
    """Thousands of the same are refused at once; other containers, other calls go on; then it works again."""
    gate, entered = threading.Event(), threading.Event()

    def hang(request: bytes) -> bytes:
        if wire.StartContainerRequest.FromString(request).container_id == "hung":
            entered.set()
            gate.wait(20.0)
        return b""

    peer.answers = {"StartContainer": hang}
    first = threading.Thread(target=runtime.start_container, args=("hung",), daemon=True)
    first.start()
    assert entered.wait(10.0)
    for _ in range(5000):
        with pytest.raises(RuntimeUnavailableError, match="one is under way"):
            runtime.start_container("hung")
    runtime.start_container("other")
    runtime.listing()
    assert [name for name, _ in peer.asked].count("StartContainer") == 2
    gate.set()
    first.join(10.0)
    runtime.start_container("hung")


def test_who_asks_for_images_at_the_same_time_shares_an_answer(peer: Peer, runtime: CriRuntime) -> None:
    """None is refused, none gets an answer that is older than the question, and two calls serve them all."""
    gate, entered = threading.Event(), threading.Event()
    listings = iter("abc")

    def list_images(_request: bytes) -> bytes:
        name = next(listings)
        if name == "a":
            entered.set()
            gate.wait(20.0)
        return wire.ListImagesResponse(images=[wire.Image(id=name)]).SerializeToString()

    peer.answers = {"ListImages": list_images}
    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(runtime.images)
        assert entered.wait(10.0)
        others = [pool.submit(runtime.images) for _ in range(8)]
        time.sleep(0.1)  # they wait; one that did not yet would get an answer that is newer still
        gate.set()
        assert [one.id for one in first.result(20.0)] == ["a"]
        assert {one.id for other in others for one in other.result(20.0)} <= {"b", "c"}
    assert [name for name, _ in peer.asked].count("ListImages") <= 3


def test_who_shares_an_answer_shares_its_failure(peer: Peer, runtime: CriRuntime) -> None:
    """Nobody waits for a runtime that is away once for each who asked before."""
    peer.stop()
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(runtime.images) for _ in range(4)]
        for one in asked:
            with pytest.raises(RuntimeUnavailableError):
                one.result(20.0)


@pytest.mark.parametrize("scheme", ["unix://", "unix:"])
def test_a_socket_may_be_named_as_a_kubelet_names_it(peer: Peer, scheme: str) -> None:
    """As `containerRuntimeEndpoint` does."""
    runtime = CriRuntime(f"{scheme}{peer.path}")
    assert runtime.listing().pods == {}
    runtime.close()


def test_a_kill_while_the_runtime_was_away_is_unknown(peer: Peer) -> None:
    """137 is what old runtimes say of it; a kill at another time, or by the kernel, is one."""
    now = [100.0]
    runtime = CriRuntime(peer.path, unix_s=lambda: now[0])
    runtime.listing()
    peer.stop()
    now[0] = 110.0
    with pytest.raises(RuntimeUnavailableError):
        runtime.listing()
    peer.restart()
    now[0] = 120.0
    runtime.listing()
    for at, reason, exit_ in (
        (115, "Error", ExitUnknown()),
        (130, "Error", Exited(code=137)),
        (90, "Error", Exited(code=137)),
        (115, "OOMKilled", Exited(code=137)),
    ):
        peer.answers = {
            "ListContainers": runs(container()),
            "ContainerStatus": status(
                state=wire.CONTAINER_EXITED, exit_code=137, reason=reason, finished_at=at * 10**9
            ),
        }
        assert runtime.inspect("u").containers[0].exit == exit_
    runtime.close()


def test_an_image_is_asked_for_with_the_sandbox_that_it_is_for(peer: Peer) -> None:
    """A runtime may choose by its name space and its annotations, as where it unpacks."""
    asked: list[wire.PullImageRequest] = []

    def pull(request: bytes) -> bytes:
        asked.append(wire.PullImageRequest.FromString(request))
        return wire.PullImageResponse(image_ref="sha256:a").SerializeToString()

    runtime = CriRuntime(peer.path)
    peer.answers = {"PullImage": pull}
    box = SandboxConfig(
        pod=PodIdentity(uid="u", namespace="shop", name="web"),
        annotations={"a": "b"},
        cgroup_parent="/pods/u",
    )
    assert runtime.pull_image("far", None, box) == runtime.pull_image("far") == "sha256:a"
    first, second = asked
    assert (first.sandbox_config.metadata.namespace, first.sandbox_config.metadata.uid) == ("shop", "u")
    assert first.sandbox_config.annotations["a"] == "b"
    assert first.sandbox_config.linux.cgroup_parent == "/pods/u"
    assert not second.HasField("sandbox_config")
    runtime.close()


def test_who_is_told_that_something_else_is_away_takes_no_call_from_others(peer: Peer) -> None:
    """As of one registry: the runtime was there all the time, and what was killed meanwhile was killed."""
    gate, entered, now = threading.Event(), threading.Event(), [100.0]
    runtime = CriRuntime(peer.path, unix_s=lambda: now[0])

    def pull(request: bytes) -> bytes:
        entered.set()
        gate.wait(20.0)
        return wire.PullImageResponse(image_ref="sha256:a").SerializeToString()

    peer.answers = {"PullImage": pull}
    runtime.listing()
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(runtime.pull_image, "slow")
        assert entered.wait(10.0)
        peer.answers = {"PullImage": (grpc.StatusCode.UNAVAILABLE, "503 Service Unavailable")}
        with pytest.raises(NodeallocError, match="503 Service Unavailable"):
            runtime.pull_image("refused")
        gate.set()
        assert other.result(20.0) == "sha256:a"
    now[0] = 110.0
    died = status(state=wire.CONTAINER_EXITED, exit_code=137, reason="Error", finished_at=105 * 10**9)
    peer.answers = {"ListContainers": runs(container()), "ContainerStatus": died}
    assert runtime.inspect("u").containers[0].exit == Exited(code=137)
    runtime.close()


def test_a_runtime_without_events_says_so(peer: Peer, runtime: CriRuntime) -> None:
    """No method of that name is a refusal; nobody there is not now."""
    with pytest.raises(RuntimeRefusedError, match="UNIMPLEMENTED"):
        runtime.follow(lambda: None, ManualCancel())
    peer.stop()
    with pytest.raises(RuntimeUnavailableError):
        runtime.follow(lambda: None, ManualCancel())


def test_a_listing_that_finds_nothing_is_a_refusal(peer: Peer, runtime: CriRuntime) -> None:
    """It is about no record, of which could be said that it is not there."""
    peer.answers = {"ListPodSandbox": (grpc.StatusCode.NOT_FOUND, "no such snapshotter")}
    with pytest.raises(RuntimeRefusedError, match="ListPodSandbox: NOT_FOUND: no such snapshotter"):
        runtime.listing()


def notes(cpus: str, mems: str = "", pid: int = 0) -> bytes:
    """An answer with the runtime's own notes."""
    info = '{"pid": %d, "runtimeSpec": {"linux": {"resources": {"cpu": {"cpus": "%s", "mems": "%s"}}}}}'
    return wire.ContainerStatusResponse(info={"info": info % (pid, cpus, mems)}).SerializeToString()


def test_cpusets_go_through_the_runtime(peer: Peer, runtime: CriRuntime, tmp_path: Path) -> None:
    """Read from its notes, or from the process where it has none; refusals are the writer's own."""
    writer = CriCpusetWriter(runtime, proc=tmp_path)
    peer.answers = {"ContainerStatus": notes("0-1,4", "1")}
    assert writer.read("c") == (CPUSet.of(0, 1, 4), NodeSet.of(1))
    writer.write("c", CPUSet.of(3), None)
    asked = wire.UpdateContainerResourcesRequest.FromString(peer.asked[-1][1])
    assert (asked.container_id, asked.linux.cpuset_cpus, asked.linux.cpuset_mems) == ("c", "3", "")
    with pytest.raises(CpusetWriteError, match="empty set"):
        writer.write("c", CPUSet(), None)
    peer.answers = {"ContainerStatus": notes("", pid=7)}
    with pytest.raises(TargetGoneError):
        writer.read("c")
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "status").write_bytes(b"Name:\tgr\xc3\xbc\xc3\nCpus_allowed_list:\t2-3\n")
    assert writer.read("c") == (CPUSet.of(2, 3), None)
    peer.answers = dict.fromkeys(
        ("ContainerStatus", "UpdateContainerResources"), (grpc.StatusCode.NOT_FOUND, "gone")
    )
    for call in (lambda: writer.read("c"), lambda: writer.write("c", CPUSet.of(0), None)):
        with pytest.raises(TargetGoneError):
            call()
    peer.answers = dict.fromkeys(
        ("ContainerStatus", "UpdateContainerResources"), (grpc.StatusCode.UNKNOWN, "no such CPU")
    )
    for call in (lambda: writer.read("c"), lambda: writer.write("c", CPUSet.of(9), None)):
        with pytest.raises(CpusetWriteError, match="no such CPU"):
            call()
    for text in ("{", "[" * 60_000):
        broken = wire.ContainerStatusResponse(info={"info": text}).SerializeToString()
        peer.answers = {"ContainerStatus": broken}
        with pytest.raises(CpusetWriteError, match="no JSON"):
            writer.read("c")


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO])
def test_a_process_that_cannot_be_read_now_is_not_gone(
    peer: Peer, runtime: CriRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Whoever is told that a target is gone never confines it again, though its process runs."""

    def fail(self: Path, **_: str) -> str:
        raise OSError(number, os.strerror(number), str(self))

    peer.answers = {"ContainerStatus": notes("", pid=7)}
    monkeypatch.setattr(Path, "read_text", fail)
    with pytest.raises(CpusetBusyError, match=rf"proc/7/status: {os.strerror(number)}"):
        CriCpusetWriter(runtime, proc=tmp_path / "proc").read("c")


@pytest.mark.parametrize(
    ("line", "read"),
    [
        (
            b"2026-01-02T03:04:05.5Z stdout F hello world",
            LogLine(text=b"hello world", stream="stdout", unix_s=1767323045.5),
        ),
        (
            b"2026-01-02T05:04:05+02:00 stderr P:X ",
            LogLine(text=b"", stream="stderr", unix_s=1767323045.0, is_partial=True),
        ),
        (b"no log at all", LogLine(text=b"no log at all")),
        (b"2026-13-02T03:04:05Z stdout F x", LogLine(text=b"2026-13-02T03:04:05Z stdout F x")),
        (b"\xff\xff stdout F x", LogLine(text=b"\xff\xff stdout F x")),
    ],
)
def test_lines_of_logs_are_read(line: bytes, read: LogLine) -> None:
    """Time, stream and mark; what is none of it is kept as it is."""
    assert LogLine.of(line) == read


def test_logs_are_followed_across_their_changes(tmp_path: Path) -> None:
    """Appended, put aside, begun anew, cut short, not there yet: every line is told once, in order."""
    path = tmp_path / "0.log"

    def line(text: str) -> bytes:
        return f"2026-01-02T03:04:05Z stdout F {text}\n".encode()

    cancel, looks = ManualCancel(), list[Callable[[], object]]()

    class Script(ManualCancel):
        """Each wait does the next thing to the file."""

        def wait(self, timeout_s: float | None = None, /) -> bool:
            """One step further; after the last it is asked to stop."""
            if not looks:
                self.set()
                return True
            looks.pop(0)()
            return False

    def append(data: bytes) -> None:
        with path.open("ab") as file:
            file.write(data)

    def rotate() -> None:
        append(line("c"))
        path.rename(tmp_path / "0.log.old")
        path.write_bytes(line("d"))

    looks += [
        lambda: append(line("a")),
        lambda: append(line("b")[:20]),
        lambda: append(line("b")[20:]),
        rotate,
        lambda: path.write_bytes(b""),
        lambda: append(line("e")),
    ]
    told = [one.text for one in follow_log(path, Script())]
    assert told == [b"a", b"b", b"c", b"d", b"e"]
    append(b"half a line")
    assert [one.text for one in read_log(path)] == [b"e"]
    cancel.set()
    assert [one.text for one in follow_log(path, cancel)] == [b"e"]


def test_what_is_no_log_is_not_waited_for(tmp_path: Path) -> None:
    """A pipe in its place is an error at once, however the log is read."""
    path = tmp_path / "0.log"
    os.mkfifo(path)
    for read in (last_output, lambda one: [*read_log(one)], lambda one: [*follow_log(one, ManualCancel())]):
        with pytest.raises(OSError, match="no regular file"):
            read(path)
