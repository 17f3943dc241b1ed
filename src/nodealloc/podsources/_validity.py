"""Why a pod cannot be static: what an API server would not take, and what only it can give."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodealloc.errors import Fault
from nodealloc.podspec import api_faults

if TYPE_CHECKING:
    from nodealloc.podspec import Pod

__all__ = ["faults_of"]


def faults_of(pod: Pod, /) -> tuple[Fault, ...]:
    """Why a pod cannot be static, each with its path; none where it can.

    Source: Kubernetes ``pkg/apis/core/validation``; a kubelet asks the same of its manifests.
    """
    found: list[Fault] = []
    if pod.resource_claims:
        found.append(Fault("$.spec.resourceClaims", "claims are an API server's; a static pod has none"))
    if pod.ephemeral_containers:
        what = "they are added to a pod that runs, by an API server; leave them out"
        found.append(Fault("$.spec.ephemeralContainers", what))
    return (*found, *api_faults(pod))
