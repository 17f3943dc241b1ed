"""What an error says, where that is all that is told of it."""

from __future__ import annotations

__all__ = ["error_words"]


def error_words(error: BaseException, /) -> str:
    """Its own words; its kind as well where they are a bare key, and its kind alone where it has none."""
    words, kind = str(error), type(error).__name__
    if type(error).__str__ is KeyError.__str__:
        return f"{kind}: {words}" if words else kind
    return words or kind
