"""Documents of a text in JSON or YAML; the one place that knows a YAML library."""

from __future__ import annotations

import json
from types import ModuleType

from nodealloc.errors import DecodeError, Fault

__all__ = ["documents_of"]

_TOLD = 200
"""Characters of a parser's words that are told."""


def documents_of(data: bytes | str, where: str, /) -> list[object]:
    """All documents of a text, in order; None for one in which nothing stands.

    Args:
        data: The text; bytes are UTF-8.
        where: What to call it in an error.

    Raises:
        DecodeError: It is neither JSON nor YAML, or it is YAML and PyYAML is not installed.
    """
    try:
        text = data if isinstance(data, str) else data.decode()
    except UnicodeDecodeError as error:
        raise DecodeError(where, [Fault("$", f"byte {error.start} is no UTF-8; write text")]) from None
    try:
        return [json.loads(text)]
    except (ValueError, RecursionError):
        return [] if not text.strip() else _yaml_documents(text, where)


def _yaml_documents(text: str, where: str) -> list[object]:
    yaml = _yaml(where)
    try:
        return list(yaml.safe_load_all(text))
    except RecursionError:
        raise DecodeError(where, [Fault("$", "nested too deeply")]) from None
    except (yaml.YAMLError, ValueError) as error:
        words = " ".join(str(error).split())[:_TOLD]
        reason = f"neither JSON nor YAML: {words}; mend it, or write it whole"
        raise DecodeError(where, [Fault("$", reason)]) from None


def _yaml(where: str) -> ModuleType:
    try:
        import yaml  # noqa: PLC0415 - an extra; JSON works without it
    except ImportError:
        reason = "no JSON, and YAML needs PyYAML: pip install 'nodealloc[agent]'"
        raise DecodeError(where, [Fault("$", reason)]) from None
    return yaml
