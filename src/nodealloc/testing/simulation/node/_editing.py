"""Checkers of edits: what a pod asks for in another form is judged first, given then, and ends nothing."""

from __future__ import annotations

from nodealloc.podspec import Container, Pod
from nodealloc.testing.simulation.node._events import Event, What
from nodealloc.testing.simulation.node._forms import is_told
from nodealloc.testing.simulation.node._guarantee import Guarantee, RoomHeard

__all__ = ["AmountsArrive", "EditsTakeNothing"]


class AmountsArrive(Guarantee):
    """Ours: what an edit of amounts is for."""

    words = (
        "a container is given amounts that are asked for it, and when all is quiet those that are asked now"
    )

    def heard(self, event: Event, /) -> None:
        """There is a form of its pod in which it is to have what it is given."""
        # What somebody else made by hand was asked for at no time.
        is_made = event.what is What.MADE and event.asked_s is not None
        if not is_made and event.what is not What.RESIZED:
            return
        limits = self.environment.containers.limits(event.id)
        wanted = [
            one
            for form in self.environment.forms.of(event.uid)
            for one in form.all_containers
            if one.name == event.name and "cpu" in one.requests
        ]
        assert not wanted or any(is_told(one, limits) for one in wanted), (
            f"{event.uid}/{event.name} is given {limits.cpu_shares} shares of CPUs and {limits.memory_bytes} "
            "bytes, which it never asked for"
        )

    def settled(self) -> None:
        """By now each has what its pod asks for."""
        forms = self.environment.forms
        for uid in [uid for pods in self.environment.pods.values() for uid in pods if forms.is_resized(uid)]:
            short = self._short(uid)
            assert not short, f"{uid}: {', '.join(short)} runs with other amounts than are asked for"

    def _short(self, uid: str) -> list[str]:
        """Ids of its containers that run with other amounts than are asked for now."""
        containers, pod = self.environment.containers, self.environment.known[uid]
        named = {one.name: one for one in pod.all_containers}
        return [
            one.record.id
            for one in containers.running
            if one.record.pod.uid == uid
            and one.record.id not in containers.late
            and (container := named.get(one.record.name)) is not None
            and not is_told(container, containers.limits(one.record.id))
        ]


class EditsTakeNothing(RoomHeard):
    """Ours: an edit that may not come in changes nothing."""

    words = "while an edit may not come in, what runs of its pod runs on"

    def heard(self, event: Event, /) -> None:
        """Nobody is asked to end for a form that cannot be had."""
        self.hear_probe(event)
        self.hear_critical(event)
        if event.what is not What.SIGNALLED or event.uid in self.environment.deletions:
            return
        if not self.environment.is_aligned or not self.is_outdated(event) or self.ends_by_itself(event):
            return
        image = self.environment.containers.image_of(event.id)
        forms = self.environment.forms.of(event.uid)
        its = [at for at, form in enumerate(forms) if _image(form, event.name) == image]
        newer = forms[its[-1] + 1 :] if its else forms
        assert any(_fits(form, forms[0]) for form in newer), (
            f"{event.uid}/{event.name} is asked to end for an edit that may not come in"
        )

    def ends_by_itself(self, event: Event) -> bool:
        """Whether it may have to end for another reason than an edit."""
        return bool(
            self.failed_probes(event)
            or self.environment.outages.is_excused(event.id)
            or self.hook_failed(event)
            or self.environment.overdue_s(event.uid) > 0
            or self.makes_room(event)
        )


def _image(pod: Pod, name: str) -> str:
    return next((one.image for one in pod.all_containers if one.name == name), "")


def _fits(pod: Pod, first: Pod) -> bool:
    """Whether nobody asks for other CPUs of its own than at first: those cannot be had in place."""
    return _own(pod.containers) == _own(first.containers)


def _own(containers: tuple[Container, ...]) -> list[int]:
    return [one.requests["cpu"].value for one in containers if one.limits]
