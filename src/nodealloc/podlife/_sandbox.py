"""Whether a pod needs a new sandbox."""

from __future__ import annotations

from nodealloc import _attrs as attrs
from nodealloc.podlife._definitions import Definitions
from nodealloc.podlife._rules import RIGHT, Rules
from nodealloc.runtime import PodReport

__all__ = ["SandboxNeed", "sandbox_need"]


@attrs.frozen(kw_only=True, slots=False)
class SandboxNeed:
    """Which sandbox a pod is to use.

    Attributes:
        changed: Whether it needs a new one.
        attempt: Of the one that is used or made.
        sandbox_id: Of the one at hand; "" for none.
        why: Why the one at hand will not do, in words; "" where it does.
    """

    changed: bool
    attempt: int
    sandbox_id: str
    why: str = ""


def sandbox_need(
    report: PodReport,
    /,
    *,
    host_network: bool,
    definitions: Definitions | None = None,
    rules: Rules = RIGHT,
) -> SandboxNeed:
    """Whether the newest sandbox of a pod will do, and the attempt of the one that is needed.

    Args:
        report: What the runtime says of the pod, the newest sandbox first.
        host_network: Whether the pod is to have the node's network.
        definitions: What it is to be made from; None where that does not matter.
        rules: `keeps_sandbox_id`.

    Source: kubelet ``kuberuntime/util/util.go``.
    """
    newest = report.sandbox
    why = report.why_no_sandbox(host_network=host_network)
    if newest is None:
        return SandboxNeed(changed=True, attempt=0, sandbox_id="", why=why)
    record = newest.record
    if not why and definitions is not None and definitions.differs_in_sandbox(record):
        why = f"sandbox {record.id} was made for the pod as it was before an edit"
    if not why:
        return SandboxNeed(changed=False, attempt=record.attempt, sandbox_id=record.id)
    is_the_one = [one.record.id for one in report.sandboxes if one.record.is_ready] == [record.id]
    has_wrong_network = is_the_one and newest.uses_host_network is not host_network
    named = "" if has_wrong_network and not rules.keeps_sandbox_id else record.id
    return SandboxNeed(changed=True, attempt=record.attempt + 1, sandbox_id=named, why=why)
