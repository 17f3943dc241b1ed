"""What a pod's sandbox and containers are made from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import nullcontext

import attrs
import pytest

from nodealloc.cgroups import PodOptions
from nodealloc.errors import ConfigurationError
from nodealloc.idset import CPUSet, NodeSet
from nodealloc.podlife import (
    ContainerConfigError,
    ContainerRunOptions,
    ImageFacts,
    NodeSettings,
    PodAddresses,
    SandboxConfigError,
    sandbox_config,
)
from nodealloc.podlife._configuration import (
    container_config,
    field_value,
    linux_resources,
    pod_dns,
    sub_paths_of,
    termination_message,
    variables_of,
)
from nodealloc.podlife._configuration._container import message_path
from nodealloc.podlife._configuration._dns import hostname_of, hosts_file
from nodealloc.podlife._definitions import Definitions
from nodealloc.podspec import HASH_ANNOTATION, MessagePolicy, Pod, ProfileType, Quantity
from nodealloc.podspec._expansion import expand
from nodealloc.runtime import (
    ContainerConfig,
    DnsConfig,
    HostDevice,
    HostMount,
    LinuxResources,
    Propagation,
    SecurityProfile,
)

NODE = NodeSettings(
    name="n1",
    memory_capacity_bytes=16 << 30,
    cluster_dns=("10.0.0.10",),
    cluster_domain="cluster.test",
    resolver=DnsConfig(servers=("192.0.2.1",), searches=("example.test",), options=("timeout:2",)),
    hosts="127.0.0.1 localhost\n192.0.2.7 n1",
    allocatable={"cpu": Quantity.parse("3500m"), "memory": Quantity.parse("8Gi")},
    services={"API_HOST": "10.0.0.1", "API_PORT": "443"},
)
HERE = PodAddresses(pod_ips=("10.1.0.5", "fd00::5"), host_ips=("192.0.2.7",))
NOTHING = ContainerRunOptions()
IMAGE = ImageFacts(id="sha256:1", user=1000)


class Objects:
    """One config map and one secret; each look is counted."""

    def __init__(self) -> None:
        self.looks: list[str] = []

    def config_map(self, namespace: str, name: str, /) -> dict[str, str] | None:
        """It has a key that no environment can hold."""
        self.looks.append(f"{namespace}/{name}")
        return {"COLOUR": "blue", "a=b": "no", "log.level": "debug"} if name == "settings" else None

    def secret(self, namespace: str, name: str, /) -> dict[str, bytes] | None:
        """Its value is no text."""
        self.looks.append(f"{namespace}/{name}")
        return {"TOKEN": b"s\xffcret"} if name == "keys" else None


def pod(container: Mapping[str, object] | None = None, /, **spec: object) -> Pod:
    """A pod with one container `app` that has these fields."""
    return Pod.from_manifest(
        {
            "metadata": {
                "name": "web",
                "namespace": "shop",
                "uid": "u1",
                "labels": {"app": "web"},
                "annotations": {"note": "x"},
            },
            "spec": {"containers": [{"name": "app", "image": "img:1", **(container or {})}], **spec},
        }
    )


def configured(
    container: Mapping[str, object] | None = None,
    /,
    *,
    options: ContainerRunOptions = NOTHING,
    **spec: object,
) -> ContainerConfig:
    """The configuration of that container."""
    of = pod(container, **spec)
    return container_config(
        of,
        of.containers[0],
        attempt=2,
        image=IMAGE,
        node=NODE,
        addresses=HERE,
        options=options,
        source=Objects(),
    )


def refused(container: Mapping[str, object] | None = None, /, **spec: object) -> str:
    """Why it cannot be configured."""
    of = pod(container, **spec)
    with pytest.raises(ContainerConfigError) as caught:
        container_config(
            of, of.containers[0], attempt=0, image=IMAGE, node=NODE, addresses=HERE, source=Objects()
        )
    assert (caught.value.reason, caught.value.container) == ("CreateContainerConfigError", "app")
    return caught.value.message


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)", "a"),
        ("x$(A)$(B)y", "xabeey"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$a"),
        ("$(NOT)", "$(NOT)"),
        ("$(A", "$(A"),
        ("$A", "$A"),
        ("$", "$"),
        ("$()", "$()"),
        ("$($(A))", "$($(A))"),
        ("$(LOOP)", "$(LOOP)"),
        ("", ""),
    ],
)
def test_names_in_texts_are_replaced(text: str, expanded: str) -> None:
    """Known names once, `$$` is one `$`, all else stays."""
    assert expand(text, {"A": "a", "B": "bee", "LOOP": "$(LOOP)"}) == expanded


def test_commands_and_arguments_are_expanded() -> None:
    """With all variables of the container, services among them."""
    config = configured(
        {
            "command": ["run", "$(HOST)"],
            "args": ["--to=$(API_HOST):$(API_PORT)", "$$(HOST)"],
            "env": [{"name": "HOST", "value": "h1"}],
        }
    )
    assert config.command == ("run", "h1")
    assert config.args == ("--to=10.0.0.1:443", "$(HOST)")


def test_variables_that_were_given_are_known_to_the_command() -> None:
    """Those of a device plugin stand in commands and parts of volumes, not in the container's values."""
    options = ContainerRunOptions(
        env={"GPU": "0"}, volumes={"data": "/v/data"}, sub_paths={("data", "of-0"): "/v/data/of-0"}
    )
    config = configured(
        {
            "command": ["run", "--gpu=$(GPU)"],
            "env": [{"name": "MINE", "value": "$(GPU)"}],
            "volumeMounts": [{"name": "data", "mountPath": "/d", "subPathExpr": "of-$(GPU)"}],
        },
        options=options,
        volumes=[{"name": "data", "emptyDir": {}}],
    )
    assert config.command == ("run", "--gpu=0")
    assert config.env["MINE"] == "$(GPU)"
    assert config.mounts[0].host_path == "/v/data/of-0"


