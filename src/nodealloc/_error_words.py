"""What an error says, where that is all that is told of it."""

from __future__ import annotations

from typing import Final

from nodealloc.errors import NodeallocError

__all__ = ["error_words", "is_of_bug", "on_one_line"]

_OF_BUGS: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    IndexError,
    KeyError,
    NameError,
    TypeError,
)


def error_words(error: BaseException, /) -> str:
    """Its own words; its kind as well where it is a bug's, and its kind alone where it has no words.

    A bug's words are for whoever sees the traceback: `KeyError` says a bare key.
    """
    words, kind = str(error), type(error).__name__
    if is_of_bug(error):
        return f"{kind}: {words}" if words else kind
    return words or kind


def is_of_bug(error: BaseException, /) -> bool:
    """Whether it is of a kind that only a mistake in a program raises."""
    return isinstance(error, _OF_BUGS) and not isinstance(error, NodeallocError)


def on_one_line(text: str, /) -> str:
    """A text of somebody else as a line of a log may have it: what a terminal obeys is spelled out."""
    return text if text.isprintable() else "".join(x if x.isprintable() else ascii(x)[1:-1] for x in text)
