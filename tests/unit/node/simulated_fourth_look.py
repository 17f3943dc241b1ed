"""Bugs that were planted when the simulation was looked through a fourth time: each is found."""

from __future__ import annotations

from tests.unit.node.simulated_changes import Change

__all__ = ["FOURTH_LOOK"]

FOURTH_LOOK = {
    "put-back-is-over": Change(
        "a manifest that was taken away and is put back is the pod that has ended",
        "podsources/_editions.py",
        "(not self.is_there or (self.has_ended and is_edited))",
        "(self.has_ended and is_edited)",
        "calm",
    ),
    "editions-not-kept": Change(
        "which of the pods of its name a static pod is, is forgotten with the agent",
        "podsources/_sources.py",
        "            if self._remember is not None:\n",
        "            if False:\n",
        "kills",
    ),
    "names-gone-forgotten": Change(
        "names of static pods are forgotten as soon as their manifests are gone",
        "podsources/_editions.py",
        "        return Editions(by_name={**gone, **names}, least=self.least), tuple(told)\n",
        "        return Editions(by_name=names, least=self.least), tuple(told)\n",
        "calm",
    ),
}