def test_every_pod_knows_the_api_server() -> None:
    """Also one that asks for no services."""
    own = {
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "KUBERNETES_SERVICE_PORT_HTTPS": "443",
        "KUBERNETES_PORT": "tcp://10.0.0.1:443",
        "KUBERNETES_PORT_443_TCP_ADDR": "10.0.0.1",
    }
    node = attrs.evolve(
        NODE, services={**own, "API_HOST": "10.0.0.9", "KUBERNETES_UI_SERVICE_HOST": "10.0.0.8"}
    )
    of = pod(enableServiceLinks=False)
    assert variables_of(of, of.containers[0], node=node, addresses=HERE, source=None) == own


def test_a_variable_knows_those_before_it() -> None:
    """Not those behind it, and a later one of the same name counts."""
    env = [
        {"name": "A", "value": "1"},
        {"name": "B", "value": "$(A)-$(C)"},
        {"name": "C", "value": "3"},
        {"name": "A", "value": "$(A)$(A)"},
        {"name": "EMPTY", "value": ""},
    ]
    assert configured({"env": env}, enableServiceLinks=False).env == {
        "A": "11",
        "B": "1-$(C)",
        "C": "3",
        "EMPTY": "",
    }


def test_whole_objects_come_before_single_variables() -> None:
    """With a prefix; a key that no environment can hold is left out, bytes reach the program."""
    found = configured(
        {
            "envFrom": [
                {"prefix": "S_", "configMapRef": {"name": "settings"}},
                {"secretRef": {"name": "keys"}},
                {"configMapRef": {"name": "absent", "optional": True}},
            ],
            "env": [{"name": "S_COLOUR", "value": "not $(S_COLOUR)"}],
        },
        enableServiceLinks=False,
    ).env
    assert found == {"S_COLOUR": "not blue", "S_log.level": "debug", "TOKEN": "s\udcffcret"}


def test_each_object_is_asked_for_once() -> None:
    """However many of its keys are wanted."""
    objects = Objects()
    refs = [
        {"name": f"V{n}", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "COLOUR"}}}
        for n in (1, 2)
    ]
    of = pod({"env": refs, "envFrom": [{"configMapRef": {"name": "settings"}}]})
    variables_of(of, of.containers[0], node=NODE, addresses=HERE, source=objects)
    assert objects.looks == ["shop/settings"]


def test_what_is_missing_is_named() -> None:
    """Object or key, unless it may be missing: then the variable is."""

    def key(kind: str, name: str, key: str, **more: object) -> dict[str, object]:
        return {"env": [{"name": "V", "valueFrom": {f"{kind}KeyRef": {"name": name, "key": key, **more}}}]}

    assert refused(key("configMap", "none", "k")) == 'configmap "none" not found'
    assert refused(key("secret", "none", "k")) == 'secret "none" not found'
    assert refused(key("configMap", "settings", "k")) == "couldn't find key k in ConfigMap shop/settings"
    assert refused(key("secret", "keys", "k")) == "couldn't find key k in Secret shop/keys"
    assert refused({"envFrom": [{"secretRef": {"name": "none"}}]}) == 'secret "none" not found'
    for name in ("none", "settings"):
        assert "V" not in configured(key("configMap", name, "k", optional=True)).env


FIELDS = {
    "metadata.name": "web",
    "metadata.namespace": "shop",
    "metadata.uid": "u1",
    "metadata.labels['app']": "web",
    "metadata.labels['none']": "",
    "metadata.annotations['note']": "x",
    "spec.nodeName": "n1",
    "spec.host": "n1",
    "spec.serviceAccountName": "runner",
    "status.hostIP": "192.0.2.7",
    "status.hostIPs": "192.0.2.7",
    "status.podIP": "10.1.0.5",
    "status.podIPs": "10.1.0.5,fd00::5",
}


def test_fields_of_the_pod_are_told() -> None:
    """Each by its path; one that cannot be told is refused."""
    env = [{"name": f"V{n}", "valueFrom": {"fieldRef": {"fieldPath": one}}} for n, one in enumerate(FIELDS)]
    found = configured({"env": env}, serviceAccountName="runner", enableServiceLinks=False).env
    assert list(found.values()) == list(FIELDS.values())
    for path in ("metadata.labels", "status.phase"):
        env = [{"name": "V", "valueFrom": {"fieldRef": {"fieldPath": path}}}]
        assert path in refused({"env": env})


def test_all_labels_are_one_text_for_volumes() -> None:
    """A line each, by name, quoted."""
    of = attrs.evolve(pod(), labels={"b": 'say "hi"', "a": "line\nbreak\\"})
    assert field_value("metadata.labels", of, NODE, HERE) == 'a="line\\nbreak\\\\"\nb="say \\"hi\\""'
    assert field_value("metadata.nothing", of, NODE, HERE) is None


