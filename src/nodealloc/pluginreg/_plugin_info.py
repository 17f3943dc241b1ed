"""What a plugin may say of itself before any handler sees it."""

from __future__ import annotations

from nodealloc.errors import PermanentError
from nodealloc.pluginreg._ports import PluginInfo

__all__ = ["check_plugin_info"]

_LONGEST = {"name": 512, "endpoint": 4096}
"""Characters of each word; the longest name that anybody uses, a resource's, has 317."""
_SHOWN = 40
"""Characters of a plugin's own words that are repeated to it; it may say a megabyte."""


def check_plugin_info(info: PluginInfo, /) -> None:
    """Raise `PermanentError` where no handler could do anything with a plugin's name or endpoint.

    Which versions it has to speak, its handler says.
    """
    for what, word in (("name", info.name), ("endpoint", info.endpoint)):
        if not word:
            raise PermanentError(f"no {what}; say one")
        if len(word) > _LONGEST[what]:
            raise PermanentError(f"{what} too long: {len(word)} characters, {_LONGEST[what]} are allowed")
        if any(character < " " or character == "\x7f" for character in word):
            raise PermanentError(f"{what} {word[:_SHOWN]!r} has control characters")
