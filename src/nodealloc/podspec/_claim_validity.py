"""What an API server checks of the claim that is made for an ephemeral volume."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nodealloc._raw_parts import Fields, fields_of, items_of, text_of
from nodealloc.errors import Fault
from nodealloc.podspec._checks import label, label_key, label_value, subdomain
from nodealloc.podspec._quantity import Quantity
from nodealloc.podspec._selector_validity import selector_faults

__all__ = ["ephemeral_faults"]

_ALONE: Final = "ReadWriteOncePod"
_MODES: Final = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", _ALONE)
_CLAIM: Final = "PersistentVolumeClaim"


def ephemeral_faults(where: str, spec: Fields, /) -> Iterator[Fault]:
    """What is wrong with what stands below `ephemeral`.

    Source: Kubernetes v1.32 ``pkg/apis/core/validation``.
    """
    path = f"{where}.volumeClaimTemplate"
    if spec.get("volumeClaimTemplate") is None:
        yield Fault(path, "it is needed; write it")
        return
    template = fields_of(spec["volumeClaimTemplate"])
    yield from _metadata(f"{path}.metadata", fields_of(template.get("metadata")))
    yield from _claim(f"{path}.spec", fields_of(template.get("spec")))


def _metadata(path: str, found: Fields) -> Iterator[Fault]:
    for name, value in found.items():
        if name not in ("labels", "annotations"):
            if value:
                yield Fault(
                    f"{path}.{name}", "a claim that is made has only labels and annotations; leave it out"
                )
            continue
        for key, one in fields_of(value).items():
            is_label = name == "labels"
            what = label_key(key if is_label else key.lower()) or (label_value(one) if is_label else "")
            if what:
                yield Fault(f"{path}.{name}.{key}", what)


def _claim(path: str, spec: Fields) -> Iterator[Fault]:
    modes = items_of(spec.get("accessModes"))
    if not modes:
        yield Fault(f"{path}.accessModes", f"at least one is needed; write one of {', '.join(_MODES)}")
    for index, mode in enumerate(modes):
        if mode not in _MODES:
            yield Fault(f"{path}.accessModes[{index}]", f"expected one of {', '.join(_MODES)}")
    if _ALONE in modes and len(modes) > 1:
        yield Fault(f"{path}.accessModes", f"{_ALONE} goes with no other; leave the others out")
    yield from selector_faults(f"{path}.selector", spec.get("selector"))
    storage = fields_of(fields_of(spec.get("resources")).get("requests")).get("storage")
    if not _is_some(storage):
        yield Fault(
            f"{path}.resources.requests.storage", "an amount above 0 is needed, such as 1Gi; write it"
        )
    name = text_of(spec.get("storageClassName"))
    if name and (what := subdomain(name)):
        yield Fault(f"{path}.storageClassName", what)
    if spec.get("volumeMode") not in (None, "Block", "Filesystem"):
        yield Fault(f"{path}.volumeMode", "expected one of Block, Filesystem")
    for source in ("dataSource", "dataSourceRef"):
        if spec.get(source) is not None:
            yield from _source(f"{path}.{source}", fields_of(spec[source]))
    if spec.get("dataSource") is not None and spec.get("dataSourceRef") is not None:
        yield from _same(
            f"{path}.dataSource", fields_of(spec["dataSource"]), fields_of(spec["dataSourceRef"])
        )


def _is_some(amount: object) -> bool:
    if not isinstance(amount, str | int | float) or isinstance(amount, bool):
        return False
    try:
        return Quantity.of(amount).nanos > 0
    except ValueError:
        return False


def _source(path: str, found: Fields) -> Iterator[Fault]:
    for name in ("kind", "name"):
        if not text_of(found.get(name)):
            yield Fault(f"{path}.{name}", "it is needed; write it")
    group = text_of(found.get("apiGroup"))
    if not group and found.get("kind") != _CLAIM:
        yield Fault(path, f"without apiGroup only {_CLAIM} can be meant; write it")
    elif group and (what := subdomain(group)):
        yield Fault(f"{path}.apiGroup", what)
    space = text_of(found.get("namespace"))
    if space and (what := label(space)):
        yield Fault(f"{path}.namespace", what)


def _same(path: str, source: Fields, ref: Fields) -> Iterator[Fault]:
    if ref.get("namespace"):
        yield Fault(path, "dataSourceRef is in another name space; leave dataSource out")
    elif any(source.get(name) != ref.get(name) for name in ("apiGroup", "kind", "name")):
        yield Fault(path, "it is not what dataSourceRef is; leave one of the two out")