@pytest.mark.parametrize(
    ("ref", "told"),
    [
        ({"resource": "limits.cpu"}, "2"),
        ({"resource": "limits.cpu", "divisor": "1m"}, "1500"),
        ({"resource": "requests.cpu", "divisor": "1m"}, "250"),
        ({"resource": "requests.memory"}, "67108864"),
        ({"resource": "requests.memory", "divisor": "1Mi"}, "64"),
        ({"resource": "requests.memory", "divisor": "3Mi"}, "22"),
        ({"resource": "limits.memory", "divisor": "1Gi"}, "8"),
        ({"resource": "limits.ephemeral-storage"}, "0"),
        ({"resource": "requests.memory", "containerName": "other"}, "0"),
        ({"resource": "limits.cpu", "containerName": "other"}, "4"),
        ({"resource": "limits.memory", "containerName": "none", "divisor": "1Gi"}, "8"),
    ],
)
def test_resources_are_told_in_units(ref: dict[str, str], told: str) -> None:
    """Rounded up; a limit that is missing is what the node has to give."""
    resources = {"requests": {"cpu": "250m", "memory": "64Mi"}, "limits": {"cpu": "1500m"}}
    app = {"resources": resources, "env": [{"name": "V", "valueFrom": {"resourceFieldRef": ref}}]}
    none = {"name": "none", "image": "i", "resources": {"limits": {"memory": "0"}}}
    found = configured(app, initContainers=[{"name": "other", "image": "i"}, none]).env
    assert found["V"] == told


def test_resources_that_cannot_be_told_are_refused() -> None:
    """An unknown container or resource is named."""
    for ref, words in (
        ({"resource": "limits.cpu", "containerName": "nobody"}, "no container nobody"),
        ({"resource": "limits.example.com/gpu"}, "no resource limits.example.com/gpu"),
        ({"resource": "cpu"}, "no resource cpu"),
    ):
        assert words in refused({"env": [{"name": "V", "valueFrom": {"resourceFieldRef": ref}}]})


def test_what_was_given_is_in_the_configuration() -> None:
    """CPUs, memory nodes, devices, mounts, variables; the container's own variables count."""
    options = ContainerRunOptions.joined(
        [
            ContainerRunOptions(
                cpus=CPUSet.parse("2-3"), mems=NodeSet.parse("0"), env={"V": "theirs", "W": "w"}
            ),
            ContainerRunOptions(
                devices=(HostDevice(host_path="/dev/x", container_path="/dev/y"),),
                cdi_devices=("v/c=1",),
                mounts=(HostMount(host_path="/lib/x", container_path="/x"),),
                annotations={"k": "v"},
            ),
        ]
    )
    config = configured({"env": [{"name": "V", "value": "mine"}]}, options=options, enableServiceLinks=False)
    assert (str(config.resources.cpus), str(config.resources.mems)) == ("2-3", "0")
    assert config.env == {"V": "mine", "W": "w"}
    assert config.cdi_devices == ("v/c=1",)
    assert [one.container_path for one in config.devices] == ["/dev/y"]
    assert config.mounts[0].container_path == "/x"
    assert config.annotations["k"] == "v"


def test_volumes_are_mounted_where_they_lie() -> None:
    """With what is read only by its kind, propagation, part of a volume and raw devices."""
    uses = [
        {"name": "data", "mountPath": "data", "mountPropagation": "HostToContainer"},
        {"name": "data", "mountPath": "/part", "subPathExpr": "$(NAME)/logs", "readOnly": True},
        {"name": "conf", "mountPath": "/conf"},
    ]
    options = ContainerRunOptions(
        volumes={"data": "/v/data", "conf": "/v/conf", "disk": "/dev/sdx"},
        sub_paths={("data", "app1/logs"): "/v/sub/0"},
    )
    config = configured(
        {
            "volumeMounts": uses,
            "volumeDevices": [{"name": "disk", "devicePath": "/dev/disk"}],
            "env": [{"name": "NAME", "value": "app1"}],
        },
        options=options,
        volumes=[
            {"name": "data", "emptyDir": {}},
            {"name": "conf", "configMap": {"name": "settings"}},
            {"name": "disk", "persistentVolumeClaim": {"claimName": "c"}},
        ],
    )
    assert config.mounts[:3] == (
        HostMount(host_path="/v/data", container_path="/data", propagation=Propagation.HOST_TO_CONTAINER),
        HostMount(host_path="/v/sub/0", container_path="/part", read_only=True),
        HostMount(host_path="/v/conf", container_path="/conf", read_only=True),
    )
    assert config.devices == (
        HostDevice(host_path="/dev/sdx", container_path="/dev/disk", permissions="mrw"),
    )


def test_a_volume_that_may_only_be_read_is_given_so() -> None:
    """As the pod has it, or as it came from elsewhere, whatever the container says: the device as well."""
    uses = [{"name": "data", "mountPath": "/data"}, {"name": "other", "mountPath": "/other"}]
    config = configured(
        {"volumeMounts": uses, "volumeDevices": [{"name": "disk", "devicePath": "/dev/disk"}]},
        options=ContainerRunOptions.joined(
            [
                ContainerRunOptions(volumes={"data": "/v/data"}),
                ContainerRunOptions(volumes={"other": "/v/other"}, read_only_volumes=frozenset({"other"})),
                ContainerRunOptions(volumes={"disk": "/dev/sdx"}),
            ]
        ),
        volumes=[
            {"name": "data", "nfs": {"server": "s", "path": "/x", "readOnly": True}},
            {"name": "other", "persistentVolumeClaim": {"claimName": "o"}},
            {"name": "disk", "persistentVolumeClaim": {"claimName": "c", "readOnly": True}},
        ],
    )
    assert [one.read_only for one in config.mounts[:2]] == [True, True]
    assert [one.permissions for one in config.devices] == ["r"]


