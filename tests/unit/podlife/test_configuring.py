"""The configuration of a node's pods from what preparations gave, and the files that they mount."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import attrs
import pytest

from nodealloc.errors import ConfigurationError
from nodealloc.idset import CPUSet
from nodealloc.podfacts import PodIdentity
from nodealloc.podlife import (
    Configures,
    ContainerConfigError,
    ContainerRunOptions,
    ImageFacts,
    NodeConfiguration,
    NodeSettings,
    PodFiles,
    PodRecord,
    PodRunOptions,
    SandboxConfigError,
    pod_dns,
)
from nodealloc.podlife._configuration import termination_message
from nodealloc.podlife._configuration._container import message_path
from nodealloc.podspec import Container, MessagePolicy, Pod, SecurityContext, ValueFrom, Variable
from nodealloc.podspec._network import HostAlias
from nodealloc.podspec._variables import FieldRef
from nodealloc.runtime import ContainerRecord, ContainerReport, DnsConfig, PodReport, RunState
from nodealloc.testing.podlife import check_configures

NODE = NodeSettings(name="n1", memory_capacity_bytes=1 << 30)
IP = Variable(name="IP", value_from=ValueFrom(field_ref=FieldRef(field_path="status.podIP")))
WEB = Pod(
    uid="u",
    name="web",
    containers=(Container(name="app", image="a:1", variables=(IP,)), Container(name="db", image="b:1")),
    host_aliases=(HostAlias(ip="10.9.9.9", hostnames=("far",)),),
)
REPORT = PodReport(uid="u", ips=("10.1.0.5",))


RECORD = PodRecord(pod=WEB)


def test_what_preparations_give_is_joined() -> None:
    """In their order; for all containers or one; what is no `PodRunOptions` is for others."""
    provided: dict[str, object] = {
        "cgroup": PodRunOptions(cgroup_parent="/kubepods/podu"),
        "volumes": PodRunOptions(groups=(7,), everywhere=ContainerRunOptions(env={"A": "all"})),
        "cpus": PodRunOptions(
            containers={"app": ContainerRunOptions(cpus=CPUSet.parse("2"), env={"A": "mine"})}
        ),
        "licence": object(),
    }
    configuration: Configures = NodeConfiguration(NODE)
    sandbox = configuration.sandbox(WEB, 3, provided)
    assert (sandbox.attempt, sandbox.cgroup_parent, sandbox.groups) == (3, "/kubepods/podu", (7,))
    app, db = (
        configuration.container(PodRecord(pod=WEB, provided=provided), one, 0, "i", REPORT)
        for one in WEB.containers
    )
    assert (app.env, str(app.resources.cpus), app.security.groups) == (
        {"A": "mine", "IP": "10.1.0.5"},
        "2",
        (7,),
    )
    assert (db.env, db.resources.cpus) == ({"A": "all"}, None)


def test_a_pod_gets_the_name_servers_and_hosts_that_its_node_has_by_then(tmp_path: Path) -> None:
    """Nodes move between networks; where nobody can tell, a sandbox waits, and a container does not."""
    node = attrs.evolve(NODE, pods_directory=str(tmp_path))
    told: list[NodeSettings | Exception] = [
        attrs.evolve(node, name="other", resolver=DnsConfig(servers=("192.0.2.1",))),
        attrs.evolve(node, hosts="192.0.2.7 n1\n"),
        OSError("no hosts"),
        ConfigurationError("resolvConf: gone"),
    ]

    def fresh() -> NodeSettings:
        found = told.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    mine = attrs.evolve(node, services={"A": "x"})
    configuration = NodeConfiguration(mine, fresh=fresh, files=PodFiles())
    dns = configuration.sandbox(WEB, 0, {}).dns
    assert dns is not None
    assert dns.servers == ("192.0.2.1",)
    shared = attrs.evolve(WEB, host_network=True)
    for attempt in (0, 1):
        (tmp_path / "u" / "etc-hosts").unlink(missing_ok=True)
        report = PodReport(uid="u")
        found = configuration.container(PodRecord(pod=shared), shared.containers[0], attempt, "i", report)
        assert found.env["A"] == "x", "nothing else of it counts"
        assert "192.0.2.7 n1" in (tmp_path / "u" / "etc-hosts").read_text()
    with pytest.raises(SandboxConfigError, match="resolvConf: gone"):
        configuration.sandbox(WEB, 0, {})


def test_what_does_not_fit_into_a_pods_resolver_is_said(caplog: pytest.LogCaptureFixture) -> None:
    """A fourth name server is never asked; whoever wants to know it before asks by `pod_dns`."""
    servers = tuple(f"192.0.2.{number}" for number in range(4))
    node = attrs.evolve(NODE, resolver=DnsConfig(servers=servers))
    NodeConfiguration(node).sandbox(WEB, 0, {})
    (line,) = caplog.messages
    assert line == "pod default/web: 192.0.2.3 does not fit into its resolv.conf, and is left out"
    assert pod_dns(WEB, node).left_out == ("192.0.2.3",)
    caplog.clear()
    NodeConfiguration(NODE).sandbox(WEB, 0, {})
    assert caplog.messages == []


def test_a_pod_of_a_node_without_a_resolver_asks_itself() -> None:
    """Of the families of addresses that the node has."""
    alone = attrs.evolve(NODE, resolver=None)
    dns = NodeConfiguration(alone, host_ips=("fd00::7",)).sandbox(WEB, 0, {}).dns
    assert dns is not None
    assert dns.servers == ("::1",)


def test_a_pod_with_the_nodes_network_has_its_addresses() -> None:
    """The runtime reports none of its own."""
    configuration = NodeConfiguration(NODE, host_ips=("192.0.2.7",))
    shared = attrs.evolve(WEB, host_network=True)
    config = configuration.container(PodRecord(pod=shared), shared.containers[0], 0, "i", PodReport(uid="u"))
    assert config.env["IP"] == "192.0.2.7"


def test_what_a_kubelet_without_an_api_server_tells_static_pods_of_their_address() -> None:
    """Nothing where that is the node's; from anywhere else they have it."""
    kubelets = NodeConfiguration(attrs.evolve(NODE, as_kubelet=True), host_ips=("192.0.2.7",))
    shared = attrs.evolve(WEB, host_network=True)
    static = attrs.evolve(shared, annotations={"kubernetes.io/config.source": "file"})
    for of, ip in ((shared, "192.0.2.7"), (static, ""), (WEB, "10.1.0.5")):
        report = PodReport(uid="u") if of.host_network else REPORT
        assert kubelets.container(PodRecord(pod=of), of.containers[0], 0, "i", report).env["IP"] == ip


