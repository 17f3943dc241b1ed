"""Values only: what a runtime lists of sandboxes, containers and images."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from nodealloc import _attrs as attrs
from nodealloc._arguments import checked, filled, unix_time, whole
from nodealloc._frozen import Frozen, freeze
from nodealloc._typed import typed_fields
from nodealloc.podfacts import PodIdentity

__all__ = ["ContainerRecord", "ImageRecord", "RunState", "SandboxRecord"]


class RunState(enum.Enum):
    """How far a container has come, as its runtime says; a sandbox is running or exited.

    `UNKNOWN` is the runtime's own word for not knowing. It says nothing about how
    a container ended: that is an exit, which may be unknown too.
    """

    CREATED = "created"
    RUNNING = "running"
    EXITED = "exited"
    UNKNOWN = "unknown"

    @property
    def may_run(self) -> bool:
        """Whether it runs, or may as far as anybody knows."""
        return self is RunState.RUNNING or self is RunState.UNKNOWN


_IDENTITY: Final = checked(PodIdentity, "a PodIdentity; PodIdentity.of(pod) has that of a pod")


@attrs.frozen(kw_only=True)
class SandboxRecord:
    """A pod's sandbox, as a listing of the runtime has it.

    Attributes:
        id: The runtime's id, unique for all time.
        pod: Whose it is.
        attempt: Counts the sandboxes of the pod, from 0; the order among them.
        is_ready: Whether it runs.
        created_unix_s: When it was made, in Unix seconds; None where nobody knows.
        handler: The runtime class's handler, "" for the default one.
        labels: As it was made with.
        annotations: As it was made with.

    Raises:
        ConfigurationError: No id, a negative attempt, or a pod that is no identity.
    """

    id: str = attrs.field(validator=filled)
    pod: PodIdentity = attrs.field(validator=_IDENTITY)
    attempt: int = attrs.field(default=0, validator=whole(0))
    is_ready: bool = attrs.field(default=True, validator=checked(bool, "True or False"))
    created_unix_s: float | None = attrs.field(default=None, validator=unix_time)
    handler: str = ""
    labels: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    annotations: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)

    @property
    def state(self) -> RunState:
        """Running or exited: what a sandbox that is ready or not counts as among containers."""
        return RunState.RUNNING if self.is_ready else RunState.EXITED


@attrs.frozen(kw_only=True)
class ContainerRecord:
    """A container, as a listing of the runtime has it.

    Attributes:
        id: The runtime's id, unique for all time.
        pod: Whose it is.
        name: As the pod names it.
        sandbox_id: The sandbox that it was made in.
        attempt: Counts the instances of this container, from 0; the order among them.
        state: How far it has come.
        created_unix_s: When it was made, in Unix seconds; None where nobody knows.
        image: As whoever made it named it.
        image_id: The runtime's id of the image; "" where it tells none.
        definition: Fingerprint of what it was made from, "" where none was left:
            another one means that the pod's definition has changed since.
        labels: As it was made with.
        annotations: As it was made with.

    Raises:
        ConfigurationError: No id, name or sandbox, a negative attempt, or a pod that is no identity.
    """

    id: str = attrs.field(validator=filled)
    pod: PodIdentity = attrs.field(validator=_IDENTITY)
    name: str = attrs.field(validator=filled)
    sandbox_id: str = attrs.field(validator=filled)
    attempt: int = attrs.field(default=0, validator=whole(0))
    state: RunState = attrs.field(
        default=RunState.CREATED, validator=checked(RunState, "a RunState, such as RunState.RUNNING")
    )
    created_unix_s: float | None = attrs.field(default=None, validator=unix_time)
    image: str = ""
    image_id: str = ""
    definition: str = ""
    labels: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)
    annotations: Mapping[str, str] = attrs.field(factory=Frozen[str, str], validator=freeze)

    @property
    def newest_last(self) -> tuple[int, float, str]:
        """Key of a total order among the instances of one container: attempt, creation, id."""
        return self.attempt, self.created_unix_s or 0.0, self.id


@typed_fields
@attrs.frozen(kw_only=True)
class ImageRecord:
    """An image that the runtime holds.

    Attributes:
        id: The runtime's id of it.
        names: Tags and digests by which it can be asked for.
        size_bytes: Of its content; 0 where the runtime does not tell.
        is_pinned: Whether the runtime asks that it be kept.
        user: User id that it runs as; None where it says none, or a name.
        username: The same by name, "" where it says none, or an id.

    Raises:
        ConfigurationError: No id, or a negative size.
    """

    id: str = attrs.field(validator=filled)
    names: tuple[str, ...] = ()
    size_bytes: int = attrs.field(default=0, validator=whole(0))
    is_pinned: bool = False
    user: int | None = None
    username: str = ""