def test_parts_of_volumes_are_named_before_they_are_mounted() -> None:
    """Whoever mounts asks which; a path that leads out of its volume is refused."""
    volumes = [{"name": "d", "emptyDir": {}}]
    mounts = [
        {"name": "d", "mountPath": "/a"},
        {"name": "d", "mountPath": "/b", "subPath": "x"},
        {"name": "d", "mountPath": "/c", "subPathExpr": "$(V)/y"},
    ]
    app = pod({"volumeMounts": mounts}, volumes=volumes).containers[0]
    assert sub_paths_of(app, {"V": "v"}) == ((1, "d", "x"), (2, "d", "v/y"))
    for variables, words in (
        ({"V": ".."}, "unable to provision SubPath `../y`: must not contain '..'"),
        ({"V": "/etc"}, "error SubPath `/etc/y` must not be an absolute path"),
        ({"V": ""}, "missing value for V"),
        ({}, "missing value for V"),
    ):
        with pytest.raises(ContainerConfigError, match=words):
            sub_paths_of(app, variables)


def test_a_volume_that_is_not_there_yet_is_named() -> None:
    """The container waits for it, as for a part of one."""
    volumes = [{"name": "d", "emptyDir": {}}]
    assert "volume d is not mounted" in refused(
        {"volumeMounts": [{"name": "d", "mountPath": "/a"}]}, volumes=volumes
    )
    part = {"name": "d", "mountPath": "/a", "subPath": "x"}
    assert "path x of volume d is not mounted" in refused({"volumeMounts": [part]}, volumes=volumes)
    device = {"name": "d", "devicePath": "/dev/a"}
    claim = [{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}]
    assert "volume d is not mapped" in refused({"volumeDevices": [device]}, volumes=claim)


def test_a_device_is_put_at_an_absolute_path() -> None:
    """One that is none is refused as by a kubelet, which completes those of mounts alone."""
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}]
    device = {"name": "d", "devicePath": "dev/disk"}
    words = "error DevicePath `dev/disk` must be an absolute path"
    assert refused({"volumeDevices": [device]}, volumes=volumes) == words


def test_the_class_of_critical_pods_counts_with_their_priority() -> None:
    """A name alone, which nobody has looked up, protects from nothing; static pods are critical."""
    named = pod(priorityClassName="system-node-critical")
    file = {"kubernetes.io/config.source": "file"}

    def score(of: Pod) -> int | None:
        return linux_resources(of, of.containers[0], NODE).oom_score_adj

    assert score(named) == 1000
    assert score(attrs.evolve(named, priority=2_000_001_000)) == -997
    assert score(attrs.evolve(named, annotations=file)) == -997
    assert score(attrs.evolve(pod(), priority=2_000_001_000)) == 1000


def test_hosts_and_last_words_are_files_of_the_pod() -> None:
    """Unless the container has hosts of its own; a termination message goes into its file in any case."""
    assert [one.container_path for one in configured().mounts] == ["/etc/hosts", "/dev/termination-log"]
    assert message_path("u1", "app", 2, NODE) == configured().mounts[1].host_path
    options = ContainerRunOptions(volumes={"d": "/v"})
    paths = ("/etc/hosts", "/dev/termination-log")
    own = configured(
        {"volumeMounts": [{"name": "d", "mountPath": one} for one in paths]},
        options=options,
        volumes=[{"name": "d", "emptyDir": {}}],
    )
    assert [(one.host_path, one.container_path) for one in own.mounts] == [
        ("/v", "/etc/hosts"),
        ("/v", "/dev/termination-log"),
        (message_path("u1", "app", 2, NODE), "/dev/termination-log"),
    ]


def test_a_container_carries_what_it_was_made_from() -> None:
    """Both hashes, grace and restart count, so that whoever takes over knows it again."""
    of = pod({"lifecycle": {"preStop": {"httpGet": {"port": 80}}}}, terminationGracePeriodSeconds=7)
    config = container_config(of, of.containers[0], attempt=3, image=IMAGE, node=NODE)
    made = Definitions.of(of)
    assert (config.definition, config.annotations[HASH_ANNOTATION]) == (made.kubelet["app"], made.ours["app"])
    assert (config.grace_s, config.attempt, config.log_path) == (7, 3, "app/3.log")
    assert config.annotations["io.kubernetes.container.preStopHandler"] == (
        '{"httpGet":{"path":"/","port":80,"scheme":"HTTP"}}'
    )


def test_the_container_speaks_before_its_pod() -> None:
    """User, group, profile and label; groups come from the pod and its volumes."""
    of = pod(
        {
            "securityContext": {
                "runAsUser": 7,
                "seccompProfile": {"type": "Localhost", "localhostProfile": "p.json"},
            }
        },
        securityContext={
            "runAsUser": 1,
            "runAsGroup": 2,
            "fsGroup": 3,
            "supplementalGroups": [4],
            "appArmorProfile": {"type": "Localhost", "localhostProfile": "tight"},
            "seLinuxOptions": {"level": "s0"},
        },
    )
    security = container_config(of, of.containers[0], attempt=0, image=IMAGE, node=NODE, groups=(5,)).security
    assert (security.user, security.group, security.groups) == (7, 2, (3, 4, 5))
    assert security.seccomp == SecurityProfile(
        type=ProfileType.LOCALHOST, localhost="/var/lib/kubelet/seccomp/p.json"
    )
    assert security.apparmor == SecurityProfile(type=ProfileType.LOCALHOST, localhost="tight")
    assert security.selinux is not None
    assert security.selinux.level == "s0"


