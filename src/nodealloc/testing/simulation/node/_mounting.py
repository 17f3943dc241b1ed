"""Checkers of mounts: each hears every deed of the node, and looks at what is mounted."""

from __future__ import annotations

from nodealloc.runtime import ContainerRecord
from nodealloc.testing.simulation.node._deeds import Deed, What
from nodealloc.testing.simulation.node._guarantee import Guarantee

__all__ = ["MountsAccounted"]


class MountsAccounted(Guarantee):
    """Guarantees 3 and 11: every mount is accounted for."""

    words = "what runs has its volumes, and nothing is mounted for a pod that is gone"

    def heard(self, deed: Deed, /) -> None:
        """A start finds its volumes; they stay while it runs, and are gone when its pod is told gone."""
        violations = self.outside.volumes.violations
        assert not violations, violations[0]
        # Nobody waited any more for one that begins so late: its pod may have ended meanwhile.
        if deed.what is What.STARTED and deed.id not in self.outside.containers.late:
            missing = self._missing(deed.uid, deed.name, deed.id)
            assert not missing, f"{deed.uid}/{deed.name} starts, and {', '.join(missing)} is not mounted"
        if deed.what is What.UNMOUNTED:
            uses = [
                one.record.name
                for one in self.outside.containers.running
                if one.record.pod.uid == deed.uid
                and one.record.id not in self.outside.containers.late
                and self._uses(deed, one.record)
            ]
            assert not uses, f"{deed.id} is taken from {deed.uid}, and {', '.join(uses)} runs on it"
            stands = [
                box.record.id
                for box in self.outside.containers.sandboxes
                if box.record.pod.uid == deed.uid
                and box.record.is_ready
                and self._was_always_used(deed)
                # Nobody waited for it any more when it was made; it goes once it is listed.
                and box.record.id not in self.outside.containers.late
            ]
            assert not stands, f"{deed.id} is taken from {deed.uid}, whose sandbox {stands[0]} still stands"
        if deed.what is What.MOUNTED:
            assert deed.uid in self.outside.known, f"{deed.id} is mounted for {deed.uid}, which nobody wanted"
            assert deed.uid not in self.outside.gone, f"{deed.id} is mounted for {deed.uid}, which is gone"
        if deed.what is What.GONE:
            left = [key for key, uid in self.outside.volumes.mounts if uid == deed.uid]
            assert not left, f"{deed.uid} is told gone, and {', '.join(left)} is mounted for it"

    def settled(self) -> None:
        """Only wanted pods have mounts, and only what they have is staged."""
        host = self.outside.volumes
        wanted = {uid for pods in self.outside.pods.values() for uid in pods}
        for key, uid in host.mounts:
            assert uid in wanted, f"{key} is mounted for {uid}, and nobody wants it"
        left = host.staged - {key for key, _ in host.mounts}
        assert not left, f"{', '.join(sorted(left))} is staged for nobody"
        for one in self.outside.containers.running:
            missing = self._missing(one.record.pod.uid, one.record.name, one.record.id)
            assert not missing, f"{one.record.pod.uid} runs, and {', '.join(missing)} is not mounted"

    def _missing(self, uid: str, name: str, container_id: str) -> list[str]:
        mounted = {key.rpartition("/")[2] for key, owner in self.outside.volumes.mounts if owner == uid}
        return [one for one in self._volumes(uid, name, container_id) if one not in mounted]

    def _was_always_used(self, unmounted: Deed) -> bool:
        """Whether no edit of its pod has ever taken it out."""
        name = unmounted.id.rpartition("/")[2]
        forms = self.outside.forms.of(unmounted.uid)
        return all(
            any(use.name == name for one in pod.all_containers for use in one.volumes) for pod in forms
        )

    def _uses(self, unmounted: Deed, record: ContainerRecord) -> bool:
        return unmounted.id.rpartition("/")[2] in self._volumes(unmounted.uid, record.name, record.id)

    def _volumes(self, uid: str, name: str, container_id: str) -> list[str]:
        """What a container has, in the form of its pod that it was made from."""
        image = self.outside.containers.image_of(container_id)
        pod = self.outside.forms.made_from(uid, name, image) or self.pod(uid)
        containers = pod.all_containers if pod is not None else ()
        return [use.name for one in containers if one.name == name for use in one.volumes]
