"""Pure functions: which images go when the disk is full, or when nobody wants them any more."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from nodealloc import _attrs as attrs
from nodealloc._arguments import whole, within
from nodealloc._frozen import Frozen, freeze
from nodealloc._typed import typed, typed_fields
from nodealloc.errors import ConfigurationError, NodeallocError
from nodealloc.runtime._records import ImageRecord
from nodealloc.runtime._rules import RIGHT, Rules

__all__ = [
    "Disk",
    "GcWarning",
    "ImageGcPlan",
    "ImageGcPolicy",
    "ImageGcReport",
    "ImageUse",
    "plan_image_gc",
    "plan_unused_images",
    "seen_images",
    "sweep",
]


@typed_fields
@attrs.frozen(kw_only=True)
class ImageGcPolicy:
    """When images go.

    Attributes:
        high_percent: Of the disk; from here on images go.
        low_percent: Down to here they go; at most `high_percent`.
        min_age_s: One that was first seen less than so many seconds ago is kept.
        max_age_s: One that nobody used for longer goes, however empty the disk; None for never.

    Raises:
        ConfigurationError: No percentages, or the low one above the high one.

    Source: kubelet ``images/image_gc_manager.go``, with its defaults.
    """

    high_percent: int = 85
    low_percent: int = 80
    min_age_s: float = attrs.field(default=120.0, validator=within(0))
    max_age_s: float | None = attrs.field(default=None, validator=attrs.validators.optional(within(0)))

    def __attrs_post_init__(self) -> None:
        for name, value in (("high_percent", self.high_percent), ("low_percent", self.low_percent)):
            if not 0 <= value <= 100:
                raise ConfigurationError(f"ImageGcPolicy.{name} is {value}; give 0 to 100")
        if self.low_percent > self.high_percent:
            raise ConfigurationError(
                f"ImageGcPolicy.low_percent {self.low_percent} is above high_percent {self.high_percent}; "
                "images go from the high one down to the low one"
            )


@typed_fields
@attrs.frozen(kw_only=True)
class Disk:
    """The file system of images.

    Attributes:
        capacity_bytes: All of it.
        available_bytes: What is left; more than there is counts as all.
    """

    capacity_bytes: int = attrs.field(validator=whole(0))
    available_bytes: int = attrs.field(validator=whole(0))


@typed_fields
@attrs.frozen(kw_only=True)
class ImageUse:
    """An image, and what is remembered of it.

    Attributes:
        image: As the runtime lists it.
        first_seen_s: When it was first seen, in seconds on any clock that all ages share.
        last_used_s: When it was last seen in use, likewise; None for never.
    """

    image: ImageRecord
    first_seen_s: float
    last_used_s: float | None = None


@attrs.frozen(kw_only=True)
class ImageGcPlan:
    """What goes, in order.

    Attributes:
        by_age: Nobody used them for too long; all of them go.
        for_space: Go one by one until `to_free_bytes` are free.
        to_free_bytes: What is wanted of them; 0 for nothing, None for all that there are.
        disk_fault: Why nobody can say how full the disk is, so that nothing goes for space; "" for known.
    """

    by_age: tuple[ImageUse, ...] = ()
    for_space: tuple[ImageUse, ...] = ()
    to_free_bytes: int | None = 0
    disk_fault: str = ""

    @property
    def found_bytes(self) -> int:
        """What `for_space` would free if all of it went."""
        return sum(one.image.size_bytes for one in self.for_space)


@attrs.frozen(kw_only=True)
class GcWarning:
    """Something that people should know of, about the node.

    Attributes:
        reason: One word for programs.
        message: For people.
    """

    reason: str
    message: str


@attrs.frozen(kw_only=True)
class ImageGcReport:
    """What came of a plan.

    Attributes:
        removed: Ids, in order.
        freed_bytes: Freed for space; what went by age does not count.
        failed: Ids that could not be removed, and why.
        lacking_bytes: Wanted and not freed; 0 where all was.
        warning: What people should know; None where all went well.
    """

    removed: tuple[str, ...] = ()
    freed_bytes: int = 0
    failed: Mapping[str, NodeallocError] = attrs.field(factory=Frozen[str, NodeallocError], validator=freeze)
    lacking_bytes: int = 0
    warning: GcWarning | None = None


def seen_images(
    before: Mapping[str, ImageUse],
    images: Iterable[ImageRecord],
    /,
    *,
    used: Collection[str],
    now_s: float,
) -> Mapping[str, ImageUse]:
    """What is remembered of images after a look: new ones are first seen now, used ones used now.

    Args:
        before: What was remembered, by id; what is not listed any more is forgotten.
        images: As the runtime lists them.
        used: Ids of images in use by any container that is there, running or not.
        now_s: The present, on the clock of all these ages.
    """
    after: dict[str, ImageUse] = {}
    for one in images:
        old = before.get(one.id)
        after[one.id] = ImageUse(
            image=one,
            first_seen_s=now_s if old is None else old.first_seen_s,
            last_used_s=now_s if one.id in used else None if old is None else old.last_used_s,
        )
    return after


@typed
def plan_image_gc(
    images: Iterable[ImageUse],
    disk: Disk | None,
    policy: ImageGcPolicy,
    /,
    *,
    now_s: float,
    since_s: float,
    used: Collection[str] = (),
    named: Collection[str] = (),
    rules: Rules = RIGHT,
) -> ImageGcPlan:
    """Choose the images that go, those that nobody used for longest first.

    Args:
        images: What is remembered of each.
        disk: How full it is; None where nobody can say.
        policy: When images go.
        now_s: The present, on the clock of all these ages.
        since_s: Since when images are looked at, likewise: what was never seen in
            use may have been used before that.
        used: Ids of images in use.
        named: Ids and names of images that admitted pods name.
        rules: `KUBELET` for what was recorded.

    Source: kubelet ``images/image_gc_manager.go``.
    """
    free = _may_go(images, used, named, rules)
    by_age: list[ImageUse] = []
    if policy.max_age_s is not None and now_s - since_s > policy.max_age_s:
        by_age = [one for one in free if now_s - _idle_since(one, rules) > policy.max_age_s]
    if disk is None:
        return ImageGcPlan(by_age=tuple(by_age), disk_fault="nobody told how full the image filesystem is")
    if disk.capacity_bytes <= 0:
        fault = f"invalid capacity {disk.capacity_bytes} on image filesystem"
        return ImageGcPlan(by_age=tuple(by_age), disk_fault=fault)
    old = {one.image.id for one in by_age}
    rest = [one for one in free if one.image.id not in old]
    available = min(disk.available_bytes, disk.capacity_bytes)
    if not _is_full(disk.capacity_bytes, available, policy.high_percent, rules):
        return ImageGcPlan(by_age=tuple(by_age))
    wanted = disk.capacity_bytes * (100 - policy.low_percent) // 100 - available
    return ImageGcPlan(
        by_age=tuple(by_age), for_space=_old_enough(rest, policy, now_s), to_free_bytes=max(0, wanted)
    )


@typed
def plan_unused_images(
    images: Iterable[ImageUse],
    policy: ImageGcPolicy,
    /,
    *,
    now_s: float,
    used: Collection[str] = (),
    named: Collection[str] = (),
    rules: Rules = RIGHT,
) -> ImageGcPlan:
    """Choose every image that nobody uses: the node is short of disk. Arguments as in `plan_image_gc`."""
    going = _old_enough(_may_go(images, used, named, rules), policy, now_s)
    return ImageGcPlan(for_space=going, to_free_bytes=None)


@typed
def sweep(plan: ImageGcPlan, remove: Callable[[str], object], /) -> ImageGcReport:
    """Carry a plan out: by age first; where that fails nothing goes for space.

    Args:
        plan: What goes.
        remove: Removes one image, such as `Images.remove_image`.
    """
    removed: list[str] = []
    failed: dict[str, NodeallocError] = {}

    def gone(one: ImageUse) -> bool:
        try:
            remove(one.image.id)
        except NodeallocError as error:
            failed[one.image.id] = error
            return False
        removed.append(one.image.id)
        return True

    for one in plan.by_age:
        gone(one)
    freed = 0
    wanted = plan.to_free_bytes
    going = () if failed else plan.for_space
    for one in going:
        if not gone(one):
            continue
        freed += one.image.size_bytes
        if wanted is not None and freed >= wanted:
            break
    lacking = 0 if wanted is None else max(0, wanted - freed)
    return ImageGcReport(
        removed=tuple(removed),
        freed_bytes=freed,
        failed=failed,
        lacking_bytes=lacking,
        warning=_warning(plan, freed, lacking, failed),
    )


def _warning(
    plan: ImageGcPlan, freed: int, lacking: int, failed: Mapping[str, NodeallocError]
) -> GcWarning | None:
    if failed:  # each of them is an error of its own, and says more
        return None
    if plan.disk_fault:
        return GcWarning(reason="InvalidDiskCapacity", message=plan.disk_fault)
    if lacking:
        return GcWarning(
            reason="FreeDiskSpaceFailed",
            message="Failed to garbage collect required amount of images. Attempted to free "
            f"{plan.to_free_bytes} bytes, but only found {freed} bytes eligible to free.",
        )
    return None


def _may_go(
    images: Iterable[ImageUse], used: Collection[str], named: Collection[str], rules: Rules
) -> list[ImageUse]:
    """Neither pinned nor in use nor, where that is the rule, named; the least recently used first."""
    kept = set(used)
    names = set(named) if rules.keeps_named else set[str]()
    free = [
        one
        for one in images
        if not (
            one.image.is_pinned
            or one.image.id in kept
            or (names and (one.image.id in names or not names.isdisjoint(one.image.names)))
        )
    ]
    never = float("-inf")
    return sorted(
        free, key=lambda one: (never if one.last_used_s is None else one.last_used_s, one.first_seen_s)
    )


def _idle_since(one: ImageUse, rules: Rules) -> float:
    if one.last_used_s is not None:
        return one.last_used_s
    return one.first_seen_s if rules.ages_from_detection else float("-inf")


def _is_full(capacity: int, available: int, percent: int, rules: Rules) -> bool:
    if rules.starts_exactly:
        return (capacity - available) * 100 >= percent * capacity
    return 100 - available * 100 // capacity >= percent


def _old_enough(images: Iterable[ImageUse], policy: ImageGcPolicy, now_s: float) -> tuple[ImageUse, ...]:
    return tuple(
        one
        for one in images
        if (one.last_used_s is None or one.last_used_s < now_s)
        and now_s - one.first_seen_s >= policy.min_age_s
    )