def test_who_says_nothing_gets_what_the_node_has() -> None:
    """The image's user, and the node's profile."""
    security = configured().security
    assert (security.user, security.username) == (1000, "")
    assert security.seccomp == SecurityProfile(type=ProfileType.UNCONFINED)
    of = pod()
    strict = container_config(
        of,
        of.containers[0],
        attempt=0,
        image=ImageFacts(id="x", username="web"),
        node=attrs.evolve(NODE, seccomp_default=True),
    ).security
    assert (strict.user, strict.username) == (None, "web")
    assert strict.seccomp == SecurityProfile(type=ProfileType.RUNTIME_DEFAULT)


def test_an_image_that_names_nobody_runs_as_root() -> None:
    """Whoever knows the image knows that; of one that nobody knows the user is left to the runtime."""
    of = pod(securityContext={"runAsGroup": 5})

    def made(image: ImageFacts, of: Pod = of) -> tuple[int | None, int | None]:
        security = container_config(of, of.containers[0], attempt=0, image=image, node=NODE).security
        return security.user, security.group

    assert made(ImageFacts(id="x")) == (0, 5)
    assert made(ImageFacts(id="x", user=7)) == (7, 5)
    assert made(ImageFacts(id="x", username="web")) == (None, 5)
    unknown = ImageFacts(id="x", is_listed=False)
    assert made(unknown, pod()) == (None, None)
    with pytest.raises(ConfigurationError, match="group 5 without a user"):
        made(unknown)
    for as_kubelet, group in ((False, None), (True, 5)):
        box = sandbox_config(of, attempt=0, node=attrs.evolve(NODE, as_kubelet=as_kubelet))
        assert (box.user, box.group) == (None, group)


def test_whose_ports_lead_to_a_pod() -> None:
    """Those of sidecars, too; a kubelet looks at main containers alone."""
    side = {"name": "side", "restartPolicy": "Always", "ports": [{"containerPort": 81, "hostPort": 8081}]}
    of = pod({"ports": [{"containerPort": 80}]}, initContainers=[side])
    for as_kubelet, ports in ((False, [81, 80]), (True, [80])):
        box = sandbox_config(of, attempt=0, node=attrs.evolve(NODE, as_kubelet=as_kubelet))
        assert [one.container_port for one in box.ports] == ports


def test_proc_is_masked_unless_asked_otherwise() -> None:
    """Both lists go."""
    assert "/proc/kcore" in configured().security.masked_paths
    bare = configured({"securityContext": {"procMount": "Unmasked"}}).security
    assert (bare.masked_paths, bare.readonly_paths) == ((), ())


@pytest.mark.parametrize(
    ("own", "of_pod", "image", "words"),
    [
        ({}, {"runAsNonRoot": True}, ImageFacts(id="x", user=0), "image will run as root"),
        ({"runAsUser": 0}, {"runAsNonRoot": True}, IMAGE, "container's runAsUser breaks non-root policy"),
        ({"runAsNonRoot": True}, {}, ImageFacts(id="x", username="web"), r"non-numeric user \(web\)"),
        ({"runAsNonRoot": True}, {}, IMAGE, ""),
        ({"runAsUser": 5}, {"runAsNonRoot": True}, ImageFacts(id="x", user=0), ""),
        ({"runAsNonRoot": False}, {"runAsNonRoot": True}, ImageFacts(id="x", user=0), ""),
        ({"runAsNonRoot": True}, {}, ImageFacts(id="x"), "image will run as root"),
    ],
)
def test_root_is_refused_where_it_is_forbidden(
    own: dict[str, object], of_pod: dict[str, object], image: ImageFacts, words: str
) -> None:
    """By the image, by the manifest, and where nobody can tell."""
    of = pod({"securityContext": own}, securityContext=of_pod)
    expected = pytest.raises(ContainerConfigError, match=words) if words else nullcontext()
    with expected:
        container_config(of, of.containers[0], attempt=0, image=image, node=NODE)


CLUSTER = ("shop.svc.cluster.test", "svc.cluster.test", "cluster.test", "example.test")


@pytest.mark.parametrize(
    ("spec", "servers", "searches", "options"),
    [
        ({}, ("10.0.0.10",), CLUSTER, ("ndots:5",)),
        ({"dnsPolicy": "Default"}, ("192.0.2.1",), ("example.test",), ("timeout:2",)),
        ({"hostNetwork": True}, ("192.0.2.1",), ("example.test",), ("timeout:2",)),
        (
            {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"},
            ("10.0.0.10",),
            CLUSTER,
            ("ndots:5",),
        ),
        (
            {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["192.0.2.9"], "searches": ["a.test"]}},
            ("192.0.2.9",),
            ("a.test",),
            (),
        ),
        (
            {
                "dnsConfig": {
                    "nameservers": ["10.0.0.10", "192.0.2.9"],
                    "searches": ["cluster.test", "a.test"],
                    "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}],
                }
            },
            ("10.0.0.10", "192.0.2.9"),
            (*CLUSTER, "a.test"),
            ("ndots:2", "edns0"),
        ),
    ],
)
def test_name_servers_follow_the_policy(
    spec: dict[str, object], servers: tuple[str, ...], searches: tuple[str, ...], options: tuple[str, ...]
) -> None:
    """The pod's own configuration is added, and no word stands there twice."""
    found = pod_dns(pod(**spec), NODE)
    assert found.config == DnsConfig(servers=servers, searches=searches, options=options)
    assert found.left_out == ()


