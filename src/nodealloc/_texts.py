"""Documents of a text in JSON or YAML."""

from __future__ import annotations

import json
import re
from typing import Final, cast

from nodealloc._reading import NO_TEXT, is_text
from nodealloc.errors import DecodeError, Fault

__all__ = ["documents_of", "kubelets_document_of"]

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
        DecodeError: It is neither JSON nor YAML, has a key twice in one mapping, or is YAML that is too
            long, or PyYAML is not installed.
    """
    text = _decoded(data, where)
    try:
        # What has a key twice is refused by the reader of YAML, which knows where it stands.
        documents = [json.loads(text, object_pairs_hook=_fields)]
    except (ValueError, RecursionError):
        _check_length(text, where, max_yaml_bytes)
        documents = [] if not text.strip() else _yaml_documents(text, where)
    if _HALF.search(text):
        _check_texts(documents, where)
    return documents


def kubelets_document_of(data: bytes, where: str, /, *, max_yaml_bytes: int | None = None) -> object:
    """The document that a kubelet reads in a text; None where nothing stands in it.

    What begins with `{` is JSON or nothing. Of YAML the first document counts, whatever stands behind it.

    Args:
        data: The text, in UTF-8.
        where: What to call it in an error.
        max_yaml_bytes: As of `documents_of`.

    Raises:
        DecodeError: As of `documents_of`.

    Source: Kubernetes ``apimachinery/pkg/util/yaml``.
    """
    text = _decoded(data, where)
    if text.lstrip()[:1] == "{":
        document = _json(text, where)
    else:
        _check_length(text, where, max_yaml_bytes)
        (document,) = _yaml_documents(text, where, is_kubelets=True) if text.strip() else [None]
    if _HALF.search(text):
        _check_texts([document], where)
    return document


def _decoded(data: bytes | str, where: str) -> str:
    try:
        return data if isinstance(data, str) else data.decode()
    except UnicodeDecodeError as error:
        raise DecodeError(where, [Fault("$", f"byte {error.start} is no UTF-8; write text")]) from None


def _fields(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def _json(text: str, where: str) -> object:
    try:
        return cast("object", json.loads(text, parse_constant=_no_number))
    except RecursionError:
        raise DecodeError(where, [Fault("$", "nested too deeply")]) from None
    except ValueError as error:
        reason = f"begins with {{ and is no JSON: {str(error)[:_TOLD]}; mend it"
        raise DecodeError(where, [Fault("$", reason)]) from None


def _no_number(word: str) -> object:
    raise ValueError(f"it has no {word}")


def _check_length(text: str, where: str, max_yaml_bytes: int | None) -> None:
    if max_yaml_bytes is not None and len(text) > max_yaml_bytes:
        size = f"{len(text)} characters, {max_yaml_bytes} is the limit of YAML"
        reason = f"no JSON, and {size}; answer with JSON"
        raise DecodeError(where, [Fault("$", reason)]) from None


def _yaml_documents(text: str, where: str, *, is_kubelets: bool = False) -> list[object]:
    try:
        import yaml  # noqa: PLC0415 - an extra; JSON works without it
    except ImportError:
        reason = "no JSON, and YAML needs PyYAML: pip install 'nodealloc[agent]'"
        raise DecodeError(where, [Fault("$", reason)]) from None
    from nodealloc import _yaml  # noqa: PLC0415 - loads it

    try:
        return [*_yaml.values_of(text, is_kubelets=is_kubelets)]
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
