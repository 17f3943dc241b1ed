"""Values: what a plan is made from, and what it answers."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, Generic, TypeVar, cast

from nodealloc import _attrs as attrs
from nodealloc._arguments import wrong
from nodealloc._typed import typed_fields, typed_fields_on_error
from nodealloc.dsw_asw._steps import Running, Step, StepScope
from nodealloc.errors import ConfigurationError

if TYPE_CHECKING:
    from nodealloc.dsw_asw._world import World

__all__ = ["KEEP", "Keep", "Near", "Plan", "View"]

K = TypeVar("K", bound=Hashable)
F = TypeVar("F", bound=Hashable)
T = TypeVar("T")
V = TypeVar("V")
W_co = TypeVar("W_co", covariant=True)
H_co = TypeVar("H_co", covariant=True)
S_co = TypeVar("S_co", covariant=True)


class Keep(enum.Enum):
    """One value, `KEEP`: the record stays as it is. None would drop it."""

    KEEP = "keep"


KEEP: Final = Keep.KEEP
"""The record stays as it is."""


@typed_fields
@attrs.frozen(eq=False)
class Near(Generic[K, F, V]):
    """A dependency of keys: records of another world that a plan looks at.

    When one of them changes, the keys that looked at it are planned again.

    Attributes:
        world: Where the records are.
        keys_of: From a key to the keys of the other world that matter for it;
            pure and quick.
        counts: From a record to what plans look at of it: a change of anything else
            wakes nobody. Pure and quick; None for all of it.

    Example:
        >>> from nodealloc.dsw_asw import Near, World
        >>> mounts: World[str, bool] = World("mounts")
        >>> mounted: Near[str, str, bool] = Near(mounts, lambda pod: [pod])
    """

    world: World[F, V]
    keys_of: Callable[[K], Iterable[F]]
    counts: Callable[[V], object] | None = None


@attrs.frozen(kw_only=True)
class View(Generic[K, W_co, H_co, S_co]):
    """All that a plan may look at.

    Attributes:
        key: Which key.
        want: Its desired record, or None.
        have: Its actual record, or None.
        now_s: The engine's clock, in seconds.
        running: Steps of this key that were started and have not ended.
        near: For each declared `Near` the records that are there; read it with `of`.
    """

    key: K
    want: W_co | None = None
    have: H_co | None = None
    now_s: float = 0.0
    running: tuple[Running[S_co], ...] = ()
    near: Mapping[object, Mapping[Hashable, object]] = attrs.field(
        factory=dict[object, Mapping[Hashable, object]]
    )

    def of(self, near: Near[K, F, V], /) -> Mapping[F, V]:
        """The records of a dependency that are there, by their key.

        Raises:
            LookupError: The reconciler was not given this `Near`.
        """
        try:
            found = self.near[near]
        except KeyError:
            message = f"{near.world.name} is no dependency here; give its Near to the reconciler"
            raise LookupError(message) from None
        return cast("Mapping[F, V]", found)


def _moment(_plan: object, _attribute: object, value: float | None) -> None:
    if value is not None and not math.isfinite(value):
        raise ConfigurationError(
            f"again_at_s={value}: expected a moment on the engine's clock, in seconds, or None"
        )


def _as_tuple(steps: Iterable[Step[T]]) -> tuple[Step[T], ...]:
    return tuple(steps)


def _scopes(value: object) -> bool | tuple[StepScope, ...]:
    if isinstance(value, bool):
        return value
    if not isinstance(value, (tuple, Collection)) or isinstance(value, str):
        raise wrong("Plan.cancel", value, "True, False or the scopes to cancel")
    return tuple(cast("Collection[StepScope]", value))


@typed_fields_on_error
@attrs.frozen(kw_only=True)
class Plan(Generic[H_co, S_co]):
    """What a plan answers; `Plan()` means that the key is in line.

    Attributes:
        have: The record as it is to be before any of the steps starts: the
            intent, which is remembered first. `KEEP` leaves it, None drops it.
        steps: What to do next. A step whose scope is closed, that is held off or
            that rests is passed over and planned anew when that ends.
        again_at_s: When to look at the key again though nothing changes, on the
            engine's clock: the end of a grace, a back-off, a probe's period.
        cancel: True asks every running step of the key to stop; scopes ask
            those that run in one of them.
    """

    have: H_co | Keep | None = KEEP
    steps: tuple[Step[S_co], ...] = attrs.field(default=(), converter=_as_tuple)
    again_at_s: float | None = attrs.field(default=None, validator=_moment)
    cancel: bool | tuple[StepScope, ...] = attrs.field(default=False, converter=_scopes)
