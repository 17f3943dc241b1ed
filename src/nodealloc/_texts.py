"""Documents of a text in JSON or YAML."""

from __future__ import annotations

import json
import re
from typing import Final

from nodealloc._reading import NO_TEXT, is_text
from nodealloc.errors import DecodeError, Fault

__all__ = ["documents_of"]

_TOLD: Final = 200
"""Characters of a parser's words that are told."""
_SLOW: Final = (
    "PyYAML was built without libyaml here and takes too long for it: install its wheel, "
    "which has libyaml, or write JSON"
)
_HALF: Final = re.compile(r"\\[uU](?:0000)?[dD][89a-fA-F]")
"""What may be half of a pair of escapes."""


def documents_of(data: bytes | str, where: str, /, *, max_yaml_bytes: int | None = None) -> list[object]:
    """All documents of a text, in order; None for one in which nothing stands.

    Args:
        data: The text; bytes are UTF-8.
        where: What to call it in an error.
        max_yaml_bytes: Of a text that is no JSON, which takes a hundred times as long to read: a longer
            one is refused unread. None for any.

    Raises:
        DecodeError: It is neither JSON nor YAML, or it is YAML that is too long, or PyYAML is not installed.
    """
    try:
        text = data if isinstance(data, str) else data.decode()
    except UnicodeDecodeError as error:
        raise DecodeError(where, [Fault("$", f"byte {error.start} is no UTF-8; write text")]) from None
    documents = _documents(text, where, max_yaml_bytes)
    if _HALF.search(text):
        _check_texts(documents, where)
    return documents


def _documents(text: str, where: str, max_yaml_bytes: int | None) -> list[object]:
    try:
        return [json.loads(text)]
    except (ValueError, RecursionError):
        if max_yaml_bytes is not None and len(text) > max_yaml_bytes:
            size = f"{len(text)} characters, {max_yaml_bytes} is the limit of YAML"
            reason = f"no JSON, and {size}; answer with JSON"
            raise DecodeError(where, [Fault("$", reason)]) from None
        return [] if not text.strip() else _yaml_documents(text, where)


def _yaml_documents(text: str, where: str) -> list[object]:
    try:
        import yaml  # noqa: PLC0415 - an extra; JSON works without it
    except ImportError:
        reason = "no JSON, and YAML needs PyYAML: pip install 'nodealloc[agent]'"
        raise DecodeError(where, [Fault("$", reason)]) from None
    from nodealloc import _yaml  # noqa: PLC0415 - loads it

    try:
        return [*_yaml.values_of(text)]
    except (RecursionError, _yaml.TooDeepError):
        raise DecodeError(where, [Fault("$", "nested too deeply")]) from None
    except _yaml.TooSlowError:
        reason = f"no JSON, and more than {_yaml.MOST_SLOW} characters of YAML; {_SLOW}"
        raise DecodeError(where, [Fault("$", reason)]) from None
    except _yaml.TooManyValuesError as error:
        (most,) = error.args
        remedy = _SLOW if most == _yaml.SLOW_VALUES else "write fewer, or JSON"
        reason = f"more than {most} values of YAML, merged ones counted each time; {remedy}"
        raise DecodeError(where, [Fault("$", reason)]) from None
    except (yaml.YAMLError, ValueError) as error:
        words = " ".join(str(error).split())[:_TOLD]
        reason = f"neither JSON nor YAML: {words}; mend it, or write it whole"
        raise DecodeError(where, [Fault("$", reason)]) from None


def _check_texts(documents: list[object], where: str) -> None:
    """Half of a pair of escapes is no text: nobody could write it down again."""
    due: list[object] = [*documents]
    while due:
        one = due.pop()
        if isinstance(one, dict):
            due += [*one, *one.values()]
        elif isinstance(one, list):
            due += one
        elif isinstance(one, str) and not is_text(one):
            raise DecodeError(where, [Fault("$", f"{one[:40]!a} {NO_TEXT}")])
