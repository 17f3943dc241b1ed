"""What each plugin can do, asked once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from nodealloc.volumes._ports import (
    CanAttach,
    CanExpand,
    CanMount,
    CanReconstruct,
    CanRevise,
    CanStage,
    Plugin,
)

__all__ = ["Abilities", "by_name"]


@attrs.frozen(kw_only=True)
class Abilities:
    """A plugin by its abilities; None for one that it lacks.

    Asked once, because looking for a Protocol's methods costs as much as a pass.
    """

    plugin: Plugin
    attach: CanAttach | None
    stage: CanStage | None
    mount: CanMount | None
    expand: CanExpand | None
    reconstruct: CanReconstruct | None
    revise: CanRevise | None

    @classmethod
    def of(cls, plugin: Plugin, /) -> Abilities:
        """Ask a plugin."""
        untyped: object = plugin
        return cls(
            plugin=plugin,
            attach=untyped if isinstance(untyped, CanAttach) else None,
            stage=untyped if isinstance(untyped, CanStage) else None,
            mount=untyped if isinstance(untyped, CanMount) else None,
            expand=untyped if isinstance(untyped, CanExpand) else None,
            reconstruct=untyped if isinstance(untyped, CanReconstruct) else None,
            revise=untyped if isinstance(untyped, CanRevise) else None,
        )


def by_name(plugins: Iterable[Plugin], /) -> Mapping[str, Abilities]:
    """Plugins by name; raises `ValueError` for two of one name."""
    named: dict[str, Abilities] = {}
    for plugin in plugins:
        if plugin.name in named:
            raise ValueError(f"two plugins named {plugin.name!r}; register one of them")
        named[plugin.name] = Abilities.of(plugin)
    return named
