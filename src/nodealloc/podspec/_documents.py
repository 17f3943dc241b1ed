"""The parts of a Pod manifest as they stand in it, and what is made of them."""

from __future__ import annotations

import functools
import typing
from collections.abc import Mapping
from typing import Final, TypeAlias, cast

from nodealloc import _attrs as attrs
from nodealloc._declared import At, Documents
from nodealloc._frozen import freeze
from nodealloc._reading import Json, Reader, as_shown
from nodealloc._wire import wire
from nodealloc.podspec._between import CHECKS
from nodealloc.podspec._checks import UID, at_least, label, maybe, name_fault, one_of, relative, subdomain
from nodealloc.podspec._fields import PodFields
from nodealloc.podspec._model import ClaimUse, Container, PullPolicy, Resources, Volume, VolumeUse
from nodealloc.podspec._pod_reader import PodReader
from nodealloc.podspec._probes import Probe
from nodealloc.podspec._resources import amounts_of, read_resources
from nodealloc.podspec._security import PodSecurityContext, SecurityContext
from nodealloc.podspec._variables import ValueFrom
from nodealloc.podspec._volume_kinds import volume_of

__all__ = ["Manifest", "Metadata", "documents"]

Raw: TypeAlias = Mapping[str, Json]
Amounts: TypeAlias = Mapping[str, object]

_RAW: Final = wire(raw=True)
_EMPTY: Final[Raw] = {}
_PROPAGATION: Final = ("None", "HostToContainer", "Bidirectional")


def _no_other_kind(kind: str) -> str:
    """Why a document is no Pod, and what to do; "" for one that is."""
    if kind == "Pod":
        return ""
    is_list = kind in {"List", "PodList"}
    remedy = "write each of its pods by itself" if is_list else "take the pod template out of its controller"
    return f"expected Pod, found {as_shown(kind)}; {remedy}"


def _uid(text: str) -> str:
    return name_fault(text, "uid", UID)


@attrs.frozen(kw_only=True)
class Asked:
    """What stands below `resources` of a container."""

    requests: Amounts = attrs.field(factory=dict[str, object])
    limits: Amounts = attrs.field(factory=dict[str, object])
    claims: tuple[ClaimUse, ...] = ()


@attrs.frozen(kw_only=True)
class Mount:
    """An entry of `volumeMounts`."""

    name: str = ""
    mount_path: str = attrs.field(default="", metadata=wire(required=True))
    read_only: bool = False
    sub_path: str = attrs.field(default="", metadata=wire(check=relative))
    sub_path_expr: str = attrs.field(default="", metadata=wire(check=relative))
    mount_propagation: str = attrs.field(default="None", metadata=wire(check=one_of(*_PROPAGATION)))
    recursive_read_only: str = ""


@attrs.frozen(kw_only=True)
class Block:
    """An entry of `volumeDevices`."""

    name: str = ""
    device_path: str = attrs.field(default="", metadata=wire(required=True))


@attrs.frozen(kw_only=True)
class ContainerFields(Container):
    """A container, with what stands otherwise in a manifest than in `Container`."""

    resources: Asked | None = None
    volume_mounts: tuple[Mount, ...] = ()
    volume_devices: tuple[Block, ...] = ()
    restart_policy: str | None = None


@attrs.frozen(kw_only=True)
class Spec(PodFields):
    """What stands below `spec`; what concerns others than a node is carried."""

    scheduler_name: Json = attrs.field(default=None, metadata=_RAW)
    topology_spread_constraints: Json = attrs.field(default=None, metadata=_RAW)
    service_account: Json = attrs.field(default=None, metadata=_RAW)


@attrs.frozen(kw_only=True)
class Metadata:
    """What stands below `metadata`; what concerns others than a node is carried."""

    name: str = attrs.field(default="", metadata=wire(required=True, check=subdomain))
    namespace: str = attrs.field(default="default", metadata=wire(check=maybe(label)))
    uid: str = attrs.field(default="", metadata=wire(check=maybe(_uid)))
    labels: Mapping[str, str] = attrs.field(factory=dict[str, str], validator=freeze)
    annotations: Mapping[str, str] = attrs.field(factory=dict[str, str], validator=freeze)
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    deletion_grace_period_seconds: int | None = attrs.field(default=None, metadata=wire(check=at_least(0)))
    generate_name: Json = attrs.field(default=None, metadata=_RAW)
    resource_version: Json = attrs.field(default=None, metadata=_RAW)
    generation: Json = attrs.field(default=None, metadata=_RAW)
    self_link: Json = attrs.field(default=None, metadata=_RAW)
    owner_references: Json = attrs.field(default=None, metadata=_RAW)
    finalizers: Json = attrs.field(default=None, metadata=_RAW)
    managed_fields: Json = attrs.field(default=None, metadata=_RAW)


@attrs.frozen(kw_only=True)
class Manifest:
    """The whole document."""

    api_version: str = attrs.field(
        default="v1",
        metadata=wire(check=lambda one: "" if one == "v1" else f"expected v1, found {as_shown(one)}"),
    )
    kind: str = attrs.field(
        default="Pod",
        metadata=wire(check=_no_other_kind),
    )
    metadata: Metadata | None = attrs.field(default=None, metadata=wire(required=True))
    spec: Spec | None = attrs.field(default=None, metadata=wire(required=True))
    status: Raw = attrs.field(default=_EMPTY, metadata=_RAW)


