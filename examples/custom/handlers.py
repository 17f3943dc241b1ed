"""Two admission handlers of your own: a count of licences, and a maintenance window."""

from __future__ import annotations

import attrs

from nodealloc.podfacts import NodeView
from nodealloc.podspec import Pod
from nodealloc.verdicts import Admitted, NotYet, Refused

__all__ = ["Licences", "maintenance_window"]


@attrs.frozen
class Licences:
    """So many pods with the annotation `example.com/licence` may be on the node at once."""

    seats: int

    def __call__(self, pod: Pod, view: NodeView, /) -> Admitted | Refused | NotYet:
        """Counts who holds one; whoever is ending makes the next one wait."""
        if "example.com/licence" not in pod.annotations:
            return Admitted()
        holders = [one for one in view.pods.values() if "example.com/licence" in one.pod.annotations]
        if len(holders) < self.seats:
            return Admitted()
        if ending := [one for one in holders if one.state.is_ending]:
            return NotYet(blocker=ending[0].pod.full_name, message="it still holds a licence, and is ending")
        return Refused(reason="OutOfLicences", message=f"all {self.seats} licences are taken; end a holder")


def maintenance_window(pod: Pod, view: NodeView, /) -> Admitted | NotYet:
    """Nobody new comes to a node labelled `example.com/maintenance`; who runs there stays."""
    del pod
    if "example.com/maintenance" not in view.labels:
        return Admitted()
    return NotYet(blocker=view.name, message=f"{view.name} is being maintained", after_s=60.0)
