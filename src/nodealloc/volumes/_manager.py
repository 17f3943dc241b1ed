"""The volume manager: pods in, mounts out; the shell that holds both worlds."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator
from typing import Final

import attrs
from typing_extensions import override

from nodealloc._typed import typed, typed_but, typed_methods
from nodealloc.dsw_asw import (
    BackOff,
    Clock,
    Executor,
    Group,
    Observer,
    Passing,
    Running,
    Summary,
    SystemClock,
    Wait,
    World,
)
from nodealloc.podfacts import PodLife, PodSighting, PodSource
from nodealloc.volumes._abilities import by_name
from nodealloc.volumes._adoption import Adoption
from nodealloc.volumes._desired_world import DesiredWorldWriter
from nodealloc.volumes._domain import VolumeDomain
from nodealloc.volumes._engines import EngineParts, mounting_engine, populating_engine
from nodealloc.volumes._lost_mounts import LostMounts
from nodealloc.volumes._model import ActualVolume, DesiredVolume, VolumeId
from nodealloc.volumes._plan import is_right
from nodealloc.volumes._pods_of import PodsOf
from nodealloc.volumes._populator import DesiredPod, Populated, Populator
from nodealloc.volumes._ports import (
    AttachVerifier,
    ClaimResolver,
    Found,
    Leftovers,
    MountWatch,
    Plugin,
)
from nodealloc.volumes._reconstruction import Reconstruction
from nodealloc.volumes._settle import doubted
from nodealloc.volumes._states import MountState
from nodealloc.volumes._sub_paths import SubPaths
from nodealloc.volumes._views import PodVolume, Views

__all__ = ["VolumeManager"]


@typed_methods
class VolumeManager(Group):
    """Gives pods their volumes and takes them away; every method may be called from any thread.

    It is a `nodealloc.dsw_asw.Group`: `start` it, put it into a group of yours,
    or call `reconcile` yourself. Tell it of every change of a pod with `pod_changed`, and when the
    pod source becomes ready with `pods_changed`. Call `reconstruct` once, before
    anything else.

    Args:
        plugins: Every volume plugin; names are unique.
        pods: The pods of this node.
        executor: Runs plugins and claim look-ups; one call for each operation.
        claims: Turns claims into volumes, or None when there are none.
        leftovers: What an earlier life left behind, or None for a fresh node.
        mounts: Tells which mounts went; what somebody else took off a pod is
            mounted again. None to be told by `observe` alone.
        verifier: Says whether a controller attached a volume; None to attach here.
        clock: Time for back-off and deadlines.
        back_off: How long a failed operation waits.
        deadline_s: After which an operation counts as uncertain.
        resync_s: Seconds between looks at everything; None for never.
        observer: Is told of progress.
        sub_paths: Binds parts of volumes, and takes off those that an earlier life left; None where
            nobody does.

    Attributes:
        sub_paths: The same, for whoever configures containers and takes pods down.
    """

    @typed_but("plugins")
    def __init__(
        self,
        plugins: Iterable[Plugin],
        *,
        pods: PodSource,
        executor: Executor,
        claims: ClaimResolver | None = None,
        leftovers: Leftovers | None = None,
        mounts: MountWatch | None = None,
        verifier: AttachVerifier | None = None,
        clock: Clock | None = None,
        back_off: BackOff | None = None,
        deadline_s: float | None = 122.0,
        resync_s: float | None = 300.0,
        observer: Observer | None = None,
        sub_paths: SubPaths | None = None,
    ) -> None:
        self.sub_paths: Final = sub_paths
        self._pods = pods
        self._leftovers = leftovers
        self._observer = observer
        self._plugins = by_name(plugins)
        self._numbers = itertools.count(1)
        clock = SystemClock() if clock is None else clock
        self.desired: Final = World[VolumeId, DesiredVolume]("desired volumes")
        self.actual: Final = World[VolumeId, ActualVolume]("actual volumes")
        self._wanting = PodsOf(self.desired, lambda one: one.uses)
        self._mounted = PodsOf(self.actual, lambda one: one.mounts)
        self._desired_pods = World[str, DesiredPod]("pods")
        self._populated = World[str, Populated]("populated pods")
        self._adoption = Adoption(pods, self._populated, self.desired, self.actual)
        self._domain = VolumeDomain(
            self._plugins,
            leftovers=leftovers,
            verifier=verifier,
            deadline_s=deadline_s,
            sub_paths=sub_paths,
        )
        shared = EngineParts(executor=executor, clock=clock, back_off=back_off, observer=observer)
        populator = Populator(self._plugins, claims, self.actual, clock)
        self._populating = populating_engine(populator, self._desired_pods, self._populated, shared)
        self._mounting = mounting_engine(self._domain, self.desired, self.actual, shared, resync_s=resync_s)
        super().__init__(self._populating, self._mounting, name="volumes")
        self._writer = DesiredWorldWriter(
            self._desired_pods, self._populated, self.desired, self._adoption.release, self._wake
        )
        self._lost: LostMounts | None = None
        if mounts is not None:
            self._lost = LostMounts(
                mounts, self.actual, self._mounting, clock=clock, every_s=resync_s, wake=self._wake
            )
        self._views = Views(
            self._plugins, self._populated, self.desired, self.actual, self._mounting.failures
        )

    def reconstruct(self) -> tuple[Found, ...]:
        """Take over what an earlier life of this program left; call once, first.

        Everything found is recorded as uncertain and held: it is not touched
        before the pods are known. Then what is wanted is kept without a
        remount where it is right, and the rest is taken down. The observer is
        told of each as of an operation `reconstruct`, and of the whole as of a
        pass; a volume that its plugin cannot tell is `Failed`, and held as well.

        Raises:
            OSError: What there is cannot be read now; nothing was taken over.
        """
        if self._leftovers is None:
            return ()
        reconstruction = Reconstruction(self._plugins, self._adoption, self._observer)
        return reconstruction.take(self._leftovers.found())

    def pod_changed(self, uid: str, /) -> None:
        """Look at one pod: it arrived, changed, ended, or became unknown."""
        sighting = self._pods.get(uid)
        while True:
            self._take(uid, sighting)
            before, sighting = sighting, self._pods.get(uid)
            if sighting == before:  # else another thread may have taken the newer word already
                break
        self._adoption.release(uid)

    def _take(self, uid: str, sighting: PodSighting | None) -> None:
        if sighting is None or sighting.life is PodLife.ENDED:
            if self._pods.is_ready():
                self._desired_pods.drop(uid, by="pod source")
        elif sighting.life is PodLife.WANTED:
            pod = sighting.pod

            def changed(before: DesiredPod | None) -> DesiredPod:
                if before is None:
                    return DesiredPod(pod=pod, generation=next(self._numbers))
                return attrs.evolve(before, pod=pod)

            self._desired_pods.alter(uid, changed, by="pod source")

    def pods_changed(self) -> None:
        """Look at every pod: at start, when the source becomes ready, and when events may be lost."""
        uids = dict.fromkeys([*self._pods.uids(), *self._desired_pods.snapshot(), *self._adoption.pods()])
        for uid in uids:
            self.pod_changed(uid)
        self._adoption.await_pods(uids)

    def refresh(self, uid: str, /) -> None:
        """Resolve a pod's volumes anew: a claim grew, a config changed. An unknown pod is no error."""
        self._desired_pods.alter(
            uid,
            lambda pod: None if pod is None else attrs.evolve(pod, refresh=pod.refresh + 1),
            by="refresh",
        )

    def observe(self, uid: str, /) -> None:
        """Somebody else may have touched a pod's mounts: make sure of each, without disturbing right ones.

        A `MountWatch` finds those that are gone; call this where something else
        may be wrong with them, or for any pod now and then.
        """
        for key in self._views.ids(uid):
            self.actual.alter(key, lambda before: doubted(before, uid), by="observe")

    def mounts_changed(self) -> None:
        """The mount table changed: ask the `MountWatch` soon, not at the next resync."""
        if self._lost is not None:
            self._lost.look_soon()

    @override
    def reconcile(self) -> Summary:
        """Make one pass over what changed: pods, then volumes; without any, look for lost mounts."""
        if self._lost is not None and not super().has_work:
            self._lost.ask()
        return super().reconcile()

    @property
    @override
    def has_work(self) -> bool:
        """Whether a pass now would find something to do."""
        return super().has_work or self._writer.has_work or (self._lost is not None and self._lost.has_work)

    @override
    def seconds_to_next(self) -> float | None:
        """How long until a pass is due by itself; None when only an event can bring one."""
        due = [super().seconds_to_next(), None if self._lost is None else self._lost.seconds_to_next()]
        return min((one for one in due if one is not None), default=None)

    @override
    def reconcilers(self) -> Iterator[Passing]:
        """Pods, what they want, volumes, and the look for lost mounts."""
        yield self._populating
        yield self._writer
        yield self._mounting
        if self._lost is not None:
            yield self._lost

    @override
    def close(self, timeout_s: float = 0.0, /) -> tuple[Running[object], ...]:
        """Start nothing more and wait for what runs; mounts stay. Returns what still runs."""
        self._writer.close()
        if self._lost is not None:
            self._lost.close()
        return super().close(timeout_s)

    def wait_for_attach_and_mount(self, uid: str, /, timeout_s: float = 123.0) -> None:
        """Block until every volume of a pod is there.

        Raises:
            WaitTimeoutError: Names what is missing, and the last error of each.

        Source: kubelet ``volumemanager`` (2 min 3 s).
        """
        until_s = time.monotonic() + timeout_s
        self._populated_wait(uid).result(timeout_s)
        self._mounted_wait(uid).result(max(0.0, until_s - time.monotonic()))

    async def wait_for_attach_and_mount_async(self, uid: str, /, timeout_s: float = 123.0) -> None:
        """The same on an event loop, without blocking it."""
        until_s = time.monotonic() + timeout_s
        await self._populated_wait(uid).result_async(timeout_s)
        await self._mounted_wait(uid).result_async(max(0.0, until_s - time.monotonic()))

    @typed
    def wait_for_unmount(self, uid: str, /, timeout_s: float = 123.0) -> None:
        """Block until nothing of a pod is mounted; the pod has to have ended."""
        keys = [key for key, record in self.actual.snapshot().items() if uid in record.value.mounts]

        def lacks(_key: VolumeId, _want: DesiredVolume | None, have: ActualVolume | None) -> str:
            mount = None if have is None else have.mounts.get(uid)
            return "" if mount is None else f"still {mount.state.value} for pod {uid}"

        self._mounting.wait_until(keys, lacks, timeout_s=timeout_s, scope=lambda key: (key, uid))

    def holds(self, uid: str, /) -> bool:
        """Whether anything is mounted for a pod, may be, or is about to be; never waits.

        A mount that is under way counts, also one that hangs. For who takes a pod
        down: once it has ended and `pod_changed` was told, False stays False.
        """
        wanted = uid in self._wanting
        # In this order: what ends meanwhile is in the actual world before it no longer runs.
        busy = any(one.scope[1:] == (uid,) for one in self._mounting.running())
        return wanted or busy or uid in self._mounted

    def volumes_of(self, uid: str, /) -> tuple[PodVolume, ...]:
        """A pod's volumes as they are now, with the last error of each that is not there.

        Of a pod that is no more those that are left of it, with the last error of taking them down.
        """
        return self._views.volumes_of(uid)

    def volumes_in_use(self) -> frozenset[VolumeId]:
        """Attachable volumes that a controller must not detach from this node."""
        return self._views.in_use()

    @typed
    def mark_reported_in_use(self, volumes: Iterable[VolumeId], /) -> None:
        """The controller knows by now that these are in use, so they may be built on."""
        before = self._domain.reported_in_use
        self._domain.reported_in_use = frozenset(volumes)
        for key in self._domain.reported_in_use - before:
            self._mounting.retry_now(key)

    def supplemental_groups(self, uid: str, /) -> tuple[int, ...]:
        """Groups that a pod's processes have to be in to use its volumes."""
        return self._views.supplemental_groups(uid)

    def _populated_wait(self, uid: str) -> Wait[str]:
        self.pod_changed(uid)

        def lacks(_uid: str, desired: DesiredPod | None, populated: Populated | None) -> str:
            if desired is None:
                return "this pod is not known, or has ended"
            if populated is None or populated.desired != desired:
                return "its volumes are not resolved yet"
            return "; ".join(map(str, populated.errors.values()))

        return self._populating.wait([uid], lacks)

    def _mounted_wait(self, uid: str) -> Wait[VolumeId]:

        def lacks(_key: VolumeId, want: DesiredVolume | None, have: ActualVolume | None) -> str:
            use = None if want is None else want.uses.get(uid)
            if use is None:
                return f"pod {uid} does not want it any more"
            mount = None if have is None else have.mounts.get(uid)
            if is_right(mount, use):
                return ""
            state = MountState.ABSENT if mount is None else mount.state
            device = "detached" if have is None else have.state.value
            return f"{use.volume}: {state.value} for pod {uid}, volume {device}"

        return self._mounting.wait(self._views.ids(uid), lacks, scope=lambda key: (key, uid))
