"""What an API server checks of annotations that name profiles, as manifests had them before fields came."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from nodealloc.errors import Fault
from nodealloc.podspec._app_armor import ANNOTATION
from nodealloc.podspec._checks import relative
from nodealloc.podspec._security import AppArmorProfile, ProfileType, SeccompProfile

if TYPE_CHECKING:
    from nodealloc.podspec._fields import PodFields

__all__ = ["profile_annotation_faults"]

_SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP: Final = "container.seccomp.security.alpha.kubernetes.io/"
_LOCALHOST: Final = "localhost/"
_APP_ARMOR_WORDS: Final = ("runtime/default", "unconfined")
_SECCOMP_WORDS: Final = (*_APP_ARMOR_WORDS, "docker/default")


def profile_annotation_faults(pod: PodFields, /) -> Iterator[Fault]:
    """Annotations that name no profile, or another one than the field beside them.

    Source: Kubernetes v1.32 ``pkg/apis/core/validation``.
    """
    found = {key: one for key, one in pod.annotations.items() if key.startswith(_BEGIN)}
    if not found:
        return
    names = {one.name for one in (*pod.all_containers, *pod.ephemeral_containers)}
    for key, value in found.items():
        path = f"$.metadata.annotations.{key}"
        if key == _SECCOMP_POD or key.startswith(_SECCOMP):
            yield from _word(path, value, _SECCOMP_WORDS)
            if value.startswith(_LOCALHOST) and (what := relative(value.removeprefix(_LOCALHOST))):
                yield Fault(path, what)
        elif key.startswith(ANNOTATION):
            yield from _word(path, value, ("", *_APP_ARMOR_WORDS))
            name = key.removeprefix(ANNOTATION)
            if name not in names:
                yield Fault(path, f"the pod has no container {name[:80]!r}; name one that it has")
    yield from _clashes(pod)


_BEGIN: Final = (_SECCOMP_POD, _SECCOMP, ANNOTATION)


def _word(path: str, value: str, words: tuple[str, ...]) -> Iterator[Fault]:
    if value not in words and not value.startswith(_LOCALHOST):
        known = ", ".join([*filter(None, words), f"{_LOCALHOST}NAME"])
        yield Fault(path, f"{value[:80]!r} is no profile; write one of {known}")


def _clashes(pod: PodFields) -> Iterator[Fault]:
    """Annotations beside fields that say otherwise."""
    of_pod = pod.security_context
    if of_pod is not None:
        yield from _clash("$.spec", pod, _SECCOMP_POD, of_pod.seccomp_profile)
    groups = (("initContainers", pod.init_containers), ("containers", pod.containers))
    for group, containers in groups:
        for index, one in enumerate(containers):
            where, own = f"$.spec.{group}[{index}]", one.security_context
            if own is not None:
                yield from _clash(where, pod, _SECCOMP + one.name, own.seccomp_profile)
            armor = own.app_armor_profile if own is not None else None
            if armor is None and of_pod is not None:
                armor = of_pod.app_armor_profile
            if pod.os is None or pod.os.name != "windows":
                yield from _clash(where, pod, ANNOTATION + one.name, armor)


def _clash(
    where: str, pod: PodFields, key: str, profile: AppArmorProfile | SeccompProfile | None
) -> Iterator[Fault]:
    said = pod.annotations.get(key)
    if said is None or profile is None or _says(said, profile):
        return
    name = "seccompProfile" if isinstance(profile, SeccompProfile) else "appArmorProfile"
    what = f"the annotation {key} says {said[:80]!r}; leave the annotation out"
    yield Fault(f"{where}.securityContext.{name}", what)


def _says(said: str, profile: AppArmorProfile | SeccompProfile) -> bool:
    if profile.type is ProfileType.LOCALHOST:
        return said == f"{_LOCALHOST}{profile.localhost_profile}"
    if profile.type is ProfileType.UNCONFINED:
        return said == "unconfined"
    is_seccomp = isinstance(profile, SeccompProfile)
    return said == "runtime/default" or (is_seccomp and said == "docker/default")