def test_resolvers_have_limits() -> None:
    """Three servers, 32 domains, 2,048 characters; what is beyond is told."""
    many = [f"d{n:02}.test" for n in range(32)]
    found = pod_dns(pod(dnsConfig={"nameservers": ["1.1.1.1", "1.1.1.2", "1.1.1.3"], "searches": many}), NODE)
    assert found.config.servers == ("10.0.0.10", "1.1.1.1", "1.1.1.2")
    assert len(found.config.searches) == 32
    assert found.left_out == ("1.1.1.3", *many[28:])
    long = [f"{'x' * 60}.{'y' * 60}.{'z' * 60}.n{n:02}" for n in range(20)]
    found = pod_dns(pod(dnsPolicy="None", dnsConfig={"nameservers": ["1.1.1.1"], "searches": long}), NODE)
    assert len(" ".join(found.config.searches)) <= 2048
    assert (*found.config.searches, *found.left_out) == tuple(long)
    # A domain that is too long counts among the first 32, and no other one takes its place.
    of_253, of_254 = (".".join(["x" * 49] * 4 + ["y" * last]) for last in (53, 54))
    searches = [of_253, of_254, *(f"d{n}" for n in range(31))]
    node = attrs.evolve(NODE, resolver=DnsConfig(servers=("192.0.2.1",), searches=tuple(searches)))
    found = pod_dns(pod(dnsPolicy="Default"), node)
    assert found.config.searches == (of_253, *searches[2:32])
    assert found.left_out == (of_254, "d30")


def test_a_node_without_cluster_servers_gives_its_own() -> None:
    """And says that the pod asked for others; without a resolver a pod finds no names."""
    bare = attrs.evolve(NODE, cluster_dns=())
    found = pod_dns(pod(), bare)
    assert (found.config.servers, found.lacks_cluster_dns) == (("192.0.2.1",), True)
    assert not pod_dns(pod(dnsPolicy="Default"), bare).lacks_cluster_dns
    alone = attrs.evolve(NODE, resolver=None)
    for host_ips, servers in (
        ((), ("127.0.0.1",)),
        (("fd00::7",), ("::1",)),
        (("192.0.2.7", "fd00::7"), ("127.0.0.1", "::1")),
    ):
        none = pod_dns(pod(dnsPolicy="Default"), alone, host_ips=host_ips).config
        assert (none.servers, none.searches) == (servers, (".",))


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ({}, "web"),
        ({"hostname": "db"}, "db"),
        ({"hostname": "db", "subdomain": "set"}, "db"),
        ({"hostname": "db", "subdomain": "set", "setHostnameAsFQDN": True}, "db.set.shop.svc.cluster.test"),
        ({"setHostnameAsFQDN": True}, "web"),
        ({"hostNetwork": True, "hostname": "db"}, "n1"),
    ],
)
def test_what_the_kernel_calls_the_machine(spec: dict[str, object], name: str) -> None:
    """Host name of the pod, with its domain where it asks for that; the node's with its network."""
    assert hostname_of(pod(**spec), NODE) == name


def test_long_names_are_cut_or_refused() -> None:
    """A host name has 63 characters at most and ends in a letter or digit; a whole name has 64."""
    long = attrs.evolve(pod(), name="a" * 62 + "-" + "b" * 10)
    assert hostname_of(long, NODE) == "a" * 62
    whole = pod(hostname="h" * 40, subdomain="set", setHostnameAsFQDN=True)
    with pytest.raises(SandboxConfigError, match=r"has 66 characters, the kernel takes 64"):
        hostname_of(whole, NODE)


def test_the_hosts_file_names_the_pod() -> None:
    """Under each of its addresses, with its domain; aliases stand at the end."""
    aliases = [{"ip": "10.9.9.9", "hostnames": ["a", "b"]}]
    lines = hosts_file(
        pod(hostname="db", subdomain="set", hostAliases=aliases), HERE.pod_ips, NODE
    ).splitlines()
    added = ["", "# Entries added by HostAliases.", "10.9.9.9\ta\tb"]
    assert lines[:2] == ["# Kubernetes-managed hosts file.", "127.0.0.1\tlocalhost"]
    assert lines[-5:] == [
        "10.1.0.5\tdb.set.shop.svc.cluster.test\tdb",
        "fd00::5\tdb.set.shop.svc.cluster.test\tdb",
        *added,
    ]
    of_node = hosts_file(pod(hostNetwork=True, hostAliases=aliases), (), NODE).splitlines()
    header = "# Kubernetes-managed hosts file (host network)."
    assert of_node == [header, "127.0.0.1 localhost", "192.0.2.7 n1", *added]
    assert hosts_file(pod(hostNetwork=True), (), NODE).splitlines() == of_node[:3]