_UNSUPPORTED: Final[Mapping[type, Mapping[str, str]]] = {
    Spec: {
        "resources": "resources of the pod as a whole are alpha in v1.32 and off there; ask in its containers"
    },
    SecurityContext: {"windowsOptions": "a node of this library runs Linux"},
    PodSecurityContext: {"windowsOptions": "a node of this library runs Linux"},
    ValueFrom: {"fileKeyRef": "files of variables came after v1.32"},
    ContainerFields: {"restartPolicyRules": "rules of restarts came after v1.32"},
}


@functools.cache
def documents() -> Documents:
    """The reader of manifests, made when the first one is read."""
    made = Documents(
        unsupported=_UNSUPPORTED,
        checks=CHECKS,
        builders={ContainerFields: _container, Spec: _spec, Metadata: _metadata},
        hooks={Volume: volume_of, Resources: _overhead, Amounts: _amounts},
        raw=_raw,
    )
    made.register(Container, made.hook(ContainerFields))
    return made


def _raw(at: At, wanted: object) -> object:
    value, path, reader = at
    if typing.get_origin(wanted) is Mapping:
        value = reader.mapping(value, path)
    return cast("PodReader", reader).copied_value(value, path, 1)


def _amounts(at: At, _: object) -> object:
    """What a container asks for, to be read when requests and limits are both at hand."""
    value, path, reader = at
    return reader.mapping(value, path)


def _overhead(at: At, _: object) -> object:
    value, path, reader = at
    return amounts_of(reader.mapping(value, path), path, reader.fault)


def _container(made: dict[str, object], path: str, reader: Reader) -> Container:
    asked = cast("Asked", made.pop("resources", _NOTHING))
    requests, limits = read_resources(asked.requests, asked.limits, f"{path}.resources", reader.fault)
    mounts = cast("tuple[Mount, ...]", made.pop("volume_mounts", ()))
    blocks = cast("tuple[Block, ...]", made.pop("volume_devices", ()))
    volumes = tuple(map(_mount, mounts))
    if blocks:
        volumes += tuple(VolumeUse(name=one.name, path=one.device_path, block=True) for one in blocks)
    policy = cast("str | None", made.pop("restart_policy", None))
    init = path.startswith("$.spec.init")
    if policy is not None and not (init and policy == "Always"):
        where = (
            "an init container takes only Always here"
            if init
            else "only init containers take one of their own"
        )
        reader.fault(f"{path}.restartPolicy", f"{where}, found {as_shown(policy)}")
    _check_probes(made, path, reader)
    made.setdefault("name", "")
    container = Container(
        requests=requests,
        limits=limits,
        restartable=policy is not None,
        volumes=volumes,
        claims=asked.claims,
        **{"image_pull_policy": _pull_policy(made.get("image")), **made},  # type: ignore[arg-type]
    )
    cast("PodReader", reader).containers.append((container, path))
    return container


_NOTHING: Final = Asked()


def _check_probes(made: Mapping[str, object], path: str, reader: Reader) -> None:
    """What a probe may say depends on what it is asked for."""
    for name, key in (("liveness_probe", "livenessProbe"), ("startup_probe", "startupProbe")):
        probe = made.get(name)
        if isinstance(probe, Probe) and probe.success_threshold != 1:
            reader.fault(
                f"{path}.{key}.successThreshold", f"one success counts here, found {probe.success_threshold}"
            )
    probe = made.get("readiness_probe")
    if isinstance(probe, Probe) and probe.termination_grace_period_seconds is not None:
        reader.fault(
            f"{path}.readinessProbe.terminationGracePeriodSeconds", "nothing is killed for not being ready"
        )


def _pull_policy(image: object) -> PullPolicy | None:
    """As the API defaults it: an image that may change is fetched each time."""
    if not image:
        return None
    name, at, _ = str(image).rpartition("/")[2].partition("@")
    tag = name.partition(":")[2]
    may_change = tag == "latest" or not (tag or at)
    return PullPolicy.ALWAYS if may_change else PullPolicy.IF_NOT_PRESENT


def _mount(one: Mount) -> VolumeUse:
    return VolumeUse(
        name=one.name,
        path=one.mount_path,
        read_only=one.read_only,
        sub_path=one.sub_path,
        sub_path_expr=one.sub_path_expr,
        propagation=one.mount_propagation,
        recursive_read_only=one.recursive_read_only,
    )


def _carried(made: dict[str, object], section: str, fields: Mapping[str, str]) -> dict[str, object]:
    """Takes what concerns others out of what was read, under its path."""
    return {f"{section}.{key}": made.pop(name) for name, key in fields.items() if name in made}


def _spec(made: dict[str, object], path: str, reader: Reader) -> dict[str, object]:
    del path, reader
    carried = _carried(made, "spec", _CARRIED_SPEC)
    account = carried.get("spec.serviceAccount")
    if account and isinstance(account, str) and not made.get("service_account_name"):
        # Its deprecated name, which the API takes for the same.
        made["service_account_name"] = account
    return {**made, "carried": carried}


def _metadata(made: dict[str, object], path: str, reader: Reader) -> dict[str, object]:
    del path, reader
    carried = _carried(made, "metadata", _CARRIED_METADATA)
    return {**made, "carried": carried}


_CARRIED_SPEC: Final = {
    "scheduler_name": "schedulerName",
    "topology_spread_constraints": "topologySpreadConstraints",
    "service_account": "serviceAccount",
}
_CARRIED_METADATA: Final = {
    "generate_name": "generateName",
    "resource_version": "resourceVersion",
    "generation": "generation",
    "self_link": "selfLink",
    "owner_references": "ownerReferences",
    "finalizers": "finalizers",
    "managed_fields": "managedFields",
}
