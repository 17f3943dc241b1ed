"""What an API server checks of the volumes of storage systems, which others mount."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from nodealloc._raw_parts import Fields, fields_of, items_of, text_of
from nodealloc.errors import Fault
from nodealloc.podspec._checks import label, maybe, one_of, relative, subdomain

__all__ = ["STORAGE_KINDS", "storage_faults"]

_MOST_BYTE: Final = 255
_LONGEST_DRIVER: Final = 63
_LONGEST_TENANT: Final = 64
_ISCSI: Final = (
    re.compile(r"iqn.*\d{4}-\d{2}\.[A-Za-z0-9.-]+:[^,;*&$|\s]+", re.ASCII),
    re.compile(r"eui.[A-Za-z0-9]{16}", re.ASCII),
    re.compile(r"naa.[A-Za-z0-9]{32}", re.ASCII),
)
_ADDRESS: Final = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*):[^:\[\]]*")
_RESERVED: Final = (".kubernetes.io", ".k8s.io")

_Check = Callable[[object], str]


def storage_faults(where: str, kind: str, spec: Fields, /) -> Iterator[Fault]:
    """What is wrong with what stands below a kind of volume of a storage system.

    Source: Kubernetes v1.32 ``pkg/apis/core/validation``.
    """
    for name, check in _FIELDS.get(kind, {}).items():
        if what := check(spec.get(name)):
            yield Fault(f"{where}.{name}", what)
    if (between := _BETWEEN.get(kind)) is not None:
        yield from between(where, spec)


def _needed(value: object) -> str:
    return "" if text_of(value) else "it is needed; write it"


def _some(value: object) -> str:
    return "" if items_of(value) else "at least one is needed; write it"


def _byte(value: object) -> str:
    if value is None or (type(value) is int and 0 <= value <= _MOST_BYTE):
        return ""
    return f"{str(value)[:80]!r} is outside 0 to {_MOST_BYTE}"


def _text(check: Callable[[str], str]) -> _Check:
    return lambda value: check(text_of(value))


def _secret(value: object) -> str:
    """A reference that is there names something."""
    if value is None or text_of(fields_of(value).get("name")):
        return ""
    return "a name is needed; write it, or leave the reference out"


def _named_secret(value: object) -> str:
    return _secret(value) or maybe(subdomain)(text_of(fields_of(value).get("name")))


def _driver(value: object) -> str:
    name = text_of(value)
    if len(name) > _LONGEST_DRIVER:
        return f"{name[:80]!r} has {len(name)} characters, {_LONGEST_DRIVER} is the limit"
    return subdomain(name.lower()) if name else _needed(name)


def _absolute(value: object) -> str:
    path = text_of(value)
    return _needed(path) or (
        "" if path.startswith("/") else f"{path[:80]!r} is no absolute path; begin it with /"
    )


def _initiator(text: str) -> str:
    if any(one.fullmatch(text) for one in _ISCSI):
        return ""
    return f"{text[:80]!r} is no name of iSCSI; write iqn.YYYY-MM.DOMAIN:NAME, eui. or naa. with its digits"


def _registry(value: object) -> str:
    text = text_of(value)
    if not text or all(_ADDRESS.fullmatch(one) for one in text.split(",")):
        return _needed(text)
    return f"{text[:80]!r} are no addresses; write HOST:PORT, with commas between them"


def _tenant(value: object) -> str:
    name = text_of(value)
    return (
        f"{len(name)} characters, {_LONGEST_TENANT} is the limit; write a UUID"
        if len(name) > _LONGEST_TENANT
        else ""
    )


def _iscsi(where: str, spec: Fields) -> Iterator[Fault]:
    if (name := text_of(spec.get("iqn"))) and (what := _initiator(name)):
        yield Fault(f"{where}.iqn", what)
    if spec.get("initiatorName") is not None and (what := _initiator(text_of(spec["initiatorName"]))):
        yield Fault(f"{where}.initiatorName", what)
    for name in ("chapAuthDiscovery", "chapAuthSession"):
        if spec.get(name) is True and spec.get("secretRef") is None:
            yield Fault(f"{where}.secretRef", f"{name} needs it; name a secret")


def _fibre(where: str, spec: Fields) -> Iterator[Fault]:
    ports, disks = items_of(spec.get("targetWWNs")), items_of(spec.get("wwids"))
    if bool(ports) == bool(disks):
        yield Fault(where, "exactly one of targetWWNs, wwids is needed; write one")
    elif ports and spec.get("lun") is None:
        yield Fault(f"{where}.lun", "targetWWNs need it; write it")
    elif ports and (what := _byte(spec["lun"])):
        yield Fault(f"{where}.lun", what)


def _flex(where: str, spec: Fields) -> Iterator[Fault]:
    for name in fields_of(spec.get("options")):
        domain = f".{name.partition('/')[0].lower()}"
        if domain.endswith(_RESERVED):
            what = "names of kubernetes.io and k8s.io are kept; choose another domain"
            yield Fault(f"{where}.options.{name}", what)


def _flocker(where: str, spec: Fields) -> Iterator[Fault]:
    name, uuid = text_of(spec.get("datasetName")), text_of(spec.get("datasetUUID"))
    if bool(name) == bool(uuid):
        yield Fault(where, "exactly one of datasetName, datasetUUID is needed; write one")
    if "/" in name:
        yield Fault(f"{where}.datasetName", f"{name[:80]!r} has a '/' in it; leave it out")


def _azure(where: str, spec: Fields) -> Iterator[Fault]:
    uri, is_managed = text_of(spec.get("diskURI")), spec.get("kind") == "Managed"
    begin = "/subscriptions/" if is_managed else "https://"
    if uri and not uri.startswith(begin):
        yield Fault(
            f"{where}.diskURI", f"{uri[:80]!r} does not begin with {begin}; write it so, or change kind"
        )


_FIELDS: Final[Mapping[str, Mapping[str, _Check]]] = {
    "awsElasticBlockStore": {"volumeID": _needed, "partition": _byte},
    "azureDisk": {
        "diskName": _needed,
        "diskURI": _needed,
        "cachingMode": _text(one_of("", "None", "ReadOnly", "ReadWrite")),
        "kind": _text(one_of("", "Shared", "Dedicated", "Managed")),
    },
    "azureFile": {"secretName": _needed, "shareName": _needed},
    "cephfs": {"monitors": _some},
    "cinder": {"volumeID": _needed, "secretRef": _secret},
    "csi": {"driver": _driver, "nodePublishSecretRef": _named_secret},
    "flexVolume": {"driver": _needed},
    "gcePersistentDisk": {"pdName": _needed, "partition": _byte},
    "gitRepo": {"repository": _needed, "directory": _text(relative)},
    "glusterfs": {"endpoints": _needed, "path": _needed},
    "image": {"pullPolicy": _text(one_of("", "Always", "IfNotPresent", "Never"))},
    "iscsi": {"targetPortal": _needed, "iqn": _needed, "lun": _byte},
    "nfs": {"server": _needed, "path": _absolute},
    "photonPersistentDisk": {"pdID": _needed},
    "portworxVolume": {"volumeID": _needed},
    "quobyte": {"registry": _registry, "tenant": _tenant, "volume": _needed},
    "rbd": {"monitors": _some, "image": _needed},
    "scaleIO": {"gateway": _needed, "system": _needed, "volumeName": _needed},
    "storageos": {
        "volumeName": _text(label),
        "volumeNamespace": _text(maybe(label)),
        "secretRef": _secret,
    },
    "vsphereVolume": {"volumePath": _needed},
}
"""What stands below a kind, and what is wrong with a value; None stands for one that is not there."""
_BETWEEN: Final[Mapping[str, Callable[[str, Fields], Iterator[Fault]]]] = {
    "azureDisk": _azure,
    "fc": _fibre,
    "flexVolume": _flex,
    "flocker": _flocker,
    "iscsi": _iscsi,
}
STORAGE_KINDS: Final = frozenset({*_FIELDS, *_BETWEEN})
"""Kinds of volumes of storage systems that the API has."""
