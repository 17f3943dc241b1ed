"""Can the node enforce the AppArmor profiles of a pod."""

from __future__ import annotations

from nodealloc import _attrs as attrs
from nodealloc._typed import typed_fields
from nodealloc.admission._rules import Rules
from nodealloc.admission._verdicts import ADMITTED
from nodealloc.podfacts import NodeView
from nodealloc.podspec import AppArmorProfile, Container, Pod, ProfileType, app_armor_profile
from nodealloc.podspec._app_armor import ANNOTATION
from nodealloc.verdicts import Admitted, Refused

__all__ = ["AppArmor"]


@typed_fields
@attrs.frozen(kw_only=True)
class AppArmor:
    """A handler: whether AppArmor is on where a pod needs it, and each profile has a name.

    A pod that runs, or has ended, is not asked again.

    Attributes:
        enabled: Whether it is on, on this node.
        rules: What is right, or as recorded.

    Source: kubelet ``lifecycle/handlers.go``, ``security/apparmor``.
    """

    enabled: bool
    rules: Rules = attrs.field(factory=Rules)

    def __call__(self, pod: Pod, view: NodeView, /) -> Admitted | Refused:
        """Asks the pod's profiles alone."""
        del view
        if pod.status.get("phase", "Pending") != "Pending" or not self._is_needed(pod):
            return ADMITTED
        if not self.enabled:
            return _refused("AppArmor is not enabled on the host")
        for one in _containers(pod):
            profile = app_armor_profile(pod, one)
            if profile is None or profile.type is not ProfileType.LOCALHOST:
                continue
            name = profile.localhost_profile
            if name is None or not name.strip():
                shown = "nil" if name is None else f"*{name}"
                return _refused(
                    "invalid empty AppArmor profile name: "
                    f'"&AppArmorProfile{{Type:Localhost,LocalhostProfile:{shown},}}"'
                )
        return ADMITTED

    def _is_needed(self, pod: Pod) -> bool:
        context = pod.security_context
        if _confines(context.app_armor_profile if context is not None else None):
            return True
        if any(_confines(_own(one)) for one in _containers(pod)):
            return True
        if self.rules.asks_every_annotation:
            # An annotation of no container, or of one that says it itself, confines nobody.
            return any(_confines(app_armor_profile(pod, one)) for one in _containers(pod))
        said = sorted(key for key in pod.annotations if key.startswith(ANNOTATION))
        return bool(said) and pod.annotations[said[0]] != "unconfined"


def _containers(pod: Pod) -> tuple[Container, ...]:
    return (*pod.all_containers, *pod.ephemeral_containers)


def _refused(why: str) -> Refused:
    return Refused(reason="AppArmor", message=f"Cannot enforce AppArmor: {why}")


def _confines(profile: AppArmorProfile | None) -> bool:
    return profile is not None and profile.type is not ProfileType.UNCONFINED


def _own(container: Container) -> AppArmorProfile | None:
    return container.security_context.app_armor_profile if container.security_context is not None else None
