"""Checkers of edits: what a pod asks for in another form is judged first, given then, and ends nothing."""

from __future__ import annotations

from nodealloc.podspec import Container, Pod
from nodealloc.testing.simulation.node._deeds import Deed, What
from nodealloc.testing.simulation.node._forms import is_told
from nodealloc.testing.simulation.node._guarantee import Guarantee, ProbesHeard

__all__ = ["AmountsArrive", "EditsTakeNothing"]


class AmountsArrive(Guarantee):
    """Ours: what an edit of amounts is for."""

    words = "when all is quiet, a container that runs was given the amounts that are asked for it now"

    def settled(self) -> None:
        """By now each has what its pod asks for."""
        forms = self.outside.forms
        for uid in [uid for pods in self.outside.pods.values() for uid in pods if forms.is_resized(uid)]:
            short = self._short(uid)
            assert not short, f"{uid}: {', '.join(short)} runs with other amounts than are asked for"

    def _short(self, uid: str) -> list[str]:
        """Ids of its containers that run with other amounts than are asked for now."""
        containers, pod = self.outside.containers, self.outside.known[uid]
        named = {one.name: one for one in pod.all_containers}
        return [
            one.record.id
            for one in containers.running
            if one.record.pod.uid == uid
            and one.record.id not in containers.late
            and (container := named.get(one.record.name)) is not None
            and not is_told(container, containers.limits(one.record.id))
        ]


class EditsTakeNothing(ProbesHeard):
    """Ours: an edit that may not come in changes nothing."""

    words = "while an edit may not come in, what runs of its pod runs on"

    def heard(self, deed: Deed, /) -> None:
        """Nobody is asked to end for a form that cannot be had."""
        self.hear_probe(deed)
        if deed.what is not What.SIGNALLED or deed.uid in self.outside.deletions:
            return
        if not self.outside.is_aligned or not self.is_outdated(deed) or self.ends_by_itself(deed):
            return
        image = self.outside.containers.image_of(deed.id)
        forms = self.outside.forms.of(deed.uid)
        its = [at for at, form in enumerate(forms) if _image(form, deed.name) == image]
        newer = forms[its[-1] + 1 :] if its else forms
        assert any(_fits(form, forms[0]) for form in newer), (
            f"{deed.uid}/{deed.name} is asked to end for an edit that may not come in"
        )

    def ends_by_itself(self, deed: Deed) -> bool:
        """Whether it may have to end for another reason than an edit."""
        return bool(
            self.failed_probes(deed)
            or self.outside.outages.is_excused(deed.id)
            or self.hook_failed(deed)
            or self.outside.overdue_s(deed.uid) > 0
        )


def _image(pod: Pod, name: str) -> str:
    return next((one.image for one in pod.all_containers if one.name == name), "")


def _fits(pod: Pod, first: Pod) -> bool:
    """Whether nobody asks for other CPUs of its own than at first: those cannot be had in place."""
    return _own(pod.containers) == _own(first.containers)


def _own(containers: tuple[Container, ...]) -> list[int]:
    return [one.requests["cpu"].value for one in containers if one.limits]