def test_last_words_come_from_the_file() -> None:
    """The end of it counts; of an empty one the output may, after a failure."""
    file, logs = MessagePolicy.FILE, MessagePolicy.FALLBACK_TO_LOGS_ON_ERROR
    assert termination_message(b"done\n", policy=file, has_failed=False) == "done\n"
    assert termination_message(b"a" * 10 + b"b" * 4096, policy=file, has_failed=True) == "b" * 4096
    assert termination_message(b"", policy=file, has_failed=True, output=b"o\n") == ""
    assert termination_message(b"", policy=logs, has_failed=False, output=b"o\n") == ""
    assert termination_message(b"", policy=logs, has_failed=True, output=b"one\ntwo\n") == "one\ntwo\n"
    assert termination_message(b"f", policy=logs, has_failed=True, output=b"o\n") == "f"
    many = b"".join(b"%d\n" % n for n in range(100))
    assert termination_message(b"", policy=logs, has_failed=True, output=many).splitlines()[0] == "20"
    assert len(termination_message(b"", policy=logs, has_failed=True, output=b"x" * 5000)) == 2048
    assert termination_message(b"\xff", policy=file, has_failed=False) == "\ufffd"


def test_a_line_of_output_ends_with_a_newline_alone() -> None:
    """A bar of progress is one line: what was said before it counts."""
    bar = b"failed: no disk\n" + b"\r".join([b"%d%%" % number for number in range(100)])
    for output in (bar, bar + b"\n"):
        told = termination_message(
            b"", policy=MessagePolicy.FALLBACK_TO_LOGS_ON_ERROR, has_failed=True, output=output
        )
        assert told == output.decode()


def test_a_sandbox_of_what_no_port_has_is_refused() -> None:
    """Rather than made without."""
    with pytest.raises(SandboxConfigError, match="user name space"):
        sandbox_config(pod(hostUsers=False), attempt=0, node=NODE)


def test_a_runtime_class_that_nobody_looked_up_is_refused() -> None:
    """Whoever asks to run apart from the machine does not run without; a preparation gives the handler."""
    asks = pod(runtimeClassName="kata")
    for node in (NODE, attrs.evolve(NODE, as_kubelet=True)):
        with pytest.raises(SandboxConfigError, match="'kata': nothing here says its handler"):
            sandbox_config(asks, attempt=0, node=node)
        assert sandbox_config(asks, attempt=0, node=node, handler="kata-qemu").handler == "kata-qemu"


def test_who_wants_no_groups_of_its_image_is_refused() -> None:
    """A runtime gives them; a kubelet, in which the field is off, lets the pod have them."""
    strict = pod(securityContext={"supplementalGroupsPolicy": "Strict"})
    with pytest.raises(SandboxConfigError, match="supplementalGroupsPolicy: Strict asks for no groups"):
        sandbox_config(strict, attempt=0, node=NODE)
    merging = pod(securityContext={"supplementalGroupsPolicy": "Merge"})
    kubelet = attrs.evolve(NODE, as_kubelet=True)
    assert sandbox_config(merging, attempt=0, node=NODE).groups == ()
    assert sandbox_config(strict, attempt=0, node=kubelet).pod.name == "web"


def test_who_names_users_is_refused_as_by_a_kubelet() -> None:
    """Whatever a static pod says; of the API's pods who asks for a name space of users."""
    strict = attrs.evolve(NODE, as_kubelet=True)
    words = 'the feature gate "UserNamespacesSupport" is disabled: can\'t set spec.HostUsers'

    def box(node: NodeSettings, source: str, **spec: object) -> str:
        of = attrs.evolve(pod(**spec), annotations={"kubernetes.io/config.source": source})
        try:
            return sandbox_config(of, attempt=0, node=node).pod.name
        except SandboxConfigError as error:
            return str(error)

    for source, of_host in (("file", words), ("api", "web")):
        assert box(strict, source, hostUsers=False) == words
        assert box(strict, source, hostUsers=True) == of_host
        assert box(strict, source) == box(NODE, source, hostUsers=True) == "web"


def test_a_limit_that_an_init_container_lacks_is_told() -> None:
    """As the node's; by a kubelet as none where it is asked for by name."""

    def told(name: str, node: NodeSettings) -> str:
        asked = {"resource": "limits.cpu", "containerName": name}
        of = pod(
            {"env": [{"name": "N", "valueFrom": {"resourceFieldRef": asked}}]},
            initContainers=[{"name": "first", "image": "i"}],
        )
        config = container_config(of, of.containers[0], attempt=0, image=IMAGE, node=node)
        return config.env["N"]

    node = attrs.evolve(NODE, allocatable={"cpu": Quantity.of(4)})
    strict = attrs.evolve(node, as_kubelet=True)
    assert (told("first", node), told("first", strict)) == ("4", "0")
    assert (told("app", node), told("app", strict)) == ("4", "4")


def test_a_sandbox_carries_the_pods_words() -> None:
    """Labels, annotations, kernel settings, name and log folder."""
    config = sandbox_config(
        pod(securityContext={"sysctls": [{"name": "net/ipv4/ip_local_port_range", "value": "1 2"}]}),
        attempt=4,
        node=NODE,
        cgroup_parent="/kubepods/podu1",
        handler="kata",
    )
    assert (config.labels, config.annotations["note"]) == ({"app": "web"}, "x")
    assert config.sysctls == {"net.ipv4.ip_local_port_range": "1 2"}
    assert (config.log_directory, config.attempt, config.handler) == ("/var/log/pods/shop_web_u1", 4, "kata")
    assert (config.hostname, config.cgroup_parent) == ("web", "/kubepods/podu1")
    assert sandbox_config(pod({"securityContext": {"privileged": True}}), attempt=0, node=NODE).privileged


