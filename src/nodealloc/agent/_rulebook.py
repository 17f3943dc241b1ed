"""Whose rules hold, of all packages of a pod's life at once."""

from __future__ import annotations

from typing import Final

from nodealloc import _attrs as attrs
from nodealloc._typed import typed_fields
from nodealloc.admission import KUBELET as KUBELET_ADMISSION
from nodealloc.admission import Rules as AdmissionRules
from nodealloc.podlife import KUBELET as KUBELET_LIFE
from nodealloc.podlife import Rules as LifeRules
from nodealloc.podsources import KUBELET as KUBELET_SOURCES
from nodealloc.podsources import Rules as SourceRules
from nodealloc.podstatus import KUBELET as KUBELET_STATUS
from nodealloc.podstatus import Rules as StatusRules
from nodealloc.probes import KUBELET as KUBELET_PROBES
from nodealloc.probes import Rules as ProbeRules

__all__ = ["KUBELET", "Rulebook"]


@typed_fields
@attrs.frozen(kw_only=True)
class Rulebook:
    """Whose rules hold, package by package; by default the right ones.

    Attributes:
        admission: Of who may come in.
        life: Of how pods run and end.
        sources: Of what files and addresses say.
        status: Of what is told.
        probes: Of what is asked of containers.
        waits_for_deleted: As of `Agent`.
        admits_anew: Whether pods that ran before an agent was started are admitted again as their sources
            tell of them, against what is there then; one that does not come in any more ends.
        starts_otherwise: Whether an agent starts though its CPU or memory policy is another one, or other
            CPUs or memory are reserved, than before; a kubelet does once somebody has taken its state file
            away.
        standalone: Whether pods are told of, and what is left of them is kept, as by a kubelet
            without an API server.
    """

    admission: AdmissionRules = AdmissionRules()
    life: LifeRules = LifeRules()
    sources: SourceRules = SourceRules()
    status: StatusRules = StatusRules()
    probes: ProbeRules = ProbeRules()
    waits_for_deleted: bool = True
    admits_anew: bool = False
    starts_otherwise: bool = True
    standalone: bool = False


KUBELET: Final = Rulebook(
    admission=attrs.evolve(KUBELET_ADMISSION, waits_for_victims=True),
    life=KUBELET_LIFE,
    sources=KUBELET_SOURCES,
    status=KUBELET_STATUS,
    probes=KUBELET_PROBES,
    waits_for_deleted=False,
    admits_anew=True,
    starts_otherwise=False,
    standalone=True,
)
"""Those of a kubelet without an API server. A critical pod waits until its victims have ended: what is
judged there with one view is asked here again until there is room."""
