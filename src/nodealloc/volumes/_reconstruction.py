"""What an earlier life left, taken over at start: each piece by its plugin, and an observer told."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from nodealloc.dsw_asw import Done, Failed, Observer, Outcome, Step, Summary, tell
from nodealloc.errors import PermanentError
from nodealloc.volumes._abilities import Abilities
from nodealloc.volumes._adoption import Adoption
from nodealloc.volumes._model import VolumeMode, VolumeSpec
from nodealloc.volumes._ports import Found

__all__ = ["Reconstruction"]


class Reconstruction:
    """Names what was found and has it held; one thread, once."""

    def __init__(
        self, plugins: Mapping[str, Abilities], adoption: Adoption, observer: Observer | None
    ) -> None:
        self._plugins = plugins
        self._adoption = adoption
        self._observer = observer

    def take(self, found: Iterable[Found], /) -> tuple[Found, ...]:
        """Hold everything; a plugin that fails at one volume keeps none from being held."""
        everything = tuple(found)
        done = sum(self._take_one(one) for one in everything)
        summary = Summary(passes=1, started=len(everything), done=done, failed=len(everything) - done)
        tell(self._observer, lambda observer: observer.passed(summary))
        return everything

    def _take_one(self, one: Found) -> bool:
        began_s = time.monotonic()
        try:
            spec = self._reconstructed(one)
            outcome: Outcome[VolumeSpec] = Done(spec)
        except Exception as error:  # noqa: BLE001 - a plugin may raise what it likes
            spec, outcome = self._undone(one), Failed[VolumeSpec](error)
        took_s = time.monotonic() - began_s
        self._adoption.hold(spec, one.pod_uid)
        scope = (spec.id, one.pod_uid) if one.pod_uid else (spec.id,)
        step = Step(scope=scope, verb="reconstruct", detail=one)
        tell(self._observer, lambda observer: observer.started(step))
        tell(self._observer, lambda observer: observer.ended(step, outcome, took_s))
        return isinstance(outcome, Done)

    def _reconstructed(self, one: Found) -> VolumeSpec:
        plugin = self._plugins.get(one.plugin)
        can = None if plugin is None else plugin.reconstruct
        untyped: object = None if can is None else can.reconstruct(one)
        if isinstance(untyped, VolumeSpec):
            return untyped
        owner = f"of pod {one.pod_uid}" if one.pod_uid else "staged for the node"
        raise PermanentError(
            f"volume {one.name!r} {owner}: no plugin {one.plugin!r} that can tell what it was; "
            "it is held, and taken down when no pod wants it"
        )

    def _undone(self, one: Found) -> VolumeSpec:
        """Nobody can tell what it was: everything that its plugin could have done to it is to be undone."""
        plugin = self._plugins.get(one.plugin)
        return VolumeSpec(
            plugin=one.plugin,
            name=one.name,
            pod_uid=one.pod_uid,
            mode=VolumeMode.BLOCK if one.block else VolumeMode.FILESYSTEM,
            needs_attach=not one.pod_uid and plugin is not None and plugin.attach is not None,
            needs_stage=not one.pod_uid,
        )
