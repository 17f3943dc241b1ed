"""Names of pods: whose one is that several files of a folder give, and what may stand behind it; pure."""

from __future__ import annotations

from collections.abc import Mapping

from nodealloc import _attrs as attrs
from nodealloc.errors import ConfigurationError
from nodealloc.podspec import Pod
from nodealloc.podspec._checks import subdomain

__all__ = ["NamesByFiles", "check_node_name"]


def check_node_name(where: str, name: str, /) -> None:
    """Raises `ConfigurationError` for what no node is called, in any case of letters; "" is nothing."""
    if name and (reason := subdomain(name.lower())):
        raise ConfigurationError(f"{where}: node_name: {reason}")


@attrs.define
class NamesByFiles:
    """A kubelet keeps pods of a folder by their full names.

    A file that it hears of puts its pod there, whoever had the name; one that went takes the
    name away, whosever pod that was. When the folder is listed next the last file in the
    order of names has it.

    Attributes:
        listed_s: How long after something was heard the folder is listed, in seconds.

    Source: kubelet ``config/file.go``.
    """

    listed_s: float
    _heard: dict[str, tuple[str, float]] = attrs.field(factory=dict[str, tuple[str, float]], init=False)

    def heard(self, full_name: str, file: str, now_s: float, /) -> None:
        """A file was written, or went: "" then."""
        self._heard[full_name] = (file, now_s)

    def holders(self, pods: Mapping[str, Pod], now_s: float, /) -> dict[str, str]:
        """Full name to the file that has it; a name that was taken away, and not listed again, is absent.

        Args:
            pods: By file.
            now_s: The present.
        """
        holders = {pods[file].full_name: file for file in sorted(pods)}
        for full_name, (file, at_s) in tuple(self._heard.items()):
            if now_s - at_s >= self.listed_s:
                del self._heard[full_name]
            elif full_name in holders and not file:
                del holders[full_name]
            elif full_name in holders and file in pods and pods[file].full_name == full_name:
                holders[full_name] = file
        return holders

    def soon(self, now_s: float, /) -> list[float]:
        """Seconds until the folder is listed again, for each name that was heard of."""
        return [max(0.0, at_s + self.listed_s - now_s) for _, at_s in self._heard.values()]
