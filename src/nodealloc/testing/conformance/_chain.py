"""Kinds `admit_predicates`, `critical_preemption`, `sysctl_allowlist`, `apparmor_admit`: may a pod come in.

Some recorded pods would have been refused by an API server (huge pages without
CPU or memory, a profile without a name), and were judged all the same. They are
taken as they stand, faults and all; everything else is read as ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from nodealloc.admission import KUBELET, AppArmor, Chain, SysctlAllowList, chain_of, safe_sysctls
from nodealloc.admission._verdicts import RoomMade
from nodealloc.errors import ConfigurationError, PermanentError
from nodealloc.podfacts import NodeView, PodOnNode, PodsOnNode, Taint, TaintEffect
from nodealloc.podspec import Pod, PodSecurityContext, Quantity, Sysctl
from nodealloc.podspec._pod import pod_as_it_stands
from nodealloc.verdicts import Refused, Verdict

if TYPE_CHECKING:
    from nodealloc.podspec import Json
    from nodealloc.testing.conformance._kinds import Row

__all__ = [
    "admit_predicates",
    "apparmor_admit",
    "critical_preemption",
    "recorded_chain",
    "recorded_view",
    "sysctl_allowlist",
]

_NODE = NodeView(name="any")


class _DevicesError(PermanentError):
    """What a device plugin was recorded to say."""


def admit_predicates(row: Row, _: Mapping[str, Row], /) -> tuple[Json, Json]:
    """A pod against its node: one of the recorded verdicts, with reason, message and who is preempted."""
    view = None if row.get("node_unknown") else recorded_view(row)
    verdict = recorded_chain(row)(pod_as_it_stands(row["pod"]), view)
    victims = verdict.victims if isinstance(verdict, RoomMade) else ()
    names = {} if view is None else {uid: one.pod.name for uid, one in view.pods.items()}
    return _one_of(row, {**_told(verdict), "preempted": [names[uid] for uid in victims]})


critical_preemption = admit_predicates


def apparmor_admit(row: Row, _: Mapping[str, Row], /) -> tuple[Json, Json]:
    """Whether the profiles of a pod can be enforced."""
    handler = AppArmor(enabled=bool(row["enabled_on_host"]), rules=KUBELET)
    return _one_of(row, _told(handler(pod_as_it_stands(row["pod"]), _NODE)))


def sysctl_allowlist(row: Row, _: Mapping[str, Row], /) -> tuple[Json, Json]:
    """What is safe on a kernel, which patterns are taken, and which pods may have what they ask for."""
    safe = safe_sysctls(str(row["kernel_version"]))
    expected: dict[str, Json] = {"safe": row["safe"], "error": bool(row.get("error"))}
    try:
        allowed = SysctlAllowList.of((*safe, *cast("Sequence[str]", row["allowed_unsafe"])))
    except ConfigurationError:
        return expected, {"safe": list(safe), "error": True}
    pods = cast("Sequence[Row]", row.get("pods") or ())
    keys = ("admit", "reason", "message")
    expected["pods"] = [{key: one[key] for key in keys} for one in pods]
    got: list[Json] = [_told(allowed(_with_sysctls(one), _NODE)) for one in pods]
    return expected, {"safe": list(safe), "error": False, "pods": got}


def recorded_chain(row: Row, /) -> Chain:
    """The chain of a recorded node; allocating devices may have failed before it was asked."""
    chain = chain_of(rules=KUBELET)
    failure = row.get("device_allocation_error")
    if not failure:
        return chain

    def allocated(pod: Pod, view: NodeView, /) -> Verdict:
        del pod, view
        raise _DevicesError(str(failure))

    return Chain((*chain.before, allocated), chain.fit, chain.after_fit, chain.after, chain.rules)


def recorded_view(row: Row, /) -> NodeView:
    """The node of a row, with the pods that are on it."""
    node = cast("Row", row["node"])
    metadata, spec = cast("Row", node["metadata"]), cast("Row", node.get("spec") or {})
    status = cast("Row", node["status"])
    allocatable = cast("Mapping[str, str]", status["allocatable"])
    return NodeView(
        name=str(metadata["name"]),
        labels=cast("Mapping[str, str]", metadata.get("labels") or {}),
        taints=tuple(
            Taint(key=str(one["key"]), value=str(one.get("value") or ""), effect=TaintEffect(one["effect"]))
            for one in cast("Sequence[Row]", spec.get("taints") or ())
        ),
        allocatable={name: Quantity.of(amount) for name, amount in allocatable.items()},
        pods=PodsOnNode(
            PodOnNode.of(pod_as_it_stands(one)) for one in cast("Sequence[Row]", row["existing_pods"])
        ),
    )


def _with_sysctls(row: Row) -> Pod:
    names = cast("Sequence[str]", row["sysctls"])
    return Pod(
        uid="pod",
        host_network=bool(row["host_network"]),
        host_ipc=bool(row["host_ipc"]),
        security_context=PodSecurityContext(sysctls=tuple(Sysctl(name=one) for one in names)),
    )


def _told(verdict: Verdict) -> dict[str, Json]:
    if isinstance(verdict, Refused):
        return {"admit": False, "reason": verdict.reason, "message": verdict.message}
    return {"admit": True, "reason": "", "message": ""}


def _one_of(row: Row, got: dict[str, Json]) -> tuple[Json, Json]:
    """Where the kubelet draws lots, the verdict that was recorded and is ours; else all, to be shown."""
    recorded = cast("Sequence[Json]", row["any_of"])
    return (got if got in recorded else recorded[0]), got
