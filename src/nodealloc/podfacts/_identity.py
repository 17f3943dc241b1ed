"""Values only: which pod."""

from __future__ import annotations

from nodealloc import _attrs as attrs
from nodealloc._arguments import filled
from nodealloc._typed import typed
from nodealloc.podspec import Pod

__all__ = ["PodIdentity"]


@attrs.frozen(kw_only=True, order=True)
class PodIdentity:
    """Which pod: what stays the same for all of its life.

    Attributes:
        uid: Unique for all time; a pod made anew under its old name has another.
        namespace: With `name`, unique among the pods of one moment.
        name: For people, and for whoever asks for a pod by name.

    Raises:
        ConfigurationError: One of them is empty.
    """

    uid: str = attrs.field(validator=filled)
    namespace: str = attrs.field(validator=filled)
    name: str = attrs.field(validator=filled)

    @classmethod
    @typed
    def of(cls, pod: Pod, /) -> PodIdentity:
        """That of a pod; raises `ConfigurationError` for one that has no name."""
        return cls(uid=pod.uid, namespace=pod.namespace, name=pod.name)

    @property
    def full_name(self) -> str:
        """`namespace/name`, for messages."""
        return f"{self.namespace}/{self.name}"
