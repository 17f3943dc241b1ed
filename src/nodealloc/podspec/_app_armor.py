"""Which AppArmor profile confines a container: its own, that of an old annotation, or its pod's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nodealloc._typed import typed_on_error
from nodealloc.podspec._security import AppArmorProfile, ProfileType

if TYPE_CHECKING:
    from nodealloc.podspec._model import Container
    from nodealloc.podspec._pod import Pod

__all__ = ["ANNOTATION", "app_armor_profile"]

ANNOTATION: Final = "container.apparmor.security.beta.kubernetes.io/"
"""Begins what manifests before v1.30 say of a container, whose name follows."""
_LOCALHOST: Final = "localhost/"
_WORDS: Final = {
    "runtime/default": AppArmorProfile(type=ProfileType.RUNTIME_DEFAULT),
    "unconfined": AppArmorProfile(type=ProfileType.UNCONFINED),
}


@typed_on_error
def app_armor_profile(pod: Pod, container: Container, /) -> AppArmorProfile | None:
    """The profile of a container; None where nobody asks for one.

    Args:
        pod: Whose container it is; speaks where the container itself does not, by the
            annotation of manifests before v1.30 first.
        container: One of its containers.

    Source: Kubernetes ``pkg/security/apparmor/helpers.go``.
    """
    own, of_pod = container.security_context, pod.security_context
    if own is not None and own.app_armor_profile is not None:
        return own.app_armor_profile
    word = pod.annotations.get(ANNOTATION + container.name, "")
    if word.startswith(_LOCALHOST):
        name = word.removeprefix(_LOCALHOST)
        return AppArmorProfile(type=ProfileType.LOCALHOST, localhost_profile=name)
    return _WORDS.get(word) or (None if of_pod is None else of_pod.app_armor_profile)
