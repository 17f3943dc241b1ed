"""The volume manager's rules for the engine: what performing a task means."""

from __future__ import annotations

from collections.abc import Mapping

from nodealloc.dsw_asw import Cancel, Outcome, Plan, Step, View
from nodealloc.errors import PermanentError, RetryableError
from nodealloc.volumes._abilities import Abilities
from nodealloc.volumes._model import ActualVolume, DesiredVolume, VolumeId, VolumeMode, VolumeSpec
from nodealloc.volumes._plan import Task, plan
from nodealloc.volumes._ports import AttachVerifier, Found, Leftovers, Staged
from nodealloc.volumes._settle import Result, settled
from nodealloc.volumes._sub_paths import SubPaths
from nodealloc.volumes._verbs import Verb

__all__ = ["VolumeDomain"]


class VolumeDomain:
    """Plans, performs and settles tasks on volumes.

    Args:
        plugins: By name.
        leftovers: Cleans what no plugin knows, or None.
        verifier: Says whether a controller attached a volume, or None when this
            node attaches by itself.
        deadline_s: After which an operation counts as uncertain.
        sub_paths: Takes the parts of volumes away that an earlier life bound, or None.
    """

    def __init__(
        self,
        plugins: Mapping[str, Abilities],
        *,
        leftovers: Leftovers | None = None,
        verifier: AttachVerifier | None = None,
        deadline_s: float | None = None,
        sub_paths: SubPaths | None = None,
    ) -> None:
        self._sub_paths = sub_paths
        self._plugins = plugins
        self._leftovers = leftovers
        self._verifier = verifier
        self._deadline_s = deadline_s
        self.reported_in_use: frozenset[VolumeId] = frozenset()

    def plan(self, view: View[VolumeId, DesiredVolume, ActualVolume, Task], /) -> Plan[ActualVolume, Task]:
        """Next steps for a volume."""
        return Plan(steps=plan(view.key, view.want, view.have, deadline_s=self._deadline_s))

    def settled(
        self, have: ActualVolume | None, step: Step[Task], outcome: Outcome[Result], /
    ) -> ActualVolume | None:
        """The volume's record after a task."""
        return settled(have, step.detail, outcome)

    def perform(self, step: Step[Task], _cancel: Cancel, /) -> Result:
        """Call the plugin."""
        task = step.detail
        plugin = self._plugins.get(task.spec.plugin)
        match task.verb:
            case Verb.ATTACH:
                return self._attach(plugin, task.spec)
            case Verb.DETACH:
                # A controller sees in `volumes_in_use` that it may detach.
                if self._verifier is None and plugin is not None and plugin.attach is not None:
                    plugin.attach.detach(task.spec)
                return None
            case Verb.STAGE:
                return self._stage(plugin, task)
            case Verb.UNSTAGE:
                if plugin is None:
                    self._clean(task)
                elif plugin.stage is not None:
                    plugin.stage.unstage(task.spec, task.device_path)
                return None
            case Verb.EXPAND:
                if plugin is None or plugin.expand is None:
                    raise _lacks(task.spec, "grow it")
                return plugin.expand.expand(task.spec, task.device_path)
            case Verb.MOUNT | Verb.UNMOUNT:
                self._mount_or_unmount(plugin, task)
                return None

    def _attach(self, plugin: Abilities | None, spec: VolumeSpec) -> Staged:
        if self._verifier is None:
            if plugin is None or plugin.attach is None:
                raise _lacks(spec, "attach it")
            return plugin.attach.attach(spec)
        # The controller may not detach what is reported in use, so nothing is built on it before.
        if spec.id not in self.reported_in_use:
            raise RetryableError(f"volume {spec.id} is not reported in use yet; report volumes_in_use()")
        device_path = self._verifier.attached(spec.id)
        if device_path is None:
            raise RetryableError(f"volume {spec.id} is not attached to this node yet")
        return Staged(device_path=device_path)

    def _stage(self, plugin: Abilities | None, task: Task) -> Staged:
        if plugin is None or plugin.stage is None:
            raise _lacks(task.spec, "stage it")
        device_path = task.device_path
        if task.spec.needs_attach and not device_path:
            # Found at start: it may be staged, so it was not taken through attaching again.
            device_path = self._attach(plugin, task.spec).device_path
        staged = plugin.stage.stage(task.spec, device_path)
        return Staged(device_path=staged.device_path or device_path, size_bytes=staged.size_bytes)

    def _mount_or_unmount(self, plugin: Abilities | None, task: Task) -> None:
        if task.use is None:
            return
        if task.verb is Verb.UNMOUNT and task.use.generation == 0 and self._sub_paths is not None:
            # Found at start, and of a pod that is gone: nobody else knows which parts were bound.
            self._sub_paths.clean(task.use.pod_uid)
        if plugin is not None and plugin.mount is not None:
            if task.verb is Verb.MOUNT:
                plugin.mount.mount(task.spec, task.use, task.device_path)
            else:
                plugin.mount.unmount(task.spec, task.use)
        elif task.verb is Verb.UNMOUNT:
            self._clean(task)
        else:
            raise _lacks(task.spec, "mount it")

    def _clean(self, task: Task) -> None:
        if self._leftovers is not None:
            spec = task.spec
            uid = "" if task.use is None else task.use.pod_uid
            block = spec.mode is VolumeMode.BLOCK
            self._leftovers.clean(Found(plugin=spec.plugin, name=spec.name, pod_uid=uid, block=block))


def _lacks(spec: VolumeSpec, what: str) -> PermanentError:
    return PermanentError(f"volume {spec.id}: no plugin {spec.plugin!r} that can {what}; register one")