def test_a_pod_is_told_the_addresses_of_its_nodes_family_first() -> None:
    """One of each family, however many the runtime reports and in whatever form."""
    report = PodReport(uid="u", ips=("10.1.0.5", "FD00:0::5", "10.1.0.6"))
    told = Container(
        name="app",
        image="a:1",
        variables=tuple(
            Variable(name=name, value_from=ValueFrom(field_ref=FieldRef(field_path=path)))
            for name, path in (("ONE", "status.podIP"), ("ALL", "status.podIPs"))
        ),
    )
    pod = attrs.evolve(WEB, containers=(told,))
    for host_ips, want in (
        ((), ("10.1.0.5", "10.1.0.5,fd00::5")),
        (("fd00::1", "192.0.2.7"), ("fd00::5", "fd00::5,10.1.0.5")),
    ):
        configuration = NodeConfiguration(NODE, host_ips=host_ips)
        env = configuration.container(PodRecord(pod=pod), told, 0, "i", report).env
        assert (env["ONE"], env["ALL"]) == want


def test_the_image_says_who_runs_it() -> None:
    """Whoever keeps images is asked by id."""
    configuration = NodeConfiguration(NODE, image=lambda id_: ImageFacts(id=id_, user=len(id_)))
    config = configuration.container(RECORD, WEB.containers[0], 0, "four", REPORT)
    assert (config.image, config.image_name, config.security.user) == ("four", "a:1", 4)


