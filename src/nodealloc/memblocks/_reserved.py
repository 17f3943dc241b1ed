"""Memory that the system keeps: the kubelet's notation, and whether it adds up."""

from __future__ import annotations

from collections.abc import Mapping

from nodealloc._arguments import check, wrong
from nodealloc._typed import typed
from nodealloc.errors import DecodeError, Fault
from nodealloc.idset import MAX_ID
from nodealloc.memblocks._blocks import HUGEPAGES, MEMORY, is_memory
from nodealloc.memblocks._errors import ReservationMismatchError
from nodealloc.memblocks._layout import Reserved
from nodealloc.podspec import Quantity, Resources

__all__ = ["check_reserved", "parse_reserved", "reserved_of"]

_NOTHING: Resources = {}


def reserved_of(given: Mapping[int, Mapping[str, int | str | Quantity]] | str | None, /) -> Reserved:
    """Reserved memory in bytes, from any of the ways in which it is written."""
    if given is None:
        return {}
    if isinstance(given, str):
        return parse_reserved(given)
    expected = 'a mapping of node id to a mapping, as {0: {"memory": "1Gi"}}, or a text as 0:memory=1Gi'
    check("reserved memory", given, Mapping, expected)
    faults: list[Fault] = []
    found: dict[int, Mapping[str, int]] = {}
    for node, amounts in given.items():
        if type(node) is not int:
            raise wrong("reserved memory", node, f"a NUMA node id as a number; {expected}")
        check(f"reserved memory of NUMA node {node}", amounts, Mapping, "a mapping of resource to an amount")
        found[node] = {
            name: amount if type(amount) is int else _whole_bytes(amount, f"$[{node}].{name}", faults)
            for name, amount in amounts.items()
        }
    if faults:
        raise DecodeError("reserved memory", faults)
    return found


def _whole_bytes(amount: object, path: str, faults: list[Fault]) -> int:
    return _bytes(str(amount) if isinstance(amount, (str, Quantity)) else repr(amount), path, faults)


@typed
def parse_reserved(text: str, /) -> Reserved:
    """Read `0:memory=1Gi,hugepages-2Mi=100Mi;1:memory=2Gi` as bytes by node and resource.

    Raises:
        DecodeError: A part of another form, a node named twice, an unknown
            resource, fractions of a byte or less than nothing. Lists every fault.

    Source: kubelet flag ``--reserved-memory``.
    """
    found: dict[int, Mapping[str, int]] = {}
    faults: list[Fault] = []
    for index, part in enumerate(text.split(";")):
        path = f"part {index}"
        node, colon, limits = (piece.strip() for piece in part.partition(":"))
        if not colon or not node.isascii() or not node.isdecimal():
            faults.append(Fault(path, f"{part!r} is not <node>:<resource>=<amount>,...; write 0:memory=1Gi"))
        elif len(node) > len(str(MAX_ID)):
            faults.append(Fault(path, f"no machine has a NUMA node {node[:40]}; {MAX_ID} is the largest id"))
        elif int(node) in found:
            faults.append(Fault(path, f"NUMA node {int(node)} stands twice; give all of it in one part"))
        else:
            found[int(node)] = _limits(limits, path, faults)
    if faults:
        raise DecodeError("reserved memory", faults)
    return found


def _limits(text: str, path: str, faults: list[Fault]) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for limit in text.split(","):
        name, equals, amount = (piece.strip() for piece in limit.partition("="))
        if not equals or not is_memory(name):
            what = f"{limit!r} is not {MEMORY}=<amount> or {HUGEPAGES}<size>=<amount>"
            if ":" in limit:
                what += "; write ';' between NUMA nodes"
            faults.append(Fault(path, what))
        elif name in found:
            faults.append(Fault(path, f"{name} stands twice"))
        else:
            found[name] = _bytes(amount, f"{path}.{name}", faults)
    return found


def _bytes(text: str, path: str, faults: list[Fault]) -> int:
    try:
        amount = Quantity.parse(text)
    except DecodeError as error:
        faults.append(Fault(path, error.faults[0].reason))
        return 0
    if not amount.is_whole or amount.nanos < 0:
        faults.append(Fault(path, f"{text} is not a whole number of bytes, 0 or more"))
    return amount.value


@typed
def check_reserved(
    reserved: Reserved,
    /,
    *,
    kube_reserved: Resources = _NOTHING,
    system_reserved: Resources = _NOTHING,
    eviction_bytes: int = 0,
) -> None:
    """Refuse reserved memory that is not what node allocatable keeps, resource by resource.

    Args:
        reserved: Bytes by node and resource.
        kube_reserved: The kubelet's ``kubeReserved``; other resources are ignored.
        system_reserved: The kubelet's ``systemReserved``, likewise.
        eviction_bytes: Hard eviction threshold of ``memory.available``.

    Raises:
        ReservationMismatchError: The sum over all nodes differs for a resource,
            or no memory at all is reserved.

    Source: kubelet ``cm/memorymanager/memory_manager.go`` and
    ``policy_static.go``, where the static policy does not start otherwise.
    """
    kept: dict[str, int] = {}
    for amounts in reserved.values():
        for name, size in amounts.items():
            kept[name] = kept.get(name, 0) + size
    expected = {MEMORY: eviction_bytes}
    for resources in (kube_reserved, system_reserved):
        for name, amount in resources.items():
            if is_memory(name):
                expected[name] = expected.get(name, 0) + amount.value
    for name in sorted({*kept, *expected}):
        if kept.get(name, 0) != expected.get(name, 0):
            raise ReservationMismatchError(name, kept.get(name, 0), expected.get(name, 0))
    if not kept.get(MEMORY):
        raise ReservationMismatchError(MEMORY, 0, None)
