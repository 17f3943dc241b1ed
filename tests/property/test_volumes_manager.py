"""Laws of the volume manager, whatever happens in whatever order, on a host in memory.

Pods come, go, come again under their uid, and become unknown; sources are late;
claims vanish and grow; calls fail before or after they have done their work, or nobody knows;
operations end in any order; somebody else takes mounts off; the program dies
and starts again at any moment.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from nodealloc.dsw_asw import Outcome, Step, Summary, UncertainError
from nodealloc.podfacts import PodLife
from nodealloc.podspec import Pod
from nodealloc.testing.dsw_asw import ManualExecutor, VirtualClock
from nodealloc.testing.podfacts import FakePods
from nodealloc.testing.volume_sources import FakeMountWatch
from nodealloc.testing.volumes import FakeClaims, FakeHost, claiming_pod
from nodealloc.volumes import Found, VolumeManager
from nodealloc.volumes._plan import Task
from nodealloc.volumes._populator import DesiredPod
from nodealloc.volumes._verbs import Verb

CLAIMS = {"p0": ("a",), "p1": ("a", "b"), "p2": ("b",), "p3": ("a", "c")}
uids = st.sampled_from(sorted(CLAIMS))
names = st.sampled_from(["a", "b", "c"])


class Watcher:
    """An observer that knows which unmounts nobody may start."""

    def __init__(self, machine: Volumes) -> None:
        self.machine = machine

    def started(self, step: Step[object], /) -> None:
        """Hold an unmount against what is wanted now."""
        if isinstance(step.detail, DesiredPod):
            self.machine.newest[str(step.scope[0])] = step.detail.generation
        if not isinstance(step.detail, Task) or step.detail.use is None:
            return
        uid, key = step.detail.use.pod_uid, step.detail.spec.id
        if step.detail.verb is Verb.MOUNT:
            # One that is in doubt is made again, also for a pod that has just ended.
            generation = step.detail.use.generation
            if generation > self.machine.stale.get((key, uid), generation):
                del self.machine.stale[key, uid]
        elif self.machine.is_wanted(uid, step.detail.spec.name):
            if (key, uid) not in self.machine.stale:
                self.machine.host.violations.append(f"unmount of {key} under {uid}")
        elif uid not in self.machine.ended:
            self.machine.host.violations.append(f"unmount of {key} before the sources are ready")

    def ended(self, step: Step[object], outcome: Outcome[object], took_s: float, /) -> None:
        """Nothing to hold."""

    def passed(self, summary: Summary, /) -> None:
        """Nothing to hold."""


class Volumes(RuleBasedStateMachine):
    """A node with three disks and four pods."""

    def __init__(self) -> None:
        super().__init__()
        self.host = FakeHost()
        self.host.fault = self.strike
        self.pods = FakePods()
        self.claims = FakeClaims()
        self.clock = VirtualClock()
        self.faults: list[tuple[str, type[Exception]]] = []
        self.newest: dict[str, int] = {}
        self.stale: dict[tuple[str, str], int] = {}
        self.ended: set[str] = set()
        self.sizes = {"a": 1, "b": 1, "c": 1}
        for name in self.sizes:
            self.claims.volumes[name] = self.host.disk(name, 1)
        self.start()

    def start(self) -> None:
        """A life of the program begins; what was under way is lost, and generations are counted anew."""
        self.newest.clear()
        self.stale = dict.fromkeys(self.stale, 0)
        self.executor = ManualExecutor()
        self.watch = FakeMountWatch()
        self.manager = VolumeManager(
            [self.host],
            pods=self.pods,
            executor=self.executor,
            claims=self.claims,
            leftovers=self.host,
            mounts=self.watch,
            clock=self.clock,
            resync_s=None,
            observer=Watcher(self),
        )
        self.manager.reconstruct()
        self.manager.pods_changed()

    def strike(self, name: str) -> None:
        """Fail the next call of a kind."""
        for at, (when, kind) in enumerate(self.faults):
            if name.startswith(when):
                del self.faults[at]
                raise kind(name)

    def is_wanted(self, uid: str, claim: str) -> bool:
        """Whether a pod is to have a claim's volume."""
        sighting = self.pods.get(uid)
        return sighting is not None and sighting.life is not PodLife.ENDED and claim in CLAIMS[uid]

    def note_ends(self) -> None:
        """An end counts from when it is seen while every source is ready."""
        if self.pods.ready:
            over = [uid for uid, claims in CLAIMS.items() if not self.is_wanted(uid, claims[0])]
            self.ended.update(over)
            for uid in over:
                self.stale |= {(self.claims_id(name), uid): self.newest.get(uid, 0) for name in CLAIMS[uid]}

    def pod(self, uid: str) -> Pod:
        """The pod of a uid."""
        return claiming_pod(uid, *CLAIMS[uid])

    @rule(uid=uids)
    def pod_arrives(self, uid: str) -> None:
        """Also one that is there already."""
        self.ended.discard(uid)
        self.pods.put(self.pod(uid))
        self.manager.pod_changed(uid)

    @rule(uid=uids, by_absence=st.booleans())
    def pod_ends(self, uid: str, by_absence: bool) -> None:
        """Its source says so, or forgets it."""
        if by_absence:
            self.pods.sightings.pop(uid, None)
        else:
            self.pods.put(self.pod(uid), PodLife.ENDED)
        self.note_ends()
        self.manager.pod_changed(uid)

    @rule(uid=uids)
    def pod_becomes_unknown(self, uid: str) -> None:
        """Nobody can tell whether it lives."""
        if self.pods.get(uid) is not None:
            self.pods.put(self.pod(uid), PodLife.UNKNOWN)
            self.manager.pod_changed(uid)

    @rule(ready=st.booleans())
    def sources_change(self, ready: bool) -> None:
        """All pods are known, or some source is late."""
        self.pods.ready = ready
        self.note_ends()
        self.manager.pods_changed()

    @rule(name=names)
    def claim_vanishes(self, name: str) -> None:
        """The API cannot be asked."""
        self.claims.volumes.pop(name, None)

    @rule(name=names, more=st.integers(0, 2))
    def claim_appears(self, name: str, more: int) -> None:
        """The same, or larger."""
        self.sizes[name] += more
        self.claims.volumes[name] = self.host.disk(name, self.sizes[name])
        for uid in CLAIMS:
            self.manager.refresh(uid)

    @rule(
        when=st.sampled_from(["before ", "after "]),
        verb=st.sampled_from(["attach", "stage", "mount", "unmount", "unstage", "detach", "expand"]),
        kind=st.sampled_from([OSError, UncertainError]),
    )
    def fault_is_laid(self, when: str, verb: str, kind: type[Exception]) -> None:
        """The next such call fails before it does anything, after it has, or unknown to anybody."""
        self.faults.append((when + verb, kind))

    @rule()
    def a_pass_is_made(self) -> None:
        """One pass."""
        self.manager.reconcile()

    @rule(at=st.integers(0, 20))
    def an_operation_runs(self, at: int) -> None:
        """Any of those that wait, and perhaps its result is seen."""
        self.executor.run(at)

    @rule()
    def work_is_done(self) -> None:
        """Passes and operations until only time could bring more."""
        for _ in range(50):
            self.manager.reconcile()
            if not self.executor.run_all() and not self.manager.has_work:
                return

    @rule(seconds=st.sampled_from([0.5, 5.0, 130.0]))
    def time_passes(self, seconds: float) -> None:
        """Back-off runs out."""
        self.clock.advance(seconds)

    @rule(uid=uids)
    def a_pod_is_doubted(self, uid: str) -> None:
        """Somebody else may have touched its mounts."""
        self.manager.observe(uid)

    @rule(uid=uids, name=names)
    def somebody_else_unmounts(self, uid: str, name: str) -> None:
        """And the watch will tell of it."""
        if self.host.mounts.pop((self.claims_id(name), uid), None) is not None:
            self.watch.gone.append(Found(plugin=self.host.name, name=name, pod_uid=uid))

    @rule()
    def the_program_dies(self) -> None:
        """And starts again on what it left."""
        self.start()

    @invariant()
    def nothing_forbidden_happened(self) -> None:
        """No detach while staged, no unstage under a mount, no unmount under a wanted pod."""
        assert self.host.violations == []

    def claims_id(self, name: str) -> str:
        """The id of a claim's volume."""
        return f"{self.host.name}/{name}"

    def rest(self) -> None:
        """Everything, back-off waited out."""
        for _ in range(40):
            self.work_is_done()
            if not self.manager.reconcile().held_off and not self.manager.has_work:
                return
            self.clock.advance(130.0)
        raise AssertionError("no rest in forty back-offs")

    def teardown(self) -> None:
        """It converges; a second look finds nothing to do; without pods nothing is left."""
        self.faults.clear()
        self.pods.ready = True
        self.note_ends()
        for name, size in self.sizes.items():
            self.claims.volumes[name] = self.host.disk(name, size)
        for sighting in tuple(self.pods.sightings.values()):
            if sighting.life is PodLife.UNKNOWN:
                self.pods.put(sighting.pod)
        self.manager.pods_changed()
        self.rest()
        wanted = {
            (self.claims_id(name), uid)
            for uid, names_ in CLAIMS.items()
            for name in names_
            if self.is_wanted(uid, name)
        }
        assert set(self.host.mounts) == wanted
        assert self.host.attached == {key for key, _ in wanted} == self.host.staged
        for key in self.host.attached:
            name = key.rsplit("/", 1)[1]
            uid = next(uid for held, uid in wanted if held == key)
            self.manager.refresh(uid)
            self.rest()
            assert self.host.sizes[key] == self.sizes[name]
        calls = len(self.host.calls)
        self.manager.pods_changed()
        assert self.manager.reconcile().is_idle
        assert len(self.host.calls) == calls
        self.pods.sightings.clear()
        self.note_ends()
        self.manager.pods_changed()
        self.rest()
        assert not self.host.mounts
        assert not self.host.attached
        assert not len(self.manager.actual)
        assert not len(self.manager.desired)
        assert self.host.violations == []


TestVolumes = Volumes.TestCase
TestVolumes.settings = settings(stateful_step_count=40)
