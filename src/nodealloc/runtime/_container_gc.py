"""Pure functions: which dead containers, sandboxes and log directories may go."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from nodealloc import _attrs as attrs
from nodealloc._arguments import within, wrong
from nodealloc._typed import typed, typed_fields
from nodealloc.errors import ConfigurationError
from nodealloc.runtime._records import ContainerRecord, RunState, SandboxRecord
from nodealloc.runtime._rules import RIGHT, Rules

__all__ = [
    "ContainerGcPlan",
    "ContainerGcPolicy",
    "containers_to_drop",
    "plan_container_gc",
    "plan_log_gc",
    "plan_sandbox_gc",
]


@typed_fields
@attrs.frozen(kw_only=True)
class ContainerGcPolicy:
    """How many dead containers are kept.

    Attributes:
        min_age_s: One that was made less than so many seconds ago is kept.
        most_per_container: Dead instances of one container of one pod; None for no limit.
        most: Dead containers of the node; None for no limit.

    Source: kubelet flags ``minimum-container-ttl-duration`` (0),
    ``maximum-dead-containers-per-container`` (1), ``maximum-dead-containers`` (-1).
    """

    min_age_s: float = attrs.field(default=0.0, validator=within(0))
    most_per_container: int | None = 1
    most: int | None = None

    def __attrs_post_init__(self) -> None:
        for name, value in (("most_per_container", self.most_per_container), ("most", self.most)):
            if value is not None and value < 0:
                raise ConfigurationError(
                    f"ContainerGcPolicy.{name} is {value}; give 0 or more, or None for no limit"
                )


@attrs.frozen(kw_only=True)
class ContainerGcPlan:
    """What goes.

    Attributes:
        remove: Ids of containers, in order.
        stop_first: Those of them whose state nobody knows: they may still run.
        withheld: Ids that would go and whose exit is not stored yet.
    """

    remove: tuple[str, ...] = ()
    stop_first: frozenset[str] = frozenset()
    withheld: tuple[str, ...] = ()


@typed
def plan_container_gc(
    containers: Iterable[ContainerRecord],
    policy: ContainerGcPolicy,
    /,
    *,
    now_s: float,
    ended: Collection[str] = (),
    stored: Collection[str] | None = None,
    stuck: Collection[str] = (),
    rules: Rules = RIGHT,
) -> ContainerGcPlan:
    """Choose the dead containers that go: all of ended pods, and the oldest beyond the limits.

    Args:
        containers: As listed.
        policy: The limits.
        now_s: The present, in Unix seconds like the records' times.
        ended: Pods of which nothing is kept; empty while it is not known which pods there are.
        stored: Containers whose exit is stored; None where exits are stored nowhere.
        stuck: Containers that could not be removed the last time; they stay, and count.
        rules: `KUBELET` for what was recorded.

    Source: kubelet ``kuberuntime/kuberuntime_gc.go``.
    """
    turn = _Turn(stored=stored, stuck=frozenset(stuck), rules=rules)
    units: dict[tuple[str, str], list[ContainerRecord]] = {}
    for one in containers:
        # A record without a time is as old as can be.
        if one.state is not RunState.RUNNING and (one.created_unix_s or 0.0) <= now_s - policy.min_age_s:
            units.setdefault((one.pod.uid, one.name), []).append(one)
    for unit in units.values():
        unit.sort(key=_age, reverse=True)
    left: dict[tuple[str, str], list[ContainerRecord]] = {}
    for key, unit in units.items():
        left[key] = turn.without_oldest(unit, len(unit)) if key[0] in ended else unit
        if not left[key]:
            del left[key]
    if policy.most_per_container is not None:
        left = turn.each_at_most(left, policy.most_per_container)
    count = sum(map(len, left.values()))
    if policy.most is not None and count > policy.most:
        left = turn.each_at_most(left, max(1, policy.most // len(left)))
        flat = sorted((one for unit in left.values() for one in unit), key=_age, reverse=True)
        turn.without_oldest(flat, len(flat) - policy.most)
    return ContainerGcPlan(
        remove=tuple(one.id for one in turn.going),
        stop_first=frozenset(one.id for one in turn.going if one.state is RunState.UNKNOWN),
        withheld=tuple(turn.withheld),
    )


class _Turn:
    """One choice under way."""

    def __init__(self, *, stored: Collection[str] | None, stuck: frozenset[str], rules: Rules) -> None:
        self.going: list[ContainerRecord] = []
        self.withheld: list[str] = []
        self._stored = stored if rules.keeps_unstored else None
        self._stuck = stuck if rules.counts_stuck else frozenset[str]()

    def without_oldest(self, unit: list[ContainerRecord], count: int) -> list[ContainerRecord]:
        """Let the `count` oldest go, as far as they may; what is left, the newest first."""
        left: list[ContainerRecord] = []
        for one in reversed(unit):
            if count > 0 and self._may_go(one):
                self.going.append(one)
                count -= 1
            else:
                left.append(one)
        return left[::-1]

    def each_at_most(
        self, units: Mapping[tuple[str, str], list[ContainerRecord]], most: int
    ) -> dict[tuple[str, str], list[ContainerRecord]]:
        """Every unit with its newest `most` alone."""
        return {key: self.without_oldest(unit, len(unit) - most) for key, unit in units.items()}

    def _may_go(self, one: ContainerRecord) -> bool:
        if one.id in self._stuck:
            return False
        ended = one.state is RunState.EXITED
        if ended and self._stored is not None and one.id not in self._stored:
            if one.id not in self.withheld:
                self.withheld.append(one.id)
            return False
        return True


@typed
def plan_sandbox_gc(
    sandboxes: Iterable[SandboxRecord],
    containers: Iterable[ContainerRecord],
    /,
    *,
    ended: Collection[str] = (),
) -> tuple[str, ...]:
    """Ids of sandboxes that go, the oldest first: not ready, without containers, and not a pod's newest.

    Args:
        sandboxes: As listed.
        containers: As listed after containers went.
        ended: Pods of which nothing is kept, not even the newest.

    Source: kubelet ``kuberuntime/kuberuntime_gc.go``.
    """
    in_use = {one.sandbox_id for one in containers}
    pods: dict[str, list[SandboxRecord]] = {}
    for one in sandboxes:
        pods.setdefault(one.pod.uid, []).append(one)
    going: list[str] = []
    for uid, mine in pods.items():
        mine.sort(key=lambda one: (one.created_unix_s or 0.0, one.attempt, one.id))
        candidates = mine if uid in ended else mine[:-1]
        going += [one.id for one in candidates if not one.is_ready and one.id not in in_use]
    return tuple(going)


@typed
def plan_log_gc(directories: Iterable[str], /, *, ended: Collection[str]) -> tuple[str, ...]:
    """Log directories, named `namespace_name_uid`, of pods that are gone.

    Source: kubelet ``kuberuntime/kuberuntime_gc.go``.
    """
    return tuple(one for one in directories if one.rsplit("_", 1)[-1] in ended)


@typed
def containers_to_drop(
    containers: Sequence[ContainerRecord],
    /,
    *,
    keep: int,
    because_of: str = "",
    remove_all: bool = False,
    stored: Collection[str] | None = None,
    rules: Rules = RIGHT,
) -> tuple[str, ...]:
    """Dead containers of one pod that go when one of them has died, the newest first.

    Args:
        containers: Of the pod, as listed.
        keep: How many dead instances stay: of that container, or of the pod.
        because_of: The container that died; "" for none.
        remove_all: The pod has ended: none stays.
        stored: Containers whose exit is stored; None where exits are stored nowhere.
        rules: `KUBELET` for what was recorded.

    Raises:
        ConfigurationError: `keep` is below 0.

    Source: kubelet ``pod_container_deletor.go``.
    """
    if keep < 0:
        raise wrong("containers_to_drop: keep", keep, "0 or more")
    if remove_all:
        keep, because_of = 0, ""
    died = next((one for one in containers if one.id == because_of), None)
    if because_of and died is None:
        return ()
    dead = [
        one for one in containers if one.state is RunState.EXITED and (died is None or one.name == died.name)
    ]
    dead.sort(key=_age, reverse=True)
    going = (one.id for one in dead[keep:])
    if stored is None or not rules.keeps_unstored:
        return tuple(going)
    return tuple(one for one in going if one in stored)


def _age(one: ContainerRecord) -> float:
    return one.created_unix_s or 0.0
