"""Every recorded node can be seen as a `NodeView`, with what its recorded answers were decided by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest

from nodealloc.errors import DecodeError
from nodealloc.podfacts import HostPort, NodeView, PodOnNode, PodsOnNode, Taint, TaintEffect, Transport
from nodealloc.podspec import Json, Pod, Quantity
from nodealloc.testing.conformance import Row, read_rows

EVERYWHERE = {None, "0.0.0.0", "::"}  # noqa: S104 - what rows say, nothing is bound


def rows(at: Row, name: str) -> Sequence[Row]:
    """A list of documents below a key, or none."""
    return cast("Sequence[Row]", at.get(name) or ())


def part(at: Row, name: str) -> Row:
    """The document below a key, or an empty one."""
    return cast("Row", at.get(name) or {})


def host_ports(pod: Row) -> Iterator[HostPort]:
    """Ports of the node that a manifest's main containers take."""
    for container in rows(part(pod, "spec"), "containers"):
        for port in rows(container, "ports"):
            if port.get("hostPort"):
                yield HostPort(
                    port=cast("int", port["hostPort"]),
                    transport=Transport(port.get("protocol") or "TCP"),
                    address=cast("str | None", port.get("hostIP")),
                )


def seen(pod: Row) -> PodOnNode:
    """A manifest as a pod that is there."""
    return PodOnNode.of(Pod.from_manifest(pod), host_ports=host_ports(pod))


def view_of(row: Row) -> NodeView:
    """The node of a row, with the pods on it."""
    node = part(row, "node")
    metadata, status = part(node, "metadata"), part(node, "status")
    return NodeView(
        name=str(metadata["name"]),
        labels=cast("Mapping[str, str]", metadata.get("labels") or {}),
        taints=tuple(
            Taint(key=str(one["key"]), value=str(one.get("value") or ""), effect=TaintEffect(one["effect"]))
            for one in rows(part(node, "spec"), "taints")
        ),
        allocatable={
            name: Quantity.parse(str(amount)) for name, amount in part(status, "allocatable").items()
        },
        pods=PodsOnNode(map(seen, rows(row, "existing_pods"))),
    )


def in_the_way(one: HostPort, other: HostPort) -> bool:
    """Whether two pods cannot both have these ports, however addresses are compared."""
    if (one.port, one.transport) != (other.port, other.transport):
        return False
    return one.address == other.address or bool({one.address, other.address} & EVERYWHERE)


def why_refused(row: Row) -> set[Json]:
    """Every reason that the kubelet gave for this row."""
    return {one["reason"] for one in rows(row, "any_of")}


@pytest.mark.parametrize(("kind", "least"), [("admit_predicates", 780), ("critical_preemption", 240)])
def test_a_view_holds_what_the_kubelet_decided_by(kind: str, least: int, vectors: Path) -> None:
    """Refused for its number of pods: the view is full. Refused for a port: a pod in the view has it."""
    made = full = taken = 0
    for row in read_rows(vectors / f"{kind}.jsonl.gz"):
        if row.get("node_unknown"):
            continue
        try:
            view = view_of(row)
        except DecodeError:  # huge pages without cpu or memory, which no API server lets through
            continue
        made += 1
        assert len(view.pods) == len(rows(row, "existing_pods"))
        if why_refused(row) == {"OutOfpods"}:
            full += 1
            assert len(view.pods) + 1 > view.allocatable["pods"].value, row["id"]
        if why_refused(row) == {"NodePorts"}:
            taken += 1
            wanted = list(host_ports(part(row, "pod")))
            held = [port for one in view.pods.values() for port in one.host_ports]
            assert any(in_the_way(one, other) for one in wanted for other in held), row["id"]
    assert made >= least
    assert full
    assert taken