def test_an_image_that_is_listed_is_asked_about_once() -> None:
    """What is known of an id never changes; of an image that is not listed yet it may still come."""
    asked: list[str] = []

    def image(id_: str) -> ImageFacts:
        asked.append(id_)
        return ImageFacts(id=id_, is_listed=len(asked) > 1)

    configuration = NodeConfiguration(NODE, image=image)
    for _ in range(4):
        configuration.container(RECORD, WEB.containers[0], 0, "i", REPORT)
    assert asked == ["i", "i"]


def test_an_ephemeral_container_is_told_its_target() -> None:
    """The newest instance of the container that it names."""
    record = ContainerRecord(
        id="c2", pod=PodIdentity.of(WEB), name="app", sandbox_id="b", attempt=1, state=RunState.RUNNING
    )
    report = attrs.evolve(REPORT, containers=(ContainerReport(record=record),))
    look = Container(name="look", image="a:1", target_container_name="app")
    configuration = NodeConfiguration(NODE)
    assert configuration.container(RECORD, look, 0, "i", report).shares_pid_with == "c2"
    with pytest.raises(ContainerConfigError, match="unable to find target container app"):
        configuration.container(RECORD, look, 0, "i", REPORT)
    assert configuration.container(RECORD, WEB.containers[0], 0, "i", report).shares_pid_with == ""


def test_files_are_there_before_the_container() -> None:
    """Without a folder of pods containers mount none."""
    bare = NodeConfiguration(attrs.evolve(NODE, pods_directory=""))
    assert bare.container(RECORD, WEB.containers[0], 0, "i", REPORT).mounts == ()


def test_hosts_and_last_words_are_made_where_they_are_mounted(tmp_path: Path) -> None:
    """Anybody may write the one; a second time nothing is lost of the other, and it stays the same file."""
    node = attrs.evolve(NODE, pods_directory=str(tmp_path))
    configuration = NodeConfiguration(node, files=PodFiles())
    app = WEB.containers[0]
    mounts = configuration.container(RECORD, app, 0, "i", REPORT).mounts
    assert all(Path(one.host_path).is_file() for one in mounts)
    hosts, words = (Path(one.host_path) for one in mounts)
    assert "10.1.0.5\tweb" in hosts.read_text()
    assert hosts.read_text().endswith("10.9.9.9\tfar\n")
    assert words.stat().st_mode & 0o777 == 0o666
    before = hosts.stat().st_ino
    configuration.container(RECORD, app, 1, "i", PodReport(uid="u", ips=("10.1.0.6",)))
    assert "10.1.0.6\tweb" in hosts.read_text()
    assert "10.1.0.5" not in hosts.read_text()
    assert hosts.stat().st_ino == before
    words.write_text("bye")
    configuration.container(RECORD, app, 0, "i", REPORT)
    assert words.read_text() == "bye"


def test_a_hosts_file_for_which_there_is_no_room_is_told(tmp_path: Path) -> None:
    """As on a disk that is nearly full: no pod is given a part of it, and it is made whole later."""
    node, hosts = attrs.evolve(NODE, pods_directory=str(tmp_path)), "127.0.0.1\tlocalhost\n10.1.0.5\tweb\n"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            PodFiles().make(WEB, WEB.containers[0], 0, node=node, hosts=hosts)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    PodFiles().make(WEB, WEB.containers[0], 0, node=node, hosts=hosts)
    assert (tmp_path / "u" / "etc-hosts").read_text() == hosts


