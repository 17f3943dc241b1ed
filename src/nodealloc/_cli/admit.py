"""`python -m nodealloc admit`: what a node would say to pods, one after the other."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, cast

from nodealloc import _attrs as attrs
from nodealloc._arguments import named
from nodealloc._cli._devices import counts_of, with_devices
from nodealloc._cli._machines import HELP, held_by, pairs, restored
from nodealloc._texts import documents_of
from nodealloc.admission import chain_of
from nodealloc.cpuset import CpuAllocator, CPUSet, StaticOptions, StaticPolicy
from nodealloc.devices import DeviceAllocator, Phase
from nodealloc.errors import ConfigurationError, DecodeError, Fault
from nodealloc.idset import NodeSet
from nodealloc.machine import Machine, draw_text, named_machine
from nodealloc.memblocks import MemoryAllocator
from nodealloc.podfacts import NodeView, PodOnNode
from nodealloc.podspec import Container, Json, Pod, Quantity, Resources, page_bytes, resources
from nodealloc.topology import (
    Holding,
    NumaMask,
    Placed,
    Policy,
    PolicyName,
    Refusal,
    Scope,
    Snapshot,
    explain,
)
from nodealloc.verdicts import Admitted, Refused, Verdict

__all__ = ["add_arguments", "run"]

_MOST_BYTES: Final = 256 << 20
"""Manifests of a file; a device may have no end."""
_LISTS = ("List", "PodList")
_COUNTED = ("cpu", "memory", "ephemeral-storage", "pods")
_PODS = "110"
"""As a kubelet takes unless it is told otherwise."""


@attrs.frozen
class _Answer:
    pod: Pod
    verdict: Verdict
    holdings: tuple[Holding, ...] = ()


def add_arguments(parser: argparse.ArgumentParser, /) -> None:
    """Declare the node and the pods."""
    parser.add_argument("--machine", required=True, metavar="TEXT|FILE|DIR", help=HELP)
    policies = ", ".join(one.value for one in PolicyName)
    parser.add_argument("--policy", default="none", metavar="NAME", help=f"{policies} (default: none)")
    parser.add_argument("--policy-options", default="", metavar="K=V,…", help="of the topology manager")
    parser.add_argument("--scope", default="container", metavar="S", help="container or pod")
    parser.add_argument("--cpu-options", default="", metavar="K=V,…", help="of the static CPU policy")
    parser.add_argument("--reserved-cpus", default="", metavar="LIST", help="for the system, such as 0-1")
    parser.add_argument(
        "--devices",
        action="append",
        default=[],
        metavar="RESOURCE=COUNT",
        help="so many devices on each NUMA node",
    )
    parser.add_argument(
        "--allocatable",
        action="append",
        default=[],
        metavar="RESOURCE=AMOUNT",
        help=f"what the machine does not say (pods: {_PODS}; no ephemeral storage)",
    )
    parser.add_argument("--kubelet", metavar="DIR", help="start from the state files of a kubelet")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    parser.add_argument(
        "manifests", nargs="+", metavar="MANIFEST", help="YAML or JSON; several documents a file"
    )


def run(arguments: argparse.Namespace, /) -> int:
    """Ask the node about each pod; 0 when all came in, 1 when one did not."""
    named = named_machine(str(arguments.machine))
    machine, notes = named.machine, [str(note) for note in named.notes]
    snapshot = _node(machine, arguments)
    if arguments.kubelet is not None:
        snapshot, found = restored(snapshot, str(arguments.kubelet), whole=True)
        notes += found
    snapshot = _with_devices(snapshot, [str(one) for one in arguments.devices])
    view = NodeView(
        name=machine.name or "node", allocatable=_allocatable(machine, snapshot, list(arguments.allocatable))
    )
    # What was said to be there is counted by node fit; who of it gets which, nobody here knows.
    snapshot = attrs.evolve(snapshot, elsewhere=snapshot.elsewhere | view.allocatable.keys())
    for one in _recalled(snapshot):
        view = view.with_pod(one)
    answers, snapshot = _answers(_pods([str(one) for one in arguments.manifests]), view, snapshot)
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    if arguments.format == "json":
        print(json.dumps([_json(one) for one in answers], indent=1))
    else:
        print("\n".join(line for one in answers for line in _lines(one)))
        print(f"\n{_picture(machine, snapshot, answers)}")
    return 0 if all(isinstance(one.verdict, Admitted) for one in answers) else 1


def _answers(pods: Iterator[Pod], view: NodeView, snapshot: Snapshot) -> tuple[list[_Answer], Snapshot]:
    answers: list[_Answer] = []
    for pod in pods:
        if pod.uid in view.pods:
            raise ConfigurationError(f"pod {pod.full_name}: its uid {pod.uid} is another pod's as well")
        verdict = chain_of(snapshot=snapshot)(pod, view)
        if isinstance(verdict, Placed):
            snapshot = verdict.snapshot
        holdings = tuple(one for one in held_by(snapshot) if one.owner.workload == pod.uid)
        answers.append(_Answer(pod, verdict, holdings))
        if isinstance(verdict, Admitted):
            view = view.with_pod(PodOnNode.of(pod))
    return answers, snapshot


def _node(machine: Machine, arguments: argparse.Namespace) -> Snapshot:
    with named("--policy"):
        name = Policy.parse(str(arguments.policy)).name.value
    options = pairs(str(arguments.policy_options), "--policy-options")
    with named("--policy-options"):
        policy = Policy.parse(name, options)
    with named("--scope"):
        scope = Scope.parse(str(arguments.scope))
    options = pairs(str(arguments.cpu_options), "--cpu-options")
    with named("--cpu-options"):
        cpu_options = StaticOptions.from_kubelet(options)
    reserved = _cpus(str(arguments.reserved_cpus), machine)
    cpus = StaticPolicy.of(machine, reserved=reserved, options=cpu_options, topology_policy=name)
    devices = DeviceAllocator(nodes=tuple(machine.nodes) or (0,), awaited=frozenset())
    return Snapshot.of(
        machine,
        policy=policy,
        scope=scope,
        allocators=(CpuAllocator(policy=cpus), MemoryAllocator.of(machine), devices),
    )


def _cpus(text: str, machine: Machine) -> CPUSet:
    try:
        found = CPUSet.parse(text)
    except DecodeError as error:
        raise DecodeError(f"--reserved-cpus {text}", error.faults) from None
    if strange := found - machine.online:
        known = f"the machine has {machine.online}"
        raise ConfigurationError(f"--reserved-cpus {text}: CPUs {strange} are not online; {known}")
    return found


def _with_devices(snapshot: Snapshot, options: Sequence[str]) -> Snapshot:
    allocator = snapshot[DeviceAllocator]
    devices = with_devices(allocator, counts_of(options, len(allocator.nodes)), allocator.nodes)
    return attrs.evolve(
        snapshot, allocators=tuple([devices if one is allocator else one for one in snapshot.allocators])
    )


def _allocatable(machine: Machine, snapshot: Snapshot, said: Sequence[str]) -> Resources:
    cpus = snapshot[CpuAllocator].policy
    reserved = len(cpus.reserved) if isinstance(cpus, StaticPolicy) else 0
    found: dict[str, Quantity | str | float] = {"cpu": len(machine.online) - reserved, "pods": _PODS}
    memory, pages = 0, dict[int, int]()
    for node in machine.numa_nodes:
        memory += node.memory_bytes - sum(size * count for size, count in node.hugepages.items())
        for size, count in node.hugepages.items():
            pages[size] = pages.get(size, 0) + size * count
    found["memory"] = memory
    found |= {f"hugepages-{_binary(size)}": amount for size, amount in pages.items()}
    found |= {
        resource: len(one.devices.ids)
        for resource, one in snapshot[DeviceAllocator].inventories.items()
        if one.phase is Phase.SERVING
    }
    said_amounts = pairs("", "--allocatable", *said)
    for resource, amount in said_amounts.items():
        with named(f"--allocatable {resource}={amount}"):
            resources({resource: amount})
            if resource not in _COUNTED and page_bytes(resource) is None and "/" not in resource:
                known = f"{', '.join(_COUNTED)}, hugepages-SIZE, or a device's such as example.com/gpu"
                raise ConfigurationError(f"{resource!r} is no resource of a node; name {known}")
    return resources(found | said_amounts)


def _binary(size: int) -> str:
    return str(Quantity.parse(f"{size >> 10}Ki"))


def _recalled(snapshot: Snapshot) -> Iterator[PodOnNode]:
    """Pods of a kubelet's files: of what they ask, only what they hold is known."""
    amounts: dict[str, dict[str, Quantity]] = {workload: {} for workload in snapshot.admitted}
    for one in held_by(snapshot):
        held = amounts.setdefault(one.owner.workload, {})
        held[one.resource] = held.get(one.resource, Quantity()) + Quantity.of(one.amount)
    for uid, requests in amounts.items():
        yield PodOnNode(pod=Pod(uid=uid), requests=requests)


