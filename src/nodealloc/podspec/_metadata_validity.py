"""What an API server checks of the metadata of a pod."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Final

from nodealloc._raw_parts import Fields, fields_of, items_of, text_of
from nodealloc.errors import Fault
from nodealloc.podspec._checks import label_key, label_value, subdomain

if TYPE_CHECKING:
    from nodealloc.podspec._fields import PodFields

__all__ = ["metadata_faults"]

_LARGEST: Final = 256 << 10
"""Bytes of all annotations together."""
_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_COSTS: Final = re.compile(r"0|-?[1-9][0-9]{0,9}", re.ASCII)
_MOST: Final = 2**31
_OF_KUBERNETES: Final = ("foregroundDeletion", "kubernetes", "orphan")
"""Finalizers without a domain."""
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_VERSION: Final = re.compile(r"[^/]+(/[^/]+)?")
_LONGEST_MANAGER: Final = 128


def metadata_faults(pod: PodFields, /) -> Iterator[Fault]:
    """What is wrong with what stands below `metadata`.

    Source: Kubernetes v1.32 ``apimachinery/pkg/api/validation`` and ``pkg/apis/core/validation``.
    """
    for key, value in pod.labels.items():
        if what := label_key(key) or label_value(value):
            yield Fault(f"$.metadata.labels.{key}", what)
    if pod.annotations:
        yield from _annotations(pod)
    for name, moment in (
        ("creationTimestamp", pod.creation_timestamp),
        ("deletionTimestamp", pod.deletion_timestamp),
    ):
        if moment and not _is_moment(moment):
            what = f"{moment[:80]!r} is no moment; write one such as 2006-01-02T15:04:05Z, or leave it out"
            yield Fault(f"$.metadata.{name}", what)
    if pod.carried:
        yield from _carried(pod.carried)


def _annotations(pod: PodFields) -> Iterator[Fault]:
    for key in pod.annotations:
        if what := label_key(key.lower()):
            yield Fault(f"$.metadata.annotations.{key}", what)
    size = sum(len(key.encode()) + len(value.encode()) for key, value in pod.annotations.items())
    if size > _LARGEST:
        what = f"they have {size} bytes together, {_LARGEST} is the limit; keep the rest elsewhere"
        yield Fault("$.metadata.annotations", what)
    cost = pod.annotations.get(_COST)
    if cost is not None and not (_COSTS.fullmatch(cost) and -_MOST <= int(cost) < _MOST):
        what = f"{cost[:80]!r} is no whole number of 32 bits; write one, without a sign + and zeros before it"
        yield Fault(f"$.metadata.annotations.{_COST}", what)


def _is_moment(text: str) -> bool:
    if not _MOMENT.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text[:19])
    except ValueError:
        return False
    return True


def _carried(carried: Fields) -> Iterator[Fault]:
    name = carried.get("metadata.generateName")
    if name:
        # What is appended to it decides about its last character.
        text = text_of(name)
        begun = f"{text[:-1]}a" if text.endswith("-") and len(text) > 1 else text
        if what := subdomain(begun):
            yield Fault("$.metadata.generateName", what)
    generation = carried.get("metadata.generation")
    if isinstance(generation, int) and generation < 0:
        yield Fault("$.metadata.generation", f"{generation} is less than 0; leave it out")
    yield from _finalizers(carried.get("metadata.finalizers"))
    yield from _owners(carried.get("metadata.ownerReferences"))
    for index, one in enumerate(items_of(carried.get("metadata.managedFields"))):
        yield from _manager(f"$.metadata.managedFields[{index}]", fields_of(one))


def _finalizers(found: object) -> Iterator[Fault]:
    names = [text_of(one) for one in items_of(found)]
    for index, name in enumerate(names):
        path = f"$.metadata.finalizers[{index}]"
        if what := label_key(name):
            yield Fault(path, what)
        elif "/" not in name and name not in _OF_KUBERNETES:
            what = f"{name!r} has no domain; write domain/name, or one of {', '.join(_OF_KUBERNETES)}"
            yield Fault(path, what)
    if {"foregroundDeletion", "orphan"} <= {*names}:
        what = "foregroundDeletion and orphan exclude one another; leave one out"
        yield Fault("$.metadata.finalizers", what)


def _owners(found: object) -> Iterator[Fault]:
    leading = 0
    for index, one in enumerate(items_of(found)):
        path, owner = f"$.metadata.ownerReferences[{index}]", fields_of(one)
        for name in ("kind", "name", "uid"):
            if not text_of(owner.get(name)):
                yield Fault(f"{path}.{name}", "it is needed; write it")
        version = text_of(owner.get("apiVersion"))
        if not _VERSION.fullmatch(version):
            yield Fault(f"{path}.apiVersion", f"{version[:80]!r} is no version; write v1 or group/version")
        if (version, owner.get("kind")) == ("v1", "Event"):
            yield Fault(path, "an Event owns nothing; leave it out")
        leading += owner.get("controller") is True
    if leading > 1:
        what = f"{leading} of them are controllers; one may be"
        yield Fault("$.metadata.ownerReferences", what)


def _manager(path: str, one: Fields) -> Iterator[Fault]:
    if one.get("operation") not in ("Apply", "Update"):
        yield Fault(f"{path}.operation", "expected one of Apply, Update")
    if one.get("fieldsType") not in (None, "", "FieldsV1"):
        yield Fault(f"{path}.fieldsType", "expected FieldsV1; leave it out")
    manager = text_of(one.get("manager"))
    if len(manager) > _LONGEST_MANAGER or not manager.isprintable():
        what = f"{manager[:80]!r} is no name; {_LONGEST_MANAGER} characters that can be printed are"
        yield Fault(f"{path}.manager", what)