def test_a_container_that_must_not_be_root_leaves_its_folder(tmp_path: Path) -> None:
    """As whom it runs is looked at last: the hosts file and its folder are there by then."""
    whole = NodeConfiguration(attrs.evolve(NODE, pods_directory=str(tmp_path)), files=PodFiles())
    bare = SecurityContext(run_as_non_root=True)
    asked = attrs.evolve(
        WEB, containers=(Container(name="app", image="busybox", security_context=bare),), host_aliases=()
    )
    with pytest.raises(ContainerConfigError, match="image will run as root"):
        whole.container(PodRecord(pod=asked), asked.containers[0], 0, "", REPORT)
    left = sorted(str(one.relative_to(tmp_path / "u")) for one in (tmp_path / "u").rglob("*"))
    assert left == ["containers", "containers/app", "etc-hosts"]


def test_last_words_are_read_from_the_end(tmp_path: Path) -> None:
    """Of a file of any size a bounded part; where there is none, nothing."""
    node = attrs.evolve(NODE, pods_directory=str(tmp_path))
    app, files = WEB.containers[0], PodFiles()
    assert files.read("u", "app", 0, node=node) == b""
    files.make(WEB, app, 0, node=node, hosts="")
    with Path(message_path("u", "app", 0, node)).open("wb") as file:
        file.truncate(1 << 30)
        file.seek(0, os.SEEK_END)
        file.write(b"goodbye")
    said = files.read("u", "app", 0, node=node)
    assert len(said) == 4096
    assert termination_message(said, policy=MessagePolicy.FILE, has_failed=False).endswith("goodbye")


def test_no_link_is_followed(tmp_path: Path) -> None:
    """A container could have put one in place of its file; neither reading nor writing leaves the folder."""
    node = attrs.evolve(NODE, pods_directory=str(tmp_path / "pods"))
    app, files = WEB.containers[0], PodFiles()
    files.make(WEB, app, 0, node=node, hosts="")
    secret = tmp_path / "secret"
    secret.write_text("secret")
    path = Path(message_path("u", "app", 0, node))
    path.unlink()
    path.symlink_to(secret)
    with pytest.raises(OSError, match="symbolic links"):
        files.read("u", "app", 0, node=node)
    with pytest.raises(OSError, match="symbolic links"):
        files.make(WEB, app, 0, node=node, hosts="")
    assert secret.read_text() == "secret"


def test_a_pipe_in_place_of_last_words_holds_nobody(tmp_path: Path) -> None:
    """It is no file with an end; nothing waits for somebody to write into it."""
    node = attrs.evolve(NODE, pods_directory=str(tmp_path))
    app, files = WEB.containers[0], PodFiles()
    files.make(WEB, app, 0, node=node, hosts="")
    path = Path(message_path("u", "app", 0, node))
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(OSError, match="no file"):
        files.read("u", "app", 0, node=node)
    with pytest.raises(OSError, match=f"{path} is no file"):
        files.make(WEB, app, 0, node=node, hosts="")


def test_a_folder_in_place_of_last_words_costs_no_descriptor(tmp_path: Path) -> None:
    """It is looked at as often as its container, and each look had left one open."""
    node = attrs.evolve(NODE, pods_directory=str(tmp_path))
    Path(message_path("u", "app", 0, node)).mkdir(parents=True)
    before = sorted(Path("/proc/self/fd").iterdir())
    with pytest.raises(OSError, match="no file"):
        PodFiles().read("u", "app", 0, node=node)
    assert sorted(Path("/proc/self/fd").iterdir()) == before


def test_it_keeps_the_promises_of_who_configures(tmp_path: Path) -> None:
    """As the kit holds anybody's to them, with files and without."""
    node = attrs.evolve(NODE, pods_directory=str(tmp_path))
    check_configures(NodeConfiguration(node, files=PodFiles()), WEB)
    check_configures(NodeConfiguration(NODE), WEB)
