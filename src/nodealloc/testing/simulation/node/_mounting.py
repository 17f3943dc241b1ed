"""Checkers of mounts: each hears every event of the node, and looks at what is mounted."""

from __future__ import annotations

from nodealloc.runtime import ContainerRecord
from nodealloc.testing.simulation.node._events import Event, What
from nodealloc.testing.simulation.node._guarantee import Guarantee

__all__ = ["MountsAccounted"]


class MountsAccounted(Guarantee):
    """Guarantees 3 and 11: every mount is accounted for."""

    words = "what runs has its volumes, and nothing is mounted for a pod that is gone"

    def heard(self, event: Event, /) -> None:
        """A start finds its volumes; they stay while it runs, and are gone when its pod is told gone."""
        violations = self.environment.volumes.violations
        assert not violations, violations[0]
        # Nobody waited any more for one that begins so late: its pod may have ended meanwhile.
        if event.what is What.STARTED and event.id not in self.environment.containers.late:
            missing = self._missing(event.uid, event.name, event.id)
            assert not missing, f"{event.uid}/{event.name} starts, and {', '.join(missing)} is not mounted"
            self._are_for_reading(event)
        if event.what is What.UNMOUNTED:
            uses = [
                one.record.name
                for one in self.environment.containers.running
                if one.record.pod.uid == event.uid
                and one.record.id not in self.environment.containers.late
                and self._uses(event, one.record)
            ]
            assert not uses, f"{event.id} is taken from {event.uid}, and {', '.join(uses)} runs on it"
            stands = [
                box.record.id
                for box in self.environment.containers.sandboxes
                if box.record.pod.uid == event.uid
                and box.record.is_ready
                and self._was_always_used(event)
                # Nobody waited for it any more when it was made, or asked for it; it goes once it is listed.
                and box.record.id not in self.environment.containers.late
                and box.record.id not in self.environment.containers.strange
                # One that came beside the pod's own may not have been seen yet.
                and box.record.id not in self.environment.outages.excused
            ]
            assert not stands, f"{event.id} is taken from {event.uid}, whose sandbox {stands[0]} still stands"
        if event.what is What.MOUNTED:
            assert event.uid in self.environment.known, (
                f"{event.id} is mounted for {event.uid}, which nobody wanted"
            )
            assert event.uid not in self.environment.gone, (
                f"{event.id} is mounted for {event.uid}, which is gone"
            )
        if event.what is What.GONE:
            left = [key for key, uid in self.environment.volumes.mounts if uid == event.uid]
            assert not left, f"{event.uid} is told gone, and {', '.join(left)} is mounted for it"

    def settled(self) -> None:
        """Only wanted pods have mounts, and only what they have is staged, or attached."""
        host = self.environment.volumes
        wanted = {uid for pods in self.environment.pods.values() for uid in pods}
        for key, uid in host.mounts:
            assert uid in wanted, f"{key} is mounted for {uid}, and nobody wants it"
        used = {key for key, _ in host.mounts}
        for done, volumes in (("staged", host.staged), ("attached", host.attached)):
            left = sorted(volumes - used)
            assert not left, f"{', '.join(left)} is {done} for nobody"
        for one in self.environment.containers.running:
            missing = self._missing(one.record.pod.uid, one.record.name, one.record.id)
            assert not missing, f"{one.record.pod.uid} runs, and {', '.join(missing)} is not mounted"

    def emptied(self) -> None:
        """And nothing once nobody is wanted any more."""
        self.settled()

    def _are_for_reading(self, event: Event) -> None:
        """Volumes that their pod says may only be read are mounted so, and no others."""
        pod = self.pod(event.uid)
        said = {one.name: one.spec.get("readOnly") is True for one in pod.volumes} if pod is not None else {}
        for (key, owner), use in self.environment.volumes.mounts.items():
            reads = said.get(key.rpartition("/")[2]) if owner == event.uid else None
            assert reads in {None, use.read_only}, (
                f"{event.uid}/{event.name} starts, and {key} is mounted for "
                f"{'reading' if use.read_only else 'writing'}"
            )

    def _missing(self, uid: str, name: str, container_id: str) -> list[str]:
        mounted = {key.rpartition("/")[2] for key, owner in self.environment.volumes.mounts if owner == uid}
        return [one for one in self._volumes(uid, name, container_id) if one not in mounted]

    def _was_always_used(self, unmounted: Event) -> bool:
        """Whether no edit of its pod has ever taken it out."""
        name = unmounted.id.rpartition("/")[2]
        forms = self.environment.forms.of(unmounted.uid)
        return all(
            any(use.name == name for one in pod.all_containers for use in one.volumes) for pod in forms
        )

    def _uses(self, unmounted: Event, record: ContainerRecord) -> bool:
        return unmounted.id.rpartition("/")[2] in self._volumes(unmounted.uid, record.name, record.id)

    def _volumes(self, uid: str, name: str, container_id: str) -> list[str]:
        """What a container has, in the form of its pod that it was made from."""
        image = self.environment.containers.image_of(container_id)
        pod = self.environment.forms.made_from(uid, name, image) or self.pod(uid)
        containers = pod.all_containers if pod is not None else ()
        return [use.name for one in containers if one.name == name for use in one.volumes]