def _pods(paths: Sequence[str]) -> Iterator[Pod]:
    for path in paths:
        found = False
        for number, document in enumerate(_documents(path)):
            source = path if number == 0 else f"{path}, document {number + 1}"
            for manifest, place in _listed(document, source):
                found = True
                yield Pod.from_manifest(manifest, source=place)
        if not found:
            raise DecodeError(path, [Fault("$", "there is no pod in it")])


def _listed(document: object, source: str) -> Iterator[tuple[object, str]]:
    """A document, or the items of a list such as `kubectl get -o yaml` writes; and where each stands."""
    no_fields: Mapping[object, object] = {}
    fields = cast("Mapping[object, object]", document) if isinstance(document, Mapping) else no_fields
    items = fields.get("items")
    if fields.get("kind") in _LISTS:
        if not isinstance(items, list):
            what = "nothing" if items is None else f"{items!r:.40}"
            raise DecodeError(source, [Fault("$.items", f"expected a list of pods, found {what}")])
        for number, one in enumerate(cast("list[object]", items)):
            yield one, f"{source}, item {number + 1}"
    elif document is not None:
        yield document, source


def _documents(path: str) -> list[object]:
    try:
        if path == "-":
            data = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(
            f"{path}: {error.strerror or error}; name a file of manifests, or -"
        ) from error
    if len(data) > _MOST_BYTES:
        raise ConfigurationError(f"{path}: has more than {_MOST_BYTES >> 20} MiB; give it in parts")
    return documents_of(data, path)