def test_kernel_settings_may_have_slashes() -> None:
    """Where they do, a dot is part of a name, as of the interface `eth0.1`."""
    names = ["net/ipv4/conf/eth0.1/rp_filter", "net.ipv4.conf.eth0/1.forwarding"]
    asked = {"sysctls": [{"name": one, "value": "1"} for one in names]}
    assert list(sandbox_config(pod(securityContext=asked), attempt=0, node=NODE).sysctls) == [
        "net.ipv4.conf.eth0/1.rp_filter",
        "net.ipv4.conf.eth0/1.forwarding",
    ]


def test_a_sandbox_is_told_what_its_containers_may_use() -> None:
    """The sum of the limits that there are, without what the pod itself takes, which is told beside it."""
    limited = {"limits": {"cpu": "250m", "memory": "64Mi"}}
    of = pod(
        {"resources": limited},
        initContainers=[
            {
                "name": "proxy",
                "image": "i",
                "restartPolicy": "Always",
                "resources": {"limits": {"memory": "16Mi"}},
            },
            {"name": "free", "image": "i", "restartPolicy": "Always"},
        ],
        overhead={"cpu": "500m", "memory": "8Mi"},
    )
    config = sandbox_config(of, attempt=0, node=NODE)
    assert config.resources == LinuxResources(
        cpu_shares=256, cpu_quota_us=25_000, cpu_period_us=100_000, memory_bytes=80 << 20
    )
    assert config.overhead == LinuxResources(
        cpu_shares=512, cpu_quota_us=50_000, cpu_period_us=100_000, memory_bytes=8 << 20
    )
    options = PodOptions(cpu_quota=False, unified=True, single_oom_kill=False)
    config = sandbox_config(of, attempt=0, node=attrs.evolve(NODE, limits=options))
    assert config.resources == LinuxResources(
        cpu_shares=256, memory_bytes=80 << 20, unified={"memory.oom.group": "1"}
    )
    assert sandbox_config(pod(), attempt=0, node=NODE).overhead == LinuxResources()


def test_a_port_that_stands_there_twice_is_one() -> None:
    """Unless it has two names."""
    port = {"containerPort": 80}
    ports = [port, port, {**port, "protocol": "UDP"}, {**port, "name": "a"}, {**port, "name": "b"}]
    found = sandbox_config(pod({"ports": ports}), attempt=0, node=NODE).ports
    assert [(one.container_port, one.protocol.value) for one in found] == [
        (80, "TCP"),
        (80, "UDP"),
        (80, "TCP"),
        (80, "TCP"),
    ]


def test_what_is_read_only_all_the_way_down_is_refused() -> None:
    """Nobody can promise it, so the container is not made without; who takes less gets less."""
    volumes = [{"name": "data", "emptyDir": {}}]
    options = ContainerRunOptions(volumes={"data": "/v/data"})

    def mounted(how: str) -> ContainerConfig:
        mount = {"name": "data", "mountPath": "/d", "readOnly": True, "recursiveReadOnly": how}
        return configured({"volumeMounts": [mount]}, options=options, volumes=volumes)

    assert mounted("IfPossible").mounts[0].read_only
    with pytest.raises(ContainerConfigError, match="recursiveReadOnly of volume data is Enabled"):
        mounted("Enabled")


def test_a_kubelet_says_of_its_runtime_that_it_cannot() -> None:
    """Its words stand in the status of the container, which waits."""
    mount = {"name": "data", "mountPath": "/d", "readOnly": True, "recursiveReadOnly": "Enabled"}
    of = pod({"volumeMounts": [mount]}, volumes=[{"name": "data", "emptyDir": {}}])
    node = attrs.evolve(NODE, as_kubelet=True)
    with pytest.raises(ContainerConfigError) as caught:
        container_config(of, of.containers[0], attempt=0, image=IMAGE, node=node)
    assert caught.value.message == (
        'failed to resolve recursive read-only mode: volume "data" requested recursive read-only mode, '
        "but it is not supported by the runtime"
    )


def test_old_annotations_name_profiles_of_app_armor() -> None:
    """Where the container itself says nothing; they count more than the pod's."""
    annotation = "container.apparmor.security.beta.kubernetes.io/app"
    of_pod = {"appArmorProfile": {"type": "Unconfined"}}

    def profile(word: str, **own: object) -> SecurityProfile | None:
        of = attrs.evolve(pod(own, securityContext=of_pod), annotations={annotation: word})
        return container_config(of, of.containers[0], attempt=0, image=IMAGE, node=NODE).security.apparmor

    assert profile("runtime/default") == SecurityProfile(type=ProfileType.RUNTIME_DEFAULT)
    assert profile("localhost/mine") == SecurityProfile(type=ProfileType.LOCALHOST, localhost="mine")
    own = {"appArmorProfile": {"type": "RuntimeDefault"}}
    assert profile("localhost/mine", securityContext=own) == SecurityProfile(type=ProfileType.RUNTIME_DEFAULT)
    assert profile("nonsense") == SecurityProfile(type=ProfileType.UNCONFINED)


def test_a_hook_is_written_beside_its_container_as_go_writes_it() -> None:
    """What is empty is left out."""
    for hook in ({"port": 80}, {"port": "web", "host": "h"}):
        config = configured({"lifecycle": {"preStop": {"tcpSocket": hook}}})
        written = config.annotations["io.kubernetes.container.preStopHandler"]
        assert json.loads(written) == {"tcpSocket": hook}


def test_an_ephemeral_container_sees_the_processes_of_its_target() -> None:
    """The runtime is told whose; all else is as of any container."""
    of = pod()
    config = container_config(of, of.containers[0], attempt=0, image=IMAGE, node=NODE, target_id="c9")
    assert config.shares_pid_with == "c9"
