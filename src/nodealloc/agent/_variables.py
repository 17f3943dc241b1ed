"""Variables from the same config maps and secrets that volumes have files of."""

from __future__ import annotations

from collections.abc import Mapping

from nodealloc import _attrs as attrs
from nodealloc._typed import typed
from nodealloc.podlife import EnvironmentSource
from nodealloc.volumes.plugins import ConfigSource, PodObjects

__all__ = ["object_variables"]


@typed
def object_variables(objects: PodObjects, /) -> EnvironmentSource | None:
    """What `NodeConfiguration(source=...)` takes; None where there is nothing to ask."""
    if objects.config_maps is None and objects.secrets is None:
        return None
    return _Variables(objects.config_maps, objects.secrets)


@attrs.frozen
class _Variables:
    """An `EnvironmentSource` over sources of volumes."""

    config_maps: ConfigSource | None
    secrets: ConfigSource | None

    def config_map(self, namespace: str, name: str, /) -> Mapping[str, str] | None:
        """Those keys whose content is text and is written as one; others are files alone."""
        found = None if self.config_maps is None else self.config_maps.read(namespace, name)
        if found is None:
            return None
        texts: dict[str, str] = {}
        for key, data in found.data.items():
            if key in found.binary:
                continue
            try:
                texts[key] = data.decode()
            except UnicodeDecodeError:
                continue
        return texts

    def secret(self, namespace: str, name: str, /) -> Mapping[str, bytes] | None:
        """All keys."""
        found = None if self.secrets is None else self.secrets.read(namespace, name)
        return None if found is None else found.data