def _json(answer: _Answer) -> dict[str, Json]:
    kind, reason, message = _said(answer.verdict)
    containers: dict[str, Json] = {}
    if isinstance(answer.verdict, Admitted):
        containers = {one.name: _container(answer, one) for one in answer.pod.all_containers}
    return {
        "pod": answer.pod.full_name,
        "verdict": kind,
        "reason": reason,
        "message": message,
        "containers": containers,
    }


def _said(verdict: Verdict) -> tuple[str, str, str]:
    """What kind of verdict, its reason or who is waited for, and the message."""
    if isinstance(verdict, Admitted):
        return "admitted", "", ""
    if isinstance(verdict, Refused):
        return "refused", verdict.reason, verdict.message
    return "not yet", verdict.blocker, verdict.message


def _container(answer: _Answer, container: Container) -> dict[str, Json]:
    name, ends = container.name, container in answer.pod.init_containers and not container.restartable
    cpus = CPUSet()
    memory: list[Json] = []
    devices: dict[str, Json] = {}
    for one in answer.holdings:
        if one.owner.member != name:
            continue
        if one.resource == "cpu":
            cpus |= one.cpus
        elif one.ids:
            devices[one.resource] = list(one.ids)
        else:
            # What an init container lends to a later one counts there; while it runs, it has all of it.
            amount = container.requests[one.resource].value if ends else one.amount
            memory.append(f"[{' '.join(map(str, one.nodes))}] {one.resource} {amount}")
    return {
        "affinity": _affinity(answer.verdict, name),
        "cpus": str(cpus),
        "memory": memory,
        "devices": devices,
    }


def _affinity(verdict: Verdict, name: str) -> list[Json] | None:
    hint = verdict.affinity.get(name) if isinstance(verdict, Placed) else None
    mask: NumaMask | None = hint.affinity if hint is not None else None
    return None if mask is None else [*NodeSet.from_mask(mask)]


def _lines(answer: _Answer) -> Iterator[str]:
    verdict = answer.verdict
    if not isinstance(verdict, Admitted):
        kind, reason, message = _said(verdict)
        told = _story(answer.pod, verdict) if isinstance(verdict, Refusal) else f"{reason}: {message}"
        yield f"{answer.pod.full_name}: {kind}, {told}"
        return
    yield f"{answer.pod.full_name}: admitted"
    for container in answer.pod.all_containers:
        fields = _container(answer, container)
        nodes = fields["affinity"]
        parts = [f"NUMA nodes {', '.join(map(str, nodes))}" if isinstance(nodes, list) else "any NUMA node"]
        parts += [f"CPUs {fields['cpus']}" if fields["cpus"] else "shared CPUs"]
        for key in ("memory", "devices"):
            found = fields[key]
            if isinstance(found, list):
                parts += [str(one) for one in found]
            elif isinstance(found, Mapping):
                parts += [f"{resource} {', '.join(map(str, _items(ids)))}" for resource, ids in found.items()]
        yield f"  {container.name}: {'; '.join(parts)}"


def _story(pod: Pod, refusal: Refusal) -> str:
    told = attrs.evolve(explain(refusal), workload=pod.full_name).text
    lack = refusal.shortfall
    if lack is None or refusal.provider:
        return told
    name = lack.resource
    return (
        f"{told}\n  here --devices {name}=COUNT puts some on each NUMA node, and --allocatable {name}=AMOUNT "
        "says what another check counts"
    )


def _items(value: Json) -> Sequence[Json]:
    return value if isinstance(value, list) else ()


def _picture(machine: Machine, snapshot: Snapshot, answers: Sequence[_Answer]) -> str:
    names = {one.pod.uid: one.pod.full_name for one in answers}
    holders: dict[str, CPUSet | str] = {}
    for one in held_by(snapshot):
        if one.cpus:
            name = names.get(one.owner.workload, one.owner.workload)
            holders[f"{name}/{one.owner.member}"] = one.cpus
    policy = snapshot[CpuAllocator].policy
    reserved = policy.reserved if isinstance(policy, StaticPolicy) else CPUSet()
    width = max(80, shutil.get_terminal_size((100, 24)).columns)
    return draw_text(machine, holders or None, reserved=reserved, width=width)
