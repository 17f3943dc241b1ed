"""What an API server checks of references: to fields and amounts of a pod, and to objects beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from nodealloc.errors import Fault
from nodealloc.podspec._checks import subdomain
from nodealloc.podspec._names import is_qualified
from nodealloc.podspec._quantity import Quantity

if TYPE_CHECKING:
    from nodealloc.podspec._model import Container
    from nodealloc.podspec._variables import FieldRef, KeyRef

__all__ = ["amount_faults", "keyed_field_fault", "variable_faults", "version_fault"]

_FIELD: Final = re.compile(
    r"metadata\.(name|namespace|uid|(labels|annotations)\['[^']+'\])"
    r"|spec\.(nodeName|host|serviceAccountName)|status\.(hostIPs?|podIPs?)"
)
_KEYED: Final = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
_AMOUNT: Final = re.compile(r"(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.+)")
_KEY: Final = re.compile(r"(?!\.\.)(?!\.\Z)[-._a-zA-Z0-9]{1,253}", re.ASCII)
_CPU_UNITS: Final = ("1m", "1")
_BYTE_UNITS: Final = (
    *("1", "1k", "1M", "1G", "1T", "1P", "1E"),
    *("1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"),
)


def variable_faults(where: str, one: Container, /) -> Iterator[Fault]:
    """What is wrong with where a container's variables come from.

    Source: Kubernetes ``pkg/apis/core/validation``.
    """
    for index, variable in enumerate(one.variables):
        source, path = variable.value_from, f"{where}.env[{index}].valueFrom"
        if source is None:
            continue
        if source.field_ref is not None:
            yield from _field(f"{path}.fieldRef", source.field_ref)
        asked = source.resource_field_ref
        if asked is not None:
            yield from amount_faults(f"{path}.resourceFieldRef", asked.resource, asked.divisor)
        for name, key in (
            ("configMapKeyRef", source.config_map_key_ref),
            ("secretKeyRef", source.secret_key_ref),
        ):
            if key is not None:
                yield from _of_key(f"{path}.{name}", key)
    for index, all_of in enumerate(one.env_from):
        for name, ref in (("configMapRef", all_of.config_map_ref), ("secretRef", all_of.secret_ref)):
            if ref is not None:
                yield from _object(f"{where}.envFrom[{index}].{name}.name", ref.name)


def amount_faults(path: str, resource: str, divisor: object, /) -> Iterator[Fault]:
    """What is wrong with a reference to an amount, of a variable or of a file.

    A divisor of nothing counts as 1.
    """
    if not _AMOUNT.fullmatch(resource):
        what = f"{resource[:80]!r} is no amount; limits.cpu and requests.memory are"
        yield Fault(f"{path}.resource", what)
        return
    units = _CPU_UNITS if resource.endswith(".cpu") else _BYTE_UNITS
    try:
        unit = Quantity.parse(str(divisor or "0"))
    except ValueError:
        unit = None
    if unit is None or (unit.nanos and str(unit) not in units):
        what = f"{str(divisor)[:80]!r} is no unit of {resource}; write one of {', '.join(units)}"
        yield Fault(f"{path}.divisor", what)


def keyed_field_fault(path: str, field: str, /) -> Iterator[Fault]:
    """What is wrong with the key of a label or an annotation that a field path names."""
    keyed = _KEYED.fullmatch(field)
    if keyed is None:
        return
    key = keyed[2] if keyed[1] == "labels" else keyed[2].lower()
    if not is_qualified(key):
        yield Fault(path, f"{keyed[2][:80]!r} is no key; write name or domain/name, 63 characters")


def version_fault(path: str, version: str, /) -> Iterator[Fault]:
    """What is wrong with the version of a field path."""
    if version != "v1":
        yield Fault(f"{path}.apiVersion", f"{version[:80]!r} has no fields of pods; write v1")


def _field(path: str, ref: FieldRef) -> Iterator[Fault]:
    yield from version_fault(path, ref.api_version)
    if not _FIELD.fullmatch(ref.field_path):
        what = f"{ref.field_path[:80]!r} is no field that a variable can have"
        yield Fault(f"{path}.fieldPath", what)
    yield from keyed_field_fault(f"{path}.fieldPath", ref.field_path)


def _of_key(path: str, key: KeyRef) -> Iterator[Fault]:
    if not _KEY.fullmatch(key.key):
        yield Fault(f"{path}.key", f"{key.key[:80]!r} is no key; write letters, digits, -_.")
    yield from _object(f"{path}.name", key.name)


def _object(path: str, name: str) -> Iterator[Fault]:
    if not name:
        yield Fault(path, "a name is needed; write it")
    elif what := subdomain(name):
        yield Fault(path, what)
