"""What each plugin can do, asked once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nodealloc import _attrs as attrs
from nodealloc._arguments import is_other, wrong
from nodealloc.errors import ConfigurationError
from nodealloc.volumes._ports import (
    CanAge,
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
    age: CanAge | None

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
            age=untyped if isinstance(untyped, CanAge) else None,
        )


def by_name(plugins: Iterable[Plugin], /) -> Mapping[str, Abilities]:
    """Plugins by name; refuses a name or a kind that two have, or that paths cannot hold."""
    named: dict[str, Abilities] = {}
    served: dict[str, str] = {}
    for plugin in plugins:
        if isinstance(plugin, type) or is_other(plugin.name, str):
            raise wrong("plugins", plugin, "an instance of a plugin each; call the class")
        name = plugin.name
        if name in named:
            raise ConfigurationError(f"two plugins named {name!r}; register one of them")
        # `~` stands for `/` in paths: at the next start, the volumes would be another plugin's.
        if name in ("", ".", "..") or "~" in name or "\0" in name:
            raise ConfigurationError(f"plugin name {name!r} makes no directory; write example.com/disk")
        for kind in plugin.kinds:
            other = served.setdefault(kind, name)
            if other != name:
                raise ConfigurationError(f"{other!r} and {name!r} both serve {kind!r}; register one of them")
        named[name] = Abilities.of(plugin)
    return named
